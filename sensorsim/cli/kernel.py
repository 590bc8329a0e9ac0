"""`sensorsim kernel`."""

import sys
from typing import TYPE_CHECKING

import click

from sensorsim._util.terminal import columns, fold, hung
from sensorsim.api.kernels import kernel
from sensorsim.calls import listed
from sensorsim.cli.choices import CPUS, FOLDER, KERNEL, TARGETS
from sensorsim.cli.defaults import options_of
from sensorsim.cli.locking import Locks, lock_options, settle_kernel
from sensorsim.cli.output import emit, format_option

if TYPE_CHECKING:
    from sensorsim.api.kernels import KernelReports
    from sensorsim.costing.kernel_report import KernelReport

option = options_of(kernel)


@click.command()
@click.argument("file", type=KERNEL, metavar="FILE.py[:NAME…]")
@option("--at", metavar="n=14,rate=3", help="Lengths to count at; the others take their typical value.")
@option(
    "--cpu",
    type=CPUS,
    help="Processors, with commas; `sensorsim cpus` lists them, or FILE.csv of your own.",
)
@option(
    "--accounting",
    type=click.Choice(["paper", "full"]),
    help="full: price every operation; paper: what the SPOF paper prices.",
)
@option(
    "--level",
    type=click.Choice(["kernel", "machine"]),
    help="machine: also compile it, run the machine code and count what it executes.",
)
@option("--c", "out", type=FOLDER, help="Write a C package into this folder, as `export` does.")
@option("--verify", "targets", type=TARGETS, metavar="host,cortex-m0plus", help="Prove its C there, bit for bit.")
@lock_options("kernel")
@format_option
def command(
    file: str, at: str, cpu: str, accounting: str, level: str, out: str | None, targets: str, fmt: str, locks: Locks
) -> None:
    """All that can be said of a kernel in a file of your own, or of one that ships, by name.

    Formula and counts, price on each processor, the proved interval of every line, what an observer with a stopwatch
    learns of its secrets, and its C. Exit code 0: all of it holds. 1: something is not proved, or a bit differs. 2: the
    file is not in the kernel language, or the question cannot be answered.

    Example: sensorsim kernel ema.py:ema --at n=14,rate=3 --cpu cortex-m0plus --verify host,cortex-m0plus
    """
    found = kernel(file, at, cpu, accounting, level, out, targets)
    if found.unverified:  # the report says what is not proved, and the exit code that something is not
        click.echo("Nothing is verified: C is written of proved kernels only.", err=True)
    reports, data = dict(found.kernels), found.to_dict()
    if locks.lock or locks.check:
        from sensorsim.commands.locked_figures import with_machine_code

        cpus = listed(cpu)
        settle_kernel(locks, with_machine_code(data, reports, cpus, level, locks.also), found.holds)
    emit(
        fmt,
        lambda: "\n\n".join([*(_text(report, file, out) for report in reports.values()), *_failed(found)]),
        lambda: data,
        found.rows,
    )
    if not found.holds:
        sys.exit(1)


def _text(report: "KernelReport", file: str, out: str | None) -> str:
    kernel = report.kernel
    sizes = ", ".join(f"{name} = {value}" for name, value in report.at.items())
    lines = [f"{kernel.name} ({kernel.at})" + (f"   {sizes}" if sizes else "")]
    lines += [f" {text}" for text in _costs(report)]
    counts = _counts(report)
    lines += ["", *counts, ""] if counts else [""]
    lines += _ranges(report)
    leaks = any(row["leaks"] for row in report.verified)
    lines += _paragraph(
        "secrecy", ("NOT kept by the machine code; of the source " if leaks else "") + report.secrecy.verdict
    )
    for row in report.verified:
        same = "every bit is the same" if not row["differing_bits"] else f"{row['differing_bits']} BITS DIFFER"
        ran = f", {row['instructions']:g} instructions on average" if row["instructions"] else ""
        lines.append(f" {'verified':<9} {row['target']}: {same} in {row['vectors']} vectors{ran}")
    if out is not None:
        lines.append(f" {'C':<9} in {out}; next: sensorsim verify {out}")
    elif report.proof is not None and not report.verified:
        lines.append(f" {'C':<9} sensorsim kernel {_alone(file, kernel.name)} --c DIR --verify host")
    return hung("\n".join(lines), columns())


def _failed(found: "KernelReports") -> list[str]:
    """Every proof of the C that does not hold, as one block of text."""
    lines = [line for text in found.failed for line in _paragraph("FAILED", text)]
    return ["\n".join(lines)] if lines else []


def _alone(file: str, name: str) -> str:
    """One of a file's kernels, as it is asked for: beside another that is not proved no C would be written."""
    path, found, _ = file.rpartition(".py")
    return f"{path}.py:{name}" if found else file


def _costs(report: "KernelReport") -> list[str]:
    lines = []
    for name, price in report.prices.items():
        how = "" if price.accounting == "full" else ", the paper's accounting"
        if price.total is None:
            lines.append(f"no price on {price.cpu.title}: {' '.join(price.missing)}")
        else:
            spread = f" ({price.total.min} … {price.total.max})" if price.total.min != price.total.max else ""
            formula = f"   {price.formula}" if price.formula is not None else ""
            data = ", by the data" if price.by_data else ""
            amount = f"{price.amount} {price.cpu.unit}{'' if data else spread}"
            lines.append(f"{amount} on {price.cpu.title}{data}{how}{formula}")
        ran = report.machine.get(name)
        if ran is not None:
            lines.append(f"  as machine code: {ran.get('machine_text', 'there is no compiler for it here')}")
    words = report.random_words
    lines.append(f"{32 * words} secret random bits" if words else "no secret random bits")
    return lines


def _counts(report: "KernelReport") -> list[str]:
    """One row for each operation class: its formula, and how often it runs in each step."""
    steps = report.steps()
    if not steps:
        return []
    formula = report.to_dict()["formula"] or {}
    rows = [["operation", "formula", "count", *(steps if len(steps) > 1 else [])]]
    for operation in dict.fromkeys([*(name for counts in steps.values() for name in counts), *formula]):
        each = [counts.get(operation, 0) for counts in steps.values()]
        cells = [str(count) if count else "" for count in each] if len(steps) > 1 else []
        rows.append([operation, formula.get(operation, "–"), str(sum(each)), *cells])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        left = f" {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}"
        lines.append((left + "".join(f"  {cell:>{widths[k + 2]}}" for k, cell in enumerate(row[2:]))).rstrip())
    if report.formula_error:
        lines.append(f" {report.formula_error}")
    if report.otherwise is not None:
        lines.append(" The formula is of the way into every `if`, the count of one call; JSON has the other way too.")
    return lines


def _ranges(report: "KernelReport") -> list[str]:
    from sensorsim.language.types import power_of_two

    if report.proof is None:
        return _paragraph("REFUSED", str(report.proof_error))
    lines = [" proved    no operation wraps, no index leaves its array, for every input and length"]
    for at, (lo, hi) in sorted(report.proof.lines.items()):
        interval = power_of_two(lo) if lo == hi else f"{power_of_two(lo)} … {power_of_two(hi)}"
        lines.append(f"   {at!s:<20} {interval}")
    return lines


def _paragraph(head: str, text: str) -> list[str]:
    return fold(text, columns(), f" {head:<9} ")
