"""Counts times prices: what the operations of a record cost on a processor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sensorsim.cost.prices import Chip, Cpu
from sensorsim.cost.rows import CLASSES, Number
from sensorsim.language.polynomial import Polynomial

# What the paper prices. Shifts, loads, stores, compares, selects, branches and index arithmetic cost nothing there.
PAPER_PRICES = ("ADD", "SUB", "MUL", "DIV", "AND", "OR", "NOT")
PICOJOULES_PER_NANOJOULE = 1000


class Total(NamedTuple):
    """A cost with the range that the table leaves open."""

    min: Number
    typical: Number
    max: Number

    def times(self, factor: Number) -> "Total":
        return Total(self.min * factor, self.typical * factor, self.max * factor)


ZERO = Total(0, 0, 0)


@dataclass
class Pricing:
    """How operations are priced: a processor, an operand width and signedness, a metric, an accounting.

    `own` are prices of operations that a stranger's primitives bring along. `flags` collects every disputed or
    estimated row that entered a total.
    """

    cpu: Cpu
    width: int
    signed: bool
    metric: str
    accounting: str
    chip: Chip | None = None
    own: Mapping[str, Number] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.flags: dict[str, str] = {}
        self._known: dict[str, Total] = {}  # a screen asks a thousand times for twenty prices

    @property
    def unit(self) -> str:
        return {"energy": "nJ", "latency": "cycles of latency"}.get(self.metric, self.metric)

    def prices(self, operation: str) -> bool:
        """Whether the accounting prices this operation at all."""
        return self.accounting == "full" or operation in PAPER_PRICES or operation not in CLASSES

    def price(self, operation: str) -> Total:
        """What one operation costs; zero only when the accounting leaves it out."""
        if operation not in self._known:
            self._known[operation] = self._price(operation)
        return self._known[operation]

    def _price(self, operation: str) -> Total:
        if not self.prices(operation):
            return ZERO
        if operation in self.own:
            return Total(*[self.own[operation]] * 3)
        column = "latency" if self.metric == "latency" else "native"
        found = self.cpu.price(operation, self.width, self.signed, column)
        flag = found.row.flag(column)
        if flag:
            self.flags[operation] = f"{operation}: {found.row.operation}, {flag} ({found.row.note or found.row.source})"
        total = Total(found.min, found.typical, found.max)
        return total.times(self.chip.pJ_per_cycle / PICOJOULES_PER_NANOJOULE) if self.chip else total

    def total(self, counts: Mapping[str, int]) -> Total:
        """The cost of all these operations."""
        low: Number = 0
        typical: Number = 0
        high: Number = 0
        for operation, count in counts.items():
            price = self.price(operation)
            low += price.min * count
            typical += price.typical * count
            high += price.max * count
        return Total(low, typical, high)

    def formula(self, counts: Mapping[str, Polynomial]) -> Polynomial | None:
        """The typical cost as a polynomial; None when a price is not a whole number."""
        whole = Polynomial.constant(0)
        for operation, count in counts.items():
            price = self.price(operation).typical
            if price != int(price):
                return None
            whole = whole + count * int(price)
        return whole
