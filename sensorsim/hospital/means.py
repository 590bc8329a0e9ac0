"""Mean and spread of every column from the symbols that came: Bayes' rule over the shapes of `prior.py`.

How often each symbol comes depends on the whole distribution of a column, not on its mean alone. For a table of five
knots four numbers of that distribution show, and a mean that is read off them, knowing what shapes are likely, has a
fraction of the variance of the mean of unbiased values. As packets grow in number the two agree, whatever the shape is.

For one shape: the symbols' frequencies are nearly normal about those that it predicts, with a covariance of two parts:
that of counting, which goes down with the number of packets, and that of the column's freedom to differ from the shape.
The frequencies then move the mean by their joint covariance. Over all shapes, and over all populations of means, these
answers are averaged with their likelihoods.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from sensorsim.hospital.prior import MEANS, PRIOR, SHAPES, Prior, Reals, alike_in_shape, populations, shapes

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

BETWEEN = (0.5 / MEANS) ** 2  # variance of a mean about its point of the grid
LEAST = 1e-9  # packets of a column of which none came: then the prior stays


@dataclass(frozen=True)
class Columns:
    """What is known of each column: its mean, the variance of that knowledge, and the variance of the records in it."""

    mean: Reals
    uncertainty: Reals
    within: Reals
    packets: Reals  # that came of it
    noise: float  # variance of one unbiased value that came


@dataclass(frozen=True)
class _Model:
    """Of every shape, in coordinates where the covariance of counting is 1 and that of the freedom is diagonal."""

    to: Reals  # (shapes, observed, observed): from a difference of frequencies to those coordinates
    predicted: Reals  # (shapes, observed)
    freedom: Reals  # (shapes, observed)
    moves: Reals  # (shapes, observed): how the mean moves with each coordinate
    own: Reals  # (shapes,): variance of the mean before any packet
    log_volume: Reals  # (shapes,)
    log_chance: Reals | None  # (shapes, symbols): of every symbol; None where values are numbers


def columns(table: "NoiseTable", sums: Any, sigma: float = 0.0, prior: Prior = PRIOR) -> Columns:
    """From `sums`, (columns, symbols) how often each symbol came; of a stairs table (columns, 2) count and sum.

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
        likely[packets == 0] = 0.0  # nothing came, which is as likely for any shape
    else:
        likely = _of_symbols(model, model.log_chance, found, packets, d)
    mean = shapes().mean + np.einsum("hs,ihs->ih", model.moves, pull)
    left = model.own - np.einsum("hs,ihs->ih", model.moves**2, 1 / variance)
    odds = _posterior(np.exp(likely - likely.max(axis=1, keepdims=True)), prior)
    centre = (odds * mean).sum(axis=1)
    uncertainty = (odds * (np.maximum(left, 0.0) + mean**2)).sum(axis=1) - centre**2
    worst = table.estimate_sd
    assert worst is not None
    within = np.maximum((odds * shapes().variance).sum(axis=1), 1e-5)
    return Columns(np.clip(centre, 0.0, 1.0), np.maximum(uncertainty, 1e-9), within, packets, worst**2)


def _of_symbols(model: _Model, log_chance: Reals, counts: Reals, packets: Reals, d: Reals) -> Reals:
    """Log-likelihood of every shape, (columns, shapes): multinomial, and flatter where the shape's freedom shows.

    With few packets the normal law is far off for rare symbols, so the deviance is that of counting itself. The freedom
    takes off as much of it as it takes off d² in the normal law, along each coordinate.
    """
    share = counts / np.maximum(packets, LEAST)[:, None]
    at_best = (counts * np.log(np.maximum(share, 1e-300))).sum(axis=1)
    deviance = np.maximum(at_best[:, None] - counts @ log_chance.T, 0.0)
    spread = 1 + packets[:, None, None] * model.freedom[None]
    square = d**2 + 1e-300
    kept = (square / spread).sum(axis=2) / square.sum(axis=2)
    return np.asarray(-deviance * kept - 0.5 * np.log(spread).sum(axis=2))


def _posterior(likelihood: Reals, prior: Prior) -> Reals:
    """Of every shape for every column, (columns, shapes); what all columns share is averaged out.

    That is the population that their means are of, and how their shapes go: any, or most of them one.
    """
    by_shape = likelihood.reshape(len(likelihood), len(SHAPES), MEANS)
    laws, odds = populations(prior)
    kinds, kind_odds = alike_in_shape(prior)
    of_mean = np.einsum("ks,ism->kim", kinds, by_shape)
    evidence = np.maximum(np.einsum("em,kim->kei", laws, of_mean), 1e-300)
    weight = np.log(kind_odds)[:, None] + np.log(odds) + np.log(evidence).sum(axis=2)
    weight = np.exp(weight - weight.max())
    mixed = np.einsum("ke,em,kei->kim", weight / weight.sum(), laws, 1 / evidence, optimize=True)
    found = (by_shape * np.einsum("ks,kim->ism", kinds, mixed)).reshape(len(likelihood), -1)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


@lru_cache(maxsize=32)
def _model(table: "NoiseTable", sigma: float, prior: Prior) -> _Model:
    """What each shape predicts of the packets of a table."""
    family = shapes()
    shown, counting = _shown(table, family.points, sigma)  # (points, observed)
    w, x = family.weights, family.points
    predicted = w @ shown
    square = np.einsum("hp,ps,pt->hst", w, shown, shown) - np.einsum("hs,ht->hst", predicted, predicted)
    with_mean = (w * (x - family.mean[:, None])) @ shown
    counts = square + counting(w) if counting else _multinomial(predicted)
    lower = np.linalg.inv(np.linalg.cholesky(counts))
    # A column may differ from its shape, but not in its mean: that is for the population of means to say, up to the
    # step of their grid. What moves with the mean is taken off the freedom, and as much as a step moves is put back.
    slope = with_mean / family.variance[:, None]
    along = np.einsum("hs,ht->hst", slope, slope)
    freedom = (square - along * family.variance[:, None, None]) / (prior.free + 1) + along * BETWEEN
    values, vectors = np.linalg.eigh(lower @ freedom @ lower.transpose(0, 2, 1))
    to = vectors.transpose(0, 2, 1) @ lower
    moves = np.einsum("hst,ht->hs", to, slope * BETWEEN)
    log_volume = -np.log(np.einsum("hss->hs", lower)).sum(axis=1)
    last = 1 - predicted.sum(axis=1, keepdims=True)
    log_chance = None if counting else np.log(np.concatenate([predicted, last], axis=1))
    return _Model(to, predicted, np.maximum(values, 0.0), moves, np.full(len(w), BETWEEN), log_volume, log_chance)


def _multinomial(chance: Reals) -> Reals:
    """Covariance of which symbol one packet shows, the last symbol left out."""
    return np.asarray(
        np.einsum("hs,st->hst", chance, np.eye(chance.shape[1])) - np.einsum("hs,ht->hst", chance, chance)
    )


def _shown(table: "NoiseTable", x: Reals, sigma: float) -> tuple[Reals, Any]:
    """What is observed on average at x, and for a stairs table the rest of its variance."""
    from sensorsim.hospital.law import law_of

    if table.symbols is None:
        noise = float(table.estimate_sd or 0.0) ** 2
        return delivered(x, sigma) @ np.linspace(0, 1, len(x))[:, None], lambda w: np.full((len(w), 1, 1), noise)
    chance = np.array([_interpolated(law_of(table), at) for at in x])
    order = np.argsort(table.estimate(np.arange(chance.shape[1])), kind="stable")  # the law has its values ascending
    by_symbol = np.empty_like(chance)
    by_symbol[:, order] = chance
    return (delivered(x, sigma) @ by_symbol)[:, :-1], None


def _interpolated(law: Any, at: float) -> Reals:
    place = at * (len(law.x) - 1)
    left = min(int(place), len(law.x) - 2)
    return np.asarray((1 - (place - left)) * law.chance[left] + (place - left) * law.chance[left + 1])


def delivered(x: Reals, sigma: float) -> Reals:
    """(points, points): how likely the sensor delivers each point of the grid at x, with the environment's noise.

    What leaves 0 … 1 counts as the end it left by, as the kernels have it.
    """
    from scipy.special import ndtr

    if not sigma:
        return np.eye(len(x))
    edges = np.concatenate([[-np.inf], (x[1:] + x[:-1]) / 2, [np.inf]])
    return np.asarray(np.diff(ndtr((edges[None] - x[:, None]) / sigma), axis=1))
