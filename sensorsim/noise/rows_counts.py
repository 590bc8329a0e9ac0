"""Rows: counts of a few symbols for every knot of the range; the privacy bound and the estimate are exact.

    row    = (x_q + (word & mask)) >> shift        2^j + 1 knots over the range of x, shift = frac_bits - j
    symbol = how many thresholds of that row are <= the top bits of the word

x_q is any of 0..2^frac_bits; what is larger counts as 1. The low `shift` bits of the word round x to one of the two
knots beside it, so that x is met on average: x = (1-t)*knot + t*next knot takes the next one with probability t
exactly. The top bits, which share no bit with those, draw the symbol: c[row][symbol] of 2^bits.

Privacy. The probability of a symbol is (1-t)*c[r][s] + t*c[r+1][s] over 2^bits: a mixture of two counts of its column,
which lies between the smallest and the largest count of the column. For any two inputs the likelihood ratio of a symbol
is therefore at most the largest count over the smallest, and two inputs on the knots attain it. Hence delta = 0 and

    exp(eps) = max over symbols of (max over rows of c) / (min over rows of c).

Estimate. The values a[symbol] solve  sum_s c[r][s]*a[s] = 2^bits * r/2^j  for every row r. On a knot the expected value
is x; in between it is (1-t)*knot + t*next knot, which is x again: unbiased for every x, with no rounding anywhere.

A mirrored table stores the rows of x <= 1/2 only. For x > 1/2 the device takes 1-x and turns symbol s into
symbols-1-s: the counts are those of the full table whose other rows are the stored ones read backwards.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sensorsim._util.errors import InputError

Counts = tuple[tuple[int, ...], ...]
MOST_KNOTS = 33
LOOKUP_BITS = 8


@dataclass(frozen=True)
class Rows:
    """Counts c[row][symbol] out of 2^bits, one row for each stored knot, from x = 0 upwards."""

    counts: Counts
    bits: int
    mirrored: bool = False

    def __post_init__(self) -> None:
        _check(self.counts, self.bits, self.mirrored)

    @property
    def knots(self) -> int:
        """Return the number of knots of the range, including those that a mirrored table does not store."""
        return 2 * len(self.counts) - 1 if self.mirrored else len(self.counts)

    @property
    def knot_bits(self) -> int:
        """Return j of the 2^j + 1 knots."""
        return (self.knots - 1).bit_length() - 1

    @property
    def symbols(self) -> int:
        return len(self.counts[0])

    @property
    def table_bytes(self) -> int:
        """Return the bytes on the device: u16 thresholds, or 256 symbols a row if bits = 8; for one bit two constants.

        The values are not counted: only the receiver needs them.
        """
        if self.one_bit() is not None:
            return 4
        return len(self.counts) * (256 if self.bits == 8 else 2 * (self.symbols - 1))

    def all_counts(self) -> Counts:
        """Return the counts of every knot, stored or not."""
        if not self.mirrored:
            return self.counts
        return self.counts + tuple(row[::-1] for row in self.counts[-2::-1])

    def ratio(self) -> Fraction | None:
        """Return the largest likelihood ratio over all inputs and symbols, or None if it has no bound."""
        columns = list(zip(*self.all_counts(), strict=True))
        if any(min(column) == 0 for column in columns):
            return None
        return max(Fraction(max(column), min(column)) for column in columns)

    def values(self) -> tuple[Fraction, ...]:
        """Return the value of each symbol, for the range 0..1: the estimate is unbiased for every x.

        If the rows leave freedom, take the values with the smallest mean variance over the range: a linear problem
        with a single rational solution, symmetric where the counts are.
        """
        return _values(self.all_counts(), self.bits)

    def variance(self, x: Fraction) -> Fraction:
        """Return the exact variance of the estimate at x, 0..1."""
        if not 0 <= x <= 1:
            raise InputError(f"x = {x} is outside the range 0..1; clamp it first.")
        last = self.knots - 1
        row = min(int(x * last), last - 1)
        t = x * last - row
        second = self._second_moments()
        return (1 - t) * second[row] + t * second[row + 1] - (x - Fraction(1, 2)) ** 2

    def worst_sd(self) -> float:
        """Return the standard deviation of the estimate at the x where it is largest."""
        last = self.knots - 1
        second = self._second_moments()
        worst = Fraction(0)
        for row in range(last):  # between two knots the variance is a parabola with its top here:
            top = Fraction(1, 2) + (second[row + 1] - second[row]) * last / 2
            worst = max(worst, self.variance(min(max(top, Fraction(row, last)), Fraction(row + 1, last))))
        return math.sqrt(worst)

    def mean_sd(self) -> float:
        """Return the root of the mean variance for x uniform over the range."""
        second = self._second_moments()
        mean = (sum(second) - (second[0] + second[-1]) / 2) / (self.knots - 1)
        return math.sqrt(mean - Fraction(1, 12))

    def distribution(self, x_q: int, frac_bits: int) -> tuple[int, ...]:
        """Return how many of the 2^(bits + frac_bits - knot_bits) words that differ in a used bit give each symbol."""
        shift = frac_bits - self.knot_bits
        if shift < 0 or x_q < 0:
            raise InputError(
                f"x_q must not be negative and frac_bits be {self.knot_bits} or more; got {x_q}, {frac_bits}."
            )
        row, rest = divmod(min(x_q, 1 << frac_bits), 1 << shift)
        rows = self.all_counts()
        nearest, next_one = rows[row], rows[min(row + 1, self.knots - 1)]
        return tuple(((1 << shift) - rest) * a + rest * b for a, b in zip(nearest, next_one, strict=True))

    def thresholds(self) -> tuple[tuple[int, ...], ...]:
        """Return what the device stores of each row: the running sums of the counts, without the last, 2^bits."""
        return tuple(tuple(sum(row[: s + 1]) for s in range(self.symbols - 1)) for row in self.counts)

    def lookup(self) -> tuple[tuple[int, ...], ...]:
        """Return the other form for bits = 8: the symbol for each of the 256 values of the top bits."""
        if self.bits != 8:
            raise InputError(f"a look-up has counts out of 2^8, these are out of 2^{self.bits}; design with bits=8.")
        return tuple(tuple(s for s, count in enumerate(row) for _ in range(count)) for row in self.counts)

    def one_bit(self) -> tuple[int, int] | None:
        """Return (base, slope) of `symbol = (word >> 1) < base + slope*x_q`, x_q in Q15, for two rows and two symbols.

        The probability of symbol 1, (c + (d-c)*x_q/2^15)/2^16, is (base + slope*x_q)/2^31: no table is needed.
        """
        if self.knots != 2 or self.symbols != 2 or self.bits > 16:
            return None
        (_, at_0), (_, at_1) = self.counts
        if not 0 < at_1 - at_0 < 1 << self.bits:
            return None  # the comparison is for a slope that rises, and fits 16 bits; thresholds take any
        return at_0 << (31 - self.bits), (at_1 - at_0) << (16 - self.bits)

    def _second_moments(self) -> tuple[Fraction, ...]:
        return _second_moments(self.all_counts(), self.bits)


def _check(counts: Counts, bits: int, mirrored: bool) -> None:
    """Check that the counts are a mechanism: only then can a certificate be read off them."""
    again = "make the table again."
    if not 1 <= bits <= 16:
        raise InputError(f"counts out of 2^{bits} are not supported, 2^1 to 2^16 are; {again}")
    knots = 2 * len(counts) - 1 if mirrored else len(counts)
    if not 2 <= knots <= MOST_KNOTS or (knots - 1) & (knots - 2):
        raise InputError(f"a table of {knots} knots has no such rounding, 2^j + 1 of them up to 33 have; {again}")
    if mirrored and bits == LOOKUP_BITS:
        raise InputError(f"a table that is looked up stores every row, and cannot be mirrored; {again}")
    if len({len(row) for row in counts}) != 1 or len(counts[0]) < 2:
        raise InputError(f"the rows of a table need the same number of symbols, two or more; {again}")
    if any(min(row) < 0 or sum(row) != 1 << bits for row in counts):
        raise InputError(f"the counts of each row must be 0 or more and sum to 2^{bits}; {again}")
    if mirrored and counts[-1] != counts[-1][::-1]:
        raise InputError(f"the middle row of a mirrored table must read the same backwards; {again}")
    used = [any(column) for column in zip(*counts, strict=True)]
    if not all(a or (mirrored and b) for a, b in zip(used, used[::-1], strict=True)):
        raise InputError(f"a symbol that no row gives has no value; leave it out and {again}")


@functools.lru_cache(maxsize=256)
def _values(counts: Counts, bits: int) -> tuple[Fraction, ...]:
    """Solve for the values about the middle of the range: then a symmetric table has antisymmetric values."""
    half, last, total = Fraction(1, 2), len(counts) - 1, 1 << bits
    wanted = [total * (Fraction(row, last) - half) for row in range(last + 1)]
    # The mean over x of the second moment weighs the two end rows half, for they have one neighbour.
    weights = [2 * sum(column) - column[0] - column[-1] for column in zip(*counts, strict=True)]
    found = _least_squares(counts, wanted, [Fraction(w) for w in weights])
    if found is None:
        raise InputError("no values make this table's estimate unbiased; make the table again.")
    return tuple(half + value for value in found)


@functools.lru_cache(maxsize=256)
def _second_moments(counts: Counts, bits: int) -> tuple[Fraction, ...]:
    """Return E[(value - 1/2)²] on every knot."""
    centred = [value - Fraction(1, 2) for value in _values(counts, bits)]
    return tuple(
        sum((c * v * v for c, v in zip(row, centred, strict=True)), Fraction(0)) / (1 << bits) for row in counts
    )


def _least_squares(
    matrix: Sequence[Sequence[int]], wanted: Sequence[Fraction], weights: Sequence[Fraction]
) -> list[Fraction] | None:
    """Return the solution of matrix·a = wanted with the smallest sum of weight·a², or None if there is none."""
    reduced = _reduce([[*map(Fraction, row), right] for row, right in zip(matrix, wanted, strict=True)])
    if reduced is None:
        return None
    if len(reduced) == len(weights):
        return [row[-1] for row in reduced]
    # Lagrange: a[s] = sum of lambda·row[s] / weight[s] over the rows, and these a must solve the equations.
    square = [[_product(a, b, weights) for b in reduced] + [a[-1]] for a in reduced]
    factors = [row[-1] for row in _reduce(square) or []]
    return [
        sum((f * row[s] for f, row in zip(factors, reduced, strict=True)), Fraction(0)) / weight
        for s, weight in enumerate(weights)
    ]


def _product(a: Sequence[Fraction], b: Sequence[Fraction], weights: Sequence[Fraction]) -> Fraction:
    return sum((p * q / w for p, q, w in zip(a, b, weights, strict=False)), Fraction(0))


def _reduce(rows: list[list[Fraction]]) -> list[list[Fraction]] | None:
    """Return the independent equations by Gauss-Jordan, each with a leading 1; None if two contradict each other."""
    done = 0
    for column in range(len(rows[0]) - 1):
        pivot = next((r for r in range(done, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        leading = rows[done][column]
        rows[done] = [entry / leading for entry in rows[done]]
        for r, row in enumerate(rows):
            if r != done and row[column]:
                factor = row[column]
                rows[r] = [a - factor * b for a, b in zip(row, rows[done], strict=True)]
        done += 1
    return None if any(row[-1] for row in rows[done:]) else rows[:done]
