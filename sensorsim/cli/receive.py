"""sensorsim receive: packets in, means with their intervals out."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sensorsim.cli.output import emit, format_option

if TYPE_CHECKING:
    from sensorsim.hospital import Received


@click.command()
@click.argument("packets", nargs=-1, required=True)
@click.option("--table", required=True, help="Noise table that the sensors were made with.")
@click.option("--encoder", type=click.Path(path_type=Path), help="Encoder that they were made with, if any.")
@click.option("--hex/--binary", "lines", default=None, help="Form of the packets.  [default: as their content says]")
@click.option("--out", help="Write what was received as JSON, exact sums included; it can be given as PACKETS again.")
@format_option
def command(
    packets: tuple[str, ...], table: str, encoder: Path | None, lines: bool | None, out: str | None, fmt: str
) -> None:
    """Mean of every feature, with an interval that holds whatever the records are, from the packets of sensors.

    PACKETS are files, or - for standard input: packets that follow each other, or one a line in hex. Those of another
    table are refused and counted. Exit code 1 if no packet is accepted.

    \b
    Example: sensorsim receive ward3.bin ward4.bin --table rows-eps1.6-1.txt
             sensorsim receive - --table rows-eps1.6-1.txt --out week12.json
    """
    import json

    from sensorsim.device.encoder import read_encoder
    from sensorsim.files import write_whole
    from sensorsim.hospital import receive
    from sensorsim.privacy.tablefile import read_table

    form = None if lines is None else "hex" if lines else "binary"
    received = receive(packets, read_table(table), read_encoder(encoder) if encoder else None, form)
    if out:
        write_whole(out, json.dumps(received.to_dict(), indent=1, allow_nan=False) + "\n")
    what = "hidden unit" if encoder else "feature"
    emit(fmt, lambda: _text(received, what), received.to_dict, lambda: received.to_dict()["features"])
    if not received.accepted:
        sys.exit(1)


def _text(received: "Received", what: str) -> str:
    from sensorsim.hospital.received import PRIVACY

    kept, table = received.statistics, received.table
    lines = [
        f"{kept.accepted:,} packets accepted, {received.rejected:,} refused, {kept.empty:,} empty",
        f"  table         {table.kind}, {kept.k} of {kept.n} {what}s in a packet, identity {kept.identity[:16]}",
        f"  epsilon       {kept.epsilon} per packet, as proved here: {PRIVACY}",
        *_refused(received),
        "",
        f"  {what:>11}  {'packets':>12}  {'mean':>10}   95 % interval of the records' mean",
    ]
    for row in received.features:
        mean = "–" if row.mean is None else f"{row.mean:.5f}"
        lines.append(f"  {row.feature:>11}  {row.count:>12,}  {mean:>10}   {row.low:.5f} … {row.high:.5f}")
    return "\n".join(lines)


def _refused(received: "Received") -> list[str]:
    from sensorsim.hospital.expected import REASONS

    some = [(count, reason) for reason, count in received.statistics.rejected.items() if count]
    return [f"  {'refused' if i == 0 else '':<13} {count:,} {REASONS[why]}" for i, (count, why) in enumerate(some)]
