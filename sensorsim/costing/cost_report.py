"""Report what one private record costs: `cost(n, l, …)`, for the command line, JSON and notebooks.

Beside it, comparisons: other operand widths, x87, the break-even division, published cycles, sweeps over n and l.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim._util.results import Result
from sensorsim.costing.chips import load_priced_chip, load_published
from sensorsim.costing.csv_schema import Number
from sensorsim.costing.prices import load_cpu
from sensorsim.costing.pricing import (
    KERNEL_WIDTH,
    MOST_EXECUTED,
    Entry,
    MechanismCost,
    Pricing,
    View,
    count_operations,
    evaluate_counts,
    full_pricing,
    list_forms,
    price_mechanism,
    printed_list,
    sensor_release,
    sum_counts,
    sum_steps,
)
from sensorsim.costing.record_energy import Choices, WholeRecord, price_whole_record, resolve_choices
from sensorsim.kernels.formats import N

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 3
PAPER_WIDTH = 8  # the K7's 8-bit unsigned division is what the paper's 32 macro-operations are
ACCOUNTINGS = ("paper", "full")
METRICS = ("macro-ops", "latency", "cycles", "energy")
WIDTHS = ((8, False), (16, False), (32, False), (32, True))
X87 = {"ADD": "FADD", "SUB": "FSUB", "MUL": "FMUL", "DIV": "FDIV"}
X87_WIDTH = 80
SAVINGS = {
    "saving_percent": "printed", "saving_percent_executed": "traced", "saving_percent_derived": "symbolic",
}  # fmt: skip
IN_MICROJOULES = ("spof", "dpsgd")  # mechanisms whose whole records a sweep has, beside the sensor's
ONE_VALUE = "release-stairs"  # one value and one draw from a certified table, as in the published figures


@dataclass(frozen=True, repr=False)
class CostReport(Result):
    """Report what one private record costs. `to_dict` is the JSON, `to_frame` the table for a notebook."""

    n: int
    l: int
    m: int
    pricing: Pricing
    mechanisms: Mapping[str, MechanismCost]
    choices: Choices  # of the whole record

    @property
    def executed(self) -> bool:
        """Return whether the kernels were run; if not, their counts are derived from the sources."""
        return all(cost.traced is not None for cost in self.mechanisms.values())

    def saving(self, view: str = "printed") -> float | None:
        """Return by how many per cent SPOF is cheaper than DP-SGD; None where one of them is missing or was not run."""
        if not {"spof", "dpsgd"} <= self.mechanisms.keys():
            return None
        views = [getattr(self.mechanisms[name], view) for name in ("spof", "dpsgd")]
        if None in views:
            return None
        spof, dpsgd = (found.total for found in views)
        return float(100 * (1 - spof / dpsgd)) if dpsgd else None

    @cached_property
    def sensor(self) -> View:
        """Return the cost of one release by a whole sensor, with generator and journal, every operation priced."""
        own = self.pricing
        return sensor_release(self.n, Pricing(own.cpu, KERNEL_WIDTH, False, own.metric, "full", own.chip))

    @cached_property
    def record(self) -> WholeRecord:
        """Return the energy of a whole record on a chip: arithmetic, random words, journal and radio."""
        return price_whole_record(self)

    def to_dict(self) -> dict[str, Any]:
        pricing, sensor = self.pricing, self.sensor
        savings = {name: self.saving(view) for name, view in SAVINGS.items()}
        return {
            "schema_version": SCHEMA_VERSION,
            "n": self.n,
            "l": self.l,
            "m": self.m,
            "cpu": pricing.cpu.name,
            "unit": pricing.unit,
            "metric": pricing.metric,
            "width": pricing.width,
            "signed": pricing.signed,
            "accounting": pricing.accounting,
            "chip": pricing.chip.chip if pricing.chip else None,
            **{name: saved and round(saved, 2) for name, saved in savings.items()},
            **compare_printed(self),
            "published": compare_published(pricing.cpu.name),
            "executed": self.executed,
            "flags": list(pricing.flags.values()),
            "mechanisms": {name: self._mechanism(cost) for name, cost in self.mechanisms.items()},
            "sensor_release": {
                **_totals(sensor),
                "parts": _steps(sensor),
                "unit": pricing.unit,
                "width": KERNEL_WIDTH,
            },
            "record": self.record.to_dict(),
        }

    def _mechanism(self, cost: MechanismCost) -> dict[str, Any]:
        made: dict[str, Any] = {
            "title": cost.mechanism.title,
            "variant": cost.mechanism.variant,
            "random_bits": cost.random_bits,
            "bits_sent": cost.bits_sent,
        }
        for name, view in cost.views():
            formula = None if view.formula is None else str(view.formula)
            together = {"total_all_users": view.total * self.m, "formula": formula, "steps": _steps(view)}
            made[name] = {**_totals(view), **together}
        return made

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one row for each mechanism, view, step and operation."""
        pricing = self.pricing
        for name, cost in self.mechanisms.items():
            for view_name, view in cost.views():
                for step, part in view.steps.items():
                    for operation, count in part.operations.items():
                        price = pricing.price(operation)
                        yield {
                            "mechanism": name,
                            "counted": view_name,
                            "step": step,
                            "operation": operation,
                            "count": count,
                            "price": price.typical,
                            "total": count * price.typical,
                            "unit": pricing.unit,
                            "cpu": pricing.cpu.name,
                            "width": pricing.width,
                            "signed": pricing.signed,
                            "accounting": pricing.accounting,
                            "random_bits": cost.random_bits,
                            "bits_sent": cost.bits_sent,
                        }

    def title(self) -> str:
        from sensorsim.costing.cost_text import heading

        return " · ".join(heading(self))

    def facts(self) -> dict[str, str]:
        """Return the total of every mechanism, as counted and, where the paper prints one, as printed."""
        found, unit = {}, self.pricing.unit
        for cost in self.mechanisms.values():
            printed = f"; {cost.printed.total} as printed" if cost.printed is not None else ""
            found[cost.mechanism.title] = f"{cost.counted.total} {unit}{printed}"
        if (saved := self.saving()) is not None:
            how = "executed" if self.executed else "derived"
            found["saving"] = f"SPOF needs {saved:.2f} % less as printed, {self.saving('counted'):.2f} % as {how}"
        return found

    def figure(self) -> "Figure":
        from sensorsim.costing.plot import report_figure

        made: Figure = report_figure(self)
        return made


def cost(
    n: int = 14,
    l: int = 7,
    m: int = 1,
    cpu: str | None = None,
    width: int | None = None,
    signed: bool = False,
    accounting: str = "paper",
    variant: str = "all",
    metric: str | None = None,
    chip: str | None = None,
    radio: str = "ble-1m",
    random: str = "chacha20",
    records_per_day: float = 1.0,
    battery_mah: float | None = None,
    most: int = MOST_EXECUTED,
) -> CostReport:
    """Report what one private record of n features and an encoder of l hidden units costs, for each of m users.

    `radio`, `random`, `records_per_day` and `battery_mah` are for the energy of the whole record. Kernels with more
    than `most` operations, all together, are not run: their counts are derived from their sources.

        >>> import sensorsim as ss
        >>> report = ss.cost(n=14, l=7)
        >>> report.mechanisms["spof"].printed.total, round(report.saving(), 2)
        (364, 74.06)
    """
    check_sizes(n, l, m)
    pricing = make_pricing(cpu, width, signed, accounting, metric, chip)
    choices = Choices(chip, radio, random, records_per_day, battery_mah)
    if choices != Choices(chip):
        resolve_choices(choices, pricing.cpu.name)  # report a wrong name before anything is counted
    chosen = list_forms(variant)
    run = count_operations(chosen, n, l) <= most
    counted = {each.name: price_mechanism(each, n, l, pricing, run) for each in chosen}
    return CostReport(n, l, m, pricing, counted, choices)


def check_sizes(n: int, l: int, m: int = 1) -> None:
    """Check that the sizes are those of an encoder."""
    if not N.lo <= n <= N.hi:
        raise InputError(f"n = {n} features is outside {N.lo} … {N.hi}, the kernels' range; give --n within it.")
    if l > n:
        raise InputError(f"l = {l} is larger than n = {n}; an encoder compresses, so give --l between 1 and {n}.")
    if l < 1:
        raise InputError(f"l = {l} hidden units is not possible; give --l between 1 and n = {n}.")
    if m < 1:
        raise InputError(f"m = {m} users is not possible; give --m of at least 1.")


def make_pricing(
    cpu: str | None, width: int | None, signed: bool, accounting: str, metric: str | None, chip: str | None
) -> Pricing:
    """Return the pricing of these choices; InputError where they do not fit together."""
    if accounting not in ACCOUNTINGS:
        raise InputError(f"accounting {accounting!r} is not known; choose paper or full.")
    if metric is not None and metric not in METRICS:
        raise InputError(
            f"metric {metric!r} is not known{did_you_mean(metric, METRICS)}; choose one of {', '.join(METRICS)}."
        )
    if metric == "energy" and chip is None:
        raise InputError("energy needs a chip; give --chip, and `sensorsim cpus` lists those known.")
    known_chip = load_priced_chip(chip) if chip else None
    table = load_cpu(cpu or (known_chip.cpu if known_chip else "k7"))
    if known_chip and table.name != load_cpu(known_chip.cpu).name:
        raise InputError(f"the core of {known_chip.name} is {known_chip.cpu}, not {table.name}; leave --cpu out.")
    metric = metric or ("energy" if known_chip else table.unit)
    if metric in ("macro-ops", "cycles") and metric != table.unit:
        raise InputError(f"the table of {table.name} counts {table.unit}, not {metric}; give --metric {table.unit}.")
    width = width or (PAPER_WIDTH if table.name == "k7" else KERNEL_WIDTH)
    priced_chip = known_chip if metric == "energy" else None
    return Pricing(table, width, signed, metric, accounting, priced_chip)


def _totals(view: View) -> dict[str, Number]:
    return {"total": view.total, "total_min": view.cost.min, "total_max": view.cost.max}


def _steps(view: View) -> dict[str, Any]:
    steps = view.steps.items()
    return {step: {"total": part.cost.typical, "operations": dict(part.operations)} for step, part in steps}


# ── comparisons ──


def price_by_width(report: CostReport) -> dict[str, dict[str, Number]]:
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


def compare_printed(report: CostReport) -> dict[str, Any]:
    """Return the printed lists by operand width and the break-even division, for JSON.

    Empty and None where there is no printed list, or no price in macro-operations.
    """
    listed = report.pricing.accounting == "paper"
    panel = price_by_width(report) if listed and _printed_names(report) else {}
    turns = panel and report.pricing.metric == "macro-ops"
    return {"printed_by_operands": panel, "break_even_division": round(break_even(report), 2) if turns else None}


def break_even(report: CostReport) -> float:
    """Return the price of a division below which DP-SGD, as printed, is cheaper than SPOF."""
    counts = report.mechanisms["dpsgd"].printed.operations  # type: ignore[union-attr]
    divisions = counts.pop("DIV")
    rest = report.pricing.total(counts).typical
    return (_printed_total("spof", report, report.pricing) - rest) / divisions


def sweep(report: CostReport, cases: Iterable[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Yield one row for each (n, l): totals by the printed list and by the source, and whole records in µJ.

    Nothing is executed: the counts of a report's sources hold for every n and l.
    """
    pricing, pricer_at = report.pricing, report.record.pricers()
    listed = {name: sum_counts((e.operation, e.times) for e in printed_list(name)) for name in _printed_names(report)}
    derived = {name: sum_steps(each.mechanism.symbolic()) for name, each in report.mechanisms.items()}
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


def _printed_names(report: CostReport) -> list[str]:
    return [name for name, cost in report.mechanisms.items() if cost.printed]


def _printed_total(name: str, report: CostReport, pricing: Pricing) -> Number:
    return pricing.total(report.mechanisms[name].printed.operations).typical  # type: ignore[union-attr]


def _x87_total(name: str, report: CostReport) -> Number:
    """Price the printed list in floating point: values on x87, the noise pointer on integers, the root one FSQRT."""
    metric = "latency" if report.pricing.metric == "latency" else "native"

    def price(operation: str, width: int, signed: bool) -> Number:
        return report.pricing.cpu.price(operation, width, signed, metric).typical

    def entry_price(entry: Entry) -> Number:
        pointer = entry.on == "pointer"
        return price(entry.operation, 32, False) if pointer else price(X87[entry.operation], X87_WIDTH, True)

    entries = printed_list(name)
    total: Number = sum(entry_price(e) * e.times.at(n=report.n, l=report.l) for e in entries if e.step != "root")
    return total + (price("FSQRT", X87_WIDTH, True) if any(entry.step == "root" for entry in entries) else 0)


def compare_published(cpu: str) -> dict[str, object] | None:
    """Return our cycles for one noised value and published ones, for JSON; None where there are none."""
    rows = load_published(cpu)
    others = [{"what": row.what, "cycles": row.cycles, "cited": row.cited} for row in rows]
    return {"ours_cycles": one_value_cycles(cpu), "others": others} if rows else None


def one_value_cycles(cpu: str) -> float:
    """Return the cycles of our kernel for one value, every operation priced, without its random word."""
    (form,) = (form for form in list_forms("lean") if form.name == ONE_VALUE)
    return float(full_pricing(cpu).total(sum_steps(form.traced(1, 1))).typical)
