"""What is assumed before the first packet. Public, the same for every data set, fitted to none.

means        Every column's mean is anywhere in 0 … 1. Columns may lie about a common level, and how near to it they lie
             is learnt from the packets, by averaging over levels and over spreads. Much of the weight is on "all near
             one half": with little epsilon a mean then stays there, and no estimate is worse than none.
shapes       A column with mean mu is like some Beta(mu·s, (1-mu)·s), s from 0.1 (nearly all 0 or 1) to 1000 (nearly
             constant), any for each or one for most of them, and then free to differ from it, though not in its mean,
             as a Dirichlet draw of strength `free` does: so the packets decide in the end, whatever the shape is.
likeness     Correlations of columns, and of what is not known of their means: one common factor, and columns an even
             number of places apart are alike. It is for the choice of what to keep while nothing is known; that choice
             is as good for columns that are alike as for those that alternate.
covariance   Each entry lies about likeness times the two deviations, within `strength` times them, half of that off the
             diagonal.

The numbers were chosen on synthetic sets that differ in kind: equal means, alternating means, uniform, binary, a few
factors, daily activity and its mirror images.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

FLAT_VARIANCE = 1 / 12  # of a mean that may be anywhere in 0 … 1
MEANS, POINTS = 48, 256  # grids: of means, and of a column's values
SHAPES = (0.1, 0.4, 1.5, 3.0, 7.0, 15.0, 40.0, 120.0, 1000.0)
LEVELS = 19  # of a common level, evenly between 0 and 1


@dataclass(frozen=True)
class Prior:
    """All numbers that are assumed."""

    free: float = 10.0  # how many records' worth a Beta shape counts against the packets
    middle: float = 0.95  # probability that the common level is one half; else it is anywhere
    spreads: tuple[float, ...] = (0.8, 2.0, 4.0, 10.0, 30.0, 100.0, 1000.0)  # means lie as Beta(level·s, (1-level)·s)
    spread_odds: tuple[float, ...] = (4.0, 6.0, 6.0, 8.0, 10.0, 16.0, 100.0)
    any_shape: float = 0.3  # probability that columns have any shapes; else most of them have one
    most: float = 0.95  # of the columns, then
    factor: float = 0.3  # correlation of all columns
    even: float = 0.3  # and of columns an even number of places apart, next to each other
    odd: float = 0.02  # the same for an odd number; it breaks ties
    reach: float = 0.9  # by which that goes down with each place
    strength: float = 1.2  # of the covariance: standard deviation of an entry, in deviations of its columns
    doubt: float = 0.8  # how much of the noise must be passed before a mean leaves what the data-free map would keep


PRIOR = Prior()


def likeness(columns: int, prior: Prior = PRIOR) -> Reals:
    """Correlations that are assumed between columns, (columns, columns)."""
    apart = np.abs(np.subtract.outer(np.arange(columns), np.arange(columns)))
    near = prior.reach**apart * np.where(apart % 2 == 0, prior.even, prior.odd)
    found = prior.factor + near
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


@dataclass(frozen=True)
class Shapes:
    """The grid of columns that are thought of: each is a distribution over `points`."""

    points: Reals  # (POINTS,) values of x, ends included
    weights: Reals  # (shapes, POINTS)
    mean: Reals  # (shapes,)
    variance: Reals  # (shapes,)


@lru_cache(maxsize=1)
def shapes() -> Shapes:
    """Beta distributions over a grid of means, one block of MEANS after the other for each of SHAPES."""
    from scipy.stats import beta

    points = np.linspace(0.0, 1.0, POINTS)
    edges = np.concatenate([[0.0], (points[1:] + points[:-1]) / 2, [1.0]])
    mu, s = _grid()[None, :, None], np.array(SHAPES)[:, None, None]
    weights = np.diff(beta.cdf(edges, mu * s, (1 - mu) * s), axis=-1).reshape(-1, POINTS)
    weights /= weights.sum(axis=1, keepdims=True)
    mean = weights @ points
    return Shapes(points, weights, mean, weights @ points**2 - mean**2)


@lru_cache(maxsize=4)
def populations(prior: Prior = PRIOR) -> tuple[Reals, Reals]:
    """How means may lie: (populations, MEANS) probabilities on the grid of means, and the odds of each population."""
    from scipy.stats import beta

    edges = np.arange(MEANS + 1) / MEANS
    level = (np.arange(LEVELS) + 1.0)[:, None, None] / (LEVELS + 1)
    s = np.array(prior.spreads)[None, :, None]
    found = np.diff(beta.cdf(edges, level * s, (1 - level) * s), axis=-1)
    found = np.maximum(found.reshape(-1, MEANS), 1e-12)
    levels = np.full(LEVELS, (1 - prior.middle) / LEVELS)
    levels[LEVELS // 2] += prior.middle
    odds = np.outer(levels, prior.spread_odds).ravel()
    return found / found.sum(axis=1, keepdims=True), odds / odds.sum()


def alike_in_shape(prior: Prior = PRIOR) -> tuple[Reals, Reals]:
    """How shapes may go over the columns: (ways, len(SHAPES)) probabilities of each shape, and the odds of each way."""
    count = len(SHAPES)
    any_of = np.full((1, count), 1 / count)
    one = prior.most * np.eye(count) + (1 - prior.most) / count
    odds = np.concatenate([[prior.any_shape], np.full(count, (1 - prior.any_shape) / count)])
    return np.concatenate([any_of, one]), odds


def _grid() -> Reals:
    return np.asarray((np.arange(MEANS) + 0.5) / MEANS)
