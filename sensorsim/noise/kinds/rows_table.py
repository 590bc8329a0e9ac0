"""Rows tables: one symbol for a feature. The counts and their proof are in rows_counts.py, their design beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sensorsim._util.errors import InputError
from sensorsim.noise.certificate import Certificate, pure_certificate
from sensorsim.noise.noise_table import NoiseTable, StoredCounts
from sensorsim.noise.rows_counts import MOST_KNOTS, Rows

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from sensorsim.language.kernel import Kernel

THRESHOLDS, MIRRORED, LOOKUP, BIT = "thresholds", "half of the thresholds", "lookup", "one bit"
SEARCH = "search of thresholds"
MODULES = {
    THRESHOLDS: "rows",
    SEARCH: "rows_search",
    MIRRORED: "rows_mirrored",
    LOOKUP: "rows_lookup",
    BIT: "rows_bit",
}
HOW = {
    THRESHOLDS: "by thresholds",
    SEARCH: "by a search of thresholds",
    MIRRORED: "by thresholds of x up to 1/2, mirrored above",
    LOOKUP: "by one load",
    BIT: "by one comparison, without a table",
}
COUNT_BITS = {THRESHOLDS: 16, LOOKUP: 8}
MOST_SYMBOLS = 32  # of the kernels


@dataclass(frozen=True, repr=False)
class RowsTable(NoiseTable):
    """Counts of every symbol for every knot, out of 2^count_bits."""

    count_bits: int
    counts: tuple[tuple[int, ...], ...]  # of the knots that are stored, from x = 0 upwards
    mirrored: bool = False  # the knots above 1/2 are not stored: they are mirror images

    kind = "rows"
    file_version = 2
    options = ("symbols", "knots", "count_bits")
    parameters: ClassVar[dict[str, Any]] = {
        "epsilon": Decimal,
        **dict.fromkeys(("features", "release", "frac_bits", "count_bits"), int),
    }

    @classmethod
    def make(cls, epsilon: Decimal, features: int, release: int, frac_bits: int, **options: Any) -> Self:
        """`symbols` and `knots` (2^j + 1) fix the size; without them the smallest that loses next to nothing.

        `count_bits` is 16 for a table of thresholds, 8 for one that is looked up with one load.
        """
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
        """How firmware draws: by thresholds (a search for those of 5 to 8 symbols), by one load, or without a table."""
        if self.rows.one_bit() is not None:
            return BIT
        if self.count_bits == COUNT_BITS[LOOKUP]:
            return LOOKUP
        if self.mirrored:
            return MIRRORED
        return SEARCH if 5 <= self.rows.symbols <= 8 else THRESHOLDS

    def kernel(self, mechanism: str) -> "Kernel":
        module = MODULES[self.form]
        one = "_one" if mechanism == "sampled" and self.release == 1 else ""
        found: Kernel = getattr(import_module(f"sensorsim.kernels.{module}"), f"{mechanism}_{module}{one}")
        return found

    def arguments(self) -> dict[str, Any]:
        import numpy as np

        from sensorsim.kernels.formats import FRAC

        if self.frac_bits != FRAC:
            raise InputError(
                f"this table has {self.frac_bits} fraction bits and the kernels' x has {FRAC}; make it with "
                f"--frac-bits {FRAC} (the rows stay the same)."
            )
        name, values = self.c_array()
        kind = np.uint8 if self.form == LOOKUP else np.uint16
        return self.bound_constants() | ({name: np.array(values, kind)} if values else {})

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
        bit = self.rows.one_bit()
        if bit is not None:
            return {"base": bit[0], "slope": bit[1]}
        knots = {"knot_bits": self.rows.knot_bits}
        return knots if self.form == LOOKUP else {"cuts": self.rows.symbols - 1, **knots}

    def bound_constants(self) -> dict[str, int]:
        from sensorsim.kernels.formats import FRAC

        known = self.c_constants()
        if "base" not in known:
            return known
        return {"top": known["base"] + (known["slope"] << FRAC), "slope": known["slope"]}

    def from_c(self, values: Sequence[int], constants: Mapping[str, int]) -> Self:
        sizes: dict[str, Any] = {"features": constants["n"], "release": constants["k"], "certificate": None}
        if "base" in constants:
            counts = _of_one_bit(constants["base"], constants["slope"], self.count_bits)
            return replace(self, counts=counts, mirrored=False, **sizes)
        if not constants["knot_bits"] < MOST_KNOTS.bit_length() or not constants.get("cuts", 1):
            raise ValueError(f"no rows have {constants}")
        knots = (1 << constants["knot_bits"]) + 1
        if "cuts" not in constants:
            rows = _cut(values, 1 << COUNT_BITS[LOOKUP], (knots,))
            counts = tuple(tuple(row.count(s) for s in range(max(values) + 1)) for row in rows)
            return replace(self, count_bits=COUNT_BITS[LOOKUP], counts=counts, mirrored=False, **sizes)
        rows = _cut(values, constants["cuts"], (knots, (knots + 1) // 2))
        edges = [(0, *row, 1 << COUNT_BITS[THRESHOLDS]) for row in rows]
        counts = tuple(tuple(b - a for a, b in pairwise(row)) for row in edges)
        return replace(self, count_bits=COUNT_BITS[THRESHOLDS], counts=counts, mirrored=len(rows) != knots, **sizes)

    def c_remark(self) -> list[str]:
        values = ", ".join(f"{float(value):.9g}" for value in self.rows.values())
        return ["An unbiased estimate of x in 0 ... 1 is, for symbol 0, 1, ...:", *wrap(values, 90)]

    def distribution(self, x_q: int) -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
        import numpy as np

        counts = self.rows.distribution(x_q, self.frac_bits)
        return np.arange(len(counts)), np.array(counts, np.int64)

    def draw(self, x_q: int, top: Any, low: Any, low_bits: int) -> Any:
        """Round x to a row by the low part; count how many sums of that row's counts the top part reaches.

        A mirrored table is read at 1 - x where x is above 1/2, and its symbols backwards. One bit is 1 for the lowest
        words, as many as its count at x.
        """
        import numpy as np

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
        import numpy as np

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
            f"drawn {HOW[self.form]}",
            f"  values        {values}: unbiased for every x",
        ]

    def picture(self) -> str:
        """The probability of each symbol at each knot, as a bar of blocks."""
        width = 60
        lines = ["  x        probability of symbol 0, 1, …"]
        letters = "0123456789abcdefghijklmnopqrstuv"
        every = self.rows.all_counts()
        for k, row in enumerate(every):
            edges = [round(width * sum(row[:s]) / sum(row)) for s in range(len(row) + 1)]
            bar = "".join(letters[s] * (edges[s + 1] - edges[s]) for s in range(len(row)))
            lines.append(f"  {k / (len(every) - 1):<8.4g} {bar}")
        return "\n".join(lines)

    def figure(self) -> "Figure":
        from sensorsim.noise.noise_figures import rows_figure

        made: Figure = rows_figure(self)
        return made


KINDS = {"rows": RowsTable}


def _cut(values: Sequence[int], width: int, allowed: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The stored rows."""
    rows = [tuple(values[at : at + width]) for at in range(0, len(values), width)]
    if len(rows) not in allowed or len(rows[-1]) != width:
        raise ValueError(f"{len(values)} values are no {' or '.join(map(str, allowed))} rows of {width}")
    return rows


def _of_one_bit(base: int, slope: int, bits: int) -> tuple[tuple[int, ...], ...]:
    """The counts of the two symbols at both ends: `one_bit` of rows, read back."""
    at_0, rest = divmod(base, 1 << (31 - bits))
    more, left = divmod(slope, 1 << (16 - bits))
    if rest or left:
        raise ValueError(f"base {base} and slope {slope} are of no counts out of 2^{bits}")
    return tuple(((1 << bits) - count, count) for count in (at_0, at_0 + more))
