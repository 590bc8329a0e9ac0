"""`sensorsim data`: public ranges; make a synthetic set, compare it with a real file, fit the generator to one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sensorsim._util.files import check_targets, write_all, write_whole
from sensorsim._util.hints import need
from sensorsim.cli.choices import FILE, FOLDER, WRITTEN
from sensorsim.cli.output import emit, format_option, tell

SCHEMA_VERSION = 1
MOST_ROWS = 10**8


@click.group()
def command() -> None:
    """Public ranges of readings, and synthetic daily-activity data.

    Example: sensorsim data make --rows 457 --persons 35 --out days.csv
    """


@command.command(short_help="The public ranges that are ready, or your own, checked.")
@click.argument("file", type=FILE, required=False)
@format_option
def ranges(file: str | None, fmt: str) -> None:
    """The public ranges that are ready, or those of your own FILE, checked.

    A reading is brought to 0 … 1 by its range. Copy lines into a file of your own, change them, and give it as
    --ranges FILE to plan, fleet, train, sweep, figures and evaluate.

    \b
    Example: sensorsim data ranges --format csv > mine.csv
             sensorsim data ranges mine.csv
    """
    from sensorsim.datasets.public_ranges import as_rows, read_ranges, ready_ranges

    found = as_rows(ready_ranges() if file is None else read_ranges(file))
    emit(
        fmt,
        lambda: _ranges_table(found, file),
        lambda: {"schema_version": SCHEMA_VERSION, "ranges": found},
        lambda: found,
    )


@command.command()
@click.option("--rows", type=click.IntRange(max=MOST_ROWS), default=457, show_default=True, help="Days in all.")
@click.option("--persons", type=int, default=35, show_default=True, help="People they belong to.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed gives the same file."
)
@click.option("--out", required=True, type=WRITTEN, help="CSV file to write.")
def make(rows: int, persons: int, seed: int, out: str) -> None:
    """Write a synthetic set in the columns of the Fitbit file.

    Example: sensorsim data make --seed 1 --out days.csv
    """
    need("scipy")
    from sensorsim.datasets.synthetic import make as make_frame

    write_whole(out, make_frame(rows, persons, seed).to_csv(index=False, float_format="%.6g"))
    tell(f"{rows} days of {persons} persons in {out}")


@command.command(short_help="How far the synthetic set is from a real file.")
@click.argument("file", type=FILE)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the synthetic set.")
@format_option
def compare(file: str, seed: int, fmt: str) -> None:
    """How far the synthetic set is from a real file: marginals and rank correlations.

    The figures are measured on raw records, so they are not private.

    Example: sensorsim data compare dailyActivity.csv
    """
    need("scipy")
    from sensorsim.datasets.synthetic import distance

    rows = distance(file, seed=seed)
    said = {"schema_version": SCHEMA_VERSION, "private": False, "columns": rows}
    emit(fmt, lambda: _table(rows), lambda: said, lambda: rows)


@command.command(short_help="The two tables of the generator, fitted to a real file.")
@click.argument("file", type=FILE)
@click.option("--out", required=True, type=FOLDER, help="Folder for the two tables.")
def fit(file: str, out: str) -> None:
    """Write the two tables that the generator draws from, fitted to a real file.

    They hold exact quantiles of raw records, the smallest and largest readings among them: they are not private.

    Example: sensorsim data fit dailyActivity.csv --out tables
    """
    need("scipy")
    from sensorsim.datasets.dataset import MAXIMA, NUMERIC_COLUMNS, prepare
    from sensorsim.datasets.record_tables import PERSON, read_table
    from sensorsim.datasets.synthetic import NOT_PRIVATE, as_tables, need_fitbit
    from sensorsim.datasets.synthetic import fit as fit_frame

    targets = [str(Path(out) / name) for name in ("fitbit_marginals.csv", "fitbit_correlations.csv")]
    check_targets(targets, read=[file])
    frame = read_table(file)
    name = Path(file).name
    need_fitbit(frame, name)
    prepare(frame, m=1, columns=NUMERIC_COLUMNS, person=PERSON, normalise=MAXIMA, source=name)  # the checks of training
    marginals, correlations = as_tables(fit_frame(frame), f"{name}, {len(frame)} rows")
    write_all(dict(zip(targets, (marginals, correlations), strict=True)))
    tell(f"{' and '.join(targets)}: {NOT_PRIVATE}")


def _ranges_table(rows: list[dict[str, Any]], file: str | None) -> str:
    wide = max(len(row["name"]) for row in rows) + 2
    lines = [
        f"Public ranges {'ready for use' if file is None else f'of {file}'}: what lies outside is clipped",
        f" {'name':<{wide}}{'low':>10}{'high':>10}  unit",
    ]
    lines += [f" {row['name']:<{wide}}{row['low']:>10}{row['high']:>10}  {row['unit']}" for row in rows]
    return "\n".join(lines)


def _table(rows: list[dict[str, float | str]]) -> str:
    lines = [
        "Real file against the synthetic set, means as shares of its maximum; not private",
        f" {'column':<25}{'mean':>7}{'made':>7}{'zeros':>7}{'made':>7}{'KS':>7}{'rank corr. error':>18}",
    ]
    for row in rows:
        lines.append(
            f" {row['column']:<25}{row['mean_real']:>7.3f}{row['mean_synthetic']:>7.3f}{row['zeros_real']:>7.3f}"
            f"{row['zeros_synthetic']:>7.3f}{row['ks_distance']:>7.3f}{row['rank_correlation_mean_error']:>18.3f}"
        )
    count = len(rows)
    ks, rank = (
        sum(float(row[name]) for row in rows) / count for name in ("ks_distance", "rank_correlation_mean_error")
    )
    lines.append(f" {'mean':<25}{'':>28}{ks:>7.3f}{rank:>18.3f}")
    return "\n".join(lines)
