"""The text of `sensorsim cost --level machine`."""

from sensorsim._util.terminal import fitting, table
from sensorsim.costing.cost_text import sizes
from sensorsim.machine.instructions import CLASSES
from sensorsim.machine.machine_cost import Case, MachineReport

MANY = 40  # rows that are not confirmed, above which their number says more than their names
SIDE_BY_SIDE = 2  # mechanisms in one table, so that a line stays readable
# Why a class has more instructions than the kernel has operations, or fewer.
WHY = {
    "move": "copies between registers, constants",
    "load": "table and array reads; spilled registers read back",
    "store": "array writes; spilled registers",
    "stack": "registers saved and restored",
    "address": "index arithmetic: often free in addressing modes, else among add",
    "add": "data, and pointers that move",
    "logic": "masks; a select by mask",
    "shift": "scaling, and table indices",
    "compare": "loop ends; folded into flags",
    "select": "conditional moves; elsewhere by mask, among logic",
    "multiply": "products",
    "wide multiply": "products of 64 bits, and division by a constant",
    "divide": "divisions; without a divider they are calls",
    "branch": "loops; in a soft division its steps",
    "call": "calls and returns",
}


def machine_text(report: MachineReport, width: int) -> str:
    """Three levels side by side, then the gap between kernel and machine by class; lines of at most so many letters."""
    lines = [
        *fitting(width, f"Cost of one private record at three levels, {sizes(report.n, report.l)}"),
        *fitting(width, f"{report.compiler}, {report.flags}; every result had the bits of the kernel run in Python"),
        "",
        *_levels(report, width),
    ]
    if report.sensor:
        lines += ["", *_sensor(report, width)]
    for cpu in dict.fromkeys(case.cpu for case in report.cases):
        cases = [case for case in report.cases if case.cpu == cpu]
        for start in range(0, len(cases), SIDE_BY_SIDE):
            lines += ["", *_gap(cases[start : start + SIDE_BY_SIDE], width)]
    if report.chip:
        lines += ["", *_energy(report, width)]
    return "\n".join([*lines, "", *(part for line in _notes(report) for part in fitting(width, line))])


def _levels(report: MachineReport, width: int) -> list[str]:
    numbers = ("paper", "kernel", "machine", "worst")
    sizes = ("instructions", "flash", "stack")
    rows = []
    for case in report.cases:
        paper = "-" if case.paper is None else f"{case.paper:.0f}"
        worst = "-" if case.worst_case.cost is None else f"{case.worst_case.cost:.0f}"
        costs = [paper, f"{case.kernel.total:.0f}", f"{case.machine.total:.0f}", worst, case.unit]
        rows.append(
            [case.cpu, case.title, *costs, f"{case.instructions}", f"{case.flash_bytes}", f"{case.stack_bytes}"]
        )
    heads = ("core", "record", *numbers, "unit", *sizes)
    return table(heads, rows, width, (*numbers, *sizes), drop=("instructions", "stack", "flash"), folded=("record", 18))


def _sensor(report: MachineReport, width: int) -> list[str]:
    """The whole sensor: what a release and an open cost with generator, journal and packet in it."""
    rows = []
    for cost in report.sensor:
        for call in cost.calls:
            price = "no price" if call.cost is None else f"{call.cost:.0f}"
            rows.append(
                [cost.target, f"ss_sensor_{call.call}", price, call.unit, f"{call.instructions:.0f}",
                 f"{cost.flash_bytes}", f"{call.stack_bytes}"]
            )  # fmt: skip
    numbers = ("machine", "instructions", "flash", "stack")
    heads = ("core", "call", "machine", "unit", "instructions", "flash", "stack")
    made = table(heads, rows, width, numbers, drop=("instructions",))
    return ["the sensor, 1 feature by rows, without the board's own functions", *made]


def _gap(cases: list[Case], width: int) -> list[str]:
    """Operations of the kernel → instructions of the machine, by class."""
    names = [
        name for name in CLASSES if any(name in case.kernel.counts or name in case.machine.counts for case in cases)
    ]
    rows = []
    for name in names:
        cells = [f"{case.kernel.counts.get(name, 0)} → {case.machine.counts.get(name, 0)}" for case in cases]
        rows.append([name, *cells, WHY[name]])
    totals = [f"{sum(case.kernel.counts.values())} → {case.instructions}" for case in cases]
    rows.append(["all", *totals, ""])
    title = f"{cases[0].cpu}: operations of the kernel → instructions executed"
    own = [case.mechanism for case in cases]
    return [title, *table(("class", *own, "why"), rows, width, own, folded=("why", 30))]


def _energy(report: MachineReport, width: int) -> list[str]:
    rows = [[case.title, f"{case.nanojoule:.1f}"] for case in report.cases]
    return [
        f"Energy on {report.chip}: of this code alone; the whole record is below",
        *table(("record", "nJ"), rows, width, ("nJ",)),
    ]


def _notes(report: MachineReport) -> list[str]:
    lines = [
        "paper: the printed closed form in the paper's accounting; kernel: every traced operation priced at 32 bits, "
        "unsigned; machine: every executed instruction priced by the core's table."
    ]
    lines += _worst(report)
    widths = {case.cpu: case.paper_width for case in report.cases if case.paper is not None}
    if widths:
        lines.append(
            "Operands of the paper's level: " + ", ".join(f"{w}-bit on {cpu}" for cpu, w in widths.items()) + "."
        )
    for case in report.cases:
        if case.runtime:
            lines.append(f"{case.cpu}, {case.mechanism}: calls {', '.join(case.runtime)} of the compiler's runtime.")
    for cpu in dict.fromkeys(case.cpu for case in report.cases):
        notes = sorted({note for case in report.cases if case.cpu == cpu for note in case.estimates})
        if len(notes) > MANY:
            lines.append(f"{len(notes)} rows of {cpu}'s table are not confirmed; see `sensorsim cpus show {cpu}`.")
        elif notes:
            lines.append(f"Rows of {cpu}'s table that are not confirmed: {', '.join(notes)}.")
    return lines


def _worst(report: MachineReport) -> list[str]:
    """Say what the worst case is, for which core, and why a case has none."""
    bounded = [case for case in report.cases if case.worst_case.cost is not None]
    lines: list[str] = []
    if bounded:
        told: dict[tuple[str, str], list[str]] = {}
        for case in bounded:
            told.setdefault((case.worst_case.why, case.worst_case.core), []).append(case.mechanism)
        for (why, core), mechanisms in told.items():
            of = "" if len(told) == 1 else f" ({', '.join(mechanisms)})"
            lines.append(f"worst{of}: {why}. No call at these sizes takes more on {core}.")
    for case in report.cases:
        if case.worst_case.cost is None:
            lines.append(f"{case.cpu}, {case.mechanism}: {case.worst_case.why}.")
    return lines
