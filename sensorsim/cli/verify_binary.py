"""`sensorsim verify --cc …` and `sensorsim verify --elf …`: their options, and how their report reads."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sensorsim._util.terminal import columns, fold, table
from sensorsim.cli.choices import FILE

if TYPE_CHECKING:
    from sensorsim.verification.binary import BinaryReport

SHOWN = 6  # branches that one call names


def binary_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `cc`, `elf`, `manifest` and `symbol`."""
    for option in (
        click.option(
            "--symbol",
            multiple=True,
            metavar="NAME=ADDRESS",
            help="Where a function is that the image has no name for, as ss_sensor_release=0x8000124.",
        ),
        click.option(
            "--manifest",
            type=FILE,
            help="Of the package that the image was built from: its MANIFEST.json.",
        ),
        click.option("--elf", type=FILE, help="A linked image of yours, proved as it stands."),
        click.option("--cc", help="A compiler of yours with its flags, proved in place of the targets."),
    ):
        command = option(command)
    return command


def binary_text(report: "BinaryReport") -> str:
    """What was proved first, then what each function takes."""
    verdict = "every proof holds" if report.passed else "FAILED"
    lines = [f"{report.image}: {verdict}", f"Package {report.folder}, on {report.target}"]
    if report.compiler:
        lines += wrapped(f"Compiled with {report.compiler}, {report.flags}")
    lines += wrapped(_sizes(report))
    width = max(len(proof.name) for proof in report.proofs)
    for proof in report.proofs:
        lines += wrapped(proof.detail, f"  {proof.name:<{width}}  {'yes' if proof.passed else 'NO '}  ")
    for text in report.left_out:
        lines += wrapped(f"Not proved: {text}", "  ")
    lines += [line for note in report.notes for line in wrapped(note, "  ")]
    if report.absent:
        lines += wrapped(f"not in the image: {', '.join(report.absent)}", "  ")
    return "\n".join([*lines, *_table(report)])


def wrapped(text: str, lead: str = "") -> list[str]:
    """The text in lines that the terminal has room for."""
    return fold(text, columns(), lead)


def _sizes(report: "BinaryReport") -> str:
    text = f"The whole image takes {report.flash_bytes} bytes of flash and {report.ram_bytes} of RAM"
    if report.own_bytes and report.calls:
        text += f"; the sensor {report.own_bytes} of flash, and {report.calls.state_bytes} of RAM for its state"
    return text


def _table(report: "BinaryReport") -> list[str]:
    rows = report.rows()
    if not rows:
        return []
    unit = rows[0]["cost_unit"]
    heads = ("function", "instr. mean", "instr. max", f"{unit} mean", f"{unit} max", "stack", "paths by secrets")
    cells = []
    for row in rows:
        cost = ["no price", ""] if row["cost_mean"] is None else [f"{row['cost_mean']:.1f}", f"{row['cost_max']:.0f}"]
        counts = [f"{row['instructions_mean']:.1f}", f"{row['instructions_max']:.0f}"]
        cells.append([row["function"], *counts, *cost, f"{row['stack_bytes']}", f"{row['paths']}"])
    made = ["", *table(heads, cells, columns(), heads[1:], (heads[1], heads[3]))]
    varying = {one.call: one.varying for one in report.calls.results} if report.calls else {}
    varying |= {one.kernel: one.varying for one in report.kernels}
    for name, reasons in varying.items():
        for why in reasons[:SHOWN]:
            made += wrapped(f"{name}: not the same path for all inputs: {why}", "  ")
    if report.calls:
        for operation in report.calls.touches.operations[:SHOWN]:
            made += wrapped(f"release: time depends on secret operands: {operation}", "  ")
    return made
