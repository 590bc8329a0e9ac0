"""`sensorsim sweep`: a grid of mechanisms, epsilons and sigmas, resumable."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from sensorsim._util.errors import InputError
from sensorsim._util.terminal import columns, fold
from sensorsim._util.terminal import table as columned
from sensorsim.calls import listed
from sensorsim.cli.choices import DATABASE, MECHANISMS
from sensorsim.cli.clusters import dask_option
from sensorsim.cli.names import mechanism_name
from sensorsim.cli.output import emit, format_option, progress_bar, tell
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
from sensorsim.mechanisms import every, names
from sensorsim.noise.certificate import format_epsilon_column as epsilon_to
from sensorsim.training.config import Config

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset
    from sensorsim.training.results_file import ResultsFile

SCHEMA_VERSION = 3
Axes = tuple[list[str], list[float], list[float], list[float]]  # mechanisms, epsilons, sigmas, constants


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
    "--results", type=DATABASE, default="results.sqlite", show_default=True, help="Where finished cells are kept."
)
@click.option("--jobs", type=click.IntRange(1, MOST_JOBS), help="Processes.  [default: the processors of this machine]")
@dask_option
@format_option
def command(fmt: str, **chosen: Any) -> None:
    """Accuracy of private training over a grid, beside the trivial predictors.

    Run the same command again after an interruption, or with more runs: finished runs are kept and never run again.
    Raw rows are read for scoring: a sweep is a simulation, and its figures are not private.

    Example: sensorsim sweep --mechanism dpsgd,sampled --epsilon 0.1,1.6 --sigma 0 --runs 20
    """
    axes, base = axes_of(chosen)
    dataset = load_data(chosen)
    from sensorsim.training import sweeps
    from sensorsim.training.results_file import ResultsFile

    cells = sweeps.grid(base, *axes, dataset.n, dataset)
    with ResultsFile(chosen["results"], dataset.digest) as store:
        results = run_with_progress(dataset, cells, store, chosen["jobs"], chosen["dask"])
        trivial = sweeps.trivial(dataset, cells, store)
    rows = [sweeps.row(result) for result in results]
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


def axes_of(chosen: dict[str, Any]) -> tuple[Axes, Config]:
    """Return the axes of the grid and what all cells have in common, checked before any data is read."""
    from dataclasses import replace

    from sensorsim.training.config import check_axes

    mechanisms = [mechanism_name(name) for name in listed(chosen["mechanism"])]
    if not mechanisms:
        raise InputError(f"--mechanism {chosen['mechanism']} names none; give some of {names()}, with commas.")
    epsilons, sigmas, constants = (numbers(chosen[name], name) for name in ("epsilon", "sigma", "c"))
    base = base_config({name: value for name, value in chosen.items() if name not in SWEPT}, chosen["runs"])
    check_axes(base, mechanisms, epsilon=epsilons, sigma=sigmas, c=constants)
    refuse_unread(mechanisms, replace(base, sigma=max(sigmas), c=max(constants)))  # of options that hold
    return (mechanisms, epsilons, sigmas, constants), base


SWEPT = ("mechanism", "epsilon", "sigma", "c", "runs")


def run_with_progress(
    dataset: Dataset, cells: list[Config], store: ResultsFile, jobs: int | None, dask: str | None
) -> list[dict[str, Any]]:
    """All results; a bar with the time left on stderr, and a word about what is safe after Ctrl-C."""
    from sensorsim.training import sweeps

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
            return sweeps.run(dataset, cells, store, jobs=jobs or os.cpu_count() or 1, dask=dask, finished=finished)
        except KeyboardInterrupt:
            bar.stop()
            tell(f"{done} cells and all finished runs are safe in {store.path}; run the same command to go on.")
            sys.exit(130)


HEADS = (
    "mechanism",
    "trust",
    "nominal",
    "spent",
    "person",
    "accuracy",
    "± 95 %",
    "R²",
    "held out",
    "covers",
    "settings",
)
DROPPED = ("settings", "held out", "± 95 %")  # where a line is too short; who is trusted and a person's epsilon stay


def table(
    dataset: Dataset, rows: list[dict[str, Any]], trivial: dict[float, dict[str, dict[str, float | None]]]
) -> str:
    """The result on one screen."""
    width = columns()
    lines = fold(
        f"Reconstruction accuracy, 1 - MSE in per cent · {dataset.source}, {len(dataset.x)} rows, n = {dataset.n}",
        width,
    )
    lines += fold(
        f"Mean over {rows[0]['runs']} runs ± 95 % interval; R² over the column means. Epsilon per record, and of the "
        "person with the median number of records, against replacing them, with secret noise: the sweep itself draws "
        "from a seed, so that it can go on, and is scored on raw records: its figures are not private. Local: raw "
        "records stay on the body. Epsilons of cells that were finished before are as the results file states them.",
        width,
    )
    left_out: list[str] = []
    for sigma in dict.fromkeys(row["sigma"] for row in rows):
        here = [row for row in rows if row["sigma"] == sigma]
        cells = [*map(_cells, here), *(_trivial(name, scores) for name, scores in trivial.get(sigma, {}).items())]
        made = columned(HEADS, cells, width, HEADS[2:6] + HEADS[7:9], DROPPED)
        left_out = [name for name in DROPPED if name not in made[0]]
        lines += ["", f" sigma = {sigma:g}", *made[: len(here) + 1], f" {'·' * 40}", *made[len(here) + 1 :]]
        lines += [line for row in here for line in fold(_problem(row), width, " ")]
    if left_out:
        lines += [
            "",
            *fold(f"Not shown for want of room: {', '.join(left_out)}; --format csv and json have all.", width),
        ]
    if dataset.normalise == "max":
        lines += ["", *fold(MAXIMUM_NOTE, width, " ")]
    return "\n".join(lines)


def _name(row: dict[str, Any]) -> str:
    return f"{row['mechanism']} c={row['c']:g}" if row["c"] else str(row["mechanism"])


def _nominal(row: dict[str, Any]) -> str:
    return "–" if row["nominal_epsilon"] is None else f"{row['nominal_epsilon']:.6g}"


def _cells(row: dict[str, Any]) -> list[str]:
    """What stands in the columns; without scores where there are none."""
    head = [_name(row), row["trust"] or "–", _nominal(row)]
    if row["error"]:
        return [*head, "–", "–", "–", "", "–", "–", "–", "–"]
    head += [epsilon_to(row["spent_epsilon"], 2), epsilon_to(row["epsilon_person_median"], 1)]
    half = "" if row["accuracy_low"] is None else f"± {row['accuracy'] - row['accuracy_low']:.3f}"
    scores = [shown(row["accuracy"]), half, shown(row["r2"]), shown(row["accuracy_held_out"])]
    tail = [row["with_secret_noise"], row["settings"] or "–"]
    return [*head, *(["–", "", "–", "–"] if row["diverged"] else scores), *tail]


def _problem(row: dict[str, Any]) -> str:
    """Why a row has no scores; empty where it has."""
    where = f"{_name(row)} at epsilon {_nominal(row)}"
    if row["error"]:
        return f"{where}: {row['error']}"
    if row["diverged"]:
        rest = shown(row["accuracy_of_the_rest"])
        return f"{where}: {row['diverged']} of {row['runs']} runs diverged (the rest: {rest})"
    return ""


def _trivial(name: str, scores: dict[str, float | None]) -> list[str]:
    """A trivial predictor, in the columns of the results."""
    found = [shown(scores["accuracy"]), "", shown(scores.get("r2")), shown(scores["accuracy_held_out"])]
    return [name, *[""] * 4, *found, "", ""]
