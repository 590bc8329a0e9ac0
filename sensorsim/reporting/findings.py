"""Compute the values of a page by the functions behind other commands, and read files of earlier commands.

A file is read once, without a change, and listed with its hash.
"""

import hashlib
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from itertools import chain, product
from math import isfinite
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim._util.resumable import read_still
from sensorsim._util.terminal import counted
from sensorsim.datasets.public_ranges import brief
from sensorsim.noise.certificate import format_epsilon as epsilon
from sensorsim.reporting.request import PathName, ReportRequest

if TYPE_CHECKING:
    from sensorsim.codegen.manifest import Package
    from sensorsim.costing.record_energy import WholeRecord
    from sensorsim.fleets.fleet_result import FleetResult
    from sensorsim.noise.certificate import Certificate
    from sensorsim.noise.noise_table import NoiseTable
    from sensorsim.paper.recompute import Claim
    from sensorsim.planning.person_epsilon import Spent
    from sensorsim.planning.study_plan import Plan
    from sensorsim.training.results_file import StoredSweep

Progress = Callable[[str], None]
CURVE_STEPS = (1, 2, 5)  # in each decade
FEWEST_DEVICES, CURVE_SPAN = 10, 100  # the curve goes from a hundredth of the devices, but at least ten, to 100 times
PROGRAMS = ("sensorsim", "numpy", "scipy")
COMPARED = ("features", "epsilon", "mechanism")
RELEASE = "release"  # the call of a sensor whose cost is shown
MOST_CHARACTERS = 1000  # of a command or a reason that a manifest states
CERTIFIED = ("epsilon_record", "delta_record", "neighbours")  # the part of a certificate that the page shows


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


class InputFile(NamedTuple):
    """A file that was read: the option that named it, its name without folders, and its SHA-256."""

    option: str
    name: str
    sha256: str


class CompiledCore(NamedTuple):
    """Sizes of a sensor, or of one kernel, compiled for one core; None where the manifest has no figure."""

    core: str
    function: str
    instructions: float | None = None
    cost: float | None = None
    unit: str = ""
    stack: float | None = None
    flash: float | None = None
    ram: float | None = None


class PackageFacts(NamedTuple):
    """Contents of a C package whose files have the hashes of its manifest."""

    name: str
    command: str
    compiler: str
    files: int
    cores: tuple[CompiledCore, ...]
    table: "NoiseTable | None"
    certificate: "Certificate | None"  # computed from the table
    budget: str  # empty where the package is no sensor
    unproved: tuple[str, ...]  # kernels whose secrecy is not proved, with the reason


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
    package: PackageFacts | None
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

        def of_table(of: str, features: int, table: "NoiseTable", records: str) -> Setting:
            return Setting(of, features, (table.epsilon,), ("sampled" if table.sampled else "release",), records)

        request = self.request
        records = f"{counted(request.records_per_day, 'record')} a day of {counted(request.devices, 'device')}"
        found = [of_table("the plan", self.plan.asked.n, self.plan.table, records)]
        if self.sweep is not None:
            cells = self.sweep.cells
            nominal = sorted({one.nominal_epsilon for one in cells if one.nominal_epsilon is not None})
            names = tuple(dict.fromkeys(one.mechanism for one in cells))
            records = f"{counted(self.sweep.rows, 'row')} of {self.sweep.source}"
            epsilons = tuple(Decimal(str(one)) for one in nominal)
            found.append(Setting("the sweep", self.sweep.n, epsilons, names, records))
        if self.fleet is not None:
            chosen, made = self.fleet.settings, self.fleet.counts.outcome("records")
            records = f"{counted(made, 'record')} of {counted(chosen.devices, 'device')}"
            found.append(of_table("the fleet", len(chosen.people.columns), chosen.firmware.table, records))
        if self.package is not None and self.package.table is not None:
            found.append(of_table("the package", self.package.table.features, self.package.table, "no records"))
        return {one.of: one for one in found}


def compute_findings(request: ReportRequest, progress: Progress = lambda text: None) -> Findings:
    """Compute all values of the page. Most files are read first, so that a bad one is reported at once."""
    from importlib.metadata import version

    from sensorsim.costing.cost_report import cost
    from sensorsim.costing.record_energy import Choices, price_whole_record
    from sensorsim.noise.certificate import certify
    from sensorsim.paper.recompute import claims
    from sensorsim.planning.study_plan import plan

    reader = InputReader()
    sweep, package = reader.sweep(request.sweep), reader.package(request.package)
    asked = request.to_plan(reader.noise(request.noise))
    progress("counting operations")
    costs = cost(request.n, request.l)
    record = price_whole_record(costs, Choices(request.chip, request.radio, battery_mah=request.battery_mah))
    progress("planning")
    planned = plan(asked, told=progress)
    tables = [planned.table, *([package.table] if package and package.table else [])]
    fleet = reader.fleet(request.fleet, tables, request.every)
    reader.board(request.chip)
    recomputed = None
    if request.claims:
        progress("recomputing the claims")
        recomputed = claims().claims
    return Findings(
        request, record, costs.saving(), planned, certify(planned.table), _rivals(planned), _curve(planned),
        core_costs(request.n, record.chip.cpu), sweep, fleet, package, recomputed, tuple(reader.files),
        (*((name, version(name)) for name in PROGRAMS), ("Python", platform.python_version())),
    )  # fmt: skip


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
    from sensorsim.costing.pricing import full_pricing, sensor_release

    found = []
    for name in dict.fromkeys([*cpu_names(), board_cpu]):
        cpu, cost = load_cpu(name), sensor_release(n, full_pricing(name)).cost
        found.append(Core(cpu.name, cpu.title, cpu.unit, float(cost.min), float(cost.typical), float(cost.max)))
    return tuple(found)


# ── files ──


class InputReader:
    """Reader of files of earlier commands; lists what it read in `files`. A path of None gives None."""

    def __init__(self) -> None:
        self.files: list[InputFile] = []

    def sweep(self, path: PathName | None) -> "StoredSweep | None":
        """Read the results file of a sweep."""
        from sensorsim.training.results_file import MOST_BYTES, OPTION, stored_sweep

        content = self._content(OPTION, path, MOST_BYTES, "the results file of a sweep")
        return None if path is None else stored_sweep(_file_name(path), content)

    def fleet(self, path: PathName | None, tables: "list[NoiseTable]", every: int) -> "FleetResult | None":
        """Read the file of a fleet. Its noise table is looked up in `tables`, then among those that ship."""
        from sensorsim.fleets.fleet_file import MOST_BYTES, OPTION, stored_result
        from sensorsim.noise.noise_table import READY_EPSILONS, ready_table

        if path is None:
            return None
        content = self._content(OPTION, path, MOST_BYTES, "the file of a fleet")
        releases: tuple[int | str, ...] = (1, "all")
        kinds = product(("rows", "stairs"), releases, READY_EPSILONS)
        ready = (ready_table(epsilon, release, kind) for kind, release, epsilon in kinds)
        return stored_result(_file_name(path), content, chain(tables, ready), every)

    def noise(self, path: PathName | None) -> "NoiseTable | None":
        """Read a noise table."""
        from sensorsim.noise.table_file import MOST_BYTES, parse_table

        content = self._content("--noise", path, MOST_BYTES, "the path of a noise table")
        return None if path is None else parse_table(content, brief(_file_name(path)))

    def board(self, chip: str | None) -> None:
        """List the files of a board that is not one of those that ship."""
        from sensorsim.costing.chips import own_files
        from sensorsim.costing.csv_schema import MOST_BYTES

        for path in own_files(chip):
            self._content("--chip", path, MOST_BYTES, "the table of a chip")

    def package(self, folder: PathName | None) -> PackageFacts | None:
        """Read a C package; raise InputError if it is none, if a file was altered, or if its table proves otherwise."""
        from sensorsim.codegen.compliance import MANIFEST
        from sensorsim.codegen.manifest import open_package

        if folder is None:
            return None
        name = brief(_file_name(folder))
        try:
            package = open_package(Path(fspath(folder)))
            digest = hashlib.sha256((package.folder / MANIFEST).read_bytes()).hexdigest()
            self.files.append(InputFile("--package", MANIFEST, digest))
            return package_facts(package)
        except InputError as error:
            raise InputError(str(error)) from None  # an altered package is bad input here, and has no code of its own
        except OSError as error:
            raise InputError(f"cannot read {name}: {error.strerror}; give a folder that export wrote.") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = f"{name} has a manifest that no export writes ({brief(error)})"
            raise InputError(f"{why}; export the package again.") from None

    def _content(self, option: str, path: PathName | None, most: int, expected: str) -> bytes:
        """Read and list a file of at most `most` bytes; raise InputError, which asks for `expected`, if that fails."""
        if path is None:
            return b""
        name = _file_name(path)
        try:
            content = read_still(path, most)
        except InputError:
            raise
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is not the path of a file"
            raise InputError(f"cannot read {brief(name)}: {why}; give {expected}.") from None
        self.files.append(InputFile(option, name, hashlib.sha256(content).hexdigest()))
        return content


def _file_name(path: PathName) -> str:
    """Return a path without its folders: they belong neither on a page for others nor in a short message."""
    return Path(fspath(path)).name or fspath(path)


def package_facts(package: "Package") -> PackageFacts:
    """Return what the manifest of a package says, with every number checked, and its table proved again."""
    from sensorsim.language.secrecy import unproved

    manifest, sizes, sensor = package.manifest, package.manifest["sizes"], package.manifest.get("sensor")
    budget = ""
    if sensor is not None:
        budget = f"epsilon {brief(sensor['budget_epsilon'])} in {counted(int(_size(sensor['budget_days'])), 'day')}"
    return PackageFacts(
        package.folder.resolve().name,
        brief(manifest["command"], MOST_CHARACTERS),
        f"{brief(sizes['compiler'])}, {brief(sizes['flags'])}",
        len(manifest["files"]) + 1,
        tuple(_compiled_cores(sizes)),
        *_certify_table(package),
        budget,
        tuple(brief(text, MOST_CHARACTERS) for text in unproved(manifest["proved"])),
    )


def _certify_table(package: "Package") -> "tuple[NoiseTable | None, Certificate | None]":
    """Return the package's noise table and its certificate; raise InputError if the manifest states another one."""
    from sensorsim.noise.certificate import certify
    from sensorsim.noise.table_file import read_table

    if package.table_file is None:
        return None, None
    table = read_table(package.table_file)
    certificate, stated = certify(table), package.manifest["noise_table"]["certificate"]
    for name in CERTIFIED:
        if stated[name] != str(getattr(certificate, name)):
            raise InputError(
                f"{brief(package.folder)} says {name.replace('_', ' of a ')} {brief(stated[name])} and its table "
                f"proves {getattr(certificate, name)}; export the package again."
            )
    return table, certificate


def _compiled_cores(sizes: Any) -> Iterator[CompiledCore]:
    for one in sizes.get("by_core", ()):
        call = next(call for call in one["calls"] if call["call"] == RELEASE)
        cost = None if call["cost"] is None else _size(call["cost"])
        counts = _size(call["instructions"]), cost, brief(call["unit"]), _size(call["stack_bytes"])
        yield CompiledCore(brief(one["target"]), RELEASE, *counts, _size(one["flash_bytes"]), _size(one["ram_bytes"]))
    if "by_core" not in sizes:
        for function, by_core in sizes["by_function"].items():
            for core, found in by_core.items():
                yield CompiledCore(brief(core), brief(function), flash=_size(found["code_bytes"]))


def _size(value: Any) -> float:
    """Return a size or cost of a manifest; raise ValueError if it is no finite number."""
    if not isfinite(value):
        raise ValueError("a size")
    return float(value)
