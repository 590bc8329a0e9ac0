"""What each call of a sensor in a program executes: instructions, cycles, stack, and whether secrets change the path.

The public inputs stay the same from trial to trial: the flash, the clock and the length of the record. Only what is
secret changes, the record and the entropy. Where the blocks that run then differ, the branch is named.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sensorsim.cost.prices import load_cpu
from sensorsim.device.firmware import Firmware
from sensorsim.device.status import Status
from sensorsim.errors import FailedProofError
from sensorsim.export.manifest import Package
from sensorsim.language.secrecy import TIMED
from sensorsim.machine.counting import BlockCounter, Spread, Tally
from sensorsim.machine.elf import Program
from sensorsim.machine.emulated_sensor import GARBAGE, ROOM, EmulatedSensor
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.targets import Target
from sensorsim.verify.life import core_sensor
from sensorsim.verify.life_steps import Board, record
from sensorsim.verify.proof import Proof
from sensorsim.verify.touches import Releases, Touches, watch_releases

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


def watch_calls(target: Target, program: Program, firmware: Firmware, prefix: str, trials: int, seed: int = 1) -> Calls:
    """Open and release from one state of the flash, each time with another record and other entropy."""
    board, chance = Board(), random.Random(seed)
    core = core_sensor(target, program, firmware, prefix, board)
    watch = _Watch(core, target)
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
        if f"{prefix}sensor_{name}" in program.symbols:
            watch.call(name, function)
    ran = {name for tally in watch.tallies.values() for part in tally.parts.values() for name in part.functions}
    touches = watch_releases(releases, watch.counter, trials // 2, chance)
    return Calls(tuple(watch.results()), touches, len(touched) + 3 & ~3, tuple(sorted(ran)))


def timing_proofs(calls: Calls, package: Package) -> list[Proof]:
    """Whether secrets change what runs, which data is touched or the operands of slow operations. Each fails unless a
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
    """The branches that went another way: function, instruction, address."""
    if tally.constant_time:
        return ()
    found = []
    for address, text in sorted(tally.varying.items()):
        function, _, instruction = text.partition(": ")
        found.append(f"{function}: `{instruction}` at 0x{address:x}")
    return tuple(found) or (NO_BRANCH,)
