"""One cell of an evaluation: a configuration trained in all its runs, scored, with its statement."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from sensorsim.errors import InputError
from sensorsim.train import metrics, model
from sensorsim.train.config import Config, checked
from sensorsim.train.data import Dataset
from sensorsim.train.noise import Source
from sensorsim.train.run import RUNS_AT_ONCE, train_block
from sensorsim.train.statement import statement


def run_cell(dataset: Dataset, config: Config) -> dict[str, Any]:
    """Plain data, ready for JSON: the same numbers on every machine that runs the same torch.

    `fm` has one user whatever m is, so it is trained on the same records with the user boundaries removed.
    """
    began = time.perf_counter()
    config, dataset = ready(config, dataset)
    blocks = []
    for block in range(-(-config.runs // RUNS_AT_ONCE)):
        blocks.append(train_and_score(dataset, config, block)[1])
    result: dict[str, Any] = {"config": config.as_dict()}
    result |= statement(config, dataset.n, dataset.normalise).as_dict()
    for name in metrics.PARTS:
        values = np.concatenate([getattr(block, name) for block in blocks])
        result[name] = [None if math.isnan(value) else float(value) for value in values]
    columns = np.concatenate([block.column_mse for block in blocks])
    kept = columns[np.isfinite(columns).all(axis=1)]
    result["column_mse"] = [float(value) for value in kept.mean(axis=0)] if len(kept) else None
    result["diverged"] = sum(block.diverged for block in blocks)
    result["seconds"] = time.perf_counter() - began
    return result


def ready(config: Config, dataset: Dataset) -> tuple[Config, Dataset]:
    """The configuration checked against the data, and the data divided as the configuration says."""
    config = checked(config, dataset.n)
    if config.m == 1 and dataset.m != 1:
        dataset = single_user(dataset)
    if dataset.m != config.m:
        raise InputError(
            f"the data are divided among {dataset.m} users, not m = {config.m}; load them with the same m."
        )
    return config, dataset


def train_and_score(dataset: Dataset, config: Config, block: int = 0) -> tuple[model.Parameters, metrics.Scores]:
    """One block of runs. `config` and `dataset` come from `ready`."""
    source = Source(config.generator_seed(block))
    runs = min(RUNS_AT_ONCE, config.runs - block * RUNS_AT_ONCE)
    weights = train_block(dataset, config, runs, source)
    return weights, metrics.score(dataset, config, weights, source.generator)


def single_user(dataset: Dataset) -> Dataset:
    """The same records and the same held-out persons, all with one user."""
    zeros = np.zeros_like(dataset.user)
    return Dataset(
        dataset.x, dataset.columns, dataset.person, zeros, dataset.held_out, dataset.source, dataset.normalise
    )
