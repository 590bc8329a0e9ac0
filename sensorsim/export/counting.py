"""What calls of a function executed: instructions by class, their price, and whether the sequence ever changed."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sensorsim.export.decode import CLASSES, Decoder, Instruction
from sensorsim.export.machine import Machine


@dataclass(frozen=True)
class Spread:
    """The least, mean and largest of a number of measurements."""

    min: float
    mean: float
    max: float


@dataclass
class Tally:
    """The calls of one function on one core, one entry per call."""

    instructions: list[int] = field(default_factory=list)
    prices: list[float] = field(default_factory=list)
    classes: Counter[str] = field(default_factory=Counter)  # over all calls
    prices_by_class: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)  # instructions by function, over all calls
    sequences: Counter[int] = field(default_factory=Counter)  # how many calls executed each sequence
    notes: set[str] = field(default_factory=set)  # rows of the table that are disputed or estimates
    varying: dict[int, str] = field(default_factory=dict)  # conditional branches that went both ways: where, what

    @property
    def calls(self) -> int:
        return len(self.instructions)

    @property
    def spread(self) -> Spread:
        return _spread(self.instructions)

    @property
    def price(self) -> Spread:
        return _spread(self.prices)

    def per_call(self, counts: Counter[str]) -> dict[str, float]:
        """A total as a mean over the calls, in the order of CLASSES."""
        return {name: counts[name] / self.calls for name in CLASSES if counts[name]}


class BlockCounter:
    """Adds up what a machine executes, decoding each block once."""

    def __init__(self, machine: Machine, decoder: Decoder) -> None:
        import numpy as np

        self.machine, self.decoder = machine, decoder
        self.known: dict[int, list[Instruction]] = {}
        self.rows: dict[int, Any] = {}  # by block: instructions by class, price by class, price of a taken branch
        self.zeros = np.zeros(2 * len(CLASSES) + 1)
        self.owners = sorted((address & ~1, name) for name, (address, _) in machine.program.symbols.items())

    def take(self, tally: Tally) -> None:
        """Add the calls since the last `take` as one, and forget them."""
        import numpy as np

        blocks = self.machine.blocks()
        self.machine.forget()
        rows = np.stack([self.row(int(start), int(size), tally) for start, size in blocks[:, :2]])
        totals = blocks[:, 2] @ rows[:, :-1]
        extra = blocks[:, 3] * rows[:, -1]  # what taken branches cost above those that fall through
        size = len(CLASSES)
        tally.instructions.append(round(totals[:size].sum()))
        tally.prices.append(float(totals[size:].sum() + extra.sum()))
        for place, name in enumerate(CLASSES):
            if totals[place]:
                tally.classes[name] += round(totals[place])
                tally.prices_by_class[name] += float(totals[size + place])
        tally.prices_by_class["branch"] += float(extra.sum())
        for (start, _, count, _), row in zip(blocks, rows, strict=True):
            tally.functions[self.owner(int(start))] += int(count * row[:size].sum())
        tally.sequences[self.machine.fingerprint] += 1

    def row(self, start: int, size: int, tally: Tally) -> Any:
        if start not in self.rows:
            instructions = self.decoder.block(start, self.machine.read_code(start, size))
            row = self.zeros.copy()
            for instruction in instructions:
                place = CLASSES.index(instruction.kind)
                row[place] += 1
                row[len(CLASSES) + place] += instruction.price
            row[-1] = instructions[-1].price_taken - instructions[-1].price
            self.rows[start], self.known[start] = row, instructions
        for instruction in self.known[start]:
            if instruction.note:
                tally.notes.add(f"{instruction.text.split()[0]}: {instruction.note}")
        return self.rows[start]

    def owner(self, address: int) -> str:
        """The function that the address lies in."""
        name = "?"
        for start, candidate in self.owners:
            if start > address:
                break
            name = candidate
        return name


def _spread(values: list[Any]) -> Spread:
    return Spread(min(values), sum(values) / len(values), max(values))
