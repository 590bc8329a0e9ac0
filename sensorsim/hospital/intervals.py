"""Confidence intervals that hold for the mechanism: whatever x is behind the packets, from the first packet on.

The target is m, the mean of x over the N records that a feature was received of. Each x is fixed, unknown and anywhere
in 0 … 1. The mean of the unbiased values is s. The lower limit is the smallest m at which a mean of s or more has a
probability above 2.5 % for some records of mean m; the upper limit is the same from the other side.

The worst records. Records are independent, so the logarithm of E[exp(l·value)] adds up over them; its mean over those
of mean m is at most the least concave function of x above it, taken at m. That, less l·s, at its minimum over l, is the
exponent of the tail (Chernoff), and the mixture of two x that attains it stands for the worst records.

two symbols    Clopper and Pearson's limits on the count of ones. Proved: from one above its mean on, a sum of unlike
               Bernoulli draws has at most the tail of the binomial of the same mean (Hoeffding 1956, theorem 5), and
               the limits of two ones or more lie there. For a single one, P(S >= 1) <= E[S].
few packets    Chernoff, for fewer than 10 or than exp(epsilon)/10, where a single rare symbol decides the tail. Proved
               for rows, every x and every N; for stairs but for x between the points of a grid of 1/128. 39 % wider
               than need be where N is large.
otherwise      the saddlepoint formula of Lugannani and Rice, in the form of Barndorff-Nielsen's r*, at the worst
               records; half a step between values is added because sums are discrete. Not proved but measured, by
               exact convolution and by simulation, in tests/test_receive_intervals.py: epsilon 0.1 … 8, 10 … 10^5
               packets, x on knots, between them, of 0 and 1, uniform and beta; the chance of a miss was at most 2.5 %
               on either side. A fiftieth of that is kept back for what the formula leaves out. For large N the half
               width is 1.97 standard deviations of the worst records of mean m, and less than 1.96 cannot hold.
"""

import math
from typing import NamedTuple

import numpy as np

from sensorsim.hospital.law import Law

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
KEPT_BACK = 0.02  # of TAIL, for the saddlepoint formula
FEW = 10
RARE = 0.1  # rarest symbols to expect among the packets before the saddlepoint formula is used
MOST_EXPONENT = 400.0  # exp of it is a float


class Worst(NamedTuple):
    """Mean over the worst records of log E[exp(l·(value - m))], and its first two derivatives."""

    log: float
    slope: float
    curvature: float


def mean_interval(law: Law, mean: float, count: int) -> tuple[float, float]:
    """Limits of the mean of x over `count` records whose unbiased values have this mean; within 0 … 1."""
    if count == 0:
        return 0.0, 1.0
    lower = _lower_of_bits if len(law.values) == 2 else _lower
    low = lower(law, mean, count)
    high = 1 - lower(law.mirrored, 1 - mean, count)
    return low, max(low, high)


def _lower_of_bits(law: Law, mean: float, count: int) -> float:
    """Clopper and Pearson's lower limit; a value is one of two, and the chance of the larger is linear in x."""
    from scipy.special import betaincinv

    small, large = map(float, law.values)
    ones = round((mean - small) / (large - small) * count)
    chance = TAIL / count * ones if ones < 2 else float(betaincinv(ones, count - ones + 1, TAIL))
    return min(1.0, max(0.0, small + chance * (large - small)))


def _lower(law: Law, mean: float, count: int) -> float:
    from scipy.optimize import brentq
    from scipy.special import ndtri

    few = count < max(FEW, RARE * math.exp(law.epsilon))
    seen = mean if few else mean - law.step / 2 / count
    goal = math.sqrt(-2 * math.log(TAIL)) if few else -float(ndtri(TAIL * (1 - KEPT_BACK)))

    def beyond(m: float) -> float:
        return (_chernoff_root if few else _r_star)(law, m, seen, count) - goal

    top = min(1.0, seen)
    if top <= 0 or beyond(0.0) <= 0:
        return 0.0
    if beyond(top) >= 0:
        return top
    sd = math.sqrt(worst_records(law, 0.0, top).curvature / count)
    return float(brentq(beyond, 0.0, top, xtol=1e-6 * min(sd, 1.0)))


def _r_star(law: Law, m: float, s: float, count: int) -> float:
    """A mean of s or more has the tail of a standard normal variable beyond this, very nearly."""
    root, at = _saddlepoint(law, m, s)
    r, u = math.sqrt(count) * root, math.sqrt(count) * at
    return r + math.log(u / r) / r if r > 0.1 else r  # next to m the formula is 0/0, and far from any limit


def _chernoff_root(law: Law, m: float, s: float, count: int) -> float:
    """A mean of s or more has a probability of at most exp(-r²/2)."""
    return math.sqrt(count) * _saddlepoint(law, m, s)[0]


def _saddlepoint(law: Law, m: float, s: float) -> tuple[float, float]:
    """For one record: the root of twice the exponent of the tail, and l·sqrt(curvature) where it is found."""
    if s <= m:
        return 0.0, 0.0
    low, high = 0.0, MOST_EXPONENT / float(law.values[-1] - law.values[0])
    l = min((s - m) / worst_records(law, 0.0, m).curvature, high / 2)
    for _ in range(60):  # Newton, kept between bounds: the worst records may change on the way
        found = worst_records(law, l, m)
        low, high = (l, high) if found.slope < s - m else (low, l)
        next_l = l + (s - m - found.slope) / found.curvature if found.curvature > 0 else low
        if not low < next_l < high:
            next_l = (low + high) / 2
        if abs(next_l - l) <= 1e-7 * l:
            break
        l = next_l
    found = worst_records(law, l, m)
    return math.sqrt(max(0.0, 2 * (l * (s - m) - found.log))), l * math.sqrt(max(found.curvature, 1e-300))


def worst_records(law: Law, l: float, m: float) -> Worst:
    """The largest mean of log E[exp(l·(value - m))] over records of mean m, which two x around m attain."""
    centred = law.values - m
    grown = np.expm1(l * centred)
    moments = law.chance @ np.stack([grown, centred * (1 + grown), centred**2 * (1 + grown)], axis=1)
    logs = np.log1p(moments[:, 0])
    right = min(max(int(np.searchsorted(law.x, m, side="right")), 1), len(law.x) - 1)
    left_x, right_x = law.x[:right, None], law.x[None, right:]
    chords = (logs[:right, None] * (right_x - m) + logs[None, right:] * (m - left_x)) / (right_x - left_x)
    a, b = divmod(int(chords.argmax()), chords.shape[1])
    weight = float((m - law.x[a]) / (law.x[right + b] - law.x[a]))
    first, second = _derivatives(moments[a]), _derivatives(moments[right + b])
    mixed = Worst(*((1 - weight) * p + weight * q for p, q in zip(first, second, strict=True)))
    # Between two x of the grid E[…] is a straight line, and its logarithm rises above a chord by at most this.
    above = float(np.abs(np.diff(logs)).max()) ** 2 / 8
    return mixed._replace(log=mixed.log + above)


def _derivatives(moments: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> Worst:
    """Of log E[exp(l·c)], c = value - m, from E[exp(l·c)] - 1, E[c·exp(l·c)] and E[c²·exp(l·c)]."""
    grown, first, second = map(float, moments)
    slope = first / (1 + grown)
    return Worst(math.log1p(grown), slope, second / (1 + grown) - slope**2)
