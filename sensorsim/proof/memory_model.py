"""Registers and memory that keep values as they were written: a word stays one value until a part of it is read.

Memory is a set of regions at fixed addresses. A read or write at an address that is not known is proved to stay inside
one region first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sensorsim.proof.bitvectors import SAMPLES, Bits, extract, join, select

Note = Callable[[Bits], Bits]
Default = Callable[[int], Bits]  # a byte that was never written, by its address


class Cells:
    """Values of one to sixteen bytes by address, kept whole."""

    __slots__ = ("cell", "owner")

    def __init__(self) -> None:
        self.cell: dict[int, Bits] = {}
        self.owner: dict[int, int] = {}  # for each byte, where its cell begins

    def copy(self) -> Cells:
        made = Cells()
        made.cell, made.owner = dict(self.cell), dict(self.owner)
        return made

    def write(self, address: int, value: Bits) -> None:
        count = value.width >> 3
        cell, owner = self.cell, self.owner
        before = cell.get(address)
        if before is not None and before.width == value.width and owner.get(address) == address:
            cell[address] = value
            return
        for at in range(address, address + count):
            start = owner.get(at)
            if start is not None:
                self._split(start)
        for at in range(address, address + count):
            cell.pop(at, None)
            owner[at] = address
        cell[address] = value

    def _split(self, start: int) -> None:
        value = self.cell.pop(start)
        for i in range(value.width >> 3):
            self.cell[start + i] = extract(value, 8 * i + 7, 8 * i)
            self.owner[start + i] = start + i

    def read(self, address: int, count: int, default: Default) -> Bits:
        start = self.owner.get(address)
        if start is not None:
            value = self.cell[start]
            offset = address - start
            if (value.width >> 3) >= offset + count:
                return extract(value, 8 * (offset + count) - 1, 8 * offset)
        if count == 1:
            return default(address)
        return join([self.read(at, 1, default) for at in reversed(range(address, address + count))])


@dataclass(frozen=True)
class Region:
    """A stretch of memory: an argument's array, a table, the stack, the program."""

    name: str
    start: int
    size: int
    writable: bool = False
    element: int = 1  # bytes of an element

    @property
    def end(self) -> int:
        return self.start + self.size

    def holds(self, address: int, count: int = 1) -> bool:
        return self.start <= address and address + count <= self.end


@dataclass
class FindingError(Exception):
    """Something that keeps a function from being proved: what, and at which instruction."""

    what: str
    address: int = 0
    secrets: int = 0

    def __str__(self) -> str:
        return self.what


class UndecidedError(Exception):
    """The solver's time ran out, or a limit was reached: nothing is proved, and nothing refuted."""


class Leak(NamedTuple):
    """An instruction whose behaviour shows a secret: a branch, an address, or operands of a slow operation."""

    kind: str
    address: int
    secrets: int


class Event(NamedTuple):
    """A call that leaves the code: a port of the board, or a function that is proved by itself. What it answers is
    unknown, and the same for machine code and kernel where they ask the same."""

    name: str
    inputs: tuple[Bits, ...]


@dataclass
class State:
    """State of one path: registers, memory, the conditions that led here, and what happened on the way."""

    registers: Cells
    memory: Cells
    pc: int
    path: list[Any] = field(default_factory=list)
    executed: Counter[int] = field(default_factory=Counter)
    leaks: set[Leak] = field(default_factory=set)
    facts: dict[Any, Any] = field(default_factory=dict)  # what was proved under the conditions of this path
    events: list[Event] = field(default_factory=list)
    _samples: tuple[Any, tuple[int, ...]] = (None, ())

    def samples(self) -> tuple[int, ...]:
        """Return the numbers of the sample inputs that go this path."""
        key = len(self.path), id(self.path[-1]) if self.path else 0
        if self._samples[0] != key:
            bits = [one.samples for one in self.path if isinstance(one, Bits)]
            self._samples = key, tuple(i for i in range(SAMPLES) if all(samples[i] for samples in bits))
        return self._samples[1]

    def copy(self) -> State:
        registers, memory = self.registers.copy(), self.memory.copy()
        notes = list(self.path), Counter(self.executed), set(self.leaks), dict(self.facts), list(self.events)
        return State(registers, memory, self.pc, *notes)


def merge(first: Cells, second: Cells, condition: Bits, default: Default, note: Note = lambda value: value) -> None:
    """Let `first` hold what `second` holds where the condition is not zero."""
    for address in sorted({*first.cell, *second.cell}):
        mine, theirs = first.cell.get(address), second.cell.get(address)
        if mine is theirs:
            continue
        wide = max(value.width for value in (mine, theirs) if value is not None) >> 3
        one, other = first.read(address, wide, default), second.read(address, wide, default)
        first.write(address, note(select(condition, other, one)))
