"""Covariance of the columns from sketches: a regression of noisy squares on the products of public directions.

A sketch along direction s is an unbiased, noisy u with E[u]·R² = s'(Σ + (μ-c)(μ-c)')s, as far as it is not clipped.
What is known of μ takes the second part off. Σ is then the ridge regression of the squares on s_i·s_j: each of its
entries lies about the prior's with the prior's strength, and the noise of a square has the table's variance times R⁴.
The level of the prior, one number, is fitted first: all packets speak of it.

The normal equations are solved by conjugate gradients, for which S'·diag(w)·S is all that is ever formed: there are
n(n+1)/2 unknowns, and at n = 300 their matrix would not fit a memory.
"""

from dataclasses import dataclass

import numpy as np

from sensorsim.hospital.prior import Reals

LEVEL_SD = 0.8  # of the prior's level, before any sketch
LEAST_LEVEL = 0.03
MOST_ROUNDS, ENOUGH = 80, 1e-16  # of the squared residual


@dataclass(frozen=True)
class Squares:
    """What sketches say: for each direction how many came and the sum of their unbiased values of u."""

    directions: Reals  # (directions, columns)
    count: Reals  # (directions,)
    total: Reals  # (directions,)
    centre: Reals  # (columns,)
    root: float  # R
    noise: float  # variance of one value of u, its own and that of the table


def covariance(squares: Squares, mean: Reals, expected: Reals, strength: float) -> Reals:
    """Σ given the columns' mean; `expected` is the prior's, right up to its level."""
    S, weight = squares.directions, squares.count / (squares.root**4 * squares.noise)
    averages = squares.total / np.maximum(squares.count, 1.0)
    square = averages * squares.root**2 - (S @ (mean - squares.centre)) ** 2
    known = _along(S, expected)
    # the level: a regression through the origin, about 1
    precision = 1 / LEVEL_SD**2
    level = (weight @ (known * square) + precision) / (weight @ known**2 + precision)
    start = max(float(level), LEAST_LEVEL) * expected
    deviation = np.sqrt(np.diag(start))
    scale = strength * np.outer(deviation, deviation)
    scale[~np.eye(len(scale), dtype=bool)] /= np.sqrt(2)  # an entry off the diagonal stands twice
    left = square - _along(S, start)
    found = start + scale * _solved(S, weight, scale, scale * _back(S, weight * left))
    return positive(found)


def positive(matrix: Reals) -> Reals:
    """The nearest matrix that is a covariance."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 1e-9)) @ vectors.T)


def _along(S: Reals, matrix: Reals) -> Reals:
    """s'·matrix·s of every direction."""
    return np.asarray(((S @ matrix) * S).sum(axis=1))


def _back(S: Reals, values: Reals) -> Reals:
    """The transpose of `_along`."""
    return np.asarray((S * values[:, None]).T @ S)


def _solved(S: Reals, weight: Reals, scale: Reals, wanted: Reals) -> Reals:
    """z with z + scale·A'WA(scale·z) = wanted, by conjugate gradients."""
    z, residual = np.zeros_like(wanted), wanted.copy()
    step, size = residual.copy(), float((residual**2).sum())
    first = size
    for _ in range(MOST_ROUNDS):
        if size <= ENOUGH * first:
            break
        moved = step + scale * _back(S, weight * _along(S, scale * step))
        length = size / float((step * moved).sum())
        z += length * step
        residual -= length * moved
        size, before = float((residual**2).sum()), size
        step = residual + size / before * step
    return z
