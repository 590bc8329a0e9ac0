"""Packet sources: what an observer of the radio sees, one row for each record, in time order.

A source is a table with a mechanism (table_sources.py), a compiled package, or captures of a real board: two files for
two records, one packet a line in hexadecimal, all of one length. The meaning of their bytes is unknown, so nothing is
expected of a byte and nothing need be independent: a packet may have a counter. Any difference between the two files is
a leak, so they must differ in x alone: capture them alternately, and leave out clocks and counters.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim._util.files import brief_path, read_bounded
from sensorsim.kernels.formats import FRAC

Record = np.ndarray[Any, Any]  # whole numbers in Q15, one for each feature; or rows of them to draw features from
Packets = np.ndarray[Any, Any]  # whole numbers, one row for each record, one column for each field
Distribution = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]  # values, and their probabilities
ONE = 1 << FRAC
PARTS, VALUES = 8, 16  # parts of the range, and values drawn from each
Seed = Sequence[int]
Words = Callable[[Seed, int, int], Any]  # words(seed, records, words of a record), instead of a generator's
FEWEST = 500  # packets in a file
MOST_BYTES = 1 << 28


class Field(NamedTuple):
    """A column of the packets."""

    name: str
    cost: float  # the epsilon that this column alone may cost
    slack: float = 0.0  # relative error of its expected probabilities


class Input(NamedTuple):
    """A record to draw with, and its weight in the number of draws."""

    name: str
    record: Record
    weight: int = 1


class Source(NamedTuple):
    """A source. `draw(x, count, seed)` returns the packets of `count` records x (see `repeat`), from fresh words."""

    mechanism: str
    sees: str
    claimed: float  # the epsilon of one whole packet, against that of any other record
    per_record: int  # released values in a packet, counted as draws
    fields: tuple[Field, ...]
    inputs: tuple[Input, ...]  # the first two are the easiest pair to distinguish
    draw: Callable[[Record, int, Seed], Packets]
    expected: Callable[[Record, int], Distribution | None]  # of a column; None if unknown
    independent: Callable[[Record], bool] | None  # of the columns at x; None: not even packets are, as in a capture
    words: str = "given"  # their generator


def usual_inputs(features: int) -> tuple[Input, ...]:
    """Return the ends of the range, the easiest pair for a sound mechanism, and inputs between and above them.

    The last ones cover the whole range: in each of its parts every feature of every record is one of several values,
    picked at random.
    """

    odd = (np.arange(1, features + 1) * 10923 % ONE | 1).astype(np.uint16)
    step = ONE // (PARTS * VALUES)
    values = np.arange(PARTS * VALUES) * step + np.random.default_rng(0).integers(0, step, PARTS * VALUES)
    parts = np.repeat(values.astype(np.uint16), features).reshape(PARTS, VALUES, features)
    alike = (("0", 0, 8), ("1", ONE, 8), ("1/4", ONE // 4, 2), ("1/2", ONE // 2, 2), ("above 1", 2 * ONE - 1, 2))
    *below, above = (Input(name, np.full(features, value, np.uint16), weight) for name, value, weight in alike)
    return (
        *(*below, Input("odd values", odd, 2), above),
        *(Input(f"{part}/{PARTS} … {part + 1}/{PARTS}", parts[part]) for part in range(PARTS)),
    )


def repeat(x: Record, count: int, seed: Seed) -> Record:
    """Return `count` records: all x, or where x has rows, each feature from one of them, picked at random."""
    if x.ndim == 1:
        return np.tile(x, (count, 1))
    rows = np.random.default_rng((*seed, 1)).integers(0, len(x), (count, x.shape[1]))
    return x[rows, np.arange(x.shape[1])]


def is_even(record: Record) -> bool:
    """Return whether every feature has the same value, or is picked from the same values."""
    return bool((record.T[0] == record.T).all())


def mix(parts: Sequence[Distribution]) -> Distribution:
    """Return the mean of some distributions: that of one of them, picked at random."""
    if all(part is parts[0] for part in parts):
        return parts[0]
    every, places = np.unique(np.concatenate([values for values, _ in parts]), return_inverse=True)
    shares = np.concatenate([probabilities for _, probabilities in parts]) / len(parts)
    return every, np.bincount(places, shares)


def input_pairs(inputs: Sequence[Input]) -> list[tuple[int, int]]:
    """Return pairs of inputs to distinguish: the first two, and each other one against the more distant of these."""
    pairs = [(0, 1)]
    for number, other in enumerate(inputs[2:], 2):
        far = [abs(other.record.astype(int) - inputs[end].record.astype(int)).sum() for end in (0, 1)]
        pairs.append((int(far[1] > far[0]), number))
    return pairs


# ---- captures of a real board


def read_capture(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """Read the packets of a file, one row of bytes each, in order."""
    name, form = brief_path(path), "give a file with one packet a line in hex, as 01fe9a, all of one length"
    try:
        lines = read_bounded(path, MOST_BYTES).decode("ascii").split()
        content = [bytes.fromhex(line) for line in lines]
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}; {form}.") from None
    except ValueError:
        raise InputError(f"{name!r} is no path of a file of hexadecimal lines; {form}.") from None
    if len(lines) < FEWEST:
        raise InputError(f"{name} has {len(lines)} packets; an audit needs at least {FEWEST} of each record.")
    for number, packet in enumerate(content, 1):
        if len(packet) != len(content[0]):
            raise InputError(f"packet {number} of {name} has {len(packet)} bytes, the first {len(content[0])}; {form}.")
    return np.frombuffer(b"".join(content), np.uint8).reshape(len(lines), -1)


def capture_source(packets: Sequence[Packets], names: Sequence[str], claimed: float) -> Source:
    """Return a source of two captures; the shorter one limits the number of packets."""
    widths = [captured.shape[1] for captured in packets]
    if widths[0] != widths[1]:
        raise InputError(f"{names[0]} has packets of {widths[0]} bytes and {names[1]} of {widths[1]}; give one length.")

    def draw(x: Any, count: int, seed: Sequence[int]) -> Any:
        start = seed[-1]
        return packets[int(x[0])][start : start + count].astype(np.int32)

    return Source(
        mechanism="capture",
        sees="the bytes of a packet, whatever they mean",
        claimed=claimed,
        per_record=1,
        fields=tuple(Field(f"byte {i}", claimed) for i in range(widths[0])),
        inputs=tuple(Input(name, np.array([number])) for number, name in enumerate(names)),
        draw=draw,
        expected=lambda x, column: None,
        independent=None,
        words="the board's own",
    )
