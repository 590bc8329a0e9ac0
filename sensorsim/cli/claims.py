"""`sensorsim claims`."""

import click

from sensorsim.cli.choices import CLAIM, FILE
from sensorsim.cli.output import emit, format_option, progress_bar
from sensorsim.paper.recompute import claims


@click.command()
@click.argument("only", type=CLAIM, nargs=-1, metavar="[ID]...")
@click.option(
    "--quick", "full", flag_value=False, type=bool, default=False, help="Nothing is trained or compiled.  [default]"
)
@click.option(
    "--full", "full", flag_value=True, type=bool, help="Also what trains models or compiles C: a minute or two."
)
@click.option("--data", type=FILE, help="CSV or Parquet of daily activity; without it, the synthetic set.")
@format_option
def command(only: tuple[str, ...], full: bool, data: str | None, fmt: str) -> None:
    """Every checkable statement of the paper, and ours, recomputed.

    For each: where it stands, what is printed, what this project computes just now, how, and a verdict: holds; holds as
    arithmetic (it follows from what is printed before it, which does not hold); does not hold; depends. Name claims by
    their ids to have only those.

    Example: sensorsim claims cost-spof cost-dpsgd
    """
    bar = progress_bar("claims", "claims", transient=True)  # what is left of it would stand before the answer
    task = bar.add_task("", total=None)

    def progress(what: str, done: int, total: int) -> None:
        bar.start()  # not before: bad input leaves no bar
        bar.update(task, completed=done, total=total, description=what)

    try:
        found = claims(full, data, only, progress)
    finally:
        bar.stop()
    emit(fmt, found.text, found.to_dict, found.rows)
