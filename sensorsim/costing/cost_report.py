"""Report what one private record costs: `cost(n, l, …)`, for the command line, JSON and notebooks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim._util.results import Result
from sensorsim.costing.chips import load_priced_chip
from sensorsim.costing.prices import load_cpu
from sensorsim.costing.pricing import (
    KERNEL_WIDTH,
    MOST_EXECUTED,
    MechanismCost,
    Pricing,
    count_operations,
    list_forms,
    price_mechanism,
)
from sensorsim.kernels.formats import N

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.costing.sensor import SensorRelease
    from sensorsim.costing.whole_record import Choices, WholeRecord

SCHEMA_VERSION = 3
PAPER_WIDTH = 8  # the K7's 8-bit unsigned division is what the paper's 32 macro-operations are
ACCOUNTINGS = ("paper", "full")
METRICS = ("macro-ops", "latency", "cycles", "energy")


@dataclass(frozen=True, repr=False)
class CostReport(Result):
    """Report what one private record costs. `to_dict` is the JSON, `to_frame` the table for a notebook."""

    n: int
    l: int
    m: int
    pricing: Pricing
    mechanisms: Mapping[str, MechanismCost]
    choices: "Choices"  # of the whole record

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
    def sensor(self) -> "SensorRelease":
        """Return the cost of one release by a whole sensor, with generator and journal, every operation priced."""
        from sensorsim.costing.sensor import sensor_release

        own = self.pricing
        return sensor_release(self.n, Pricing(own.cpu, KERNEL_WIDTH, False, own.metric, "full", own.chip))

    @cached_property
    def record(self) -> "WholeRecord":
        """Return the energy of a whole record on a chip: arithmetic, random words, journal and radio."""
        from sensorsim.costing.whole_record import price_whole_record

        return price_whole_record(self)

    def to_dict(self) -> dict[str, Any]:
        from sensorsim.costing.comparisons import compare_printed, compare_published

        pricing = self.pricing
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
            "saving_percent": round_percent(self.saving()),
            "saving_percent_executed": round_percent(self.saving("traced")),
            "saving_percent_derived": round_percent(self.saving("symbolic")),
            **compare_printed(self),
            "published": compare_published(pricing.cpu.name),
            "executed": self.executed,
            "flags": list(pricing.flags.values()),
            "mechanisms": {name: self._mechanism(cost) for name, cost in self.mechanisms.items()},
            "sensor_release": self.sensor.to_dict() | {"unit": pricing.unit, "width": KERNEL_WIDTH},
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
            made[name] = {
                "total": view.total,
                "total_min": view.cost.min,
                "total_max": view.cost.max,
                "total_all_users": view.total * self.m,
                "formula": None if view.formula is None else str(view.formula),
                "steps": {
                    step: {"total": part.cost.typical, "operations": dict(part.operations)}
                    for step, part in view.steps.items()
                },
            }
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
    from sensorsim.costing.whole_record import Choices, resolve_choices

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


def round_percent(value: float | None) -> float | None:
    """Round a percentage to two digits; None stays None."""
    return None if value is None else round(value, 2)
