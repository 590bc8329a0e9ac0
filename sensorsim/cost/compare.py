"""Comparisons that the paper's list allows: other operand widths, x87, the break-even division, sweeps over n and l."""

from collections.abc import Iterable, Iterator
from typing import Any

from sensorsim.cost.ledger import Entry, printed
from sensorsim.cost.pricing import Pricing
from sensorsim.cost.report import CostReport
from sensorsim.cost.rows import Number
from sensorsim.errors import InputError
from sensorsim.language.polynomial import Polynomial

WIDTHS = ((8, False), (16, False), (32, False), (32, True))
X87 = {"ADD": "FADD", "SUB": "FSUB", "MUL": "FMUL", "DIV": "FDIV"}
X87_WIDTH = 80
IN_MICROJOULES = ("spof", "dpsgd")  # whose whole records a sweep has, beside the sensor's


def by_width(report: CostReport) -> dict[str, dict[str, Number]]:
    """The printed lists at every operand width that the table has: {"u8": {"spof": 364, "dpsgd": 1403}, …}."""
    own = report.pricing
    found: dict[str, dict[str, Number]] = {}
    for width, signed in WIDTHS:
        pricing = Pricing(own.cpu, width, signed, own.metric, "paper", own.chip)
        try:
            totals = {name: _listed(name, report, pricing) for name in _printed(report)}
        except InputError:
            continue  # the table has no such width
        found[f"{'i' if signed else 'u'}{width}"] = totals
    if own.cpu.name == "k7" and own.metric in ("macro-ops", "latency"):
        found["x87"] = {name: _x87(name, report) for name in _printed(report)}
    return found


def compared(report: CostReport) -> dict[str, Any]:
    """Return what a screen compares, for JSON: the printed lists by their operands, and the division where they turn.

    Empty and None where there is no printed list, or no price in macro-operations.
    """
    listed = report.pricing.accounting == "paper"
    panel = by_width(report) if listed and _printed(report) else {}
    turns = panel and report.pricing.metric == "macro-ops"
    return {"printed_by_operands": panel, "break_even_division": round(break_even(report), 2) if turns else None}


def break_even(report: CostReport) -> float:
    """The price of a division below which DP-SGD, as printed, is the cheaper one."""
    pricing = report.pricing
    divisions = rest = 0.0
    for entry in printed("dpsgd"):
        count = entry.times.at(n=report.n, l=report.l)
        if entry.operation == "DIV":
            divisions += count
        else:
            rest += count * pricing.price(entry.operation).typical
    return (_listed("spof", report, pricing) - rest) / divisions


def sweep(report: CostReport, cases: Iterable[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """One row for each (n, l): totals by the printed list and derived from the source, and whole records in µJ.

    Nothing is executed for it: what a report reads off the sources holds for every n and l.
    """
    pricing, making_at = report.pricing, report.record.making()
    listed = {name: _whole((e.operation, e.times) for e in printed(name)) for name in _printed(report)}
    derived = {
        name: _whole((operation, times) for (_, operation), times in each.mechanism.symbolic().items())
        for name, each in report.mechanisms.items()
    }
    for n, l in cases:
        row: dict[str, Any] = {"n": n, "l": l}
        for name, counts in derived.items():
            if name in listed:
                row[f"{name}_printed"] = pricing.total(_at(listed[name], n, l)).typical
            row[f"{name}_derived"] = pricing.total(_at(counts, n, l)).typical
        if {"spof", "dpsgd"} <= listed.keys() and row["dpsgd_printed"]:  # the lean kernels alone have no such pair
            row["saving_percent"] = round(float(100 * (1 - row["spof_printed"] / row["dpsgd_printed"])), 2)
        making = making_at(n)
        for name in (name for name in IN_MICROJOULES if name in derived):
            form = report.mechanisms[name].mechanism
            counts_here = _at(derived[name], n, l)
            made = making.of_mechanism(name, form.title, counts_here, form.random_bits(n, l), form.bits_sent(n))
            row[f"{name}_uJ"] = made.microjoule
        row["sensor_uJ"] = making.of_sensor().microjoule
        yield row


def _whole(counts: Iterable[tuple[str, Polynomial]]) -> dict[str, Polynomial]:
    """The operations of all steps together."""
    whole: dict[str, Polynomial] = {}
    for operation, times in counts:
        whole[operation] = whole.get(operation, Polynomial.constant(0)) + times
    return whole


def _at(counts: dict[str, Polynomial], n: int, l: int) -> dict[str, int]:
    return {operation: times.at(n=n, l=l) for operation, times in counts.items()}


def _printed(report: CostReport) -> list[str]:
    return [name for name, cost in report.mechanisms.items() if cost.printed]


def _listed(name: str, report: CostReport, pricing: Pricing) -> Number:
    counts = [(entry.operation, entry.times.at(n=report.n, l=report.l)) for entry in printed(name)]
    return sum(pricing.price(operation).typical * count for operation, count in counts)


def _x87(name: str, report: CostReport) -> Number:
    """The printed list in floating point: values on x87, the noise pointer on integers, the root one FSQRT."""
    metric = "latency" if report.pricing.metric == "latency" else "native"
    cpu = report.pricing.cpu

    def price(entry: Entry) -> Number:
        if entry.on == "pointer":
            return cpu.price(entry.operation, 32, False, metric).typical
        return cpu.price(X87[entry.operation], X87_WIDTH, True, metric).typical

    total: Number = sum(price(e) * e.times.at(n=report.n, l=report.l) for e in printed(name) if e.step != "root")
    has_root = any(entry.step == "root" for entry in printed(name))
    return total + (cpu.price("FSQRT", X87_WIDTH, True, metric).typical if has_root else 0)
