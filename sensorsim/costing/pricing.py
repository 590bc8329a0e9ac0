"""Count the operations of a mechanism three ways (printed, derived, executed) and price them on a processor.

A mechanism that is too large to run quickly is only derived from its source: tests show that both counts agree.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sensorsim._util.errors import InputError
from sensorsim.costing.chips import Chip
from sensorsim.costing.csv_schema import Number
from sensorsim.costing.prices import CLASSES, Cpu, load_cpu
from sensorsim.language.polynomial import Polynomial, parse
from sensorsim.mechanisms import Form, every
from sensorsim.mechanisms.form import LEAN, PAPER
from sensorsim.tables import folder

VARIANTS = (PAPER, LEAN)
BESIDE = (  # no mechanisms: a noise reader that the paper cites, and the generator that a release needs
    Form("dinar", "DINAR's pre-fetch, shifter used", LEAN, "dinar.dinar", random="stride"),
    Form("dinar-scrambled", "DINAR's pre-fetch, scrambled", LEAN, "dinar.dinar_scrambled", random="stride word"),
    Form("chacha20", "ChaCha20, 512 random bits", LEAN, "chacha20.chacha20"),
)
# What the paper prices. Shifts, loads, stores, compares, selects, branches and index arithmetic cost nothing there.
PAPER_PRICES = ("ADD", "SUB", "MUL", "DIV", "AND", "OR", "NOT")
KERNEL_WIDTH = 32  # bits that the kernels compute with
PICOJOULES_PER_NANOJOULE = 1000
MOST_EXECUTED = 250_000  # operations of all kernels together, a third of a second


class Total(NamedTuple):
    """Hold a cost with the range that the table leaves open."""

    min: Number
    typical: Number
    max: Number

    def times(self, factor: Number) -> "Total":
        """Return this cost `factor` times."""
        return Total(self.min * factor, self.typical * factor, self.max * factor)


ZERO = Total(0, 0, 0)


@dataclass
class Pricing:
    """Price operations on a processor, for an operand width and signedness, a metric and an accounting.

    `own` holds prices of operations that a user's primitives define. `flags` collects every disputed or estimated row
    that entered a total.
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
        self._known: dict[str, Total] = {}  # a report asks a thousand times for twenty prices

    @property
    def unit(self) -> str:
        """Return the unit of a cost."""
        return {"energy": "nJ", "latency": "cycles of latency"}.get(self.metric, self.metric)

    def price(self, operation: str) -> Total:
        """Return the price of one operation; zero only where the accounting leaves it out."""
        if operation not in self._known:
            self._known[operation] = self._look_up(operation)
        return self._known[operation]

    def _look_up(self, operation: str) -> Total:
        if self.accounting != "full" and operation in CLASSES and operation not in PAPER_PRICES:
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
        """Return the cost of these operations together."""
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
        """Return the typical cost as a polynomial; None where a price is not a whole number."""
        whole = Polynomial.constant(0)
        for operation, count in counts.items():
            price = self.price(operation).typical
            if price != int(price):
                return None
            whole = whole + count * int(price)
        return whole


def full_pricing(cpu: str) -> Pricing:
    """Return a pricing of every operation at the kernels' width."""
    table = load_cpu(cpu)
    return Pricing(table, KERNEL_WIDTH, False, table.unit, "full")


class Entry(NamedTuple):
    """Hold one line of the paper's printed list. `on` is `value`, or `pointer` for the noise pointer's C_N."""

    step: str
    operation: str
    on: str
    times: Polynomial


@cache
def _printed_lists() -> dict[str, tuple[Entry, ...]]:
    lists: dict[str, list[Entry]] = {}
    with Path(folder(), "paper_operations.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            entry = Entry(row["step"], row["operation"], row["on"], parse(row["count"]))
            lists.setdefault(row["mechanism"], []).append(entry)
    return {mechanism: tuple(entries) for mechanism, entries in lists.items()}


def printed_list(mechanism: str) -> tuple[Entry, ...]:
    """Return the operations that the paper prints for a mechanism, in its order; empty where it prints none."""
    return _printed_lists().get(mechanism, ())


def describe_step(mechanism: str, step: str) -> str:
    """Format the printed operations of a step: `n ADD + n SUB + n DIV`, the pointer's six operations as C_N."""
    entries = [entry for entry in printed_list(mechanism) if entry.step == step]
    words = [f"{entry.times} {entry.operation}" for entry in entries if entry.on == "value"]
    words += [f"{entry.times} C_N" for entry in entries if entry.on == "pointer" and entry.operation == "NOT"]
    return " + ".join(words)


def list_forms(variant: str = "all") -> list[Form]:
    """List every form of every mechanism of a variant, and what is reported beside them; the printed ones first."""
    if variant not in (*VARIANTS, "all"):
        raise InputError(f"variant {variant!r} is not known; choose paper, lean or all.")
    known = [form for mechanism in every() for form in mechanism.forms] + list(BESIDE)
    wanted = [form for form in known if variant in ("all", form.variant)]
    return sorted(wanted, key=lambda form: form.variant != PAPER)


class Step(NamedTuple):
    """Hold one step of an algorithm: its operations and what they cost."""

    operations: Mapping[str, int]
    cost: Total


class View(NamedTuple):
    """Hold one count of a mechanism: printed by the paper, derived from the source, or executed."""

    cost: Total
    formula: Polynomial | None
    steps: Mapping[str, Step]

    @property
    def total(self) -> Number:
        """Return the typical cost."""
        return self.cost.typical

    @property
    def operations(self) -> Counter[str]:
        """Return the operations of all steps together."""
        return sum((Counter(step.operations) for step in self.steps.values()), Counter[str]())


class MechanismCost(NamedTuple):
    """Hold every count of one mechanism."""

    mechanism: Form
    printed: View | None
    symbolic: View
    traced: View | None  # None: too large to be run
    random_bits: int  # secret bits that a record takes, 32 for each draw
    bits_sent: int  # on the air, for a record

    @property
    def counted(self) -> View:
        """Return the executed count, or the derived one where it was not run."""
        return self.symbolic if self.traced is None else self.traced

    def views(self) -> Iterator[tuple[str, View]]:
        """Yield the name and the count of each view that there is."""
        for name in ("printed", "symbolic", "traced"):
            view = getattr(self, name)
            if view is not None:
                yield name, view


def count_operations(mechanisms: Iterable[Form], n: int, l: int) -> int:
    """Return how many operations the mechanisms would run at these sizes, by their sources."""
    return sum(times.at(n=n, l=l) for each in mechanisms for times in each.symbolic().values())


def price_mechanism(mechanism: Form, n: int, l: int, pricing: Pricing, run: bool = True) -> MechanismCost:
    """Count and price a mechanism at these sizes; it is executed only with `run`."""
    ledger = printed_list(mechanism.name)
    return MechanismCost(
        mechanism,
        _view([((entry.step, entry.operation), entry.times) for entry in ledger], n, l, pricing) if ledger else None,
        _view(mechanism.symbolic().items(), n, l, pricing),
        _executed(mechanism, n, l, pricing) if run else None,
        mechanism.random_bits(n, l),
        mechanism.bits_sent(n),
    )


def _executed(mechanism: Form, n: int, l: int, pricing: Pricing) -> View:
    executed: dict[str, Counter[str]] = {}
    for (step, operation), count in mechanism.traced(n, l).items():
        executed.setdefault(step, Counter())[operation] += count
    steps = {step: Step(dict(counts), pricing.total(counts)) for step, counts in executed.items()}
    return View(pricing.total(sum(executed.values(), Counter())), None, steps)


def sum_counts(counts: Iterable[tuple[str, Polynomial]]) -> dict[str, Polynomial]:
    """Add up counts by operation."""
    whole: dict[str, Polynomial] = {}
    for operation, times in counts:
        whole[operation] = whole.get(operation, Polynomial.constant(0)) + times
    return whole


def evaluate_counts(counts: Mapping[str, Polynomial], n: int, l: int) -> dict[str, int]:
    """Return the counts at these sizes."""
    return {operation: times.at(n=n, l=l) for operation, times in counts.items()}


def _view(counts: Iterable[tuple[tuple[str, str], Polynomial]], n: int, l: int, pricing: Pricing) -> View:
    by_step: dict[str, list[tuple[str, Polynomial]]] = {}
    for (step, operation), times in counts:
        by_step.setdefault(step, []).append((operation, times))
    steps = {step: sum_counts(listed) for step, listed in by_step.items()}
    whole = sum_counts(item for each in steps.values() for item in each.items())
    priced = {step: evaluate_counts(each, n, l) for step, each in steps.items()}
    return View(
        pricing.total(evaluate_counts(whole, n, l)),
        pricing.formula(whole),
        {step: Step(each, pricing.total(each)) for step, each in priced.items()},
    )
