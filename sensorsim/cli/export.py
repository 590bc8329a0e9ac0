"""`sensorsim export`."""

import click

from sensorsim.api.firmware import Exported, export
from sensorsim.calls import listed
from sensorsim.cli.choices import EXPORTED, FILE, FOLDER, PACKET_NUMBERS
from sensorsim.cli.defaults import options_of
from sensorsim.cli.output import emit, format_option
from sensorsim.cli.verify_binary import wrapped

option = options_of(export)


@click.command()
@click.option("--out", required=True, type=FOLDER, help="Folder to write; new, empty, or an earlier package.")
@option(
    "--noise",
    type=FILE,
    help="A noise table, as `sensorsim noise make` writes it. For the sensor: else the ready one at epsilon 1.6.",
)
@option("--encoder", type=FILE, help="A trained encoder: its hidden units are what is released.")
@option(
    "--sketch",
    type=FILE,
    help="A sketch, as `sensorsim receive --write-sketch` writes it: one number of the whole record is released.",
)
@option("--budget-epsilon", help="Epsilon that a person may spend in a period; else that of one release.")
@option("--budget-days", type=int, help="Days of a period; else 1.")
@option("--reserve", type=int, help="Releases that one write of the journal counts ahead; else 1.")
@option(
    "--packet-numbers", type=PACKET_NUMBERS, help="Numbers that a packet carries: epoch, sequence, or both, by commas."
)
@option("--kernels", type=EXPORTED, help="Single kernels instead of the sensor, by commas; FILE.py:name for your own.")
@option(
    "--variant",
    type=click.Choice(["paper", "lean"]),
    help="Of single kernels: as printed, or what a firmware engineer would ship.",
)
@option("--prefix", help="What every C name begins with.")
@option("--spdx", help="Licence identifier for the head of every file.")
@option("--allow-uncertified", is_flag=True, help="Single kernels with a table that protects nothing.")
@format_option
def command(
    out: str,
    noise: str | None,
    encoder: str | None,
    sketch: str | None,
    budget_epsilon: str | None,
    budget_days: int | None,
    reserve: int | None,
    packet_numbers: str,
    kernels: str | None,
    variant: str,
    prefix: str,
    spdx: str,
    allow_uncertified: bool,
    fmt: str,
) -> None:
    """Write a private sensor as a C package for firmware, or single kernels.

    The sensor: three functions over four of the board's, with its table, generator, journal and packets, every
    constant bound; a host example, ports, a self-test, build files, a MISRA report, a bill of materials and a
    manifest. Freestanding C99 in integers only. The same input gives the same bytes.

    Example: sensorsim export --out firmware/privacy --noise table.txt --budget-epsilon 16 --budget-days 7
    """
    from sensorsim.cli.names import kernel_name

    named = None if kernels is None else [kernel_name(name) for name in listed(kernels)]
    found = export(
        out,
        noise,
        encoder,
        sketch,
        budget_epsilon,
        budget_days,
        reserve,
        packet_numbers,
        named,
        variant,
        prefix,
        spdx,
        allow_uncertified,
    )
    emit(fmt, lambda: _text(found), found.to_dict, found.rows)


def _text(found: Exported) -> str:
    rows = found.rows()
    width = max(len(str(row["file"])) for row in rows)
    lines = [f"  {row['file']:<{width}}  {row['bytes']:>7} bytes" for row in rows]
    lines += [line for text in found.unproved for line in wrapped(f"Not proved: {text}")]
    return "\n".join([f"{found.folder}: {len(rows)} files", *lines, f"Next: sensorsim verify {found.folder}"])
