"""`sensorsim receive`: packets of sensors in, means with their intervals out."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from math import floor
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import write_all
from sensorsim._util.option_kinds import SUMS, Flag, Number, Output, Path, Several, Whole
from sensorsim._util.terminal import columns, counted, hung
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.commands.noise import NOISE_TABLE, proved_table
from sensorsim.device.sketches import LEAST_ROOT, MOST_ROOT
from sensorsim.kernels.formats import DIRECTION_BITS

if TYPE_CHECKING:
    from sensorsim.device.sketches import Sketch
    from sensorsim.encoders import Encoder
    from sensorsim.hospital import Received
    from sensorsim.noise.noise_table import NoiseTable

Packets = str | os.PathLike[str] | bytes  # a path, - for standard input, or packets


class PacketSources(Several):
    """Files of packets, or packets as bytes; bytes that are given alone are the content of a file."""

    def check(self, label: str, value: Any) -> Any:
        return value if isinstance(value, bytes) else super().check(label, value)


class PacketForm(Flag):
    """ "hex" or "binary"; a shell says it by --hex or --binary."""

    takes: tuple[type, ...] = (bool, str)
    words = "hex or binary"

    def check(self, label: str, value: Any) -> str:
        form: str = value if isinstance(value, str) else "hex" if super().check(label, value) else "binary"
        if form not in ("hex", "binary"):
            raise InputError(f"{label} is {form}; give {self.words}.")
        return form


@dataclass(frozen=True)
class ReceivePackets(Command["Received"]):
    """The interval holds for any records. It is not of records that did not come: those of people who do not answer,
    or whose packets are lost, may be others.

    PACKETS are files, or - for standard input: packets that follow each other, or one a line in hex, or a CSV or
    Parquet with a column packet, or what --out or `sensorsim fleet --statistics` wrote: sums of several files, clinics
    and weeks add up exactly. Packets of another table are refused and counted. Those of a sketch tell how features vary
    together: all directions are summed up, and --out keeps the sums of each for training. Exit code 1 if no packet is
    accepted.
    """

    example = """sensorsim receive ward3.bin ward4.bin --table rows-eps1.6-1.txt
sensorsim receive - --table rows-eps1.6-1.txt --out week12.json
sensorsim receive week12.json week13.parquet \\
  --table rows-eps1.6-1.txt --out both.csv
sensorsim receive week12.json --table rows-eps1.6-1.txt \\
  --write-sketch sketch.json
sensorsim receive week13.bin --table rows-eps1.6-1.txt \\
  --sketch sketch.json"""
    usage = """
        >>> import sensorsim as ss
        >>> table = ss.noise_table(epsilon=1.6, release=1)
        >>> sensor = ss.Sensor(table)
        >>> status, packet = (sensor.open(), sensor.release([0.5] * 14))[1]
        >>> ss.receive(packet, table).accepted
        1
    """
    holds = "accepted"

    packets: Packets | Iterable[Packets] = option(
        REQUIRED, PacketSources(Path("PACKETS", "bytes")), "Packets: files, or bytes in Python.", argument=True
    )
    table: "NoiseTable | str" = option(REQUIRED, NOISE_TABLE, "Noise table that the sensors were made with.")
    encoder: "Encoder | str | None" = option(None, Path("file", "Encoder"), "Encoder that they were made with, if any.")
    sketch: "Sketch | str | None" = option(None, Path("file", "Sketch"), "Sketch that they were made with, if any.")
    form: str | None = option(
        None, PacketForm("binary"), "Form of the packets.", flag="hex", default_text="by their content"
    )
    out: str | None = option(
        None,
        SUMS,
        "Write what was received, exact sums included: a .json, or as a table a .csv or .parquet; it can be given as "
        "PACKETS again.",
    )
    write_sketch: str | None = option(None, Output(), "Write the sketch centred on the means received here.")
    root: float | None = option(
        None,
        Number(floor(10 * LEAST_ROOT) / 10, MOST_ROOT),
        "With --write-sketch: its bound R.",
        default_text="from how much the features vary",
    )
    direction_bits: int | None = option(
        None,
        Whole(DIRECTION_BITS.lo, DIRECTION_BITS.hi),
        "With --write-sketch: B of 2^B directions.",
        default_text="from how many features there are",
    )

    def without_effect(self) -> dict[str, str]:
        why = "it shapes a new sketch, which --write-sketch writes"
        return {} if self.write_sketch else {"root": why, "direction_bits": why}

    def run(self) -> "Received":
        from sensorsim.device.sketch_file import read_sketch
        from sensorsim.encoders import read_encoder
        from sensorsim.hospital.receiver import receive
        from sensorsim.hospital.sum_files import check_out, received_content

        if self.write_sketch and (self.encoder is not None or self.sketch is not None):
            raise InputError(
                "--write-sketch takes its centre from means of features, and these packets are of hidden units or of a "
                "sketch; give packets that release features."
            )
        check_out(self.out or "")
        paths = (str, os.PathLike)
        encoder = read_encoder(FilePath(self.encoder)) if isinstance(self.encoder, paths) else self.encoder
        sketch = read_sketch(FilePath(self.sketch)) if isinstance(self.sketch, paths) else self.sketch
        received = receive(self.packets, proved_table(self.table), encoder, self.form, sketch)
        made: dict[str, bytes | str] = {}  # all of it before the first file is written
        if self.out:
            made[self.out] = received_content(self.out, received)
        if self.write_sketch:
            made[self.write_sketch] = self._new_sketch(received)
        write_all(made)
        return received

    def _new_sketch(self, received: "Received") -> str:
        """Return the content of the file of a sketch about the means received."""
        from sensorsim.device import Sketch
        from sensorsim.device.sketch_file import sketch_text
        from sensorsim.hospital.learning import sketch_for

        if not received.accepted:
            raise InputError("no packet was accepted, so there are no means for a sketch; give packets of this table.")
        found = sketch_for(received)
        root = found.root if self.root is None else self.root
        bits = found.direction_bits if self.direction_bits is None else self.direction_bits
        return sketch_text(Sketch.of(found.middle.tolist(), root, bits, found.columns, found.ranges))

    def text(self, answer: "Received") -> str:
        from sensorsim.hospital.packets import REASONS
        from sensorsim.hospital.receiver import PRIVACY

        kept, sketched = answer.statistics, answer.sketched
        what = "hidden unit" if self.encoder is not None else "feature"
        holds = f"{kept.k} of {counted(kept.n, what)} in a packet"
        if sketched is not None:
            holds = f"a sketch of {counted(sketched.features, what)} in a packet"
        refused = [(count, REASONS[reason]) for reason, count in kept.rejected.items() if count]
        lines = [
            answer.title(),
            f"  table         {answer.table.kind}, {holds}, identity {kept.identity[:16]}",
            f"  epsilon       {kept.epsilon} per packet, as proved here: {PRIVACY}",
            *(f"  {'' if i else 'refused':<13} {count:,} {reason}" for i, (count, reason) in enumerate(refused)),
        ]
        if sketched is not None:
            mean = "–" if sketched.mean is None else f"{sketched.mean:.5f}"
            lines += [
                f"  directions    {sketched.met:,} of {sketched.directions:,} came; bound R {sketched.root:.5g}",
                f"  mean square   {mean} of records along a direction, less their centre, up to R²",
                f"                95 % interval of the records' mean {sketched.low:.5f} … {sketched.high:.5f}",
            ]
        else:
            lines += ["", f"  {what:>11}  {'packets':>12}  {'mean':>10}   95 % interval of the records' mean"]
            for row in answer.features:
                mean = "–" if row.mean is None else f"{row.mean:.5f}"
                lines.append(f"  {row.feature:>11}  {row.count:>12,}  {mean:>10}   {row.low:.5f} … {row.high:.5f}")
        return hung("\n".join(lines), columns())
