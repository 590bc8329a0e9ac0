"""Count the operations of a mechanism three ways (printed, derived, executed) and price them on a processor.

A mechanism that is too large to run quickly is only derived from its source: tests show that both counts agree.

A release by the whole sensor is one feature of n through a rows table by thresholds, 5 knots and 5 symbols, as the
default package has it: the sensor's own kernels, run over a board whose journal holds, with the wiping of random words.
The board's part, the time of its flash and of its clock, is not in it.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim.costing.chips import Chip
from sensorsim.costing.csv_schema import Number, Span
from sensorsim.costing.prices import CLASSES, Cpu, load_cpu
from sensorsim.language.polynomial import Polynomial, parse
from sensorsim.mechanisms import Form, every
from sensorsim.mechanisms.form import LEAN, PAPER
from sensorsim.mechanisms.release import SIZE
from sensorsim.tables import folder

if TYPE_CHECKING:
    from sensorsim.kernels.packet import Layout
    from sensorsim.language.count import Counts
    from sensorsim.language.kernel import Kernel

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
VALUE_BITS = 3  # of a packet
RANDOM_BITS = 64  # of a release by the sensor: a word picks the feature, a word draws
IDENTITY = list(range(1, 9))  # of some table
SENSOR_PARTS = ("journal", "random words", "release", "packet", "wiping")


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
        self._known: dict[str, Span] = {}  # a report asks a thousand times for twenty prices

    @property
    def unit(self) -> str:
        """Return the unit of a cost."""
        return {"energy": "nJ", "latency": "cycles of latency"}.get(self.metric, self.metric)

    def price(self, operation: str) -> Span:
        """Return the price of one operation; zero only where the accounting leaves it out."""
        if operation in self._known:
            return self._known[operation]
        if self.accounting != "full" and operation in CLASSES and operation not in PAPER_PRICES:
            total = Span(0, 0, 0)
        elif operation in self.own:
            total = Span(self.own[operation], self.own[operation], self.own[operation])
        else:
            column = "latency" if self.metric == "latency" else "native"
            found = self.cpu.price(operation, self.width, self.signed, column)
            row, flag = found.row, found.row.flag(column)
            if flag:
                self.flags[operation] = f"{operation}: {row.operation}, {flag} ({row.note or row.source})"
            factor = self.chip.pJ_per_cycle / PICOJOULES_PER_NANOJOULE if self.chip else 1
            total = Span(*(cost * factor for cost in found[:3]))
        self._known[operation] = total
        return total

    def total(self, counts: Mapping[str, int]) -> Span:
        """Return the cost of these operations together."""
        prices = [(self.price(operation), count) for operation, count in counts.items()]
        return Span(*(sum(price[k] * count for price, count in prices) for k in range(3)))

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
def printed_list(mechanism: str) -> tuple[Entry, ...]:
    """Return the operations that the paper prints for a mechanism, in its order; empty where it prints none."""
    with Path(folder(), "paper_operations.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["mechanism"] == mechanism]
    return tuple(Entry(row["step"], row["operation"], row["on"], parse(row["count"])) for row in rows)


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
    cost: Span


class View(NamedTuple):
    """Hold one count of a mechanism: printed by the paper, derived from the source, or executed."""

    cost: Span
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
    executed = _view(_by_step(mechanism.traced(n, l).items()), pricing) if run else None
    ledger = [((entry.step, entry.operation), entry.times) for entry in printed_list(mechanism.name)]
    return MechanismCost(
        mechanism,
        _symbolic_view(ledger, n, l, pricing) if ledger else None,
        _symbolic_view(mechanism.symbolic().items(), n, l, pricing),
        executed,
        mechanism.random_bits(n, l),
        mechanism.bits_sent(n),
    )


def _view(steps: Mapping[str, Mapping[str, int]], pricing: Pricing, formula: Polynomial | None = None) -> View:
    priced = {name: Step(dict(counts), pricing.total(counts)) for name, counts in steps.items()}
    whole = sum_counts(item for counts in steps.values() for item in counts.items())
    return View(pricing.total(whole), formula, priced)


def _symbolic_view(counts: Iterable[tuple[tuple[str, str], Polynomial]], n: int, l: int, pricing: Pricing) -> View:
    by_step = _by_step(counts)
    formula = pricing.formula(sum_counts(item for each in by_step.values() for item in each.items()))
    return _view({step: evaluate_counts(each, n, l) for step, each in by_step.items()}, pricing, formula)


def _by_step(counts: Iterable[tuple[tuple[str, str], Any]]) -> dict[str, dict[str, Any]]:
    steps: dict[str, list[tuple[str, Any]]] = {}
    for (step, operation), times in counts:
        steps.setdefault(step, []).append((operation, times))
    return {step: sum_counts(listed) for step, listed in steps.items()}


def sum_counts(counts: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Add up counts, numbers or polynomials, by operation."""
    whole: dict[str, Any] = {}
    for operation, times in counts:
        whole[operation] = whole[operation] + times if operation in whole else times
    return whole


def sum_steps(counts: Mapping[tuple[str, str], Any]) -> dict[str, Any]:
    """Add up the counts of all steps by operation."""
    return sum_counts((operation, times) for (_, operation), times in counts.items())


def evaluate_counts(counts: Mapping[str, Polynomial], n: int, l: int) -> dict[str, int]:
    """Return the counts at these sizes."""
    return {operation: times.at(n=n, l=l) for operation, times in counts.items()}


# ── a release by the whole sensor ──


def sensor_release(n: int, pricing: Pricing) -> View:
    """Price one release by the whole sensor, its parts as steps; `pricing` is one of full accounting."""
    return _view(sensor_operations(n), pricing)


@cache
def sensor_operations(n: int) -> Mapping[str, Counter[str]]:
    """Return the operations of each part of a release, counted by running the kernels."""
    from sensorsim.kernels.rows_search import sampled_rows_search_one
    from sensorsim.kernels.sensor import count_release
    from sensorsim.kernels.sensor_draw import Plan, declare_draw

    parts = {name: Counter[str]() for name in SENSOR_PARTS}
    parts["journal"] = _run_on_board(count_release)
    draw = declare_draw(Plan(sampled_rows_search_one, n, n, 1, 1, packet_layout(n))).draw_release
    for (step, operation), times in _count(draw, {"sensor.used": [3]}, SIZE).items():
        parts["wiping" if step == "sensor" else step if step in parts else "release"][operation] += times
    return parts


def opening_operations() -> Counter[str]:
    """Return the operations of an opening that finds a sound journal: the seeding by reading, the rest by running."""
    from sensorsim.kernels import sensor

    found = _run_on_board(sensor.start)
    for kernel, otherwise in ((sensor.seed, True), (sensor.close_sensor, False)):
        sizes = kernel.lengths_at()
        found.update({name: times.value(sizes) for name, times in sum_steps(kernel.formula(otherwise)).items()})
    return found


def packet_layout(n: int) -> "Layout":
    """Return the layout of the packet that a release sends."""
    from sensorsim.kernels.packet import Layout

    return Layout(0, n, 1, VALUE_BITS)


class _Board:
    """Simulate a board whose journal holds, with two releases spent in epoch 1; see the ports of the kernel."""

    def __init__(self) -> None:
        from sensorsim.kernels import checksum, journal

        crc = list(checksum.CRC.contents or ())
        self.slots = [[0] * journal.SLOT_BYTES for _ in range(2)]
        for spent, entry in enumerate(self.slots, 1):
            journal.write_slot(entry, IDENTITY, crc, 1, 1, spent, len(crc))

    def load(self, slot: int, bytes: list[int]) -> int:
        bytes[:] = self.slots[slot]
        return 0

    def store(self, slot: int, bytes: list[int]) -> int:
        self.slots[slot] = list(bytes)
        return 0

    def epoch(self) -> int:
        return 1


def _run_on_board(kernel: "Kernel") -> Counter[str]:
    """Return the operations of one call of a kernel of the sensor, counted by running it on a board."""
    known = {"epoch": [1], "spent": [2], "used": [2], "port": _Board()}
    given = {f"sensor.{name}": value for name, value in known.items()}
    return Counter(sum_steps(_count(kernel, {**given, "identity": IDENTITY, "budget": 10, "reserve": 1})))


def _count(kernel: "Kernel", given: dict[str, Any], lengths: Mapping[str, int] = MappingProxyType({})) -> "Counts":
    from sensorsim.language.arguments import arguments
    from sensorsim.language.count import count

    return count(kernel, arguments(kernel, kernel.lengths_at(lengths), lambda name, lo, hi: lo) | given)
