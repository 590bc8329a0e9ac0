"""Compare the draws of a program's sensor with the firmware model's: at every edge of the table, with another table in
its place, and in many packets.

The words of a release are a block of the cipher under the sensor's key, and the epoch is a part of that block. So from
one open the clock alone chooses the words: epochs are tried by the million, and of the words that they make the ones at
the edges of the table are used. The cipher here is plain numpy over many blocks, not the kernel.

With other numbers where the certified table lies, the program must release as the model does with those numbers: so
it draws with that very table, wherever its symbols point.
"""

import math
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sensorsim.device.entropy import SeededEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.sensor import Sensor
from sensorsim.device.sketches import Sketch
from sensorsim.device.status import Status
from sensorsim.kernels.chacha20 import CONSTANTS
from sensorsim.kernels.formats import FRAC
from sensorsim.kernels.generator import BLOCK_WORDS, KEY_WORDS
from sensorsim.machine.emulated_sensor import ROOM
from sensorsim.verification.kernel_timing import Proof
from sensorsim.verification.sensor_life import FIRST_EPOCH, Board, SensorBuild, record

TRIES = 1 << 20  # words that are looked through; each value of 16 bits is among them sixteen times on average
AT_ONCE = 1 << 12  # blocks that the processor's cache holds
MOST = 400  # edges that are tried; more only of tables with hundreds of entries
ONE = 1 << FRAC
NUMBER = 1  # of the first release of an epoch
QUARTERS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))  # fmt: skip


@dataclass(frozen=True)
class Edge:
    """An epoch, the draw of its first release to look at, the word of that draw, and the features to try there."""

    epoch: int
    draw: int
    word: int
    x: tuple[int, ...]


@dataclass(frozen=True)
class Edges:
    """Edges that were found, and how many there are."""

    found: tuple[Edge, ...]
    wanted: int


def words_of(firmware: Firmware, key: bytes, epoch: int) -> Any:
    """Return the words that draw in the first release of each epoch from that one on, a row for each."""
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
    """Find edges of the draw with this table among the words of epochs from that one on."""
    import numpy as np

    wanted, flat = dict(_wanted(firmware, table, words)), words.ravel()
    order = np.argsort(flat, kind="stable")
    ordered, found = flat[order], []
    for (first, last), rows in _thin(wanted):
        place = int(np.searchsorted(ordered, first))
        if place < len(ordered) and int(ordered[place]) <= last:
            later, draw = divmod(int(order[place]), words.shape[1])
            word = int(ordered[place])
            found.append(Edge(epoch + later, draw, word, tuple(sorted(set(_near(firmware, table, word, rows))))))
    return Edges(tuple(found), len(wanted))


def _thin(wanted: dict[tuple[int, int], tuple[int, ...]]) -> list[tuple[tuple[int, int], tuple[int, ...]]]:
    """Select evenly where there are too many to try; pairs stay together."""
    listed = sorted(wanted.items())
    step = -(-len(listed) // MOST)
    return [one for place, one in enumerate(listed) if place // 2 % step == 0]


def _wanted(firmware: Firmware, table: Any, words: Any) -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
    """Yield ranges of words at an edge of the table, and the rows in which they are one."""
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
    """Yield features to try with a word: for rows the knot, and the first and the last that are rounded to it."""
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
    """Compute ChaCha20 (RFC 8439, section 2.3) of many keys and epochs at once."""
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


LATER = FIRST_EPOCH + 1  # the first epoch that is tried
RECORDS = 3  # for each edge, where an encoder stands before the draw and no feature can be chosen
EVERY = 2000  # packets after which the sensor is opened anew


class _Model(Sensor):
    """A model that can draw with another table and reports which features it picked."""

    @property
    def key(self) -> bytes:
        """Return the key of the next release."""
        return bytes(self._memory.key.array.tobytes())

    def use(self, table: Any) -> None:
        """Draw with another table from now on."""
        self._tables["table"] = table

    def picked(self, draw: int) -> int:
        """Return the feature that the last release drew there, or the direction of its sketch."""
        if self.firmware.sketch is not None:
            return int(self.firmware.layout.first_picked(self.packet))
        chosen = getattr(self._memory, "chosen", None)
        return draw if chosen is None else int(chosen[draw])

    def _drawn(self, record: Any) -> bytes:
        self.packet = super()._drawn(record)
        return self.packet


class _Pair:
    """A model and a program's sensor, each on a board of its own, that are always given the same."""

    def __init__(self, build: SensorBuild) -> None:
        firmware = build.firmware
        self.firmware, self.ours, self.theirs = firmware, Board(), Board()
        self.model = _Model(firmware, self.ours.flash, self.ours.draw, self.ours.clock)
        self.core = build.sensor(self.theirs)
        self.blank, self.releases = self.ours.flash.image, 0
        self.parts = [(part.address, len(part.data)) for part in build.program.sections if part.writable]
        self.parts.append((self.core.sensor, ROOM))

    def open(self) -> bool:
        """Open both on blank flash with one entropy; the program's state is saved, to release from it again."""
        self._begin()
        opened = self.core.open() == Status.OK
        self.kept = [(at, bytes(self.core.machine.uc.mem_read(at, size))) for at, size in self.parts]
        self.stored = self.theirs.flash.image
        return opened

    def _begin(self) -> None:
        self.ours.flash.restore(self.blank)
        self.ours.clock.epoch, self.ours.entropy = FIRST_EPOCH, SeededEntropy(1)
        self.model.open()

    def differ(self, epoch: int, x: Sequence[int]) -> str:
        """Release this record in that epoch, first after the open; describe how the packets differ."""
        self._begin()
        for at, content in self.kept:
            self.core.machine.uc.mem_write(at, content)
        self.theirs.flash.restore(self.stored)
        self.ours.clock.epoch = self.theirs.clock.epoch = epoch
        return self.compare(x)

    def compare(self, x: Sequence[int]) -> str:
        """Release a record; describe how the packets differ."""
        want, got = self.model.release(x), self.core.release(x)
        self.releases += 1
        return "" if want == got else f"the packet is {got[1].hex()} and the model's {want[1].hex()}"


def draw_proof(build: SensorBuild, places: Sequence[int]) -> Proof:
    """Prove the draw at every edge of the table, then with another table in each possible place of it."""
    import numpy as np

    pair, firmware = _Pair(build), build.firmware
    table = firmware.arguments.get("table")
    if not pair.open():
        return Proof("draws", False, "the sensor of the image does not open")
    words = words_of(firmware, pair.model.key, LATER)
    edges = edges_of(firmware, table, words, LATER)
    wrong = _met(pair, edges)
    if wrong:
        return Proof("draws", False, wrong)
    met = "every edge of the table" if len(edges.found) == edges.wanted else f"{len(edges.found)} edges of the table"
    if "base" in firmware.arguments:
        met = f"{len(edges.found)} edges of the likelihood"
    told = f"{met} met from both sides: {pair.releases} releases as the model's"
    told += ", through the encoder by records at random" if firmware.encoder else ""
    told += ", by records whose sketch is as near to it as can be" if firmware.sketch else ""
    if table is None:
        return Proof("draws", True, told)
    other = _other(table, firmware.arguments.get("cuts"))
    edges, difference = edges_of(firmware, other, words, LATER), "the table is not in the image"
    for place in places:
        pair = _Pair(build)
        pair.open()
        pair.model.use(other)
        pair.core.machine.uc.mem_write(
            place, struct.pack(f"<{len(other)}{np.dtype(other.dtype).char}", *other.tolist())
        )
        difference = _met(pair, edges)
        if not difference:
            return Proof("draws", True, f"{told}; with another table at 0x{place:x} {pair.releases} as by that table")
    return Proof("draws", False, f"the release does not draw with the table that was certified: with other numbers in "
                                 f"its place, {difference}")  # fmt: skip


def _met(pair: _Pair, edges: Edges) -> str:
    """Describe the first edge at which the two differ."""
    chance = random.Random(1)
    for edge in edges.found:
        for x in _records(pair, edge, chance):
            wrong = pair.differ(edge.epoch, x)
            if wrong:
                return f"where a random word is 0x{edge.word:08x}, {wrong}"
    return ""


def _records(pair: _Pair, edge: Edge, chance: random.Random) -> list[list[int]]:
    """Make records whose drawn feature, or sketch, has each value to try; the others are random."""
    n, sketch = pair.firmware.n, pair.firmware.sketch
    if pair.firmware.encoder is not None:
        return [record(n, chance) for _ in range(RECORDS)]
    pair.differ(edge.epoch, [0] * n)
    feature, made = pair.model.picked(edge.draw), []
    if sketch is not None:
        return [record_for_sketch(sketch, feature, u, chance) for u in edge.x]
    for x in edge.x:
        made.append([chance.randrange(ONE + 1) for _ in range(n)])
        made[-1][feature] = x
    return made


def record_for_sketch(sketch: Sketch, number: int, u: int, chance: random.Random) -> list[int]:
    """Make a record whose sketch along a direction is as near to u as the formats allow: the sum takes from one
    feature after the other. Those that the direction leaves out are at random."""
    along, sign = round(sketch.root * math.sqrt(u * ONE)), chance.choice((-1, 1))
    made = [chance.randrange(ONE + 1) for _ in range(sketch.n)]
    entries = sketch.vectors([number])[0].tolist()
    for place in chance.sample(range(sketch.n), sketch.n):
        middle, way = sketch.centre[place], sign * entries[place]
        if way:
            moved = min(along, ONE - middle if way > 0 else middle)
            made[place] = middle + way * moved
            along -= moved
    return made


def _other(table: Any, cuts: int | None) -> Any:
    """Return another table of the same shape: ascending thresholds in each row, or the entries in reverse order."""
    import numpy as np

    if cuts is None:
        return np.ascontiguousarray(table[::-1])
    drawn = np.random.default_rng(1).choice(1 << 16, len(table), replace=False).astype(table.dtype)
    return np.ascontiguousarray(np.sort(drawn.reshape(-1, cuts), axis=1).ravel())


def packets_differ(build: SensorBuild, count: int, seed: int = 2) -> str:
    """Compare many packets one after the other; describe the first that differs."""
    pair, chance = _Pair(build), random.Random(seed)
    boards = (pair.ours, pair.theirs)
    for number in range(count):
        if number % EVERY == 0:
            entropy = chance.getrandbits(64)
            for board in boards:
                board.entropy = SeededEntropy(entropy)
            pair.core.reset()
            if pair.model.open() != pair.core.open():
                return f"the image and the model answer differently to open before packet {number + 1}"
        for board in boards:
            board.clock.epoch += 1
        wrong = pair.compare(record(build.firmware.n, chance))
        if wrong:
            return f"packet {number + 1} of many: {wrong}"
    return ""
