"""Composition: the epsilon and delta that a use of noise spends, and what they cover. Mechanisms say what they draw.

Neighbours are two data sets that differ in one record (or, with `records`, in all the records of one person), replaced
by any other. Nothing is claimed for the order of records in an epoch. Poisson sampling is counted (amplification.py).

A release from a table is counted by the table's own integers: the worst pair of inputs, as `pld.dominating` finds it.
Features are picked independently of their values, so a pick reveals nothing, and the worst pair of records differs in
every feature. If only an epsilon is known, the table counts as the worst mechanism of that epsilon: randomised
response on the whole record, from which every mechanism of that epsilon can be computed (Kairouz, Oh and Viswanath
2015).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.accounting import amplification, pld
from sensorsim.noise.certificate import certify, format_epsilon

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

Part = tuple[float, Callable[[float, float], pld.PLD], int]  # largest loss, its distribution, number of draws
LEAST_DELTA = 1e-12  # below, differences of floats are noise
MOST_LOSS = 500.0  # of one draw; above, exp overflows and only basic composition is used
_MOST_CELLS = 1 << 22
CHOICES = {"point": ("zero", "prediction"), "noise": ("gaussian", "laplace"), "forward": ("raw", "released")}


class Covers(Enum):
    """What an epsilon covers. The value is for a table; `sentence` is in full."""

    NOTHING = "nothing"
    COEFFICIENTS = "coefficients"
    GRADIENTS = "gradients"
    RELEASE = "weights too"
    STEPS = "weights, step by step"
    REAL_STEPS = "weights, in reals"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self.name]


_RAW = "the forward pass reads raw records, so the weights are not covered"
_SENTENCES = {
    "NOTHING": "nothing",
    "COEFFICIENTS": f"the perturbed coefficients alone: {_RAW}",
    "GRADIENTS": f"the perturbed z-gradients alone: {_RAW}",
    "RELEASE": "everything computed from the release, the weights included",
    "STEPS": "the weights and every step towards them, where the noise is added before anyone sees them",
    "REAL_STEPS": "the weights and every step towards them, as far as noise that is added in floats is that of real "
    "numbers: no proof covers the last bits",
}


@dataclass(frozen=True)
class Use:
    """How a mechanism is used. A mechanism reads the fields that matter to it."""

    epsilon: float | None = None  # nominal, per record
    table: "NoiseTable | None" = None  # that a release draws from, instead of an epsilon
    scale: float | None = None  # of Laplace noise, instead of the one of the nominal epsilon
    noise_multiplier: float | None = None  # standard deviation of Gaussian noise over C
    draws: int = 1  # of fresh noise per record: 1 if drawn once and reused, else the epochs
    records: int = 1  # of one person
    batch: int = 1  # records that share one noisy sum
    rate: float = 1.0  # probability that a record joins each of `draws` Gaussian sums: Poisson sampling
    features: int = 14
    release: int = 1  # features of a record that are released
    hidden: int = 7  # hidden units l
    C: float = 4.0  # clipping norm
    c: float = 0.0  # stabilization constant
    sigma: float = 0.0  # environmental noise
    point: str = "zero"  # where gradients are taken: at zero, or at the prediction
    noise: str = "gaussian"
    forward: str = "raw"  # what the forward pass reads
    delta: float = 1e-6


@dataclass(frozen=True)
class Spent:
    """The epsilon at delta, what it covers and why; `basic` is that of basic composition, with delta = 0."""

    epsilon: float
    delta: float
    covers: Covers
    why: str
    basic: float


def unbounded(why: str) -> Spent:
    """Return that no epsilon holds, and why."""
    return Spent(math.inf, 0.0, Covers.NOTHING, why, math.inf)


def composed(parts: Sequence[Part], use: Use, covers: Covers, why: str, proved: Decimal | None = None) -> Spent:
    """Compose the parts of one draw over all draws and records; by basic composition where that is smaller.

    `proved` is the epsilon of one draw if a certificate gives it.
    """
    once = sum(loss * times for loss, _, times in parts) if proved is None else float(proved)
    total = use.draws * use.records
    basic = once * total if proved is None else float(proved * total)
    reached = basic if total == 1 or once > MOST_LOSS else _by_distributions(parts, total, use.delta)
    pure = total == 1 or basic <= reached
    often = "noise drawn once per record" if use.draws == 1 else f"fresh noise in each of {use.draws} draws"
    many = f", {use.records} records of one person" if use.records > 1 else ""
    words = f"{often}{many}; one draw of a record is {format_epsilon(once)}; {why}"
    return Spent(basic if pure else reached, 0.0 if pure else use.delta, covers, words, basic)


def released(use: Use, covers: Covers, why: str) -> Spent:
    """Compose releases through the table of the use, or through the worst table of its epsilon."""
    if use.table is None:
        assert use.epsilon is not None
        worst = f"{why}; the worst mechanism of that epsilon"
        return composed([(use.epsilon, pld.pure, 1)], use, covers, worst, Decimal(repr(float(use.epsilon))))
    proof = certify(use.table)
    if proof.epsilon_record is None or proof.epsilon_release is None or not use.table.for_releases:
        return unbounded(f"this {use.table.kind} table proves no epsilon")
    pair = worst_pair(use.table)
    part = (float(proof.epsilon_release), lambda _, step: pld.from_counts(*pair, step), use.table.release)
    return composed([part], use, covers, f"{why}; by the counts of the table", proof.epsilon_record)


@lru_cache(maxsize=64)
def worst_pair(table: "NoiseTable") -> tuple[Any, Any]:
    """Return counts of two releases of one value that dominate those of any two inputs."""
    return pld.dominating(permutations(table.extremes(), 2))


def of_releases(table: "NoiseTable", releases: int, delta: float) -> tuple[float, float]:
    """Return the epsilon of `releases` releases of one person: basic, and at delta by distributions, never more."""
    if releases < 1:
        return 0.0, 0.0
    spent = released(Use(table=table, draws=releases, delta=delta), Covers.RELEASE, "certified releases")
    return spent.basic, spent.epsilon


def gaussian(multiplier: float, use: Use, covers: Covers, why: str) -> Spent:
    """Account for Gaussian noise of multiplier·C on clipped sums: replacing a record moves one sum of a draw by 2C.

    The records of one person may meet in one sum, which they then move by 2C each: Gaussian losses add in squares over
    sums, and in full within one. Under Poisson sampling any of them may meet in any sum.
    """
    if use.rate < 1:
        return _poisson_sampled(multiplier, use, covers, why)
    mu = 2 * math.sqrt(use.draws * sum(size**2 for size in shared_sums(use.records, use.batch))) / multiplier
    reached = pld.gaussian_epsilon(mu, use.delta)
    many = f", {use.records} records of one person in batches of {use.batch}" if use.records > 1 else ""
    words = f"Gaussian noise of {multiplier:.4g}·C, {use.draws} draws{many}; {why}; nothing is claimed for sampling"
    return Spent(reached, use.delta, covers, words, math.inf)


def _poisson_sampled(multiplier: float, use: Use, covers: Covers, why: str) -> Spent:
    def reached(relation: tuple[tuple[int, int], ...]) -> float:
        return amplification.poisson_epsilon(multiplier, use.rate, use.draws, use.delta, use.records, relation)

    many = f", {use.records} records of one person" if use.records > 1 else ""
    words = (
        f"Gaussian noise of {multiplier:.4g}·C in {use.draws} steps, which a record joins by chance with probability "
        f"{use.rate:.4g} (Poisson sampling){many}; {why}; epsilon is for records that are replaced, with the number of "
        f"records public: were they removed or added, it would be {reached(amplification.REMOVED):.4g}"
    )
    return Spent(reached(amplification.REPLACED), use.delta, covers, words, math.inf)


def multiplier_of(use: Use) -> float:
    """Return the noise multiplier that is given, or the one with which a record spends its nominal epsilon."""
    if use.noise_multiplier is not None:
        return use.noise_multiplier
    if use.epsilon is None:
        raise InputError("there is neither an epsilon nor a noise_multiplier; give one of the two.")
    if use.rate == 1:
        return pld.noise_multiplier_for(use.epsilon, use.delta, use.draws)
    return amplification.poisson_multiplier(use.epsilon, use.delta, use.draws, use.rate)


def shared_sums(records: int, batch: int) -> list[int]:
    """Return how many of a person's records each sum holds in the worst order of records: as many as fit."""
    full, rest = divmod(records, batch)
    return [batch] * full + [rest] * (rest > 0)


def check(name: str, use: Use, gaussian_noise: bool, needs_budget: bool) -> None:
    """Check the fields of a use, alone and together."""
    if needs_budget and use.epsilon is None and use.scale is None and use.noise_multiplier is None:
        raise InputError(f"{name} needs a nominal epsilon, or a noise scale; give one of the two.")
    if gaussian_noise and use.scale is not None:
        raise InputError(f"{name} takes an epsilon or a noise_multiplier (standard deviation over C), not a scale.")
    if not gaussian_noise and use.noise_multiplier is not None:
        raise InputError(f"{name} has no Gaussian noise, so it takes no noise_multiplier; leave it out.")
    scales = {"epsilon": use.epsilon, "scale": use.scale, "noise multiplier": use.noise_multiplier, "C": use.C}
    for what, value in scales.items():
        if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf):
            raise InputError(f"{what} is {value}; give a number above 0.")
    for what in ("draws", "records", "batch", "features", "release", "hidden"):
        count = getattr(use, what)
        if not isinstance(count, int) or count < 1:
            raise InputError(f"{what} is {count}; give a whole number of 1 or more.")
    if not 0 < use.rate <= 1:
        raise InputError(f"rate is {use.rate}; a record joins a sum with a probability above 0 and at most 1.")
    if use.rate < 1 and not gaussian_noise:
        raise InputError("Poisson sampling is counted with Gaussian noise alone; leave the rate at 1.")
    if use.release > use.features:
        raise InputError(f"release is {use.release} of {use.features} features; give at most as many as there are.")
    for what, value in {"c": use.c, "sigma": use.sigma}.items():
        if not 0 <= value < math.inf:
            raise InputError(f"{what} is {value}; give a number of at least 0.")
    for what, allowed in CHOICES.items():
        if getattr(use, what) not in allowed:
            raise InputError(f"{what} is {getattr(use, what)}; choose {' or '.join(allowed)}.")
    if not LEAST_DELTA <= use.delta < 1:
        raise InputError(f"delta is {use.delta}; give a number from {LEAST_DELTA:g} to below 1.")


def _by_distributions(parts: Sequence[Part], total: int, delta: float) -> float:
    span = sum(loss * times for loss, _, times in parts) * total
    finest = min(loss for loss, _, _ in parts)
    step = min(max(2 * span / pld.CELLS, 1e-6), finest / 8)
    step = finest / math.ceil(finest / step)  # randomised response is then on the grid, and exact
    if 2 * span / step > _MOST_CELLS:
        return math.inf  # too long for the grid: use basic composition
    return pld.compose([(kind(loss, step), times * total) for loss, kind, times in parts]).epsilon(delta)
