"""Epochs in which a sensor's release draws what is wanted: each threshold of its table met from both sides.

The words of a release are a block of the cipher under the sensor's key, and the epoch is a part of that block. So from
one open the clock alone chooses the words: epochs are tried by the million, and of the words that they make the ones at
the edges of the table are kept. The cipher here is plain numpy over many blocks, not the kernel.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sensorsim.device.firmware import Firmware
from sensorsim.kernels.chacha20 import CONSTANTS
from sensorsim.kernels.formats import FRAC
from sensorsim.kernels.generator import BLOCK_WORDS, KEY_WORDS

TRIES = 1 << 20  # words that are looked through; each value of 16 bits is among them sixteen times on average
AT_ONCE = 1 << 12  # blocks that the processor's cache holds
MOST = 400  # edges that are tried; more only of tables with hundreds of entries
ONE = 1 << FRAC
NUMBER = 1  # of the first release of an epoch
QUARTERS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))  # fmt: skip


@dataclass(frozen=True)
class Edge:
    """An epoch, the draw of its first release that is meant, the word of it, and the features to try there."""

    epoch: int
    draw: int
    word: int
    x: tuple[int, ...]


@dataclass(frozen=True)
class Edges:
    """What was found of what is wanted."""

    found: tuple[Edge, ...]
    wanted: int


def words_of(firmware: Firmware, key: bytes, epoch: int) -> Any:
    """The words that draw, in the first release of each epoch from that one on: a row for each."""
    sampled = "chosen" in firmware.kernel.parameters
    places = range(1, firmware.words, 2) if sampled else range(firmware.picks, firmware.words)
    return _words(key, epoch, places, firmware.blocks)


@lru_cache(maxsize=1)
def _words(key: bytes, epoch: int, places: range, blocks: int) -> Any:
    import numpy as np

    tries = max(AT_ONCE, TRIES // len(places) // AT_ONCE * AT_ONCE)
    made = np.zeros((tries, len(places)), np.uint32)
    for first in range(0, tries, AT_ONCE):
        epochs = np.arange(epoch + first, epoch + first + AT_ONCE, dtype=np.uint32)
        keys = [np.full(AT_ONCE, word, np.uint32) for word in np.frombuffer(key, np.uint32)]
        for block in range(blocks):
            out = _block(keys, block, epochs)
            keys = out[:KEY_WORDS]
            for column, place in enumerate(places):
                if place // BLOCK_WORDS == block:
                    made[first : first + AT_ONCE, column] = out[KEY_WORDS + place % BLOCK_WORDS]
    return made


def edges_of(firmware: Firmware, table: Any, words: Any, epoch: int) -> Edges:
    """Edges of the draw with this table, among the words of epochs from that one on."""
    import numpy as np

    wanted, flat = dict(_wanted(firmware, table, words)), words.ravel()
    order = np.argsort(flat, kind="stable")
    ordered, found = flat[order], []
    for (first, last), rows in _thinned(wanted):
        place = int(np.searchsorted(ordered, first))
        if place < len(ordered) and int(ordered[place]) <= last:
            later, draw = divmod(int(order[place]), words.shape[1])
            word = int(ordered[place])
            found.append(Edge(epoch + later, draw, word, tuple(sorted(set(_near(firmware, table, word, rows))))))
    return Edges(tuple(found), len(wanted))


def _thinned(wanted: dict[tuple[int, int], tuple[int, ...]]) -> list[tuple[tuple[int, int], tuple[int, ...]]]:
    """Evenly, where there are too many to try; pairs stay beside each other."""
    listed = sorted(wanted.items())
    step = -(-len(listed) // MOST)
    return [one for place, one in enumerate(listed) if place // 2 % step == 0]


def _wanted(firmware: Firmware, table: Any, words: Any) -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
    """Ranges of words at an edge of the table, and for rows the rows in which they are one."""
    import numpy as np

    given = firmware.arguments
    if "base" in given:  # one bit: words at which a likelihood is just reached, or just not
        base, slope, values = given["base"], given["slope"], np.unique(words.ravel() >> 1).astype(np.int64)
        inside = values[(values >= base) & (values < base + slope * ONE)]
        for side in (0, 1):
            for value in inside[(inside + side - base) % max(slope, 1) == 0][:64]:
                yield (2 * int(value), 2 * int(value) + 1), ()
        return
    rows: dict[tuple[int, int], set[int]] = {}
    if "cuts" in given:
        cuts, drop = given["cuts"], 16
        edges = [(place // cuts, int(cut)) for place, cut in enumerate(table)]
    else:
        drop = given.get("drop", 24)
        size = 1 << 32 - drop
        edges = [(at // size, at % size) for at in range(1, len(table)) if at % size and table[at] != table[at - 1]]
    for row, edge in edges:
        for value in (edge - 1, edge):
            if 0 <= value < 1 << 32 - drop:
                rows.setdefault((value << drop, (value + 1 << drop) - 1), set()).add(row)
    yield from ((span, tuple(sorted(found))) for span, found in rows.items())


def _near(firmware: Firmware, table: Any, word: int, rows: tuple[int, ...]) -> Iterator[int]:
    """Features to try with a word: for rows the knot, and the first and the last that are rounded to it."""
    given = firmware.arguments
    if "base" in given:
        x = ((word >> 1) - given["base"]) // max(given["slope"], 1)
        near = [0, x, x + 1, ONE]
    elif "stair_bits" in given:
        stair = 1 << given["stair_bits"]
        moved = (word & stair - 1) - stair // 2 - ONE // 2 + stair * int(table[word >> given["drop"]])
        limits = (given["limit"] - moved, -given["limit"] - moved)
        near = [0, 1, ONE // 2, ONE - 1, ONE, *(limit + step for limit in limits for step in (-1, 0, 1))]
    else:
        shift = FRAC - given["knot_bits"]
        low = word & (1 << shift) - 1
        near = [x for row in rows for x in (row << shift, (row << shift) - low, (row + 1 << shift) - low - 1)]
        near += [ONE - x for x in near]  # where half of the rows is stored, the other half is their mirror image
    yield from (x for x in near if 0 <= x <= ONE)


def _block(key: list[Any], place: int, epochs: Any, number: int = NUMBER) -> list[Any]:
    """ChaCha20 (RFC 8439, section 2.3) of many keys and epochs at once."""
    import numpy as np

    fixed = [np.full_like(epochs, word) for word in (*CONSTANTS, place, number, 0)]
    first = [*fixed[:4], *key, *fixed[4:6], epochs, fixed[6]]
    state, high = [word.copy() for word in first], np.empty_like(epochs)
    turns = [(np.uint32(turn), np.uint32(32 - turn)) for turn in (16, 12, 8, 7)]
    for _ in range(10):
        for a, b, c, d in QUARTERS:
            for (one, two, three), (left, right) in zip(((a, b, d), (c, d, b)) * 2, turns, strict=True):
                state[one] += state[two]
                state[three] ^= state[one]
                np.left_shift(state[three], left, out=high)
                state[three] >>= right
                state[three] |= high
    return [word + begun for word, begun in zip(state, first, strict=True)]
