"""What has been spent: this mechanism, at this scale, with so many draws per record: which epsilon, and what it
covers.

Neighbours are two data sets that differ in one record (or, with `records`, in all the records of one user),
replaced by any other. Nothing is claimed for sampling or shuffling: the training here visits every record in every
epoch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from sensorsim.errors import InputError
from sensorsim.privacy import pld, sensitivity

MECHANISMS = ("none", "spof", "fm", "exact", "sampled", "dpsgd", "dpsgd-weights")
NOTHING, COEFFICIENTS, WEIGHTS = "nothing", "coefficients only", "coefficients and trained weights"
Part = tuple[float, Callable[[float, float], pld.PLD], int]  # largest loss, its distribution, how many of them
_MOST_CELLS = 1 << 22


@dataclass(frozen=True)
class Spent:
    """epsilon at delta, what it covers and why; `basic` is the epsilon of basic composition, with delta = 0."""

    epsilon: float
    delta: float
    covers: str
    why: str
    basic: float


def spent(
    mechanism: str,
    epsilon: float | None = None,
    *,
    scale: float | None = None,
    draws: int = 1,
    records: int = 1,
    features: int = 14,
    release: int = 1,
    C: float = 4.0,
    noise_multiplier: float | None = None,
    forward: str = "raw",
    delta: float = 1e-6,
    certified: bool = False,
) -> Spent:
    """The privacy spent on one record, or on one user with `records` records.

    epsilon, the nominal budget of a record, sets the noise scale as `nominal_scale` says, unless `scale` gives it.
    draws is how often fresh noise was drawn for a record: 1 if drawn once and reused, the epochs if drawn in each.
    forward says whether the forward pass reads "raw" or "released" values. `certified` is for exact and sampled
    releases from a stairs table: epsilon is then the bound of its certificate, whatever the shape of the noise.
    """
    _check(mechanism, epsilon, scale, draws, records, forward, delta, noise_multiplier)
    if mechanism == "none":
        return Spent(math.inf, 0.0, NOTHING, "no noise is added", math.inf)
    if mechanism == "dpsgd-weights":
        return _gaussian(noise_multiplier, epsilon, draws * records, delta)
    covers, reads = _covers(mechanism, forward)
    if certified:
        if mechanism not in ("exact", "sampled") or epsilon is None:
            raise InputError("certified noise is for exact and sampled, and needs the epsilon of the certificate.")
        parts: list[Part] = [(epsilon, pld.pure, 1)]
    else:
        scale = scale or nominal_scale(mechanism, epsilon or 0.0, features, release, C)
        parts = _parts(mechanism, scale, features, release, C)
    once = sum(loss * times for loss, _, times in parts)
    total = draws * records
    basic = once * total
    reached = basic if total == 1 else _composed(parts, total, delta)
    pure = total == 1 or basic <= reached
    often = "noise drawn once per record" if draws == 1 else f"fresh noise in each of {draws} draws"
    many = f", {records} records of one user" if records > 1 else ""
    why = f"{often}{many}; one draw of a record is {once:.4g}; {reads}"
    return Spent(basic if pure else reached, 0.0 if pure else delta, covers, why, basic)


def nominal_scale(mechanism: str, epsilon: float, features: int = 14, release: int = 1, C: float = 4.0) -> float:
    """The Laplace scale for a nominal epsilon: as printed for spof, fm and dpsgd, what holds for exact and sampled."""
    if mechanism in ("spof", "fm"):
        return sensitivity.spof(features) / (sensitivity.JOINT_RELEASE_FACTOR * epsilon)
    if mechanism == "dpsgd":
        never_clips = sensitivity.largest_gradient_norm(0.0, features) <= C
        printed = sensitivity.dpsgd_unclipped_printed(0.0, features)
        return (printed if never_clips else sensitivity.dpsgd_clipped_printed(C, features)) / epsilon
    if mechanism in ("exact", "sampled"):
        return (features if mechanism == "exact" else release) / epsilon
    raise InputError(f"{mechanism} has no Laplace scale; give spof, fm, exact, sampled or dpsgd.")


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Delta of Gaussian noise moved by mu standard deviations (Balle and Wang 2018); k draws are mu·sqrt(k)."""
    first = 0.5 * math.erfc(-(mu / 2 - epsilon / mu) / math.sqrt(2))
    second = 0.5 * math.erfc((mu / 2 + epsilon / mu) / math.sqrt(2))
    return max(0.0, first - math.exp(epsilon) * second) if second > 0 else first


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of Gaussian noise at delta."""
    return _solve(lambda e: gaussian_delta(mu, e) <= delta)


def noise_multiplier_for(epsilon: float, delta: float, draws: int) -> float:
    """Standard deviation over C with which `draws` noisy clipped gradients of a record are (epsilon, delta)-private."""
    return 2 * math.sqrt(draws) * _solve(lambda inverse: inverse > 0 and gaussian_delta(1 / inverse, epsilon) <= delta)


def _gaussian(multiplier: float | None, epsilon: float | None, draws: int, delta: float) -> Spent:
    if multiplier is None:
        multiplier = noise_multiplier_for(epsilon or 0.0, delta, draws)
    reached = gaussian_epsilon(2 * math.sqrt(draws) / multiplier, delta)
    why = (
        f"Gaussian noise of {multiplier:.4g}·C on clipped weight gradients, {draws} of them; replacing a record moves "
        "one by 2C; no amplification by sampling is claimed"
    )
    return Spent(reached, delta, WEIGHTS, why, math.inf)


def _covers(mechanism: str, forward: str) -> tuple[str, str]:
    if forward == "released" and mechanism != "dpsgd":
        return WEIGHTS, "the forward pass reads released values, so the weights are post-processing"
    what = "the gradients of z" if mechanism == "dpsgd" else "the coefficients"
    return COEFFICIENTS, f"the forward pass reads raw values, so {what} are covered and the trained weights are not"


def _parts(mechanism: str, scale: float, n: int, release: int, C: float) -> list[Part]:
    """The largest loss of each noisy number of a record: how far another record moves it, over the scale."""
    if mechanism in ("spof", "fm"):
        return [(1 / scale, pld.laplace, n), (0.5 / scale, pld.laplace, n)]
    if mechanism == "dpsgd" and sensitivity.dpsgd(C, n) < n:
        # Where clipping keeps the L1 norm below n, a gradient moves in no fixed direction: only that bound is known.
        return [(sensitivity.dpsgd(C, n) / scale, pld.pure, 1)]
    return [(1 / scale, pld.laplace, release if mechanism == "sampled" else n)]


def _composed(parts: list[Part], total: int, delta: float) -> float:
    span = sum(loss * times for loss, _, times in parts) * total
    finest = min(loss for loss, _, _ in parts)
    step = min(max(2 * span / pld.CELLS, 1e-6), finest / 8)
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


def _check(
    mechanism: str,
    epsilon: float | None,
    scale: float | None,
    draws: int,
    records: int,
    forward: str,
    delta: float,
    multiplier: float | None,
) -> None:
    if mechanism not in MECHANISMS:
        raise InputError(f"mechanism is {mechanism}; give one of {', '.join(MECHANISMS)}.")
    if mechanism != "none" and epsilon is None and scale is None and multiplier is None:
        raise InputError(f"{mechanism} needs a nominal epsilon, or a noise scale; give one of the two.")
    if mechanism == "dpsgd-weights" and scale is not None:
        raise InputError(
            "dpsgd-weights takes an epsilon or a noise_multiplier (standard deviation over C), not a scale."
        )
    if mechanism != "dpsgd-weights" and multiplier is not None:
        raise InputError(f"{mechanism} takes an epsilon or a scale; a noise_multiplier is for dpsgd-weights.")
    for name, value in (("epsilon", epsilon), ("scale", scale), ("noise multiplier", multiplier)):
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise InputError(f"{name} is {value}; give a number above 0.")
    if draws < 1 or records < 1:
        raise InputError(f"draws is {draws} and records is {records}; both are 1 or more.")
    if forward not in ("raw", "released"):
        raise InputError(f"forward is {forward}; the forward pass reads `raw` or `released` values.")
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta}; give a number between 0 and 1.")
