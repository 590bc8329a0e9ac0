"""Packets taken apart, many at a time, and every one that is not as it must be refused."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sensorsim.hospital.expected import Expected
from sensorsim.hospital.tally import Tally
from sensorsim.kernels.packet import HEAD_BITS, LAYOUT_BITS, Layout

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]

MOST_AT_ONCE = 1 << 16  # packets, so that sums over them are exact
IN_CACHE = 1 << 17  # bytes of packets at a time, or fields: what is made of them stays near the processor


def tally_packets(packets: Bytes, expected: Expected, tally: Tally) -> None:
    """Count the packets of a block, one a row, all of one length."""
    near = IN_CACHE // max(expected.k, packets.shape[1])
    at_once = max(1, min(MOST_AT_ONCE, max(near, expected.n // expected.k)))  # sums of many directions take their time
    for first in range(0, len(packets), at_once):
        _count(np.ascontiguousarray(packets[first : first + at_once].T), expected, tally)


def _count(columns: Bytes, expected: Expected, tally: Tally) -> None:
    """The packets of a chunk, sorted by their first four bits; columns[i] is byte i of every packet."""
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
            _accept(part, layout, expected, tally)


def _accept(columns: Bytes, layout: Layout, expected: Expected, tally: Tally) -> None:
    """Packets of one layout: what is wrong with some is looked for in the order of `REASONS`."""
    head = _field(columns, 0, HEAD_BITS)
    columns = _without(head != layout.head, "identity", tally, columns)[0]
    if layout.bits % 8:
        columns = _without(columns[-1] >> (layout.bits % 8) != 0, "padding", tally, columns)[0]
    features = None
    if layout.which_bits:
        features = _fields(columns, layout.chosen_at, layout.which_bits, layout.released)
        columns, features = _without((features >= layout.features).any(axis=0), "feature", tally, columns, features)
        columns, features = _without(_repeats(features), "repeated", tally, columns, features)
    values = _fields(columns, layout.values_at, layout.value_bits, layout.released)
    features, values = _without((values > expected.most).any(axis=0), "value", tally, features, values)
    tally.count(features, values)


def _without(wrong: Any, reason: str, tally: Tally, *arrays: Any) -> tuple[Any, ...]:
    """The arrays without the columns that are wrong, which are counted."""
    count = int(np.count_nonzero(wrong))
    if count == 0:
        return arrays
    tally.rejected[reason] += count
    return tuple(None if array is None else array[:, ~wrong] for array in arrays)


def _repeats(features: Words) -> Any:
    """Whether a packet names a feature twice."""
    if len(features) == 1:
        return False
    ordered = np.sort(features, axis=0)
    return (ordered[1:] == ordered[:-1]).any(axis=0)


def _fields(columns: Bytes, at: int, bits: int, count: int) -> Words:
    """`count` fields that follow each other, one a row."""
    found = np.empty((count, columns.shape[1]), np.uint32)
    for number in range(count):
        found[number] = _field(columns, at + number * bits, bits)
    return found


def _field(columns: Bytes, at: int, bits: int) -> Words:
    """The number that starts at a bit of every packet, its lowest bit first; at most 25 bits, so within four bytes."""
    first, shift = divmod(at, 8)
    word: Words = columns[first].astype(np.uint32)
    for place in range(1, (shift + bits + 7) // 8):
        word |= columns[first + place].astype(np.uint32) << np.uint32(8 * place)
    word >>= np.uint32(shift)
    word &= np.uint32((1 << bits) - 1)
    return word
