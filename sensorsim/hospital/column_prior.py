"""Estimate mean and spread of every column from symbol counts, by Bayes' rule under a public prior.

How often each symbol comes depends on the whole distribution of a column, not on its mean alone. For a table of five
knots four numbers of that distribution can be seen, and a mean that is estimated from them under a prior over shapes
has a fraction of the variance of the mean of unbiased values. As packets grow in number the two agree for any shape.

The prior is the same for every data set and fitted to none:

means        Every column's mean is anywhere in 0 … 1. Columns may share a level; how near to it they are is learnt from
             the packets, by averaging over levels and spreads. Much of the weight is on "all near one half": with
             little epsilon a mean then stays there, and no estimate is worse than none.
shapes       A column with mean mu is like some Beta(mu·s, (1-mu)·s), s from 0.1 (nearly all 0 or 1) to 1000 (nearly
             constant), any for each or one for most of them. It may differ from that, though not in its mean, as a
             Dirichlet draw of strength `free` does: so the packets decide in the end, for any shape.
likeness     Correlations of columns, and of the uncertainty of their means: one common factor, and columns an even
             number of places apart are alike. It decides what to keep while nothing is known, and serves columns that
             are alike as well as those that alternate.
covariance   Each entry is near likeness times the two deviations, within `strength` times them, half of that off the
             diagonal.

The numbers were chosen on synthetic sets that differ in kind: equal means, alternating means, uniform, binary, a few
factors, daily activity and its mirror images.

For one shape, the symbols' frequencies are nearly normal about those that it predicts, with a covariance of two parts:
that of counting, which falls with the number of packets, and that of the column's freedom to differ from the shape. The
frequencies then move the mean by their joint covariance. These answers are averaged over all shapes, and over all
populations of means, with their likelihoods.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sensorsim.hospital.confidence import Reals, law_of

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

FLAT_VARIANCE = 1 / 12  # of a mean that may be anywhere in 0 … 1
MEANS, POINTS = 48, 256  # grids: of means, and of a column's values
SHAPES = (0.1, 0.4, 1.5, 3.0, 7.0, 15.0, 40.0, 120.0, 1000.0)
LEVELS = 19  # of a common level, evenly between 0 and 1
BETWEEN = (0.5 / MEANS) ** 2  # variance of a mean about its point of the grid
LEAST = 1e-9  # packets of a column of which none came: the prior then remains


@dataclass(frozen=True)
class Prior:
    """All numbers that are assumed."""

    free: float = 10.0  # how many records' worth a Beta shape counts against the packets
    middle: float = 0.95  # probability that the common level is one half; else it is anywhere
    spreads: tuple[float, ...] = (0.8, 2.0, 4.0, 10.0, 30.0, 100.0, 1000.0)  # means follow Beta(level·s, (1-level)·s)
    spread_odds: tuple[float, ...] = (4.0, 6.0, 6.0, 8.0, 10.0, 16.0, 100.0)
    any_shape: float = 0.3  # probability that columns have any shapes; else most of them have one
    most: float = 0.95  # of the columns, then
    factor: float = 0.3  # correlation of all columns
    even: float = 0.3  # and of columns an even number of places apart, next to each other
    odd: float = 0.02  # the same for an odd number; it breaks ties
    reach: float = 0.9  # by which that falls with each place
    strength: float = 1.2  # of the covariance: standard deviation of an entry, in deviations of its columns
    doubt: float = 0.8  # how much of the noise a mean must exceed before it leaves the data-free map


PRIOR = Prior()


@dataclass(frozen=True)
class Columns:
    """Knowledge of each column: its mean, the variance of that knowledge, and the variance of the records in it."""

    mean: Reals
    uncertainty: Reals
    within: Reals
    packets: Reals  # received of it
    noise: float  # variance of one unbiased value


class Shapes(NamedTuple):
    """The grid of possible columns: each is a distribution over `points`."""

    points: Reals  # (POINTS,) values of x, ends included
    weights: Reals  # (shapes, POINTS)
    mean: Reals  # (shapes,)
    variance: Reals  # (shapes,)


class _Model(NamedTuple):
    """Predictions of every shape, in coordinates where counting has covariance 1 and the freedom a diagonal one."""

    to: Reals  # (shapes, observed, observed): from a difference of frequencies to those coordinates
    predicted: Reals  # (shapes, observed)
    freedom: Reals  # (shapes, observed)
    moves: Reals  # (shapes, observed): how the mean moves with each coordinate
    log_volume: Reals  # (shapes,)
    log_chance: Reals | None  # (shapes, symbols): of every symbol; None where values are numbers


def likeness(columns: int, prior: Prior = PRIOR) -> Reals:
    """Return the assumed correlations between columns, (columns, columns)."""
    apart = np.abs(np.subtract.outer(np.arange(columns), np.arange(columns)))
    near = prior.reach**apart * np.where(apart % 2 == 0, prior.even, prior.odd)
    found = prior.factor + near
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


@lru_cache(maxsize=1)
def shapes() -> Shapes:
    """Return Beta distributions over a grid of means, a block of MEANS for each of SHAPES."""
    from scipy.stats import beta

    points = np.linspace(0.0, 1.0, POINTS)
    edges = np.concatenate([[0.0], (points[1:] + points[:-1]) / 2, [1.0]])
    mu, s = ((np.arange(MEANS) + 0.5) / MEANS)[None, :, None], np.array(SHAPES)[:, None, None]
    weights = np.diff(beta.cdf(edges, mu * s, (1 - mu) * s), axis=-1).reshape(-1, POINTS)
    weights /= weights.sum(axis=1, keepdims=True)
    mean = weights @ points
    return Shapes(points, weights, mean, weights @ points**2 - mean**2)


@lru_cache(maxsize=4)
def populations(prior: Prior = PRIOR) -> tuple[Reals, Reals]:
    """Return distributions of means, (populations, MEANS), and the odds of each population."""
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


def shape_mixtures(prior: Prior = PRIOR) -> tuple[Reals, Reals]:
    """Return distributions of shapes over columns, (mixtures, len(SHAPES)), and the odds of each."""
    count = len(SHAPES)
    any_of = np.full((1, count), 1 / count)
    one = prior.most * np.eye(count) + (1 - prior.most) / count
    odds = np.concatenate([[prior.any_shape], np.full(count, (1 - prior.any_shape) / count)])
    return np.concatenate([any_of, one]), odds


def columns(table: "NoiseTable", sums: Any, sigma: float = 0.0, prior: Prior = PRIOR) -> Columns:
    """Estimate columns from `sums`: (columns, symbols) counts, or of a stairs table (columns, 2) count and sum.

    `sigma` is the environment's noise where the sensor released what it delivers, and 0 where it released the record.
    """
    model, found = _model(table, sigma, prior), np.asarray(sums, np.float64)
    per_symbol = table.symbols is not None
    packets = found.sum(axis=1) if per_symbol else found[:, 0]
    some = np.maximum(packets, LEAST)
    seen = (found[:, :-1] if per_symbol else found[:, 1:]) / some[:, None]
    # d of every column and shape in the model's coordinates, weighed by the whole variance there
    d = np.einsum("hst,it->ihs", model.to, seen) - np.einsum("hst,ht->hs", model.to, model.predicted)[None]
    variance = model.freedom[None] + 1 / some[:, None, None]
    pull = d / variance
    if model.log_chance is None:
        likely = -0.5 * (d * pull + np.log(variance)).sum(axis=2) - model.log_volume
        likely[packets == 0] = 0.0  # nothing came, which is equally likely for any shape
    else:
        # Multinomial, flattened by the shape's freedom. With few packets the normal distribution is far off for rare
        # symbols, so the deviance is that of counting itself. The freedom reduces it as much as it reduces d² in the
        # normal distribution, along each coordinate.
        at_best = (found * np.log(np.maximum(found / some[:, None], 1e-300))).sum(axis=1)
        deviance = np.maximum(at_best[:, None] - found @ model.log_chance.T, 0.0)
        spread = 1 + packets[:, None, None] * model.freedom[None]
        square = d**2 + 1e-300
        reduced = (square / spread).sum(axis=2) / square.sum(axis=2)
        likely = -deviance * reduced - 0.5 * np.log(spread).sum(axis=2)
    mean = shapes().mean + np.einsum("hs,ihs->ih", model.moves, pull)
    left = BETWEEN - np.einsum("hs,ihs->ih", model.moves**2, 1 / variance)
    odds = _posterior(np.exp(likely - likely.max(axis=1, keepdims=True)), prior)
    centre = (odds * mean).sum(axis=1)
    uncertainty = (odds * (np.maximum(left, 0.0) + mean**2)).sum(axis=1) - centre**2
    worst = table.estimate_sd
    assert worst is not None
    within = np.maximum((odds * shapes().variance).sum(axis=1), 1e-5)
    return Columns(np.clip(centre, 0.0, 1.0), np.maximum(uncertainty, 1e-9), within, packets, worst**2)


def _posterior(likelihood: Reals, prior: Prior) -> Reals:
    """Return the posterior of every shape for every column, averaged over populations of means and shape mixtures."""
    by_shape = likelihood.reshape(len(likelihood), len(SHAPES), MEANS)
    laws, odds = populations(prior)
    kinds, kind_odds = shape_mixtures(prior)
    of_mean = np.einsum("ks,ism->kim", kinds, by_shape)
    evidence = np.maximum(np.einsum("em,kim->kei", laws, of_mean), 1e-300)
    weight = np.log(kind_odds)[:, None] + np.log(odds) + np.log(evidence).sum(axis=2)
    weight = np.exp(weight - weight.max())
    mixed = np.einsum("ke,em,kei->kim", weight / weight.sum(), laws, 1 / evidence, optimize=True)
    found = (by_shape * np.einsum("ks,kim->ism", kinds, mixed)).reshape(len(likelihood), -1)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


@lru_cache(maxsize=32)
def _model(table: "NoiseTable", sigma: float, prior: Prior) -> _Model:
    """Return what each shape predicts of the packets of a table."""
    family = shapes()
    shown, noise = _observed(table, family.points, sigma)  # (points, observed)
    w, x = family.weights, family.points
    predicted = w @ shown
    square = np.einsum("hp,ps,pt->hst", w, shown, shown) - np.einsum("hs,ht->hst", predicted, predicted)
    with_mean = (w * (x - family.mean[:, None])) @ shown
    if noise is None:  # the covariance of the symbol of one packet, the last symbol left out
        counts = np.einsum("hs,st->hst", predicted, np.eye(predicted.shape[1]))
        counts = counts - np.einsum("hs,ht->hst", predicted, predicted)
    else:
        counts = square + noise
    lower = np.linalg.inv(np.linalg.cholesky(counts))
    # A column may differ from its shape, but not in its mean: the population of means decides that, up to the step of
    # their grid. Remove from the freedom what moves with the mean, and add what one step moves.
    slope = with_mean / family.variance[:, None]
    along = np.einsum("hs,ht->hst", slope, slope)
    freedom = (square - along * family.variance[:, None, None]) / (prior.free + 1) + along * BETWEEN
    values, vectors = np.linalg.eigh(lower @ freedom @ lower.transpose(0, 2, 1))
    to = vectors.transpose(0, 2, 1) @ lower
    moves = np.einsum("hst,ht->hs", to, slope * BETWEEN)
    log_volume = -np.log(np.einsum("hss->hs", lower)).sum(axis=1)
    last = 1 - predicted.sum(axis=1, keepdims=True)
    log_chance = np.log(np.concatenate([predicted, last], axis=1)) if noise is None else None
    return _Model(to, predicted, np.maximum(values, 0.0), moves, log_volume, log_chance)


def _observed(table: "NoiseTable", x: Reals, sigma: float) -> tuple[Reals, float | None]:
    """Return the expected observation at x, and for a stairs table the rest of its variance."""
    if table.symbols is None:
        return delivery(x, sigma) @ np.linspace(0, 1, len(x))[:, None], float(table.estimate_sd or 0.0) ** 2
    chance = law_of(table).chance_at(x)
    order = np.argsort(table.estimate(np.arange(chance.shape[1])), kind="stable")  # the law's values ascend
    by_symbol = np.empty_like(chance)
    by_symbol[:, order] = chance
    return (delivery(x, sigma) @ by_symbol)[:, :-1], None


def delivery(x: Reals, sigma: float) -> Reals:
    """Return the probability that the sensor delivers each point of the grid at x under the environment's noise.

    Readings beyond 0 … 1 count as its nearer end, as in the kernels.
    """
    from scipy.special import ndtr

    if not sigma:
        return np.eye(len(x))
    edges = np.concatenate([[-np.inf], (x[1:] + x[:-1]) / 2, [np.inf]])
    return np.asarray(np.diff(ndtr((edges[None] - x[:, None]) / sigma), axis=1))
