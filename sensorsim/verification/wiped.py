"""What a program leaves in memory: after a call no key that was used, no random word and no entropy may be found in the
sensor's state, on the stack or in the program's variables; the key that is next, in the state alone. The firmware model
says which words to look for. A release changes nothing but the sensor's state, the packet and the stack, and at no
place of these is half a word, a feature of the record or its sketch found again and again. Registers are not looked
at."""

import random
import struct
from collections import Counter
from functools import partial
from typing import Any

from sensorsim.device.entropy import SeededEntropy
from sensorsim.device.sensor import Sensor
from sensorsim.kernels.formats import ONE
from sensorsim.kernels.generator import KEY_WORDS, SEED_BYTES, fresh_words
from sensorsim.language.numba_backend import outer
from sensorsim.language.types import Struct
from sensorsim.machine.abi import PAGE, STACK_BYTES
from sensorsim.machine.emulated_sensor import GARBAGE, ROOM, EmulatedSensor
from sensorsim.machine.emulator import PAINT
from sensorsim.verification.sensor_life import Board, SensorBuild

WORD, HALF = 4, 2


def secret_places(record: Struct) -> list[tuple[int, int]]:
    """Return where an ss_sensor on a core of 32 bits is zero outside of a call, and how many bytes.

    Those are its secret fields but the key.
    """
    places, at = [], 0
    for name, kind in record.fields.items():
        width = WORD if kind.ports else int(kind.storage[1:]) // 8
        size = WORD * (1 + len(kind.ports)) if kind.ports else width * int(kind.length)
        at += -at % width
        if kind.element.secret and name != "key":
            places.append((at, size))
        at += size
    return places


class _Told(Sensor):
    """A model that reports the words that it draws with; a sensor never does."""

    @property
    def key(self) -> bytes:
        """Return the key of the next release."""
        return bytes(self._memory.key.array.tobytes())

    def sketched(self, x: list[int]) -> bytes:
        """Return what the last release, of this record, made of it before the draw; nothing where that says nothing."""
        sketch = self.firmware.sketch
        if sketch is None:
            return b""
        (u,) = sketch.value([x], [self.firmware.layout.first_picked(self.packet)]).tolist()
        return struct.pack("<H", u) if ONE >> 8 <= u < ONE else b""

    def _drawn(self, record: Any) -> bytes:
        self.secrets = self.key + words_to_come(self).tobytes()
        self.packet = super()._drawn(record)
        return self.packet


def words_to_come(model: Sensor) -> Any:
    """Return the random words that the model draws its counted release with, from a copy of its key."""
    memory = model._memory
    word, room = memory.word.array.copy(), memory.state.array.copy()
    key, block = memory.key.array.copy(), memory.block.array.copy()
    outer(fresh_words)(key, word, room, block, memory.used, memory.epoch, model.firmware.blocks)
    return word


def leftovers(build: SensorBuild, trials: int) -> str:
    """Describe the first secret that is found again; empty where none is."""
    again, firmware = Counter[str](), build.firmware
    for seed in range(1, trials + 1):
        ours, theirs = Board(entropy=SeededEntropy(seed)), Board(entropy=SeededEntropy(seed))
        model = _Told(firmware, ours.flash, ours.draw, ours.clock)
        core, drawn = build.sensor(theirs), bytearray()
        core.entropy = partial(_kept, theirs, drawn)
        model.open()
        core.open()
        found = _found(core, bytes(drawn[-2 * SEED_BYTES :]), model.key)
        if found:
            return f"after open, entropy, the key or what was made of them is {found}"
        core.machine.paint()
        x = random.Random(seed).sample(range(256, 32768), firmware.n)
        before = _outside(core, x)
        model.release(x)
        core.release(x)
        found = _found(core, model.secrets, model.key)
        if found:
            return f"after a release, a random word, a key or what was made of them is {found}"
        changed = [name for name, content in _outside(core, x).items() if content != before[name]]
        if changed:
            return f"a release changes {changed[0]}, where it has nothing to write"
        words = model.secrets[WORD * KEY_WORDS :][: WORD * firmware.words]
        again.update(f"half of a random word {place}" for place in _halves(core, words))
        again.update(f"a feature of the record {place}" for place in _halves(core, struct.pack(f"<{len(x)}H", *x)))
        again.update(f"the sketch of the record {place}" for place in _halves(core, model.sketched(x)))
    often = [what for what, times in again.items() if times * 2 >= trials]  # by chance not even three times
    return f"after a release, {often[0]}" if often else ""


def _outside(core: EmulatedSensor, x: list[int]) -> dict[str, bytes]:
    """Return memory that a release must not touch: pages of variables, and what the caller holds."""
    read, parts = core.machine.uc.mem_read, core.machine.program.sections
    core.machine.uc.mem_write(core.x, struct.pack(f"<{len(x)}H", *x))
    pages = [(part.name, part.address, part.end) for part in parts if part.writable]
    pages += [(f"memory beside {name}", start & -PAGE, end + PAGE - 1 & -PAGE) for name, start, end in pages]
    pages.append(("the port or the record", core.port, core.packet))
    behind = core.packet + core.firmware.layout.bytes
    pages.append(("memory behind the packet", behind, behind + PAGE))
    return {name: bytes(read(start, end - start)) for name, start, end in pages}


def _halves(core: EmulatedSensor, secrets: bytes) -> set[str]:
    """Find the places in the sensor's state and on the stack that hold half of a secret word."""
    halves = {secrets[k : k + HALF] for k in range(0, len(secrets), HALF)} - {bytes(HALF), bytes([PAINT]) * HALF}
    found = set()
    for name, start, size in (("in the sensor's state", core.sensor, ROOM),
                              ("on the stack", core.machine.places.stack, STACK_BYTES)):  # fmt: skip
        content = bytes(core.machine.uc.mem_read(start, size))
        for half in halves:
            place = content.find(half)
            while place >= 0:
                found.add(f"is {name}, {place} bytes into it")
                place = content.find(half, place + 1)
    return found


def _kept(board: Board, kept: bytearray, count: int) -> bytes:
    given = board.draw(count)
    kept += given
    return given


def _found(core: EmulatedSensor, secrets: bytes, key: bytes) -> str:
    """Say where one of the words is found."""
    stack, parts = core.machine.places.stack, core.machine.program.sections
    if _holds(core, core.sensor, ROOM, secrets):
        return "in the sensor's state"
    for place, size in secret_places(core.firmware.draw.record):
        if set(core.machine.uc.mem_read(core.sensor + place, size)) - {0, GARBAGE}:  # what no call touched is garbage
            return "in the sensor's state, which is not all wiped"
    if _holds(core, stack, STACK_BYTES, secrets + key):
        return "on the stack"
    for part in parts:
        if part.writable and _holds(core, part.address, len(part.data), secrets + key):
            return f"in {part.name}"
    return ""


def _holds(core: EmulatedSensor, start: int, size: int, secrets: bytes) -> bool:
    """Return whether a word of the secrets is there; zeros do not count."""
    content = bytes(core.machine.uc.mem_read(start, size))
    words = {secrets[k : k + WORD] for k in range(0, len(secrets), WORD)} - {bytes(WORD)}
    return any(word in content for word in words)
