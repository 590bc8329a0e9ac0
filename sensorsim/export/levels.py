"""Three levels of one cost: the paper's closed form, the traced kernel with everything priced, the executed code."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim.cost.chips import Chip, load_chip
from sensorsim.cost.cost_report import PAPER_WIDTH, CostReport, check_sizes, cost
from sensorsim.cost.prices import Cpu, load_cpu
from sensorsim.cost.pricing import KERNEL_WIDTH, list_forms
from sensorsim.errors import InputError
from sensorsim.export.run import PREFIX, run_record
from sensorsim.files import temporary_folder
from sensorsim.language.arguments import arguments
from sensorsim.language.kernel import Kernel
from sensorsim.machine.decode import CLASSES
from sensorsim.machine.targets import COUNTED, SHOWN_FLAGS, TARGETS, Target, compilers
from sensorsim.machine.worst import WorstCase
from sensorsim.mechanisms import Form

if TYPE_CHECKING:
    from sensorsim.export.sensor_cost import SensorCost

SCHEMA_VERSION = 1
# The machine's classes of the kernels' operations. Index arithmetic becomes addressing or additions, as the core likes.
GROUPS = {
    **dict.fromkeys(("ADD", "SUB"), "add"),
    **dict.fromkeys(("AND", "OR", "XOR", "NOT"), "logic"),
    **dict.fromkeys(("SHIFT", "ROTATE"), "shift"),
    **{"MUL": "multiply", "DIV": "divide", "COMPARE": "compare", "SELECT": "select"},
    **{"LOAD": "load", "STORE": "store", "BRANCH": "branch", "INDEX": "address"},
}


@dataclass(frozen=True)
class Level:
    """One level: the whole cost, and by class the cost and the number of operations or instructions."""

    total: float
    costs: dict[str, float]
    counts: dict[str, int]


@dataclass(frozen=True)
class Case:
    """One mechanism on one core. `paper` is None where the paper prints no form for it."""

    mechanism: str
    title: str
    cpu: str
    unit: str
    paper: float | None
    paper_width: int
    kernel: Level
    machine: Level
    instructions: int
    flash_bytes: int
    ram_bytes: int
    stack_bytes: int
    runtime: tuple[str, ...]
    estimates: tuple[str, ...]
    nanojoule: float | None
    worst_case: WorstCase


@dataclass(frozen=True)
class MachineReport:
    """The cost of one record at three levels."""

    n: int
    l: int
    compiler: str
    flags: str
    chip: str | None
    cases: tuple[Case, ...]
    sensor: tuple["SensorCost", ...] = ()  # one release by a whole sensor, generator and journal in it

    def to_dict(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "level": "machine", **asdict(self)}

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row for each mechanism, core and class."""
        for case in self.cases:
            for name in (name for name in CLASSES if name in case.kernel.counts or name in case.machine.counts):
                yield {
                    "mechanism": case.mechanism,
                    "cpu": case.cpu,
                    "class": name,
                    "kernel_operations": case.kernel.counts.get(name, 0),
                    "machine_instructions": case.machine.counts.get(name, 0),
                    "kernel_cost": case.kernel.costs.get(name, 0),
                    "machine_cost": case.machine.costs.get(name, 0),
                    "unit": case.unit,
                }


def machine_cost(
    n: int,
    l: int,
    cpus: Sequence[str] = (),
    variant: str = "all",
    chip: str | None = None,
) -> MachineReport:
    """Compile every mechanism for every core, run one record, and set what ran beside the other levels."""
    check_sizes(n, l)
    known_chip = load_chip(chip) if chip else None
    names = _cpus(cpus, known_chip)
    mechanisms = list_forms(variant)
    for name in names:  # a wrong one is refused before another is compiled
        _priced(name), target_of(name)
    with temporary_folder() as build:
        cases = [case for name in names for case in _cases(mechanisms, n, l, name, Path(build), known_chip)]
    sensor = _sensor(n, names) if variant != "paper" else ()
    return MachineReport(n, l, compilers(names), SHOWN_FLAGS, chip, tuple(cases), sensor)


def _sensor(n: int, cpus: Sequence[str]) -> tuple["SensorCost", ...]:
    """The default sensor for records of n features on these cores."""
    from dataclasses import replace

    from sensorsim.device.firmware import Firmware
    from sensorsim.export.sensor import SensorCode
    from sensorsim.export.sensor_cost import sensor_costs
    from sensorsim.export.sensor_package import default_table

    firmware = Firmware(replace(default_table(), features=n))
    return tuple(
        sensor_costs(
            firmware,
            SensorCode(firmware, PREFIX).sources(""),
            PREFIX,
            [target_of(cpu).name for cpu in cpus if target_of(cpu).name in TARGETS],
        )
    )


def target_of(cpu: str) -> Target:
    """The core to compile for: that of the table, or the same one without its floating-point unit."""
    for target in COUNTED.values():
        if cpu in (target.cpu, target.name, *target.same_code):
            return target
    known = ", ".join(dict.fromkeys(target.cpu for target in COUNTED.values()))
    raise InputError(f"there is no machine code for {cpu}; at machine level there are {known}.")


def _cpus(cpus: Sequence[str], chip: Chip | None) -> list[str]:
    names = [_usual(name) for name in cpus]
    if chip is None:
        return names or ["k7"]
    if not chip.cpu or (names and names != [chip.cpu]):
        raise InputError(f"{chip.name} has the core {chip.cpu or chip.core}; leave --cpu out, or choose another chip.")
    return [chip.cpu]


def _usual(name: str) -> str:
    """The table's name for its usual core; another core that the same table prices keeps its own."""
    return COUNTED[name].cpu if name in COUNTED and target_of(COUNTED[name].cpu).name == name else name


def _priced(name: str) -> Cpu:
    """Return the table of a processor or of a core."""
    return load_cpu(COUNTED[name].cpu if name in COUNTED else name)


def _cases(
    mechanisms: Sequence[Form],
    n: int,
    l: int,
    name: str,
    build: Path,
    chip: Chip | None,
) -> Iterator[Case]:
    cpu, target = _priced(name), target_of(name)
    paper = cost(n, l, cpu=cpu.name)
    full = cost(n, l, cpu=cpu.name, accounting="full", width=KERNEL_WIDTH)
    for mechanism in mechanisms:
        run = run_record(mechanism.kernel, mechanism.record(n, l), cpu, target, build)
        sums, program, notes = run.sums, run.program, run.notes
        if math.isnan(sums.price):
            raise InputError(f"{cpu.path.name} has no price for all of {mechanism.name} ({'; '.join(notes)}).")
        printed = paper.mechanisms[mechanism.name].printed
        joules = sums.price * chip.pJ_per_cycle * 1e-12 if chip else None
        yield Case(
            mechanism=mechanism.name,
            title=mechanism.title,
            cpu=name,
            unit=cpu.unit,
            paper=float(printed.total) if printed else None,
            paper_width=PAPER_WIDTH if cpu.name == "k7" else KERNEL_WIDTH,
            kernel=_kernel_level(full, mechanism.name),
            machine=Level(sums.price, sums.prices, sums.classes),
            instructions=sums.instructions,
            flash_bytes=program.flash_bytes,
            ram_bytes=program.ram_bytes,
            stack_bytes=run.stack_bytes,
            runtime=tuple(sorted(name for name in program.symbols if not name.startswith((PREFIX, "compiler_rt")))),
            estimates=notes,
            nanojoule=joules * 1e9 if joules else None,
            worst_case=run.worst_case,
        )


def _kernel_level(report: CostReport, name: str) -> Level:
    view = report.mechanisms[name].counted
    counts: dict[str, int] = {}
    costs: dict[str, float] = {}
    for step in view.steps.values():
        for operation, count in step.operations.items():
            group = GROUPS[operation]
            counts[group] = counts.get(group, 0) + count
            costs[group] = costs.get(group, 0) + count * float(report.pricing.price(operation).typical)
    return Level(float(view.total), costs, counts)


def kernel_machine(kernel: Kernel, at: Mapping[str, int], cpu: str) -> dict[str, Any]:
    """What the compiled code of any kernel executes for one call: lengths as given or typical, other inputs least.

    Empty for a processor that there is no compiler for.
    """
    try:
        target = target_of(cpu)
    except InputError:
        return {}
    lengths = kernel.lengths_at({name: value for name, value in at.items() if name in kernel.lengths})
    record = {**arguments(kernel, lengths, lambda name, lo, hi: lo), **at}
    with temporary_folder() as build:
        run = run_record(kernel, record, load_cpu(cpu), target, Path(build))
    sums, program, stack = run.sums, run.program, run.stack_bytes
    price = None if math.isnan(sums.price) else sums.price
    worst = run.worst_case
    shown = f"{price:.0f} {worst.unit}" if price is not None else "no price for every instruction"
    size = f"{program.flash_bytes} bytes of code, {stack} of stack"
    return {
        "machine_instructions": sums.instructions,
        "machine_cost": price,
        "machine_classes": sums.classes,
        "machine_worst_case": worst.cost,
        "machine_worst_case_core": worst.core,
        "machine_worst_case_why": worst.why,
        "machine_notes": list(run.notes),
        "flash_bytes": program.flash_bytes,
        "ram_bytes": program.ram_bytes,
        "stack_bytes": stack,
        "compiler": f"{compilers([target.name])}, {SHOWN_FLAGS}",
        "machine_text": f"{sums.instructions} instructions, {shown}, {size}",
    }
