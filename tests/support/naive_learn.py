"""Learn as the hospital does, by brute force and by textbook formulas. Shares no code with the project.

A prior is any object with the fields of `hospital.prior.Prior`: its numbers are given, what they mean is written here.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

ATOMS = 80  # of a Dirichlet process of concentration 10 they leave (10/11)^80 = 0.0005 of the mass
Chance = Callable[[Any], Any]


def chances(counts: Any) -> Chance:
    """x, an array of 0 … 1, to the probabilities of the symbols of a rows table: linear between its knots."""
    rows = np.array(counts, float)
    rows /= rows.sum(axis=1, keepdims=True)
    knots = np.linspace(0, 1, len(rows))
    return lambda x: np.stack([np.interp(x, knots, column) for column in rows.T], axis=-1)


def unbiased(counts: Any, estimates: Any, x: Any, share: Any) -> tuple[float, float]:
    """Mean and variance of one unbiased value when x, an array, comes in these shares."""
    law = np.array(share) @ chances(counts)(np.array(x, float))
    mean = float(law @ estimates)
    return mean, float(law @ np.array(estimates) ** 2) - mean**2


# ── the posterior of columns by importance sampling ──


def prior_columns(prior: Any, shapes: Sequence[float], draws: int, columns: int, rng: Any) -> tuple[Any, Any]:
    """Columns as the prior has them: (draws, columns, ATOMS) values and weights of each one's distribution.

    A level for all columns of a draw, half or anywhere; a spread for all of them; a mean for each; a shape for each, or
    one for most of them; a Dirichlet process about that Beta distribution, by breaking sticks, whose weights are then
    tilted so that it keeps its mean.
    """
    anywhere = np.round(rng.integers(1, 20, (draws, 1)) / 20, 2)
    level = np.where(rng.random((draws, 1)) < prior.middle, 0.5, anywhere)
    odds = np.array(prior.spread_odds)
    spread = rng.choice(prior.spreads, (draws, 1), p=odds / odds.sum())
    mean = np.clip(rng.beta(level * spread, (1 - level) * spread, (draws, columns)), 1e-3, 1 - 1e-3)
    each, common = rng.choice(shapes, (draws, columns)), rng.choice(shapes, (draws, 1))
    any_of = (rng.random((draws, 1)) < prior.any_shape) | (rng.random((draws, columns)) > prior.most)
    shape = np.where(any_of, each, common)
    a, b = (mean * shape)[..., None], ((1 - mean) * shape)[..., None]
    values = rng.beta(a, b, (draws, columns, ATOMS))
    broken = rng.beta(1.0, prior.free, values.shape)
    broken[..., -1] = 1.0
    left = np.cumprod(1 - broken, axis=-1)
    weights = broken * np.concatenate([np.ones((draws, columns, 1)), left[..., :-1]], axis=-1)
    for _ in range(4):  # a linear tilt, and again for what a weight of less than nothing would have taken
        off = values - (values * weights).sum(axis=-1, keepdims=True)
        variance = (weights * off**2).sum(axis=-1, keepdims=True)
        wanted = mean[..., None] - (values * weights).sum(axis=-1, keepdims=True)
        weights = weights * np.maximum(1 + wanted / np.maximum(variance, 1e-12) * off, 1e-3)
        weights /= weights.sum(axis=-1, keepdims=True)
    return values, weights


def posterior(drawn: tuple[Any, Any], chance: Chance, sums: Any) -> tuple[Any, Any, float]:
    """Posterior mean and variance of each column's mean, and how many draws that rests on: exact likelihoods."""
    values, weights = drawn
    symbols = np.array(sums, float)  # (columns, symbols)
    likely = np.zeros(len(values))
    for column, counts in enumerate(symbols):
        law = np.einsum("da,das->ds", weights[:, column], chance(values[:, column]))
        likely += np.log(np.maximum(law, 1e-300)) @ counts
    weight = np.exp(likely - likely.max())
    weight /= weight.sum()
    means = (values * weights).sum(axis=-1)
    mean = weight @ means
    return mean, weight @ (means - mean) ** 2, float(1 / (weight**2).sum())


# ── covariance ──


def ridge(
    directions: Any, count: Any, square: Any, noise: float, expected: Any, strength: float, level_sd: float
) -> Any:
    """Σ by least squares on the n(n+1)/2 entries, each entry a column of an explicit matrix.

    `square` is the mean of the squares of each direction, `noise` the variance of one. First the level of `expected`, a
    number about 1, then each entry about that within its deviation: `strength` times the two columns' deviations on the
    diagonal, half as much off it.
    """
    n = len(expected)
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    design = np.array([[s[i] * s[j] * (1 if i == j else 2) for i, j in pairs] for s in directions])
    root = np.sqrt(np.array(count, float) / noise)
    start = np.array([expected[i, j] for i, j in pairs])
    known = design @ start
    rows = np.concatenate([known * root, [1 / level_sd]])
    level = np.linalg.lstsq(rows[:, None], np.concatenate([square * root, [1 / level_sd]]), rcond=None)[0][0]
    start = level * start
    sd = np.sqrt(level * np.diag(expected))
    free = np.array([strength * sd[i] * sd[j] * (1 if i == j else 0.5) for i, j in pairs])
    stacked = np.concatenate([design * root[:, None], np.diag(1 / free)])
    wanted = np.concatenate([square * root, start / free])
    found = np.linalg.lstsq(stacked, wanted, rcond=None)[0]
    matrix = np.zeros((n, n))
    for (i, j), value in zip(pairs, found, strict=True):
        matrix[i, j] = matrix[j, i] = value
    return matrix


# ── maps ──


def likeness(n: int, prior: Any) -> Any:
    """Correlations assumed: a factor, and columns an even number of places apart."""
    found = np.eye(n)
    for i in range(n):
        for j in range(n):
            if i != j:
                beside = prior.even if (i - j) % 2 == 0 else prior.odd
                found[i, j] = prior.factor + beside * prior.reach ** abs(i - j)
    return found


def wiener(x: Any, mean: Any, spread: Any, l: int, sigma: float) -> Any:
    """x̂ of inputs x: what lies along the l longest axes, each by λ/(λ + σ²), and the mean of the rest."""
    axes, values, _ = np.linalg.svd(spread)
    found = np.tile(np.asarray(mean, float), (len(x), 1))
    for axis, value in zip(axes.T[:l], values[:l], strict=True):
        found += np.outer((x - mean) @ axis, axis) * value / (value + sigma**2)
    return np.clip(found, 0, 1)


def centre(mean: Any, uncertainty: Any, l: int, sigma: float, prior: Any) -> Any:
    """Return the centre of a map without copies of a column: shrink the part of the means that the data-free map drops.

    By James and Stein's factor, 1 - noise/length², with `doubt` of the noise, and as much less doubt as the data-free
    map passes less of its inputs. A mean of which nothing is known is no noise, for it has not moved.
    """
    n = len(mean)
    axes, values, _ = np.linalg.svd(1.5 / 12 * likeness(n, prior))
    dropped = np.eye(n) - axes[:, :l] @ axes[:, :l].T
    away = dropped @ (mean - 0.5)
    moved = uncertainty * (1 - np.minimum(12 * uncertainty, 1))
    noise = sum(dropped[i, j] ** 2 * moved[j] for i in range(n) for j in range(n))
    passed = np.mean(values[:l] / (values[:l] + sigma**2))
    share = max(0.0, 1 - prior.doubt * passed * noise / (away @ away))
    return np.clip(mean - (1 - share) * away, 0, 1)
