"""Files of packets as blocks of bytes, a few megabytes at a time: binary, or a packet a line in hexadecimal."""

import string
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from sensorsim.hospital.expected import Expected
from sensorsim.hospital.tally import Tally
from sensorsim.hospital.unpack import Bytes
from sensorsim.kernels.packet import LAYOUT_BITS

LOOK = 1 << 20  # bytes at the beginning that tell which form a file has
BLOCK = 1 << 22
LINES = 1 << 20
SPACE = b" \t\r\v\f"  # within a line
HEX, BINARY, SUMS = "hex", "binary", "sums"
MARK = b"\xef\xbb\xbf"  # some editors put it before a text

_DIGITS = np.full(256, 255, np.uint8)
for _digit in string.hexdigits:
    _DIGITS[ord(_digit)] = int(_digit, 16)


def form_of(head: bytes) -> str:
    """Hex where there is nothing but text, what `--out` wrote where it opens a brace, else binary.

    No packet opens with a brace: its four low bits are no layout. A line of text that is no packet is refused by
    itself, so a remark in a file does not cost the others.
    """
    if head.lstrip().startswith(b"{"):
        return SUMS
    return BINARY if head.translate(None, string.printable.encode()) else HEX


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
        first = start // layout.bytes * layout.bytes
        if first < len(head) and head[first] % (1 << LAYOUT_BITS) == code:
            return layout.bytes
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
    """The packets of whole lines, those of each length together."""
    letters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.concatenate([[0], ends + 1])[:-1]
    widths = ends - starts
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
