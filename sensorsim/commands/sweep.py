"""`sensorsim sweep`: a grid of mechanisms, epsilons and sigmas, resumable."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import DATABASE, MECHANISMS, split_names
from sensorsim._util.results import Listing, bars
from sensorsim._util.terminal import columns, fold, table
from sensorsim.commands.declare import Command, option
from sensorsim.commands.training_options import (
    MAXIMUM_NOTE,
    Axis,
    DataOptions,
    GridOptions,
    Numbers,
    WorkerOptions,
    known_mechanism,
    settings_of,
)
from sensorsim.mechanisms import every, names
from sensorsim.noise.certificate import format_epsilon_column
from sensorsim.training.config import Config, ModelSettings, check_axes, idle_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.datasets.dataset import Dataset
    from sensorsim.training.results_file import ResultsFile

SCHEMA_VERSION = 3
SWEPT = ("mechanism", "epsilon", "sigma", "c")
HEADS = (
    *("mechanism", "trust", "nominal", "spent", "person", "accuracy", "± 95 %", "R²", "held out", "covers"),
    "settings",
)
DROPPED = ("settings", "held out", "± 95 %")  # on a narrow terminal; trust and a person's epsilon stay
Row = dict[str, Any]
Predictors = dict[str, dict[str, float | None]]


def sweep_listing(about: dict[str, Any], rows: list[Row], trivial: dict[float, Predictors]) -> Listing:
    """Return the accuracy of every cell of a grid, beside the trivial predictors."""
    title = f"Reconstruction accuracy, 1 - MSE in per cent · {about['source']}, {about['rows']} rows, n = {about['n']}"
    values = {f"{_name(row)}, ε {_nominal(row)}, σ {row['sigma']:g}": row["accuracy"] for row in rows}
    said = {f"{_name(row)}, epsilon {_nominal(row)}, sigma {row['sigma']:g}": _cells(row)[5] for row in rows}
    predictors = [{"sigma": sigma, "predictors": found} for sigma, found in trivial.items()]
    data = {"schema_version": SCHEMA_VERSION, "data": about, "rows": rows, "trivial": predictors}

    def draw(title: str) -> "Figure":
        return bars(title, values, "accuracy (1 - MSE), %", most=100)

    return Listing(title, rows, data, draw, said, lambda: sweep_text(title, rows, trivial, about["normalise"]))


def sweep_text(title: str, rows: list[Row], trivial: dict[float, Predictors], normalise: str) -> str:
    """Return the cells of each sigma as a table for a terminal, the trivial predictors below them."""
    width = columns()
    lines = fold(title, width)
    lines += fold(
        f"Mean over {rows[0]['runs']} runs ± 95 % interval; R² over the column means. Epsilon per record, and of "
        "the person with the median number of records, against replacing them, with secret noise: the sweep itself "
        "draws from a seed, so that it can go on, and is scored on raw records: its figures are not private. "
        "Local: raw records stay on the body. Epsilons of cells that were finished before are as the results file "
        "states them.",
        width,
    )
    left_out: list[str] = []
    for sigma in dict.fromkeys(row["sigma"] for row in rows):
        here = [row for row in rows if row["sigma"] == sigma]
        cells = [_cells(row) for row in here]
        for name, found in trivial.get(sigma, {}).items():
            accuracy, r2, held_out = (_or_dash(found.get(key)) for key in ("accuracy", "r2", "accuracy_held_out"))
            cells.append([name, *[""] * 4, accuracy, "", r2, held_out, "", ""])
        made = table(HEADS, cells, width, HEADS[2:6] + HEADS[7:9], DROPPED)
        left_out = [name for name in DROPPED if name not in made[0]]
        lines += ["", f" sigma = {sigma:g}", *made[: len(here) + 1], f" {'·' * 40}", *made[len(here) + 1 :]]
        lines += [line for row in here for line in fold(_problem(row), width, " ")]
    if left_out:
        missing = f"Not shown for want of room: {', '.join(left_out)}; --format csv and json have all."
        lines += ["", *fold(missing, width)]
    if normalise == "max":
        lines += ["", *fold(MAXIMUM_NOTE, width, " ")]
    return "\n".join(lines)


@dataclass(frozen=True)
class SweepGrid(WorkerOptions, ModelSettings, DataOptions, GridOptions, Command[Listing]):
    """Run the same command again after an interruption, or with more runs: finished runs are kept and never run again.
    Raw rows are read for scoring: a sweep is a simulation, and its figures are not private.
    """

    example = "sensorsim sweep --mechanism dpsgd,sampled --epsilon 0.1,1.6 --sigma 0 --runs 20"

    mechanism: str | Sequence[str] = option(",".join(m.name for m in every()), MECHANISMS, "Names, with commas.")
    c: Axis = option(str(Config.c), Numbers(), "Stabilization constants of spof, or a range 0:2.5:0.25.")
    results: str = option("results.sqlite", DATABASE, "Where finished cells are kept.")

    @property
    def mechanisms(self) -> list[str]:
        return [known_mechanism(name) for name in split_names(self.mechanism)]

    @property
    def base(self) -> Config:
        """Return what all cells have in common."""
        return Config(**settings_of(self, *SWEPT), mechanism="none")

    def without_effect(self) -> dict[str, str]:
        largest = replace(self.base, sigma=max(self.sigma), c=max(self.c))  # options that any cell reads count
        return idle_settings(self.mechanisms, largest) if self.mechanisms else {}

    def run(self) -> Listing:
        mechanisms = self.mechanisms
        if not mechanisms:
            raise InputError(f"--mechanism {self.mechanism} names none; give some of {names()}, with commas.")
        check_axes(self.base, mechanisms, epsilon=self.epsilon, sigma=self.sigma, c=self.c)
        dataset = self.load(seed=self.seed)
        from sensorsim.training import sweeps
        from sensorsim.training.results_file import ResultsFile

        axes = mechanisms, self.epsilon, self.sigma, self.c
        cells = sweeps.grid(self.base, *axes, dataset.n, dataset)
        with ResultsFile(self.results, dataset.digest) as store:
            results = run_cells(dataset, cells, store, self)
            trivial = sweeps.trivial(dataset, cells, store)
        rows = [sweeps.row(result) for result in results]
        if all(row["error"] for row in rows):
            raise InputError(rows[0]["error"])
        about = {"source": dataset.source, "rows": len(dataset.x), "n": dataset.n, "normalise": dataset.normalise}
        return sweep_listing(about, rows, trivial)


def run_cells(
    dataset: "Dataset", cells: list[Config], store: "ResultsFile", workers: WorkerOptions
) -> list[dict[str, Any]]:
    """Return all results, behind a bar; an interruption says what is stored."""
    from sensorsim.commands.outputs import progress_bar
    from sensorsim.training import sweeps

    done = 0
    with progress_bar("sweep", "cells", len(cells)) as update:

        def finished(config: Config) -> None:
            nonlocal done
            done += 1
            epsilon = "" if config.epsilon is None else f" eps {config.epsilon:g}"
            update(done, f"{config.mechanism}{epsilon} sigma {config.sigma:g}")

        update(done, "starting")
        try:
            jobs = workers.jobs or os.cpu_count() or 1
            return sweeps.run(dataset, cells, store, jobs=jobs, dask=workers.dask, finished=finished)
        except KeyboardInterrupt:
            safe = f"with {done} cells and all finished runs safe in {store.path}: run the same command to go on"
            raise KeyboardInterrupt(safe) from None


def _name(row: Row) -> str:
    return f"{row['mechanism']} c={row['c']:g}" if row["c"] else str(row["mechanism"])


def _nominal(row: Row) -> str:
    return "–" if row["nominal_epsilon"] is None else f"{row['nominal_epsilon']:.6g}"


def _or_dash(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _cells(row: Row) -> list[str]:
    """Return the cells of a row, without scores where there are none."""
    head = [_name(row), row["trust"] or "–", _nominal(row)]
    if row["error"]:
        return [*head, "–", "–", "–", "", "–", "–", "–", "–"]
    head += [format_epsilon_column(row["spent_epsilon"], 2), format_epsilon_column(row["epsilon_person_median"], 1)]
    half = "" if row["accuracy_low"] is None else f"± {row['accuracy'] - row['accuracy_low']:.3f}"
    scores = [_or_dash(row["accuracy"]), half, _or_dash(row["r2"]), _or_dash(row["accuracy_held_out"])]
    tail = [row["with_secret_noise"], row["settings"] or "–"]
    return [*head, *(["–", "", "–", "–"] if row["diverged"] else scores), *tail]


def _problem(row: Row) -> str:
    """Say why a row has no scores; empty where it has."""
    where = f"{_name(row)} at epsilon {_nominal(row)}"
    if row["error"]:
        return f"{where}: {row['error']}"
    if row["diverged"]:
        rest = _or_dash(row["accuracy_of_the_rest"])
        return f"{where}: {row['diverged']} of {row['runs']} runs diverged (the rest: {rest})"
    return ""
