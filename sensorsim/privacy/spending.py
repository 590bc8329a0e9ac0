"""Add up what a use of noise spends: epsilon, delta, and what they cover. The mechanisms say what they draw.

Neighbours are two data sets that differ in one record (or, with `records`, in all the records of one person), replaced
by any other. Nothing is claimed for shuffling: where training visits every record in every epoch, noise alone counts.
Where records join a sum by chance, and nobody sees which, that counts too (privacy/poisson.py).

A release from a table is counted by the table's own integers: the worst pair of inputs, as `pld.dominating` finds it.
Which features a record releases is picked without a look at them, so a pick tells nothing, and the worst pair of
records differs in every feature. Where only an epsilon is known, the table counts as the worst mechanism of that
epsilon, randomised response on the whole record, which every mechanism of that epsilon can be computed from (Kairouz,
Oh and Viswanath 2015).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.privacy import pld
from sensorsim.privacy.rounded import epsilon as rounded_up

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

Part = tuple[float, Callable[[float, float], pld.PLD], int]  # largest loss, its distribution, how many of them
LEAST_DELTA = 1e-12  # below, differences of floats say nothing
MOST_LOSS = 500.0  # of one draw; beyond, exp leaves the floats, and basic composition is all that is said
_MOST_CELLS = 1 << 22


class Covers(Enum):
    """What an epsilon speaks of. The value is for a table; `sentence` says it in full."""

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
    """How a mechanism is used. What it does not use, it does not read."""

    epsilon: float | None = None  # nominal, of a record
    table: "NoiseTable | None" = None  # that a release draws from, in place of an epsilon
    scale: float | None = None  # of Laplace noise, in place of the one that the nominal epsilon gives
    noise_multiplier: float | None = None  # standard deviation of Gaussian noise over C
    draws: int = 1  # how often fresh noise is drawn for a record: 1 if drawn once and reused, else the epochs
    records: int = 1  # of one person
    batch: int = 1  # records that share one noisy sum
    rate: float = 1.0  # with which each record joins each of `draws` Gaussian sums by chance: Poisson sampling
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
    """epsilon at delta, what it covers and why; `basic` is the epsilon of basic composition, with delta = 0."""

    epsilon: float
    delta: float
    covers: Covers
    why: str
    basic: float


def unbounded(why: str) -> Spent:
    """No epsilon holds, and why."""
    return Spent(math.inf, 0.0, Covers.NOTHING, why, math.inf)


def composed(parts: Sequence[Part], use: Use, covers: Covers, why: str, proved: Decimal | None = None) -> Spent:
    """Compose the parts of one draw of a record over all draws and records; by basic composition where that is less.

    `proved` is the epsilon of one draw where a certificate gives it.
    """
    once = sum(loss * times for loss, _, times in parts) if proved is None else float(proved)
    total = use.draws * use.records
    basic = once * total if proved is None else float(proved * total)
    reached = basic if total == 1 or once > MOST_LOSS else _by_distributions(parts, total, use.delta)
    pure = total == 1 or basic <= reached
    often = "noise drawn once per record" if use.draws == 1 else f"fresh noise in each of {use.draws} draws"
    many = f", {use.records} records of one person" if use.records > 1 else ""
    words = f"{often}{many}; one draw of a record is {rounded_up(once)}; {why}"
    return Spent(basic if pure else reached, 0.0 if pure else use.delta, covers, words, basic)


def released(use: Use, covers: Covers, why: str) -> Spent:
    """Compose releases through the table of the use, or through the worst table of its epsilon."""
    from sensorsim.privacy.certificate import certify

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
    """Return counts of two releases of one value that are told apart at least as well as those of any two inputs."""
    return pld.dominating(permutations(table.extremes(), 2))


def of_releases(table: "NoiseTable", releases: int, delta: float) -> tuple[float, float]:
    """Return the epsilon of so many releases of one person: basic, and at delta by distributions, never more."""
    if releases < 1:
        return 0.0, 0.0
    spent = released(Use(table=table, draws=releases, delta=delta), Covers.RELEASE, "certified releases")
    return spent.basic, spent.epsilon


def gaussian(multiplier: float, use: Use, covers: Covers, why: str) -> Spent:
    """Gaussian noise of multiplier·C on sums of clipped parts: replacing a record moves one sum of a draw by 2C.

    The records of one person may meet in one sum, which they then move by 2C each: Gaussian losses add in squares over
    sums, and in full within one. Under Poisson sampling any of them may meet in any sum.
    """
    if use.rate < 1:
        return _by_chance(multiplier, use, covers, why)
    mu = 2 * math.sqrt(use.draws * sum(size**2 for size in shared_sums(use.records, use.batch))) / multiplier
    reached = gaussian_epsilon(mu, use.delta)
    many = f", {use.records} records of one person in batches of {use.batch}" if use.records > 1 else ""
    words = f"Gaussian noise of {multiplier:.4g}·C, {use.draws} draws{many}; {why}; nothing is claimed for sampling"
    return Spent(reached, use.delta, covers, words, math.inf)


def _by_chance(multiplier: float, use: Use, covers: Covers, why: str) -> Spent:
    from sensorsim.privacy import poisson

    def reached(relation: tuple[tuple[int, int], ...]) -> float:
        return poisson.epsilon(multiplier, use.rate, use.draws, use.delta, use.records, relation)

    many = f", {use.records} records of one person" if use.records > 1 else ""
    words = (
        f"Gaussian noise of {multiplier:.4g}·C in {use.draws} steps, which a record joins by chance with probability "
        f"{use.rate:.4g} (Poisson sampling){many}; {why}; epsilon is for records that are replaced, with the number of "
        f"records public: were they removed or added, it would be {reached(poisson.REMOVED):.4g}"
    )
    return Spent(reached(poisson.REPLACED), use.delta, covers, words, math.inf)


def multiplier_of(use: Use) -> float:
    """The noise multiplier that is given, or the one with which a record spends its nominal epsilon."""
    if use.noise_multiplier is not None:
        return use.noise_multiplier
    if use.epsilon is None:
        raise InputError("there is neither an epsilon nor a noise_multiplier; give one of the two.")
    if use.rate == 1:
        return noise_multiplier_for(use.epsilon, use.delta, use.draws)
    from sensorsim.privacy import poisson

    return poisson.multiplier_for(use.epsilon, use.delta, use.draws, use.rate)


def shared_sums(records: int, batch: int) -> list[int]:
    """How many of a person's records each sum holds where as many as can be meet: the worst order of records."""
    full, rest = divmod(records, batch)
    return [batch] * full + [rest] * (rest > 0)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Delta of Gaussian noise moved by mu standard deviations (Balle and Wang 2018); k draws are mu·sqrt(k)."""
    first = 0.5 * math.erfc(-(mu / 2 - epsilon / mu) / math.sqrt(2))
    second = 0.5 * math.erfc((mu / 2 + epsilon / mu) / math.sqrt(2))
    return max(0.0, first - math.exp(epsilon) * second) if second > 0 else first


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of Gaussian noise at delta."""
    return _solve(lambda e: gaussian_delta(mu, e) <= delta)


@lru_cache(maxsize=64)
def noise_multiplier_for(epsilon: float, delta: float, draws: int) -> float:
    """Standard deviation over C with which `draws` noisy clipped sums of a record are (epsilon, delta)-private."""
    return 2 * math.sqrt(draws) * _solve(lambda inverse: inverse > 0 and gaussian_delta(1 / inverse, epsilon) <= delta)


def check(name: str, use: Use, gaussian_noise: bool, needs_budget: bool) -> None:
    """Refuse numbers that make no sense, alone or together."""
    if needs_budget and use.epsilon is None and use.scale is None and use.noise_multiplier is None:
        raise InputError(f"{name} needs a nominal epsilon, or a noise scale; give one of the two.")
    if gaussian_noise and use.scale is not None:
        raise InputError(f"{name} takes an epsilon or a noise_multiplier (standard deviation over C), not a scale.")
    if not gaussian_noise and use.noise_multiplier is not None:
        raise InputError(f"{name} has no Gaussian noise, so it takes no noise_multiplier; leave it out.")
    for what, value in (("epsilon", use.epsilon), ("scale", use.scale), ("noise multiplier", use.noise_multiplier)):
        if value is not None and not (isinstance(value, int | float) and value > 0 and math.isfinite(value)):
            raise InputError(f"{what} is {value}; give a number above 0.")
    for what in ("draws", "records", "batch", "features", "release", "hidden"):
        count = getattr(use, what)
        if not isinstance(count, int) or count < 1:
            raise InputError(f"{what} is {count}; give a whole number of 1 or more.")
    if not 0 < use.rate <= 1:
        raise InputError(f"rate is {use.rate}; a record joins a sum with a probability above 0 and at most 1.")
    if use.rate < 1 and not gaussian_noise:
        raise InputError("sampling by chance is counted with Gaussian noise alone; leave the rate at 1.")
    if use.release > use.features:
        raise InputError(f"release is {use.release} of {use.features} features; give at most as many as there are.")
    if not 0 < use.C < math.inf:
        raise InputError(f"C is {use.C}; a clipping norm is a number above 0.")
    for what, value in (("c", use.c), ("sigma", use.sigma)):
        if not 0 <= value < math.inf:
            raise InputError(f"{what} is {value}; give a number of at least 0.")
    if use.point not in ("zero", "prediction"):
        raise InputError(f"point is {use.point}; gradients are taken at `zero` or at the `prediction`.")
    if use.noise not in ("gaussian", "laplace"):
        raise InputError(f"noise is {use.noise}; it is `gaussian` or `laplace`.")
    if use.forward not in ("raw", "released"):
        raise InputError(f"forward is {use.forward}; the forward pass reads `raw` or `released` values.")
    if not LEAST_DELTA <= use.delta < 1:
        raise InputError(f"delta is {use.delta}; give a number from {LEAST_DELTA:g} to below 1.")


def _by_distributions(parts: Sequence[Part], total: int, delta: float) -> float:
    span = sum(loss * times for loss, _, times in parts) * total
    finest = min(loss for loss, _, _ in parts)
    step = min(max(2 * span / pld.CELLS, 1e-6), finest / 8)
    step = finest / math.ceil(finest / step)  # randomised response then stands on the grid, and is exact
    if 2 * span / step > _MOST_CELLS:
        return math.inf  # too long for the grid: basic composition stands
    return pld.compose([(kind(loss, step), times * total) for loss, kind, times in parts]).epsilon(delta)


def _solve(enough: Callable[[float], bool]) -> float:
    """The smallest positive number that is enough, to 1e-12 of itself; on the safe side."""
    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
        if high > 1e6:
            return math.inf
    if enough(0.0):
        return 0.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
