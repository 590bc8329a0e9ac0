"""A grid of cells, run on several processes or on a Dask cluster; runs that are finished are stored and kept."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sensorsim._util.hints import need
from sensorsim.errors import InputError
from sensorsim.mechanisms import find
from sensorsim.ranges import brief
from sensorsim.train import cell
from sensorsim.train.config import Config, checked, records_of
from sensorsim.train.data import Dataset
from sensorsim.train.interval import interval
from sensorsim.train.metrics import trivial_predictors
from sensorsim.train.orphans import end_with
from sensorsim.train.records import runs_at_once
from sensorsim.train.scoring import PARTS
from sensorsim.train.store import ABOUT_DATA, CONFIG, TRIVIAL, Store

FEW_TASKS = 2  # starting processes costs more than running so few
DASK_WAIT = 15  # seconds until a scheduler that does not answer is given up
OF_DATA = ("source", "n", "normalise")
OF_CONFIG = ("mechanism", "sigma", "c", "m", "l", "runs", "redraw", "estimator", "kind")
OF_STATEMENT = (
    *("nominal_epsilon", "spent_epsilon", "delta", "covers", "covers_short", "reproducible", "with_secret_noise"),
    *("trust", "settings", "epsilon_person_median", "epsilon_person_most", "records_per_person_median"),
)
_is_statement = frozenset(OF_STATEMENT).issubset  # of the names in a dictionary


def grid(
    base: Config,
    mechanisms: Iterable[str],
    epsilons: Iterable[float],
    sigmas: Iterable[float],
    constants: Iterable[float],
    n: int,
    dataset: Dataset | None = None,
) -> list[Config]:
    """All combinations, checked; one that differs only in what its mechanism does not use stands once.

    One that cannot run stands as it was asked for, and says why when it is run; an error if none can.
    """
    cells: dict[Any, Config] = {}
    sentences = []
    for mechanism, sigma, epsilon, c in itertools.product(mechanisms, sigmas, epsilons, constants):
        asked = replace(base, mechanism=mechanism, epsilon=epsilon, sigma=sigma, c=c)
        try:
            config = _checked(asked, n, dataset)
            cells.setdefault(config, config)
        except Exception as error:
            sentences.append(_sentence(error))
            shown = asked if "c" in find(mechanism).options else replace(asked, c=0.0)
            cells.setdefault((asked.mechanism, epsilon, sigma, sentences[-1]), shown)
    if sentences and not any(isinstance(key, Config) for key in cells):
        raise InputError(sentences[0])
    return list(cells.values())


def _checked(config: Config, n: int, dataset: Dataset | None) -> Config:
    """With the number of records that its settings may depend on; `fm` has one user whatever was asked."""
    if dataset is None:
        return checked(config, n)
    found = checked(config, n, records_of(dataset, config.m))
    return found if found.m == config.m else checked(found, n, records_of(dataset, found.m))


@dataclass(frozen=True)
class Task:
    """Some runs of a cell; what a worker gets, with the data."""

    config: Config
    key: str
    runs: tuple[int, ...]


def run(
    dataset: Dataset,
    cells: list[Config],
    store: Store,
    *,
    jobs: int = 1,
    dask: str | None = None,
    finished: Callable[[Config], None] = lambda config: None,
) -> list[dict[str, Any]]:
    """Every cell's result, in the order of `cells`; `finished` is called as each becomes known.

    A cell that could not run has the sentence that says why as its `error`, and does not stop the others.
    """
    tasks: list[Task] = []
    left: dict[str, tuple[int, Config]] = {}  # pieces that are still to come of each cell
    wrong: dict[str, str] = {}
    store.put(ABOUT_DATA, {name: getattr(dataset, name) for name in OF_DATA} | {"rows": len(dataset.x)})
    for config in cells:
        _keep_config(config, cell.key_of(config), store)
        try:
            missing = _missing(dataset, config, store)
        except sqlite3.Error:
            raise
        except Exception as error:
            wrong[cell.key_of(config)] = _sentence(error)
            store.put_error(cell.key_of(config), _sentence(error))
            missing = []
        tasks += missing
        left[cell.key_of(config)] = len(missing), config
        if not missing:
            finished(config)
    for task, about, runs, sentence in _results(dataset, tasks, jobs, dask):
        if sentence is None:
            store.put_runs(task.key, about, dict(zip(task.runs, runs, strict=True)))
        else:
            wrong[task.key] = sentence
            store.put_error(task.key, sentence)
        count, config = left[task.key]
        left[task.key] = count - 1, config
        if count == 1:
            finished(config)
    return [_result(config, store, wrong.get(cell.key_of(config))) for config in cells]


def _keep_config(config: Config, key: str, store: Store) -> None:
    """What a key stands for, so that a results file can be read by itself. How many runs there are, the file shows."""
    store.put(f"{CONFIG}{key}", replace(config, runs=1).as_dict())


def _missing(dataset: Dataset, config: Config, store: Store) -> list[Task]:
    """What is still to be run of a cell, in pieces that fit into memory."""
    key = cell.key_of(config)
    known = store.runs(key, config.runs, cell.is_run)
    left = [number for number in range(config.runs) if number not in known]
    said = store.get(key, _is_statement)
    if not left and said is not None:
        return []
    config, divided = cell.ready(config, dataset)
    if said is None and known:  # its row was damaged
        store.put(key, cell.about(divided, config))
    return [Task(config, key, tuple(runs)) for runs in cell.pieces(left, runs_at_once(divided, config))]


def _result(config: Config, store: Store, sentence: str | None) -> dict[str, Any]:
    """From the store: the first runs of the cell, as many as were asked for."""
    key = cell.key_of(config)
    known = store.runs(key, config.runs, cell.is_run)
    said = store.get(key, _is_statement)
    if said is None or len(known) < config.runs:
        return cell.failed(config, sentence or "not all of its runs are finished.")
    return cell.result_of(config, said, [known[number] for number in range(config.runs)])


def trivial(dataset: Dataset, cells: list[Config], store: Store) -> dict[float, dict[str, dict[str, float | None]]]:
    """The trivial predictors for every sigma of the grid that can be."""
    found = {}
    for config in cells:
        if config.sigma in found:
            continue
        plain = Config("none", sigma=config.sigma, seed=config.seed, m=dataset.m, l=config.l, bias=config.bias)
        try:
            plain = checked(plain, dataset.n, records_of(dataset, dataset.m))
        except InputError:
            continue  # the cell itself says why
        _keep_config(plain, plain.key, store)
        stored = store.get(f"{TRIVIAL}{plain.key}", _are_scores)
        if stored is None:
            stored = trivial_predictors(dataset, plain)
            store.put(f"{TRIVIAL}{plain.key}", stored)
        found[config.sigma] = stored
    return found


def row(result: dict[str, Any]) -> dict[str, Any]:
    """One line of a table: what ran, what it spent, what it gave."""
    config = result["config"]
    line = {name: config[name] for name in OF_CONFIG}
    line |= {name: result.get(name) for name in OF_STATEMENT}
    for name in PARTS:
        values = interval(result[name])
        line |= {
            name: values["mean"],
            f"{name}_sd": values["sd"],
            f"{name}_low": values["low"],
            f"{name}_high": values["high"],
        }
    line |= {"diverged": result["diverged"], "accuracy_of_the_rest": interval(result["accuracy"])["of_the_rest"]}
    return line | {"error": result.get("error")}


def _are_scores(found: dict[str, Any]) -> bool:
    """Whether these are the trivial predictors of a sigma."""
    return bool(found) and all(isinstance(one, dict) and "accuracy_held_out" in one for one in found.values())


Outcome = tuple[Task, dict[str, Any], list[dict[str, Any]], str | None]


def _results(dataset: Dataset, tasks: list[Task], jobs: int, dask: str | None) -> Iterator[Outcome]:
    """Outcomes as they come, in any order."""
    if dask is None and (jobs == 1 or len(tasks) <= FEW_TASKS):
        for task in tasks:
            yield _worked(dataset, task)
        return
    import joblib

    left = dict.fromkeys(tasks)
    try:
        with _backend(dataset, jobs, dask):
            work = (joblib.delayed(_worked)(dataset, task) for task in tasks)
            for outcome in joblib.Parallel(return_as="generator_unordered", batch_size=1)(work):
                left.pop(outcome[0], None)
                yield outcome
    except InputError:
        raise
    except Exception as error:  # a worker was killed, or its machine went away
        for task in left:
            yield task, {}, [], _sentence(error)


def _worked(dataset: Dataset, task: Task) -> Outcome:
    """What a worker runs: it imports this by name and gets small data and a seed."""
    try:
        config, divided = cell.ready(task.config, dataset)
        return task, cell.about(divided, config), cell.run_some(divided, config, task.runs), None
    except Exception as error:
        return task, {}, [], _sentence(error)


def _sentence(error: Exception) -> str:
    """Why a cell could not run, whatever it was: one cell does not end a sweep."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "alloc" in str(error)):  # so says torch
        return "there is not enough memory for this cell; give fewer --jobs, or a smaller --batch."
    what = f"{type(error).__name__}: {brief(str(error).partition(chr(10))[0])}"
    return f"this cell failed ({what}); change its settings, or report it: it is tried again when the sweep goes on."


@contextmanager
def _backend(dataset: Dataset, jobs: int, dask: str | None) -> Iterator[None]:
    import joblib

    if dask is None:
        watched: dict[str, Any] = {"initializer": end_with, "initargs": (os.getpid(),)}
        with joblib.parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1, **watched):
            yield
        return
    need("distributed", why="--dask", instead="leave --dask out")
    from distributed import Client

    try:
        client = Client(dask, timeout=DASK_WAIT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"no Dask scheduler answers at {dask} ({error}); start one, or leave --dask out.") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"the Dask scheduler at {dask} has no workers; start one with: dask worker {dask}")
        with joblib.parallel_config(backend="dask", n_jobs=-1):
            yield
