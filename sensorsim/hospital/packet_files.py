"""Read files of packets in blocks: binary, hexadecimal lines, or a column `packet` of CSV or Parquet.

The content of a file decides which form it has. A reader yields blocks of packets, one a row, and counts cells and ends
that are no packets as rejected.
"""

import csv
import string
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.hospital.packet_tally import Bytes, Expected, Tally
from sensorsim.hospital.parquet_files import (
    MAGIC,
    check_group,
    column_names,
    is_text,
    list_names,
    need_arrow,
    open_parquet,
    too_long,
)
from sensorsim.kernels.packet import LAYOUT_BITS
from sensorsim.ranges import brief

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


def detect_form(file: BinaryIO, name: str, form: str | None = None) -> tuple[str, bytes]:
    """Read the beginning of a file; return its form and what was read, without a byte order mark unless binary."""
    head = file.read(LOOK)
    text = head.removeprefix(MARK)
    form = form or _form_of(text)
    if form == PARQUET:
        with open_parquet(file, name) as parquet:
            names = column_names(parquet)
        form = PARQUET if PACKET in names or not set(names) >= OF_SUMS else SUMS
    return form, head if form == BINARY else text


def _form_of(head: bytes) -> str:
    """Return the form of a file that starts like this: sums open with a brace, a table with its header line.

    No packet opens with a brace or with Parquet's mark: their low four bits are no layout. Plain text is hexadecimal; a
    line that is no packet is refused by itself, so a remark in a file does not cost the others.
    """
    if head.startswith(MAGIC):
        return PARQUET
    if head.lstrip().startswith(b"{"):
        return SUMS
    names, _ = _header(head)
    if names:
        return CSV if PACKET in names else SUMS
    return BINARY if head.translate(None, string.printable.encode()) else HEX


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


def binary_packets(head: bytes, file: BinaryIO, name: str, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """Read packets that follow each other; the first one decides their length."""
    length = _binary_length(head, expected)
    size = max(1, BLOCK // length) * length
    block = head
    while True:
        whole = len(block) // length * length
        if whole:
            yield np.frombuffer(block, np.uint8, whole).reshape(-1, length)
        more = file.read(size)
        if not more:
            break
        block = block[whole:] + more
    if len(block) > whole:
        tally.rejected["length"] += 1  # the file is cut off in its last packet


def _binary_length(head: bytes, expected: Expected) -> int:
    """Return the length of the first packet that is not empty; those before it are zeros of the same length."""
    start = len(head) - len(head.lstrip(b"\0"))
    for code, layout in expected.layouts.items():
        first = start // layout.bytes * layout.bytes
        if first < len(head) and head[first] % (1 << LAYOUT_BITS) == code:
            return layout.bytes
    return min(expected.lengths)


def hex_packets(head: bytes, file: BinaryIO, name: str, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """Read a packet a line; blank lines are ignored. A line that is too long is cut, and stays too long."""
    longest = 2 * max(expected.lengths) + 1
    block, rest = head, b""
    while block:
        *lines, rest = (rest + block.translate(None, SPACE)).split(b"\n")
        yield from _hex_cells(lines, expected, tally)
        rest = rest[:longest]
        block = file.read(LINES)
    yield from _hex_cells([rest], expected, tally)


def csv_packets(head: bytes, file: BinaryIO, name: str, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """Read a packet a row, in hexadecimal, from the column `packet`; blank cells and other columns are ignored."""
    names, separator = _header(head)
    place = names.index(PACKET)
    rows = csv.reader(_csv_lines(head, file, name, separator), delimiter=separator, strict=True)
    try:
        next(rows)
        while some := list(islice(rows, ROWS)):
            cells = [row[place].encode("latin-1") for row in some if len(row) > place]
            tally.rejected["length"] += sum(0 < len(row) <= place for row in some)
            yield from _hex_cells(cells, expected, tally)
    except csv.Error as error:
        raise InputError(f"{name} cannot be read as CSV ({error}); is a quote left open? Write it again.") from None


def _csv_lines(head: bytes, file: BinaryIO, name: str, separator: str) -> Iterator[str]:
    """Yield lines with their ends, without spaces, each byte as a character."""
    space = SPACE.replace(separator.encode(), b"")
    block, rest = head, b""
    while block:
        *lines, rest = (rest + block.translate(None, space)).split(b"\n")
        for line in lines:
            yield line.decode("latin-1") + "\n"
        if len(rest) > MOST_ROW:
            raise InputError(f"{name} has a line of more than {MOST_ROW} bytes; write it again as CSV.")
        block = file.read(LINES)
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


def parquet_packets(head: bytes, file: BinaryIO, name: str, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """Read a packet a row from the column `packet`: bytes, or text in hexadecimal. Empty cells are ignored."""
    with open_parquet(file, name) as parquet:
        if column_names(parquet).count(PACKET) != 1:
            shown = list_names(column_names(parquet))
            raise InputError(f"{name} has no column packet; rename the one that holds them (it has {shown}).")
        longest = 4 * max(expected.lengths) + 256  # characters of a cell, spaces included
        text = _is_hex(parquet.schema_arrow.field(PACKET).type, name, longest)
        rows = max(1, (LINES if text else BLOCK) // longest)
        with open_parquet(file, name, (PACKET,)) as coded:
            for group in range(parquet.num_row_groups):
                check_group(parquet, coded, group, PACKET, name, longest)
                for batch in parquet.iter_batches(rows, row_groups=[group], columns=[PACKET], use_threads=False):
                    yield from _parquet_cells(batch.column(0), text, expected, tally)


def _is_hex(kind: Any, name: str, longest: int) -> bool:
    """Return whether packets are text rather than bytes; refuse other types."""
    types = need_arrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_fixed_size_binary(kind) and kind.byte_width > longest:
        raise too_long(name, PACKET, kind.byte_width)
    binary = types.is_fixed_size_binary(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    if not (is_text(kind) or binary):
        raise InputError(f"{name} has a column packet of type {brief(kind)}; packets are bytes, or text in hex.")
    return is_text(kind)


def _parquet_cells(column: Any, text: bool, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    arrow = need_arrow()
    column = column.dictionary_decode() if arrow.types.is_dictionary(column.type) else column
    cells: list[bytes] = column.drop_null().cast(arrow.large_binary()).to_pylist()
    if text:
        yield from _hex_cells([cell.translate(None, SPACE) for cell in cells], expected, tally)
        return
    tally.rejected["length"] += sum(len(cell) not in (0, *expected.lengths) for cell in cells)
    for length in expected.lengths:
        packets = b"".join(cell for cell in cells if len(cell) == length)
        yield np.frombuffer(packets, np.uint8).reshape(-1, length)


READERS: dict[str, Callable[[bytes, BinaryIO, str, Expected, Tally], Iterator[Bytes]]] = {
    BINARY: binary_packets,
    HEX: hex_packets,
    CSV: csv_packets,
    PARQUET: parquet_packets,
}
