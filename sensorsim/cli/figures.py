"""`sensorsim figures`: every data figure of the paper from our own runs, and our own; each as SVG and as PNG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sensorsim._util.errors import InputError
from sensorsim._util.files import new_folder
from sensorsim._util.hints import did_you_mean
from sensorsim.calls import listed
from sensorsim.cli.choices import DATABASE, FOLDER, MECHANISMS, Names
from sensorsim.cli.clusters import dask_option
from sensorsim.cli.names import mechanism_name
from sensorsim.cli.output import refuse_idle
from sensorsim.cli.sweep import run_with_progress
from sensorsim.cli.training import MOST_JOBS, data_options, grid_options, load_data, numbers, seed_option
from sensorsim.mechanisms import every

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset
    from sensorsim.training.config import Config

MOST_RECORDS = 10**7
C_RANGE = "0:2.5:0.25"
C_EPSILON = 1.6  # the paper names no epsilon for its sweep of c
FIGURES = (
    "accuracy_records",
    "accuracy_epsilon",
    "accuracy_spent",
    "accuracy_person",
    "r2_epsilon",
    "accuracy_cost",
    "accuracy_c",
    "bmax_density",
    "bmax_probability",
    "sensitivity",
)
# What the figures that run something read, beside --out and --only; the others read nothing.
RUN = {"normalise", "m", "seed", "results", "jobs", "dask"}
RECORDS = {"records", "records_epsilon", "records_runs"}
OF_C = {"data", "person", "columns", "ranges", "drop_missing", "sigma", "runs"}
OVER_EPSILON = {"mechanism", "epsilon"}
Row = dict[str, Any]


@click.command()
@click.option("--out", required=True, type=FOLDER, help="Where the files go, an SVG and a PNG of each figure.")
@click.option(
    "--only",
    type=Names(lambda: FIGURES, several=True),
    metavar="NAMES",
    help=f"With commas, of {', '.join(FIGURES)}.  [default: all]",
)
@click.option(
    "--mechanism", type=MECHANISMS, metavar="NAMES", help="In the figures over epsilon, with commas.  [default: all]"
)
@grid_options
@click.option(
    "--records", default="1000,10000,100000", show_default=True, help="accuracy_records: sizes of the released sets."
)
@click.option("--records-epsilon", type=float, default=1.6, show_default=True, help="accuracy_records: per record.")
@click.option("--records-runs", type=int, default=5, show_default=True, help="accuracy_records: runs of each cell.")
@data_options
@seed_option
@click.option("--results", type=DATABASE, help="Where finished cells are kept.  [default: FOLDER/results.sqlite]")
@click.option("--jobs", type=click.IntRange(1, MOST_JOBS), help="Processes.  [default: the processors of this machine]")
@dask_option
def command(out: str, only: str | None, **chosen: Any) -> None:
    """Redraw the paper's data figures, with the trivial predictors in each, and draw our own.

    Runs the cells that the figures need first (resumable, like sweep) and lists the files it wrote. The headline,
    accuracy_records, makes its own data: how accurate a model is when so many records were released.

    Example: sensorsim figures --out figures --runs 20 --only accuracy_epsilon,accuracy_records
    """
    wanted = chosen_figures(only)
    refuse_idle(chosen.keys() - set().union(*map(read_by, wanted)), f"{', '.join(wanted)} would not read it")
    folder = Path(out)
    work = Work(folder, chosen)
    work.check(wanted)
    with new_folder(folder):
        _draw_all(wanted, work, folder)


def _draw_all(wanted: list[str], work: Work, folder: Path) -> None:
    for name in wanted:
        for path in draw(name, work, folder / name):
            click.echo(str(path))


def chosen_figures(only: str | None) -> list[str]:
    """The names that were asked for, in our order."""
    asked = list(FIGURES) if only is None else listed(only)
    unknown = [name for name in asked if name not in FIGURES]
    if unknown or not asked:
        what = "--only names no figure"
        if unknown:
            what = f"there is no figure {unknown[0]!r}{did_you_mean(unknown[0], FIGURES)}"
        raise InputError(f"{what}; choose from {', '.join(FIGURES)}.")
    return [name for name in FIGURES if name in asked]


def read_by(name: str) -> set[str]:
    """The options that a figure reads."""
    if name in ("bmax_density", "bmax_probability", "sensitivity"):
        return set()
    if name == "accuracy_records":
        return RUN | RECORDS
    return RUN | OF_C | (set() if name == "accuracy_c" else OVER_EPSILON)


class Work:
    """What the figures share; each part is run when the first figure asks for it."""

    def __init__(self, folder: Path, chosen: dict[str, Any]) -> None:
        self.chosen = chosen
        self.results = folder / "results.sqlite" if chosen["results"] is None else Path(chosen["results"])
        self.epsilons, self.sigmas = (numbers(chosen[name], name) for name in ("epsilon", "sigma"))
        self.sizes = _sizes(chosen["records"])
        given = chosen["mechanism"]
        asked = [each.name for each in every()] if given is None else [word.strip() for word in given.split(",")]
        self.mechanisms = [mechanism_name(word) for word in asked]

    def check(self, wanted: list[str]) -> None:
        """Refuse what no figure could be drawn with, and read the records that one asks for, before anything runs."""
        from sensorsim.training.config import MOST_OF_ANY, Config, check_axes

        read = set().union(*map(read_by, wanted))
        base = Config("none", runs=self.chosen["runs"], m=self.chosen["m"])
        check_axes(base, self.mechanisms, epsilon=self.epsilons, sigma=self.sigmas)
        if read & RECORDS:
            epsilon, runs = self.chosen["records_epsilon"], self.chosen["records_runs"]
            if not (0 < epsilon < inf and 1 <= runs <= MOST_OF_ANY):
                raise InputError(
                    f"--records-epsilon is {epsilon} and --records-runs {runs}; give a number above 0, and runs from 1 "
                    f"to {MOST_OF_ANY}."
                )
        if not read & OF_C:
            return
        from sensorsim.training.results_file import ResultsFile

        digest = self.dataset.digest
        if self.results.exists():
            ResultsFile(self.results, digest)  # refuses a file of something else
        if read & OVER_EPSILON:
            self._grid(self.dataset, self.mechanisms, self.epsilons, self.sigmas)

    @cached_property
    def dataset(self) -> Dataset:
        return load_data(self.chosen)

    @cached_property
    def over_epsilon(self) -> tuple[list[Row], dict[float, Any]]:
        """The mechanisms at every epsilon and sigma."""
        cells = self._grid(self.dataset, self.mechanisms, self.epsilons, self.sigmas)
        return self._run(self.dataset, self.results, cells)

    @cached_property
    def over_c(self) -> tuple[list[Row], dict[float, Any]]:
        """spof over the stabilization constant, with and without it in the decoder."""
        constants = numbers(C_RANGE, "c")
        cells = [
            config
            for decoded in (False, True)
            for config in self._grid(self.dataset, ["spof"], [C_EPSILON], self.sigmas[:1], constants, decode_c=decoded)
        ]
        return self._run(self.dataset, self.results, cells)

    @cached_property
    def over_records(self) -> tuple[list[Row], dict[tuple[str, int], Any]]:
        """The headline's cells; a results file is of one data set, so every set has its own."""
        from sensorsim.datasets.dataset import CROWD_MECHANISMS, CROWDS, crowd

        epsilon, runs = self.chosen["records_epsilon"], self.chosen["records_runs"]
        rows: list[Row] = []
        trivial = {}
        for name, title in CROWDS.items():
            for size in self.sizes:
                given = {word: self.chosen[word] for word in ("m", "seed", "normalise")}
                dataset = crowd(name, size, **given)
                private = [mechanism for mechanism in CROWD_MECHANISMS if mechanism != "none"]
                self._grid(dataset, private, [epsilon], [0.0], runs=runs)  # an epsilon that none of them takes
                cells = self._grid(dataset, list(CROWD_MECHANISMS), [epsilon], [0.0], runs=runs)
                click.echo(f"accuracy_records: {size} records, {title}", err=True)
                results = self.results.with_name(f"{self.results.stem}-{name}-{size}{self.results.suffix}")
                found, predictors = self._run(dataset, results, cells)
                said = {"set": title, "size": size, "persons": int(dataset.person.max()) + 1, "data": title}
                rows += [row | said for row in found]
                trivial[title, size] = predictors[0.0]
        return rows, trivial

    def _grid(
        self,
        dataset: Dataset,
        names: list[str],
        epsilons: list[float],
        sigmas: list[float],
        constants: list[float] | None = None,
        **given: Any,
    ) -> list[Config]:
        from sensorsim.training import sweeps
        from sensorsim.training.config import Config

        base = Config("none", runs=self.chosen["runs"], m=self.chosen["m"], seed=self.chosen["seed"])
        return sweeps.grid(replace(base, **given), names, epsilons, sigmas, constants or [base.c], dataset.n, dataset)

    def _run(self, dataset: Dataset, results: Path, cells: list[Config]) -> tuple[list[Row], dict[float, Any]]:
        from sensorsim.training import sweeps
        from sensorsim.training.results_file import ResultsFile

        with ResultsFile(results, dataset.digest) as store:
            found = run_with_progress(dataset, cells, store, self.chosen["jobs"], self.chosen["dask"])
            trivial = sweeps.trivial(dataset, cells, store)
        return [self._row(result, dataset) for result in found], trivial

    @staticmethod
    def _row(result: Row, dataset: Dataset) -> Row:
        from sensorsim.training import sweeps

        return sweeps.row(result) | {"decode_c": result["config"]["decode_c"], "data": dataset.source}


def _sizes(text: str) -> list[int]:
    sizes = numbers(text, "records")
    if max(sizes) > MOST_RECORDS:
        raise InputError(f"--records {text} is more than fits in memory; give at most {MOST_RECORDS} records.")
    if any(size != int(size) or size < 1 for size in sizes):
        raise InputError(f"--records {text} has a part of a record; give whole numbers such as 1000,10000.")
    return sorted({int(size) for size in sizes})


def draw(name: str, work: Work, stem: Path) -> list[Path]:
    """One figure, as two files."""
    from sensorsim._util.drawing import save_both
    from sensorsim.paper.printed_sensitivities import sensitivity_figure
    from sensorsim.training import run_figures
    from sensorsim.training.curves import R2

    made: dict[str, Callable[[], Any]] = {
        "accuracy_records": lambda: run_figures.accuracy_against_records(
            *work.over_records, work.chosen["records_epsilon"]
        ),
        "accuracy_epsilon": lambda: run_figures.accuracy_against_epsilon(*work.over_epsilon),
        "accuracy_spent": lambda: run_figures.accuracy_against_epsilon(*work.over_epsilon, "spent"),
        "accuracy_person": lambda: run_figures.accuracy_against_epsilon(*work.over_epsilon, "person"),
        "r2_epsilon": lambda: run_figures.accuracy_against_epsilon(*work.over_epsilon, measure=R2),
        "accuracy_cost": lambda: run_figures.accuracy_against_cost(*work.over_epsilon, *_costs(work.dataset.n)),
        "accuracy_c": lambda: run_figures.accuracy_against_c(*work.over_c),
        "bmax_density": run_figures.density_of_b_max,
        "bmax_probability": run_figures.probability_of_b_max,
        "sensitivity": sensitivity_figure,
    }
    return save_both(made[name](), stem)


def _costs(n: int, l: int = 7) -> tuple[dict[str, float], str]:
    """Executed operations per record of each mechanism whose kernel is known, and their unit."""
    from sensorsim.costing.cost_report import cost

    report = cost(n=n, l=l)
    totals = {}
    for mechanism in every():
        form = mechanism.cost_form()
        if form is not None:
            totals[mechanism.name] = float(report.mechanisms[form.name].counted.total)
    pricing = report.pricing
    return totals, f"{pricing.unit}, {pricing.cpu.name.upper()}, {pricing.width}-bit, {pricing.accounting} accounting"
