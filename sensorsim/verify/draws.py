"""The draw of a program's sensor beside the firmware model's: at every edge of its table, with another table in its
place, and in many packets.

With other numbers where the certified table lies, the program must release as the model does with those numbers: so
it draws with that very table, wherever its symbols point.
"""

import math
import random
import struct
from collections.abc import Sequence
from typing import Any

from sensorsim.device.entropy import SeededEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.sensor import Sensor
from sensorsim.device.sketch import Sketch
from sensorsim.device.status import Status
from sensorsim.export.board import ROOM, EmulatedSensor
from sensorsim.machine.elf import Program
from sensorsim.machine.targets import Target
from sensorsim.verify.edges import ONE, Edge, Edges, edges_of, words_of
from sensorsim.verify.life import core_sensor
from sensorsim.verify.life_steps import FIRST_EPOCH, Board, record
from sensorsim.verify.proof import Proof

LATER = FIRST_EPOCH + 1  # the first epoch that is tried
RECORDS = 3  # for each edge, where an encoder stands before the draw and no feature can be chosen
EVERY = 2000  # packets after which the sensor is opened anew


class _Model(Sensor):
    """The model, which may draw with another table and tells which features it picked."""

    @property
    def key(self) -> bytes:
        """Of the next release."""
        return bytes(self._memory.key.array.tobytes())

    def use(self, table: Any) -> None:
        """Draw with another table from now on."""
        self._tables["table"] = table

    def picked(self, draw: int) -> int:
        """Return which feature the last release drew there, or which direction its sketch had."""
        if self.firmware.sketch is not None:
            return int(self.firmware.layout.first_picked(self.packet))
        chosen = getattr(self._memory, "chosen", None)
        return draw if chosen is None else int(chosen[draw])

    def _drawn(self, record: Any) -> bytes:
        self.packet = super()._drawn(record)
        return self.packet


class _Pair:
    """A model and a program's sensor, each on a board of its own, that are always given the same."""

    def __init__(self, target: Target, program: Program, firmware: Firmware, prefix: str) -> None:
        self.firmware, self.ours, self.theirs = firmware, Board(), Board()
        self.model = _Model(firmware, self.ours.flash, self.ours.draw, self.ours.clock)
        self.core: EmulatedSensor = core_sensor(target, program, firmware, prefix, self.theirs)
        self.blank, self.releases = self.ours.flash.image, 0
        self.parts = [(part.address, len(part.data)) for part in program.sections if part.writable]
        self.parts.append((self.core.sensor, ROOM))

    def open(self) -> bool:
        """Both on blank flash with one entropy; the state of the program's is kept, to release from it again."""
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
        """Release this record in that epoch, first after the open; how the packets differ."""
        self._begin()
        for at, content in self.kept:
            self.core.machine.uc.mem_write(at, content)
        self.theirs.flash.restore(self.stored)
        self.ours.clock.epoch = self.theirs.clock.epoch = epoch
        return self.compare(x)

    def compare(self, x: Sequence[int]) -> str:
        """Release a record; how the packets differ."""
        want, got = self.model.release(x), self.core.release(x)
        self.releases += 1
        return "" if want == got else f"the packet is {got[1].hex()} and the model's {want[1].hex()}"


def draw_proof(target: Target, program: Program, firmware: Firmware, prefix: str, places: Sequence[int]) -> Proof:
    """At every edge of the table, then with another table in each of the places until one is the table's."""
    import numpy as np

    pair, table = _Pair(target, program, firmware, prefix), firmware.arguments.get("table")
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
    edges, failed = edges_of(firmware, other, words, LATER), "the table is not in the image"
    for place in places:
        pair = _Pair(target, program, firmware, prefix)
        pair.open()
        pair.model.use(other)
        pair.core.machine.uc.mem_write(
            place, struct.pack(f"<{len(other)}{np.dtype(other.dtype).char}", *other.tolist())
        )
        failed = _met(pair, edges)
        if not failed:
            return Proof("draws", True, f"{told}; with another table at 0x{place:x} {pair.releases} as by that table")
    return Proof("draws", False, f"the release does not draw with the table that was certified: with other numbers in "
                                 f"its place, {failed}")  # fmt: skip


def _met(pair: _Pair, edges: Edges) -> str:
    """The first edge at which the two differ, in words."""
    chance = random.Random(1)
    for edge in edges.found:
        for x in _records(pair, edge, chance):
            wrong = pair.differ(edge.epoch, x)
            if wrong:
                return f"where a random word is 0x{edge.word:08x}, {wrong}"
    return ""


def _records(pair: _Pair, edge: Edge, chance: random.Random) -> list[list[int]]:
    """The feature that is drawn takes each value to try, or the sketch does; the others are at random."""
    n, sketch = pair.firmware.n, pair.firmware.sketch
    if pair.firmware.encoder is not None:
        return [record(n, chance) for _ in range(RECORDS)]
    pair.differ(edge.epoch, [0] * n)
    feature, made = pair.model.picked(edge.draw), []
    if sketch is not None:
        return [aimed(sketch, feature, u, chance) for u in edge.x]
    for x in edge.x:
        made.append([chance.randrange(ONE + 1) for _ in range(n)])
        made[-1][feature] = x
    return made


def aimed(sketch: Sketch, number: int, u: int, chance: random.Random) -> list[int]:
    """A record whose sketch along a direction is as near to u as the formats allow: the sum takes what it needs of one
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
    """Another table of the same shape: thresholds that ascend in each row, or the same entries the other way round."""
    import numpy as np

    if cuts is None:
        return np.ascontiguousarray(table[::-1])
    drawn = np.random.default_rng(1).choice(1 << 16, len(table), replace=False).astype(table.dtype)
    return np.ascontiguousarray(np.sort(drawn.reshape(-1, cuts), axis=1).ravel())


def packets_differ(target: Target, program: Program, firmware: Firmware, prefix: str, count: int, seed: int = 2) -> str:
    """Many packets one after the other; the first that differs, in words."""
    pair, chance = _Pair(target, program, firmware, prefix), random.Random(seed)
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
        wrong = pair.compare(record(firmware.n, chance))
        if wrong:
            return f"packet {number + 1} of many: {wrong}"
    return ""
