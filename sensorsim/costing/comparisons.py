"""Compare costs: other operand widths, x87, the break-even division, published cycles, sweeps over n and l."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim.costing.csv_schema import NOTE, STATUS, Column, Number, Schema, columns_for, read_cells, whole
from sensorsim.costing.prices import cpu_names
from sensorsim.costing.pricing import (
    Entry,
    Pricing,
    evaluate_counts,
    full_pricing,
    list_forms,
    printed_list,
    sum_counts,
)
from sensorsim.tables import folder

if TYPE_CHECKING:
    from sensorsim.costing.cost_report import CostReport

WIDTHS = ((8, False), (16, False), (32, False), (32, True))
X87 = {"ADD": "FADD", "SUB": "FSUB", "MUL": "FMUL", "DIV": "FDIV"}
X87_WIDTH = 80
IN_MICROJOULES = ("spof", "dpsgd")  # mechanisms whose whole records a sweep has, beside the sensor's
ONE_VALUE = "release-stairs"  # one value and one draw from a certified table, as in the published figures


def price_by_width(report: "CostReport") -> dict[str, dict[str, Number]]:
    """Price the printed lists at every operand width of the table: {"u8": {"spof": 364, "dpsgd": 1403}, …}."""
    own = report.pricing
    found: dict[str, dict[str, Number]] = {}
    for width, signed in WIDTHS:
        pricing = Pricing(own.cpu, width, signed, own.metric, "paper", own.chip)
        try:
            totals = {name: _printed_total(name, report, pricing) for name in _printed_names(report)}
        except InputError:
            continue  # the table has no such width
        found[f"{'i' if signed else 'u'}{width}"] = totals
    if own.cpu.name == "k7" and own.metric in ("macro-ops", "latency"):
        found["x87"] = {name: _x87_total(name, report) for name in _printed_names(report)}
    return found


def compare_printed(report: "CostReport") -> dict[str, Any]:
    """Return the printed lists by operand width and the break-even division, for JSON.

    Empty and None where there is no printed list, or no price in macro-operations.
    """
    listed = report.pricing.accounting == "paper"
    panel = price_by_width(report) if listed and _printed_names(report) else {}
    turns = panel and report.pricing.metric == "macro-ops"
    return {"printed_by_operands": panel, "break_even_division": round(break_even(report), 2) if turns else None}


def break_even(report: "CostReport") -> float:
    """Return the price of a division below which DP-SGD, as printed, is cheaper than SPOF."""
    pricing = report.pricing
    divisions = rest = 0.0
    for entry in printed_list("dpsgd"):
        count = entry.times.at(n=report.n, l=report.l)
        if entry.operation == "DIV":
            divisions += count
        else:
            rest += count * pricing.price(entry.operation).typical
    return (_printed_total("spof", report, pricing) - rest) / divisions


def sweep(report: "CostReport", cases: Iterable[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Yield one row for each (n, l): totals by the printed list and by the source, and whole records in µJ.

    Nothing is executed: the counts of a report's sources hold for every n and l.
    """
    pricing, pricer_at = report.pricing, report.record.pricers()
    listed = {name: sum_counts((e.operation, e.times) for e in printed_list(name)) for name in _printed_names(report)}
    derived = {
        name: sum_counts((operation, times) for (_, operation), times in each.mechanism.symbolic().items())
        for name, each in report.mechanisms.items()
    }
    for n, l in cases:
        row: dict[str, Any] = {"n": n, "l": l}
        for name, counts in derived.items():
            if name in listed:
                row[f"{name}_printed"] = pricing.total(evaluate_counts(listed[name], n, l)).typical
            row[f"{name}_derived"] = pricing.total(evaluate_counts(counts, n, l)).typical
        if {"spof", "dpsgd"} <= listed.keys() and row["dpsgd_printed"]:  # the lean kernels alone have no such pair
            row["saving_percent"] = round(float(100 * (1 - row["spof_printed"] / row["dpsgd_printed"])), 2)
        pricer = pricer_at(n)
        for name in (name for name in IN_MICROJOULES if name in derived):
            form, counts_here = report.mechanisms[name].mechanism, evaluate_counts(derived[name], n, l)
            bits = form.random_bits(n, l), form.bits_sent(n)
            row[f"{name}_uJ"] = pricer.mechanism_record(name, form.title, counts_here, *bits).microjoule
        row["sensor_uJ"] = pricer.sensor_record().microjoule
        yield row


def _printed_names(report: "CostReport") -> list[str]:
    return [name for name, cost in report.mechanisms.items() if cost.printed]


def _printed_total(name: str, report: "CostReport", pricing: Pricing) -> Number:
    counts = [(entry.operation, entry.times.at(n=report.n, l=report.l)) for entry in printed_list(name)]
    return sum(pricing.price(operation).typical * count for operation, count in counts)


def _x87_total(name: str, report: "CostReport") -> Number:
    """Price the printed list in floating point: values on x87, the noise pointer on integers, the root one FSQRT."""
    metric = "latency" if report.pricing.metric == "latency" else "native"
    cpu = report.pricing.cpu

    def price(entry: Entry) -> Number:
        if entry.on == "pointer":
            return cpu.price(entry.operation, 32, False, metric).typical
        return cpu.price(X87[entry.operation], X87_WIDTH, True, metric).typical

    entries = printed_list(name)
    total: Number = sum(price(e) * e.times.at(n=report.n, l=report.l) for e in entries if e.step != "root")
    has_root = any(entry.step == "root" for entry in entries)
    return total + (cpu.price("FSQRT", X87_WIDTH, True, metric).typical if has_root else 0)


class Published(NamedTuple):
    """Hold cycles that others published for noise in software. The text after the comma in `what` names the case."""

    cpu: str
    what: str
    cycles: int
    cited: str
    source: str
    status: str
    note: str


def _check_published(path: Path, row: dict[str, Any]) -> Iterator[str]:
    if row["cpu"] not in cpu_names():
        yield f"unknown cpu {row['cpu']!r}"
    if ", " not in row["what"]:
        yield "what has no comma; give the case after it, as `…, half-precision float`"


PUBLISHED_SCHEMA = Schema(
    "published cycles",
    columns_for(Published, cycles=Column("cycles", whole(1)), status=STATUS, note=NOTE),
    _check_published,
    key=("cpu", "what"),
)


def published_file() -> Path:
    """Return the table of published cycles."""
    return Path(folder(), "published.csv")


def load_published(cpu: str) -> list[Published]:
    """Load the published cycles for a core."""
    rows = [Published(*PUBLISHED_SCHEMA.values(cells)) for _, cells in read_cells(published_file())[2]]
    return [row for row in rows if row.cpu == cpu]


def format_published(cpu: str) -> list[str]:
    """Format one line that compares our cycles for one noised value with published ones; empty where there are none."""
    rows = load_published(cpu)
    if not rows:
        return []
    theirs = ", ".join(f"{row.cycles} ({row.what.partition(', ')[2]})" for row in rows)
    by = "; ".join(dict.fromkeys(row.cited for row in rows))
    return [f" One noised value: {one_value_cycles(cpu):.0f} cycles, random words left out; {by}: {theirs}."]


def compare_published(cpu: str) -> dict[str, object] | None:
    """Return our cycles for one noised value and published ones, for JSON; None where there are none."""
    rows = load_published(cpu)
    others = [{"what": row.what, "cycles": row.cycles, "cited": row.cited} for row in rows]
    return {"ours_cycles": one_value_cycles(cpu), "others": others} if rows else None


def one_value_cycles(cpu: str) -> float:
    """Return the cycles of our kernel for one value, every operation priced, without its random word."""
    (form,) = (form for form in list_forms("lean") if form.name == ONE_VALUE)
    counts: Counter[str] = Counter()
    for (_, operation), times in form.traced(1, 1).items():
        counts[operation] += times
    return float(full_pricing(cpu).total(counts).typical)
