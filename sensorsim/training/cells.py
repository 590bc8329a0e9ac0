"""Train and score one cell of an evaluation: a configuration in all its runs, with its privacy statement.

Run r of a configuration has a seed of its own. Its result depends neither on the number of runs nor on the runs that
are trained beside it, except for rounding, as the order of sums changes. Runs can be added at any time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sensorsim._util.errors import InputError
from sensorsim.datasets.dataset import Dataset
from sensorsim.training import model
from sensorsim.training.config import Config, checked, records_of
from sensorsim.training.fitting import statement
from sensorsim.training.loop import Models, runs_at_once, train_block
from sensorsim.training.scores import Predictor, Summary, blocks, mean_of, percent, scores_of, trivial_scores
from sensorsim.training.step import Source

PARTS = ("accuracy", "accuracy_train", "accuracy_held_out", "accuracy_mae", "accuracy_clean_input", "r2")
Scores = dict[str, Any]  # of one run, by PARTS and `column_mse`; None where it diverged or nobody is held out


# ── score ──


def score(dataset: Dataset, config: Config, models: Models, generators: Sequence[torch.Generator]) -> list[Scores]:
    """Reconstruct every row with its user's encoder, in each run: the target is clean, the input noisy.

    The noise of a run comes from its generator. Errors are summed over a few rows at a time and never stored.
    """
    found = []
    for run, generator in enumerate(generators):
        predicted = predictor(models, config, run)
        seen, clean = Errors(dataset.n), Errors(dataset.n)
        for j, rows, _ in blocks(dataset):
            x, held_out = dataset.x[rows], dataset.held_out[rows]
            inputs = torch.tensor(x, dtype=torch.float32)
            if config.sigma:
                clean.add(predicted(j, inputs).double().numpy() - x, held_out)
                inputs = inputs + config.sigma * torch.randn(inputs.shape, generator=generator)
            seen.add(predicted(j, inputs).double().numpy() - x, held_out)
        scores = seen.scores(dataset)
        without = clean.scores(dataset) if config.sigma else scores
        found.append(scores | {"accuracy_clean_input": without["accuracy"]})
    return found


def predictor(models: Models, config: Config, run: int) -> Callable[[int, Tensor], Tensor]:
    """Return the function of (user, inputs) that reconstructs records by the model of one run."""
    if isinstance(models, list):
        trained = models[run]
        return lambda j, inputs: torch.from_numpy(trained.predict(j, inputs.numpy()))
    c = config.object.decoder_constant(config)

    def by_net(j: int, inputs: Tensor) -> Tensor:
        one = model.user_parameters(models, len(models.W), run * config.m + j)
        h = model.encode(one, inputs[None])
        z = model.decode(one, h)
        return torch.sigmoid(z + c * h.sum(2, keepdim=True) if c else z)[0]

    return by_net


class Errors:
    """Sums of the errors of one run: by column, of rows trained on and of rows held out."""

    def __init__(self, n: int) -> None:
        self.square = np.zeros((2, n))
        self.absolute = 0.0

    def add(self, error: np.ndarray, held_out: np.ndarray) -> None:
        """Add errors (rows, n) in double precision. One that is not finite makes the sums so."""
        with np.errstate(over="ignore", invalid="ignore"):
            square = np.square(error)
            self.square[0] += square[~held_out].sum(axis=0)
            self.square[1] += square[held_out].sum(axis=0)
            self.absolute += float(np.abs(error).sum())

    def scores(self, dataset: Dataset) -> Scores:
        """Return the scores of the run; all are None if an error is not finite."""
        found: Scores = {"accuracy_mae": percent(self.absolute, dataset.x.size)}
        found |= scores_of(self.square, float(self.square.sum()), dataset)
        return found if np.isfinite(self.square).all() else dict.fromkeys(found)


def trivial_predictors(dataset: Dataset, config: Config) -> dict[str, Summary]:
    """Return scores of the predictors that a trained net has to beat, on the same rows, with the same noise."""
    torch.set_num_threads(1)  # nets this small are faster so, many times where other processes run

    def scored(predictors: list[Predictor]) -> Summary:
        models: Any = [SimpleNamespace(predict=one) for one in predictors]
        generator = torch.Generator().manual_seed(config.seed or 0)
        return mean_of(score(dataset, config, models, [generator] * len(models)), PARTS)

    return trivial_scores(dataset, config.l, config.sigma, scored)


# ── train and score ──


def run_cell(dataset: Dataset, config: Config) -> dict[str, Any]:
    """Return the result as plain data for JSON: the same numbers on every machine with the same torch."""
    config, dataset = ready(config, dataset)
    found: list[dict[str, Any]] = []
    for runs in pieces(range(config.runs), runs_at_once(dataset, config)):
        found += run_some(dataset, config, runs)
    return result_of(config, about(dataset, config), found)


def key_of(config: Config) -> str:
    """Return the key of a cell, which does not depend on the number of its runs."""
    return replace(config, runs=1).key


def pieces(runs: Sequence[int], most: int) -> list[list[int]]:
    """Divide run numbers into pieces of at most `most`."""
    return [list(runs[start : start + most]) for start in range(0, len(runs), most)]


def run_some(dataset: Dataset, config: Config, runs: Sequence[int]) -> list[dict[str, Any]]:
    """Return the scores of each of these runs, for JSON. `config` and `dataset` come from `ready`."""
    began = time.perf_counter()
    _, scores = train_and_score(dataset, config, runs)
    each = (time.perf_counter() - began) / len(runs)
    return [one | {"seconds": each} for one in scores]


def about(dataset: Dataset, config: Config) -> dict[str, Any]:
    """Return the privacy statement, which holds for every run. `config` and `dataset` come from `ready`."""
    records = np.bincount(dataset.person[~dataset.held_out])
    return asdict(statement(config, dataset.n, dataset.normalise, records[records > 0], dataset.dropped))


def result_of(config: Config, said: dict[str, Any], runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the result of a cell from its runs, in their order."""
    result: dict[str, Any] = {"config": config.as_dict(), **said, "error": None}
    for name in PARTS:
        result[name] = [run[name] for run in runs]
    columns = [run["column_mse"] for run in runs if run["column_mse"] is not None]
    result["column_mse"] = np.mean(columns, axis=0).tolist() if columns else None
    result["diverged"] = result["accuracy"].count(None)
    result["seconds"] = sum(run["seconds"] for run in runs)
    return result


def failed(config: Config, sentence: str) -> dict[str, Any]:
    """Return the result of a cell that could not run."""
    said = {"nominal_epsilon": config.epsilon, "trust": config.object.trust}
    empty: dict[str, Any] = {name: [] for name in PARTS} | {"column_mse": None, "diverged": 0, "seconds": 0.0}
    return {"config": config.as_dict(), **said, "error": sentence, **empty}


def ready(config: Config, dataset: Dataset) -> tuple[Config, Dataset]:
    """Check the configuration against the data, and return both with the data divided among its users.

    `fm` has one user for any m, so it is trained on the same records without user boundaries.
    """
    config = checked(config, dataset.n, records_of(dataset, config.m))
    if config.m == 1 and dataset.m != 1:
        dataset = single_user(dataset)
        config = checked(config, dataset.n, records_of(dataset, 1))
    if dataset.m != config.m:
        raise InputError(
            f"the data are divided among {dataset.m} users, not m = {config.m}; load them with the same m."
        )
    return config, dataset


def train_and_score(dataset: Dataset, config: Config, runs: Sequence[int]) -> tuple[Models, list[Scores]]:
    """Train and score these runs. `config` and `dataset` come from `ready`."""
    one = replace(config, runs=1)  # seeds, like keys, know nothing of the number of runs
    sources = [Source(one.generator_seed(run)) for run in runs]
    models = train_block(dataset, config, len(runs), sources)
    return models, score(dataset, config, models, [source.generator for source in sources])


def single_user(dataset: Dataset) -> Dataset:
    """Return the same records and held-out persons with a single user."""
    return replace(dataset, user=np.zeros_like(dataset.user))
