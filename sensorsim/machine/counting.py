"""Count what calls of a function executed: instructions by class, their price, constant time, worst case."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from sensorsim.costing.prices import Cpu
from sensorsim.language import ir
from sensorsim.language.kernel import Kernel, reachable
from sensorsim.machine.emulator import Machine
from sensorsim.machine.instructions import CLASSES, Decoder, Instruction

MOST_KEPT = 1000  # sums of different sequences
ON_DATA = ("u32", "i32")  # types of a loop's end that is data; lengths and constants have others


@dataclass(frozen=True)
class Spread:
    """Hold the least, mean and largest of a number of measurements."""

    min: float
    mean: float
    max: float


@dataclass(frozen=True)
class Sums:
    """Hold what one call executed."""

    instructions: int
    price: float
    classes: dict[str, int]
    prices: dict[str, float]
    functions: dict[str, int]
    worst: float = math.nan  # every instruction at its largest price
    timed: dict[str, int] = field(default_factory=dict)  # instructions whose time depends on operands: how many ran
    entered: dict[str, int] = field(default_factory=dict)  # by function that is called: how often


@dataclass
class Tally:
    """Collect the calls of one function on one core."""

    instructions: list[int] = field(default_factory=list)  # of each call
    prices: list[float] = field(default_factory=list)
    sequences: Counter[int] = field(default_factory=Counter)  # how many calls executed each sequence
    parts: dict[int, Sums] = field(default_factory=dict)  # by sequence
    notes: set[str] = field(default_factory=set)  # rows of the table that are disputed or estimates
    branches: dict[int, tuple[int, int]] = field(default_factory=dict)  # by block: how often it ran, and jumped
    varying: dict[int, str] = field(default_factory=dict)  # branches that depend on the data: where, what

    @property
    def calls(self) -> int:
        return len(self.instructions)

    @property
    def spread(self) -> Spread:
        return _spread(self.instructions)

    @property
    def price(self) -> Spread | None:
        """Return the spread of the prices; None where the table has no price for something that ran."""
        return None if any(map(math.isnan, self.prices)) else _spread(self.prices)

    @property
    def constant_time(self) -> bool:
        """Return whether every call executed the same instructions in the same order."""
        return len(self.sequences) == 1

    def mean(self, what: str) -> dict[str, float]:
        """Return the mean over the calls of `classes`, `prices` or `functions`."""
        totals: Counter[str] = Counter()
        for fingerprint, calls in self.sequences.items():
            for name, value in getattr(self.parts[fingerprint], what).items():
                totals[name] += value * calls
        order = [name for name in CLASSES if name in totals] or sorted(totals)
        return {name: totals[name] / self.calls for name in order}


class CallCounter:
    """Add up what calls on a machine execute; of calls that execute the same sequence, once."""

    def __init__(self, machine: Any) -> None:
        """Count on a machine, which has the fingerprint of its last call and a `program`."""
        self.machine = machine
        self.sums: dict[int, Sums] = {}  # by fingerprint
        self.known: dict[int, list[Instruction]] = {}  # by address of a block
        # Of two names of one address the plain one comes last, which is the one that is reported.
        symbols = machine.program.symbols.items()
        named = sorted((address & ~1, not name.startswith("compiler_rt"), name) for name, (address, _) in symbols)
        self.owners = [(address, name) for address, _, name in named]  # where functions begin, in ascending order
        self.entries = dict(self.owners)

    def take(self, tally: Tally) -> None:
        """Add what ran since the last `take` as one call, and forget it."""
        fingerprint = self.machine.fingerprint
        sums = self.sums.get(fingerprint)  # the same sequence has the same sums
        if sums is None:
            sums = self.add_up(tally)
            if len(self.sums) < MOST_KEPT:
                self.sums[fingerprint] = sums
        self.machine.forget()
        tally.instructions.append(sums.instructions)
        tally.prices.append(sums.price)
        tally.sequences[fingerprint] += 1
        tally.parts[fingerprint] = sums

    def blocks(self) -> Iterable[tuple[int, int, int, int]]:
        """Return address, size, how often it ran and how often it jumped of every block since the last `take`."""
        raise NotImplementedError

    def decode(self, start: int, size: int) -> list[Instruction]:
        """Return the instructions of a block."""
        raise NotImplementedError

    def add_up(self, tally: Tally) -> Sums:
        """Return the sums of what ran since the last call was taken."""
        classes, functions, timed = Counter[str](), Counter[str](), Counter[str]()
        prices, entered, worst = dict.fromkeys(CLASSES, 0.0), dict[str, int](), 0.0
        for start, size, count, taken in self.blocks():
            if start not in self.known:
                self.known[start] = self.decode(start, size)
            block, owner = self.known[start], self.owner(start)
            functions[owner] += count * len(block)
            if start in self.entries:
                entered[self.entries[start]] = count
            for one in block:
                classes[one.kind] += count
                prices[one.kind] += count * one.price
                worst += count * one.price_max
                if one.timed:
                    timed[one.plural] += count
                if one.note:
                    tally.notes.add(f"{one.text.split()[0]}: {one.note}")
            last = block[-1]
            if last.conditional:
                prices["branch"] += taken * (last.price_taken - last.price)  # above one that falls through
                worst += taken * (last.price_taken_max - last.price_max)
                if tally.branches.setdefault(start, (count, taken)) != (count, taken):
                    tally.varying[last.address] = f"{owner}: {last.text}"
        counts = {name: classes[name] for name in CLASSES if name in classes}
        spent = {name: prices[name] for name in counts}
        return Sums(classes.total(), sum(spent.values()), counts, spent, dict(functions), worst, dict(timed), entered)

    def owner(self, address: int) -> str:
        """Return the function that the address lies in."""
        place = bisect_right(self.owners, address, key=itemgetter(0))
        return self.owners[place - 1][1] if place else "?"


class BlockCounter(CallCounter):
    """Add up what an emulated machine executes, decoding each block once."""

    machine: Machine

    def __init__(self, machine: Machine, decoder: Decoder) -> None:
        super().__init__(machine)
        self.decoder = decoder

    def blocks(self) -> Iterable[tuple[int, int, int, int]]:
        """Return the machine's blocks."""
        return self.machine.blocks().tolist()  # type: ignore[no-any-return]

    def decode(self, start: int, size: int) -> list[Instruction]:
        """Decode a block from memory."""
        return self.decoder.block(start, self.machine.read_code(start, size), self.machine.read_code)

    @property
    def timed(self) -> dict[int, list[Instruction]]:
        """Return the instructions whose time depends on their operands, by block."""
        timed = {start: [one for one in block if one.timed] for start, block in self.known.items()}
        return {start: block for start, block in timed.items() if block}

    def branching(self) -> set[str]:
        """Return the functions that took a conditional branch so far."""
        return {self.owner(start) for start, instructions in self.known.items() if instructions[-1].conditional}


def _spread(values: list[Any]) -> Spread:
    return Spread(min(values), sum(values) / len(values), max(values))


@dataclass(frozen=True)
class WorstCase:
    """Hold the worst-case cost of a call in the unit of the table; None with the reason where there is no bound."""

    cost: float | None
    unit: str
    core: str  # the configuration that it is for
    why: str


def describe_core(cpu: Cpu) -> str:
    """Describe the core of a worst case, with the configuration of its table."""
    return f"{cpu.title} as in {cpu.path.name}" + (f" ({cpu.configuration})" if cpu.configuration else "")


def worst_case(
    kernel: Kernel, counter: BlockCounter, tally: Tally, cpu: Cpu, prefix: str, decided: str = ""
) -> WorstCase:
    """Bound the cost of calls at the lengths of the tally's calls: a single path at its largest prices.

    `decided` is the result of `taint.find_data_branch`: where no branch, conditional return or computed jump of the
    compiled code depends on data, every input at these lengths takes the same path, and the counts of one run are those
    of all. What varies is how long each instruction takes, and of that the table has the maximum. A branch on data ends
    the proof, and then there is no bound.

    The bound rests on the kernel's ranges (no index leaves its array), on the disassembler, and on the table. It holds
    for the core of the table: no wait states, no interrupts, no cache.
    """
    core = f"{describe_core(cpu)}: memory without wait states, no interrupt"
    reason = _no_bound(kernel, counter, tally, prefix) or decided
    if reason:
        return WorstCase(None, cpu.unit, core, f"no bound: {reason}")
    largest = max(part.worst for part in tally.parts.values())
    if math.isnan(largest):
        return WorstCase(None, cpu.unit, core, "no bound: the table has no price for all that ran")
    by = ", by estimated prices" if any(note.endswith(": estimate") for note in tally.notes) else ""
    why = f"no branch depends on data, so every input takes one path; each instruction at its largest price{by}"
    return WorstCase(largest, cpu.unit, core, why)


def _no_bound(kernel: Kernel, counter: BlockCounter, tally: Tally, prefix: str) -> str:
    """Return why a run does not show all that can run, or ""."""
    runtime = sorted(name for name in counter.branching() if not name.startswith(prefix))
    if runtime:
        return f"the steps of {' and '.join(runtime)} of the compiler's runtime depend on data"
    for part in reachable([kernel]):
        for node in part.nodes:
            rounds = (node.first.type, node.last.type) if isinstance(node, ir.For) else ()
            if isinstance(node, ir.If) or any(end in ON_DATA for end in rounds):
                return f"branches on data, `{ir.shown(node)}` ({node.at})"
    if not tally.constant_time:  # the compiler made a branch of what is none in the source
        return "branches on data: " + "; ".join(tally.varying.values() or ["the compiled code took several paths"])
    return ""
