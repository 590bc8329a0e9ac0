"""Count what each call of a sensor in a program executes: instructions, cycles, stack, and whether secrets change it.

The public inputs stay the same from trial to trial: the flash, the clock and the length of the record. Only what is
secret changes, the record and the entropy. Where the blocks that run then differ, the branch is named. For a release
the addresses of data are compared too, and the operands of operations whose time depends on them: a load or store that
is skipped by its condition shows there, and not in the path.

After a call no key that was used, no random word and no entropy may be found in the sensor's state, on the stack or in
the program's variables; the key that is next, in the state alone. The firmware model says which words to look for. A
release changes nothing but the sensor's state, the packet and the stack, and at no place of these is half a word, a
feature of the record or its sketch found again and again. Registers are not looked at.
"""

import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sensorsim._util.errors import FailedProofError
from sensorsim.codegen.manifest import Package
from sensorsim.costing.prices import load_cpu
from sensorsim.device.entropy import SeededEntropy
from sensorsim.device.sensor import Sensor
from sensorsim.device.status import Status
from sensorsim.kernels.formats import ONE
from sensorsim.kernels.generator import KEY_WORDS, SEED_BYTES, fresh_words
from sensorsim.language.numba_backend import outer
from sensorsim.language.secrecy import TIMED
from sensorsim.language.types import Struct
from sensorsim.machine.abi import PAGE, STACK_BYTES
from sensorsim.machine.counting import BlockCounter, Spread, Tally
from sensorsim.machine.elf import Program
from sensorsim.machine.emulated_sensor import GARBAGE, ROOM, EmulatedSensor
from sensorsim.machine.emulator import PAINT
from sensorsim.machine.instructions import Decoder, Instruction
from sensorsim.machine.targets import Target
from sensorsim.machine.watching import Steps, Touched, Watch, first_difference
from sensorsim.verification.kernel_timing import Proof
from sensorsim.verification.sensor_life import Board, SensorBuild, record

Case = tuple[int, list[int]]  # a seed and a record
Access = tuple[int, int]  # address of the instruction, and of the data


@dataclass(frozen=True)
class Touches:
    """How many sequences of data addresses there were when only the record changed: all of them, and those without
    what is read of constants in flash, where a package declares that secrets choose the place in a table."""

    records: int
    addresses: int
    addresses_in_ram: int
    access: str  # the first instruction that touched another one; one in RAM where there is any
    operations: tuple[str, ...]  # that took other operands for other secrets, and whose time depends on these


class Releases:
    """Releases from one state of flash and clock, each after an open of its own."""

    def __init__(self, core: EmulatedSensor, board: Board, image: bytes, now: int) -> None:
        self.core, self.board, self.image, self.now = core, board, image, now

    def prepare(self, seed: int) -> None:
        """Restore the same public state, with this entropy."""
        self.board.flash.restore(self.image)
        self.board.clock.epoch, self.board.entropy = self.now, SeededEntropy(seed)
        self.core.reset()

    def made(self, watch: Watch | Steps, cases: Sequence[Case]) -> Iterator[int]:
        """Yields the number of each case when its release is done; only the release is watched."""
        for place, (seed, x) in enumerate(cases):
            self.prepare(seed)
            self.core.open()
            with watch:
                self.core.release(x)
                yield place


def watch_releases(releases: Releases, counter: BlockCounter, trials: int, chance: random.Random) -> Touches:
    """Watch releases of other records with one entropy, for addresses; then other entropy too, for operands."""
    n, seed = releases.core.firmware.n, chance.getrandbits(64)
    records = [[0] * n, [32768] * n, *(record(n, chance) for _ in range(trials - 2))]
    steps = Steps(counter.machine)
    touched = [steps.take()[1] for _ in releases.made(steps, [(seed, x) for x in records])]
    program = counter.machine.program
    in_ram = [[access for access in one if not _constant(program, access[1])] for one in touched]
    access = _first_access(counter, in_ram) or _first_access(counter, touched)
    whole, own = (len({tuple(one) for one in lists}) for lists in (touched, in_ram))
    return Touches(len(records), whole, own, access, _operations(releases, counter, records, chance))


def _constant(program: Program, address: int) -> bool:
    return any(not part.writable and part.address <= address < part.end for part in program.sections)


def _first_access(counter: BlockCounter, touched: Sequence[Sequence[Access]]) -> str:
    """Name the first access that the first call and another do not share: function, instruction, address."""
    for other in touched[1:]:
        place = first_difference(touched[0], other)
        if place is None:
            continue
        at = (touched[0] if place < len(touched[0]) else other)[place][0]
        known = (one.text for block in counter.known.values() for one in block if one.address == at)
        return f"{counter.owner(at)}: `{next(known, 'an instruction')}` at 0x{at:x}"
    return ""


def _operations(
    releases: Releases, counter: BlockCounter, records: Sequence[list[int]], chance: random.Random
) -> tuple[str, ...]:
    timed = {one.address: one for instructions in counter.timed.values() for one in instructions}
    watch = Watch(counter.machine, {address: one.reads for address, one in timed.items() if one.reads})
    cases = [(chance.getrandbits(64), x) for x in records]
    return _on_secrets(counter, timed, [watch.take() for _ in releases.made(watch, cases)])


def _on_secrets(counter: BlockCounter, timed: Mapping[int, Instruction], touched: Sequence[Touched]) -> tuple[str, ...]:
    unit, found = counter.decoder.cpu.unit, []
    for address, one in sorted(timed.items()):
        if one.timed and len({seen.operands.get(address) for seen in touched}) > 1:
            price = f"{one.timed[0]:g}–{one.timed[1]:g} {unit}"
            found.append(f"{counter.owner(address)}: `{one.text}` at 0x{address:x} ({price})")
    return tuple(found)


SHOWN = 4  # branches that a proof names
NO_BRANCH = "the order of blocks differs, and no conditional branch does: a table of jumps, or a conditional return"


@dataclass(frozen=True)
class CallResult:
    """One function of the sensor. `paths` is how many sequences of instructions ran when only secrets changed."""

    call: str
    calls: int
    instructions: Spread
    price: Spread | None  # None where the table has no price for something that ran
    unit: str
    stack_bytes: int
    paths: int
    varying: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Calls:
    """All calls, what a release touches, the bytes of RAM that the sensor's state takes, and the functions that ran."""

    results: tuple[CallResult, ...]
    touches: Touches
    state_bytes: int
    functions: tuple[str, ...]

    @property
    def same_path(self) -> bool:
        return all(result.paths == 1 for result in self.results)


class _Watch:
    """Counts calls of one core, by the call's name."""

    def __init__(self, core: EmulatedSensor, target: Target) -> None:
        self.core, self.cpu = core, load_cpu(target.cpu)
        self.counter = BlockCounter(core.machine, Decoder(target, self.cpu))
        self.tallies: dict[str, Tally] = {}
        self.stack: dict[str, int] = {}

    def call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        machine = self.core.machine
        machine.paint()
        machine.forget()
        answer = function(*arguments)
        self.counter.take(self.tallies.setdefault(name, Tally()))
        self.stack[name] = max(self.stack.get(name, 0), machine.stack_bytes())
        return answer

    def results(self) -> Iterator[CallResult]:
        for name, tally in self.tallies.items():
            stack, paths = self.stack[name], len(tally.sequences)
            yield CallResult(
                name, tally.calls, tally.spread, tally.price, self.cpu.unit, stack, paths, _varying(tally),
                tuple(sorted(note for note in tally.notes if "no price" in note)),
            )  # fmt: skip


def watch_calls(build: SensorBuild, trials: int, seed: int = 1) -> Calls:
    """Open and release from one state of the flash, each time with another record and other entropy."""
    board, chance = Board(), random.Random(seed)
    core, firmware = build.sensor(board), build.firmware
    watch = _Watch(core, build.target)
    _must(watch.call("open, blank memory", core.open), "open")
    board.clock.epoch += 1
    _must(core.release([0] * firmware.n)[0], "release")
    releases = Releases(core, board, board.flash.image, board.clock.epoch + 1)
    for trial in range(trials):
        releases.prepare(chance.getrandbits(64))
        _must(watch.call("open", core.open), "open")
        x = [trial * 32768] * firmware.n if trial < 2 else record(firmware.n, chance)
        _must(watch.call("release", core.release, x)[0], "release")
    touched = bytes(core.machine.uc.mem_read(core.sensor, ROOM)).rstrip(bytes([GARBAGE]))
    for name, function in (("left", core.left), ("close", core.close)):
        if build.has(name):
            watch.call(name, function)
    ran = {name for tally in watch.tallies.values() for part in tally.parts.values() for name in part.functions}
    touches = watch_releases(releases, watch.counter, trials // 2, chance)
    return Calls(tuple(watch.results()), touches, len(touched) + 3 & ~3, tuple(sorted(ran)))


def timing_proofs(calls: Calls, package: Package) -> list[Proof]:
    """Prove that secrets change no path, no address and no operand of a slow operation. Each fails unless a
    kernel declares it, and of addresses only places in constant tables may be declared."""
    accepted = {found.kind for one in package.kernels for found in one.secrecy().exceptions}
    declared = "address" in accepted
    varying = [f"{one.call} takes {one.paths} paths by its secrets ({', '.join(one.varying[:SHOWN])})"
               for one in calls.results if one.paths > 1]  # fmt: skip
    if varying:  # then addresses differ anyhow
        return [Proof("path", bool(accepted & set(TIMED)), "; ".join(varying))]
    trials, touches = max(one.calls for one in calls.results), calls.touches
    told = f"the same for {touches.records} records with one entropy"
    if touches.addresses > 1:
        told = f"in RAM {told}; in flash places in tables, as declared"
    if touches.addresses_in_ram > 1 or (touches.addresses > 1 and not declared):
        told = f"a release touches other data for other records, first {touches.access}"
    same = touches.addresses_in_ram == 1 and (touches.addresses == 1 or declared)
    proofs = [
        Proof("path", True, f"the same instructions for {trials} records and seeds of one public state"),
        Proof("addresses", same, told),
    ]
    if slow := touches.operations:
        named = f"other operands for other secrets: {', '.join(slow[:SHOWN])}"
        proofs.append(Proof("operations", "operation" in accepted, named))
    return proofs


def _must(status: Status, what: str) -> None:
    if status != Status.OK:
        raise FailedProofError(f"the sensor of the image answers {status.name} to {what}, the model OK.")


def _varying(tally: Tally) -> tuple[str, ...]:
    """Name the branches that went another way: function, instruction, address."""
    if tally.constant_time:
        return ()
    found = []
    for address, text in sorted(tally.varying.items()):
        function, _, instruction = text.partition(": ")
        found.append(f"{function}: `{instruction}` at 0x{address:x}")
    return tuple(found) or (NO_BRANCH,)


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
