"""Accuracy of trained nets, run by run, and of the predictors that need no training: no figure stands without them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sensorsim.train import model
from sensorsim.train.config import Config
from sensorsim.train.data import Dataset
from sensorsim.train.run import copy, user_parameters

UNTRAINED_RUNS = 20
PARTS = ("accuracy", "accuracy_train", "accuracy_held_out", "accuracy_mae", "accuracy_clean_input")


@dataclass(frozen=True)
class Scores:
    """Per run, in per cent; NaN where a run diverged (or where no person is held out)."""

    accuracy: np.ndarray  # (runs,) 1 - MSE over all rows, inputs as the sensor delivers them
    accuracy_train: np.ndarray  # over persons that were trained on
    accuracy_held_out: np.ndarray  # over persons that were not
    accuracy_mae: np.ndarray  # 1 - MAE over all rows
    accuracy_clean_input: np.ndarray  # 1 - MSE when the input has no environmental noise
    column_mse: np.ndarray  # (runs, n)

    @property
    def diverged(self) -> int:
        return int(np.isnan(self.accuracy).sum())


def score(dataset: Dataset, config: Config, weights: model.Parameters, generator: torch.Generator) -> Scores:
    """Reconstruct every row with its user's encoder: the target is clean, the input has the sensor's noise."""
    runs = weights.W.shape[0] // config.m
    usual = model.allocate(weights.W.shape[0], dataset.n, config.l, config.bias, False)
    copy(weights, usual)
    c = config.object.decoder_constant(config)
    error = torch.zeros(runs, len(dataset.x), dataset.n, dtype=torch.float64)
    clean = torch.zeros(runs, dtype=torch.float64)
    for j in range(config.m):
        mine = torch.tensor(dataset.user == j)
        x = torch.tensor(dataset.x, dtype=torch.float32)[mine]
        one = user_parameters(usual, config.m, j)
        inputs = x.expand(runs, -1, -1)
        if config.sigma:
            clean += (predict(one, inputs, c) - x).double().square().sum((1, 2))
            inputs = inputs + config.sigma * torch.randn(inputs.shape, generator=generator)
        error[:, mine] = (predict(one, inputs, c) - x).double()
    scores = scores_of(error.numpy(), dataset)
    if not config.sigma:
        return scores
    without = 100 * (1 - clean.numpy() / dataset.x.size)
    return replace(scores, accuracy_clean_input=without)


def predict(one: model.Parameters, inputs: Tensor, c: float = 0.0) -> Tensor:
    """x̂ of one user's net in every run."""
    h = model.encode(one, inputs)
    z = model.decode(one, h)
    return torch.sigmoid(z + c * h.sum(2, keepdim=True) if c else z)


def scores_of(error: np.ndarray, dataset: Dataset) -> Scores:
    """Scores from errors (runs, rows, n). A run with any number that is not finite has no score at all."""
    square = np.square(error)
    whole = np.isfinite(error).all(axis=(1, 2))

    def percent(values: np.ndarray) -> np.ndarray:
        if values.shape[1] == 0:
            return np.full(len(values), np.nan)
        return np.where(whole, 100 * (1 - values.mean(axis=(1, 2))), np.nan)

    accuracy = percent(square)
    return Scores(
        accuracy,
        percent(square[:, ~dataset.held_out]),
        percent(square[:, dataset.held_out]),
        percent(np.abs(error)),
        accuracy,
        np.where(whole[:, None], square.mean(axis=1), np.nan),
    )


def trivial_predictors(dataset: Dataset, config: Config) -> dict[str, dict[str, float | None]]:
    """Scores of the predictors that a trained net has to beat, on the same rows, with the same noise."""
    torch.set_num_threads(1)  # nets this small are faster so, many times where other processes run
    rng = np.random.default_rng([config.seed or 0, 2])
    x, train = dataset.x, ~dataset.held_out
    inputs = x + config.sigma * rng.standard_normal(x.shape)
    mean = x[train].mean(axis=0)
    _, _, directions = np.linalg.svd(x[train] - mean, full_matrices=False)
    plane = directions[: config.l].T @ directions[: config.l]
    guesses = {
        "zeros": np.zeros_like(x),
        "half": np.full_like(x, 0.5),
        "column mean": np.broadcast_to(mean, x.shape),
        f"PCA-{config.l}": np.clip(mean + (inputs - mean) @ plane, 0, 1),
    }
    found = {name: _summary(scores_of((guess - x)[None], dataset)) for name, guess in guesses.items()}
    found[f"copy {config.l}"] = _copying(inputs, dataset, config)
    found["untrained net"] = _untrained(dataset, config)
    found["data-free net"] = _data_free(dataset, config)
    return found


def _copying(inputs: np.ndarray, dataset: Dataset, config: Config) -> dict[str, float | None]:
    """Send l of the n features as they are, answer 0.5 for the others: the mean over all choices of the l features."""
    copied = _summary(scores_of((np.clip(inputs, 0, 1) - dataset.x)[None], dataset))
    half = _summary(scores_of((0.5 - dataset.x)[None], dataset))
    share = config.l / dataset.n
    mixed: dict[str, float | None] = dict.fromkeys(copied)
    for name, value in copied.items():
        other = half[name]
        if value is not None and other is not None:
            mixed[name] = share * value + (1 - share) * other
    return mixed


def _untrained(dataset: Dataset, config: Config) -> dict[str, float | None]:
    generator = torch.Generator().manual_seed(config.seed or 0)
    weights = model.allocate(UNTRAINED_RUNS * config.m, dataset.n, config.l, config.bias, False)
    model.initialise(weights, generator)
    return _summary(score(dataset, config, weights, generator))


def _data_free(dataset: Dataset, config: Config) -> dict[str, float | None]:
    """The net of `release` and `sampled` with no release: what their prior gives without a single record."""
    from sensorsim.train.estimator import train_on_nothing

    generator = torch.Generator().manual_seed(config.seed or 0)
    weights = train_on_nothing(dataset, config, UNTRAINED_RUNS, generator)
    return _summary(score(dataset, config, weights, generator))


def _summary(scores: Scores) -> dict[str, float | None]:
    """Means over runs; None where no person is held out."""
    means = {name: float(getattr(scores, name).mean()) for name in PARTS}
    return {name: None if math.isnan(value) else value for name, value in means.items()}


def interval(values: list[float | None] | np.ndarray) -> dict[str, Any]:
    """Mean, standard deviation and 95 % interval of the mean over runs (Student's t).

    With a diverged run there is no mean: it is null, and `of_the_rest` says what the other runs gave.
    """
    from scipy.stats import t

    numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    rest = numbers[np.isfinite(numbers)]
    if len(rest) == 0:
        return {"mean": None, "sd": None, "low": None, "high": None, "of_the_rest": None}
    sd = float(rest.std(ddof=1)) if len(rest) > 1 else None
    half = float(t.ppf(0.975, len(rest) - 1)) * sd / math.sqrt(len(rest)) if sd is not None else None
    mean = float(rest.mean())
    if len(rest) < len(numbers):
        return {"mean": None, "sd": None, "low": None, "high": None, "of_the_rest": mean}
    return {
        "mean": mean,
        "sd": sd,
        "low": None if half is None else mean - half,
        "high": None if half is None else mean + half,
        "of_the_rest": mean,
    }
