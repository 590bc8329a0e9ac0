"""From files of packets to what they say. Memory is bounded whatever their size: a few megabytes at a time are read."""

import hashlib
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from sensorsim._util import progress
from sensorsim.errors import InputError
from sensorsim.hospital.columnar_reading import parquet_sums
from sensorsim.hospital.expected import Expected
from sensorsim.hospital.parquet import parquet_packets, sums_are_in
from sensorsim.hospital.reading import (
    BINARY,
    BLOCK,
    CSV,
    HEX,
    LOOK,
    MARK,
    PARQUET,
    SUMS,
    binary_packets,
    csv_packets,
    form_of,
    hex_packets,
)
from sensorsim.hospital.received import Received
from sensorsim.hospital.statistics import MOST_BYTES, Statistics, parse_received
from sensorsim.hospital.tally import FITS, Tally
from sensorsim.hospital.unpack import tally_packets

if TYPE_CHECKING:
    from sensorsim.device.sketch import Sketch
    from sensorsim.encoders import Encoder
    from sensorsim.privacy.tables import NoiseTable

Source = str | os.PathLike[str] | bytes  # a path, - for standard input, or bytes
READERS = {BINARY: binary_packets, HEX: hex_packets, CSV: csv_packets, PARQUET: parquet_packets}
Mark = bytes | tuple[int, int]  # by which a file is known again
BY_CHANCE = 256  # bytes; shorter files of different sensors may be equal


def receive(
    packets: Source | Iterable[Source],
    table: "NoiseTable",
    encoder: "Encoder | None" = None,
    form: str | None = None,
    sketch: "Sketch | None" = None,
) -> Received:
    """Receive packets that sensors made with this table, and with this encoder or sketch where there is one.

    `packets` is a file or several: packets that follow each other, or one a line in hexadecimal, or a CSV or Parquet
    with a column `packet`, or what `sensorsim receive --out` wrote. Which of them, its content says, unless `form` is
    "binary" or "hex". Bytes stand for the content of a file, a list of bytes for packets. All that is foreign is
    refused and counted, by reason. A file that is given twice is an error, as are the same sums in two
    forms: packets would count twice.
    """
    if form not in (None, BINARY, HEX):
        raise InputError(f"form is {form}; packets are {BINARY} or {HEX}, or leave it out.")
    expected = Expected.of(table, encoder, sketch)
    total = Statistics.none(expected)
    given = [packets] if isinstance(packets, str | os.PathLike | bytes) else list(packets)
    single = [] if isinstance(packets, bytes) else [source.hex() for source in given if isinstance(source, bytes)]
    if single:
        lines = io.BytesIO("\n".join(single).encode())
        total += _receive(_Heard(lines, "the packets"), HEX, expected)
        given = [source for source in given if not isinstance(source, bytes)]
    seen: dict[Mark, str] = {}
    for source in given:
        with opened(source) as (file, name):
            _once(seen, _place(file), name)
            heard = _Heard(file, name)
            found = _receive(heard, form, expected)
            if heard.holds_sums:
                _once(seen, found.digest, name, "sums")
            else:
                _once(seen, heard.digest, name)
            total += found
    return Received(table, total, sketch)


def _once(seen: dict[Mark, str], mark: Mark | None, name: str, what: str = "content") -> None:
    """Refuse a file by its place, its content or its sums where an earlier one has the same."""
    if mark is None:
        return
    if mark in seen:
        which = "is given twice" if seen[mark] == name else f"and {seen[mark]} have the same {what}"
        raise InputError(f"{name} {which}, and a packet counts once; leave one of them out.")
    seen[mark] = name


def _place(file: BinaryIO) -> tuple[int, int] | None:
    """Which file of this machine it is, whatever its names; None where it is none."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, ValueError):  # bytes in memory
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


class _Heard:
    """A file whose content is remembered by its digest while it is read."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self._file = file
        self._seen = hashlib.sha256()
        self._length = 0
        self._whole = False
        self.holds_sums = False  # as was found when it was read

    def read(self, most: int = BLOCK) -> bytes:
        found = self._file.read(most)
        if not self._whole:
            self._seen.update(found)
            self._length += len(found)
        return found

    def seekable(self) -> bool:
        return self._file.seekable()

    def seek(self, place: int, whence: int = 0) -> int:
        """Read on from elsewhere; what was not heard before is heard first."""
        while not self._whole:
            self._whole = not self.read()
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()

    @property
    def closed(self) -> bool:
        return self._file.closed

    @property
    def digest(self) -> bytes | None:
        return self._seen.digest() if self._length > BY_CHANCE else None


def _receive(heard: _Heard, form: str | None, expected: Expected) -> Statistics:
    file = cast(BinaryIO, heard)
    head = file.read(LOOK)
    text = head.removeprefix(MARK)
    form = form or form_of(text)
    if form == SUMS or (form == PARQUET and sums_are_in(file)):
        kept = parquet_sums(file, heard.name) if form == PARQUET else _text_sums(text, file, heard.name)
        kept.check(expected, heard.name)
        heard.holds_sums = True
        return kept
    total, tally = Statistics.none(expected), Tally.of(expected)
    for block in READERS[form](head if form == BINARY else text, file, expected, tally):
        tally_packets(block, expected, tally)  # the reader also counts lines and ends that are no packets
        if tally.accepted >= FITS:
            total += _counted(expected, tally)
            tally.clear()
    return total + _counted(expected, tally)


def _text_sums(head: bytes, file: BinaryIO, name: str) -> Statistics:
    return parse_received(head + file.read(MOST_BYTES), name)


def _counted(expected: Expected, tally: Tally) -> Statistics:
    return Statistics.of(expected, tally.sums(), tally.accepted, tally.empty, tally.rejected)


@contextmanager
def opened(source: Source) -> Iterator[tuple[BinaryIO, str]]:
    """Open a source as a file, with its name for messages; what has to be waited for is told as a step."""
    if isinstance(source, bytes):
        yield io.BytesIO(source), "the packets"
        return
    stream, name = is_stream(source), "standard input" if source == "-" else str(source)
    with progress.step(f"waiting for packets from {name}, up to its end" if stream else "reading packets"):
        if source == "-":
            yield sys.stdin.buffer, name
            return
        try:
            mode = Path(source).stat().st_mode
            if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                raise InputError(f"{source} is a device and has no end; give a file or a pipe of packets, or - .")
            with Path(source).open("rb") as file:  # of a pipe that nobody writes to this waits
                yield file, name
        except OSError as error:
            raise InputError(f"cannot read {source}: {error.strerror}; give a file of packets.") from None


def is_stream(source: Source) -> bool:
    """Return whether a source can be read once only, and may have to be waited for: standard input, or a pipe."""
    try:
        return source == "-" or (not isinstance(source, bytes) and Path(source).is_fifo())
    except (OSError, ValueError):
        return False
