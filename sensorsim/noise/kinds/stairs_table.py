"""Stairs tables: noise that is added to x and clamped. The privacy bound is proved in integers.

    y = clamp(x_q - D/2 + S*A + U, -limit, +limit)        D = 2^frac_bits, S = D/r a stair, r a power of two
    A = table[k secret uniform bits]                      -K..K, counts c_0, c_1 … c_K on either side
    U = log2(S) secret uniform bits - S/2                 limit = S*(K - (r+1)/2)

x_q is any of 0..D. A change of x moves the noise that explains y by at most D = r*S lattice steps, so by at most r
stairs, partial ones included: floor((z+D)/S) = floor(z/S) + r. Inside the limits y therefore has a likelihood ratio
of at most max(c_i/c_j) over |i-j| <= r, stairs K excluded, for a noise below -(K-1/2)*S or from (K-1/2)*S on is
clamped for every x. At the upper end y = limit has c_K when x = 0 and c_K + c_(K-1) + … + c_(K-r) when x = 1. At
the lower end one more lattice point belongs to the atom, for both x, and the ratio of its two counts is one of
those inside, so the atom's ratio lies between (mediant). Hence delta = 0 and

    exp(eps0) = max( c_i/c_j over |i-j| <= r,   1 + (c_(K-1) + … + c_(K-r)) / c_K ).

With the r outermost stairs alike, E[y] = gain*(x_q - D/2 - 1/2) exactly, gain = 1 - (2*c_K + r*c_(K-1))/2^k:
dividing by the gain, which is public, gives an unbiased estimate of x.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.kernels.formats import DROP, FRAC, HALF, LIMIT, STAIR_BITS
from sensorsim.noise.certificate import Certificate, exp_bounds, pure_certificate
from sensorsim.noise.kinds.sample_table import MOST_ENTRIES_BITS, CountedTable, check_word, checked_entries, counted
from sensorsim.noise.noise_table import StoredCounts

STAIRS_PER_RANGE = (1, 2, 4, 8, 16, 32)
MOST_CLAMPED = 0.95  # default share of draws that the ends may take: only the estimate counts
MOST_STAIRS = (1 << 15) - 1  # on each side of 0
MOST_SHARE = 64  # of epsilon for one feature: beyond, nothing is left to hide


@dataclass(frozen=True)
class Stairs:
    """Counts c_0 … c_K, r stairs to the range of x."""

    counts: tuple[int, ...]
    per_range: int

    @property
    def total(self) -> int:
        return 2 * sum(self.counts) - self.counts[0]

    @property
    def gain(self) -> float:
        """Return the slope of E[y] against x: the share of draws that are not clamped."""
        return 1 - (2 * self.counts[-1] + self.per_range * self.counts[-2]) / self.total

    def noise_sd(self) -> float:
        """Return the standard deviation of the noise S*A + U before the clamp, for a range of 1."""
        square = 2 * sum(c * j * j for j, c in enumerate(self.counts))
        return math.sqrt(square / self.total + 1 / 12) / self.per_range

    def variances(self, distances: Sequence[float]) -> list[float]:
        """Return variances of the unbiased estimate y/gain, for x at these distances from the middle of its range."""
        counts, r = self.counts, self.per_range
        K = len(counts) - 1
        limit = (K - (r + 1) / 2) / r
        weight = np.array([*counts[:0:-1], *counts], dtype=float)
        weight /= weight.sum()
        edges = (np.arange(-K, K + 2) - 0.5) / r
        found = []
        for v in distances:
            inside = np.clip(edges + v, -limit, limit)
            squares = inside**3 / 3 + limit**2 * (edges + v - inside)  # antiderivative of clamp(t, -limit, limit)²
            second = float((weight * r * np.diff(squares)).sum())
            found.append((second - (self.gain * v) ** 2) / self.gain**2)
        return found

    def estimate_sd(self) -> float:
        """Return the standard deviation of the unbiased estimate at its worst x, for a range of 1."""
        return math.sqrt(max(self.variances((0.0, 0.25, 0.5))))


@dataclass(frozen=True, repr=False)
class StairsTable(CountedTable):
    """A byte per entry; the table does not grow with the fraction bits."""

    kind = "stairs"
    kernels = "stairs"
    figure_function = "stairs_figure"
    options = ("entries", "most_clamped")

    @classmethod
    def make(cls, epsilon: Decimal, features: int, release: int, frac_bits: int, **options: Any) -> Self:
        """Make a table; `most_clamped` is the largest share of clamped draws, by default what gives the least sd."""
        entries, most = checked_entries(options["entries"]), options["most_clamped"]
        if epsilon / release > MOST_SHARE:
            raise InputError(f"stairs are for an epsilon of up to {MOST_SHARE} a feature; give less, or use rows.")
        if most is not None and not 0 < most < 1:
            raise InputError(f"the share of clamped draws is {most}; give a number between 0 and 1.")
        most = MOST_CLAMPED if most is None else most
        sizes = [1 << bits for bits in range(entries.bit_length() - 1, MOST_ENTRIES_BITS + 1)]
        made_of = (fill(Fraction(epsilon) / release, size, most, 1 << (frac_bits - 1)) for size in sizes)
        found = next(made_of)
        if found is None:
            able = next((size for size, larger in zip(sizes[1:], made_of, strict=True) if larger), None)
            bits = MOST_ENTRIES_BITS if able is None else able.bit_length() - 1
            hint = f"nor can 2^{bits}, so give a larger epsilon"
            raise InputError(
                f"no stairs table of {entries} entries can certify epsilon {epsilon} over {release} released features "
                f"with at most {most:.0%} of the draws clamped; "
                f"{hint if able is None else f'2^{bits} can, so give --entries 2^{bits}'}."
            )
        r, K = found.per_range, len(found.counts) - 1
        stair_bits = frac_bits - (r.bit_length() - 1)
        limit = (1 << stair_bits) * (2 * K - r - 1) // 2
        if K > MOST_STAIRS:
            raise InputError(
                f"this table would have {K} stairs on each side, above {MOST_STAIRS}; give fewer --entries."
            )
        counts = tuple((j, found.counts[abs(j)]) for j in range(-K, K + 1))
        made = cls(epsilon, features, release, frac_bits, 1, stair_bits, limit, None, counts)
        check_word(made)
        return made

    @classmethod
    def fitting(cls, epsilon: Decimal, features: int, release: int) -> Self:
        """Make the smallest of some sizes that the epsilon fits in; the kernels take up to 2^17 entries."""
        for bits in (12, 14, 16, 17):
            try:
                return cls.make(epsilon, features, release, FRAC, entries=1 << bits, most_clamped=None)
            except InputError:
                pass  # too few entries for so small an epsilon
        raise InputError(
            f"no stairs table that the kernels take keeps epsilon {epsilon} over {release} features; use a larger one, "
            "or rows."
        )

    @classmethod
    def parse(cls, found: dict[str, Any], lines: list[str]) -> Self:
        table = super().parse(found, lines)
        if table.coefficients != 1 or table.seed is not None or table.limit is None or table.counts[-1][0] < 1:
            raise ValueError("parameters")
        if max(-table.counts[0][0], table.counts[-1][0]) > MOST_STAIRS:
            raise ValueError(f"a value beyond {MOST_STAIRS} stairs")
        if 1 << (table.frac_bits - table.stair_bits) not in STAIRS_PER_RANGE:
            raise ValueError("stair_bits")
        if table.gain <= 0:
            raise ValueError("every draw is clamped")
        return table

    def certify(self) -> Certificate:
        if self.coefficients != 1:  # the proof is of one noisy number for each feature
            raise InputError(f"a stairs table has 1 coefficient, not {self.coefficients}; make the table again.")
        per_range, top, stair = self._shape()
        if self.limit != stair * (2 * top - per_range - 1) // 2 or top <= per_range or stair < 2:
            raise InputError("the limit of this stairs table does not stand on its stairs; make the table again.")
        if any(abs(value) > top for value, _ in self.counts):
            raise InputError(f"this stairs table has values beyond its last stair {top}; make the table again.")
        ratio = stairs_ratio(dict(self.counts), per_range, stair, top)
        return pure_certificate(ratio, self.epsilon, self.release)

    def rocq_definitions(self) -> dict[str, str]:
        counts, top = dict(self.counts), max(abs(value) for value, _ in self.counts)
        every = "; ".join(str(counts.get(value, 0)) for value in range(-top, top + 1))
        return {
            "counts : list Z": f"[{every}]",  # from stair -top upwards
            "top : Z": str(top),
            "one : Z": str(1 << self.frac_bits),
            "stair : Z": str(1 << self.stair_bits),
            "limit : Z": str(self.limit),
        }

    def extremes(self) -> Sequence[Sequence[int]]:
        """Return the counts of the stair that y stands on, for every x on a stair.

        For x = a*S + b the place V of y on its stair is uniform and says nothing of x; given V, the stair is A + a, or
        A + a + 1 where V < b. The clamp leaves all above stair K or below stair r - K one output, or merges one more.
        """
        per_range, top, _ = self._shape()
        found = []
        for start in range(per_range + 1):
            row = [0] * (2 * top - per_range + 1)
            for value, count in self.counts:
                row[min(max(value + start, per_range - top), top) - (per_range - top)] += count
            found.append(row)
        return found

    def _shape(self) -> tuple[int, int, int]:
        """Return how many stairs the range of x has, the number of the last stair, and how wide a stair is."""
        per_range, stair = 1 << (self.frac_bits - self.stair_bits), 1 << self.stair_bits
        return per_range, (2 * (self.limit or 0) // stair + per_range + 1) // 2, stair

    @property
    def stairs(self) -> Stairs:
        """Return the counts c_0 … c_K."""
        by_value = dict(self.counts)
        counts = tuple(by_value.get(j, 0) for j in range(self.counts[-1][0] + 1))
        return Stairs(counts, 1 << (self.frac_bits - self.stair_bits))

    @property
    def gain(self) -> float:
        """Return the factor in E[y] = gain*(x_q - D/2 - 1/2); divide by it for an unbiased estimate of x."""
        return self.stairs.gain

    def estimate(self, y: Any) -> Any:
        D = 1 << self.frac_bits
        return (y / self.gain + (D + 1) / 2) / D

    @cached_property
    def estimate_sd(self) -> float:
        return self.stairs.estimate_sd()

    @cached_property
    def estimate_sd_mean(self) -> float:
        """Return the root of the mean variance over x, by the midpoints of 64 parts; by symmetry of half of them."""
        found = self.stairs.variances([(k + 0.5) / 64 for k in range(32)])
        return math.sqrt(sum(found) / len(found))

    def arguments(self) -> dict[str, Any]:
        """Return what the kernels take; refuse a table whose index and place on a stair would share bits of a word.

        Its draws would not be independent, and its certificate would not hold.
        """
        known, values, drop = super().arguments(), self.values, 32 - self.index_bits
        assert self.limit is not None
        fits = STAIR_BITS.lo <= self.stair_bits <= STAIR_BITS.hi and self.limit <= LIMIT.hi
        if values.dtype != "int8" or not DROP.lo <= drop <= DROP.hi or not fits:
            raise InputError(
                f"this table has {len(values)} entries of {values.dtype.itemsize} B; the kernels take up to "
                f"2^{32 - DROP.lo} of one byte, so make it with fewer --entries or a larger --epsilon."
            )
        return {"table": values, **known}

    def c_array(self) -> tuple[str, tuple[int, ...]]:
        return "table", tuple(int(value) for value in self.values)

    def c_constants(self) -> dict[str, int]:
        return {"drop": 32 - self.index_bits, "stair_bits": self.stair_bits, "limit": self.limit or 0}

    def bound_constants(self) -> dict[str, int]:
        known, stair = self.c_constants(), 1 << self.stair_bits
        return {"mask": stair - 1, "offset": HALF + stair // 2, "lowest": -known["limit"], **known}

    def from_c(self, values: Sequence[int], constants: Mapping[str, int]) -> Self:
        if max(constants["drop"], constants["stair_bits"]) > 32:
            raise ValueError(f"no word of 32 bits has {constants}")
        if len(values) != 1 << (32 - constants["drop"]):
            raise ValueError(
                f"{len(values)} values are not picked by the {32 - constants['drop']} bits that drop leaves"
            )
        known: dict[str, Any] = {"features": constants["n"], "release": constants["k"]}
        known |= {"stair_bits": constants["stair_bits"], "limit": constants["limit"]}
        return replace(self, **known, counts=counted(values), certificate=None)

    def stored_counts(self) -> StoredCounts:
        least, known = self.counts[0][0], dict(self.counts)
        return StoredCounts([[known.get(value, 0) for value in range(least, self.counts[-1][0] + 1)]], least)

    def c_remark(self) -> list[str]:
        middle = ((1 << self.frac_bits) + 1) / 2
        return [f"An unbiased estimate of x is (y / {self.gain:.9f} + {middle:.1f}) / 2^{self.frac_bits}."]

    def details(self) -> dict[str, Any]:
        return {
            "stair_bits": self.stair_bits,
            "limit": self.limit,
            "entries": self.entries,
            "bytes_per_entry": self.values.dtype.itemsize,
            "noise_sd": self.stairs.noise_sd(),
            "gain": self.gain,
            "best_staircase_sd": best_sd(float(self.share)),
        }

    def lines(self) -> list[str]:
        about = self.details()
        return [
            f"  entries       {self.entries} of {about['bytes_per_entry']} B; sd {about['noise_sd']:.4g} as drawn",
            f"  estimate      y/gain is unbiased, gain {self.gain:.4f}; "
            f"{self.estimate_sd / about['best_staircase_sd']:.3f} of the best staircase",
        ]

    def on_coarse_lattice(self, stair_bits: int = 2) -> "StairsTable":
        """Return the same stairs with fewer fraction bits, which the table does not depend on, for a faster drawing."""
        fewer = self.stair_bits - stair_bits
        if fewer <= 0:
            return self
        limit = (self.limit or 0) >> fewer
        return replace(self, frac_bits=self.frac_bits - fewer, stair_bits=stair_bits, limit=limit)


KINDS = {"stairs": StairsTable}


def best_sd(epsilon: float) -> float:
    """Return the standard deviation of Geng and Viswanath's best staircase for a range of 1."""
    b = math.exp(-epsilon)
    gamma = -b / (1 - b) + ((b - 2 * b**2 + 2 * b**4 - b**5) / 2) ** (1 / 3) / (1 - b) ** 2
    return staircase_sd(epsilon, gamma)


def staircase_sd(epsilon: float, gamma: float) -> float:
    """Return the sd of a staircase: a centre of half-width gamma, steps of width 1, each b times the last."""
    b = math.exp(-epsilon)
    # Second moment of the step from k-1+gamma to k+gamma, (3k² + 3k(2g-1) + 3g² - 3g + 1)/3, summed over b^k.
    s0, s1, s2 = b / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3
    moment = gamma**3 / 3 + s2 + s1 * (2 * gamma - 1) + s0 * (gamma**2 - gamma + 1 / 3)
    return math.sqrt(moment / (gamma + s0))


def stairs_ratio(counts: dict[int, int], per_range: int, stair: int, top: int) -> Fraction | None:
    """Return the largest likelihood ratio over all inputs and outputs (proof above), or None if it has no bound."""
    r = per_range
    if len(counts) < 2 * top:  # some stair but the lowest is empty
        return None
    c = [counts.get(j, 0) for j in range(-top, top + 1)]
    if min(c[1:]) <= 0:  # the lower end may be empty: one lattice point of the next stair is clamped for every x
        return None
    worst = Fraction(1)
    inside = c[1:-1]
    for j in range(len(inside)):
        window = inside[j : j + r + 1]
        worst = max(worst, Fraction(max(window), min(window)))
    upper = Fraction(sum(c[-1 - r :]), c[-1])
    one_more = c[r + 1] if r + 1 < len(c) else 0
    lower = Fraction(stair * sum(c[: r + 1]) + one_more, stair * c[0] + c[1])
    return max(worst, upper, lower)


def fill(epsilon: Fraction, entries: int, most_clamped: float, max_per_range: int) -> Stairs | None:
    """Return the stairs of `entries` entries with the best estimate and at most `most_clamped` of the draws clamped."""
    e = exp_bounds(epsilon)[0]
    best: tuple[float, Stairs] | None = None
    for r, g in _shapes(float(epsilon), max_per_range):
        for counts in _candidates(e, entries, most_clamped, r, g):
            stairs = Stairs(counts, r)
            if 1 - stairs.gain > most_clamped:
                continue
            sd = stairs.estimate_sd()
            if best is None or sd < best[0] * (1 - 1e-9):
                best = (sd, stairs)
    return best[1] if best else None


def _shapes(epsilon: float, max_per_range: int) -> list[tuple[int, int]]:
    """Return pairs (r, g), a centre of 2g+1 stairs, whose ideal staircase is near the best; the coarsest few."""
    goal = best_sd(epsilon)
    shapes = [(1, 0)]
    for r in STAIRS_PER_RANGE[1:]:
        if r <= max_per_range:
            shapes += [(r, g) for g in range(r) if staircase_sd(epsilon, (2 * g + 1) / (2 * r)) < 1.1 * goal]
    near = [s for s in shapes if staircase_sd(epsilon, (2 * s[1] + 1) / (2 * s[0])) < 1.02 * goal]
    finest = min(near, default=shapes[-1])[0]
    return [s for s in shapes if s[0] <= 2 * finest]


def _candidates(e: Fraction, entries: int, most_clamped: float, r: int, g: int) -> Iterator[tuple[int, ...]]:
    """Yield fillings from the outside in, by outermost count; a rest goes to the ends, an excess is cut at the top."""
    outer = 1
    while outer <= entries and 2 * r * outer <= most_clamped * entries * (e - 1):  # beyond, the ends clamp too much
        fitting = _levels_that_fit(e, outer, entries, r, g)
        for levels in range(max(1, fitting), fitting + 3):
            counts = _fit(e, _inward(e, outer, r, g, levels), entries, r, g + (levels - 1) * r)
            if counts:
                yield counts
        outer += 1 + outer // 32


def _levels_that_fit(e: Fraction, outer: int, entries: int, r: int, g: int) -> int:
    """Return how many levels the entries hold when the outermost stairs have `outer` each."""
    total, level, levels = 2 * math.ceil(r * outer / (e - 1)), outer, 0
    while True:
        total += 2 * r * level
        level = level * e.numerator // e.denominator
        if total + (2 * g + 1) * level > entries:
            return levels
        levels += 1


def _inward(e: Fraction, outer: int, r: int, g: int, levels: int) -> list[int]:
    """Return c_0 … c_K: `levels` levels of r stairs outside a centre of 2g+1, each the largest that the next allows."""
    level = [outer]
    for _ in range(levels):
        level.append(level[-1] * e.numerator // e.denominator)
    level.reverse()
    counts = [level[0]] * (g + 1)
    for count in level[1:]:
        counts += [count] * r
    end = Fraction(r * outer) / (e - 1)
    return [*counts, -(-end.numerator // end.denominator)]


def _fit(e: Fraction, counts: list[int], entries: int, r: int, free: int) -> tuple[int, ...] | None:
    """Make the counts sum to `entries`. Only stairs 0..free may be cut: the r outermost must stay alike."""
    counts = list(counts)
    if _total(counts) > entries:
        low, high = counts[free + 1], counts[0]  # the lowest cap leaves every level as low as the outermost
        while high - low > 1:
            cap = (low + high) // 2
            fits = _total([min(c, cap) for c in counts[:-1]] + counts[-1:]) <= entries
            low, high = (cap, high) if fits else (low, cap)
        capped = [min(c, low) for c in counts[: free + 1]]
        if (low + 1) <= e * low:  # cells at the cap may differ by one
            left = entries - _total(capped + counts[free + 1 :])
            for j in range(free, 0, -1):  # add one to stairs under the cap, in pairs, from the outside in
                if left >= 2 and capped[j] < counts[j]:
                    capped[j] += 1
                    left -= 2
        counts[: free + 1] = capped
    left = entries - _total(counts)
    if left % 2:
        counts[0] -= 1  # the only stair without a mirror image
        left += 1
    if left < 0 or counts[0] < 1 or max(counts[: r + 1]) > e * counts[0]:
        return None
    counts[-1] += left // 2
    return tuple(counts)


def _total(counts: list[int]) -> int:
    return 2 * sum(counts) - counts[0]
