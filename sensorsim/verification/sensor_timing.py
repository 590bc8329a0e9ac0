"""What each call of a sensor in a program executes: instructions, cycles, stack, and whether secrets change it.

The public inputs stay the same from trial to trial: the flash, the clock and the length of the record. Only what is
secret changes, the record and the entropy. Where the blocks that run then differ, the branch is named. For a release
the addresses of data are compared too, and the operands of operations whose time depends on them: a load or store that
is skipped by its condition shows there, and not in the path.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sensorsim._util.errors import FailedProofError
from sensorsim.codegen.manifest import Package
from sensorsim.costing.prices import load_cpu
from sensorsim.device.entropy import SeededEntropy
from sensorsim.device.status import Status
from sensorsim.language.secrecy import TIMED
from sensorsim.machine.counting import BlockCounter, Spread, Tally
from sensorsim.machine.elf import Program
from sensorsim.machine.emulated_sensor import GARBAGE, ROOM, EmulatedSensor
from sensorsim.machine.instructions import Decoder, Instruction
from sensorsim.machine.targets import Target
from sensorsim.machine.watching import Steps, Touched, Watch, first_difference
from sensorsim.verification.findings import Proof
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
