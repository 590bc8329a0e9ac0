"""sensorsim noise show: a table in the terminal, or drawn."""

import click

from sensorsim.cli.choices import FIGURE, FILE
from sensorsim.cli.noise_report import data, row, text
from sensorsim.cli.output import emit, format_option


@click.command(short_help="What a table puts out, and the privacy loss of each value.")
@click.argument("file", type=FILE)
@click.option(
    "--plot", type=FIGURE, help="Draw the table to this .png, .svg or .pdf, and the privacy loss of what it puts out."
)
@format_option
def command(file: str, plot: str | None, fmt: str) -> None:
    """Show a table: what it puts out, and the privacy loss of each output. What is said is proved first.

    Example: sensorsim noise show rows-eps1-all.txt --plot table.png
    """
    from sensorsim.noise.noise_table import certified
    from sensorsim.noise.table_file import read_table

    table = certified(read_table(file))
    if plot:
        from sensorsim.noise.noise_figures import save

        save(table.figure(), plot)
        click.echo(f"Drawn to {plot}.", err=True)
    emit(
        fmt,
        lambda: text(file, table) + "\n\n" + table.picture(),
        lambda: data(file, table),
        lambda: [row(file, table)],
    )
