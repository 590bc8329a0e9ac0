"""Naive and quantile tables: Laplace noise as samples. Built to be refused: both have a support mismatch."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from sensorsim._util.errors import InputError
from sensorsim.noise.certificate import Certificate
from sensorsim.noise.kinds.counted_table import CountedTable, check_word, checked_entries, counted, noise_scale

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from sensorsim.language.kernel import Kernel

Counts = tuple[tuple[int, int], ...]


@dataclass(frozen=True, repr=False)
class SampleTable(CountedTable):
    """Whole noise values, no place on a stair; usually no limit."""

    options = ("entries", "seed", "coefficients", "limit_scales")
    for_releases = False

    @classmethod
    def make(cls, epsilon: Decimal, features: int, release: int, frac_bits: int, **options: Any) -> Self:
        """`limit_scales` clamps the output to so many noise scales; `seed` is for the samples of a naive table."""
        entries = checked_entries(options["entries"])
        limit_scales, seed = options["limit_scales"], options["seed"] or 0
        if limit_scales is not None and not 0 < limit_scales < math.inf:
            raise InputError(f"the limit is {limit_scales}; give a number of noise scales above 0.")
        coefficients = options["coefficients"] or (2 if release == features else 1)
        if coefficients not in (1, 2):
            raise InputError(f"coefficients is {coefficients}; a feature has 1 or 2 noisy coefficients.")
        scale = noise_scale(epsilon, release, coefficients) * 2**frac_bits
        limit = None if limit_scales is None else round(float(scale) * limit_scales)
        counts, seeded = cls.fill(scale, entries, seed)
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
    def fill(scale: Fraction, entries: int, seed: int) -> tuple[Counts, int | None]:
        """The values and their counts, and the seed if it was used."""
        raise NotImplementedError

    def certify(self) -> Certificate:
        from sensorsim.noise.certificate import certify_samples

        return certify_samples(self)

    def samples(self) -> "np.ndarray[Any, Any]":
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

    def takes(self, kernel: "Kernel") -> bool:
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
        deltas = (float(proof.delta_record), float(proof.delta_record_below), float(proof.delta_release))
        noisy = "" if self.coefficients == 1 else f", {self.coefficients} noisy coefficients for each feature"
        return [
            f"  entries       {self.entries} of {about['bytes_per_entry']} B{noisy}; "
            f"noise sd {about['noise_sd']:.4g} ranges of x as drawn",
            f"  delta         {deltas[0]:.6g} at epsilon {self.epsilon} (at least {deltas[1]:.6g}); "
            f"one draw {deltas[2]:.6g}",
        ]

    def figure(self) -> "Figure":
        from sensorsim.noise.noise_figures import samples_figure

        made: Figure = samples_figure(self)
        return made


class NaiveTable(SampleTable):
    """Laplace samples rounded to the lattice."""

    kind = "naive"

    @staticmethod
    def fill(scale: Fraction, entries: int, seed: int) -> tuple[Counts, int | None]:
        """As the obvious script draws them. random.Random gives the same numbers in every version of Python."""
        rng = random.Random(seed)
        width = float(scale)
        samples = Counter[int]()
        for _ in range(entries):
            u = rng.random() - 0.5
            samples[round(-width * math.copysign(math.log1p(-2 * abs(u)), u))] += 1
        return tuple(sorted(samples.items())), seed


class QuantileTable(SampleTable):
    """Quantiles (i + 1/2)/entries of the discrete Laplace distribution, P(z) proportional to exp(-|z|/scale)."""

    kind = "quantile"

    @staticmethod
    def fill(scale: Fraction, entries: int, seed: int) -> tuple[Counts, int | None]:
        width = float(scale)
        once_more = math.log1p(math.exp(-1 / width))  # log(1 + p): P(Z <= -k) = p^k/(1 + p)
        samples = Counter[int]()
        for i in range(entries // 2):
            k = max(0, math.floor(-width * (math.log((i + 0.5) / entries) + once_more)))
            samples[-k] += 1
            samples[k] += 1
        return tuple(sorted(samples.items())), None


KINDS = {"naive": NaiveTable, "quantile": QuantileTable}
