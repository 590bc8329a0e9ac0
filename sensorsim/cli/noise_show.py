"""sensorsim noise show: a table in the terminal, or drawn."""

from typing import TYPE_CHECKING

import click

from sensorsim.cli.noise_report import data, row, text
from sensorsim.cli.output import emit, format_option

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable


@click.command()
@click.argument("file")
@click.option("--plot", help="Draw to this .png, .svg or .pdf: noise against Laplace, loss per output, atoms or holes.")
@format_option
def command(file: str, plot: str | None, fmt: str) -> None:
    """Show a table: its noise, the loss of its outputs, the atoms at its ends.

    Example: sensorsim noise show stairs-eps1-all.txt --plot table.png
    """
    from sensorsim.privacy.tablefile import read_table

    table = read_table(file)
    if plot:
        from sensorsim.privacy.figures import draw_table

        draw_table(table, plot)
        click.echo(f"Drawn to {plot}.", err=True)
    emit(
        fmt,
        lambda: text(file, table) + "\n\n" + _histogram(table),
        lambda: data(file, table),
        lambda: [row(file, table)],
    )


def _histogram(table: "NoiseTable", rows: int = 15, width: int = 50) -> str:
    """Shares of the table in equal ranges of noise; the outermost rows hold all that lies beyond."""
    stair = 2.0 ** (table.stair_bits - table.frac_bits)
    reach = min(4 * float(table.scale), table.counts[-1][0] * stair)
    step = 2 * reach / rows
    bins = [0.0] * rows
    for value, count in table.counts:  # a stair is as wide as it is, a sample is a point
        left = (value * stair + reach) / step - (stair / step / 2 if table.stair_bits else 0.0)
        parts = max(1, round(8 * stair / step)) if table.stair_bits else 1
        for part in range(parts):
            place = left + (part + 0.5) * stair / step / parts if table.stair_bits else left
            bins[min(rows - 1, max(0, int(place)))] += count / parts
    most = max(bins)
    lines = ["  noise (ranges of x)   share"]
    for i, height in enumerate(bins):
        share = height / table.entries
        low = -reach + i * step
        lines.append(f"  {low:+9.2f} {low + step:+9.2f}  {share:6.3f}  {'█' * round(width * height / most)}")
    return "\n".join(lines)
