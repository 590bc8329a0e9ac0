"""Tables that are a list of noise values with their counts: what stairs share with them, and Laplace samples.

Naive and quantile tables are Laplace noise as samples. They are built to be refused: both have a support mismatch.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.kernels.formats import FRAC
from sensorsim.language.kernel import Kernel
from sensorsim.noise.certificate import Certificate, certify_samples
from sensorsim.noise.noise_table import WORD_BITS, NoiseTable

Counts = tuple[tuple[int, int], ...]
MOST_ENTRIES_BITS = 24
USUAL_ENTRIES = 1 << 14
MOST_OUTPUTS = 1 << 26  # of one input, that are listed


@dataclass(frozen=True, repr=False)
class CountedTable(NoiseTable):
    """A table of 2^k noise values, stored as (value, count) runs in ascending order.

    A release is y = clamp(x_q - D/2 + 2^stair_bits*A + U, ±limit), D = 2^frac_bits, A an entry picked by k secret
    uniform bits, U stair_bits secret uniform bits less half their range. All in 32-bit integers.
    """

    coefficients: int  # noisy numbers per released feature: 2 for the paper's alpha2 and alpha3
    stair_bits: int  # 0: no U
    limit: int | None  # of the output, in lattice steps
    seed: int | None
    counts: Counts

    file_version = 1
    parameters: ClassVar[dict[str, Any]] = {
        "epsilon": Decimal,
        **dict.fromkeys(("features", "release", "coefficients", "frac_bits", "stair_bits", "limit", "seed"), int),
    }

    @classmethod
    def parse(cls, found: dict[str, Any], lines: list[str]) -> Self:
        counts = tuple((int(value), int(count)) for value, count in map(str.split, lines[1:]))
        values = [value for value, _ in counts]
        table = cls(**found, counts=counts)
        entries = table.entries
        sound = (
            lines[0] == f"counts {len(counts)}"
            and values == sorted(set(values))
            and table.coefficients in (1, 2)
            and 0 <= table.stair_bits <= table.frac_bits
            and min(count for _, count in counts) >= 0
            and 2 <= entries <= 1 << MOST_ENTRIES_BITS
            and entries & (entries - 1) == 0
            and max(abs(value) for value in values) < 1 << WORD_BITS
            and (table.limit is None or 0 < table.limit < 1 << WORD_BITS)
        )
        if not sound:
            raise ValueError("parameters")
        return table

    def body(self) -> list[str]:
        return [f"counts {len(self.counts)}", *(f"{value} {count}" for value, count in self.counts)]

    @property
    def entries(self) -> int:
        return sum(count for _, count in self.counts)

    @property
    def index_bits(self) -> int:
        """Return the number of secret bits that pick an entry."""
        return self.entries.bit_length() - 1

    @property
    def values(self) -> np.ndarray[Any, Any]:
        """Return the entries in ascending order, in the smallest signed type; only the index is secret."""
        values = np.repeat([v for v, _ in self.counts], [c for _, c in self.counts])
        return values.astype(np.min_scalar_type(-int(abs(values).max()) - 1))

    def samples(self) -> np.ndarray[Any, Any]:
        if self.frac_bits > FRAC or self.entries > 1 << 16:
            raise InputError(
                f"this table has {self.frac_bits} fraction bits and {self.entries} entries; SPOF's kernels take at "
                f"most {FRAC} and 2^16."
            )
        noise = self.values.astype(np.int64) << (self.stair_bits + FRAC - self.frac_bits)
        if abs(noise).max() > 1 << 30:
            raise InputError("this table's noise is beyond ±32768, what the kernels take; give a larger epsilon.")
        return noise.astype(np.int32)

    @property
    def scale(self) -> Fraction:
        """Return the Laplace scale that the nominal epsilon asks for, in units of the range of x."""
        return noise_scale(self.epsilon, self.release, self.coefficients)

    @property
    def secret_bits(self) -> int:
        return self.index_bits + self.stair_bits

    @property
    def value_bits(self) -> int:
        far = self.limit or max(-self.counts[0][0], self.counts[-1][0]) + (1 << self.frac_bits)
        width: int = int(2 * far)
        return width.bit_length()

    @property
    def table_bytes(self) -> int:
        return self.entries * int(self.values.dtype.itemsize)

    def distribution(self, x_q: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        drawn, stair = [(value, count) for value, count in self.counts if count], 1 << self.stair_bits
        if len(drawn) * stair > MOST_OUTPUTS:
            raise InputError(
                f"this table has {len(drawn) * stair} outputs, and at most {MOST_OUTPUTS} are listed; make it with "
                "fewer --frac-bits."
            )
        starts = np.array([value for value, _ in drawn], np.int64) * stair + x_q - (1 << self.frac_bits) // 2
        outputs = (starts[:, None] - stair // 2 + np.arange(stair)).ravel()
        counts = np.repeat([count for _, count in drawn], stair)
        if self.limit is None:
            return outputs, counts
        kept, place = np.unique(np.clip(outputs, -self.limit, self.limit), return_inverse=True)
        return kept, np.bincount(place, counts).astype(np.int64)

    def draw(self, x_q: int, top: Any, low: Any, low_bits: int) -> Any:
        """Add the noise of the top part's stair and the low part's place on it to x about its middle, and clamp."""
        assert self.limit is not None
        stair = 1 << self.stair_bits
        noisy = x_q - (1 << self.frac_bits) // 2 - stair // 2 + stair * self.values.astype(np.int64)[top] + low
        return np.clip(noisy, -self.limit, self.limit)

    def picture(self) -> str:
        """Draw shares of the table in equal ranges of noise; the outermost rows hold all that lies beyond."""
        rows, width = 15, 48
        stair = 2.0 ** (self.stair_bits - self.frac_bits)
        reach = min(4 * float(self.scale), self.counts[-1][0] * stair)
        step = 2 * reach / rows
        bins = [0.0] * rows
        for value, count in self.counts:  # a stair is as wide as it is, a sample is a point
            left = (value * stair + reach) / step - (stair / step / 2 if self.stair_bits else 0.0)
            parts = max(1, round(8 * stair / step)) if self.stair_bits else 1
            for part in range(parts):
                place = left + (part + 0.5) * stair / step / parts if self.stair_bits else left
                bins[min(rows - 1, max(0, int(place)))] += count / parts
        most = max(bins)
        lines = ["  noise (ranges of x)   share"]
        for i, height in enumerate(bins):
            low = -reach + i * step
            bar = "█" * round(width * height / most)
            lines.append(f"  {low:+9.2f} {low + step:+9.2f}  {height / self.entries:6.3f}  {bar}")
        return "\n".join(lines)


def noise_scale(epsilon: Decimal, release: int, coefficients: int) -> Fraction:
    """L1 sensitivity over epsilon: a feature moves alpha2 by 1, and alpha3 = -alpha2/2 by 1/2 where it is released."""
    sensitivity = Fraction(3, 2) * release if coefficients == 2 else Fraction(release)
    return sensitivity / Fraction(epsilon)


def counted(values: Iterable[int]) -> Counts:
    """Return the entries of a table as runs."""
    return tuple(sorted(Counter(map(int, values)).items()))


def checked_entries(entries: int | None) -> int:
    """Return the requested number of entries, or the usual one."""
    entries = USUAL_ENTRIES if entries is None else entries
    if entries < 2 or entries & (entries - 1) or entries > 1 << MOST_ENTRIES_BITS:
        raise InputError(
            f"entries is {entries}; an index of secret bits needs a power of two from 2 to 2^{MOST_ENTRIES_BITS}."
        )
    return entries


def check_word(table: CountedTable) -> None:
    """Refuse a table whose outputs would not fit a word."""
    largest = max(-table.counts[0][0], table.counts[-1][0])
    D = 1 << table.frac_bits
    if (largest << table.stair_bits) + D >= 1 << WORD_BITS:
        fits = (((1 << WORD_BITS) - 1) * D // ((largest << table.stair_bits) + D)).bit_length() - 1
        raise InputError(
            f"{table.frac_bits} fraction bits overflow a 32-bit word at this noise; "
            f"give --frac-bits {max(fits, 1)} or fewer."
        )


@dataclass(frozen=True, repr=False)
class SampleTable(CountedTable):
    """Whole noise values, no place on a stair; usually no limit."""

    options = ("entries", "seed", "coefficients", "limit_scales")
    for_releases = False
    seeded: ClassVar[bool] = False  # whether the values depend on a seed
    figure_function = "samples_figure"

    @classmethod
    def make(cls, epsilon: Decimal, features: int, release: int, frac_bits: int, **options: Any) -> Self:
        """Make a table; `limit_scales` clamps the output to that many noise scales, `seed` is for naive samples."""
        entries = checked_entries(options["entries"])
        limit_scales, seed = options["limit_scales"], options["seed"] or 0
        if limit_scales is not None and not 0 < limit_scales < math.inf:
            raise InputError(f"the limit is {limit_scales}; give a number of noise scales above 0.")
        coefficients = options["coefficients"] or (2 if release == features else 1)
        if coefficients not in (1, 2):
            raise InputError(f"coefficients is {coefficients}; a feature has 1 or 2 noisy coefficients.")
        scale = noise_scale(epsilon, release, coefficients) * 2**frac_bits
        limit = None if limit_scales is None else round(float(scale) * limit_scales)
        counts, seeded = counted(cls.fill(float(scale), entries, seed)), seed if cls.seeded else None
        made = cls(epsilon, features, release, frac_bits, coefficients, 0, limit, seeded, counts)
        check_word(made)
        return made

    @classmethod
    def parse(cls, found: dict[str, Any], lines: list[str]) -> Self:
        table = super().parse(found, lines)
        if table.stair_bits:
            raise ValueError("a table of samples has no stairs")
        return table

    @staticmethod
    def fill(scale: float, entries: int, seed: int) -> Iterator[int]:
        """Yield the values; `scale` is in lattice steps."""
        raise NotImplementedError

    def certify(self) -> Certificate:
        return certify_samples(self)

    def samples(self) -> np.ndarray[Any, Any]:
        if self.limit is not None:
            raise InputError("no kernel clamps the output of a naive or quantile table; make it without --limit.")
        return super().samples()

    def c_array(self) -> tuple[str, tuple[int, ...]]:
        return "noise", tuple(int(value) for value in self.values)

    def c_constants(self) -> dict[str, int]:
        return {"mask": self.entries - 1, "size": self.entries}

    def from_c(self, values: Sequence[int], constants: Mapping[str, int]) -> Self:
        if not len(values) == constants["size"] == constants["mask"] + 1:
            raise ValueError(f"{len(values)} values are not the {constants['size']} that mask and size speak of")
        return replace(self, counts=counted(values), certificate=None)

    def takes(self, kernel: Kernel) -> bool:
        return "noise" in kernel.arrays

    def details(self) -> dict[str, Any]:
        squares = sum(count * value * value for value, count in self.counts) / self.entries
        return {
            "coefficients": self.coefficients,
            "limit": self.limit,
            "seed": self.seed,
            "entries": self.entries,
            "bytes_per_entry": self.values.dtype.itemsize,
            "noise_sd": math.sqrt(squares) / 2**self.frac_bits,
        }

    def lines(self) -> list[str]:
        about, proof = self.details(), self.certificate
        assert proof is not None
        noisy = "" if self.coefficients == 1 else f", {self.coefficients} noisy coefficients for each feature"
        return [
            f"  entries       {self.entries} of {about['bytes_per_entry']} B{noisy}; "
            f"noise sd {about['noise_sd']:.4g} ranges of x as drawn",
            f"  delta         {float(proof.delta_record):.6g} at epsilon {self.epsilon} (at least "
            f"{float(proof.delta_record_below):.6g}); one draw {float(proof.delta_release):.6g}",
        ]


class NaiveTable(SampleTable):
    """Laplace samples rounded to the lattice."""

    kind = "naive"
    seeded = True

    @staticmethod
    def fill(scale: float, entries: int, seed: int) -> Iterator[int]:
        """Draw as the obvious script does. random.Random gives the same numbers in every version of Python."""
        rng = random.Random(seed)
        for _ in range(entries):
            u = rng.random() - 0.5
            yield round(-scale * math.copysign(math.log1p(-2 * abs(u)), u))


class QuantileTable(SampleTable):
    """Quantiles (i + 1/2)/entries of the discrete Laplace distribution, P(z) proportional to exp(-|z|/scale)."""

    kind = "quantile"

    @staticmethod
    def fill(scale: float, entries: int, seed: int) -> Iterator[int]:
        once_more = math.log1p(math.exp(-1 / scale))  # log(1 + p): P(Z <= -k) = p^k/(1 + p)
        for i in range(entries // 2):
            k = max(0, math.floor(-scale * (math.log((i + 0.5) / entries) + once_more)))
            yield from (-k, k)


KINDS = {"naive": NaiveTable, "quantile": QuantileTable}
