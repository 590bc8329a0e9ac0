"""Compare the sensor inside a program with the firmware model, step by step through one life.

A life has releases, resets, power cuts in the middle of stores, flash that wears out, entropy that fails, a clock that
runs backward and a journal that is damaged. After every step both must have answered the same and left the same in
flash.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim.device.entropy import Entropy, FailingEntropy, SeededEntropy, StuckEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.flash import MODES, Flash, PowerCut
from sensorsim.device.sensor import Clock, Sensor
from sensorsim.device.status import Status
from sensorsim.kernels.journal import IDENTITY_AT, IDENTITY_BYTES, RESERVE_AT, SLOT_BYTES
from sensorsim.machine.elf import Program
from sensorsim.machine.emulated_sensor import EmulatedSensor
from sensorsim.machine.targets import Target

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


Step = tuple[Any, ...]  # a kind and its arguments, for `take_step`


def steps_of(firmware: Firmware, releases: int, closes: bool, seed: int) -> Iterator[tuple[str, Step]]:
    """Yield the steps of a life: a reset, then releases; now and then something goes wrong."""
    chance = random.Random(seed)
    yield "reset on blank memory", ("reset", SeededEntropy, chance.getrandbits(64))
    for number in range(releases):
        if chance.random() < 0.9 / firmware.releases or chance.random() < 0.2:
            yield "a new epoch", ("later", chance.choice((1, 1, 1, 2, 1000)))
        yield f"release {number + 1}", ("release", record(firmware.n, chance))
        event = chance.random()
        if event < 0.08:
            yield "reset", ("reset", SeededEntropy, chance.getrandbits(64))
        elif event < 0.18:
            mode, after = chance.choice(MODES), chance.randrange(2 * SLOT_BYTES)
            yield f"cut after {after} bytes ({mode})", ("cut", record(firmware.n, chance), after, mode)
            yield "reset after it", ("reset", SeededEntropy, chance.getrandbits(64))
        elif event < 0.36:
            yield _trouble(firmware, closes, chance)
            yield "reset after it", ("reset", SeededEntropy, chance.getrandbits(64))


def _trouble(firmware: Firmware, closes: bool, chance: random.Random) -> tuple[str, Step]:
    """Choose one thing that goes wrong."""
    x, kinds = record(firmware.n, chance), ["worn", "deaf", "stuck", "fails", "clock", *(["closed"] * closes)]
    kind = chance.choice([*kinds, *["journal"] * len(kinds)])
    if kind == "journal":
        return "reset with a damaged journal", ("damaged", _damage(chance))
    return {
        "worn": ("release on worn flash", ("wear", x)),
        "deaf": ("release on deaf flash", ("fail_load", x)),
        "clock": ("release before the journal's epoch", ("back", x)),
        "closed": ("release of a closed sensor", ("closed", x)),
        "stuck": ("reset with entropy that is stuck", ("reset", StuckEntropy, 7)),
        "fails": ("reset with entropy that fails", ("reset", FailingEntropy, 7)),
    }[kind]


def take_step(board: Board, sensor: Any, kind: str, *given: Any) -> Answer:
    """Do one step on a board; return the answers of the sensor, and the journal that is left."""
    flash, now = board.flash, board.clock.epoch
    if kind == "cut":
        x, after, mode = given
        board.clock.epoch += 1  # so that something is stored
        flash.cut(after, mode)
        said = [str(answer(sensor.release, x)) for _ in range(2)]
        flash.never_cut()
        return {"release": said[0], "release after it": said[1], "journal": flash.image}
    if kind == "damaged":  # later counts stay: a sensor that opened on one good slot goes on from there
        whole = flash.image
        flash.restore(bytes(a ^ b for a, b in zip(whole, given[0], strict=True)))
        found = take_step(board, sensor, "reset", SeededEntropy, 5)
        if found["open"] != Status.OK:
            flash.restore(whole)
        return found
    found = {}
    if kind == "later":
        board.clock.epoch += given[0]
    elif kind == "reset":
        make, seed = given
        board.entropy = make(seed)
        sensor.reset() if isinstance(sensor, EmulatedSensor) else sensor.close()
        found = {"open": answer(sensor.open)}
    else:  # a release, which may be in trouble
        if kind == "closed":
            sensor.close()
        elif kind == "back":
            board.clock.epoch = 1
        elif kind != "release":
            board.clock.epoch += 1
            setattr(flash, kind, True)
        made = answer(sensor.release, given[0])
        found = {"status": made[0], "packet": made[1]} if isinstance(made, tuple) else {"status": made}
    left = {"left": answer(sensor.left)} if board.asks else {}
    found = {**found, **left, "journal": flash.image}
    if kind == "back":
        board.clock.epoch = now
    elif kind in ("wear", "fail_load"):
        setattr(flash, kind, False)
    return found


def record(n: int, chance: random.Random) -> list[int]:
    """Return a random record of edges and numbers in between."""
    return [chance.choice(EDGES) if chance.random() < 0.4 else chance.randrange(32769) for _ in range(n)]


def answer(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call, or what stopped it."""
    try:
        return call(*arguments)
    except PowerCut:
        return "the power cut"
    except (InputError, ValueError) as error:
        return str(error)


def _damage(chance: random.Random) -> bytes:
    """Choose the bits to flip in both slots: a bit or a byte of one, of both, or a whole slot."""
    slots = chance.choice(((0,), (1,), (0, 1)))
    place, bits = chance.randrange(SLOT_BYTES), chance.choice((1 << chance.randrange(8), chance.randrange(1, 256)))
    turned = bytearray(2 * SLOT_BYTES)
    for slot in slots:
        turned[slot * SLOT_BYTES + place] = bits
        if chance.random() < 0.2:
            turned[slot * SLOT_BYTES : (slot + 1) * SLOT_BYTES] = chance.randbytes(SLOT_BYTES)
    return bytes(turned)


MOST_TRIED = 1000


@dataclass(frozen=True)
class Life:
    """A life that both went through. `difference` describes the first one, and is empty where there was none."""

    releases: int
    resets: int
    cuts: int
    steps: int
    difference: str


@dataclass(frozen=True)
class SensorBuild:
    """A linked program with a sensor, and the firmware that it should be. Statements about a sensor are made of it."""

    target: Target
    program: Program
    firmware: Firmware
    prefix: str

    def sensor(self, board: Board) -> EmulatedSensor:
        """Return the program's sensor on a board."""
        own = (board.flash, board.draw, board.clock)
        return EmulatedSensor(self.target, self.program, self.firmware, self.prefix, *own)

    def has(self, call: str) -> bool:
        """Return whether the program has this function of a sensor; linkers drop what nobody calls."""
        return f"{self.prefix}sensor_{call}" in self.program.symbols


def as_built(build: SensorBuild) -> tuple[SensorBuild, tuple[str, ...]]:
    """Return the build with the budget and reserve that the program was made with, and how they differ.

    A package lets a build allow fewer releases, or count others ahead. What the certificate speaks of must be the same.
    """
    board, notes, firmware, prefix = Board(), [], build.firmware, build.prefix
    core = build.sensor(board)
    status = answer(core.open)
    if status != Status.OK:
        raise FailedProofError(f"{prefix}sensor_open on blank memory answers {_said(status)}, the model OK.")
    slot = board.flash.load(0)
    if slot[IDENTITY_AT : IDENTITY_AT + IDENTITY_BYTES] != firmware.journal_identity:
        raise FailedProofError(
            "the journal's identity is not the package's: the image was built from another table, encoder, sketch or "
            "length of an epoch; build it from this package."
        )
    upper, reserve = prefix.upper(), slot[RESERVE_AT]
    budget = answer(core.left) if build.has("left") else _allowed(core, firmware)
    if not isinstance(budget, int):
        raise FailedProofError(f"{prefix}sensor_left gives no number: {budget}")
    if budget > firmware.releases or budget < 1:
        raise FailedProofError(
            f"{upper}BUDGET: the image allows {budget} releases in an epoch and the package {firmware.releases}; "
            "build it from this package."
        )
    if reserve > budget:
        raise FailedProofError(f"{upper}RESERVE: the image counts {reserve} ahead, more than the {budget} it allows.")
    if budget != firmware.releases:
        notes.append(f"{upper}BUDGET is {budget} in the image and {firmware.releases} in the package, which allows it")
        firmware = replace(firmware, budget_epsilon=str(budget * firmware.epsilon), reserve=1)
    if reserve != firmware.reserve:
        notes.append(f"{upper}RESERVE is {reserve} in the image and {firmware.reserve} in the package")
        firmware = replace(firmware, reserve=reserve)
    return replace(build, firmware=firmware), tuple(notes)


def _allowed(core: EmulatedSensor, firmware: Firmware) -> int:
    """Count the releases of one epoch by trying; a budget that is too large to try is taken as the package's."""
    if firmware.releases > MOST_TRIED:
        return firmware.releases
    for made in range(firmware.releases + 1):
        status = answer(core.release, [0] * firmware.n)
        if not isinstance(status, tuple) or status[0] != Status.OK:
            return made
    return firmware.releases + 1


def run_life(build: SensorBuild, releases: int, seed: int = 1) -> Life:
    """Put both through the same life, until they differ or the releases are made."""
    firmware, asks, closes = build.firmware, build.has("left"), build.has("close")
    boards = (Board(asks=asks), Board(asks=asks))
    core = build.sensor(boards[1])
    model = Sensor(firmware, boards[0].flash, boards[0].draw, boards[0].clock)
    done = {"release": 0, "reset": 0, "cut": 0}
    for number, (what, step) in enumerate(steps_of(firmware, releases, closes, seed)):
        answers = [take_step(board, sensor, *step) for board, sensor in zip(boards, (model, core), strict=True)]
        if answers[0] != answers[1]:
            text = f"step {number + 1}, {what}: {_difference(firmware, answers[0], answers[1])}"
            return Life(done["release"], done["reset"], done["cut"], number + 1, text)
        done["release"] += answers[0].get("status") == Status.OK
        if what.split()[0] in ("reset", "cut"):
            done[what.split()[0]] += 1
    return Life(done["release"], done["reset"], done["cut"], number + 1, "")


def _difference(firmware: Firmware, want: Answer, got: Answer) -> str:
    """Describe the first thing that differs; of a packet, which fields."""
    for name, right in want.items():
        own = got.get(name)
        if own == right:
            continue
        if name == "packet" and isinstance(own, bytes):
            a, b = (int.from_bytes(packet, "little") for packet in (own, right))
            fields = [what for what, at, bits in firmware.layout.fields() if (a ^ b) >> at & (1 << bits) - 1]
            return f"the packet is {own.hex()} and the model's {right.hex()} ({', '.join(fields)})"
        if name == "journal":
            return "the journal in flash is not the model's"
        return f"{name} is {_said(own)} and the model's {_said(right)}"
    return "the program answers more than the model"


def _said(value: Any) -> str:
    return value.name if isinstance(value, Status) else str(value)
