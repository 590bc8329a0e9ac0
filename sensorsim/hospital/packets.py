"""Read files of packets in blocks, check each packet against one table, encoder or sketch, and count what they say.

A file is binary, or has hexadecimal lines, or a column `packet` of CSV or Parquet; its content decides. A reader yields
blocks of packets, one a row, and counts cells and ends that are no packets as rejected.
"""

import csv
import hashlib
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sensorsim._util.errors import InputError
from sensorsim.datasets.parquet import (
    MAGIC,
    check_group,
    column_names,
    is_text,
    list_names,
    need_arrow,
    open_parquet,
    too_long,
)
from sensorsim.datasets.public_ranges import brief
from sensorsim.device.firmware import Firmware
from sensorsim.kernels.packet import HEAD_BITS, LAYOUT_BITS, NUMBERS, Layout

if TYPE_CHECKING:
    from sensorsim.device.sketches import Sketch
    from sensorsim.encoders import Encoder
    from sensorsim.noise.noise_table import NoiseTable

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]

# Why a packet is refused, in the order in which it is checked, and the words for it.
REASONS = {
    "length": "of another length",
    "hex": "not hexadecimal",
    "layout": "of another layout version",
    "identity": "of another table, encoder or sketch",
    "padding": "with padding that is not zero",
    "feature": "of a feature that is not there",
    "repeated": "with a feature twice",
    "value": "with a value that is not there",
}
STAIRS_COLUMNS = ("count", "sum", "sum_of_squares")
MOST_SUMMED = 1 << 36  # packets whose sums fit 64 bits
MOST_AT_ONCE = 1 << 16  # packets, so that float sums over them are exact
IN_CACHE = 1 << 17  # bytes of packets, or fields, that are processed together
LOW_BITS = 23  # squares are summed in two parts, high and low bits, whose sums a float holds exactly

SHORT = 256  # bytes; shorter files of different sensors may be equal
LOOK = 1 << 20  # bytes at the beginning that decide the form
BLOCK = 1 << 22
LINES = 1 << 20
ROWS = 1 << 14  # rows of a CSV at a time
MOST_ROW = 1 << 20  # bytes of a line of a CSV
SPACE = b" \t\r\v\f"  # within a line
HEX, BINARY, SUMS, CSV, PARQUET = "hex", "binary", "sums", "csv", "parquet"
MARK = b"\xef\xbb\xbf"  # byte order mark that some editors write
PACKET = "packet"  # the column that holds packets
OF_SUMS = {"feature", "identity", "epsilon"}  # columns of a table of sums
SEPARATORS = ",;\t"

_DIGITS = np.full(256, 255, np.uint8)
for _digit in string.hexdigits:
    _DIGITS[ord(_digit)] = int(_digit, 16)


class Expected:
    """Layouts and values of valid packets. Making one certifies the table."""

    def __init__(self, firmware: Firmware) -> None:
        self.firmware, self.table, self.k = firmware, firmware.table, firmware.k
        self.n = firmware.features  # of a record, hidden units of an encoder, or directions of a sketch
        self.epsilon, self.identity = firmware.epsilon, firmware.identity.hex()  # epsilon of one packet
        # Layouts by the first four bits of a packet: with and without each optional number.
        subsets = [[name for bit, name in enumerate(NUMBERS) if which >> bit & 1] for which in range(1 << len(NUMBERS))]
        every = [replace(firmware.layout, numbers=tuple(names)) for names in subsets]
        self.layouts = {layout.code: layout for layout in every}
        self.lengths = {layout.bytes for layout in every}
        # The largest released number; None where values are symbols.
        self.limit: int | None = firmware.arguments.get("limit")
        # The largest content of a value's field, and the sums of a feature: counts of symbols, or three sums.
        self.most = len(self.table.distribution(0)[0]) - 1 if self.limit is None else 2 * self.limit
        self.columns = tuple(map(str, range(self.most + 1))) if self.limit is None else STAIRS_COLUMNS

    @classmethod
    def of(cls, table: "NoiseTable", encoder: "Encoder | None" = None, sketch: "Sketch | None" = None) -> "Expected":
        """Expect packets of this table, and of this encoder or sketch where there is one."""
        return cls(Firmware(table, encoder, sketch=sketch))


# ── count ──


@dataclass
class Tally:
    """Sums over at most about 2^36 packets; `cells` has a row for each feature or direction.

    For symbols it counts each of them. For numbers y within ±limit it holds their count, their sum, and the sums of
    the high and of the low bits of y².
    """

    cells: npt.NDArray[np.int64]
    limit: int | None
    accepted: int = 0
    empty: int = 0
    rejected: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))

    @classmethod
    def of(cls, expected: Expected) -> "Tally":
        """Return an empty tally for these packets."""
        width = expected.most + 1 if expected.limit is None else 4
        return cls(np.zeros((expected.n, width), np.int64), expected.limit)

    def clear(self) -> None:
        """Set every count to zero."""
        self.cells.fill(0)
        self.accepted = self.empty = 0
        self.rejected = dict.fromkeys(REASONS, 0)

    def count(self, features: Any, values: Any) -> None:
        """Add at most 2^16 packets, one a column: their features (None: all of them) and values."""
        self.accepted += values.shape[1]
        n, width = self.cells.shape
        if self.limit is None:
            first = (np.arange(n, dtype=np.uint32)[:, None] if features is None else features) * np.uint32(width)
            self.cells += np.bincount((first + values).ravel(), minlength=n * width).reshape(n, width)
            return
        y = values.astype(np.int64) - self.limit
        squares = y * y
        parts = np.ones_like(y), y, squares >> LOW_BITS, squares & ((1 << LOW_BITS) - 1)
        for column, part in enumerate(parts):
            if features is None:
                self.cells[:, column] += part.sum(axis=1)
            else:
                self.cells[:, column] += np.bincount(features.ravel(), part.ravel(), n).astype(np.int64)

    def sums(self) -> list[list[int]]:
        """Return the sums as Python integers, a row for each feature, with the columns of `Expected.columns`."""
        rows: list[list[int]] = self.cells.tolist()
        if self.limit is None:
            return rows
        return [[count, total, (high << LOW_BITS) + low] for count, total, high, low in rows]


def tally_packets(packets: Bytes, expected: Expected, tally: Tally) -> None:
    """Check and count packets of one length, one a row: sort them by layout, and count each group."""
    near = IN_CACHE // max(expected.k, packets.shape[1])
    at_once = max(1, min(MOST_AT_ONCE, max(near, expected.n // expected.k)))  # many directions cost time for each sum
    for first in range(0, len(packets), at_once):
        columns = np.ascontiguousarray(packets[first : first + at_once].T)  # columns[i] is byte i of every packet
        codes = columns[0] & ((1 << LAYOUT_BITS) - 1)
        for code in np.bincount(codes).nonzero()[0].tolist():
            alike = codes == code
            count = int(np.count_nonzero(alike))
            part = columns if count == len(codes) else columns[:, alike]
            layout = expected.layouts.get(code)
            if layout is None:
                empty = count - int(np.count_nonzero(part.any(axis=0))) if code == 0 else 0
                tally.empty += empty
                tally.rejected["layout"] += count - empty
            elif layout.bytes != len(columns):
                tally.rejected["length"] += count
            else:
                _tally_layout(part, layout, expected.most, tally)


def _tally_layout(columns: Bytes, layout: Layout, most: int, tally: Tally) -> None:
    """Check packets of one layout in the order of `REASONS`, and count the good ones."""

    def reject(wrong: Any, reason: str, *arrays: Any) -> tuple[Any, ...]:
        """Count the wrong columns and return the arrays without them."""
        count = int(np.count_nonzero(wrong))
        tally.rejected[reason] += count
        return tuple(None if array is None else array[:, ~wrong] for array in arrays) if count else arrays

    columns = reject(_field(columns, 0, HEAD_BITS) != layout.head, "identity", columns)[0]
    if layout.bits % 8:
        columns = reject(columns[-1] >> (layout.bits % 8) != 0, "padding", columns)[0]
    features = None
    if layout.which_bits:
        features = _fields(columns, layout.chosen_at, layout.which_bits, layout.released)
        columns, features = reject((features >= layout.features).any(axis=0), "feature", columns, features)
        if len(features) > 1:
            ordered = np.sort(features, axis=0)
            columns, features = reject((ordered[1:] == ordered[:-1]).any(axis=0), "repeated", columns, features)
    values = _fields(columns, layout.values_at, layout.value_bits, layout.released)
    features, values = reject((values > most).any(axis=0), "value", features, values)
    tally.count(features, values)


def _fields(columns: Bytes, at: int, bits: int, count: int) -> Words:
    """Return `count` consecutive fields, one a row."""
    found = np.empty((count, columns.shape[1]), np.uint32)
    for number in range(count):
        found[number] = _field(columns, at + number * bits, bits)
    return found


def _field(columns: Bytes, at: int, bits: int) -> Words:
    """Return the number at a bit offset of every packet, lowest bit first; at most 25 bits, so within four bytes."""
    first, shift = divmod(at, 8)
    word: Words = columns[first].astype(np.uint32)
    for place in range(1, (shift + bits + 7) // 8):
        word |= columns[first + place].astype(np.uint32) << np.uint32(8 * place)
    word >>= np.uint32(shift)
    word &= np.uint32((1 << bits) - 1)
    return word


# ── read ──


class Stream:
    """A file that is read once: its beginning can be looked at before, and what is read is hashed."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file, self.name = file, name
        self._ahead, self._hash, self._length = b"", hashlib.sha256(), 0

    def look(self) -> bytes:
        """Return the beginning, or what is left of it."""
        self._ahead = self._ahead or self.read(LOOK)
        return self._ahead

    def skip(self, count: int) -> None:
        """Leave out some bytes of the beginning."""
        self._ahead = self._ahead[count:]

    def read(self, most: int) -> bytes:
        """Return the beginning that was looked at, else at most `most` bytes; no bytes at the end."""
        if self._ahead:
            found, self._ahead = self._ahead, b""
            return found
        found = self.file.read(most)
        self._hash.update(found)
        self._length += len(found)
        return found

    def digest(self) -> bytes | None:
        """Return the hash of the file once it is read; None if it is so short that sensors may agree by chance."""
        if self._ahead:  # Parquet is not read in order
            self.file.seek(0)
            self._ahead, self._hash, self._length = b"", hashlib.sha256(), 0
            while self.read(BLOCK):
                pass
        return self._hash.digest() if self._length > SHORT else None


def detect_form(stream: Stream, form: str | None = None) -> str:
    """Return the form of a file from its beginning, and skip its byte order mark unless it is binary.

    Sums open with a brace, a table with its header line. No packet opens with a brace or with Parquet's mark: their low
    four bits are no layout. Plain text is hexadecimal; a line that is no packet is refused by itself, so a remark in a
    file does not cost the others.
    """
    head = stream.look()
    text = head.removeprefix(MARK)
    if form is not None:
        pass
    elif text.startswith(MAGIC):
        with open_parquet(stream.file, stream.name) as parquet:
            names = column_names(parquet)
        form = PARQUET if PACKET in names or not set(names) >= OF_SUMS else SUMS
    elif text.lstrip().startswith(b"{"):
        form = SUMS
    elif names := _header(text)[0]:
        form = CSV if PACKET in names else SUMS
    else:
        form = BINARY if text.translate(None, string.printable.encode()) else HEX
    if form != BINARY:
        stream.skip(len(head) - len(text))
    return form


def _header(head: bytes) -> tuple[list[str], str]:
    """Return the names in the first line and their separator; no names unless it is a table of packets or sums."""
    line = head[:MOST_ROW].partition(b"\n")[0]
    for separator in SEPARATORS:
        try:
            cells = next(csv.reader([line.decode("utf-8")], delimiter=separator, skipinitialspace=True), [])
        except (UnicodeDecodeError, csv.Error):
            break
        names = [name.strip() for name in cells]
        if PACKET in names or set(names) >= OF_SUMS:
            return names, separator
    return [], SEPARATORS[0]


def binary_packets(stream: Stream, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """Read packets that follow each other; the first one that is not empty decides their length."""
    head = stream.look()
    length, start = min(expected.lengths), len(head) - len(head.lstrip(b"\0"))
    for code, layout in expected.layouts.items():
        first = start // layout.bytes * layout.bytes  # packets before it are zeros of the same length
        if first < len(head) and head[first] % (1 << LAYOUT_BITS) == code:
            length = layout.bytes
            break
    size = max(1, BLOCK // length) * length
    block = b""
    while more := stream.read(size):
        block += more
        whole = len(block) // length * length
        if whole:
            yield np.frombuffer(block, np.uint8, whole).reshape(-1, length)
        block = block[whole:]
    if block:
        tally.rejected["length"] += 1  # the file is cut off in its last packet


def hex_packets(stream: Stream, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """Read a packet a line; blank lines are ignored. A line that is too long is cut, and stays too long."""
    longest = 2 * max(expected.lengths) + 1
    rest = b""
    while block := stream.read(LINES):
        *lines, rest = (rest + block.translate(None, SPACE)).split(b"\n")
        yield from _hex_cells(lines, expected, tally)
        rest = rest[:longest]
    yield from _hex_cells([rest], expected, tally)


def csv_packets(stream: Stream, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """Read a packet a row, in hexadecimal, from the column `packet`; blank cells and other columns are ignored."""
    names, separator = _header(stream.look())
    place = names.index(PACKET)
    rows = csv.reader(_csv_lines(stream, separator), delimiter=separator, strict=True)
    try:
        next(rows)
        while some := list(islice(rows, ROWS)):
            cells = [row[place].encode("latin-1") for row in some if len(row) > place]
            tally.rejected["length"] += sum(0 < len(row) <= place for row in some)
            yield from _hex_cells(cells, expected, tally)
    except csv.Error as error:
        raise InputError(
            f"{stream.name} cannot be read as CSV ({error}); is a quote left open? Write it again."
        ) from None


def _csv_lines(stream: Stream, separator: str) -> Iterator[str]:
    """Yield lines with their ends, without spaces, each byte as a character."""
    space = SPACE.replace(separator.encode(), b"")
    rest = b""
    while block := stream.read(LINES):
        *lines, rest = (rest + block.translate(None, space)).split(b"\n")
        for line in lines:
            yield line.decode("latin-1") + "\n"
        if len(rest) > MOST_ROW:
            raise InputError(f"{stream.name} has a line of more than {MOST_ROW} bytes; write it again as CSV.")
    if rest:
        yield rest.decode("latin-1")


def _hex_cells(cells: list[bytes], expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """Decode packets from hexadecimal, those of each length together; empty cells are ignored."""
    letters = np.frombuffer(b"".join(cells), np.uint8)
    widths = np.fromiter(map(len, cells), np.int64, len(cells))
    starts = np.cumsum(widths) - widths
    used = np.count_nonzero(widths)
    for length in expected.lengths:
        begin = starts[widths == 2 * length]
        used -= len(begin)
        if len(begin):
            digits = _DIGITS[letters[begin[:, None] + np.arange(2 * length)]]
            wrong = (digits > 15).any(axis=1)
            tally.rejected["hex"] += int(np.count_nonzero(wrong))
            digits = digits[~wrong]
            yield digits[:, 0::2] << 4 | digits[:, 1::2]
    tally.rejected["length"] += int(used)


def parquet_packets(stream: Stream, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """Read a packet a row from the column `packet`: bytes, or text in hexadecimal. Empty cells are ignored."""
    arrow, types, file, name = need_arrow(), need_arrow().types, stream.file, stream.name
    longest = 4 * max(expected.lengths) + 256  # characters of a cell, spaces included
    with open_parquet(file, name) as parquet:
        if column_names(parquet).count(PACKET) != 1:
            shown = list_names(column_names(parquet))
            raise InputError(f"{name} has no column packet; rename the one that holds them (it has {shown}).")
        kind = parquet.schema_arrow.field(PACKET).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        text, fixed = is_text(kind), types.is_fixed_size_binary(kind)
        if fixed and kind.byte_width > longest:
            raise too_long(name, PACKET, kind.byte_width)
        if not (text or fixed or types.is_binary(kind) or types.is_large_binary(kind)):
            raise InputError(f"{name} has a column packet of type {brief(kind)}; packets are bytes, or text in hex.")
        rows = max(1, (LINES if text else BLOCK) // longest)
        with open_parquet(file, name, (PACKET,)) as coded:
            for group in range(parquet.num_row_groups):
                check_group(parquet, coded, group, PACKET, name, longest)
                for batch in parquet.iter_batches(rows, row_groups=[group], columns=[PACKET], use_threads=False):
                    column = batch.column(0)
                    column = column.dictionary_decode() if types.is_dictionary(column.type) else column
                    cells = column.drop_null().cast(arrow.large_binary()).to_pylist()
                    if text:
                        yield from _hex_cells([cell.translate(None, SPACE) for cell in cells], expected, tally)
                    else:
                        yield from _binary_cells(cells, expected, tally)


def _binary_cells(cells: list[bytes], expected: Expected, tally: Tally) -> Iterator[Bytes]:
    tally.rejected["length"] += sum(len(cell) not in (0, *expected.lengths) for cell in cells)
    for length in expected.lengths:
        packets = b"".join(cell for cell in cells if len(cell) == length)
        yield np.frombuffer(packets, np.uint8).reshape(-1, length)


READERS: dict[str, Callable[[Stream, Expected, Tally], Iterator[Bytes]]] = {
    BINARY: binary_packets,
    HEX: hex_packets,
    CSV: csv_packets,
    PARQUET: parquet_packets,
}
