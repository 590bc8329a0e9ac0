"""Bounds of exp and log in rational numbers, so that a privacy decision never rests on a rounded float."""

import math
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

BITS = 192  # the bounds lie within 2^-180 of each other for exponents up to 64
_GUARD = 64


def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """A lower and an upper bound of e^x, x >= 0: Taylor's series of x/2^k, every rounding directed, squared k times."""
    halvings = max(0, math.ceil(x).bit_length())
    bits = BITS + _GUARD + 2 * halvings
    one = 1 << bits
    small = x / (1 << halvings)  # at most 1
    below, above = _floor(small * one), _ceil(small * one)
    low, high = _series(below, one, up=False), _series(above, one, up=True)
    for _ in range(halvings):
        low = (low * low) >> bits
        high = -(-(high * high) >> bits)
    return Fraction(low, one), Fraction(high, one)


def log_above(ratio: Fraction, digits: int = 12) -> Decimal:
    """The smallest decimal of so many digits found whose exponential is proved to be at least `ratio` (ratio >= 1)."""
    step = Decimal(1).scaleb(-digits)
    guess = Decimal(math.log(ratio.numerator) - math.log(ratio.denominator)) - 4 * step
    candidate = max(Decimal(0), guess.quantize(step, rounding=ROUND_CEILING))
    while exp_bounds(Fraction(candidate))[0] < ratio:
        candidate += step
    return candidate


def _series(x: int, one: int, up: bool) -> int:
    """Sum of x^k/k! in fixed point; rounded down and cut short for a lower bound, up with the rest for an upper."""
    total, term, k = one, one, 0
    while term > 1:
        k += 1
        term = -(-term * x // (one * k)) if up else term * x // (one * k)
        total += term
    return total + 2 * term if up else total  # for x <= 1 what was cut off is less than twice its first term


def _floor(x: Fraction) -> int:
    return x.numerator // x.denominator


def _ceil(x: Fraction) -> int:
    return -(-x.numerator // x.denominator)
