"""What calls of a function executed: instructions by class, their price, and whether the sequence ever changed."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sensorsim.machine.decode import CLASSES, Decoder, Instruction
from sensorsim.machine.emulator import Machine

MOST_KEPT = 1000  # sums of different sequences


@dataclass(frozen=True)
class Spread:
    """The least, mean and largest of a number of measurements."""

    min: float
    mean: float
    max: float


@dataclass(frozen=True)
class Sums:
    """What one call executed."""

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
    """The calls of one function on one core."""

    instructions: list[int] = field(default_factory=list)  # of each call
    prices: list[float] = field(default_factory=list)
    sequences: Counter[int] = field(default_factory=Counter)  # how many calls executed each sequence
    parts: dict[int, Sums] = field(default_factory=dict)  # by sequence
    notes: set[str] = field(default_factory=set)  # rows of the table that are disputed or estimates
    branches: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # by block: how often it ran, how often it jumped
    varying: dict[int, str] = field(default_factory=dict)  # branches that depend on the data: where, what

    @property
    def calls(self) -> int:
        return len(self.instructions)

    @property
    def spread(self) -> Spread:
        return _spread(self.instructions)

    @property
    def price(self) -> Spread | None:
        """None where the table has no price for something that ran."""
        return None if any(map(math.isnan, self.prices)) else _spread(self.prices)

    @property
    def constant_time(self) -> bool:
        """Whether every call executed the same instructions in the same order."""
        return len(self.sequences) == 1

    def mean(self, what: str) -> dict[str, float]:
        """The mean over the calls of `classes`, `prices` or `functions`."""
        totals: Counter[str] = Counter()
        for fingerprint, calls in self.sequences.items():
            for name, value in getattr(self.parts[fingerprint], what).items():
                totals[name] += value * calls
        order = [name for name in CLASSES if name in totals] or sorted(totals)
        return {name: totals[name] / self.calls for name in order}


class CallCounter:
    """Adds up what calls on a machine execute; of calls that execute the same sequence, once."""

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
        raise NotImplementedError

    def owner(self, address: int) -> str:
        """The function that the address lies in."""
        name = "?"
        for start, candidate in self.owners:
            if start > address:
                break
            name = candidate
        return name


class BlockCounter(CallCounter):
    """Adds up what a machine executes, decoding each block once."""

    machine: Machine

    def __init__(self, machine: Machine, decoder: Decoder) -> None:
        import numpy as np

        super().__init__()
        self.machine, self.decoder = machine, decoder
        self.known: dict[int, list[Instruction]] = {}
        self.rows: dict[
            int, Any
        ] = {}  # by block: instructions and price by class, largest price, what a jump adds (most, usual)
        self.timed: dict[int, list[Instruction]] = {}  # by block: those whose time depends on their operands
        self.zeros = np.zeros(2 * len(CLASSES) + 3)
        # Of two names of one place the plain one comes last, which is the one that is told.
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
        worst, timed = float(totals[-1] + (blocks[:, 3] * rows[:, -2]).sum()), self.timed_of(branches)
        return Sums(sum(classes.values()), sum(prices.values()), classes, prices, functions, worst, timed, entered)

    def timed_of(self, blocks: Mapping[int, tuple[int, int]]) -> dict[str, int]:
        """How many instructions of each kind ran whose time depends on their operands."""
        ran: Counter[str] = Counter()
        for start, instructions in self.timed.items():
            for instruction in instructions:
                ran[instruction.plural] += blocks.get(start, (0, 0))[0]
        return dict(+ran)

    def branching(self) -> set[str]:
        """The functions that took a conditional branch so far."""
        return {self.owner(start) for start, instructions in self.known.items() if instructions[-1].conditional}

    def row(self, start: int, size: int, tally: Tally) -> Any:
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
