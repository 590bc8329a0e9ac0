"""Confidence intervals that hold for the mechanism: whatever x is behind the packets, from the first packet on.

The target is m, the mean of x over the N records that a feature was received of, or over all the records of which those
N are a random part: those of everybody, be they released or not. Each x is fixed, unknown and anywhere in 0 … 1. The
mean of the unbiased values is s. The lower limit is the smallest m at which a mean of s or more has a probability above
2.5 % for some records of mean m; the upper limit is the same from the other side.

The worst records. Records are independent, so the logarithm of E[exp(l·value)] adds up over them; its mean over those
of mean m is at most the least concave function of x above it, taken at m. That, less l·s, at its minimum over l, is the
exponent of the tail (Chernoff), and the mixture of two x that attains it stands for the worst records.

The worst people. A record that is picked at random from all has an x by chance, so that the least concave function is
taken above E[exp(l·value)] itself, and the logarithm of it at m. For N records of M, no record twice, that bounds the
exponent too: E[exp(l·sum)] is then the mean of the products of N of the M single ones, which is at most the N-th power
of their mean (Maclaurin). The interval is the wider one: it has the spread of people in it, at its worst, 0 and 1.

two symbols    Clopper and Pearson's limits on the count of ones. Proved: from one above its mean on, a sum of unlike
               Bernoulli draws has at most the tail of the binomial of the same mean (Hoeffding 1956, theorem 5), and
               the limits of two ones or more lie there. For a single one, P(S >= 1) <= E[S]. The same for people:
               ones among a random part of unlike records are a sum of independent draws too (Borcea, Brändén and
               Liggett 2009: a uniform choice of N is strongly Rayleigh, and stays so when it is thinned).
few packets    Chernoff, for fewer than 10 or than exp(epsilon)/10, where a single rare symbol decides the tail. Proved
               for rows, every x and every N; for stairs but for x between the points of a grid of 1/128. 39 % wider
               than need be where N is large.
otherwise      the saddlepoint formula of Lugannani and Rice, in the form of Barndorff-Nielsen's r*, at the worst
               records; half a step between values is added because sums are discrete. Not proved but measured, by
               exact convolution and by simulation, in tests/test_receive_intervals.py: epsilon 0.1 … 8, 10 … 10^5
               packets, x on knots, between them, of 0 and 1, uniform and beta; the chance of a miss was at most 2.5 %
               on either side. A fiftieth of that is kept back for what the formula leaves out. For large N the half
               width is 1.97 standard deviations of the worst records of mean m, and less than 1.96 cannot hold. For
               people the same, measured for parts of people of 0 and 1, alike, uniform and beta; the step between
               values is that of people of 0 and 1.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from sensorsim.errors import InputError
from sensorsim.hospital.law import HEAVY, Law, Reals

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
KEPT_BACK = 0.02  # of TAIL, for the saddlepoint formula
FEW = 10
RARE = 0.1  # rarest symbols to expect among the packets before the saddlepoint formula is used
MOST_EXPONENT = 400.0  # exp of it is a float
STRAIGHT = 1e-12  # a chance that bends by less between three x is taken for a straight line
RECORDS, PEOPLE = "records", "people"


class Worst(NamedTuple):
    """Of the worst records or people: the exponent log E[exp(l·(value - m))] of one, and its first two derivatives."""

    log: float
    slope: float
    curvature: float


class Saddlepoint(NamedTuple):
    """For one record: the root of twice the exponent of the tail, and l·sqrt(curvature) where it is found."""

    root: float
    at: float
    l: float


Search = Callable[[Law, float, float], Worst]


def mean_interval(law: Law, mean: float, count: int, of: str = RECORDS) -> tuple[float, float]:
    """Limits of the mean of x over `count` records whose unbiased values have this mean; within 0 … 1.

    Of `people`: the mean of x over all the records of which these are a random part.
    """
    if of not in (RECORDS, PEOPLE):
        raise InputError(f"an interval of {of!r} is not known; give {RECORDS!r} or {PEOPLE!r}.")
    if count == 0:
        return 0.0, 1.0
    if len(law.values) == 2:  # either way the same
        low, mirrored = _lower_of_bits(law, mean, count), _lower_of_bits(law.mirrored, 1 - mean, count)
    else:
        low, mirrored = _lower(law, mean, count, of), _lower(law.mirrored, 1 - mean, count, of)
    return low, max(low, 1 - mirrored)


def _lower_of_bits(law: Law, mean: float, count: int) -> float:
    """Clopper and Pearson's lower limit; a value is one of two, and the chance of the larger is linear in x."""
    from scipy.special import betaincinv

    small, large = map(float, law.values)
    ones = round((mean - small) / (large - small) * count)
    chance = TAIL / count * ones if ones < 2 else float(betaincinv(ones, count - ones + 1, TAIL))
    return min(1.0, max(0.0, small + chance * (large - small)))


def _lower(law: Law, mean: float, count: int, of: str) -> float:
    from scipy.optimize import brentq
    from scipy.special import ndtri

    of_people = of == PEOPLE
    worst, step = (worst_people, _step_of_people(law)) if of_people else (worst_records, law.step)
    few = count < max(FEW, RARE * math.exp(law.epsilon))
    seen = mean if few else mean - step / 2 / count
    goal = math.sqrt(-2 * math.log(TAIL)) if few else -float(ndtri(TAIL * (1 - KEPT_BACK)))
    top = min(1.0, seen)
    steep = 0.0  # l over s - m at the last m: the next search may start there, but at the ends, which are met twice

    def beyond(m: float) -> float:
        nonlocal steep
        found = _saddlepoint(law, m, seen, worst, steep if of_people and 0 < m < top else 0.0)
        steep = found.l / (seen - m) if seen > m else 0.0
        return (_chernoff_root if few else _r_star)(found, count) - goal

    if top <= 0 or beyond(0.0) <= 0:
        return 0.0
    if beyond(top) >= 0:
        return top
    sd = math.sqrt(worst(law, 0.0, top).curvature / count)
    return float(brentq(beyond, 0.0, top, xtol=1e-6 * min(sd, 1.0)))


def _r_star(found: Saddlepoint, count: int) -> float:
    """A mean of s or more has the tail of a standard normal variable beyond this, very nearly."""
    r, u = math.sqrt(count) * found.root, math.sqrt(count) * found.at
    return r + math.log(u / r) / r if r > 0.1 else r  # next to m the formula is 0/0, and far from any limit


def _chernoff_root(found: Saddlepoint, count: int) -> float:
    """A mean of s or more has a probability of at most exp(-r²/2)."""
    return math.sqrt(count) * found.root


def _saddlepoint(law: Law, m: float, s: float, worst: Search, steep: float) -> Saddlepoint:
    """Where l·(s - m) less the exponent of the worst is largest; `steep` is a guess of l over s - m, or 0."""
    if s <= m:
        return Saddlepoint(0.0, 0.0, 0.0)
    low, high = 0.0, MOST_EXPONENT / float(law.values[-1] - law.values[0])
    l = min((s - m) * steep if steep else (s - m) / worst(law, 0.0, m).curvature, high / 2)
    for _ in range(60):  # Newton, kept between bounds: the worst may change on the way
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
    return Saddlepoint(root, l * math.sqrt(max(found.curvature, 1e-300)), l)


def worst_records(law: Law, l: float, m: float) -> Worst:
    """The largest mean of log E[exp(l·(value - m))] over records of mean m, which two x around m attain."""
    moments = _moments(law.values, law.chance, l, m)
    logs = np.log1p(moments[:, 0])
    a, b, weight = _highest_chord(law.x, logs, m)
    first, second = _derivatives(moments[a]), _derivatives(moments[b])
    mixed = Worst(*((1 - weight) * p + weight * q for p, q in zip(first, second, strict=True)))
    # Between two x of the grid E[…] is a straight line, and its logarithm rises above a chord by at most this.
    above = float(np.abs(np.diff(logs)).max()) ** 2 / 8
    return mixed._replace(log=mixed.log + above)


def worst_people(law: Law, l: float, m: float) -> Worst:
    """The largest log E[exp(l·(value - m))] of a record picked from people of mean m, who have two x around m."""
    x, chance = _bends(law)
    moments = _moments(law.values, chance, l, m)
    a, b, weight = _highest_chord(x, moments[:, 0], m)
    return _derivatives((1 - weight) * moments[a] + weight * moments[b])


def spread_of_people(law: Law, m: float) -> float:
    """The largest standard deviation of the value of a record that is picked from people of mean m."""
    x, chance = _bends(law)
    squares: Reals = chance @ (law.values - m) ** 2
    a, b, weight = _highest_chord(x, squares, m)
    return math.sqrt(float((1 - weight) * squares[a] + weight * squares[b]))


def _moments(values: Reals, chance: Reals, l: float, m: float) -> Reals:
    """At each x: E[exp(l·c)] - 1, E[c·exp(l·c)] and E[c²·exp(l·c)], with c = value - m."""
    centred = values - m
    grown = np.expm1(l * centred)
    found: Reals = chance @ np.stack([grown, centred * (1 + grown), centred**2 * (1 + grown)], axis=1)
    return found


def _highest_chord(x: Reals, heights: Reals, m: float) -> tuple[int, int, float]:
    """Which two of x, around m, have the chord that is highest at m, and the share of the second in a mean of m."""
    right = min(max(int(np.searchsorted(x, m, side="right")), 1), len(x) - 1)
    left_x, right_x = x[:right, None], x[None, right:]
    chords = (heights[:right, None] * (right_x - m) + heights[None, right:] * (m - left_x)) / (right_x - left_x)
    a, b = divmod(int(chords.argmax()), chords.shape[1])
    return a, right + b, float((m - x[a]) / (x[right + b] - x[a]))


@lru_cache(maxsize=32)
def _bends(law: Law) -> tuple[Reals, Reals]:
    """The x at which chances bend, with their chances: E[…] is a straight line from one to the next."""
    bent = np.abs(np.diff(law.chance, 2, axis=0)).max(axis=1) > STRAIGHT
    kept = np.concatenate([[True], bent, [True]])
    return law.x[kept], law.chance[kept]


@lru_cache(maxsize=32)
def _step_of_people(law: Law) -> float:
    """How discrete sums are where x is 0 or 1: the values between, which other x have, are then missing.

    Rarer values than HEAVY do not fill the gap: with those of 0.005 counted in, 2.56 % are missed at epsilon 4.7.
    """
    ends = law.chance[[0, -1]]
    heavy = (ends >= HEAVY).any(axis=0)
    weight = float(np.where(ends >= HEAVY, ends, 0.0).sum(axis=1).max())
    return max(law.step, weight * float(np.diff(law.values[heavy]).max(initial=0.0)))


def _derivatives(moments: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Worst:
    """Of log E[exp(l·c)], c = value - m, from E[exp(l·c)] - 1, E[c·exp(l·c)] and E[c²·exp(l·c)]."""
    grown, first, second = map(float, moments)
    slope = first / (1 + grown)
    return Worst(math.log1p(grown), slope, second / (1 + grown) - slope**2)
