"""sensorsim noise audit: run the real kernel and look for a leak."""

import sys
from collections.abc import Callable
from typing import Any

import click

from sensorsim._util.errors import InputError
from sensorsim._util.terminal import columns, hung
from sensorsim.api.auditing import audit
from sensorsim.cli.choices import DIR, FILE, OBSERVED
from sensorsim.cli.defaults import default_of, options_of
from sensorsim.cli.names import mechanism_name
from sensorsim.cli.noise_audit_report import text
from sensorsim.cli.output import bar, emit, format_option, refuse_idle
from sensorsim.cli.training import MOST_JOBS

DRAWS = f"{default_of(audit, 'draws'):.0e}".replace("+0", "")  # as in 1e8
option = options_of(audit)


class Draws(click.ParamType[int]):
    """A whole number that may be written as 1e8."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            count = float(value)
        except ValueError:
            count = -1.0
        if not 0 <= count <= 1e12 or count != int(count):
            raise InputError(f"draws is {value}; give a whole number, as in 1e8.")
        return int(count)


@click.command()
@click.argument("file", type=FILE, required=False)
@option(
    "--mechanism",
    type=OBSERVED,
    help="release, sampled: the certified kernels; lean: SPOF with one secret draw per feature; spof: as printed; "
    "prefetch: SPOF that reads the table in a fixed order; shared: SPOF with one draw for both coefficients.  "
    "[default: what the table is for]",
)
@option("--epsilon", help="Audit the ready table of this budget in place of a file.  [default: 1]")
@option(
    "--samples",
    nargs=2,
    type=FILE,
    help="Two files of packets of a real board, one a line in hex, for two records that differ.",
)
@option("--package", type=DIR, help="Run the C of this exported package in place of the kernel.")
@option("--draws", type=Draws(), default=DRAWS, show_default=True, help="Values to draw at most, over all inputs.")
@option("--confidence", help="Of the whole audit: all tests, all looks.")
@option(
    "--threads",
    type=click.IntRange(1, MOST_JOBS),
    help="Threads; the result does not depend on them.",
)
@option("--seed", type=click.IntRange(min=0), help="Of the words. Not secret.")
@format_option
def command(
    file: str | None,
    mechanism: str | None,
    epsilon: str | None,
    samples: tuple[str, str] | None,
    package: str | None,
    draws: int,
    confidence: float,
    threads: int,
    seed: int,
    fmt: str,
) -> None:
    """Run the real kernel on several inputs and look for a leak. Exit code 1 if there is one.

    It looks at every field of a packet, at two fields together, at packets that follow each other and at which features
    were picked, after growing numbers of draws, and stops as soon as a leak is certain. With --samples it judges what a
    board has sent: what is claimed then comes from FILE, the board's table, or from --epsilon. With --package it runs
    compiled C on this machine; FILE is then the table that the package was made with.

    \b
    Example: sensorsim noise audit rows-eps1-all.txt
             sensorsim noise audit --samples x0.hex x1.hex --epsilon 1
    """
    from sensorsim.auditing.table_sources import SPOF_VARIANTS

    if samples:
        refuse_idle(("draws", "seed"), "packets of a board are judged as they are, and nothing is drawn")
    if mechanism and mechanism not in SPOF_VARIANTS:
        mechanism = mechanism_name(mechanism)
    with _Progress(draws) as progress:
        found = audit(file, mechanism, epsilon, samples, package, draws, confidence, threads, seed, progress)
    emit(fmt, lambda: hung(text(found.name, found), columns()), found.to_dict, found.rows)
    if not found.passed:
        sys.exit(1)


class _Progress:
    """A bar on stderr, from the first draws on: bad input leaves no trace of it."""

    def __init__(self, total: int) -> None:
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

        columns = TextColumn("audit"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn()
        self.bar = bar(*columns)
        self.task = self.bar.add_task("draw", total=total)

    def __enter__(self) -> Callable[[int], None]:
        def advance(drawn: int) -> None:
            self.bar.start()
            self.bar.advance(self.task, drawn)

        return advance

    def __exit__(self, *_: object) -> None:
        self.bar.stop()
