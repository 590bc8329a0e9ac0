"""Count what calls of a function executed: instructions by class, their price, constant time, worst case."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
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

    machine: Any  # with the fingerprint of its last call, and `forget`
    owners: list[tuple[int, str]]  # where functions begin, in ascending order

    def __init__(self) -> None:
        self.sums: dict[int, Sums] = {}  # by fingerprint

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

    def add_up(self, tally: Tally) -> Sums:
        """Return the sums of what ran since the last call was taken."""
        raise NotImplementedError

    def owner(self, address: int) -> str:
        """Return the function that the address lies in."""
        place = bisect_right(self.owners, address, key=itemgetter(0))
        return self.owners[place - 1][1] if place else "?"


class BlockCounter(CallCounter):
    """Add up what a machine executes, decoding each block once."""

    machine: Machine

    def __init__(self, machine: Machine, decoder: Decoder) -> None:
        import numpy as np

        super().__init__()
        self.machine, self.decoder = machine, decoder
        self.known: dict[int, list[Instruction]] = {}
        # By block: instructions and price by class, largest price, what a jump adds (most, usual).
        self.rows: dict[int, Any] = {}
        self.timed: dict[int, list[Instruction]] = {}  # by block: those whose time depends on their operands
        self.zeros = np.zeros(2 * len(CLASSES) + 3)
        # Of two names of one address the plain one comes last, which is the one that is reported.
        symbols = machine.program.symbols.items()
        named = sorted((address & ~1, not name.startswith("compiler_rt"), name) for name, (address, _) in symbols)
        self.owners = [(address, name) for address, _, name in named]
        self.entries = dict(self.owners)

    def add_up(self, tally: Tally) -> Sums:
        import numpy as np

        blocks = self.machine.blocks()
        rows = np.stack([self.row(int(start), int(size), tally) for start, size in blocks[:, :2]])
        totals = blocks[:, 2] @ rows[:, :-2]
        extra = float((blocks[:, 3] * rows[:, -1]).sum())  # what taken branches cost above those that fall through
        size = len(CLASSES)
        classes = {name: round(totals[place]) for place, name in enumerate(CLASSES) if totals[place]}
        prices = {name: float(totals[size + place]) for place, name in enumerate(CLASSES) if totals[place]}
        if extra:
            prices["branch"] = prices.get("branch", 0.0) + extra
        functions: dict[str, int] = {}
        for (start, _, count, _), row in zip(blocks, rows, strict=True):
            owner = self.owner(int(start))
            functions[owner] = functions.get(owner, 0) + int(count * row[:size].sum())
        branches = {int(start): (int(count), int(taken)) for start, _, count, taken in blocks}
        for start, went in branches.items():
            if self.known[start][-1].conditional and tally.branches.setdefault(start, went) != went:
                last = self.known[start][-1]
                tally.varying[last.address] = f"{self.owner(start)}: {last.text}"
        entered = {self.entries[start]: count for start, (count, _) in branches.items() if start in self.entries}
        worst, timed = float(totals[-1] + (blocks[:, 3] * rows[:, -2]).sum()), self.count_timed(branches)
        return Sums(sum(classes.values()), sum(prices.values()), classes, prices, functions, worst, timed, entered)

    def count_timed(self, blocks: Mapping[int, tuple[int, int]]) -> dict[str, int]:
        """Count the instructions that ran whose time depends on their operands, by kind."""
        ran: Counter[str] = Counter()
        for start, instructions in self.timed.items():
            for instruction in instructions:
                ran[instruction.plural] += blocks.get(start, (0, 0))[0]
        return dict(+ran)

    def branching(self) -> set[str]:
        """Return the functions that took a conditional branch so far."""
        return {self.owner(start) for start, instructions in self.known.items() if instructions[-1].conditional}

    def row(self, start: int, size: int, tally: Tally) -> Any:
        """Return the row of a block, and note rows of the table that are not confirmed."""
        if start not in self.rows:
            instructions = self.decoder.block(start, self.machine.read_code(start, size), self.machine.read_code)
            row = self.zeros.copy()
            for instruction in instructions:
                place = CLASSES.index(instruction.kind)
                row[place] += 1
                row[len(CLASSES) + place] += instruction.price
                row[-3] += instruction.price_max
            last = instructions[-1]
            for column, more in ((-2, last.price_taken_max - last.price_max), (-1, last.price_taken - last.price)):
                row[column] = 0.0 if math.isnan(more) else more
            self.rows[start], self.known[start] = row, instructions
            timed = [one for one in instructions if one.timed]
            if timed:
                self.timed[start] = timed
        for instruction in self.known[start]:
            if instruction.note:
                tally.notes.add(f"{instruction.text.split()[0]}: {instruction.note}")
        return self.rows[start]


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
