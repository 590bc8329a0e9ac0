"""The text of `sensorsim cost --level machine`."""

from sensorsim._util.terminal import table
from sensorsim.costing.cost_text import fold_all, sizes
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
    """Return three levels side by side, then the gap between kernel and machine by class."""
    heading = (
        f"Cost of one private record at three levels, {sizes(report.n, report.l)}",
        f"{report.compiler}, {report.flags}; every result had the bits of the kernel run in Python",
    )
    parts = [fold_all(heading, width), _levels(report, width), _sensor(report, width)]
    for cpu in dict.fromkeys(case.cpu for case in report.cases):
        cases = [case for case in report.cases if case.cpu == cpu]
        parts += [_gap(cases[start : start + SIDE_BY_SIDE], width) for start in range(0, len(cases), SIDE_BY_SIDE)]
    if report.chip:
        energy = [[case.title, f"{case.nanojoule:.1f}"] for case in report.cases]
        title = f"Energy on {report.chip}: of this code alone; the whole record is below"
        parts.append([title, *table(("record", "nJ"), energy, width, ("nJ",))])
    parts.append(fold_all(_notes(report), width))
    return "\n\n".join("\n".join(part) for part in parts if part)


def _levels(report: MachineReport, width: int) -> list[str]:
    numbers, footprint = ("paper", "kernel", "machine", "worst"), ("instructions", "flash", "stack")
    rows = []
    for case in report.cases:
        levels = (case.paper, case.kernel.total, case.machine.total, case.worst_case.cost)
        costs = ["-" if cost is None else f"{cost:.0f}" for cost in levels]
        taken = map(str, (case.instructions, case.flash_bytes, case.stack_bytes))
        rows.append([case.cpu, case.title, *costs, case.unit, *taken])
    heads = ("core", "record", *numbers, "unit", *footprint)
    dropped = ("instructions", "stack", "flash")
    return table(heads, rows, width, (*numbers, *footprint), drop=dropped, folded=("record", 18))


def _sensor(report: MachineReport, width: int) -> list[str]:
    """Return what a release and an open of a whole sensor cost, with generator, journal and packet."""
    rows = []
    for cost in report.sensor:
        for call in cost.calls:
            price = "no price" if call.cost is None else f"{call.cost:.0f}"
            taken = f"{call.instructions:.0f}", str(cost.flash_bytes), str(call.stack_bytes)
            rows.append([cost.target, f"ss_sensor_{call.call}", price, call.unit, *taken])
    if not rows:
        return []
    heads = ("core", "call", "machine", "unit", "instructions", "flash", "stack")
    made = table(heads, rows, width, ("machine", "instructions", "flash", "stack"), drop=("instructions",))
    return ["the sensor, 1 feature by rows, without the board's own functions", *made]


def _gap(cases: list[Case], width: int) -> list[str]:
    """Return the operations of the kernel → instructions of the machine, by class."""
    rows = []
    for name in CLASSES:
        pairs = [(case.kernel.counts.get(name), case.machine.counts.get(name)) for case in cases]
        if any(count is not None for pair in pairs for count in pair):
            rows.append([name, *(f"{kernel or 0} → {machine or 0}" for kernel, machine in pairs), WHY[name]])
    rows.append(["all", *(f"{sum(case.kernel.counts.values())} → {case.instructions}" for case in cases), ""])
    title = f"{cases[0].cpu}: operations of the kernel → instructions executed"
    own = [case.mechanism for case in cases]
    return [title, *table(("class", *own, "why"), rows, width, own, folded=("why", 30))]


def _notes(report: MachineReport) -> list[str]:
    lines = [
        "paper: the printed closed form in the paper's accounting; kernel: every traced operation priced at 32 bits, "
        "unsigned; machine: every executed instruction priced by the core's table."
    ]
    bounds: dict[tuple[str, str], list[str]] = {}  # what the worst case is, and for which core
    for case in report.cases:
        if case.worst_case.cost is not None:
            bounds.setdefault((case.worst_case.why, case.worst_case.core), []).append(case.mechanism)
    for (why, core), mechanisms in bounds.items():
        of = "" if len(bounds) == 1 else f" ({', '.join(mechanisms)})"
        lines.append(f"worst{of}: {why}. No call at these sizes takes more on {core}.")
    unbounded = [case for case in report.cases if case.worst_case.cost is None]
    lines += [f"{case.cpu}, {case.mechanism}: {case.worst_case.why}." for case in unbounded]
    widths = {case.cpu: case.paper_width for case in report.cases if case.paper is not None}
    if widths:
        operands = ", ".join(f"{width}-bit on {cpu}" for cpu, width in widths.items())
        lines.append(f"Operands of the paper's level: {operands}.")
    for case in (case for case in report.cases if case.runtime):
        lines.append(f"{case.cpu}, {case.mechanism}: calls {', '.join(case.runtime)} of the compiler's runtime.")
    for cpu in dict.fromkeys(case.cpu for case in report.cases):
        notes = sorted({note for case in report.cases if case.cpu == cpu for note in case.estimates})
        if len(notes) > MANY:
            lines.append(f"{len(notes)} rows of {cpu}'s table are not confirmed; see `sensorsim cpus show {cpu}`.")
        elif notes:
            lines.append(f"Rows of {cpu}'s table that are not confirmed: {', '.join(notes)}.")
    return lines
