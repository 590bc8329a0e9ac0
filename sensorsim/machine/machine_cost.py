"""Report the cost of a record at three levels: the paper's closed form, every traced operation, machine code."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sensorsim._util.drawing import look, stacked_bars
from sensorsim._util.errors import InputError
from sensorsim._util.files import fill, temporary_folder
from sensorsim.costing.chips import Chip, load_chip
from sensorsim.costing.cost_report import PAPER_WIDTH, check_sizes, cost
from sensorsim.costing.cost_text import format_number
from sensorsim.costing.plot import BAR
from sensorsim.costing.prices import Cpu, load_cpu
from sensorsim.costing.pricing import KERNEL_WIDTH, list_forms, sum_counts
from sensorsim.language.arguments import arguments
from sensorsim.language.c.declarations import known_tables
from sensorsim.language.c.identifiers import Names
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.kernel import Kernel
from sensorsim.machine.counting import BlockCounter, Sums, Tally, WorstCase, describe_core, worst_case
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.emulated_sensor import SensorCost
from sensorsim.machine.emulator import Machine
from sensorsim.machine.harness import CoreRun, run_on_core
from sensorsim.machine.instructions import CLASSES, Decoder
from sensorsim.machine.taint import find_data_branch
from sensorsim.machine.targets import COUNTED, SHOWN_FLAGS, TARGETS, Target, compile_elf, name_compilers
from sensorsim.machine.vectors import as_arrays, by_plain_python, edge_vectors, of_one_call
from sensorsim.mechanisms import Form

SCHEMA_VERSION = 1
PREFIX = "ss_"
PRINTED = "printed, not split"
TRIED = 32  # inputs at the edges of their formats that must take the path of the record, for a worst case
# The machine's classes of the kernels' operations. Index arithmetic becomes addressing modes or additions.
GROUPS = {
    **dict.fromkeys(("ADD", "SUB"), "add"),
    **dict.fromkeys(("AND", "OR", "XOR", "NOT"), "logic"),
    **dict.fromkeys(("SHIFT", "ROTATE"), "shift"),
    **{"MUL": "multiply", "DIV": "divide", "COMPARE": "compare", "SELECT": "select"},
    **{"LOAD": "load", "STORE": "store", "BRANCH": "branch", "INDEX": "address"},
}


@dataclass(frozen=True)
class Level:
    """Hold one level: the whole cost, and by class the cost and the number of operations or instructions."""

    total: float
    costs: dict[str, float]
    counts: dict[str, int]


@dataclass(frozen=True)
class Case:
    """Hold one mechanism on one core. `paper` is None where the paper prints no form for it."""

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
    """Report the cost of one record at three levels."""

    n: int
    l: int
    compiler: str
    flags: str
    chip: str | None
    cases: tuple[Case, ...]
    sensor: tuple[SensorCost, ...] = ()  # one release by a whole sensor, generator and journal in it

    def to_dict(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "level": "machine", **asdict(self)}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one row for each mechanism, core and class."""
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
    sensor: Callable[[int, Sequence[str]], Sequence[SensorCost]] | None = None,
) -> MachineReport:
    """Compile every mechanism for every core, run one record, and report what ran beside the other levels.

    `sensor` returns the costs of a sensor for records of n features on the targets; without it there are none.
    """
    check_sizes(n, l)
    known_chip = load_chip(chip) if chip else None
    # The table's name for its usual core; another core that the same table prices keeps its own.
    names = [COUNTED[name].cpu if name in COUNTED and find_target(COUNTED[name].cpu).name == name else name
             for name in cpus]  # fmt: skip
    if known_chip is not None:
        if not known_chip.cpu or (names and names != [known_chip.cpu]):
            core = known_chip.cpu or known_chip.core
            raise InputError(f"{known_chip.name} has the core {core}; leave --cpu out, or choose another chip.")
        names = [known_chip.cpu]
    names = names or ["k7"]
    mechanisms = list_forms(variant)
    for name in names:  # a wrong one is refused before another is compiled
        _load_table(name), find_target(name)
    with temporary_folder() as build:
        cases = [case for name in names for case in _cases(mechanisms, n, l, name, Path(build), known_chip)]
    emulated = [target.name for target in map(find_target, names) if target.name in TARGETS]
    costs = sensor(n, emulated) if sensor and variant != "paper" else ()
    return MachineReport(n, l, name_compilers(names), SHOWN_FLAGS, chip, tuple(cases), tuple(costs))


def find_target(cpu: str) -> Target:
    """Return the core to compile for: that of the table, or the same one without its floating-point unit."""
    for target in COUNTED.values():
        if cpu in (target.cpu, target.name, *target.same_code):
            return target
    known = ", ".join(dict.fromkeys(target.cpu for target in COUNTED.values()))
    raise InputError(f"there is no machine code for {cpu}; at machine level there are {known}.")


def _load_table(name: str) -> Cpu:
    """Return the table of a processor or of a core."""
    return load_cpu(COUNTED[name].cpu if name in COUNTED else name)


def _cases(mechanisms: Sequence[Form], n: int, l: int, name: str, build: Path, chip: Chip | None) -> Iterator[Case]:
    cpu, target = _load_table(name), find_target(name)
    paper = cost(n, l, cpu=cpu.name)
    full = cost(n, l, cpu=cpu.name, accounting="full", width=KERNEL_WIDTH)
    for mechanism in mechanisms:
        run = run_record(mechanism.kernel, mechanism.record(n, l), cpu, target, build)
        sums, program, notes = run.sums, run.program, run.notes
        if math.isnan(sums.price):
            raise InputError(f"{cpu.path.name} has no price for all of {mechanism.name} ({'; '.join(notes)}).")
        printed, counted = paper.mechanisms[mechanism.name].printed, full.mechanisms[mechanism.name].counted
        groups = [(GROUPS[name], name, count) for name, count in counted.operations.items()]
        counts = sum_counts((group, count) for group, _, count in groups)
        prices = ((group, count * float(full.pricing.price(name).typical)) for group, name, count in groups)
        yield Case(
            mechanism=mechanism.name,
            title=mechanism.title,
            cpu=name,
            unit=cpu.unit,
            paper=float(printed.total) if printed else None,
            paper_width=PAPER_WIDTH if cpu.name == "k7" else KERNEL_WIDTH,
            kernel=Level(float(counted.total), sum_counts(prices), counts),
            machine=Level(sums.price, sums.prices, sums.classes),
            instructions=sums.instructions,
            flash_bytes=program.flash_bytes,
            ram_bytes=program.ram_bytes,
            stack_bytes=run.stack_bytes,
            runtime=tuple(sorted(name for name in program.symbols if not name.startswith((PREFIX, "compiler_rt")))),
            estimates=notes,
            nanojoule=sums.price * chip.pJ_per_cycle * 1e-12 * 1e9 if chip else None,
            worst_case=run.worst_case,
        )


def count_kernel(kernel: Kernel, at: Mapping[str, int], cpu: str) -> dict[str, Any]:
    """Count what the compiled code of a kernel executes for one call: lengths as given or typical, other inputs least.

    Empty for a processor that there is no compiler for.
    """
    try:
        target = find_target(cpu)
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
        "compiler": f"{name_compilers([target.name])}, {SHOWN_FLAGS}",
        "machine_text": f"{sums.instructions} instructions, {shown}, {size}",
    }


@dataclass(frozen=True)
class Run:
    """Hold what one record executed."""

    sums: Sums
    program: Program
    stack_bytes: int
    notes: tuple[str, ...]
    worst_case: WorstCase


def run_record(kernel: Kernel, record: Mapping[str, Any], cpu: Cpu, target: Target, build: Path) -> Run:
    """Run one record through the compiled kernel; its bits must be those of the kernel run in plain Python.

    A core that we interpret has no worst case.
    """
    folder, function = build / kernel.name, Names([kernel], PREFIX).functions[kernel]
    if not folder.exists():
        fill(folder, c_sources([kernel], PREFIX, known_tables([kernel], PREFIX), ""))
    sources, include = sorted((folder / "src").glob("*.c")), [folder / "include", folder / "src"]
    given, want = of_one_call(kernel, record), as_arrays(kernel, by_plain_python(kernel, record))
    tally = Tally()
    if target.load is not None:
        machine, counter = target.load(cpu, sources, include, function, kernel, folder)
    else:
        out = compile_elf(target, sources, include, function, build / f"{kernel.name}-{target.name}.elf")
        machine, decoder = Machine(target, read_elf(out.read_bytes())), Decoder(target, cpu)
        counter = BlockCounter(machine, decoder)
    if run_on_core(machine, given, want, function, counter, tally):
        raise RuntimeError(f"{kernel.name} on {target.name} differs from the kernel run in Python")
    (sums,) = tally.parts.values()
    stack, notes = machine.stack_bytes(), tuple(sorted(tally.notes))
    if target.load is not None:
        why = "no bound: the compiler's runtime shifts and divides place by place"
        return Run(sums, machine.program, stack, notes, WorstCase(None, cpu.unit, describe_core(cpu), why))
    for _ in CoreRun(machine, edge_vectors(kernel, given.lengths, 8 * TRIED, 0).some(TRIED), function).calls():
        counter.take(tally)
    decided = find_data_branch(machine, decoder, CoreRun(machine, given, function))
    return Run(sums, machine.program, stack, notes, worst_case(kernel, counter, tally, cpu, PREFIX, decided))


def levels_figure(report: MachineReport) -> Any:
    """Draw one panel for each core, since units differ; in it three bars for each mechanism, stacked by class."""
    from matplotlib.figure import Figure

    bars: dict[tuple[str, str], list[tuple[str, dict[str, float]]]] = {}
    for case in report.cases:
        panel = bars.setdefault((case.cpu, case.unit), [])
        if case.paper is not None:
            panel.append((f"{case.mechanism}, paper", {PRINTED: case.paper}))
        panel.append((f"{case.mechanism}, kernel", case.kernel.costs))
        panel.append((f"{case.mechanism}, machine", case.machine.costs))
    heights = [0.8 + BAR * len(each) for each in bars.values()]
    figure = Figure(figsize=(11, 1.6 + sum(heights)), layout="constrained")
    panels = figure.subplots(len(bars), 1, squeeze=False, height_ratios=heights)[:, 0]
    names = (PRINTED, *CLASSES)
    looks = {name: look(place) for place, name in enumerate(names)}
    handles: dict[str, Any] = {}
    for axes, ((cpu, unit), rows) in zip(panels, bars.items(), strict=True):
        parts = {name: [each.get(name, 0.0) for _, each in rows] for name in names}
        stacked_bars(axes, [title for title, _ in rows], parts, format_number, looks)
        axes.set_xlabel(f"cost of a record on {cpu}, {unit}", fontsize=8)
        handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    ordered = [name for name in names if name in handles]
    figure.legend([handles[name] for name in ordered], ordered, loc="outside right upper", fontsize=7, frameon=False)
    figure.suptitle(
        f"n = {report.n}, l = {report.l} · paper: the printed list, kernel: its operations, machine: instructions · "
        f"{report.compiler}",
        fontsize=8,
    )
    return figure
