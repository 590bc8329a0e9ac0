"""The steps of a sensor's life: each does the same to the firmware model and to the sensor of a program."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sensorsim.device.entropy import Entropy, FailingEntropy, SeededEntropy, StuckEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.flash import MODES, Flash, PowerCut
from sensorsim.device.sensor import Clock
from sensorsim.device.status import Status
from sensorsim.errors import InputError
from sensorsim.kernels.journal import SLOT_BYTES
from sensorsim.machine.emulated_sensor import EmulatedSensor

FIRST_EPOCH = 100
EDGES = (0, 1, 4096, 16384, 28672, 32767, 32768, 32769, 65535)
Answer = dict[str, Any]  # what a step gave, and what it left in flash


@dataclass
class Board:
    """Flash, entropy and clock of one device; the same twice, for the model and for the program."""

    flash: Flash = field(default_factory=Flash)
    clock: Clock = field(default_factory=lambda: Clock(FIRST_EPOCH))
    entropy: Entropy = field(default_factory=lambda: SeededEntropy(1))
    asks: bool = True  # how many releases are left; many an application does not, and its linker drops the function

    def draw(self, count: int) -> bytes:
        return self.entropy(count)


Step = Callable[[Board, Any], Answer]


def steps_of(firmware: Firmware, releases: int, closes: bool, seed: int) -> Iterator[tuple[str, Step]]:
    """A reset, then releases; now and then something goes wrong."""
    chance = random.Random(seed)
    yield "reset on blank memory", _reset(SeededEntropy, chance.getrandbits(64))
    for number in range(releases):
        if chance.random() < 0.9 / firmware.releases or chance.random() < 0.2:
            yield "a new epoch", _later(chance.choice((1, 1, 1, 2, 1000)))
        yield f"release {number + 1}", _release(record(firmware.n, chance))
        event = chance.random()
        if event < 0.08:
            yield "reset", _reset(SeededEntropy, chance.getrandbits(64))
        elif event < 0.18:
            mode, after = chance.choice(MODES), chance.randrange(2 * SLOT_BYTES)
            yield f"cut after {after} bytes ({mode})", _cut(after, mode, record(firmware.n, chance))
            yield "reset after it", _reset(SeededEntropy, chance.getrandbits(64))
        elif event < 0.36:
            yield from _trouble(firmware, closes, chance)


def _trouble(firmware: Firmware, closes: bool, chance: random.Random) -> Iterator[tuple[str, Step]]:
    x, kinds = record(firmware.n, chance), ["worn", "deaf", "stuck", "fails", "clock", *(["closed"] * closes)]
    kind = chance.choice([*kinds, *["journal"] * len(kinds)])
    if kind in ("worn", "deaf"):
        yield f"release on {kind} flash", _bad_flash(x, "wear" if kind == "worn" else "fail_load")
    elif kind == "clock":
        yield "release before the journal's epoch", _back(x)
    elif kind == "closed":
        yield "release of a closed sensor", _closed(x)
    elif kind == "journal":
        yield "reset with a damaged journal", _damaged(_damage(chance))
    else:
        make: Any = StuckEntropy if kind == "stuck" else FailingEntropy
        yield f"reset with entropy that {'is stuck' if kind == 'stuck' else 'fails'}", _reset(make, 7)
    yield "reset after it", _reset(SeededEntropy, chance.getrandbits(64))


def record(n: int, chance: random.Random) -> list[int]:
    """Edges and numbers in between."""
    return [chance.choice(EDGES) if chance.random() < 0.4 else chance.randrange(32769) for _ in range(n)]


def answer(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives, or what stopped it."""
    try:
        return call(*arguments)
    except PowerCut:
        return "the power cut"
    except (InputError, ValueError) as error:
        return str(error)


def _after(board: Board, sensor: Any, told: Answer) -> Answer:
    left = {"left": answer(sensor.left)} if board.asks else {}
    return {**told, **left, "journal": board.flash.image}


def _release(x: list[int]) -> Step:
    def step(board: Board, sensor: Any) -> Answer:
        given = answer(sensor.release, x)
        told = {"status": given[0], "packet": given[1]} if isinstance(given, tuple) else {"status": given}
        return _after(board, sensor, told)

    return step


def _reset(entropy: Callable[[int], Entropy], seed: int) -> Step:
    def step(board: Board, sensor: Any) -> Answer:
        board.entropy = entropy(seed)
        sensor.reset() if isinstance(sensor, EmulatedSensor) else sensor.close()
        return _after(board, sensor, {"open": answer(sensor.open)})

    return step


def _later(epochs: int) -> Step:
    def step(board: Board, sensor: Any) -> Answer:
        board.clock.epoch += epochs
        return _after(board, sensor, {})

    return step


def _cut(after: int, mode: str, x: list[int]) -> Step:
    def step(board: Board, sensor: Any) -> Answer:
        board.clock.epoch += 1  # so that something is stored
        board.flash.cut(after, mode)
        told = [str(answer(sensor.release, x)) for _ in range(2)]
        board.flash.never_cut()
        return {"release": told[0], "release after it": told[1], "journal": board.flash.image}

    return step


def _bad_flash(x: list[int], fault: str) -> Step:
    def step(board: Board, sensor: Any) -> Answer:
        board.clock.epoch += 1
        setattr(board.flash, fault, True)
        told = _release(x)(board, sensor)
        setattr(board.flash, fault, False)
        return told

    return step


def _back(x: list[int]) -> Step:
    def step(board: Board, sensor: Any) -> Answer:
        now, board.clock.epoch = board.clock.epoch, 1
        told = _release(x)(board, sensor)
        board.clock.epoch = now
        return told

    return step


def _closed(x: list[int]) -> Step:
    def step(board: Board, sensor: Any) -> Answer:
        sensor.close()
        return _release(x)(board, sensor)

    return step


def _damage(chance: random.Random) -> bytes:
    """What is turned in both slots: a bit or a byte of one, of both, of the same place, or a whole slot."""
    slots = chance.choice(((0,), (1,), (0, 1)))
    place, bits = chance.randrange(SLOT_BYTES), chance.choice((1 << chance.randrange(8), chance.randrange(1, 256)))
    turned = bytearray(2 * SLOT_BYTES)
    for slot in slots:
        turned[slot * SLOT_BYTES + place] = bits
        if chance.random() < 0.2:
            turned[slot * SLOT_BYTES : (slot + 1) * SLOT_BYTES] = chance.randbytes(SLOT_BYTES)
    return bytes(turned)


def _damaged(turned: bytes) -> Step:
    """What is counted after it stays: a sensor that opened on one good slot goes on from there."""

    def step(board: Board, sensor: Any) -> Answer:
        kept = board.flash.image
        board.flash.restore(bytes(a ^ b for a, b in zip(kept, turned, strict=True)))
        told = _reset(SeededEntropy, 5)(board, sensor)
        if told["open"] != Status.OK:
            board.flash.restore(kept)
        return told

    return step
