"""Check packets against one table, encoder or sketch, and count what they say. Packets come as rows of bytes."""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim.device.firmware import Firmware
from sensorsim.kernels.packet import HEAD_BITS, LAYOUT_BITS, NUMBERS, Layout

if TYPE_CHECKING:
    from sensorsim.device.sketch import Sketch
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


@dataclass(frozen=True)
class Expected:
    """Layouts and values of valid packets. Making one certifies the table."""

    firmware: Firmware

    @classmethod
    def of(cls, table: "NoiseTable", encoder: "Encoder | None" = None, sketch: "Sketch | None" = None) -> "Expected":
        """Expect packets of this table, and of this encoder or sketch where there is one."""
        return cls(Firmware(table, encoder, sketch=sketch))

    @property
    def table(self) -> "NoiseTable":
        return self.firmware.table

    @property
    def n(self) -> int:
        """Number of features of a record, hidden units of an encoder, or directions of a sketch."""
        return self.firmware.features

    @property
    def k(self) -> int:
        return self.firmware.k

    @property
    def epsilon(self) -> Decimal:
        """Certified epsilon of one packet."""
        return self.firmware.epsilon

    @property
    def identity(self) -> str:
        return self.firmware.identity.hex()

    @cached_property
    def layouts(self) -> dict[int, Layout]:
        """Layouts by the first four bits of a packet: with and without each optional number."""
        plain = self.firmware.layout
        subsets = [[name for bit, name in enumerate(NUMBERS) if which >> bit & 1] for which in range(1 << len(NUMBERS))]
        every = [replace(plain, numbers=tuple(names)) for names in subsets]
        return {layout.code: layout for layout in every}

    @cached_property
    def lengths(self) -> set[int]:
        """Lengths of packets in bytes."""
        return {layout.bytes for layout in self.layouts.values()}

    @cached_property
    def limit(self) -> int | None:
        """Largest released number; None where values are symbols."""
        found: int | None = self.firmware.arguments.get("limit")
        return found

    @cached_property
    def most(self) -> int:
        """Largest content of a value's field."""
        return len(self.table.distribution(0)[0]) - 1 if self.limit is None else 2 * self.limit

    @property
    def columns(self) -> tuple[str, ...]:
        """Sums of a feature: the count of each symbol, or three sums over its numbers."""
        if self.limit is None:
            return tuple(str(symbol) for symbol in range(self.most + 1))
        return STAIRS_COLUMNS


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
    """Check and count packets of one length, one a row."""
    near = IN_CACHE // max(expected.k, packets.shape[1])
    at_once = max(1, min(MOST_AT_ONCE, max(near, expected.n // expected.k)))  # many directions cost time for each sum
    for first in range(0, len(packets), at_once):
        _tally_chunk(np.ascontiguousarray(packets[first : first + at_once].T), expected, tally)


def _tally_chunk(columns: Bytes, expected: Expected, tally: Tally) -> None:
    """Sort packets by layout, their first four bits, and count each group; columns[i] is byte i of every packet."""
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
            _tally_layout(part, layout, expected, tally)


def _tally_layout(columns: Bytes, layout: Layout, expected: Expected, tally: Tally) -> None:
    """Check packets of one layout in the order of `REASONS`, and count the good ones."""
    head = _field(columns, 0, HEAD_BITS)
    columns = _reject(head != layout.head, "identity", tally, columns)[0]
    if layout.bits % 8:
        columns = _reject(columns[-1] >> (layout.bits % 8) != 0, "padding", tally, columns)[0]
    features = None
    if layout.which_bits:
        features = _fields(columns, layout.chosen_at, layout.which_bits, layout.released)
        columns, features = _reject((features >= layout.features).any(axis=0), "feature", tally, columns, features)
        if len(features) > 1:
            ordered = np.sort(features, axis=0)
            repeats = (ordered[1:] == ordered[:-1]).any(axis=0)
            columns, features = _reject(repeats, "repeated", tally, columns, features)
    values = _fields(columns, layout.values_at, layout.value_bits, layout.released)
    features, values = _reject((values > expected.most).any(axis=0), "value", tally, features, values)
    tally.count(features, values)


def _reject(wrong: Any, reason: str, tally: Tally, *arrays: Any) -> tuple[Any, ...]:
    """Count the wrong columns and return the arrays without them."""
    count = int(np.count_nonzero(wrong))
    if count == 0:
        return arrays
    tally.rejected[reason] += count
    return tuple(None if array is None else array[:, ~wrong] for array in arrays)


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
