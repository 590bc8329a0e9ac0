"""A grid of cells, run on several processes or on a Dask cluster; what is finished is stored and never run again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sensorsim.errors import InputError
from sensorsim.train.cell import run_cell
from sensorsim.train.config import Config, checked
from sensorsim.train.data import Dataset
from sensorsim.train.metrics import PARTS, interval, trivial_predictors
from sensorsim.train.store import Store

FEW_CELLS = 2  # starting processes costs more than running so few cells
DASK_WAIT = 15  # seconds until a scheduler that does not answer is given up


def grid(
    base: Config,
    mechanisms: Iterable[str],
    epsilons: Iterable[float],
    sigmas: Iterable[float],
    constants: Iterable[float],
    n: int,
) -> list[Config]:
    """All combinations, checked; one that differs only in what its mechanism does not use stands once."""
    cells = (
        checked(replace(base, mechanism=mechanism, epsilon=epsilon, sigma=sigma, c=c), n)
        for mechanism, sigma, epsilon, c in itertools.product(mechanisms, sigmas, epsilons, constants)
    )
    return list(dict.fromkeys(cells))


def run(
    dataset: Dataset,
    cells: list[Config],
    store: Store,
    *,
    jobs: int = 1,
    dask: str | None = None,
    finished: Callable[[Config], None] = lambda config: None,
) -> list[dict[str, Any]]:
    """Every cell's result, in the order of `cells`; `finished` is called as each becomes known."""
    waiting = []
    for config in cells:
        if store.get(config.key) is None:
            waiting.append(config)
        else:
            finished(config)
    by_key = {config.key: config for config in waiting}
    for key, result in _results(dataset, waiting, jobs, dask):
        store.put(key, result)
        finished(by_key[key])
    return [found for config in cells if (found := store.get(config.key)) is not None]


def trivial(dataset: Dataset, cells: list[Config], store: Store) -> dict[float, dict[str, dict[str, float | None]]]:
    """The trivial predictors for every sigma of the grid."""
    found = {}
    for config in cells:
        if config.sigma in found or config.m != dataset.m:
            continue
        plain = Config("none", sigma=config.sigma, seed=config.seed, m=config.m, l=config.l, bias=config.bias)
        stored = store.get(f"trivial/{plain.key}")
        if stored is None:
            stored = trivial_predictors(dataset, plain)
            store.put(f"trivial/{plain.key}", stored)
        found[config.sigma] = stored
    return found


def row(result: dict[str, Any]) -> dict[str, Any]:
    """One line of a table: what ran, what it spent, what it gave."""
    config = result["config"]
    line = {name: config[name] for name in ("mechanism", "sigma", "c", "m", "l", "runs", "redraw", "estimator", "kind")}
    said = ("nominal_epsilon", "spent_epsilon", "delta", "covers", "covers_short", "reproducible", "with_secret_noise")
    line |= {name: result[name] for name in said}
    for name in PARTS:
        values = interval(result[name])
        line |= {
            name: values["mean"],
            f"{name}_sd": values["sd"],
            f"{name}_low": values["low"],
            f"{name}_high": values["high"],
        }
    line |= {"diverged": result["diverged"], "accuracy_of_the_rest": interval(result["accuracy"])["of_the_rest"]}
    return line


def _results(
    dataset: Dataset, cells: list[Config], jobs: int, dask: str | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Results as they finish, in any order."""
    if dask is None and (jobs == 1 or len(cells) <= FEW_CELLS):
        for config in cells:
            yield _task(dataset, config)
        return
    import joblib

    with _backend(dataset, jobs, dask):
        work = (joblib.delayed(_task)(dataset, config) for config in cells)
        yield from joblib.Parallel(return_as="generator_unordered", batch_size=1)(work)


def _task(dataset: Dataset, config: Config) -> tuple[str, dict[str, Any]]:
    """What a worker runs: it imports this by name and gets small data and a seed."""
    return config.key, run_cell(dataset, config)


@contextmanager
def _backend(dataset: Dataset, jobs: int, dask: str | None) -> Iterator[None]:
    import joblib

    if dask is None:
        with joblib.parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
            yield
        return
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
