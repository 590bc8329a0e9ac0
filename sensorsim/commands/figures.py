"""`sensorsim figures`: every data figure of the paper from our own runs, and our own; each as SVG and as PNG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.files import new_folder
from sensorsim._util.hints import did_you_mean
from sensorsim._util.option_kinds import DATABASE, MECHANISMS, NEW_FOLDER, Known, Number, option_of, split_names
from sensorsim._util.results import Listing, bars
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.commands.sweep import run_cells
from sensorsim.commands.training_options import Axis, DataOptions, GridOptions, Numbers, WorkerOptions, known_mechanism
from sensorsim.mechanisms import every
from sensorsim.paper.printed_sensitivities import sensitivity_figure
from sensorsim.training.config import Config, check_axes

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset

MOST_RECORDS = 10**7
C_RANGE = [round(0.25 * place, 2) for place in range(11)]
C_EPSILON = 1.6  # the paper names no epsilon for its sweep of c
# Options of figures, beside --out and --only.
RUN = {"normalise", "m", "seed", "results", "jobs", "dask"}
RECORDS = {"records", "records_epsilon", "records_runs"}
OF_C = {"data", "person", "columns", "ranges", "drop_missing", "sigma", "runs"}
OVER_EPSILON = {"mechanism", "epsilon"}
GRID = RUN | OF_C | OVER_EPSILON
# By name: the options that a figure reads, and how it is drawn by training.run_figures of the cells.
FIGURES: dict[str, tuple[set[str], Callable[[Any, "Cells"], Any]]] = {
    "accuracy_records": (
        RUN | RECORDS,
        lambda runs, work: runs.accuracy_against_records(*work.over_records, work.chosen.records_epsilon),
    ),
    "accuracy_epsilon": (GRID, lambda runs, work: runs.accuracy_against_epsilon(*work.over_epsilon)),
    "accuracy_spent": (GRID, lambda runs, work: runs.accuracy_against_epsilon(*work.over_epsilon, "spent")),
    "accuracy_person": (GRID, lambda runs, work: runs.accuracy_against_epsilon(*work.over_epsilon, "person")),
    "r2_epsilon": (GRID, lambda runs, work: runs.accuracy_against_epsilon(*work.over_epsilon, measure=runs.R2)),
    "accuracy_cost": (
        GRID,
        lambda runs, work: runs.accuracy_against_cost(*work.over_epsilon, *_costs(work.dataset.n)),
    ),
    "accuracy_c": (RUN | OF_C, lambda runs, work: runs.accuracy_against_c(*work.over_c)),
    "bmax_density": (set(), lambda runs, work: runs.density_of_b_max()),
    "bmax_probability": (set(), lambda runs, work: runs.probability_of_b_max()),
    "sensitivity": (set(), lambda runs, work: sensitivity_figure()),
}
Row = dict[str, Any]


@dataclass(frozen=True)
class DrawFigures(WorkerOptions, DataOptions, GridOptions, Command[Listing]):
    """The cells that the figures need are run first (resumable, like sweep); then the files are listed. Each figure
    has the trivial predictors in it. The headline, accuracy_records, makes its own data: how accurate a model is when
    so many records were released.
    """

    example = "sensorsim figures --out figures --runs 20 --only accuracy_epsilon,accuracy_records"
    formats = ()

    out: str = option(REQUIRED, NEW_FOLDER, "Where the files go, an SVG and a PNG of each figure.")
    only: str | Sequence[str] | None = option(
        None,
        Known(lambda: FIGURES, several=True, metavar="names"),
        f"With commas, of {', '.join(FIGURES)}.",
        default_text="all",
    )
    mechanism: str | Sequence[str] | None = option(
        None, MECHANISMS, "In the figures over epsilon, with commas.", default_text="all"
    )
    records: Axis = option("1000,10000,100000", Numbers(), "accuracy_records: sizes of the released sets.")
    records_epsilon: float = option(1.6, Number(above=0), "accuracy_records: epsilon per record.")
    records_runs: int = option_of(Config, "runs", default=5, help="accuracy_records: runs of each cell.")
    results: str | None = option(None, DATABASE, "Where finished cells are kept.", default_text="FOLDER/results.sqlite")

    @property
    def wanted(self) -> list[str]:
        """Return the names of the figures, in our order."""
        asked = list(FIGURES) if self.only is None else split_names(self.only)
        unknown = [name for name in asked if name not in FIGURES]
        if unknown or not asked:
            what = "--only names no figure"
            if unknown:
                what = f"there is no figure {unknown[0]!r}{did_you_mean(unknown[0], FIGURES)}"
            raise InputError(f"{what}; choose from {', '.join(FIGURES)}.")
        return [name for name in FIGURES if name in asked]

    @property
    def read(self) -> set[str]:
        """Return the options that the figures read."""
        return set[str]().union(*(FIGURES[name][0] for name in self.wanted))

    def without_effect(self) -> dict[str, str]:
        return dict.fromkeys(GRID - self.read | RECORDS - self.read, f"{', '.join(self.wanted)} would not read it")

    def run(self) -> Listing:
        work = Cells(self)
        work.check()
        from sensorsim._util.drawing import save_both
        from sensorsim.training import run_figures  # what cannot be drawn is refused without its imports

        folder = Path(self.out)
        with new_folder(folder):
            drawn = ((name, FIGURES[name][1](run_figures, work)) for name in self.wanted)
            files = [str(path) for name, figure in drawn for path in save_both(figure, folder / name)]
        sizes: dict[str, float | None] = {Path(path).name: Path(path).stat().st_size for path in files}
        return Listing(
            f"{len(files)} files",
            [{"file": path} for path in files],
            {"files": files},
            lambda title: bars(title, sizes, "bytes of the file"),
            {Path(path).stem: path for path in files},
            lambda: "\n".join(files),
        )


class Cells:
    """The results that figures share; each part is run when the first figure asks for it."""

    def __init__(self, chosen: DrawFigures) -> None:
        self.chosen: DrawFigures = chosen
        self.results = Path(chosen.out) / "results.sqlite" if chosen.results is None else Path(chosen.results)
        sizes = list(chosen.records)
        if max(sizes) > MOST_RECORDS or any(size != int(size) or size < 1 for size in sizes):
            raise InputError(
                f"--records has {max(sizes):g}; give whole numbers up to {MOST_RECORDS}, as in 1000,10000."
            )
        self.sizes = sorted({int(size) for size in sizes})
        asked = [each.name for each in every()] if chosen.mechanism is None else split_names(chosen.mechanism)
        self.mechanisms = [known_mechanism(word) for word in asked]

    def check(self) -> None:
        """Refuse what no figure could be drawn with, and read the records that one asks for, before anything runs."""
        from sensorsim.training.results_file import ResultsFile

        chosen, read = self.chosen, self.chosen.read
        check_axes(self._base(), self.mechanisms, epsilon=chosen.epsilon, sigma=chosen.sigma)
        if not read & OF_C:
            return
        digest = self.dataset.digest
        if self.results.exists():
            ResultsFile(self.results, digest)  # refuses a file of something else
        if read & OVER_EPSILON:
            self._grid(self.dataset, self.mechanisms, chosen.epsilon, chosen.sigma)

    @cached_property
    def dataset(self) -> "Dataset":
        return self.chosen.load(seed=self.chosen.seed)

    @cached_property
    def over_epsilon(self) -> tuple[list[Row], dict[float, Any]]:
        """Return the mechanisms at every epsilon and sigma."""
        cells = self._grid(self.dataset, self.mechanisms, self.chosen.epsilon, self.chosen.sigma)
        return self._run(self.dataset, self.results, cells)

    @cached_property
    def over_c(self) -> tuple[list[Row], dict[float, Any]]:
        """Return spof over the stabilization constant, with and without it in the decoder."""
        grids = [
            self._grid(self.dataset, ["spof"], [C_EPSILON], self.chosen.sigma[:1], C_RANGE, decode_c=decoded)
            for decoded in (False, True)
        ]
        return self._run(self.dataset, self.results, [config for grid in grids for config in grid])

    @cached_property
    def over_records(self) -> tuple[list[Row], dict[tuple[str, int], Any]]:
        """Return the headline's cells; a results file is of one data set, so every set has its own."""
        from sensorsim.datasets.dataset import CROWD_MECHANISMS, CROWDS, crowd

        chosen = self.chosen
        epsilon, runs = [chosen.records_epsilon], chosen.records_runs
        rows: list[Row] = []
        trivial = {}
        for (name, title), size in product(CROWDS.items(), self.sizes):
            dataset = crowd(name, size, m=chosen.m, seed=chosen.seed, normalise=chosen.normalise)
            private = [mechanism for mechanism in CROWD_MECHANISMS if mechanism != "none"]
            self._grid(dataset, private, epsilon, [0.0], runs=runs)  # refuses an epsilon that none of them takes
            cells = self._grid(dataset, list(CROWD_MECHANISMS), epsilon, [0.0], runs=runs)
            progress.note(f"accuracy_records: {size} records, {title}")
            results = self.results.with_name(f"{self.results.stem}-{name}-{size}{self.results.suffix}")
            found, predictors = self._run(dataset, results, cells)
            said = {"set": title, "size": size, "persons": int(dataset.person.max()) + 1, "data": title}
            rows += [row | said for row in found]
            trivial[title, size] = predictors[0.0]
        return rows, trivial

    def _base(self) -> Config:
        return Config("none", runs=self.chosen.runs, m=self.chosen.m, seed=self.chosen.seed)

    def _grid(
        self,
        dataset: "Dataset",
        names: list[str],
        epsilons: Any,
        sigmas: Any,
        constants: Any = (Config.c,),
        **given: Any,
    ) -> list[Config]:
        from sensorsim.training import sweeps

        return sweeps.grid(replace(self._base(), **given), names, epsilons, sigmas, constants, dataset.n, dataset)

    def _run(self, dataset: "Dataset", results: Path, cells: list[Config]) -> tuple[list[Row], dict[float, Any]]:
        from sensorsim.training import sweeps
        from sensorsim.training.results_file import ResultsFile

        with ResultsFile(results, dataset.digest) as store:
            found = run_cells(dataset, cells, store, self.chosen)
            trivial = sweeps.trivial(dataset, cells, store)
        more = [{"decode_c": result["config"]["decode_c"], "data": dataset.source} for result in found]
        return [sweeps.row(result) | also for result, also in zip(found, more, strict=True)], trivial


def _costs(n: int, l: int = 7) -> tuple[dict[str, float], str]:
    """Return executed operations per record of each mechanism whose kernel is known, and their unit."""
    from sensorsim.costing.cost_report import cost

    report = cost(n, l)
    forms = {mechanism.name: form for mechanism in every() if (form := mechanism.cost_form()) is not None}
    totals = {name: float(report.mechanisms[form.name].counted.total) for name, form in forms.items()}
    pricing = report.pricing
    return totals, f"{pricing.unit}, {pricing.cpu.name.upper()}, {pricing.width}-bit, {pricing.accounting} accounting"
