"""The values of a page. Nothing is computed here that a command does not compute too."""

import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sensorsim.report.asked import Wanted
from sensorsim.report.inputs import Input, fleet_content, of_board, read_fleet, read_noise, read_sweep

if TYPE_CHECKING:
    from sensorsim.claims import Claim
    from sensorsim.cost.whole_record import WholeRecord
    from sensorsim.fleet.result import FleetResult
    from sensorsim.plan import Plan
    from sensorsim.privacy.certificate import Certificate
    from sensorsim.report.package import PackageFacts
    from sensorsim.train.kept import KeptSweep

Told = Callable[[str], None]
STEPS = (1, 2, 5)  # of a decade
FEWEST, FEWER, MORE = 10, 100, 100  # devices of the curve: from a hundredth to a hundred times those asked for
PROGRAMS = ("sensorsim", "numpy", "scipy")


@dataclass(frozen=True)
class Rival:
    """A way to release one number, and the standard deviation of its estimate at the worst x, in ranges."""

    name: str
    sd: float
    own: bool = False  # the one that the plan takes


@dataclass(frozen=True)
class Core:
    """One release of a whole sensor on a core, from the core's table."""

    name: str
    title: str
    unit: str
    least: float
    typical: float
    most: float


@dataclass(frozen=True)
class Findings:
    """All that a page says."""

    wanted: Wanted
    record: "WholeRecord"
    printed_saving: float | None  # of SPOF over DP-SGD by the paper's list, per cent
    plan: "Plan"
    certificate: "Certificate"  # of the plan's table, proved just now
    rivals: tuple[Rival, ...]
    curve: tuple[tuple[int, float], ...]  # devices, half width
    cores: tuple[Core, ...]
    sweep: "KeptSweep | None"
    fleet: "FleetResult | None"
    package: "PackageFacts | None"
    claims: "tuple[Claim, ...] | None"
    inputs: tuple[Input, ...]
    versions: tuple[tuple[str, str], ...]


def gather(wanted: Wanted, told: Told = lambda text: None) -> Findings:
    """Everything; files of others are read first, so that a bad one is told at once."""
    from sensorsim.plan import plan
    from sensorsim.privacy.certificate import certify
    from sensorsim.report.package import read_package

    table, noise = read_noise(wanted.noise) if wanted.noise is not None else (None, None)
    asked = wanted.asked(table)
    sweep, of_sweep = read_sweep(wanted.sweep) if wanted.sweep is not None else (None, None)
    package = read_package(wanted.package) if wanted.package is not None else None
    kept = None if wanted.fleet is None else fleet_content(wanted.fleet)
    told("counting operations")
    record, saving = _record(wanted)
    told("planning")
    planned = plan(asked, told=told)
    fleet = of_fleet = None
    if wanted.fleet is not None and kept is not None:
        told("reading the fleet")
        tables = [planned.table, *([package.table] if package and package.table else [])]
        fleet, of_fleet = read_fleet(wanted.fleet, kept, tables, wanted.every)
    read = (of_sweep, package.source if package else None, of_fleet, noise, *of_board(wanted.chip))
    return Findings(
        wanted, record, saving, planned, certify(planned.table), _rivals(planned), _curve(planned),
        _cores(wanted.n, record.chip.cpu), sweep, fleet, package, _claims(told) if wanted.claims else None,
        tuple(one for one in read if one is not None), _versions(),
    )  # fmt: skip


def _record(wanted: Wanted) -> "tuple[WholeRecord, float | None]":
    from sensorsim.cost.cost_report import cost
    from sensorsim.cost.whole_record import Choices, price_whole_record

    report = cost(wanted.n, wanted.l)
    choices = Choices(wanted.chip, wanted.radio, battery_mah=wanted.battery_mah)
    return price_whole_record(report, choices), report.saving()


def _rivals(plan: "Plan") -> tuple[Rival, ...]:
    """At the epsilon of one released value."""
    from sensorsim.privacy import yardstick
    from sensorsim.privacy.tables import READY_EPSILONS, ready_table

    epsilon = float(plan.table.epsilon) / plan.table.release
    best = yardstick.best_known_sd(epsilon)
    found = [
        Rival("Laplace noise", yardstick.laplace_sd(epsilon)),
        Rival("piecewise", yardstick.piecewise_sd(epsilon)),
        Rival("one bit", yardstick.one_bit_sd(epsilon)),
        Rival("hybrid", yardstick.hybrid_sd(epsilon)),
    ]
    ready = next((text for text in READY_EPSILONS if float(text) == epsilon), None)
    if ready is not None:
        found.append(Rival("rows, ready table", ready_table(ready, 1).estimate_sd or 0.0))
    if plan.table.estimate_sd is not None:
        found.append(Rival("this plan's table", plan.table.estimate_sd, own=True))
    found += [] if best is None else [Rival("best known", best)]
    return tuple(sorted(found, key=lambda one: (-one.sd, one.name)))


def _curve(plan: "Plan") -> tuple[tuple[int, float], ...]:
    """The interval over the number of devices, all else as planned."""
    from sensorsim.plan.reached import mean_half, packets

    asked, table, allowed = plan.asked, plan.table, plan.settled.schedule.allowed
    assert asked.devices is not None and asked.every is not None and asked.budget_days is not None
    low, high = max(FEWEST, asked.devices // FEWER), asked.devices * MORE
    steps = {step * 10**power for power in range(13) for step in STEPS}
    places = sorted({step for step in steps if low <= step <= high} | {asked.devices})
    made = []
    for devices in places:
        values = int(packets(devices, asked.every, asked.budget_days, allowed) * table.release / table.features)
        half = plan.half if devices == asked.devices else mean_half(table, values, asked.expect)
        made.append((devices, half))
    return tuple(made)


def _cores(n: int, own: str) -> tuple[Core, ...]:
    """Those that have a table, and the board's where that is none of them."""
    from sensorsim.cost.prices import cpu_names, load_cpu
    from sensorsim.cost.pricing import full_pricing
    from sensorsim.cost.sensor import sensor_release

    found = []
    for name in dict.fromkeys([*cpu_names(), own]):
        cpu, cost = load_cpu(name), sensor_release(n, full_pricing(name)).cost
        found.append(Core(cpu.name, cpu.title, cpu.unit, float(cost.min), float(cost.typical), float(cost.max)))
    return tuple(found)


def _claims(told: Told) -> "tuple[Claim, ...]":
    from sensorsim.claims import claims

    told("recomputing the claims")
    return claims().claims


def _versions() -> tuple[tuple[str, str], ...]:
    from importlib.metadata import version

    return (*((name, version(name)) for name in PROGRAMS), ("Python", platform.python_version()))
