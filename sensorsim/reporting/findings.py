"""All values of a page. Each is computed by the function behind another command."""

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.terminal import counted
from sensorsim.noise.certificate import format_epsilon as epsilon
from sensorsim.reporting.inputs import InputFile, InputReader
from sensorsim.reporting.request import ReportRequest

if TYPE_CHECKING:
    from sensorsim.costing.whole_record import WholeRecord
    from sensorsim.fleets.fleet_result import FleetResult
    from sensorsim.noise.certificate import Certificate
    from sensorsim.noise.noise_table import NoiseTable
    from sensorsim.paper.claim import Claim
    from sensorsim.planning import Plan
    from sensorsim.planning.person_epsilon import Spent
    from sensorsim.reporting.inputs import PackageFacts
    from sensorsim.training.results_file import StoredSweep

Progress = Callable[[str], None]
CURVE_STEPS = (1, 2, 5)  # in each decade
FEWEST_DEVICES, CURVE_SPAN = 10, 100  # the curve goes from a hundredth of the devices, but at least ten, to 100 times
PROGRAMS = ("sensorsim", "numpy", "scipy")
COMPARED = ("features", "epsilon", "mechanism")


@dataclass(frozen=True)
class Rival:
    """A mechanism that releases one number, and the standard deviation of its estimate at the worst x, in ranges."""

    name: str
    sd: float
    own: bool = False  # the one in the plan


@dataclass(frozen=True)
class Core:
    """Cost of one release of a whole sensor on a core, from the core's table."""

    name: str
    title: str
    unit: str
    least: float
    typical: float
    most: float


@dataclass(frozen=True)
class Setting:
    """The setting of one part of the page. The epsilons are the requested ones, per record."""

    of: str
    features: int
    epsilon: tuple[Decimal, ...]
    mechanism: tuple[str, ...]
    records: str

    def text(self, name: str) -> str:
        """Return one of the values as text."""
        value = getattr(self, name)
        if name == "epsilon":
            return ", ".join(map(epsilon, value)) or "none"
        return ", ".join(value) if isinstance(value, tuple) else str(value)

    def differences(self, other: "Setting") -> list[str]:
        """Return the values of `other` that differ from these, each with its name."""
        return [f"{name} {other.text(name)}" for name in COMPARED if getattr(self, name) != getattr(other, name)]

    def to_dict(self) -> dict[str, Any]:
        """Return the setting as JSON has it."""
        return asdict(self) | {"epsilon": [float(one) for one in self.epsilon], "mechanism": list(self.mechanism)}


@dataclass(frozen=True)
class Findings:
    """All values of a page."""

    request: ReportRequest
    record: "WholeRecord"
    printed_saving: float | None  # of SPOF over DP-SGD by the paper's list, per cent
    plan: "Plan"
    certificate: "Certificate"  # of the plan's table
    rivals: tuple[Rival, ...]
    curve: tuple[tuple[int, float], ...]  # devices, half width
    cores: tuple[Core, ...]
    sweep: "StoredSweep | None"
    fleet: "FleetResult | None"
    package: "PackageFacts | None"
    claims: "tuple[Claim, ...] | None"
    inputs: tuple[InputFile, ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def month(self) -> "Spent":
        """The epsilon that a person spends in any 30 days."""
        from sensorsim.planning.person_epsilon import MONTH

        return next(one for one in self.plan.protects.spent if one.days == MONTH)

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """The setting of each part by its name, the plan's first. Numbers of different settings are never mixed."""
        request, table = self.request, self.plan.table
        records = f"{counted(request.records_per_day, 'record')} a day of {counted(request.devices, 'device')}"
        found = [Setting("the plan", self.plan.asked.n, (table.epsilon,), _mechanism(table), records)]
        if self.sweep is not None:
            cells = self.sweep.cells
            nominal = sorted({one.nominal_epsilon for one in cells if one.nominal_epsilon is not None})
            names = tuple(dict.fromkeys(one.mechanism for one in cells))
            records = f"{counted(self.sweep.rows, 'row')} of {self.sweep.source}"
            epsilons = tuple(Decimal(str(one)) for one in nominal)
            found.append(Setting("the sweep", self.sweep.n, epsilons, names, records))
        if self.fleet is not None:
            chosen, table = self.fleet.settings, self.fleet.settings.firmware.table
            made = self.fleet.counts.outcome("records")
            records = f"{counted(made, 'record')} of {counted(chosen.devices, 'device')}"
            found.append(Setting("the fleet", len(chosen.people.columns), (table.epsilon,), _mechanism(table), records))
        if self.package is not None and self.package.table is not None:
            table = self.package.table
            found.append(Setting("the package", table.features, (table.epsilon,), _mechanism(table), "no records"))
        return {one.of: one for one in found}


def _mechanism(table: "NoiseTable") -> tuple[str, ...]:
    return ("sampled" if table.sampled else "release",)


def compute_findings(request: ReportRequest, progress: Progress = lambda text: None) -> Findings:
    """Compute all values of the page. Most files are read first, so that a bad one is reported at once."""
    from sensorsim.noise.certificate import certify
    from sensorsim.planning import plan

    reader = InputReader()
    sweep, package = reader.sweep(request.sweep), reader.package(request.package)
    asked = request.to_plan(reader.noise(request.noise))
    progress("counting operations")
    record, saving = _record_cost(request)
    progress("planning")
    planned = plan(asked, told=progress)
    tables = [planned.table, *([package.table] if package and package.table else [])]
    fleet = reader.fleet(request.fleet, tables, request.every)
    reader.board(request.chip)
    return Findings(
        request, record, saving, planned, certify(planned.table), _rivals(planned), _curve(planned),
        core_costs(request.n, record.chip.cpu), sweep, fleet, package, _claims(progress) if request.claims else None,
        tuple(reader.files), _versions(),
    )  # fmt: skip


def _record_cost(request: ReportRequest) -> "tuple[WholeRecord, float | None]":
    from sensorsim.costing.cost_report import cost
    from sensorsim.costing.whole_record import Choices, price_whole_record

    costs = cost(request.n, request.l)
    choices = Choices(request.chip, request.radio, battery_mah=request.battery_mah)
    return price_whole_record(costs, choices), costs.saving()


def _rivals(plan: "Plan") -> tuple[Rival, ...]:
    """Compare the plan's table with other mechanisms at the epsilon of one released value, worst first."""
    from sensorsim.noise import baseline
    from sensorsim.noise.noise_table import READY_EPSILONS, ready_table

    value = float(plan.table.epsilon) / plan.table.release
    ready = next((text for text in READY_EPSILONS if float(text) == value), None)
    found = {
        "Laplace noise": baseline.laplace_sd(value),
        "piecewise": baseline.piecewise_sd(value),
        "one bit": baseline.one_bit_sd(value),
        "hybrid": baseline.hybrid_sd(value),
        "rows, ready table": None if ready is None else ready_table(ready, 1).estimate_sd or 0.0,
        "best known": baseline.best_known_sd(value),
    }
    rivals = [Rival(name, sd) for name, sd in found.items() if sd is not None]
    if plan.table.estimate_sd is not None:
        rivals.append(Rival("this plan's table", plan.table.estimate_sd, own=True))
    return tuple(sorted(rivals, key=lambda one: (-one.sd, one.name)))


def _curve(plan: "Plan") -> tuple[tuple[int, float], ...]:
    """Return the half width of the interval over the number of devices, all else as planned."""
    from sensorsim.planning.estimands import mean_half, packets

    asked, table, allowed = plan.asked, plan.table, plan.settled.schedule.allowed
    assert asked.devices is not None and asked.every is not None and asked.budget_days is not None
    least, most = max(FEWEST_DEVICES, asked.devices // CURVE_SPAN), asked.devices * CURVE_SPAN
    steps = (step * 10**power for power in range(13) for step in CURVE_STEPS)
    curve = {}
    for devices in sorted({asked.devices, *(step for step in steps if least <= step <= most)}):
        values = int(packets(devices, asked.every, asked.budget_days, allowed) * table.release / table.features)
        curve[devices] = mean_half(table, values, asked.expect)
    return tuple((curve | {asked.devices: plan.half}).items())


def core_costs(n: int, board_cpu: str) -> tuple[Core, ...]:
    """Return the cost of a release on every core with a table, and on the board's own core."""
    from sensorsim.costing.prices import cpu_names, load_cpu
    from sensorsim.costing.pricing import full_pricing
    from sensorsim.costing.sensor import sensor_release

    found = []
    for name in dict.fromkeys([*cpu_names(), board_cpu]):
        cpu, cost = load_cpu(name), sensor_release(n, full_pricing(name)).cost
        found.append(Core(cpu.name, cpu.title, cpu.unit, float(cost.min), float(cost.typical), float(cost.max)))
    return tuple(found)


def _claims(progress: Progress) -> "tuple[Claim, ...]":
    from sensorsim.paper.recompute import claims

    progress("recomputing the claims")
    return claims().claims


def _versions() -> tuple[tuple[str, str], ...]:
    from importlib.metadata import version

    return (*((name, version(name)) for name in PROGRAMS), ("Python", platform.python_version()))
