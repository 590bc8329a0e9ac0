"""sensorsim noise audit: run the real kernel and look for a leak."""

import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sensorsim.cli.output import emit, format_option
from sensorsim.errors import InputError

if TYPE_CHECKING:
    from sensorsim.privacy.audit import Audit

MECHANISMS = ("release", "sampled", "lean", "prefetch", "shared")


@click.command()
@click.argument("file", required=False)
@click.option(
    "--mechanism",
    type=click.Choice(MECHANISMS),
    help="release, sampled: read stairs; lean: SPOF with one secret draw per feature; prefetch: SPOF that reads the "
    "table in a fixed order; shared: SPOF with one draw for both coefficients.  [default: what the table is for]",
)
@click.option("--epsilon", help="Audit the ready table of this budget in place of a file.  [default: 1]")
@click.option("--draws", default="1e8", show_default=True, help="Outputs to draw, half from each input.")
@click.option("--confidence", default=0.9999, show_default=True, help="Of the lower bound and of the chi-square test.")
@click.option("--threads", default=2, show_default=True, help="Threads; the result does not depend on them.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the generators.")
@format_option
def command(
    file: str | None,
    mechanism: str | None,
    epsilon: str | None,
    draws: str,
    confidence: float,
    threads: int,
    seed: int,
    fmt: str,
) -> None:
    """Run the real kernel on x = 0 and x = 1 and look for a leak. Exit code 1 if there is one.

    Example: sensorsim noise audit stairs-eps1-all.txt
    """
    from sensorsim.privacy.audit import audit
    from sensorsim.privacy.tablefile import read_table
    from sensorsim.privacy.tables import ready_table

    count = _count(draws)
    if file and epsilon:
        raise InputError("a file and --epsilon are two tables; give one of them.")
    if threads < 1 or seed < 0:
        raise InputError("--threads is at least 1 and --seed at least 0.")
    if file:
        table, name = read_table(file), file
    else:
        release = 1 if mechanism == "sampled" else "all"
        table, name = ready_table(epsilon or "1", release), f"ready table, epsilon {epsilon or 1}, release {release}"
    with _Progress(count // 4 * 4) as progress:
        found = audit(table, mechanism, count, seed, confidence, min(threads, os.cpu_count() or 1), progress)
    emit(
        fmt, lambda: _text(name, found), lambda: {"schema_version": 1, **_row(name, found)}, lambda: [_row(name, found)]
    )
    if not found.passed:
        sys.exit(1)


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


def _text(name: str, found: "Audit") -> str:
    likelier, other = found.event_rates
    matches = "as the certificate says" if found.matches else "NOT the certificate's distribution"
    lines = [
        f"{name}: {found.mechanism}, {found.draws:,} draws of the compiled kernel, x = 0 against x = 1",
        f"  observed      {found.sees}",
        f"  chi-square    {found.chi_square:.0f} on {found.degrees} degrees of freedom,"
        f" p = {found.p_value:.3g}: {matches}",
        f"  epsilon       claimed {found.epsilon_claimed:.6g} for one observation, {found.per_record} in a record",
        f"                more than {found.epsilon_bound:.6g} with confidence {found.confidence:g} (Clopper–Pearson)",
        f"  best event    {likelier:.4%} of draws under one x, {other:.4%} under the other",
    ]
    return "\n".join([*lines, "", _verdict(found)])


def _verdict(found: "Audit") -> str:
    if found.recovered:
        return "LEAK: every observation gives x away exactly."
    if found.leaks:
        return (
            f"LEAK: one observation costs more than {found.epsilon_bound:.4g}, {found.epsilon_claimed:.4g} was claimed."
        )
    if not found.matches:
        return "MISMATCH: the kernel does not put out what the certificate is about."
    return "No leak found. That is no proof; the proof is the certificate (sensorsim noise check)."


def _row(name: str, found: "Audit") -> dict[str, Any]:
    row = {"file": name, **asdict(found)}
    row["rate_likelier"], row["rate_other"] = row.pop("event_rates")
    if row["chi_square"] == float("inf"):
        row["chi_square"] = None  # JSON has no infinity
    return row | {"matches": found.matches, "leaks": found.leaks, "passed": found.passed, "verdict": _verdict(found)}
