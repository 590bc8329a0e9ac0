"""Comparisons that the paper's list allows: other operand widths, x87, the break-even division, sweeps over n and l."""

from collections.abc import Callable
from typing import Any

from sensorsim.cost.ledger import Entry, printed
from sensorsim.cost.pricing import Pricing
from sensorsim.cost.report import CostReport
from sensorsim.cost.rows import Number
from sensorsim.errors import InputError

WIDTHS = ((8, False), (16, False), (32, False), (32, True))
X87 = {"ADD": "FADD", "SUB": "FSUB", "MUL": "FMUL", "DIV": "FDIV"}
X87_WIDTH = 80


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


def sweep(make: Callable[[int, int], CostReport], name: str, values: range, n: int, l: int) -> list[dict[str, Any]]:
    """One row for each value of n or l: totals by the printed list and derived from the source.

    Values for which l would be larger than n are left out: no encoder has them.
    """
    rows = []
    for value in values:
        at = {"n": n, "l": l, name: value}
        if at["l"] > at["n"]:
            continue
        made = make(at["n"], at["l"])
        row: dict[str, Any] = dict(at)
        for key, each in made.mechanisms.items():
            if each.printed:
                row[f"{key}_printed"] = each.printed.total
            row[f"{key}_derived"] = each.symbolic.total
        saving = made.saving()
        if saving is not None:  # the lean kernels alone have no pair to compare
            row["saving_percent"] = round(saving, 2)
        rows.append(row)
    return rows


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
