"""Obvious loops for the row kernels, from the counts of a table. Shares no code with them."""

from collections.abc import Callable, Sequence
from itertools import accumulate

D = 1 << 15
Counts = Sequence[Sequence[int]]


def row(x: int, word: int, rows: int) -> int:
    """Rounding at random to a knot: the word's low bits are a part of a step."""
    step = D // (rows - 1)
    return (min(x, D) + word % step) // step


def symbol(x: int, counts: Counts, word: int, bits: int = 16) -> int:
    """The top bits of the word fall among the counts of the row, laid end to end."""
    left = word // 2 ** (32 - bits)
    for s, count in enumerate(counts[row(x, word, len(counts))]):
        if left < count:
            return s
        left -= count
    raise ValueError("the counts of a row do not add up to a power of two")


def symbol_mirrored(x: int, counts: Counts, word: int) -> int:
    """Return the symbol by the first half of the rows only."""
    x = min(x, D)
    if x <= D // 2:
        return symbol(x, counts, word)
    return len(counts[0]) - 1 - symbol(D - x, counts, word)


def bit(x: int, counts: Counts, word: int) -> int:
    """1 for as many of 2^31 words as the mean of the two rows says."""
    (_, low), (_, high) = counts
    x = min(x, D)
    return int(word // 2 < low * (D - x) + high * x)


def distribution(x: int, counts: Counts) -> list[int]:
    """Count how many words of 2^(16 + shift), or 2^(8 + shift), give each symbol: the mean of both rows beside x."""
    step = D // (len(counts) - 1)
    r, part = divmod(min(x, D), step)
    above = counts[r + 1] if part else counts[r]
    return [(step - part) * a + part * b for a, b in zip(counts[r], above, strict=True)]


def thresholds(counts: Counts) -> list[int]:
    """Return what the device stores: the counts of each row summed up, without the total."""
    return [total for each in counts for total in list(accumulate(each))[:-1]]


def lookup(counts: Counts) -> list[int]:
    """Each symbol as often as its count says."""
    return [s for each in counts for s, count in enumerate(each) for _ in range(count)]


def sampled(
    x: Sequence[int], words: Sequence[int], k: int, order: list[int], draw: Callable[[int, int], int]
) -> tuple[list[int], list[int]]:
    """Picked features and what is drawn of them: one of those left changes places with the last of those left."""
    chosen, y = [], []
    for j in range(k):
        left = len(x) - j
        place = words[2 * j] // 4096 * left // 2**20
        order[place], order[left - 1] = order[left - 1], order[place]
        chosen.append(order[left - 1])
        y.append(draw(x[chosen[-1]], words[2 * j + 1]))
    return chosen, y
