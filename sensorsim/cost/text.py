"""The cost report as one screen of text. Plain strings: the command starts before a table library would be imported."""

from collections import Counter
from itertools import zip_longest

from sensorsim.cost.compare import break_even, by_width
from sensorsim.cost.ledger import describe
from sensorsim.cost.pricing import Total
from sensorsim.cost.published import published_line
from sensorsim.cost.record_text import LEFT_OUT, record_panel
from sensorsim.cost.report import CostReport
from sensorsim.cost.rows import Number
from sensorsim.cost.views import MechanismCost, View


def cost_text(report: CostReport) -> str:
    """The whole screen."""
    paper = [cost for cost in report.mechanisms.values() if cost.printed is not None]
    lean = [cost for cost in report.mechanisms.values() if cost.printed is None]
    listed = report.pricing.accounting == "paper"
    lines = heading(report)
    if paper:
        blocks = [_printed_block(cost) if listed else _full_block(cost) for cost in paper]
        lines += ["", *_beside(*blocks)]
        lines += _savings(report, paper)
    if lean and not paper:
        lines += [line for cost in lean for line in ["", *_full_block(cost)]]
    elif lean:
        lines += ["", *_lean_panel(lean)]
    lines += ["", *record_panel(report.record, report.saving() if paper else None)]
    if paper and listed:
        lines += ["", *_width_panel(report)]
    lines += ["", *notes(report)]
    return "\n".join(line.rstrip() for line in lines)


def heading(report: CostReport) -> list[str]:
    pricing = report.pricing
    sign = "signed" if pricing.signed else "unsigned"
    how = "the paper's accounting" if pricing.accounting == "paper" else "full accounting"
    place = pricing.chip.name if pricing.chip else pricing.cpu.title
    units = {"macro-ops": "macro-operations", "energy": "nanojoules"}.get(pricing.metric, pricing.unit)
    title = f"Cost of one private record, n = {report.n} features, l = {report.l} hidden units"
    if report.m > 1:
        title += f"; times m = {report.m} users for a round"
    return [title, f"{place} · {units} · {sign} {pricing.width}-bit operands · {how}"]


def notes(report: CostReport) -> list[str]:
    """What was left out, and every disputed or estimated row that entered a total."""
    pricing = report.pricing
    lines = []
    if pricing.accounting == "paper":
        lines.append(
            " Not counted: loads, stores, shifts, rotations, exclusive ors, compares, selects (so also clamps),"
        )
        lines.append(" branches, index arithmetic, loop counters. See --accounting full.")
    lines += [" Random bits are secret, 32 for each draw.", LEFT_OUT]
    if any(cost.traced.cost.min != cost.traced.cost.max for cost in report.mechanisms.values()):
        lines.append(f" Ranges are prices that depend on operands, no bound on compiled code: {_machine_level()}.")
    if pricing.metric == "latency":
        lines.append(" Latencies are added up as if nothing overlapped; a real core overlaps.")
    lines += published_line(pricing.cpu.name)
    if pricing.flags:
        lines.append(" Table rows in these totals that are not settled:")
        lines += [f"   {flag}" for flag in pricing.flags.values()]
    return lines


def _machine_level() -> str:
    """Where compiled code is counted, or what that needs."""
    from importlib.util import find_spec

    offered = "sensorsim cost --level machine"
    if find_spec("ziglang"):
        return f"see {offered}"
    from sensorsim.extras import to_get

    return f"{offered} needs {to_get(['ziglang'])}"


def number(value: Number) -> str:
    """A cost: whole numbers as they are, others with the digits that matter."""
    return str(int(value)) if value == int(value) else f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def span(total: Total) -> str:
    """A typical cost with its range where the table leaves one open."""
    if total.min == total.max:
        return number(total.typical)
    return f"{number(total.typical)} ({number(total.min)}–{number(total.max)})"


def _printed_block(cost: MechanismCost) -> list[str]:
    """Step by step: what the paper prints, beside what the kernel executes."""
    assert cost.printed is not None
    labels = {step: describe(cost.mechanism.name, step) for step in cost.printed.steps}
    wide = 14 + max(len(label) for label in labels.values())
    cell = max(9, 1 + len(number(cost.printed.total)), 1 + len(number(cost.traced.total)))
    lines = [f" {cost.mechanism.title:<{wide}}{'printed':>{cell}}{'executed':>{cell}}"]
    for step, part in cost.printed.steps.items():
        executed = cost.traced.steps[step].cost.typical
        differs = "←" if executed != part.cost.typical else ""
        words = f"{step:<14}{labels[step]}"
        lines.append(f" {words:<{wide}}{number(part.cost.typical):>{cell}}{number(executed):>{cell}}{differs}")
    lines.append(f" {'total':<{wide}}{number(cost.printed.total):>{cell}}{number(cost.traced.total):>{cell}}")
    for name, view in (("printed", cost.printed), ("derived from source", cost.symbolic)):
        if view.formula is not None:
            lines.append(f"   {name:<20} {view.formula} = {number(view.total)}")
    bits = f"{cost.random_bits}, {cost.bits_sent} sent"
    return [*lines, f"   {'random bits':<20} {bits}"]


def _full_block(cost: MechanismCost) -> list[str]:
    """Step by step as executed, then by operation class."""
    cell = max(16, 1 + len(span(cost.traced.cost)))
    wide = max(28, 1 + len(cost.mechanism.title))
    lines = [f" {cost.mechanism.title:<{wide}}{'executed':>{cell}}"]
    for step, part in cost.traced.steps.items():
        if part.cost.typical:
            lines.append(f"   {step:<{wide - 2}}{span(part.cost):>{cell}}")
    lines.append(f"   {'total':<{wide - 2}}{span(cost.traced.cost):>{cell}}")
    if cost.symbolic.formula is not None:
        lines.append(f"   derived from source: {cost.symbolic.formula} = {number(cost.symbolic.total)}")
    return [*lines, *_classes(cost.traced), f"   random bits {cost.random_bits}, bits sent {cost.bits_sent}"]


def _classes(view: View) -> list[str]:
    """How many operations of each class, a few to a line."""
    counts = sum((Counter(step.operations) for step in view.steps.values()), Counter[str]())
    words = [f"{count} {operation}" for operation, count in counts.most_common()]
    return [("   runs " if k == 0 else "        ") + ", ".join(words[k : k + 4]) for k in range(0, len(words), 4)]


def _beside(left: list[str], right: list[str]) -> list[str]:
    """Two blocks side by side."""
    width = max(len(line) for line in left) + 3
    return [f"{a:<{width}}{b}" for a, b in zip_longest(left, right, fillvalue="")]


def _savings(report: CostReport, paper: list[MechanismCost]) -> list[str]:
    executed = report.saving("traced")
    if executed is None:
        return []
    unit = {"macro-ops": "macro-operations"}.get(report.pricing.metric, report.pricing.unit)
    if report.pricing.accounting == "full":
        return ["", f" SPOF needs {_change(executed)} {unit} than DP-SGD as executed."]
    listed = report.saving("printed") or 0.0
    lines = ["", f" SPOF needs {_change(listed)} {unit} by the printed list, {_change(executed)} as executed."]
    if any(_differs(cost) for cost in paper):
        lines.append(" ← the printed list squares with two multiplications; the kernel, and any kernel, needs one.")
    return lines


def _differs(cost: MechanismCost) -> bool:
    steps = cost.printed.steps if cost.printed else {}
    return any(part.cost != cost.traced.steps[step].cost for step, part in steps.items())


def _change(percent: float) -> str:
    return f"{abs(percent):.2f} % {'fewer' if percent >= 0 else 'more'}"


def _lean_panel(lean: list[MechanismCost]) -> list[str]:
    wide = max(len(cost.mechanism.title) for cost in lean) + 2
    cell = max(16, *(1 + len(span(cost.traced.cost)) for cost in lean))
    lines = [f" {'leaner kernels':<{wide}}{'executed':>{cell}}{'random bits':>13}{'bits sent':>11}   formula"]
    for cost in lean:
        formula = "" if cost.symbolic.formula is None else str(cost.symbolic.formula)
        bits, sent = cost.random_bits or "–", cost.bits_sent or "–"
        lines.append(f" {cost.mechanism.title:<{wide}}{span(cost.traced.cost):>{cell}}{bits:>13}{sent:>11}   {formula}")
    return lines


def _width_panel(report: CostReport) -> list[str]:
    panel = by_width(report)
    if len(panel) < 2:
        return []
    cell = max(8, *(1 + len(number(value)) for totals in panel.values() for value in totals.values()))
    lines = [" " + f"{'the printed list, if operands are':<34}" + "".join(f"{key:>{cell}}" for key in panel)]
    for name in next(iter(panel.values())):
        title = report.mechanisms[name].mechanism.title
        lines.append(f" {title:<34}" + "".join(f"{number(totals[name]):>{cell}}" for totals in panel.values()))
    if report.pricing.metric == "macro-ops":
        price = break_even(report)
        never = " DP-SGD as printed is cheaper at no price of a division."
        below = f" DP-SGD is cheaper only where a division costs less than {price:.2f} macro-operations."
        lines.append(below if price > 0 else never)
    return lines
