"""Run a grid of cells on several processes or on a Dask cluster; finished runs are stored and not repeated."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.pool import cluster_client, end_with_parent
from sensorsim.datasets.dataset import Dataset
from sensorsim.datasets.public_ranges import brief
from sensorsim.mechanisms import find
from sensorsim.training import cells as cell
from sensorsim.training.cells import PARTS, trivial_predictors
from sensorsim.training.config import Config, checked, records_of
from sensorsim.training.fitting import Statement
from sensorsim.training.loop import runs_at_once
from sensorsim.training.results_file import ABOUT_DATA, CONFIG, TRIVIAL, ResultsFile
from sensorsim.training.scores import interval

FEW_TASKS = 2  # starting processes costs more than running so few
OF_DATA = ("source", "n", "normalise")
OF_CONFIG = ("mechanism", "sigma", "c", "m", "l", "runs", "redraw", "estimator", "kind")
OF_STATEMENT = tuple(field.name for field in fields(Statement) if field.name != "why")
Outcome = tuple["Task", dict[str, Any], list[dict[str, Any]], str | None]
Predictors = dict[str, dict[str, float | None]]  # scores by the name of a trivial predictor


def grid(
    base: Config,
    mechanisms: Iterable[str],
    epsilons: Iterable[float],
    sigmas: Iterable[float],
    constants: Iterable[float],
    n: int,
    dataset: Dataset | None = None,
) -> list[Config]:
    """Return all combinations, checked; those that differ only in what their mechanism does not use appear once.

    A combination that cannot run stays as given, and reports why when it is run; InputError if none can run.
    """
    cells: dict[Any, Config] = {}
    sentences = []
    for mechanism, sigma, epsilon, c in itertools.product(mechanisms, sigmas, epsilons, constants):
        asked = replace(base, mechanism=mechanism, epsilon=epsilon, sigma=sigma, c=c)
        try:
            config = checked(asked, n, None if dataset is None else records_of(dataset, asked.m))
            if dataset is not None and config.m != asked.m:  # `fm` always has one user
                config = checked(config, n, records_of(dataset, config.m))
            cells.setdefault(config, config)
        except Exception as error:
            sentences.append(_reason(error))
            shown = asked if "c" in find(mechanism).options else replace(asked, c=0.0)
            cells.setdefault((asked.mechanism, epsilon, sigma, sentences[-1]), shown)
    if sentences and not any(isinstance(key, Config) for key in cells):
        raise InputError(sentences[0])
    return list(cells.values())


@dataclass(frozen=True)
class Task:
    """Some runs of a cell, for a worker that also has the data."""

    config: Config
    key: str
    runs: tuple[int, ...]


def run(
    dataset: Dataset,
    cells: list[Config],
    store: ResultsFile,
    *,
    jobs: int = 1,
    dask: str | None = None,
    finished: Callable[[Config], None] = lambda config: None,
) -> list[dict[str, Any]]:
    """Return the result of every cell, in the order of `cells`; call `finished` as each becomes known.

    A cell that could not run has the reason as its `error`, and does not stop the others.
    """
    tasks: list[Task] = []
    errors: dict[str, str] = {}
    store.put(ABOUT_DATA, {name: getattr(dataset, name) for name in OF_DATA} | {"rows": len(dataset.x)})

    def fail(key: str, sentence: str) -> None:
        errors[key] = sentence
        store.put_error(key, sentence)

    by_key = {cell.key_of(config): config for config in cells}
    for key, config in by_key.items():
        store.put(f"{CONFIG}{key}", replace(config, runs=1).as_dict())  # so that a results file explains itself
        try:
            tasks += _missing_tasks(dataset, config, store)
        except sqlite3.Error:
            raise
        except Exception as error:
            fail(key, _reason(error))
    left = Counter(task.key for task in tasks)
    for key, config in by_key.items():
        if key not in left:
            finished(config)
    for task, about, runs, sentence in _outcomes(dataset, tasks, jobs, dask):
        if sentence is None:
            store.put_runs(task.key, about, dict(zip(task.runs, runs, strict=True)))
        else:
            fail(task.key, sentence)
        left[task.key] -= 1
        if not left[task.key]:
            finished(by_key[task.key])
    return [_result(config, store, errors.get(cell.key_of(config))) for config in cells]


def _missing_tasks(dataset: Dataset, config: Config, store: ResultsFile) -> list[Task]:
    """Return the runs of a cell that are not stored, in pieces that fit into memory."""
    key = cell.key_of(config)
    known = store.runs(key, config.runs)
    left = [number for number in range(config.runs) if number not in known]
    if not left:
        return []
    config, divided = cell.ready(config, dataset)
    return [Task(config, key, tuple(runs)) for runs in cell.pieces(left, runs_at_once(divided, config))]


def _result(config: Config, store: ResultsFile, sentence: str | None) -> dict[str, Any]:
    """Return the result of a cell from its first `config.runs` stored runs."""
    key = cell.key_of(config)
    known, said = store.runs(key, config.runs), store.get(key)
    if said is None or len(known) < config.runs:
        return cell.failed(config, sentence or "not all of its runs are finished.")
    return cell.result_of(config, said, [known[number] for number in range(config.runs)])


def trivial(dataset: Dataset, cells: list[Config], store: ResultsFile) -> dict[float, Predictors]:
    """Return the scores of trivial predictors for every sigma of the grid that is valid."""
    found = {}
    for config in cells:
        if config.sigma in found:
            continue
        plain = Config("none", sigma=config.sigma, seed=config.seed, m=dataset.m, l=config.l, bias=config.bias)
        try:
            plain = checked(plain, dataset.n, records_of(dataset, dataset.m))
        except InputError:
            continue  # the cell itself reports why
        store.put(f"{CONFIG}{plain.key}", replace(plain, runs=1).as_dict())
        stored = store.get(f"{TRIVIAL}{plain.key}")
        if stored is None:
            stored = trivial_predictors(dataset, plain)
            store.put(f"{TRIVIAL}{plain.key}", stored)
        found[config.sigma] = stored
    return found


def row(result: dict[str, Any]) -> dict[str, Any]:
    """Return one line of a table: the configuration, its privacy budget, its scores."""
    config = result["config"]
    line = {name: config[name] for name in OF_CONFIG}
    line |= {name: result.get(name) for name in OF_STATEMENT}
    for name in PARTS:
        values = interval(result[name])
        line |= {name: values["mean"]}
        line |= {f"{name}_{part}": values[part] for part in ("sd", "low", "high")}
    line |= {"diverged": result["diverged"], "accuracy_of_the_rest": interval(result["accuracy"])["of_the_rest"]}
    return line | {"error": result.get("error")}


def _outcomes(dataset: Dataset, tasks: list[Task], jobs: int, dask: str | None) -> Iterator[Outcome]:
    """Run the tasks, and yield their outcomes in any order."""
    if dask is None and (jobs == 1 or len(tasks) <= FEW_TASKS):
        for task in tasks:
            yield _work(dataset, task)
        return
    import joblib

    left = dict.fromkeys(tasks)
    watch: dict[str, Any] = {"initializer": end_with_parent, "initargs": (os.getpid(),)}  # processes end with this one
    try:
        with ExitStack() as stack:
            if dask is None:
                config = joblib.parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1, **watch)
            else:
                stack.enter_context(cluster_client(dask))
                config = joblib.parallel_config(backend="dask", n_jobs=-1)
            stack.enter_context(config)
            work = (joblib.delayed(_work)(dataset, task) for task in tasks)
            for outcome in joblib.Parallel(return_as="generator_unordered", batch_size=1)(work):
                left.pop(outcome[0], None)
                yield outcome
    except InputError:
        raise
    except Exception as error:  # a worker was killed, or its machine is gone
        for task in left:
            yield task, {}, [], _reason(error)


def _work(dataset: Dataset, task: Task) -> Outcome:
    """Run a task in a worker, which imports this function by name.

    Linear algebra gets one thread: the last bits of its sums depend on how many there are.
    """
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):
            config, divided = cell.ready(task.config, dataset)
            return task, cell.about(divided, config), cell.run_some(divided, config, task.runs), None
    except Exception as error:
        return task, {}, [], _reason(error)


def _reason(error: Exception) -> str:
    """Say why a cell could not run; one cell does not end a sweep."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "alloc" in str(error)):  # torch's words
        return "there is not enough memory for this cell; give fewer --jobs, or a smaller --batch."
    what = f"{type(error).__name__}: {brief(str(error).partition(chr(10))[0])}"
    return f"this cell failed ({what}); change its settings, or report it: it is tried again when the sweep goes on."
