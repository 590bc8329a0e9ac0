"""`sensorsim verify`."""

import sys
from typing import TYPE_CHECKING

import click

from sensorsim._util.terminal import columns, table, widest
from sensorsim.api.firmware import ALL, MOST_ON_CORE, MOST_ON_HOST, verify
from sensorsim.cli.choices import DIR, Names, targets
from sensorsim.cli.defaults import options_of
from sensorsim.cli.locking import Locks, lock_options, settle_verify
from sensorsim.cli.output import bar, emit, format_option, refuse_idle
from sensorsim.cli.verify_binary import binary_options, binary_text, wrapped

COUNTS = (
    *("on", "vectors", "bits off", "instr. min", "instr. mean", "instr. max", "cost mean", "cost max", "unit"),
    *("flash", "ram", "stack"),
)
DROPPED = ("instr. min", "instr. mean", "cost mean", "ram")  # where a line is too short; --format json and csv have all

if TYPE_CHECKING:
    from sensorsim.verification.kernel_timing import KernelResult
    from sensorsim.verification.verification import Verification

option = options_of(verify)


@click.command()
@click.argument("folder", type=DIR, required=False)
@option(
    "--target",
    type=Names(lambda: [ALL, *targets()], several=True),
    help="Where to run it, with commas; all: host and every core but avr.",
)
@option("--random-host", type=click.IntRange(1, MOST_ON_HOST), help="Random vectors for each kernel on the host.")
@option("--random-core", type=click.IntRange(1, MOST_ON_CORE), help="Random vectors for each kernel on each core.")
@option("--seed", type=click.IntRange(min=0), help="Of the random vectors.")
@option("--trust", is_flag=True, help="Run Python of the package where a kernel uses a primitive that it declares.")
@option(
    "--jobs",
    type=click.IntRange(0, 64),
    help="Processes that share the work; else 2, and 0, one step at a time, for a quick look of up to 1000 vectors.",
)
@binary_options
@lock_options("verify")
@format_option
def command(
    locks: Locks,
    folder: str | None,
    target: str,
    random_host: int,
    random_core: int,
    seed: int,
    trust: bool,
    jobs: int | None,
    cc: str | None,
    elf: str | None,
    manifest: str | None,
    symbol: tuple[str, ...],
    fmt: str,
) -> None:
    """Prove a C package on real machine code, bit for bit, and count what it executes.

    Files: the package is written anew from its manifest, and every byte must be the same. Table and certificate: read
    out of the compiled code and certified again. Every draw: the compiled release is run through its secret words, and
    the observed ratio of likelihoods is compared with the certificate. Then the self-test, and on every target (cores
    in an emulator) golden vectors, edges and random vectors beside the Numba kernels; a build that traps on undefined
    behaviour; and what each kernel executes and costs.

    With --cc your own compiler builds it, with --elf your own image is proved as it stands.

    Kernels that are not sensorsim's are loaded from the copies in the package, if these do nothing but declare kernels.
    With the target host the package's C runs on this machine, and every draw is counted there: only where every file is
    as export writes it, and in a process of its own. Where a file differs, only emulated cores run.

    Exit code 0: everything holds. 1: a proof fails; the file or the property is named. 2: the question is wrong: no
    package, one of another version, a tool is missing.

    Example: sensorsim verify firmware/privacy --target host,cortex-m0plus
    """
    from sensorsim.verification.binary import BinaryReport

    if cc is not None or elf is not None:
        refuse_idle(("jobs",), "a build of yours is proved in one process")
    with _Display() as display:
        report = verify(
            folder, target, random_host, random_core, seed, trust, jobs, cc, elf, manifest, symbol, display.show
        )
    settle_verify(locks, report.to_dict())
    emit(
        fmt,
        lambda: binary_text(report) if isinstance(report, BinaryReport) else _text(report),
        report.to_dict,
        report.rows,
    )
    if not report.passed:
        sys.exit(1)


class _Display:
    """A progress bar on stderr."""

    def __enter__(self) -> "_Display":
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("verify"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        self.bar = bar(*columns, TimeElapsedColumn())
        self.task = self.bar.add_task("", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self, what: str, step: int, steps: int) -> None:
        self.bar.start()  # with the first step: a question that is refused leaves no line
        self.bar.update(self.task, description=what, completed=step, total=steps)


def _text(report: "Verification") -> str:
    lines = [
        f"{report.folder}: {'every proof holds' if report.passed else 'FAILED'}",
        *wrapped(f"Compiled with {report.compiler}, {report.flags}"),
    ]
    if report.gcc:
        lines += wrapped(f"No warning from it, nor from {report.gcc}")
    lines += ["", "Proved just now" if report.passed else "Proved just now, or not"]
    width = max(len(proof.name) for proof in report.proofs)
    for proof in report.proofs:
        lead = f"  {proof.name:<{width}}  {'yes' if proof.passed else 'NO '}  "
        lines += wrapped(proof.detail, lead)
    for text in report.left_out:
        lines += wrapped(f"Not proved: {text}", "  ")
    for kernel in dict.fromkeys(result.kernel for result in report.results):
        results = [result for result in report.results if result.kernel == kernel]
        lines += ["", *_kernel_lines(kernel, results)]
    return "\n".join(lines)


def _kernel_lines(kernel: str, results: list["KernelResult"]) -> list[str]:
    """What one call takes, and below it what a stopwatch would learn: two tables, so that both fit on a screen."""
    from sensorsim.verification.kernel_timing import TIMING_HEAD, timing_cells, timing_lines

    counted = next((result for result in results if result.instructions), None)
    sizes = ", ".join(f"{name} = {value}" for name, value in counted.lengths.items()) if counted else ""
    lines = [f"{kernel}" + (f"   one call, {sizes}" if sizes else "")]
    width = columns()
    lines += table(COUNTS, [_cells(result) for result in results], width, COUNTS[1:8] + COUNTS[9:], drop=DROPPED)
    timed = [[result.target, *timing_cells(result)] for result in results if result.sequences is not None]
    if timed:
        made = table(["on", *TIMING_HEAD], timed, width, folded=(TIMING_HEAD[-1], 24))
        lines += made if widest(made) <= width else _stacked(timed)
    for result in results:
        if result.runtime:
            lines += wrapped(f"{result.target}: linked from the compiler's runtime: {', '.join(result.runtime)}", "  ")
        for note in result.table_notes:
            if "no price" in note:
                lines += wrapped(f"{result.target}: {note}", "  ")
        lines += [part for line in timing_lines(result) for part in wrapped(line, "  ")]
    return lines


def _stacked(timed: list[list[str]]) -> list[str]:
    """The cells of the second table one after the other, where they do not fit side by side."""
    from sensorsim.verification.kernel_timing import TIMING_HEAD

    said = (
        (target, "; ".join(f"{head}: {cell}" for head, cell in zip(TIMING_HEAD, cells, strict=True)))
        for target, *cells in timed
    )
    return [line for target, text in said for line in wrapped(f"{target}  {text}", " ")]


def _cells(result: "KernelResult") -> list[str]:
    head = [result.target, f"{result.vectors}", f"{result.differing_bits}"]
    if result.instructions is None:
        return [*head, *[""] * 9]
    n, price = result.instructions, result.price
    counts = [f"{n.min:.0f}", f"{n.mean:.1f}", f"{n.max:.0f}"]
    counts += [f"{price.mean:.1f}", f"{price.max:.0f}", result.unit] if price else ["no price", "", ""]
    memory = [f"{result.flash_bytes}", f"{result.ram_bytes}", f"{result.stack_bytes}"]
    return [*head, *counts, *memory]
