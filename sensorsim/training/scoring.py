"""Accuracy of trained models, run by run. Errors are summed over a few rows at a time and never kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sensorsim.training import model
from sensorsim.training.config import Config
from sensorsim.training.data import Dataset
from sensorsim.training.run import Models

PARTS = ("accuracy", "accuracy_train", "accuracy_held_out", "accuracy_mae", "accuracy_clean_input", "r2")
ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class Scores:
    """Per run, accuracies in per cent; NaN where a run diverged (or where no person is held out)."""

    accuracy: np.ndarray  # (runs,) 1 - MSE over all rows, inputs as the sensor delivers them
    accuracy_train: np.ndarray  # over persons that were trained on
    accuracy_held_out: np.ndarray  # over persons that were not
    accuracy_mae: np.ndarray  # 1 - MAE over all rows
    accuracy_clean_input: np.ndarray  # 1 - MSE when the input has no environmental noise
    r2: np.ndarray  # 1 - MSE over that of the column means of the same rows, a fraction; NaN where nothing varies
    column_mse: np.ndarray  # (runs, n)


def score(
    dataset: Dataset, config: Config, models: Models, generator: torch.Generator | Sequence[torch.Generator]
) -> Scores:
    """Reconstruct every row with its user's encoder: the target is clean, the input has the sensor's noise.

    The noise comes from one generator, or for each run from one of its own.
    """
    runs = len(models) if isinstance(models, list) else models.W.shape[0] // config.m
    generators = [generator] * runs if isinstance(generator, torch.Generator) else list(generator)
    seen, clean = [], []
    for run in range(runs):
        as_delivered, without_noise = _score_one(dataset, config, predictor(models, config, run), generators[run])
        seen.append(as_delivered)
        clean.append(without_noise)
    scores = _scores(seen, dataset)
    return replace(scores, accuracy_clean_input=_scores(clean, dataset).accuracy) if config.sigma else scores


def predictor(models: Models, config: Config, run: int) -> Callable[[int, Tensor], Tensor]:
    """(user, inputs) to what is reconstructed of them, by the model of one run."""
    if isinstance(models, list):
        trained = models[run]
        return lambda j, inputs: torch.from_numpy(trained.predict(j, inputs.numpy()))
    c = config.object.decoder_constant(config)
    first = run * config.m

    def of_net(j: int, inputs: Tensor) -> Tensor:
        return predict(model.user_parameters(models, len(models.W), first + j), inputs[None], c)[0]

    return of_net


def predict(one: model.Parameters, inputs: Tensor, c: float = 0.0) -> Tensor:
    """x̂ of one user's net in every run."""
    h = model.encode(one, inputs)
    z = model.decode(one, h)
    return torch.sigmoid(z + c * h.sum(2, keepdim=True) if c else z)


class Sums:
    """What is kept of the errors of one run: column sums, of rows trained on and of rows held out."""

    def __init__(self, n: int) -> None:
        self.square = np.zeros((2, n))
        self.absolute = 0.0

    def add(self, error: np.ndarray, held_out: np.ndarray) -> None:
        """Errors (rows, n) in double precision. One that is no finite number makes the sums so."""
        with np.errstate(over="ignore", invalid="ignore"):
            square = np.square(error)
            self.square[0] += square[~held_out].sum(axis=0)
            self.square[1] += square[held_out].sum(axis=0)
            self.absolute += float(np.abs(error).sum())


def _score_one(
    dataset: Dataset, config: Config, predicted: Callable[[int, Tensor], Tensor], generator: torch.Generator
) -> tuple[Sums, Sums]:
    """The sums of one run with the inputs as delivered, and with clean inputs where those differ."""
    seen, clean = Sums(dataset.n), Sums(dataset.n)
    for j in range(config.m):
        mine = (dataset.user == j).nonzero()[0]
        for start in range(0, len(mine), ROWS_AT_ONCE):
            rows = mine[start : start + ROWS_AT_ONCE]
            x, held_out = dataset.x[rows], dataset.held_out[rows]
            inputs = torch.tensor(x, dtype=torch.float32)
            if config.sigma:
                clean.add(predicted(j, inputs).double().numpy() - x, held_out)
                inputs = inputs + config.sigma * torch.randn(inputs.shape, generator=generator)
            seen.add(predicted(j, inputs).double().numpy() - x, held_out)
    return seen, clean


def _scores(sums: list[Sums], dataset: Dataset) -> Scores:
    held, n = int(dataset.held_out.sum()), dataset.n
    rows = len(dataset.x)
    square = np.array([of_run.square for of_run in sums])  # (runs, 2, n)
    whole = np.isfinite(square).all(axis=(1, 2))

    def percent(total: np.ndarray, count: int) -> np.ndarray:
        if count == 0:
            return np.full(len(sums), np.nan)
        return np.where(whole, 100 * (1 - total / (count * n)), np.nan)

    total = square.sum(axis=(1, 2))
    spread = float(np.square(dataset.x - dataset.x.mean(axis=0)).sum())
    accuracy = percent(total, rows)
    return Scores(
        accuracy,
        percent(square[:, 0].sum(axis=1), rows - held),
        percent(square[:, 1].sum(axis=1), held),
        percent(np.array([of_run.absolute for of_run in sums]), rows),
        accuracy,
        np.where(whole & (spread > 0), 1 - total / (spread or 1.0), np.nan),
        np.where(whole[:, None], square.sum(axis=1) / rows, np.nan),
    )
