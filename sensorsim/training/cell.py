"""Train and score one cell of an evaluation: a configuration in all its runs, with its privacy statement.

Run r of a configuration has a seed of its own. Its result depends neither on the number of runs nor on the runs that
are trained beside it, except for rounding, as the order of sums changes. Runs can be added at any time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.training.config import Config, checked, records_of
from sensorsim.training.data import Dataset
from sensorsim.training.noise import Source
from sensorsim.training.records import runs_at_once
from sensorsim.training.run import Models, train_block
from sensorsim.training.scoring import PARTS, Scores, score
from sensorsim.training.statement import statement

OF_ONE_RUN = (*PARTS, "column_mse")


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
    return [
        {name: _plain(getattr(scores, name)[place]) for name in OF_ONE_RUN} | {"seconds": each}
        for place in range(len(runs))
    ]


def about(dataset: Dataset, config: Config) -> dict[str, Any]:
    """Return the privacy statement, which holds for every run. `config` and `dataset` come from `ready`."""
    person = dataset.person[~dataset.held_out]
    records = np.bincount(person)
    return statement(config, dataset.n, dataset.normalise, records[records > 0], dataset.dropped).as_dict()


def is_run(found: dict[str, Any]) -> bool:
    """Return whether this is a run of `run_some`; a results file may be damaged."""
    columns = found.get("column_mse", "")
    if type(found.get("seconds")) is not float or not (columns is None or type(columns) is list):
        return False
    return all(type(value) is float for value in columns or ()) and all(
        type(found.get(name, "")) in (float, type(None)) for name in PARTS
    )


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


def train_and_score(dataset: Dataset, config: Config, runs: Sequence[int] | None = None) -> tuple[Models, Scores]:
    """Train and score these runs, by default all. `config` and `dataset` come from `ready`."""
    chosen = range(config.runs) if runs is None else runs
    one = replace(config, runs=1)  # seeds, like keys, know nothing of the number of runs
    sources = [Source(one.generator_seed(run)) for run in chosen]
    models = train_block(dataset, config, len(chosen), sources)
    return models, score(dataset, config, models, [source.generator for source in sources])


def single_user(dataset: Dataset) -> Dataset:
    """Return the same records and held-out persons with a single user."""
    return replace(dataset, user=np.zeros_like(dataset.user))


def _plain(value: Any) -> Any:
    """Return a number or a list of numbers; None if one is not finite."""
    if np.ndim(value):
        return None if not np.isfinite(value).all() else [float(one) for one in value]
    return None if math.isnan(value) else float(value)
