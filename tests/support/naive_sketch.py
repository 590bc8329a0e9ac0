"""The sketch by its definition, in whole numbers of any size and fractions. Shares no code with the project."""

from collections.abc import Sequence
from fractions import Fraction
from math import floor

ONE = 2**15
WORD = 2**32


def nearest(value: Fraction) -> int:
    """Rounded, halves upward."""
    return floor(value + Fraction(1, 2))


def entries(number: int, n: int) -> list[int]:
    """The direction of a number: words of a congruential sequence as numbers from -1 to 1, rounded."""
    state = (number + 1) * 0x9E3779B1 % WORD
    state ^= state // 2**16
    state = state * 0x85EBCA6B % WORD
    state ^= state // 2**13
    found = []
    for _ in range(n):
        state = (state * 1664525 + 1013904223) % WORD
        signed = state - WORD if state >= WORD // 2 else state
        found.append(nearest(Fraction(signed, 2**31)))
    return found


def along(x: Sequence[int], centre: Sequence[int], number: int) -> int:
    """s·(x - c) in Q15."""
    directed = zip(entries(number, len(x)), x, centre, strict=True)
    return sum(entry * (min(feature, ONE) - middle) for entry, feature, middle in directed)


def squared(total: int, factor: int, halvings: int) -> int:
    """Return the square of a sum, rounded where the device rounds."""
    halved = nearest(Fraction(total, 2**halvings))
    part = nearest(Fraction(max(-ONE, min(ONE, halved)) * factor, 2**16))
    return min(nearest(Fraction(part * part, 2**13)), ONE)


def exact(total: int, factor: int, halvings: int) -> Fraction:
    """min(1, (total/R)²) without rounding, R = 2^halvings·2^15/factor."""
    root = Fraction(2**halvings * ONE, factor)
    return min(Fraction(1), (Fraction(total, ONE) / root) ** 2)


def sketch(x: Sequence[int], centre: Sequence[int], number: int, factor: int, halvings: int) -> int:
    return squared(along(x, centre, number), factor, halvings)
