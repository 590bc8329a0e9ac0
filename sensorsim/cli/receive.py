"""sensorsim receive: packets in, means with their intervals out."""

import sys
from math import floor
from typing import TYPE_CHECKING

import click

from sensorsim._util.terminal import columns, counted, hung
from sensorsim.cli.choices import FILE, SUMS, WRITTEN
from sensorsim.cli.output import emit, format_option

if TYPE_CHECKING:
    from sensorsim.hospital import Received


@click.command()
@click.argument("packets", type=FILE, nargs=-1, required=True)
@click.option("--table", type=FILE, required=True, help="Noise table that the sensors were made with.")
@click.option("--encoder", type=FILE, help="Encoder that they were made with, if any.")
@click.option("--sketch", type=FILE, help="Sketch that they were made with, if any.")
@click.option("--hex/--binary", "lines", default=None, help="Form of the packets.  [default: as their content says]")
@click.option(
    "--out",
    type=SUMS,
    help="Write what was received, exact sums included: a .json, or as a table a .csv or .parquet; it can be given as "
    "PACKETS again.",
)
@click.option("--write-sketch", type=WRITTEN, help="Write the sketch that the means received here are the centre of.")
@click.option(
    "--root", type=float, help="With --write-sketch: its bound R.  [default: from how much the features vary]"
)
@click.option(
    "--direction-bits",
    type=int,
    help="With --write-sketch: 2^B directions, B 1 … 16.  [default: from how many features there are]",
)
@format_option
def command(
    packets: tuple[str, ...],
    table: str,
    encoder: str | None,
    sketch: str | None,
    lines: bool | None,
    out: str | None,
    write_sketch: str | None,
    root: float | None,
    direction_bits: int | None,
    fmt: str,
) -> None:
    """Mean of every feature over the records that came, with its interval, from the packets of sensors.

    The interval holds whatever these records are. It is not of records that did not come: those of people who do not
    answer, or whose packets are lost, may be others.

    PACKETS are files, or - for standard input: packets that follow each other, or one a line in hex, or a CSV or
    Parquet with a column packet, or what --out or `sensorsim fleet --statistics` wrote: sums of several files, clinics
    and weeks add up exactly. Packets of another table are refused and counted. Those of a sketch tell how features vary
    together: all directions are summed up, and --out keeps the sums of each for training. Exit code 1 if no packet is
    accepted.

    \b
    Example: sensorsim receive ward3.bin ward4.bin --table rows-eps1.6-1.txt
             sensorsim receive - --table rows-eps1.6-1.txt --out week12.json
             sensorsim receive week12.json week13.parquet \\
               --table rows-eps1.6-1.txt --out both.csv
             sensorsim receive week12.json --table rows-eps1.6-1.txt \\
               --write-sketch sketch.json
             sensorsim receive week13.bin --table rows-eps1.6-1.txt \\
               --sketch sketch.json
    """
    from sensorsim._util.files import write_all
    from sensorsim.api.receiving import receive
    from sensorsim.hospital.sum_files import check_out, received_content

    _check(encoder, sketch, write_sketch, {"--root": root, "--direction-bits": direction_bits})
    check_out(out or "")
    form = None if lines is None else "hex" if lines else "binary"
    received = receive(packets, table, encoder, sketch, form)
    made: dict[str, bytes | str] = {}  # all of it before the first file is written
    if out:
        made[out] = received_content(out, received)
    if write_sketch:
        made[write_sketch] = _sketch_file(received, root, direction_bits)
    write_all(made)
    what = "hidden unit" if encoder else "feature"
    shown = _sketch_text if sketch else _text
    emit(fmt, lambda: hung(shown(received, what), columns()), received.to_dict, received.rows)
    if not received.accepted:
        sys.exit(1)


def _check(encoder: str | None, sketch: str | None, writes: str | None, shape: dict[str, float | None]) -> None:
    from sensorsim._util.errors import InputError
    from sensorsim.device.sketch import LEAST_ROOT, MOST_ROOT
    from sensorsim.kernels.formats import DIRECTION_BITS

    if writes and (encoder or sketch):
        raise InputError(
            "--write-sketch takes its centre from means of features, and these packets are of hidden units or of a "
            "sketch; give packets that release features."
        )
    for name, value in shape.items():
        if value is not None and not writes:
            raise InputError(f"{name} shapes a new sketch; give it with --write-sketch FILE, or leave it out.")
    for name, least, most in (
        ("--root", floor(10 * LEAST_ROOT) / 10, MOST_ROOT),
        ("--direction-bits", DIRECTION_BITS.lo, DIRECTION_BITS.hi),
    ):
        value = shape[name]
        if value is not None and not least <= value <= most:
            raise InputError(f"{name} is {value:g}; give a number from {least:g} to {most:g}.")


def _sketch_file(received: "Received", root: float | None, direction_bits: int | None) -> str:
    """The content of the file of a sketch about the means received."""
    from sensorsim._util.errors import InputError
    from sensorsim.device import Sketch
    from sensorsim.device.sketch_file import sketch_text
    from sensorsim.hospital.learning import sketch_for

    if not received.accepted:
        raise InputError("no packet was accepted, so there are no means for a sketch; give packets of this table.")
    found = sketch_for(received)
    bound = found.root if root is None else root
    bits = found.direction_bits if direction_bits is None else direction_bits
    return sketch_text(Sketch.of(found.middle.tolist(), bound, bits, found.columns, found.ranges))


def _text(received: "Received", what: str) -> str:
    kept = received.statistics
    lines = [
        *_head(received, f"{kept.k} of {counted(kept.n, what)} in a packet"),
        "",
        f"  {what:>11}  {'packets':>12}  {'mean':>10}   95 % interval of the records' mean",
    ]
    for row in received.features:
        mean = "–" if row.mean is None else f"{row.mean:.5f}"
        lines.append(f"  {row.feature:>11}  {row.count:>12,}  {mean:>10}   {row.low:.5f} … {row.high:.5f}")
    return "\n".join(lines)


def _sketch_text(received: "Received", what: str) -> str:
    told = received.sketched
    assert told is not None
    mean = "–" if told.mean is None else f"{told.mean:.5f}"
    return "\n".join(
        [
            *_head(received, f"a sketch of {counted(told.features, what)} in a packet"),
            f"  directions    {told.met:,} of {told.directions:,} came; bound R {told.root:.5g}",
            f"  mean square   {mean} of records along a direction, less their centre, up to R²",
            f"                95 % interval of the records' mean {told.low:.5f} … {told.high:.5f}",
        ]
    )


def _head(received: "Received", holds: str) -> list[str]:
    from sensorsim.hospital.receiver import PRIVACY

    kept = received.statistics
    return [
        received.title(),
        f"  table         {received.table.kind}, {holds}, identity {kept.identity[:16]}",
        f"  epsilon       {kept.epsilon} per packet, as proved here: {PRIVACY}",
        *_refused(received),
    ]


def _refused(received: "Received") -> list[str]:
    from sensorsim.hospital.packets import REASONS

    some = [(count, reason) for reason, count in received.statistics.rejected.items() if count]
    return [f"  {'refused' if i == 0 else '':<13} {count:,} {REASONS[why]}" for i, (count, why) in enumerate(some)]
