"""sensorsim noise audit: run the real kernel and look for a leak."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sensorsim.cli.names import mechanism_name
from sensorsim.cli.noise_audit_report import data, rows, text
from sensorsim.cli.output import emit, format_option
from sensorsim.cli.training import MOST_JOBS
from sensorsim.errors import InputError

if TYPE_CHECKING:
    from sensorsim.privacy.audit import Source
    from sensorsim.privacy.tables import NoiseTable


@click.command()
@click.argument("file", required=False)
@click.option(
    "--mechanism",
    help="release, sampled: the certified kernels; lean: SPOF with one secret draw per feature; spof: as printed; "
    "prefetch: SPOF that reads the table in a fixed order; shared: SPOF with one draw for both coefficients.  "
    "[default: what the table is for]",
)
@click.option("--epsilon", help="Audit the ready table of this budget in place of a file.  [default: 1]")
@click.option(
    "--samples",
    nargs=2,
    type=click.Path(),
    help="Two files of packets of a real board, one a line in hex, for two records that differ.",
)
@click.option(
    "--package", type=click.Path(path_type=Path), help="Run the C of this exported package in place of the kernel."
)
@click.option("--draws", default="1e8", show_default=True, help="Values to draw at most, over all inputs.")
@click.option("--confidence", default=0.9999, show_default=True, help="Of the whole audit: all tests, all looks.")
@click.option(
    "--threads",
    type=click.IntRange(1, MOST_JOBS),
    default=2,
    show_default=True,
    help="Threads; the result does not depend on them.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the words. Not secret.")
@format_option
def command(
    file: str | None,
    mechanism: str | None,
    epsilon: str | None,
    samples: tuple[str, str] | None,
    package: Path | None,
    draws: str,
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
    from sensorsim.privacy.audit import examine, make_source
    from sensorsim.privacy.audit.spof_sources import WAYS

    count = _count(draws)
    if file and epsilon:
        raise InputError("a file and --epsilon are two tables; give one of them.")
    if threads < 1 or seed < 0:
        raise InputError("--threads is at least 1 and --seed at least 0.")
    if samples and package:
        raise InputError("--samples and --package are two things to audit; give one of them.")
    if mechanism and (samples or package):
        raise InputError("--mechanism is of a kernel that is run here; leave it out with --samples and --package.")
    if samples:
        source, count = _captures(samples, file, epsilon)
        name = f"{samples[0]} and {samples[1]}"
    elif package:
        source, name = _package(package, file, epsilon), str(package)
    else:
        if mechanism and mechanism not in WAYS:
            mechanism = mechanism_name(mechanism)
        table, name = _table(file, mechanism, epsilon)
        source = make_source(table, mechanism)
    with _Progress(count) as progress:
        found = examine(source, count, seed, confidence, min(threads, os.cpu_count() or 1), progress)
    emit(fmt, lambda: text(name, found), lambda: data(name, found), lambda: rows(name, found))
    if not found.passed:
        sys.exit(1)


def _table(file: str | None, mechanism: str | None, epsilon: str | None) -> tuple["NoiseTable", str]:
    from sensorsim.privacy.tablefile import read_table
    from sensorsim.privacy.tables import certified, ready_table

    if file:
        return certified(read_table(file)), file
    release = 1 if mechanism == "sampled" else "all"
    return ready_table(epsilon or "1", release), f"ready table, epsilon {epsilon or 1}, release {release}"


def _captures(samples: tuple[str, str], file: str | None, epsilon: str | None) -> tuple["Source", int]:
    """The packets of a board, and how many there are."""
    from sensorsim.privacy.audit.captures import capture_source, read_capture
    from sensorsim.privacy.tablefile import read_table
    from sensorsim.privacy.tables import budget_of

    if file:
        table = read_table(file)
        proved = table.certify().epsilon_record  # whatever the file says
        claimed = float(table.epsilon if proved is None else min(proved, table.epsilon))
    elif epsilon:
        claimed = float(budget_of(epsilon))
    else:
        raise InputError("packets alone claim nothing; give the table that the board draws from, or --epsilon.")
    packets = [read_capture(path) for path in samples]
    return capture_source(packets, samples, claimed), 2 * min(map(len, packets))


def _package(package: Path, file: str | None, epsilon: str | None) -> "Source":
    from sensorsim.privacy.tablefile import read_table
    from sensorsim.verify.observed import package_source

    if epsilon:
        raise InputError("a package claims what its manifest says; leave --epsilon out, or give its table as FILE.")
    return package_source(package, read_table(file) if file else None)


def _count(draws: str) -> int:
    try:
        count = float(draws)
    except ValueError:
        count = -1.0
    if not 0 <= count <= 1e12 or count != int(count):
        raise InputError(f"draws is {draws}; give a whole number, as in 1e8.")
    return int(count)


class _Progress:
    """A bar on stderr, from the first draws on: bad input leaves no trace of it."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = TextColumn("audit"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn()
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("draw", total=total)

    def __enter__(self) -> Callable[[int], None]:
        def advance(drawn: int) -> None:
            self.bar.start()
            self.bar.advance(self.task, drawn)

        return advance

    def __exit__(self, *_: object) -> None:
        if self.bar.live.is_started:
            self.bar.stop()
