"""Stairs tables: noise that is added to x and clamped. The counts and their proof are in stairs_counts.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from sensorsim._util.errors import InputError
from sensorsim.kernels.formats import FRAC, HALF
from sensorsim.noise import stairs_counts as shapes
from sensorsim.noise.certificate import Certificate, pure_certificate
from sensorsim.noise.kinds.counted_table import MOST_ENTRIES_BITS, CountedTable, check_word, checked_entries, counted
from sensorsim.noise.noise_table import StoredCounts
from sensorsim.noise.stairs_counts import Stairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.language.kernel import Kernel

MOST_STAIRS = (1 << 15) - 1  # on each side of 0
MOST_SHARE = 64  # of epsilon for one feature: beyond, nothing is left to hide


@dataclass(frozen=True, repr=False)
class StairsTable(CountedTable):
    """A byte per entry; the table does not grow with the fraction bits."""

    kind = "stairs"
    options = ("entries", "most_clamped")

    @classmethod
    def make(cls, epsilon: Decimal, features: int, release: int, frac_bits: int, **options: Any) -> Self:
        """`most_clamped` is the largest share of draws that the ends may take; without it, what gives the least sd."""
        entries, most = checked_entries(options["entries"]), options["most_clamped"]
        if epsilon / release > MOST_SHARE:
            raise InputError(f"stairs are for an epsilon of up to {MOST_SHARE} a feature; give less, or use rows.")
        if most is not None and not 0 < most < 1:
            raise InputError(f"the share of clamped draws is {most}; give a number between 0 and 1.")
        found = _fill(epsilon, release, frac_bits, entries, shapes.MOST_CLAMPED if most is None else most)
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
        """The smallest of some sizes that the epsilon fits in; the kernels take up to 2^17 entries."""
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
        if 1 << (table.frac_bits - table.stair_bits) not in shapes.STAIRS_PER_RANGE:
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
        ratio = shapes.stairs_ratio(dict(self.counts), per_range, stair, top)
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
        A + a + 1 where V < b, and clamped. So each x is for each V one of 0 … r stairs, and the clamp leaves all that
        is above stair K or below stair r - K one output, or merges one more.
        """
        per_range, top, _ = self._shape()
        by_value = dict(self.counts)
        found = []
        for start in range(per_range + 1):
            row = [0] * (2 * top - per_range + 1)
            for value, count in by_value.items():
                row[min(max(value + start, per_range - top), top) - (per_range - top)] += count
            found.append(row)
        return found

    def _shape(self) -> tuple[int, int, int]:
        """Return how many stairs the range of x has, the number of the last stair, and how wide a stair is."""
        per_range, stair = 1 << (self.frac_bits - self.stair_bits), 1 << self.stair_bits
        return per_range, (2 * (self.limit or 0) // stair + per_range + 1) // 2, stair

    @property
    def stairs(self) -> Stairs:
        """The counts c_0 … c_K."""
        top = self.counts[-1][0]
        by_value = dict(self.counts)
        return Stairs(tuple(by_value.get(j, 0) for j in range(top + 1)), 1 << (self.frac_bits - self.stair_bits))

    @property
    def gain(self) -> float:
        """E[y] is gain*(x_q - D/2 - 1/2); divide by it for an unbiased estimate of x."""
        return self.stairs.gain

    def estimate(self, y: Any) -> Any:
        D = 1 << self.frac_bits
        return (y / self.gain + (D + 1) / 2) / D

    @cached_property
    def estimate_sd(self) -> float:
        return shapes.estimate_sd(self.stairs)

    @cached_property
    def estimate_sd_mean(self) -> float:
        return shapes.estimate_sd_mean(self.stairs)

    def kernel(self, mechanism: str) -> "Kernel":
        from sensorsim.kernels import stairs

        one = "_one" if mechanism == "sampled" and self.release == 1 else ""
        found: Kernel = getattr(stairs, f"{mechanism}_stairs{one}")
        return found

    def arguments(self) -> dict[str, Any]:
        """Return what the kernels take; refuse a table whose index and place on a stair would share bits of a word.

        Its draws would not be independent, and its certificate would not hold.
        """
        import numpy as np

        from sensorsim.kernels.formats import DROP, FRAC, LIMIT, STAIR_BITS

        if self.frac_bits != FRAC:
            raise InputError(
                f"this table has {self.frac_bits} fraction bits and the kernels' x has {FRAC}; make it with "
                f"--frac-bits {FRAC} (the stairs stay the same)."
            )
        values, drop = self.values, 32 - self.index_bits
        assert self.limit is not None
        fits = STAIR_BITS.lo <= self.stair_bits <= STAIR_BITS.hi and self.limit <= LIMIT.hi
        if values.dtype != np.int8 or not DROP.lo <= drop <= DROP.hi or not fits:
            raise InputError(
                f"this table has {len(values)} entries of {values.dtype.itemsize} B; the kernels take up to "
                f"2^{32 - DROP.lo} of one byte, so make it with fewer --entries or a larger --epsilon."
            )
        return {"table": values, **self.bound_constants()}

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
        least, most = self.counts[0][0], self.counts[-1][0]
        known = dict(self.counts)
        return StoredCounts([[known.get(value, 0) for value in range(least, most + 1)]], least)

    def c_remark(self) -> list[str]:
        middle = ((1 << self.frac_bits) + 1) / 2
        return [f"An unbiased estimate of x is (y / {self.gain:.9f} + {middle:.1f}) / 2^{self.frac_bits}."]

    def details(self) -> dict[str, Any]:
        return {
            "stair_bits": self.stair_bits,
            "limit": self.limit,
            "entries": self.entries,
            "bytes_per_entry": self.values.dtype.itemsize,
            "noise_sd": shapes.noise_sd(self.stairs),
            "gain": self.gain,
            "best_staircase_sd": shapes.best_sd(float(self.share)),
        }

    def lines(self) -> list[str]:
        about = self.details()
        return [
            f"  entries       {self.entries} of {about['bytes_per_entry']} B; sd {about['noise_sd']:.4g} as drawn",
            f"  estimate      y/gain is unbiased, gain {self.gain:.4f}; "
            f"{self.estimate_sd / about['best_staircase_sd']:.3f} of the best staircase",
        ]

    def figure(self) -> "Figure":
        from sensorsim.noise.noise_figures import stairs_figure

        made: Figure = stairs_figure(self)
        return made

    def on_coarse_lattice(self, stair_bits: int = 2) -> "StairsTable":
        """The same stairs with fewer fraction bits: the table does not depend on them, a drawing of it is faster."""
        fewer = self.stair_bits - stair_bits
        if fewer <= 0:
            return self
        limit = None if self.limit is None else self.limit >> fewer
        return replace(self, frac_bits=self.frac_bits - fewer, stair_bits=stair_bits, limit=limit)


KINDS = {"stairs": StairsTable}


def _fill(epsilon: Decimal, release: int, frac_bits: int, entries: int, most_clamped: float) -> Stairs:
    from fractions import Fraction

    per_release = Fraction(epsilon) / release
    found = shapes.fill(per_release, entries, most_clamped, 1 << (frac_bits - 1))
    if found is not None:
        return found
    size = entries
    while found is None and size < 1 << MOST_ENTRIES_BITS:
        size *= 2
        found = shapes.fill(per_release, size, most_clamped, 1 << (frac_bits - 1))
    bits = size.bit_length() - 1
    able = f"2^{bits} can, so give --entries 2^{bits}" if found else f"nor can 2^{bits}, so give a larger epsilon"
    raise InputError(
        f"no stairs table of {entries} entries can certify epsilon {epsilon} over {release} released features with "
        f"at most {most_clamped:.0%} of the draws clamped; {able}."
    )
