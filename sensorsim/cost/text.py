"""The cost report as one screen of text. Plain strings: the command starts before a table library would be imported."""

from collections import Counter
from itertools import zip_longest

from sensorsim.cost.compare import compared
from sensorsim.cost.ledger import describe
from sensorsim.cost.pricing import Total
from sensorsim.cost.published import published_line
from sensorsim.cost.record_text import LEFT_OUT, record_panel
from sensorsim.cost.report import CostReport
from sensorsim.cost.rows import Number
from sensorsim.cost.views import MechanismCost, View
from sensorsim.terminal import FILE, counted, fitting, widest

# Leaner kernels that a screen has no room for: of each idea it shows one. They are a --variant lean away.
LEFT_OUT_FORMS = {
    *("fm", "dpsgd-lean-clipped", "dp-zo", "release", "release-lookup", "release-stairs", "sampled-lookup"),
    *("sampled-bit", "sampled-stairs", "sketch", "dinar", "dinar-scrambled"),
}


def cost_text(report: CostReport, width: int = FILE) -> str:
    """The whole screen, of lines with at most so many characters."""
    paper = [cost for cost in report.mechanisms.values() if cost.printed is not None]
    lean = [cost for cost in report.mechanisms.values() if cost.printed is None]
    listed = report.pricing.accounting == "paper"
    lines = fold_all(heading(report), width)
    if paper:
        blocks = [_printed_block(cost) if listed else _full_block(cost) for cost in paper]
        lines += ["", *_beside(blocks, width)]
        lines += ["", *_savings(report, paper, width)]
    if lean:
        shown = [cost for cost in lean if cost.mechanism.name not in LEFT_OUT_FORMS] if paper else lean
        lines += ["", *_lean_panel(shown, width)]
        more = len(lean) - len(shown)
        lines += [f" {more} more: --variant lean; every step and operation: --format json"] if more else []
    lines += ["", *record_panel(report.record, report.saving() if paper else None, width)]
    if paper and listed:
        lines += ["", *fold_all(_width_panel(report), width)]
    lines += ["", *fold_all(notes(report), width)]
    return "\n".join(line.rstrip() for line in lines)


def fold_all(lines: list[str], width: int) -> list[str]:
    """The same lines, those that are too long in several."""
    return [part for line in lines for part in fitting(width, line)]


def sizes(n: int, l: int) -> str:
    return f"n = {counted(n, 'feature')}, l = {counted(l, 'hidden unit')}"


def heading(report: CostReport) -> list[str]:
    pricing = report.pricing
    sign = "signed" if pricing.signed else "unsigned"
    how = "the paper's accounting" if pricing.accounting == "paper" else "full accounting"
    place = pricing.chip.name if pricing.chip else pricing.cpu.title
    units = {"macro-ops": "macro-operations", "energy": "nanojoules"}.get(pricing.metric, pricing.unit)
    title = f"Cost of one private record, {sizes(report.n, report.l)}"
    if report.m > 1:
        title += f"; times m = {report.m:,} users for a round"
    return [title, f"{place} · {units} · {sign} {pricing.width}-bit operands · {how}"]


def notes(report: CostReport) -> list[str]:
    """What was left out, how it was counted, and every disputed or estimated row that entered a total."""
    pricing = report.pricing
    lines = []
    if pricing.accounting == "paper":
        lines.append(
            "Not counted: loads, stores, shifts, rotations, exclusive ors, compares, selects, clamps, branches, "
            "index arithmetic, loop counters; see --accounting full."
        )
    if not report.executed:
        lines.append("Derived: read off the kernels' sources, nothing was run.")
    lines = [" " + " ".join([*lines, "Random bits are secret, 32 for each draw.", LEFT_OUT.strip()])]
    if any(cost.counted.cost.min != cost.counted.cost.max for cost in report.mechanisms.values()):
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
    from sensorsim._util.hints import to_get

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
    formula = "" if cost.printed.formula is None else str(cost.printed.formula)
    wide = 14 + max(len(label) for label in (*labels.values(), formula))
    cell = max(9, 1 + len(number(cost.printed.total)), 1 + len(number(cost.counted.total)))
    lines = [f" {cost.mechanism.title:<{wide}}{'printed':>{cell}}{_how(cost):>{cell}}"]
    for step, part in cost.printed.steps.items():
        counted = cost.counted.steps[step].cost.typical
        differs = "←" if counted != part.cost.typical else ""
        words = f"{step:<14}{labels[step]}"
        lines.append(f" {words:<{wide}}{number(part.cost.typical):>{cell}}{number(counted):>{cell}}{differs}")
    whole = f"{'total':<14}{formula}"
    lines.append(f" {whole:<{wide}}{number(cost.printed.total):>{cell}}{number(cost.counted.total):>{cell}}")
    made = "" if cost.symbolic.formula is None else f"{cost.symbolic.formula} = "
    lines.append(f"   by its source {made}{number(cost.symbolic.total)}")
    return [*lines, f"   {cost.random_bits} random bits, {cost.bits_sent} sent"]


def _how(cost: MechanismCost) -> str:
    """What the counts in a column are."""
    return "derived" if cost.traced is None else "executed"


def _full_block(cost: MechanismCost) -> list[str]:
    """Step by step as counted, then by operation class."""
    cell = max(16, 1 + len(span(cost.counted.cost)))
    wide = max(28, 1 + len(cost.mechanism.title))
    lines = [f" {cost.mechanism.title:<{wide}}{_how(cost):>{cell}}"]
    for step, part in cost.counted.steps.items():
        if part.cost.typical:
            lines.append(f"   {step:<{wide - 2}}{span(part.cost):>{cell}}")
    lines.append(f"   {'total':<{wide - 2}}{span(cost.counted.cost):>{cell}}")
    if cost.symbolic.formula is not None:
        lines.append(f"   derived from source: {cost.symbolic.formula} = {number(cost.symbolic.total)}")
    return [*lines, *_classes(cost.counted), f"   random bits {cost.random_bits}, bits sent {cost.bits_sent}"]


def _classes(view: View) -> list[str]:
    """How many operations of each class, a few to a line."""
    counts = sum((Counter(step.operations) for step in view.steps.values()), Counter[str]())
    words = [f"{count} {operation}" for operation, count in counts.most_common()]
    return [("   runs " if k == 0 else "        ") + ", ".join(words[k : k + 4]) for k in range(0, len(words), 4)]


def _beside(blocks: list[list[str]], width: int) -> list[str]:
    """Blocks side by side where they fit, else below each other, the last two lines of each in one."""
    left = widest(blocks[0]) + 3
    if len(blocks) == 2 and left + widest(blocks[1]) <= width:
        return [f"{a:<{left}}{b}" for a, b in zip_longest(*blocks, fillvalue="")]
    lines = []
    for block in blocks:
        last = f"{block[-2]}; {block[-1].strip()}"
        lines += ["", *(block if len(last) > width else [*block[:-2], last])]
    return lines[1:]


def _savings(report: CostReport, paper: list[MechanismCost], width: int) -> list[str]:
    counted = report.saving("counted")
    if counted is None:
        return []
    how = "as executed" if report.executed else "as derived"
    unit = {"macro-ops": "macro-operations"}.get(report.pricing.metric, report.pricing.unit)
    if report.pricing.accounting == "full":
        return fitting(width, f" SPOF needs {_change(counted)} {unit} than DP-SGD {how}.")
    printed = report.saving("printed") or 0.0
    listed, then = f" SPOF needs {_change(printed)} {unit}", _change(counted)
    if (printed < 0) == (counted < 0):
        then = then.removesuffix(" fewer").removesuffix(" more")
    lines = fitting(width, f"{listed} by the printed list, {then} {how}.", f"{listed} as printed, {then} {how}.")
    if any(_differs(cost) for cost in paper):
        lines.append(" ← the printed list squares with two multiplications; one is enough.")
    return lines


def _differs(cost: MechanismCost) -> bool:
    steps = cost.printed.steps if cost.printed else {}
    return any(part.cost != cost.counted.steps[step].cost for step, part in steps.items())


def _change(percent: float) -> str:
    return f"{abs(percent):.2f} % {'fewer' if percent >= 0 else 'more'}"


def _lean_panel(lean: list[MechanismCost], width: int = FILE) -> list[str]:
    """One line for each; the formulas last, where they fit."""
    wide = max(len(cost.mechanism.title) for cost in lean) + 2
    cell = max(10, *(2 + len(span(cost.counted.cost)) for cost in lean))
    lines = [f" {'leaner kernels':<{wide}}{_how(lean[0]):>{cell}}{'random bits':>13}{'bits sent':>11}"]
    for cost in lean:
        bits, sent = cost.random_bits or "–", cost.bits_sent or "–"
        lines.append(f" {cost.mechanism.title:<{wide}}{span(cost.counted.cost):>{cell}}{bits:>13}{sent:>11}")
    formulas = ["formula", *("" if cost.symbolic.formula is None else str(cost.symbolic.formula) for cost in lean)]
    with_formulas = [f"{line}   {formula}" for line, formula in zip(lines, formulas, strict=True)]
    return with_formulas if widest(with_formulas) <= width else lines


def _width_panel(report: CostReport) -> list[str]:
    found = compared(report)
    panel, price = found["printed_by_operands"], found["break_even_division"]
    if len(panel) < 2:
        return []
    cell = max(8, *(1 + len(number(value)) for totals in panel.values() for value in totals.values()))
    lines = [" " + f"{'the printed list, if operands are':<34}" + "".join(f"{key:>{cell}}" for key in panel)]
    for name in next(iter(panel.values())):
        title = report.mechanisms[name].mechanism.title
        lines.append(f" {title:<34}" + "".join(f"{number(totals[name]):>{cell}}" for totals in panel.values()))
    if price is not None:
        never = " DP-SGD as printed is cheaper at no price of a division."
        below = f" DP-SGD is cheaper only where a division costs less than {price:.2f} macro-operations."
        lines.append(below if price > 0 else never)
    return lines
