"""Composition: the epsilon and delta that a use of noise spends, and what they cover. Mechanisms say what they draw.

Neighbours are two data sets that differ in one record (or, with `records`, in all the records of one person), replaced
by any other. Nothing is claimed for the order of records in an epoch. Poisson sampling is counted (amplification.py).

A release from a table is counted by the table's own integers: the worst pair of inputs, as `dominating` finds it.
Features are picked independently of their values, so a pick reveals nothing, and the worst pair of records differs in
every feature. If only an epsilon is known, the table counts as the worst mechanism of that epsilon: randomised
response on the whole record, from which every mechanism of that epsilon can be computed (Kairouz, Oh and Viswanath
2015).

Privacy-loss distributions are on a grid, composed by FFT with safe rounding. A pair of distributions (P, Q) has the
loss log(P/Q) under P. A loss between two grid points is split between them so that the masses under P and under Q are
both preserved; the hockey-stick curve then touches the true one at every grid point and lies above it between ("connect
the dots", Doroshenko et al. 2022). A split moves no loss up by more than one grid step, so the curve of n composed
pairs, read n steps further right, lies below the true one: that brackets the discretisation error.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from typing import Any

from sensorsim._util.errors import InputError

CELLS = 1 << 19  # grid points of a composition, unless a step is given
LEAST_DELTA = 1e-12  # below, differences of floats are noise
MOST_LOSS = 500.0  # of one draw; above, exp overflows and only basic composition is used
_MOST_CELLS = 1 << 22
_SIGNIFICANT = 12  # digits of a float that belong to an epsilon, as many as a certificate has; later ones are rounding
CHOICES = {"point": ("zero", "prediction"), "noise": ("gaussian", "laplace"), "forward": ("raw", "released")}


# ---- an epsilon in few digits: rounded up, so that it is never less than what was proved or accounted


def format_epsilon(value: float | Decimal | Fraction, digits: int = 4) -> str:
    """Format an epsilon with `digits` significant digits, rounded up; a whole number from 1000 on in full."""
    exact = _to_decimal(value)
    if not exact.is_finite():
        return "no bound"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).plus(exact)
    whole = rounded >= 1000 and rounded == rounded.to_integral_value()
    return f"{rounded:f}" if whole else f"{float(rounded):.{digits}g}"


def format_epsilon_column(value: float | Decimal | Fraction | None, decimals: int) -> str:
    """Format an epsilon with `decimals` digits after the point, rounded up, for a column; a dash for no bound."""
    if value is None or not _to_decimal(value).is_finite():
        return "–"
    return f"{_to_decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_CEILING):f}"


def _to_decimal(value: float | Decimal | Fraction) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, Fraction):
        context = Context(prec=_SIGNIFICANT, rounding=ROUND_CEILING)
        return context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return Context(prec=_SIGNIFICANT, rounding=ROUND_HALF_EVEN).create_decimal(repr(float(value)))


# ---- privacy-loss distributions


@dataclass(frozen=True)
class PLD:
    """Masses at (first + i)*step, a mass at infinity, the number of composed pairs, and the error of the sums."""

    step: float
    first: int
    masses: Any
    infinite: float
    composed: int = 1
    error: float = 0.0

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of the hockey-stick divergence at epsilon, error included."""
        return min(1.0, self._divergence(epsilon) + self.error)

    def delta_below(self, epsilon: float) -> float:
        """Return a lower bound of it: the curve one grid step further right for each composed pair."""
        return max(0.0, self._divergence(epsilon + self.composed * self.step) - self.error)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon, to 1e-9, at which `delta` is enough; infinity if none is."""
        low, high = 0.0, max(0.0, (self.first + len(self.masses)) * self.step)
        if self.delta(high) > delta:
            return math.inf
        if self.delta(low) <= delta:
            return 0.0
        while high - low > 1e-9 * max(1.0, high):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def _divergence(self, epsilon: float) -> float:
        import numpy as np

        start = max(0, math.floor(epsilon / self.step) - self.first)
        losses = (self.first + np.arange(start, len(self.masses))) * self.step
        return float(self.infinite + (self.masses[start:] * np.maximum(0.0, -np.expm1(epsilon - losses))).sum())


Part = tuple[float, Callable[[float, float], PLD], int]  # largest loss, its distribution, number of draws


def from_cells(cells_p: Any, cells_q: Any, step: float, first: int, infinite: float) -> PLD:
    """Split each cell's masses between its two grid points: a + b = p and a*exp(-low) + b*exp(-high) = q."""
    import numpy as np

    low = (first + np.arange(len(cells_p))) * step
    b = np.clip((cells_p - cells_q * np.exp(low)) / -math.expm1(-step), 0.0, cells_p)
    masses = np.append(cells_p - b, 0.0)
    masses[1:] += b
    return PLD(step, first, masses, infinite)


def from_counts(p: Any, q: Any, step: float) -> PLD:
    """Return the PLD of two distributions given as counts over the same outputs, of equal sums."""
    import numpy as np

    total = p.sum()
    finite = (p > 0) & (q > 0)
    cell = np.floor(np.log(p[finite] / q[finite]) / step).astype(np.int64)
    first = int(cell.min()) if len(cell) else 0
    size = int(cell.max()) - first + 2 if len(cell) else 1
    cells_p, cells_q = (np.bincount(cell - first, side[finite] / total, size) for side in (p, q))
    return from_cells(cells_p, cells_q, step, first, float(p[q == 0].sum() / total))


def laplace(shift: float, step: float) -> PLD:
    """Return the PLD of Laplace noise of scale 1 and its copy moved by `shift`: two atoms and a density between."""
    import numpy as np

    first, last = math.floor(-shift / step), math.floor(shift / step)
    edges = np.clip(np.arange(first, last + 2) * step, -shift, shift)
    cells_p = np.append(np.diff(np.exp((edges - shift) / 2)) / 2, 0.0)  # density exp((loss - shift)/2)/4 under P
    cells_q = np.append(-np.diff(np.exp((-edges - shift) / 2)) / 2, 0.0)  # and exp((-loss - shift)/2)/4 under Q
    cells_p[0] += math.exp(-shift) / 2
    cells_q[0] += 0.5
    cells_p[last - first] += 0.5
    cells_q[last - first] += math.exp(-shift) / 2
    return from_cells(cells_p, cells_q, step, first, 0.0)


def pure(epsilon: float, step: float) -> PLD:
    """Return the worst PLD of any mechanism with delta = 0: randomised response."""
    import numpy as np

    high = 1 / (1 + math.exp(-epsilon))
    pair = np.array([high, high * math.exp(-epsilon)])  # 1 - high would lose the digits of a small number
    return from_counts(pair, pair[::-1], step)


def dominating(pairs: Iterable[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return counts (p, q) that dominate each of these pairs of counts of the same sum.

    The hockey stick of a pair at alpha is the most of p(S) - alpha*q(S) over sets S of outputs. So the largest curve of
    all pairs is that of the upper hull of all points (q(S), p(S)), with S the outputs of the largest ratios; a side of
    the hull is an output of the pair found. All is in integers, and ratios of counts below 2^26 differ as floats.
    """
    import numpy as np

    best: dict[int, int] = {}
    for p, q in pairs:
        p, q = np.asarray(p), np.asarray(q)
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(np.nan_to_num(-(p / q)), kind="stable")
        for across, up in zip(q[order].cumsum().tolist(), p[order].cumsum().tolist(), strict=True):
            best[across] = max(up, best.get(across, 0))
    hull: list[tuple[int, int]] = [(0, 0)]
    for x, y in sorted(best.items()):
        while len(hull) > 1:  # drop the last point unless the path turns right there
            (ax, ay), (bx, by) = hull[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) < 0:
                break
            hull.pop()
        hull.append((x, y))
    sides = np.diff(np.array(hull), axis=0)
    return sides[:, 1], sides[:, 0]


def compose(parts: Sequence[tuple[PLD, int]]) -> PLD:
    """Compose independent releases on one grid: part i `times` times. One FFT per part, one back."""
    import numpy as np

    step = parts[0][0].step
    if any(part.step != step for part, _ in parts):
        raise ValueError("privacy-loss distributions of different steps cannot be composed")
    length = sum((len(part.masses) - 1) * times for part, times in parts) + 1
    size = 1 << (length - 1).bit_length()
    product = np.ones(size // 2 + 1, dtype=complex)
    finite, composed = 1.0, 0
    for part, times in parts:
        product *= np.fft.rfft(part.masses, size) ** times
        finite *= (1 - part.infinite) ** times
        composed += times * part.composed
    masses = np.maximum(0.0, np.fft.irfft(product, size)[:length])
    # Every factor has modulus at most 1, so the powers lose at most `composed` times the rounding of one transform
    # (log2(size) units in the last place of the 2-norm, which is at most 1); over `length` points the 1-norm is at most
    # sqrt(length) times that. A split is off by a few units in the last place of the mass it moves, times its loss.
    reach = max(max(-part.first, part.first + len(part.masses)) for part, _ in parts) * step
    error = 2.0**-53 * (math.sqrt(length) * (composed + 1) * size.bit_length() + 8 * composed * (1 + reach))
    first = sum(part.first * times for part, times in parts)
    return PLD(step, first, masses, 1 - finite, composed, min(1.0, error))


# ---- what a use spends


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
_STEPS = "the weights and every step towards them"
_FLOATS = "as far as noise that is added in floats is that of real numbers: no proof covers the last bits"
_SENTENCES = {
    "NOTHING": "nothing",
    "COEFFICIENTS": f"the perturbed coefficients alone: {_RAW}",
    "GRADIENTS": f"the perturbed z-gradients alone: {_RAW}",
    "RELEASE": "everything computed from the release, the weights included",
    "STEPS": f"{_STEPS}, where the noise is added before anyone sees them",
    "REAL_STEPS": f"{_STEPS}, {_FLOATS}",
}


@dataclass(frozen=True)
class Use:
    """How a mechanism is used. A mechanism reads the fields that matter to it."""

    epsilon: float | None = None  # nominal, per record
    table: Any = None  # the NoiseTable that a release draws from, instead of an epsilon
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
    losses, total = sum(loss * times for loss, _, times in parts), use.draws * use.records
    once, basic = (losses, losses * total) if proved is None else (float(proved), float(proved * total))
    reached = math.inf
    if total > 1 and once <= MOST_LOSS:
        span, finest = losses * total, min(loss for loss, _, _ in parts)
        step = min(max(2 * span / CELLS, 1e-6), finest / 8)
        step = finest / math.ceil(finest / step)  # randomised response is then on the grid, and exact
        if 2 * span / step <= _MOST_CELLS:  # above, too long for the grid: use basic composition
            distributions = [(kind(loss, step), times * total) for loss, kind, times in parts]
            reached = compose(distributions).epsilon(use.delta)
    basic_suffices = basic <= reached
    often = "noise drawn once per record" if use.draws == 1 else f"fresh noise in each of {use.draws} draws"
    many = f", {use.records} records of one person" if use.records > 1 else ""
    words = f"{often}{many}; one draw of a record is {format_epsilon(once)}; {why}"
    return Spent(basic if basic_suffices else reached, 0.0 if basic_suffices else use.delta, covers, words, basic)


def released(use: Use, covers: Covers, why: str) -> Spent:
    """Compose releases through the table of the use, or through the worst table of its epsilon."""
    if use.table is None:
        assert use.epsilon is not None
        worst = f"{why}; the worst mechanism of that epsilon"
        return composed([(use.epsilon, pure, 1)], use, covers, worst, Decimal(repr(float(use.epsilon))))
    proof = prove(use.table)
    if proof.epsilon_record is None or proof.epsilon_release is None or not use.table.for_releases:
        return unbounded(f"this {use.table.kind} table proves no epsilon")
    pair = worst_pair(use.table)
    part = (float(proof.epsilon_release), lambda _, step: from_counts(*pair, step), use.table.release)
    return composed([part], use, covers, f"{why}; by the counts of the table", proof.epsilon_record)


@lru_cache(maxsize=64)
def prove(table: Any) -> Any:
    """Return the certificate that the counts of a table prove; once for each table."""
    return table.certify()


@lru_cache(maxsize=64)
def worst_pair(table: Any) -> tuple[Any, Any]:
    """Return counts of two releases of one value that dominate those of any two inputs."""
    return dominating(permutations(table.extremes(), 2))


def of_releases(table: Any, releases: int, delta: float) -> tuple[float, float]:
    """Return the epsilon of `releases` releases of one person: basic, and at delta by distributions, never more."""
    if releases < 1:
        return 0.0, 0.0
    spent = released(Use(table=table, draws=releases, delta=delta), Covers.RELEASE, "certified releases")
    return spent.basic, spent.epsilon


def gaussian(multiplier: float, use: Use, covers: Covers, why: str) -> Spent:
    """Account for Gaussian noise of multiplier·C on clipped sums: replacing a record moves one sum of a draw by 2C.

    Losses add in squares over sums, and in full within one. Under Poisson sampling any records may meet in any sum.
    """
    from sensorsim.accounting import amplification

    many = f", {use.records} records of one person" if use.records > 1 else ""
    if use.rate == 1:
        mu = 2 * math.sqrt(use.draws * sum(size**2 for size in shared_sums(use.records, use.batch))) / multiplier
        many += f" in batches of {use.batch}" if many else ""
        words = f"Gaussian noise of {multiplier:.4g}·C, {use.draws} draws{many}; {why}; nothing is claimed for sampling"
        return Spent(amplification.gaussian_epsilon(mu, use.delta), use.delta, covers, words, math.inf)
    replaced, removed = (
        amplification.poisson_epsilon(multiplier, use.rate, use.draws, use.delta, use.records, relation)
        for relation in (amplification.REPLACED, amplification.REMOVED)
    )
    words = (
        f"Gaussian noise of {multiplier:.4g}·C in {use.draws} steps, which a record joins by chance with probability "
        f"{use.rate:.4g} (Poisson sampling){many}; {why}; epsilon is for records that are replaced, with the number of "
        f"records public: were they removed or added, it would be {removed:.4g}"
    )
    return Spent(replaced, use.delta, covers, words, math.inf)


def multiplier_of(use: Use) -> float:
    """Return the noise multiplier that is given, or the one with which a record spends its nominal epsilon."""
    from sensorsim.accounting import amplification

    if use.noise_multiplier is not None:
        return use.noise_multiplier
    if use.epsilon is None:
        raise InputError("there is neither an epsilon nor a noise_multiplier; give one of the two.")
    if use.rate == 1:
        return amplification.noise_multiplier_for(use.epsilon, use.delta, use.draws)
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
    if not gaussian_noise and use.rate < 1:
        raise InputError("Poisson sampling is counted with Gaussian noise alone; leave the rate at 1.")
    for what in ("epsilon", "scale", "noise_multiplier", "C", "c", "sigma"):
        value, zero = getattr(use, what), what in ("c", "sigma")
        number = isinstance(value, int | float) and math.isfinite(value)
        if value is not None and not (number and (value > 0 or (zero and value == 0))):
            least = "at least 0" if zero else "above 0"
            raise InputError(f"{what.replace('_', ' ')} is {value}; give a number {least}.")
    for what in ("draws", "records", "batch", "features", "release", "hidden"):
        count = getattr(use, what)
        if not isinstance(count, int) or count < 1:
            raise InputError(f"{what} is {count}; give a whole number of 1 or more.")
    if not 0 < use.rate <= 1:
        raise InputError(f"rate is {use.rate}; a record joins a sum with a probability above 0 and at most 1.")
    if use.release > use.features:
        raise InputError(f"release is {use.release} of {use.features} features; give at most as many as there are.")
    for what, allowed in CHOICES.items():
        if getattr(use, what) not in allowed:
            raise InputError(f"{what} is {getattr(use, what)}; choose {' or '.join(allowed)}.")
    if not LEAST_DELTA <= use.delta < 1:
        raise InputError(f"delta is {use.delta}; give a number from {LEAST_DELTA:g} to below 1.")
