"""Predictors that need no training, in numpy alone: no figure of a model stands without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sensorsim.mechanisms.base import SIGMOID
from sensorsim.training.trained import Part, Reals, Trained

if TYPE_CHECKING:
    from sensorsim.training.data import Dataset

Predictor = Callable[[int, Reals], Reals]  # (user, records as delivered) to what they are taken for
Summary = dict[str, float | None]  # of one predictor: its scores by name
UNTRAINED_NETS, LEAST_NETS = 20, 2
UNTRAINED_VALUES = 2_000_000  # to reconstruct by all untrained nets, about: many rows take time and vary less
ROWS_AT_ONCE = 1 << 16


def trivial_scores(
    dataset: Dataset, l: int, sigma: float, scored: Callable[[list[Predictor]], Summary]
) -> dict[str, Summary]:
    """By name. `scored` gives the mean scores of predictors; all of them meet the same noise."""
    from sensorsim.training.estimator import data_free

    mean, covariance = moments(dataset.x, ~dataset.held_out)
    directions = np.linalg.eigh(covariance)[1][:, ::-1][:, :l]
    plane = directions @ directions.T
    prior = data_free(dataset.columns, l, sigma)
    found = {
        "zeros": scored([lambda j, x: np.zeros_like(x)]),
        "half": scored([lambda j, x: np.full_like(x, 0.5)]),
        "column mean": scored([lambda j, x: np.zeros_like(x) + mean]),
        f"PCA-{l}": scored([lambda j, x: np.clip(mean + (x - mean) @ plane, 0, 1)]),
    }
    copied = scored([lambda j, x: np.clip(x, 0, 1)])
    found[f"copy {l}"] = _mixed(l / dataset.n, copied, found["column mean"])
    found["untrained net"] = scored([_of(net) for net in _untrained(dataset, l)])
    found["data-free map"] = scored([_of(prior)])
    return found


def moments(x: Reals, chosen: np.ndarray) -> tuple[Reals, Reals]:
    """Mean and covariance of the chosen rows, a few rows at a time."""
    n, rows = x.shape[1], np.flatnonzero(chosen)
    mean, square = np.zeros(n), np.zeros((n, n))
    parts = [rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE)]
    for part in parts:
        mean += x[part].sum(axis=0) / len(rows)
    for part in parts:
        away = x[part] - mean
        square += away.T @ away / len(rows)
    return mean, square


def _mixed(share: float, copied: Summary, filled: Summary) -> Summary:
    """Send l of the n features as they are, answer the column mean for the others: the mean over all choices of l."""
    found: Summary = dict.fromkeys(copied)
    for name, value in copied.items():
        other = filled[name]
        if value is not None and other is not None:
            found[name] = share * value + (1 - share) * other
    return found


def _untrained(dataset: Dataset, l: int) -> list[Trained]:
    """First weights as torch draws them: uniform within ±1/sqrt(inputs), no biases."""
    rng, n = np.random.default_rng(0), dataset.n
    nets = []
    for _ in range(max(LEAST_NETS, min(UNTRAINED_NETS, UNTRAINED_VALUES // dataset.x.size))):
        W, V = rng.uniform(-(n**-0.5), n**-0.5, (n, l)), rng.uniform(-(l**-0.5), l**-0.5, (l, n))
        nets.append(Trained(SIGMOID, (Part(W, np.zeros(l), V, np.zeros(n)),)))
    return nets


def _of(one: Trained) -> Predictor:
    return lambda j, x: one.predict(0, x)
