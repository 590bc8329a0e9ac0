"""`sensorsim data`: public ranges; make a synthetic set, compare it with a real file, fit the generator to one."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.files import check_targets, write_all, write_whole
from sensorsim._util.hints import need
from sensorsim._util.option_kinds import FILE, NEW_FOLDER, Output, Whole
from sensorsim._util.results import Listing, bars
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.commands.training_options import tell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
MOST_ROWS = 10**8
DISTANCES = ("mean_real", "mean_synthetic", "zeros_real", "zeros_synthetic", "ks_distance")


def _listing(title: str, rows: list[dict[str, Any]], data: dict[str, Any], drawn: str) -> Listing:
    """Return rows with a figure of their column `drawn`."""

    def draw(title: str) -> "Figure":
        values = {str(next(iter(row.values()))): float(row[drawn]) for row in rows}
        return bars(title, values, drawn.replace("_", " "))

    return Listing(title, rows, {"schema_version": SCHEMA_VERSION, **data}, draw)


@dataclass(frozen=True)
class ShowRanges(Command[Listing]):
    """A reading is brought to 0 … 1 by its range. Copy lines into a file of your own, change them, and give it as
    --ranges FILE to plan, fleet, train, sweep, figures and evaluate.
    """

    example = """sensorsim data ranges --format csv > mine.csv
sensorsim data ranges mine.csv"""

    file: str | None = option(None, FILE, "Ranges of your own, to be checked.", argument=True)

    def run(self) -> Listing:
        from sensorsim.datasets.public_ranges import as_rows, read_ranges, ready_ranges

        rows = as_rows(ready_ranges() if self.file is None else read_ranges(self.file))
        which = "ready for use" if self.file is None else f"of {self.file}"
        return _listing(f"Public ranges {which}: what lies outside is clipped", rows, {"ranges": rows}, "high")

    def text(self, answer: Listing) -> str:
        wide = max(len(row["name"]) for row in answer.found) + 2
        heads = {name: name for name in ("name", "low", "high", "unit")}
        lines = (
            f" {row['name']:<{wide}}{row['low']:>10}{row['high']:>10}  {row['unit']}" for row in (heads, *answer.found)
        )
        return "\n".join([answer.head, *lines])


@dataclass(frozen=True)
class MakeData(Command[None]):
    """Write the columns of the Fitbit file."""

    example = "sensorsim data make --seed 1 --out days.csv"
    formats = ()

    out: str = option(REQUIRED, Output(), "CSV file to write.")
    rows: int = option(457, Whole(most=MOST_ROWS), "Days in all.")
    persons: int = option(35, Whole(), "People they belong to.")
    seed: int = option(0, Whole(0), "The same seed gives the same file.")

    def run(self) -> None:
        need("scipy")
        from sensorsim.datasets.synthetic import make

        write_whole(self.out, make(self.rows, self.persons, self.seed).to_csv(index=False, float_format="%.6g"))

    def emit(self, answer: None, form: str) -> None:
        tell(f"{self.rows} days of {self.persons} persons in {self.out}")


@dataclass(frozen=True)
class CompareData(Command[Listing]):
    """Compare marginals and rank correlations. The figures are measured on raw records, so they are not private."""

    example = "sensorsim data compare dailyActivity.csv"

    file: str = option(REQUIRED, FILE, "A real file.", argument=True)
    seed: int = option(0, Whole(0), "Seed of the synthetic set.")

    def run(self) -> Listing:
        need("scipy")
        from sensorsim.datasets.synthetic import distance

        head = "Real file against the synthetic set, means as shares of its maximum; not private"
        rows = distance(self.file, seed=self.seed)
        return _listing(head, rows, {"private": False, "columns": rows}, "ks_distance")

    def text(self, answer: Listing) -> str:
        rank, rows = "rank_correlation_mean_error", answer.found
        lines = [
            answer.head,
            f" {'column':<25}{'mean':>7}{'made':>7}{'zeros':>7}{'made':>7}{'KS':>7}{'rank corr. error':>18}",
        ]
        for row in rows:
            figures = "".join(f"{row[name]:>7.3f}" for name in DISTANCES)
            lines.append(f" {row['column']:<25}{figures}{row[rank]:>18.3f}")
        means = [sum(float(row[name]) for row in rows) / len(rows) for name in ("ks_distance", rank)]
        return "\n".join([*lines, f" {'mean':<25}{'':>28}{means[0]:>7.3f}{means[1]:>18.3f}"])


@dataclass(frozen=True)
class FitData(Command[tuple[str, ...]]):
    """The tables hold exact quantiles of raw records, the smallest and largest readings among them: they are not
    private.
    """

    example = "sensorsim data fit dailyActivity.csv --out tables"
    formats = ()

    file: str = option(REQUIRED, FILE, "A real file.", argument=True)
    out: str = option(REQUIRED, NEW_FOLDER, "Folder for the two tables.")

    def run(self) -> tuple[str, ...]:
        need("scipy")
        from sensorsim.datasets.dataset import MAXIMA, NUMERIC_COLUMNS, prepare
        from sensorsim.datasets.record_tables import PERSON, read_table
        from sensorsim.datasets.synthetic import as_tables, fit, need_fitbit

        targets = tuple(str(Path(self.out) / f"fitbit_{name}.csv") for name in ("marginals", "correlations"))
        check_targets(targets, read=[self.file])
        frame, name = read_table(self.file), Path(self.file).name
        need_fitbit(frame, name)
        prepare(frame, m=1, columns=NUMERIC_COLUMNS, person=PERSON, normalise=MAXIMA, source=name)  # training's checks
        write_all(dict(zip(targets, as_tables(fit(frame), f"{name}, {len(frame)} rows"), strict=True)))
        return targets

    def emit(self, answer: tuple[str, ...], form: str) -> None:
        from sensorsim.datasets.synthetic import NOT_PRIVATE

        tell(f"{' and '.join(answer)}: {NOT_PRIVATE}")
