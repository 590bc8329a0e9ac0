"""Rows tables: counts of a few symbols for every knot of the range; the privacy bound and the estimate are exact.

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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from textwrap import wrap
from typing import Any, ClassVar, Self

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.kernels.formats import FRAC
from sensorsim.noise.certificate import Certificate, pure_certificate
from sensorsim.noise.noise_table import NoiseTable, StoredCounts

Counts = tuple[tuple[int, ...], ...]
THRESHOLDS, MIRRORED, LOOKUP, BIT = "thresholds", "half of the thresholds", "lookup", "one bit"
SEARCH = "search of thresholds"
FORMS = {  # of firmware: the module of the kernels, and how they draw
    THRESHOLDS: ("rows", "by thresholds"),
    SEARCH: ("rows_search", "by a search of thresholds"),
    MIRRORED: ("rows_mirrored", "by thresholds of x up to 1/2, mirrored above"),
    LOOKUP: ("rows_lookup", "by one load"),
    BIT: ("rows_bit", "by one comparison, without a table"),
}
COUNT_BITS = {THRESHOLDS: 16, LOOKUP: 8}
MOST_KNOTS, MOST_SYMBOLS = 33, 32  # of the kernels


@dataclass(frozen=True)
class Rows:
    """Counts c[row][symbol] out of 2^bits, one row for each stored knot, from x = 0 upwards."""

    counts: Counts
    bits: int
    mirrored: bool = False

    def __post_init__(self) -> None:
        """Check that the counts are a mechanism: only then can a certificate be read off them."""
        counts, bits, knots = self.counts, self.bits, self.knots
        used = [any(column) for column in zip(*counts, strict=False)]
        sound = (
            1 <= bits <= 16
            and 2 <= knots <= MOST_KNOTS
            and not (knots - 1) & (knots - 2)
            and len({len(row) for row in counts}) == 1
            and len(used) >= 2
            and all(min(row) >= 0 and sum(row) == 1 << bits for row in counts)
            and all(a or (self.mirrored and b) for a, b in zip(used, used[::-1], strict=True))
            and not (self.mirrored and (bits == COUNT_BITS[LOOKUP] or counts[-1] != counts[-1][::-1]))
        )
        if not sound:
            raise InputError(
                "these counts are no rows: 2^j + 1 knots, the same symbols on each, all of them in use, counts of 0 or "
                f"more that sum to 2^{bits}, and a mirrored table symmetric in the middle; make the table again."
            )

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
        """Return the bytes on the device: u16 thresholds, 256 symbols a row if bits = 8, two constants for one bit."""
        if self.one_bit() is not None:
            return 4
        return len(self.counts) * (256 if self.bits == 8 else 2 * (self.symbols - 1))

    def all_counts(self) -> Counts:
        """Return the counts of every knot, stored or not."""
        return self.counts + tuple(row[::-1] for row in self.counts[-2::-1] if self.mirrored)

    def ratio(self) -> Fraction | None:
        """Return the largest likelihood ratio over all inputs and symbols, or None if it has no bound."""
        columns = list(zip(*self.all_counts(), strict=True))
        if any(min(column) == 0 for column in columns):
            return None
        return max(Fraction(max(column), min(column)) for column in columns)

    def values(self) -> tuple[Fraction, ...]:
        """Return the value of each symbol, for the range 0..1: the estimate is unbiased for every x.

        If the rows leave freedom, take the values with the smallest mean variance over the range.
        """
        return _values(self.all_counts(), self.bits)[0]

    def variance(self, x: Fraction) -> Fraction:
        """Return the exact variance of the estimate at x, 0..1."""
        last, second = self.knots - 1, _values(self.all_counts(), self.bits)[1]
        row = min(int(x * last), last - 1)
        t = x * last - row
        return (1 - t) * second[row] + t * second[row + 1] - (x - Fraction(1, 2)) ** 2

    def worst_sd(self) -> float:
        """Return the standard deviation of the estimate at the x where it is largest."""
        last, second = self.knots - 1, _values(self.all_counts(), self.bits)[1]
        worst = Fraction(0)
        for row in range(last):  # between two knots the variance is a parabola with its top here:
            top = Fraction(1, 2) + (second[row + 1] - second[row]) * last / 2
            worst = max(worst, self.variance(min(max(top, Fraction(row, last)), Fraction(row + 1, last))))
        return math.sqrt(worst)

    def mean_sd(self) -> float:
        """Return the root of the mean variance for x uniform over the range."""
        second = _values(self.all_counts(), self.bits)[1]
        mean = (sum(second) - (second[0] + second[-1]) / 2) / (self.knots - 1)
        return math.sqrt(mean - Fraction(1, 12))

    def distribution(self, x_q: int, frac_bits: int) -> tuple[int, ...]:
        """Return how many of the 2^(bits + frac_bits - knot_bits) words that differ in a used bit give each symbol."""
        shift = frac_bits - self.knot_bits
        row, rest = divmod(min(x_q, 1 << frac_bits), 1 << shift)
        rows = self.all_counts()
        nearest, next_one = rows[row], rows[min(row + 1, self.knots - 1)]
        return tuple(((1 << shift) - rest) * a + rest * b for a, b in zip(nearest, next_one, strict=True))

    def thresholds(self) -> Counts:
        """Return what the device stores of each row: the running sums of the counts, without the last, 2^bits."""
        return tuple(tuple(accumulate(row[:-1])) for row in self.counts)

    def lookup(self) -> Counts:
        """Return the other form for bits = 8: the symbol for each of the 256 values of the top bits."""
        return tuple(tuple(s for s, count in enumerate(row) for _ in range(count)) for row in self.counts)

    def one_bit(self) -> tuple[int, int] | None:
        """Return (base, slope) of `symbol = (word >> 1) < base + slope*x_q`, x_q in Q15, for two rows and two symbols.

        The probability of symbol 1 is (base + slope*x_q)/2^31: no table is needed. The slope must rise and fit 16 bits.
        """
        at_0, at_1 = self.counts[0][-1], self.counts[-1][-1]
        if self.knots != 2 or self.symbols != 2 or not 0 < at_1 - at_0 < 1 << self.bits:
            return None
        return at_0 << (31 - self.bits), (at_1 - at_0) << (16 - self.bits)


@lru_cache(maxsize=256)
def _values(counts: Counts, bits: int) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return the values of the symbols, and E[(value - 1/2)²] on every knot.

    About the middle of the range the values a solve counts·a = wanted with the smallest sum of weight·a²: the mean over
    x of the second moment, which weighs the two end rows half.
    """
    half, last, total = Fraction(1, 2), len(counts) - 1, 1 << bits
    equations = [[*map(Fraction, row), total * (Fraction(r, last) - half)] for r, row in enumerate(counts)]
    weights = [2 * sum(column) - column[0] - column[-1] for column in zip(*counts, strict=True)]
    reduced = _reduce(equations)
    if reduced is None:
        raise InputError("no values make this table's estimate unbiased; make the table again.")
    centred = [row[-1] for row in reduced]
    if len(reduced) < len(weights):
        # Lagrange: a[s] = sum of lambda·row[s] / weight[s] over the rows, and these a must solve the equations.
        square = [
            [sum((p * q / w for p, q, w in zip(a, b, weights, strict=False)), Fraction(0)) for b in reduced] + [a[-1]]
            for a in reduced
        ]
        factors = [row[-1] for row in _reduce(square) or []]
        centred = [
            sum((f * row[s] for f, row in zip(factors, reduced, strict=True)), Fraction(0)) / weight
            for s, weight in enumerate(weights)
        ]
    second = (sum((c * v * v for c, v in zip(row, centred, strict=True)), Fraction(0)) / total for row in counts)
    return tuple(half + value for value in centred), tuple(second)


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


@dataclass(frozen=True, repr=False)
class RowsTable(NoiseTable):
    """Counts of every symbol for every knot, out of 2^count_bits."""

    count_bits: int
    counts: Counts  # of the knots that are stored, from x = 0 upwards
    mirrored: bool = False  # the knots above 1/2 are not stored: they are mirror images

    kind = "rows"
    figure_function = "rows_figure"
    file_version = 2
    options = ("symbols", "knots", "count_bits")
    parameters: ClassVar[dict[str, Any]] = {
        "epsilon": Decimal,
        **dict.fromkeys(("features", "release", "frac_bits", "count_bits"), int),
    }

    @classmethod
    def make(cls, epsilon: Decimal, features: int, release: int, frac_bits: int, **options: Any) -> Self:
        """Design a table of this size, or the smallest that loses little; with 8 `count_bits` it is looked up."""
        from sensorsim.noise.rows_design import design

        bits = COUNT_BITS[THRESHOLDS] if options["count_bits"] is None else options["count_bits"]
        if bits not in COUNT_BITS.values():
            raise InputError(f"count-bits is {bits}; the kernels draw with 16 bits by thresholds, or 8 by one load.")
        share = Fraction(epsilon) / release
        found = design(share, symbols=options["symbols"], knots=options["knots"], bits=bits)
        if found.knot_bits > frac_bits:
            raise InputError(f"{found.knots} knots need {found.knot_bits} fraction bits; give more --frac-bits.")
        return cls(epsilon, features, release, frac_bits, bits, found.counts, found.mirrored)

    @classmethod
    def parse(cls, found: dict[str, Any], lines: list[str]) -> Self:
        counts = tuple(tuple(int(count) for count in line.split()) for line in lines[1 : MOST_KNOTS + 2])
        table = cls(**found, counts=counts, mirrored=lines[0].endswith(" mirrored"))
        sound = (
            lines[0] == table.body()[0]
            and len(lines) == 1 + len(counts)
            and table.count_bits in COUNT_BITS.values()
            and table.rows.knot_bits <= table.frac_bits
            and 2 <= len(counts[0]) <= MOST_SYMBOLS
        )
        if not sound:
            raise ValueError("parameters")
        return table

    def body(self) -> list[str]:
        head = f"rows {len(self.counts)} symbols {len(self.counts[0])}" + " mirrored" * self.mirrored
        return [head, *(" ".join(map(str, row)) for row in self.counts)]

    @cached_property
    def rows(self) -> Rows:
        return Rows(self.counts, self.count_bits, self.mirrored)

    def certify(self) -> Certificate:
        return pure_certificate(self.rows.ratio(), self.epsilon, self.release)

    def rocq_definitions(self) -> dict[str, str]:
        rows = ";\n    ".join("[" + "; ".join(map(str, row)) + "]" for row in self.rows.all_counts())
        return {
            "shift : Z": str(self.frac_bits - self.rows.knot_bits),
            "count_bits : Z": str(self.count_bits),
            "knots : Z": str(self.rows.knots),
            "symbols : nat": f"{self.rows.symbols}%nat",
            "counts : list (list Z)": f"\n  [ {rows} ]",
        }

    def extremes(self) -> Sequence[Sequence[int]]:
        """Return the counts of every knot: between two knots a release is a mixture of theirs."""
        return self.rows.all_counts()

    @property
    def form(self) -> str:
        """Return how firmware draws: by thresholds (5 to 8 symbols by a search), by one load, or without a table."""
        thresholds = MIRRORED if self.mirrored else SEARCH if 5 <= self.rows.symbols <= 8 else THRESHOLDS
        tabulated = LOOKUP if self.count_bits == COUNT_BITS[LOOKUP] else thresholds
        return BIT if self.rows.one_bit() else tabulated

    @property
    def kernels(self) -> str:
        return FORMS[self.form][0]

    def arguments(self) -> dict[str, Any]:
        known = super().arguments()
        name, values = self.c_array()
        kind = np.uint8 if self.form == LOOKUP else np.uint16
        return known | ({name: np.array(values, kind)} if values else {})

    def c_array(self) -> tuple[str, tuple[int, ...]]:
        if self.form == BIT:
            return "table", ()
        rows = self.rows.lookup() if self.form == LOOKUP else self.rows.thresholds()
        if self.form != LOOKUP and max(map(max, rows)) >= 1 << COUNT_BITS[THRESHOLDS]:
            raise InputError(
                "the last symbols of this table never come at some x, so it protects nothing, and its thresholds do "
                "not fit 16 bits; make the table again."
            )
        return "table", tuple(value for row in rows for value in row)

    def c_constants(self) -> dict[str, int]:
        if bit := self.rows.one_bit():
            return {"base": bit[0], "slope": bit[1]}
        knots = {"knot_bits": self.rows.knot_bits}
        return knots if self.form == LOOKUP else {"cuts": self.rows.symbols - 1, **knots}

    def bound_constants(self) -> dict[str, int]:
        bit = self.rows.one_bit()
        return {"top": bit[0] + (bit[1] << FRAC), "slope": bit[1]} if bit else self.c_constants()

    def from_c(self, values: Sequence[int], constants: Mapping[str, int]) -> Self:
        known: dict[str, Any] = {"features": constants["n"], "release": constants["k"], "certificate": None}
        counts: tuple[tuple[int, ...], ...]
        if "base" in constants:  # one bit: the counts of the two symbols at both ends
            bits = self.count_bits
            at_0, rest = divmod(constants["base"], 1 << (31 - bits))
            more, left = divmod(constants["slope"], 1 << (16 - bits))
            if rest or left:
                raise ValueError(f"{constants} are of no counts out of 2^{bits}")
            counts = tuple(((1 << bits) - count, count) for count in (at_0, at_0 + more))
            return replace(self, counts=counts, mirrored=False, **known)
        if not constants["knot_bits"] < MOST_KNOTS.bit_length() or not constants.get("cuts", 1):
            raise ValueError(f"no rows have {constants}")
        knots = (1 << constants["knot_bits"]) + 1
        form, allowed = (THRESHOLDS, (knots, (knots + 1) // 2)) if "cuts" in constants else (LOOKUP, (knots,))
        total = 1 << COUNT_BITS[form]
        width = constants.get("cuts", total)
        rows = [tuple(values[at : at + width]) for at in range(0, len(values), width)]
        if len(rows) not in allowed or len(rows[-1]) != width:
            raise ValueError(f"{len(values)} values are no {' or '.join(map(str, allowed))} rows of {width}")
        if form == LOOKUP:
            counts = tuple(tuple(row.count(s) for s in range(max(values) + 1)) for row in rows)
        else:
            counts = tuple(tuple(b - a for a, b in pairwise((0, *row, total))) for row in rows)
        return replace(self, count_bits=COUNT_BITS[form], counts=counts, mirrored=len(rows) != knots, **known)

    def c_remark(self) -> list[str]:
        values = ", ".join(f"{float(value):.9g}" for value in self.rows.values())
        return ["An unbiased estimate of x in 0 ... 1 is, for symbol 0, 1, ...:", *wrap(values, 90)]

    def distribution(self, x_q: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        counts = self.rows.distribution(x_q, self.frac_bits)
        return np.arange(len(counts)), np.array(counts, np.int64)

    def draw(self, x_q: int, top: Any, low: Any, low_bits: int) -> Any:
        """Round x to a row by the low part; count how many sums of that row's counts the top part reaches.

        A mirrored table is read backwards at 1 - x where x is above 1/2. One bit is 1 for the lowest words.
        """
        if self.form == BIT:
            counts = self.rows.distribution(x_q, self.frac_bits)
            return ((top << low_bits) + low < (counts[1] << 16 + low_bits) // sum(counts)).astype("int64")
        one = 1 << self.frac_bits
        turned = self.mirrored and 2 * x_q > one
        rows = self.rows.all_counts()
        sums = np.cumsum(np.array(rows, np.int64), axis=1)[:, :-1]
        row = ((one - x_q if turned else x_q) + low) // (one // (len(rows) - 1))
        reached = np.zeros(len(top), np.int64)
        for place in np.unique(row):
            reached[row == place] = np.searchsorted(sums[place], top[row == place], side="right")
        return len(rows[0]) - 1 - reached if turned else reached

    def worst_inputs(self) -> Sequence[int]:
        """Return the knots."""
        step = self.frac_bits - self.rows.knot_bits
        return [knot << step for knot in range(self.rows.knots)]

    def stored_counts(self) -> StoredCounts | None:
        return None if self.form == BIT else StoredCounts(self.counts, sums=self.form != LOOKUP)

    def estimate(self, y: Any) -> Any:
        return np.array([float(value) for value in self.rows.values()])[y]

    @cached_property
    def estimate_sd(self) -> float:
        return self.rows.worst_sd()

    @cached_property
    def estimate_sd_mean(self) -> float:
        return self.rows.mean_sd()

    @property
    def secret_bits(self) -> int:
        return self.count_bits + self.frac_bits - self.rows.knot_bits

    @property
    def symbols(self) -> int:
        return self.rows.symbols

    @property
    def value_bits(self) -> int:
        return (self.rows.symbols - 1).bit_length()

    @property
    def table_bytes(self) -> int:
        return self.rows.table_bytes

    def details(self) -> dict[str, Any]:
        return {
            "form": self.form,
            "knots": self.rows.knots,
            "symbols": self.rows.symbols,
            "count_bits": self.count_bits,
            "values": [float(value) for value in self.rows.values()],
        }

    def lines(self) -> list[str]:
        values = ", ".join(f"{float(value):.4g}" for value in self.rows.values())
        return [
            f"  rows          {self.rows.knots} knots × {self.rows.symbols} symbols, counts of 2^{self.count_bits}, "
            f"drawn {FORMS[self.form][1]}",
            f"  values        {values}: unbiased for every x",
        ]

    def picture(self) -> str:
        """Draw the probability of each symbol at each knot as a bar of its digit."""
        lines = ["  x        probability of symbol 0, 1, …"]
        every = self.rows.all_counts()
        for k, row in enumerate(every):
            edges = [round(60 * sum(row[:s]) / sum(row)) for s in range(len(row) + 1)]
            digits = zip("0123456789abcdefghijklmnopqrstuv", pairwise(edges), strict=False)
            lines.append(f"  {k / (len(every) - 1):<8.4g} " + "".join(digit * (b - a) for digit, (a, b) in digits))
        return "\n".join(lines)


KINDS = {"rows": RowsTable}
