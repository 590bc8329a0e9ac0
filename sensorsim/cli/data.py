"""`sensorsim data`: make a synthetic set, compare it with a real file, fit the generator to one."""

from __future__ import annotations

from pathlib import Path

import click

from sensorsim.cli.output import emit, format_option
from sensorsim.cli.training import need
from sensorsim.files import write_whole

SCHEMA_VERSION = 1


@click.group()
def command() -> None:
    """Synthetic daily-activity data.

    Example: sensorsim data make --rows 457 --persons 35 --out days.csv
    """


@command.command()
@click.option("--rows", type=int, default=457, show_default=True, help="Days in all.")
@click.option("--persons", type=int, default=35, show_default=True, help="People they belong to.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed gives the same file."
)
@click.option("--out", required=True, metavar="FILE", help="CSV file to write.")
def make(rows: int, persons: int, seed: int, out: str) -> None:
    """Write a synthetic set in the columns of the Fitbit file.

    Example: sensorsim data make --seed 1 --out days.csv
    """
    need("scipy")
    from sensorsim.train.synthetic import make as make_frame

    write_whole(out, make_frame(rows, persons, seed).to_csv(index=False, float_format="%.6g"))
    click.echo(f"{rows} days of {persons} persons in {out}", err=True)


@command.command()
@click.argument("file")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the synthetic set.")
@format_option
def compare(file: str, seed: int, fmt: str) -> None:
    """How far the synthetic set is from a real file: marginals and rank correlations.

    Example: sensorsim data compare dailyActivity.csv
    """
    need("scipy")
    from sensorsim.train.synthetic import distance

    rows = distance(file, seed=seed)
    emit(fmt, lambda: _table(rows), lambda: {"schema_version": SCHEMA_VERSION, "columns": rows}, lambda: rows)


@command.command()
@click.argument("file")
@click.option("--out", required=True, metavar="FOLDER", help="Folder for the two tables.")
def fit(file: str, out: str) -> None:
    """Write the two tables that the generator draws from, fitted to a real file.

    Example: sensorsim data fit dailyActivity.csv --out tables
    """
    need("scipy")
    from sensorsim.train.data import prepare, read_csv
    from sensorsim.train.synthetic import as_tables
    from sensorsim.train.synthetic import fit as fit_frame

    frame = read_csv(file)
    prepare(frame, m=1, source=Path(file).name)  # the same checks as for training
    marginals, correlations = as_tables(fit_frame(frame), f"{Path(file).name}, {len(frame)} rows")
    write_whole(Path(out) / "fitbit_marginals.csv", marginals)
    write_whole(Path(out) / "fitbit_correlations.csv", correlations)


def _table(rows: list[dict[str, float | str]]) -> str:
    lines = [
        "Real file against the synthetic set (means as shares of the real maximum)",
        f" {'column':<26}{'mean':>7}{'made':>7}{'zeros':>8}{'made':>7}{'KS':>8}{'rank corr. error':>18}",
    ]
    for row in rows:
        lines.append(
            f" {row['column']:<26}{row['mean_real']:>7.3f}{row['mean_synthetic']:>7.3f}{row['zeros_real']:>8.3f}"
            f"{row['zeros_synthetic']:>7.3f}{row['ks_distance']:>8.3f}{row['rank_correlation_mean_error']:>18.3f}"
        )
    count = len(rows)
    ks, rank = (
        sum(float(row[name]) for row in rows) / count for name in ("ks_distance", "rank_correlation_mean_error")
    )
    lines.append(f" {'mean':<26}{'':>29}{ks:>8.3f}{rank:>18.3f}")
    return "\n".join(lines)
