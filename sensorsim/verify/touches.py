"""What a release in a program touches: the addresses of data for different records, and the operands of operations
whose time depends on them. A load or store that is skipped by its condition shows here, and not in the path."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sensorsim.device.entropy import SeededEntropy
from sensorsim.machine.counting import BlockCounter
from sensorsim.machine.elf import Program
from sensorsim.machine.emulated_sensor import EmulatedSensor
from sensorsim.machine.instructions import Instruction
from sensorsim.machine.watching import Steps, Touched, Watch, first_difference
from sensorsim.verify.life_steps import Board, record

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
        """The same public state again, with this entropy."""
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
    """Other records with one entropy, for the addresses; then other entropy too, for the operands."""
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
    """The first access that the first call and another do not share: function, instruction, address."""
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
