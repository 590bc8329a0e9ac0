"""`sensorsim sweep`: a grid of mechanisms, epsilons and sigmas, resumable."""

from __future__ import annotations

import os
import sys
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from sensorsim.cli.choices import FILE, MECHANISMS
from sensorsim.cli.names import mechanism_name
from sensorsim.cli.output import emit, format_option, progress_bar
from sensorsim.cli.training import (
    MAXIMUM_NOTE,
    MOST_JOBS,
    base_config,
    data_options,
    grid_options,
    load_data,
    model_options,
    numbers,
    refuse_unread,
    seed_option,
    shown,
)
from sensorsim.errors import InputError
from sensorsim.files import check_target
from sensorsim.mechanisms import every, names, resolve
from sensorsim.train.config import Config

if TYPE_CHECKING:
    from sensorsim.train.data import Dataset
    from sensorsim.train.store import Store

SCHEMA_VERSION = 3
WIDTH = 118


@click.command()
@click.option(
    "--mechanism",
    type=MECHANISMS,
    default=",".join(m.name for m in every()),
    show_default=True,
    help="Names, with commas.",
)
@grid_options
@click.option(
    "--c", "c", default=str(Config.c), show_default=True, help="Stabilization constants of spof, or a range 0:2.5:0.25."
)
@data_options
@seed_option
@model_options
@click.option(
    "--results", type=FILE, default="results.sqlite", show_default=True, help="Where finished cells are kept."
)
@click.option("--jobs", type=click.IntRange(1, MOST_JOBS), help="Processes.  [default: the processors of this machine]")
@click.option("--dask", metavar="ADDRESS", help="Run on this Dask cluster, as in tcp://127.0.0.1:8786.")
@format_option
def command(fmt: str, **chosen: Any) -> None:
    """Accuracy of private training over a grid, beside the trivial predictors.

    Run the same command again after an interruption, or with more runs: finished runs are kept and never run again.
    Raw rows are read for scoring: a sweep is a simulation, and its figures are not private.

    Example: sensorsim sweep --mechanism dpsgd,sampled --epsilon 0.1,1.6 --sigma 0 --runs 20
    """
    check_target(chosen["results"])
    for word in chosen["mechanism"].split(","):
        if word.strip():
            resolve(word.strip())  # before anything heavy is loaded
    dataset = load_data(chosen)
    cells = cells_of(chosen, dataset)
    from sensorsim.train import sweep
    from sensorsim.train.store import Store

    with Store(chosen["results"], dataset.digest) as store:
        results = run_with_progress(dataset, cells, store, chosen["jobs"], chosen["dask"])
        trivial = sweep.trivial(dataset, cells, store)
    rows = [sweep.row(result) for result in results]
    if all(row["error"] for row in rows):
        raise InputError(rows[0]["error"])
    emit(
        fmt,
        lambda: table(dataset, rows, trivial),
        lambda: {
            "schema_version": SCHEMA_VERSION,
            "data": {"source": dataset.source, "rows": len(dataset.x), "n": dataset.n, "normalise": dataset.normalise},
            "rows": rows,
            "trivial": [{"sigma": sigma, "predictors": found} for sigma, found in trivial.items()],
        },
        lambda: rows,
    )


def cells_of(chosen: dict[str, Any], dataset: Dataset) -> list[Config]:
    from dataclasses import replace

    from sensorsim.train import sweep

    mechanisms = [mechanism_name(name.strip()) for name in chosen["mechanism"].split(",") if name.strip()]
    if not mechanisms:
        raise InputError(f"--mechanism {chosen['mechanism']} names none; give some of {names()}, with commas.")
    epsilons, sigmas, constants = (numbers(chosen[name], name) for name in ("epsilon", "sigma", "c"))
    base = base_config({name: value for name, value in chosen.items() if name not in SWEPT}, chosen["runs"])
    cells = sweep.grid(base, mechanisms, epsilons, sigmas, constants, dataset.n, dataset)
    refuse_unread(mechanisms, replace(base, sigma=max(sigmas), c=max(constants)))  # of options that hold
    return cells


SWEPT = ("mechanism", "epsilon", "sigma", "c", "runs")


def run_with_progress(
    dataset: Dataset, cells: list[Config], store: Store, jobs: int | None, dask: str | None
) -> list[dict[str, Any]]:
    """All results; a bar with the time left on stderr, and a word about what is safe after Ctrl-C."""
    from sensorsim.train import sweep

    done = 0
    bar = progress_bar("sweep", "cells")

    def finished(config: Config) -> None:
        nonlocal done
        done += 1
        epsilon = "" if config.epsilon is None else f" eps {config.epsilon:g}"
        bar.update(task, completed=done, description=f"{config.mechanism}{epsilon} sigma {config.sigma:g}")

    with bar:
        task = bar.add_task("starting", total=len(cells))
        try:
            return sweep.run(dataset, cells, store, jobs=jobs or os.cpu_count() or 1, dask=dask, finished=finished)
        except KeyboardInterrupt:
            bar.stop()
            click.echo(
                f"{done} cells and all finished runs are safe in {store.path}; run the same command to go on.", err=True
            )
            sys.exit(130)


def table(
    dataset: Dataset, rows: list[dict[str, Any]], trivial: dict[float, dict[str, dict[str, float | None]]]
) -> str:
    """The result on one screen."""
    lines = [
        f"Reconstruction accuracy, 1 - MSE in per cent · {dataset.source}, {len(dataset.x)} rows, n = {dataset.n}",
        f"Mean over {rows[0]['runs']} runs ± 95 % interval; R² over the column means. Epsilon per record, and of the",
        "person with the median number of records, against replacing them, with secret noise: the sweep itself draws",
        "from a seed, so that it can go on; reproducible, so not private. Local: raw records stay on the body.",
    ]
    for sigma in dict.fromkeys(row["sigma"] for row in rows):
        found = trivial.get(sigma, {})
        lines += ["", f" sigma = {sigma:g}", _head()]
        for row in rows:
            if row["sigma"] == sigma:
                lines += _lines(row)
        lines += [f" {'·' * 40}", *(_trivial(name, scores) for name, scores in found.items())]
    if dataset.normalise == "max":
        lines += ["", f" {MAXIMUM_NOTE}"]
    return "\n".join(lines)


def _head() -> str:
    spent = f" {'mechanism':<15}{'trust':<8}{'nominal':>8}{'spent':>8}{'person':>9}"
    return f"{spent}{'accuracy':>11}{'':>9}{'R²':>7}{'held out':>10}   covers · settings"


def _nominal(row: dict[str, Any]) -> str:
    return "–" if row["nominal_epsilon"] is None else f"{row['nominal_epsilon']:.6g}"


def _lines(row: dict[str, Any]) -> list[str]:
    name = row["mechanism"] + (f" c={row['c']:g}" if row["c"] else "")
    head = f" {name:<15}{row['trust'] or '–':<8}{_nominal(row):>8}"
    if row["error"]:
        return wrap(row["error"], WIDTH, initial_indent=f"{head}  ", subsequent_indent=" " * 34)
    head += f"{shown(row['spent_epsilon'], 2):>8}{shown(row['epsilon_person_median'], 1):>9}"
    tail = f"   {row['with_secret_noise']} · {row['settings'] or '–'}"
    if row["diverged"]:
        rest = shown(row["accuracy_of_the_rest"])
        return [f"{head}  {row['diverged']} of {row['runs']} runs diverged (the rest: {rest}){tail}"[:WIDTH]]
    half = "" if row["accuracy_low"] is None else f"± {row['accuracy'] - row['accuracy_low']:.3f}"
    scores = f"{shown(row['accuracy']):>11} {half:<8}{shown(row['r2']):>7}{shown(row['accuracy_held_out']):>10}"
    return [head + scores + tail]


def _trivial(name: str, scores: dict[str, float | None]) -> str:
    """One line for a trivial predictor, aligned with the lines of results."""
    found = f" {name:<48}{shown(scores['accuracy']):>11}"
    return f"{found}{'':>9}{shown(scores.get('r2')):>7}{shown(scores['accuracy_held_out']):>10}"
