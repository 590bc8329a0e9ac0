"""Files of packets as blocks of bytes, a few megabytes at a time: binary, or in hexadecimal a line or a CSV's row each.

Parquet is read by `hospital/parquet.py`.
"""

import csv
import string
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from sensorsim.errors import InputError
from sensorsim.hospital.expected import Expected
from sensorsim.hospital.tally import Tally
from sensorsim.hospital.unpack import Bytes
from sensorsim.kernels.packet import LAYOUT_BITS

LOOK = 1 << 20  # bytes at the beginning that tell which form a file has
BLOCK = 1 << 22
LINES = 1 << 20
MOST_ROW = 1 << 20  # bytes of a row of a CSV, the names in its first line among them
SPACE = b" \t\r\v\f"  # within a line
HEX, BINARY, SUMS, CSV, PARQUET = "hex", "binary", "sums", "csv", "parquet"
MARK = b"\xef\xbb\xbf"  # some editors put it before a text
MAGIC = b"PAR1"
PACKET = "packet"  # the column of a table that holds them
OF_SUMS = {"feature", "identity", "epsilon"}  # columns of a table that holds sums
COMMAS = ",;\t"  # what separates columns
NEWLINE, QUOTE = ord("\n"), ord('"')

_DIGITS = np.full(256, 255, np.uint8)
for _digit in string.hexdigits:
    _DIGITS[ord(_digit)] = int(_digit, 16)


def form_of(head: bytes) -> str:
    """Hex where there is nothing but text, what `--out` wrote where it opens a brace, else binary.

    Parquet opens with its mark, and a CSV with a line of names. No packet opens with a brace, nor with that mark: its
    four low bits are no layout. A line of text that is no packet is refused by itself, so a remark in a file does not
    cost the others.
    """
    if head.startswith(MAGIC):
        return PARQUET
    if head.lstrip().startswith(b"{"):
        return SUMS
    names, _ = header(head)
    if PACKET in names or set(names) >= OF_SUMS:
        return CSV if PACKET in names else SUMS
    return BINARY if head.translate(None, string.printable.encode()) else HEX


def header(head: bytes) -> tuple[list[str], str]:
    """Names in the first line, if it is one of a table that is known here, and what separates them."""
    line = head[:MOST_ROW].partition(b"\n")[0]
    for comma in COMMAS:
        try:
            cells = next(csv.reader([line.decode("utf-8")], delimiter=comma, skipinitialspace=True), [])
        except (UnicodeDecodeError, csv.Error):
            break
        names = [name.strip() for name in cells]
        if PACKET in names or set(names) >= OF_SUMS:
            return names, comma
    return [], COMMAS[0]


def name_of(file: BinaryIO) -> str:
    """For messages."""
    found = getattr(file, "name", None)
    return found if isinstance(found, str) else "the file of packets"


def binary_packets(head: bytes, file: BinaryIO, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """Packets that follow each other; the first one tells how long they are."""
    length = _length(head, expected)
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


def _length(head: bytes, expected: Expected) -> int:
    """By the layout of the first packet that is not empty; those before it are zeros of the same length."""
    start = len(head) - len(head.lstrip(b"\0"))
    shortest = min(expected.lengths)
    for code, layout in expected.layouts.items():
        size: int = layout.bytes
        first = start // size * size
        if first < len(head) and head[first] % (1 << LAYOUT_BITS) == code:
            return size
    return shortest


def hex_packets(head: bytes, file: BinaryIO, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """A packet a line; blank lines are nothing. A line that is too long is cut, so it stays too long."""
    longest = 2 * max(expected.lengths) + 1
    block, rest = head, b""
    while block:
        text = rest + block.translate(None, SPACE)
        end = text.rfind(b"\n") + 1
        yield from _lines(text[:end], expected, tally)
        rest = text[end : end + longest]
        block = file.read(LINES)
    yield from _lines(rest + b"\n", expected, tally)


def _lines(text: bytes, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """The packets of whole lines."""
    letters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(letters == NEWLINE)
    starts = np.concatenate([[0], ends + 1])[:-1]
    yield from hex_cells(letters, starts, ends - starts, expected, tally)


def csv_packets(head: bytes, file: BinaryIO, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """A packet a row, in hexadecimal, in the column `packet`; a blank cell is nothing, all other columns are ignored.

    Quotes keep commas and line ends within a cell, as RFC 4180 says.
    """
    names, comma = header(head)
    place, space = names.index(PACKET), SPACE.replace(comma.encode(), b"")
    text, block = head.partition(b"\n")[2].translate(None, space), b"more"
    while block:
        block = file.read(LINES)
        text += block.translate(None, space) if block else b"\n"
        letters = np.frombuffer(text, np.uint8)
        ends, commas = (_outside_quotes(letters, mark) for mark in (NEWLINE, ord(comma)))
        yield from hex_cells(letters, *_column(letters, ends, commas, place, tally), expected, tally)
        text = text[ends[-1] + 1 :] if len(ends) else text
        if len(text) > MOST_ROW:
            raise InputError(f"{name_of(file)} has a row of more than {MOST_ROW} bytes; is a quote left open?")
    if text.strip():
        raise InputError(f"{name_of(file)} opens a quote that it does not close; write it again as CSV.")


def _outside_quotes(letters: Bytes, mark: int) -> Any:
    """Where a letter stands, but for those within quotes, of which an odd number came before."""
    found, quotes = np.flatnonzero(letters == mark), np.flatnonzero(letters == QUOTE)
    return found[np.searchsorted(quotes, found) % 2 == 0] if len(quotes) else found


def _column(letters: Bytes, ends: Any, commas: Any, place: int, tally: Tally) -> tuple[Any, Any]:
    """Where the cells of one column start and how wide they are, without their quotes; rows that end before it are
    refused, but for blank ones."""
    starts = np.concatenate([[0], ends + 1])[: len(ends)]
    known = np.concatenate([[-1], commas, np.full(place + 2, len(letters))])
    before = np.searchsorted(commas, starts) + place  # of `known`, the comma before the cell
    left = known[before] + 1 if place else starts
    right = np.minimum(known[before + 1], ends)
    there = left <= ends
    tally.rejected["length"] += int(np.count_nonzero(~there & (ends > starts)))
    left, right = left[there], right[there]
    quoted = (right - left >= 2) & (letters[left] == QUOTE)
    return left + quoted, right - left - 2 * quoted


def hex_cells(letters: Bytes, starts: Any, widths: Any, expected: Expected, tally: Tally) -> Iterator[Bytes]:
    """The packets that stand in hexadecimal at these places of a text, those of each length together."""
    used = np.count_nonzero(widths)
    for length in expected.lengths:
        begin = starts[widths == 2 * length]
        used -= len(begin)
        if len(begin):
            lines = _DIGITS[letters[begin[:, None] + np.arange(2 * length)]]
            wrong = (lines > 15).any(axis=1)
            tally.rejected["hex"] += int(np.count_nonzero(wrong))
            lines = lines[~wrong]
            yield lines[:, 0::2] << 4 | lines[:, 1::2]
    tally.rejected["length"] += int(used)
