"""`sensorsim verify`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sensorsim.cli.output import emit, format_option

if TYPE_CHECKING:
    from sensorsim.verify.bits import KernelResult
    from sensorsim.verify.verification import Verification


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--target",
    default="host,k7,cortex-m0plus,cortex-m3,cortex-m4,rv32imc",
    show_default=True,
    help="Where to run it, with commas.",
)
@click.option("--random-host", default=1_000_000, show_default=True, help="Random vectors for each kernel on the host.")
@click.option("--random-core", default=10_000, show_default=True, help="Random vectors for each kernel on each core.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random vectors.")
@click.option("--trust", is_flag=True, help="Load kernel sources of the package that do more than declare kernels.")
@format_option
def command(folder: Path, target: str, random_host: int, random_core: int, seed: int, trust: bool, fmt: str) -> None:
    """Prove a C package on real machine code, bit for bit, and count what it executes.

    Compiles the package for every target, runs it (cores in an emulator) and compares golden vectors, edges and random
    vectors with the Numba kernels. Kernels that are not sensorsim's are loaded from the copies in the package, if
    these do nothing but declare kernels. On the target host the package's C runs on this machine: leave it out for a
    package of someone you do not know. Exit code 0: every bit is the same. 1: it is not, or the self-test fails, or the
    build with UBSan stops. 2: the package was altered, or a tool is missing.

    Example: sensorsim verify firmware/privacy --target host,cortex-m0plus
    """
    from sensorsim.errors import InputError
    from sensorsim.verify.bits import Effort
    from sensorsim.verify.verification import verify

    if random_host < 1 or random_core < 1:
        raise InputError("the number of random vectors must be 1 or more.")
    names = [name.strip() for name in target.split(",") if name.strip()]
    with _Display() as display:
        report = verify(folder, names, Effort(max(random_host, random_core), random_core), seed, display.show, trust)
    emit(fmt, lambda: _text(report), lambda: _data(report), lambda: [_row(result) for result in report.results])
    if not report.passed:
        sys.exit(1)


class _Display:
    """A progress bar on stderr."""

    def __enter__(self) -> "_Display":
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("verify"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        self.bar = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
        self.bar.start()
        self.task = self.bar.add_task("", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self, what: str, step: int, steps: int) -> None:
        self.bar.update(self.task, description=what, completed=step, total=steps)


def _text(report: "Verification") -> str:
    kernels = list(dict.fromkeys(result.kernel for result in report.results))
    lines = [
        f"{report.folder}: {'every bit is the same' if report.passed else 'FAILED'}",
        f"Compiled with {report.compiler}, {report.flags}",
    ]
    if report.gcc:
        lines.append(f"No warning from it, nor from {report.gcc}")
    lines.append(f"No undefined behaviour in {report.ubsan_vectors} vectors (UBSan, trapping)")
    for kernel in kernels:
        results = [result for result in report.results if result.kernel == kernel]
        lines += ["", *_kernel_lines(kernel, results)]
    return "\n".join(lines)


def _kernel_lines(kernel: str, results: list["KernelResult"]) -> list[str]:
    counted = next((result for result in results if result.instructions), None)
    sizes = ", ".join(f"{name} = {value}" for name, value in counted.lengths.items()) if counted else ""
    lines = [f"{kernel}" + (f"   one call, {sizes}" if sizes else "")]
    head = [
        "",
        "vectors",
        "bits off",
        "instr. min",
        "mean",
        "max",
        "cost mean",
        "max",
        "",
        "flash",
        "ram",
        "stack",
        "same path",
    ]
    rows = [head, *(_cells(result) for result in results)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    left = (0, 8, 12)
    for row in rows:
        cells = (c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True)))
        lines.append("  " + "  ".join(cells).rstrip())
    for result in results:
        if result.runtime:
            lines.append(f"  {result.target}: linked from the compiler's runtime: {', '.join(result.runtime)}")
        for note in result.table_notes:
            if "no price" in note:
                lines.append(f"  {result.target}: {note}")
        for reason in result.varying:
            lines.append(f"  {result.target}: not the same path for all inputs: {reason}")
    return lines


def _cells(result: "KernelResult") -> list[str]:
    head = [result.target, f"{result.vectors}", f"{result.differing_bits}"]
    if result.instructions is None:
        return [*head, *[""] * 10]
    n, price = result.instructions, result.price
    counts = [f"{n.min:.0f}", f"{n.mean:.1f}", f"{n.max:.0f}"]
    counts += [f"{price.mean:.1f}", f"{price.max:.0f}", result.unit] if price else ["no price", "", ""]
    memory = [f"{result.flash_bytes}", f"{result.ram_bytes}", f"{result.stack_bytes}"]
    return [*head, *counts, *memory, _path(result)]


def _path(result: "KernelResult") -> str:
    """Whether one sequence of instructions ran for all inputs, or for all secrets, and whether that is proved."""
    if not result.constant_time:
        return f"no, {result.sequences}"
    ran = "yes" if result.sequences == 1 else "for all secrets"
    return f"{ran}, proved" if result.proved_same_path else ran


def _row(result: "KernelResult") -> dict[str, Any]:
    n, price = result.instructions, result.price
    return {
        "kernel": result.kernel,
        "target": result.target,
        "vectors": result.vectors,
        "differing_bits": result.differing_bits,
        "lengths": " ".join(f"{name}={value}" for name, value in result.lengths.items()),
        "instructions_min": n.min if n else None,
        "instructions_mean": n.mean if n else None,
        "instructions_max": n.max if n else None,
        "cost_min": price.min if price else None,
        "cost_mean": price.mean if price else None,
        "cost_max": price.max if price else None,
        "cost_unit": result.unit or None,
        "table": result.table or None,
        "flash_bytes": result.flash_bytes,
        "ram_bytes": result.ram_bytes,
        "stack_bytes": result.stack_bytes,
        "runtime": " ".join(result.runtime),
        "sequences": result.sequences,
        "sequences_by_secret": result.sequences_by_secret,
        "same_path_proved": result.proved_same_path if result.sequences is not None else None,
    }


def _data(report: "Verification") -> dict[str, Any]:
    results = []
    for result in report.results:
        more = {"classes": result.classes, "table_notes": list(result.table_notes), "varying": list(result.varying)}
        results.append({**_row(result), "lengths": result.lengths, **more})
    return {
        "schema_version": 1,
        "folder": report.folder,
        "passed": report.passed,
        "compiler": report.compiler,
        "flags": report.flags,
        "gcc": report.gcc,
        "ubsan_vectors": report.ubsan_vectors,
        "results": results,
    }
