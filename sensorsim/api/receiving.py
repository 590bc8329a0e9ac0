"""`receive`: packets in, means with their intervals out."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sensorsim.api.noise import Table, read_table
from sensorsim.calls import check_value, checked

if TYPE_CHECKING:
    from sensorsim.device.sketch import Sketch
    from sensorsim.encoders import Encoder
    from sensorsim.hospital.receiver import Received

Packets = str | os.PathLike[str] | bytes  # a path, - for standard input, or packets


@checked
def receive(
    packets: Packets | Iterable[Packets],
    table: Table,
    encoder: "Encoder | str | os.PathLike[str] | None" = None,
    sketch: "Sketch | str | os.PathLike[str] | None" = None,
    form: str | None = None,
) -> "Received":
    """Return the mean of every feature over the records that came, with its interval, from packets of sensors.

    The interval holds whatever these records are. It is not of records that did not come.

    `packets` are bytes, a file or several: packets that follow each other, or one a line in hex, or a CSV or Parquet
    with a column packet, or what `sensorsim receive --out` wrote. `form` is binary or hex where the content does not
    say. Table, encoder and sketch are those that the sensors were made with; packets of others are refused.

        >>> import sensorsim as ss
        >>> table = ss.noise_table(epsilon=1.6, release=1)
        >>> sensor = ss.Sensor(table)
        >>> status, packet = (sensor.open(), sensor.release([0.5] * 14))[1]
        >>> ss.receive(packet, table).accepted
        1
    """
    from sensorsim.device.sketch_file import read_sketch
    from sensorsim.encoders import read_encoder
    from sensorsim.hospital.receiver import receive as read

    if not isinstance(packets, str | os.PathLike | bytes):
        packets = list(packets)
        for one in packets:
            check_value("packets", one, Packets)
    weights = read_encoder(Path(encoder)) if isinstance(encoder, str | os.PathLike) else encoder
    drawn = read_sketch(Path(sketch)) if isinstance(sketch, str | os.PathLike) else sketch
    return read(packets, read_table(table), weights, form, drawn)
