"""Noise tables: what the firmware draws from, with the certificate of what that protects.

Three kinds. `naive` is the obvious one, Laplace samples rounded to the lattice; `quantile` has quantiles of the
discrete Laplace distribution in place of samples; both leave holes. `stairs` is built from its privacy bound (see
stairs.py).
"""

import math
import random
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.privacy import stairs as stairs_module
from sensorsim.privacy.certificate import Certificate, certify
from sensorsim.privacy.stairs import Stairs

if TYPE_CHECKING:
    import numpy as np

KINDS = ("naive", "quantile", "stairs")
READY_EPSILONS = ("0.1", "0.2", "0.4", "0.8", "1", "1.6", "3.2", "6.4")
WORD_BITS = 31  # what a release adds up must fit a signed 32-bit word
MOST_ENTRIES_BITS = 24


@dataclass(frozen=True)
class NoiseTable:
    """A table of 2^k noise values, stored as (value, count) runs in ascending order.

    A release is y = clamp(x_q - D/2 + 2^stair_bits*A + U, ±limit), D = 2^frac_bits, A an entry picked by k secret
    uniform bits, U stair_bits secret uniform bits less half their range. Naive and quantile tables have no U
    (stair_bits is 0) and usually no limit. All in 32-bit integers; x_q is any of 0..D.
    """

    kind: str
    epsilon: Decimal  # nominal, of a whole record
    features: int
    release: int  # features released of each record
    coefficients: int  # noisy numbers per released feature: 2 for the paper's alpha2 and alpha3
    frac_bits: int
    stair_bits: int
    limit: int | None  # of the output, in lattice steps
    seed: int | None
    counts: tuple[tuple[int, int], ...]
    certificate: Certificate | None = None

    @property
    def entries(self) -> int:
        return sum(count for _, count in self.counts)

    @property
    def index_bits(self) -> int:
        """Secret bits that pick an entry."""
        return self.entries.bit_length() - 1

    @property
    def values(self) -> "np.ndarray[Any, Any]":
        """The entries in ascending order, in the smallest signed type that holds them; only the index is secret."""
        import numpy as np

        values = np.repeat([v for v, _ in self.counts], [c for _, c in self.counts])
        return values.astype(np.min_scalar_type(-int(abs(values).max()) - 1))

    @property
    def scale(self) -> Fraction:
        """The Laplace scale that the nominal epsilon asks for, in units of the range of x."""
        return noise_scale(self.epsilon, self.release, self.coefficients)

    @property
    def stairs(self) -> Stairs:
        """The counts c_0 … c_K of a stairs table."""
        top = self.counts[-1][0]
        by_value = dict(self.counts)
        return Stairs(tuple(by_value.get(j, 0) for j in range(top + 1)), 1 << (self.frac_bits - self.stair_bits))

    @property
    def gain(self) -> float:
        """E[y] is gain*(x_q - D/2 - 1/2) for a stairs table; divide by it for an unbiased estimate of x."""
        return self.stairs.gain


def noise_scale(epsilon: Decimal, release: int, coefficients: int) -> Fraction:
    """L1 sensitivity over epsilon: a feature moves alpha2 by 1, and alpha3 = -alpha2/2 by 1/2 where it is released."""
    sensitivity = Fraction(3, 2) * release if coefficients == 2 else Fraction(release)
    return sensitivity / Fraction(epsilon)


def make_table(
    kind: str,
    epsilon: float | str | Decimal,
    features: int = 14,
    release: int | str = "all",
    frac_bits: int = 15,
    entries: int = 2**14,
    seed: int = 0,
    coefficients: int | None = None,
    limit_scales: float | None = None,
    most_clamped: float = 0.1,
) -> NoiseTable:
    """Make and certify a table. `limit_scales` clamps naive and quantile outputs, `most_clamped` shapes stairs."""
    budget = _budget(epsilon)
    released = _released(features, release)
    _check_sizes(kind, frac_bits, entries)
    if coefficients not in (None, 1, 2):
        raise InputError(f"coefficients is {coefficients}; a feature has 1 or 2 noisy coefficients.")
    if kind == "stairs":
        if coefficients == 2:
            raise InputError("a stairs table releases one number per feature; leave coefficients out or give 1.")
        if not 0 < most_clamped < 1:
            raise InputError(f"the share of clamped draws is {most_clamped}; give a number between 0 and 1.")
        table = _stairs(budget, features, released, frac_bits, entries, most_clamped)
    else:
        if limit_scales is not None and not 0 < limit_scales < math.inf:
            raise InputError(f"the limit is {limit_scales}; give a number of noise scales above 0.")
        coefficients = coefficients or (2 if release == "all" else 1)
        scale = noise_scale(budget, released, coefficients) * 2**frac_bits
        counts = _naive(scale, entries, seed) if kind == "naive" else _quantile(scale, entries)
        limit = None if limit_scales is None else round(float(scale) * limit_scales)
        table = NoiseTable(
            kind,
            budget,
            features,
            released,
            coefficients,
            frac_bits,
            0,
            limit,
            seed if kind == "naive" else None,
            counts,
        )
    _check_word(table)
    return replace(table, certificate=certify(table))


def ready_table(epsilon: float | str, release: int | str = "all") -> NoiseTable:
    """A table that ships with sensorsim: stairs, 14 features, all of them or one per record, 15 fraction bits."""
    from sensorsim.privacy.tablefile import parse_table

    name = f"stairs-eps{_budget(epsilon)}-{'all' if release in ('all', 14) else release}.txt"
    path = files("sensorsim.tables") / "noise" / name
    if not path.is_file():
        raise InputError(
            f"no ready table for epsilon {epsilon} and release {release}; there are {', '.join(READY_EPSILONS)}, each "
            "for all features and for 1, or make one with `sensorsim noise make`."
        )
    return parse_table(path.read_bytes(), name)


def _budget(epsilon: float | str | Decimal) -> Decimal:
    try:
        budget = Decimal(str(epsilon))
    except InvalidOperation:
        raise InputError(f"epsilon is {epsilon!r}; a privacy budget is a number above 0, as in 0.5.") from None
    if not budget.is_finite() or not Decimal("1e-6") <= budget <= 1000:
        raise InputError(f"epsilon is {epsilon}; a privacy budget is a number above 0, from 0.000001 to 1000.")
    exact = budget.normalize()
    return exact.quantize(Decimal(1)) if exact == exact.to_integral() else exact


def _released(features: int, release: int | str) -> int:
    if features < 1:
        raise InputError(f"features is {features}; a record has at least 1.")
    released = features if release == "all" else release
    if not isinstance(released, int) or not 1 <= released <= features:
        raise InputError(
            f"release is {release}; give `all` or a number from 1 to {features}, the features of a record."
        )
    return released


def _check_sizes(kind: str, frac_bits: int, entries: int) -> None:
    if kind not in KINDS:
        raise InputError(f"kind is {kind}; the kinds of table are {', '.join(KINDS)}.")
    if entries < 2 or entries & (entries - 1) or entries > 1 << MOST_ENTRIES_BITS:
        raise InputError(
            f"entries is {entries}; an index of secret bits needs a power of two from 2 to 2^{MOST_ENTRIES_BITS}."
        )
    if not 2 <= frac_bits <= WORD_BITS - 1:
        raise InputError(f"frac-bits is {frac_bits}; a 32-bit word allows 2 to {WORD_BITS - 1}.")


def _check_word(table: NoiseTable) -> None:
    largest = max(-table.counts[0][0], table.counts[-1][0])
    D = 1 << table.frac_bits
    if (largest << table.stair_bits) + D >= 1 << WORD_BITS:
        fits = (((1 << WORD_BITS) - 1) * D // ((largest << table.stair_bits) + D)).bit_length() - 1
        raise InputError(
            f"{table.frac_bits} fraction bits overflow a 32-bit word at this noise; "
            f"give --frac-bits {max(fits, 1)} or fewer."
        )


def _stairs(
    epsilon: Decimal, features: int, release: int, frac_bits: int, entries: int, most_clamped: float
) -> NoiseTable:
    per_release = Fraction(epsilon) / release
    found = stairs_module.fill(per_release, entries, most_clamped, 1 << (frac_bits - 1))
    if found is None:
        size = entries
        while found is None and size < 1 << MOST_ENTRIES_BITS:
            size *= 2
            found = stairs_module.fill(per_release, size, most_clamped, 1 << (frac_bits - 1))
        bits = size.bit_length() - 1
        able = f"2^{bits} can, so give --entries 2^{bits}" if found else f"nor can 2^{bits}, so give a larger epsilon"
        raise InputError(
            f"no stairs table of {entries} entries can certify epsilon {epsilon} over {release} released features with "
            f"at most {most_clamped:.0%} of the draws clamped; {able}."
        )
    r, K = found.per_range, len(found.counts) - 1
    stair_bits = frac_bits - (r.bit_length() - 1)
    limit = (1 << stair_bits) * (2 * K - r - 1) // 2
    counts = tuple((j, found.counts[abs(j)]) for j in range(-K, K + 1))
    return NoiseTable("stairs", epsilon, features, release, 1, frac_bits, stair_bits, limit, None, counts)


def _naive(scale: Fraction, entries: int, seed: int) -> tuple[tuple[int, int], ...]:
    """Samples as the obvious script draws them. random.Random gives the same numbers in every version of Python."""
    rng = random.Random(seed)
    width = float(scale)
    samples = Counter[int]()
    for _ in range(entries):
        u = rng.random() - 0.5
        samples[round(-width * math.copysign(math.log1p(-2 * abs(u)), u))] += 1
    return tuple(sorted(samples.items()))


def _quantile(scale: Fraction, entries: int) -> tuple[tuple[int, int], ...]:
    """Quantiles (i + 1/2)/entries of the discrete Laplace distribution, P(z) proportional to exp(-|z|/scale)."""
    width = float(scale)
    once_more = math.log1p(math.exp(-1 / width))  # log(1 + p): P(Z <= -k) = p^k/(1 + p)
    samples = Counter[int]()
    for i in range(entries // 2):
        k = max(0, math.floor(-width * (math.log((i + 0.5) / entries) + once_more)))
        samples[-k] += 1
        samples[k] += 1
    return tuple(sorted(samples.items()))
