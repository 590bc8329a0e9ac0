"""Confidence intervals for the mean of x that hold for any records, from the first packet on.

The target is m, the mean of x over the N records that a feature was received of (`records`), or over the population of
which those N are a random sample (`people`). Each x is fixed, unknown and anywhere in 0 … 1. The mean of the unbiased
values is s. The lower limit is the smallest m at which a mean of s or more has a probability above 2.5 % for some
records of mean m; the upper limit is its mirror image.

The worst records. Records are independent, so log E[exp(l·value)] adds up over them; its mean over records of mean m is
at most its concave envelope in x, taken at m. That, less l·s, at its minimum over l, is the exponent of the tail
(Chernoff), and the mixture of two x that attains it represents the worst records.

The worst people. A record that is sampled at random has a random x, so the concave envelope is that of E[exp(l·value)]
itself, and the logarithm is taken at m. For N records sampled from M without replacement this bounds the exponent too:
E[exp(l·sum)] is then the mean of the products of N of the M single ones, which is at most the N-th power of their mean
(Maclaurin). This interval is the wider one: it includes the spread of people at its worst, 0 and 1.

two symbols    Clopper and Pearson's limits on the count of ones. Proved: from one above its mean on, a sum of unlike
               Bernoulli draws has at most the tail of the binomial of the same mean (Hoeffding 1956, theorem 5), and
               the limits of two ones or more are in that range. For a single one, P(S >= 1) <= E[S]. The same for
               people: ones among a random sample of unlike records are a sum of independent draws too (Borcea, Brändén
               and Liggett 2009: a uniform choice of N is strongly Rayleigh, and stays so when it is thinned).
few packets    Chernoff, for fewer than 10 or than exp(epsilon)/10, where a single rare symbol decides the tail. Proved
               for rows, every x and every N; for stairs except for x between the points of a grid of 1/128. 39 % wider
               than necessary where N is large.
otherwise      the saddlepoint formula of Lugannani and Rice, in the form of Barndorff-Nielsen's r*, at the worst
               records; half a step between values is added because sums are discrete. Not proved but measured, by
               exact convolution and by simulation, in test_receive_intervals.py: epsilon 0.1 … 8, 10 … 10^5
               packets, x on knots, between them, of 0 and 1, uniform and beta; the probability of a miss was at most
               2.5 % on either side. A fiftieth of that is reserved for what the formula leaves out. For large N the
               half width is 1.97 standard deviations of the worst records of mean m, and less than 1.96 cannot hold.
               For people the same, measured for samples of people of 0 and 1, alike, uniform and beta; the step
               between values is that of people of 0 and 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sensorsim._util.errors import InputError
from sensorsim.noise.certificate import certify

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

Reals = npt.NDArray[np.float64]

MOST_VALUES = 513  # more are spread over as many points, which preserves their means
FINE, COARSE = 128, 32  # steps of x; both grids include the knots of every rows table
HEAVY = 0.02  # probability at some x from which a value counts as a single one
LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
RESERVED = 0.02  # of TAIL, for the saddlepoint formula
FEW = 10
RARE = 0.1  # rarest symbols to expect among the packets before the saddlepoint formula is used
MOST_EXPONENT = 400.0  # exp of it is a float
STRAIGHT = 1e-12  # second difference below which a probability counts as linear in x
RECORDS, PEOPLE = "records", "people"


@dataclass(frozen=True, eq=False)
class Law:
    """Distribution of one unbiased value of a table: chance[i, j] of values[j] at x[i].

    It is linear between x, which is exact for rows. Denser values are split between two points each, and x between two
    points of the grid is a mixture of both. Either preserves the mean and adds a little spread, so bounds for the law
    hold for the table.
    """

    values: Reals  # ascending, 0 … 1 being the range of x
    chance: Reals
    step: float  # largest gap between single values, times their weight: how discrete sums are
    epsilon: float  # of one value

    @cached_property
    def x(self) -> Reals:
        return np.linspace(0.0, 1.0, len(self.chance))

    def chance_at(self, x: Reals) -> Reals:
        """Return the probability of each value at x (…), as (…, values)."""
        place = x * (len(self.x) - 1)
        left = np.minimum(place.astype(np.int64), len(self.x) - 2)
        share = (place - left)[..., None]
        return np.asarray(self.chance[left] * (1 - share) + self.chance[left + 1] * share)

    @cached_property
    def mirrored(self) -> "Law":
        """Return the law of 1 - value at 1 - x."""
        return Law(1 - self.values[::-1], np.ascontiguousarray(self.chance[::-1, ::-1]), self.step, self.epsilon)


@lru_cache(maxsize=16)
def law_of(table: "NoiseTable") -> Law:
    """Return the law of a certified table, from its counts."""
    sd, epsilon = table.estimate_sd, certify(table).epsilon_release
    assert sd is not None and epsilon is not None
    steps = min(FINE if sd < 1 else COARSE, 1 << table.frac_bits)
    every = np.unique(np.concatenate([_at(table, i, 2)[0] for i in range(3)]))
    points = every if len(every) <= MOST_VALUES else np.linspace(every[0], every[-1], MOST_VALUES)
    chance, heavy, weight = [], np.array([]), 0.0
    for i in range(steps + 1):
        values, each = _at(table, i, steps)
        left = np.clip(np.searchsorted(points, values, side="right") - 1, 0, len(points) - 2)
        share = (values - points[left]) / (points[left + 1] - points[left])  # this split preserves the mean
        split: Any = np.bincount(left, each * (1 - share), len(points)) + np.bincount(
            left + 1, each * share, len(points)
        )
        chance.append(split)
        single = each >= HEAVY
        heavy, weight = np.union1d(heavy, values[single]), max(weight, float(each[single].sum()))
    step = weight * float(np.diff(heavy).max(initial=0.0))
    return Law(points, np.stack(chance), step, float(epsilon))


def _at(table: "NoiseTable", i: int, steps: int) -> tuple[Reals, Reals]:
    """Return the unbiased values and their probabilities at x = i/steps."""
    released, counts = table.distribution((i << table.frac_bits) // steps)
    values: Any = table.estimate(released)
    return values, counts / counts.sum()


class Worst(NamedTuple):
    """Exponent log E[exp(l·(value - m))] of one of the worst records or people, and its first two derivatives."""

    log: float
    slope: float
    curvature: float


class Interval(NamedTuple):
    """A confidence interval within 0 … 1."""

    low: float
    high: float

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2


Search = Callable[[Law, float, float], Worst]


def mean_interval(law: Law, mean: float, count: int, of: str = RECORDS) -> Interval:
    """Return the interval of the mean of x over `count` records whose unbiased values have this mean.

    With `of="people"`, return that of the population of which these records are a random sample.
    """
    if of not in (RECORDS, PEOPLE):
        raise InputError(f"an interval of {of!r} is not known; give {RECORDS!r} or {PEOPLE!r}.")
    if count == 0:
        return Interval(0.0, 1.0)
    if len(law.values) == 2:  # the same for records and people
        low, mirrored = _lower_of_bits(law, mean, count), _lower_of_bits(law.mirrored, 1 - mean, count)
    else:
        low, mirrored = _lower(law, mean, count, of), _lower(law.mirrored, 1 - mean, count, of)
    return Interval(low, max(low, 1 - mirrored))


def _lower_of_bits(law: Law, mean: float, count: int) -> float:
    """Return Clopper and Pearson's lower limit; the probability of the larger of two values is linear in x."""
    from scipy.special import betaincinv

    small, large = map(float, law.values)
    ones = round((mean - small) / (large - small) * count)
    chance = TAIL / count * ones if ones < 2 else float(betaincinv(ones, count - ones + 1, TAIL))
    return min(1.0, max(0.0, small + chance * (large - small)))


def _lower(law: Law, mean: float, count: int, of: str) -> float:
    """Return the lower limit by the Chernoff bound or the saddlepoint formula."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    of_people = of == PEOPLE
    worst, step = (worst_people, _step_of_people(law)) if of_people else (worst_records, law.step)
    few = count < max(FEW, RARE * math.exp(law.epsilon))
    seen = mean if few else mean - step / 2 / count
    goal = math.sqrt(-2 * math.log(TAIL)) if few else -float(ndtri(TAIL * (1 - RESERVED)))
    top = min(1.0, seen)
    steep = 0.0  # l/(s - m) at the last m, where the next search starts; not at the ends, which are evaluated twice

    def beyond(m: float) -> float:
        nonlocal steep
        root, at, l = _saddlepoint(law, m, seen, worst, steep if of_people and 0 < m < top else 0.0)
        steep = l / (seen - m) if seen > m else 0.0
        # Chernoff: a mean of s or more has a probability of at most exp(-r²/2). Saddlepoint: it has nearly the tail of
        # a standard normal variable beyond r*. That formula is 0/0 next to m, far from any limit.
        r, u = math.sqrt(count) * root, math.sqrt(count) * at
        return r - goal if few or r <= 0.1 else r + math.log(u / r) / r - goal

    if top <= 0 or beyond(0.0) <= 0:
        return 0.0
    if beyond(top) >= 0:
        return top
    sd = math.sqrt(worst(law, 0.0, top).curvature / count)
    return float(brentq(beyond, 0.0, top, xtol=1e-6 * min(sd, 1.0)))


def _saddlepoint(law: Law, m: float, s: float, worst: Search, steep: float) -> tuple[float, float, float]:
    """Maximise l·(s - m) less the exponent of the worst; `steep` is a guess of l/(s - m), or 0.

    Return, for one record, the square root of twice the exponent of the tail, l·sqrt(curvature), and l.
    """
    if s <= m:
        return 0.0, 0.0, 0.0
    low, high = 0.0, MOST_EXPONENT / float(law.values[-1] - law.values[0])
    l = min((s - m) * steep if steep else (s - m) / worst(law, 0.0, m).curvature, high / 2)
    for _ in range(60):  # Newton within bounds: the worst may change between steps
        found = worst(law, l, m)
        low, high = (l, high) if found.slope < s - m else (low, l)
        next_l = l + (s - m - found.slope) / found.curvature if found.curvature > 0 else low
        if not low < next_l < high:
            next_l = (low + high) / 2
        if abs(next_l - l) <= 1e-7 * l:
            break
        l = next_l
    else:
        found = worst(law, l, m)
    root = math.sqrt(max(0.0, 2 * (l * (s - m) - found.log)))
    return root, l * math.sqrt(max(found.curvature, 1e-300)), l


def worst_records(law: Law, l: float, m: float) -> Worst:
    """Return the largest mean of log E[exp(l·(value - m))] over records of mean m, which two x around m attain."""
    moments = _moments(law.values, law.chance, l, m)
    logs = np.log1p(moments[:, 0])
    a, b, weight = _highest_chord(law.x, logs, m)
    first, second = _derivatives(moments[a]), _derivatives(moments[b])
    mixed = Worst(*((1 - weight) * p + weight * q for p, q in zip(first, second, strict=True)))
    # Between two x of the grid E[…] is linear, and its logarithm exceeds a chord by at most this.
    above = float(np.abs(np.diff(logs)).max()) ** 2 / 8
    return mixed._replace(log=mixed.log + above)


def worst_people(law: Law, l: float, m: float) -> Worst:
    """Return the largest log E[exp(l·(value - m))] of a random record of people of mean m, attained by two x."""
    x, chance = _bends(law)
    moments = _moments(law.values, chance, l, m)
    a, b, weight = _highest_chord(x, moments[:, 0], m)
    return _derivatives((1 - weight) * moments[a] + weight * moments[b])


def spread_of_people(law: Law, m: float) -> float:
    """Return the largest standard deviation of the value of a random record of people of mean m."""
    x, chance = _bends(law)
    squares: Reals = chance @ (law.values - m) ** 2
    a, b, weight = _highest_chord(x, squares, m)
    return math.sqrt(float((1 - weight) * squares[a] + weight * squares[b]))


def _moments(values: Reals, chance: Reals, l: float, m: float) -> Reals:
    """Return E[exp(l·c)] - 1, E[c·exp(l·c)] and E[c²·exp(l·c)] at each x, with c = value - m."""
    centred = values - m
    grown = np.expm1(l * centred)
    found: Reals = chance @ np.stack([grown, centred * (1 + grown), centred**2 * (1 + grown)], axis=1)
    return found


def _highest_chord(x: Reals, heights: Reals, m: float) -> tuple[int, int, float]:
    """Return the two x around m whose chord is highest at m, and the weight of the second in a mean of m."""
    right = min(max(int(np.searchsorted(x, m, side="right")), 1), len(x) - 1)
    left_x, right_x = x[:right, None], x[None, right:]
    chords = (heights[:right, None] * (right_x - m) + heights[None, right:] * (m - left_x)) / (right_x - left_x)
    a, b = divmod(int(chords.argmax()), chords.shape[1])
    return a, right + b, float((m - x[a]) / (x[right + b] - x[a]))


@lru_cache(maxsize=32)
def _bends(law: Law) -> tuple[Reals, Reals]:
    """Return the x at which probabilities bend, and those: E[…] is linear from one to the next."""
    bent = np.abs(np.diff(law.chance, 2, axis=0)).max(axis=1) > STRAIGHT
    kept = np.concatenate([[True], bent, [True]])
    return law.x[kept], law.chance[kept]


@lru_cache(maxsize=32)
def _step_of_people(law: Law) -> float:
    """Return the step of sums where x is 0 or 1, which lack the values that other x have in between.

    Rarer values than HEAVY do not fill the gap: counting those of 0.005, 2.56 % are missed at epsilon 4.7.
    """
    ends = law.chance[[0, -1]]
    heavy = (ends >= HEAVY).any(axis=0)
    weight = float(np.where(ends >= HEAVY, ends, 0.0).sum(axis=1).max())
    return max(law.step, weight * float(np.diff(law.values[heavy]).max(initial=0.0)))


def _derivatives(moments: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Worst:
    """Return log E[exp(l·c)] and its derivatives from the moments of c = value - m."""
    grown, first, second = map(float, moments)
    slope = first / (1 + grown)
    return Worst(math.log1p(grown), slope, second / (1 + grown) - slope**2)
