"""sensorsim noise peers: the ready tables beside other mechanisms."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sensorsim._util.terminal import columns, hung, table
from sensorsim.cli.choices import FIGURE
from sensorsim.cli.output import emit, format_option

if TYPE_CHECKING:
    from sensorsim.noise.baseline import Peers

COLUMNS = (
    ("Laplace", "laplace_sd"),
    ("one bit", "one_bit_sd"),
    ("piecewise", "piecewise_sd"),
    ("hybrid", "hybrid_sd"),
    ("stairs", "stairs_sd"),
    ("rows", "rows_sd"),
    ("best known", "best_known_sd"),
)


@click.command(short_help="The ready tables beside other ways to release a number.")
@click.option(
    "--plot", type=FIGURE, help="Draw to this .png, .svg or .pdf how many records each needs for the same accuracy."
)
@format_option
def command(plot: str | None, fmt: str) -> None:
    """The ready tables for one feature beside other ways to release it: noise, size, bits on the air.

    Example: sensorsim noise peers --plot records.png
    """
    from sensorsim.noise.baseline import peers

    found = peers()
    if plot:
        from sensorsim.noise.noise_figures import records_figure, save

        save(records_figure(found), plot)
        click.echo(f"Drawn to {plot}.", err=True)
    rows = [asdict(row) for row in found]
    emit(fmt, lambda: _text(found, columns()), lambda: {"schema_version": 1, "rows": rows}, lambda: rows)


def _text(found: "list[Peers]", width: int) -> str:
    rows = []
    for row in found:
        shape = f"{row.knots} × {row.symbols}, {row.rows_bytes} B, {row.rows_bits} bit{'s' * (row.rows_bits > 1)}"
        rows.append([f"{row.epsilon:g}", *(_number(getattr(row, field)) for _, field in COLUMNS), shape])
    titles = [title for title, _ in COLUMNS]
    needed = [(row.laplace_sd / row.rows_sd) ** 2 for row in found]
    lines = [
        "Standard deviation of the unbiased estimate of one feature at the worst x, in ranges of x",
        "",
        *table(("epsilon", *titles, "rows table"), rows, width, ("epsilon", *titles), drop=("rows table",)),
        "",
        f" Laplace noise needs {min(needed):.1f} to {max(needed):.1f} times the records of rows for the same error.",
        " Hybrid, piecewise and one bit are computed with real numbers; rows and stairs are certified in integers.",
    ]
    return hung("\n".join(lines), width)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
