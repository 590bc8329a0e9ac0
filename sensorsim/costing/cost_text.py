"""Format the cost report as one screen of text. Plain strings: the command starts without a table library."""

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import zip_longest

from sensorsim._util.hints import to_get
from sensorsim._util.terminal import FILE, counted, fitting, widest
from sensorsim.costing.chips import load_published
from sensorsim.costing.cost_report import CostReport, compare_printed, one_value_cycles
from sensorsim.costing.csv_schema import Number, Span
from sensorsim.costing.pricing import MechanismCost, describe_step
from sensorsim.costing.record_energy import PARTS, WholeRecord

# Leaner kernels that do not fit on the screen: it shows one of each idea, `--variant lean` shows all.
LEFT_OUT_FORMS = {
    *("fm", "dpsgd-lean-clipped", "dp-zo", "release", "release-lookup", "release-stairs", "sampled-lookup"),
    *("sampled-bit", "sampled-stairs", "sketch", "dinar", "dinar-scrambled"),
}
SHOWN = ("spof", "dpsgd", "spof-lean", "sensor")  # all others are in the JSON
WORDS = {"chacha20": "ChaCha20 words", "chacha12": "ChaCha12 words", "trng": "true random words", "free": "words free"}
LEFT_OUT = " A whole record leaves out sensing, sleep, the upkeep of a link and a radio's protocol stack."
LEAST = 7  # characters of a column; it is wider only where a figure needs it
NAMES = {"spof": "SPOF", "dpsgd": "DP-SGD", "spof-lean": "lean SPOF", "sensor": "the sensor"}
SHORT = {"random words": "words", "on air": "air"}


def cost_text(report: CostReport, width: int = FILE) -> str:
    """Format the whole screen in lines of at most `width` characters."""
    paper = [cost for cost in report.mechanisms.values() if cost.printed is not None]
    lean = [cost for cost in report.mechanisms.values() if cost.printed is None]
    listed = report.pricing.accounting == "paper"
    lines = fold_all(heading(report), width)
    if paper:
        blocks = [_printed_block(cost) if listed else _full_block(cost) for cost in paper]
        lines += ["", *_beside(blocks, width)]
        lines += ["", *_cost_savings(report, paper, width)]
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


def fold_all(lines: Iterable[str], width: int) -> list[str]:
    """Wrap the lines that are longer than `width`."""
    return [part for line in lines for part in fitting(width, line)]


def sizes(n: int, l: int) -> str:
    """Format the sizes of a record."""
    return f"n = {counted(n, 'feature')}, l = {counted(l, 'hidden unit')}"


def heading(report: CostReport) -> list[str]:
    """Format the two lines above a report."""
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
    """Format what was left out, how it was counted, and every disputed or estimated row in a total."""
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
        level = "sensorsim cost --level machine"
        level = f"see {level}" if find_spec("ziglang") else f"{level} needs {to_get(['ziglang'])}"
        lines.append(f" Ranges are prices that depend on operands, no bound on compiled code: {level}.")
    if pricing.metric == "latency":
        lines.append(" Latencies are added up as if nothing overlapped; a real core overlaps.")
    if rows := load_published(pricing.cpu.name):
        theirs = ", ".join(f"{row.cycles} ({row.what.partition(', ')[2]})" for row in rows)
        ours, by = one_value_cycles(pricing.cpu.name), "; ".join(dict.fromkeys(row.cited for row in rows))
        lines.append(f" One noised value: {ours:.0f} cycles, random words left out; {by}: {theirs}.")
    if pricing.flags:
        lines.append(" Table rows in these totals that are not settled:")
        lines += [f"   {flag}" for flag in pricing.flags.values()]
    return lines


def format_number(value: Number) -> str:
    """Format a cost: whole numbers as they are, others with four digits."""
    return str(int(value)) if value == int(value) else f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def format_span(total: Span) -> str:
    """Format a typical cost with its range where the table leaves one open."""
    if total.min == total.max:
        return format_number(total.typical)
    return f"{format_number(total.typical)} ({format_number(total.min)}–{format_number(total.max)})"


def _printed_block(cost: MechanismCost) -> list[str]:
    """Format each step as the paper prints it and as the kernel executes it."""
    assert cost.printed is not None
    labels = {step: describe_step(cost.mechanism.name, step) for step in cost.printed.steps}
    formula = "" if cost.printed.formula is None else str(cost.printed.formula)
    wide = 14 + max(len(label) for label in (*labels.values(), formula))
    totals = format_number(cost.printed.total), format_number(cost.counted.total)
    cell = max(9, *(1 + len(total) for total in totals))
    lines = [f" {cost.mechanism.title:<{wide}}{'printed':>{cell}}{_how(cost):>{cell}}"]
    for step, part in cost.printed.steps.items():
        counted = cost.counted.steps[step].cost.typical
        differs = "←" if counted != part.cost.typical else ""
        words = f"{step:<14}{labels[step]}"
        costs = f"{format_number(part.cost.typical):>{cell}}{format_number(counted):>{cell}}"
        lines.append(f" {words:<{wide}}{costs}{differs}")
    whole = f"{'total':<14}{formula}"
    lines.append(f" {whole:<{wide}}{totals[0]:>{cell}}{totals[1]:>{cell}}")
    made = "" if cost.symbolic.formula is None else f"{cost.symbolic.formula} = "
    lines.append(f"   by its source {made}{format_number(cost.symbolic.total)}")
    return [*lines, f"   {cost.random_bits} random bits, {cost.bits_sent} sent"]


def _how(cost: MechanismCost) -> str:
    """Name how the counts in a column were made."""
    return "derived" if cost.traced is None else "executed"


def _full_block(cost: MechanismCost) -> list[str]:
    """Format each step as counted, then the operation classes."""
    cell = max(16, 1 + len(format_span(cost.counted.cost)))
    wide = max(28, 1 + len(cost.mechanism.title))
    lines = [f" {cost.mechanism.title:<{wide}}{_how(cost):>{cell}}"]
    for step, part in cost.counted.steps.items():
        if part.cost.typical:
            lines.append(f"   {step:<{wide - 2}}{format_span(part.cost):>{cell}}")
    lines.append(f"   {'total':<{wide - 2}}{format_span(cost.counted.cost):>{cell}}")
    if cost.symbolic.formula is not None:
        lines.append(f"   derived from source: {cost.symbolic.formula} = {format_number(cost.symbolic.total)}")
    words = [f"{count} {operation}" for operation, count in cost.counted.operations.most_common()]
    runs = [("   runs " if k == 0 else "        ") + ", ".join(words[k : k + 4]) for k in range(0, len(words), 4)]
    return [*lines, *runs, f"   random bits {cost.random_bits}, bits sent {cost.bits_sent}"]


def _beside(blocks: list[list[str]], width: int) -> list[str]:
    """Put blocks side by side where they fit, else below each other with the last two lines of each joined."""
    left = widest(blocks[0]) + 3
    if len(blocks) == 2 and left + widest(blocks[1]) <= width:
        return [f"{a:<{left}}{b}" for a, b in zip_longest(*blocks, fillvalue="")]
    lines = []
    for block in blocks:
        last = f"{block[-2]}; {block[-1].strip()}"
        lines += ["", *(block if len(last) > width else [*block[:-2], last])]
    return lines[1:]


def _cost_savings(report: CostReport, paper: list[MechanismCost], width: int) -> list[str]:
    counted = report.saving("counted")
    if counted is None:
        return []
    how = "as executed" if report.executed else "as derived"
    unit = {"macro-ops": "macro-operations"}.get(report.pricing.metric, report.pricing.unit)
    if report.pricing.accounting == "full":
        return fitting(width, f" SPOF needs {_fewer_or_more(counted)} {unit} than DP-SGD {how}.")
    printed = report.saving("printed") or 0.0
    listed, then = f" SPOF needs {_fewer_or_more(printed)} {unit}", _fewer_or_more(counted)
    if (printed < 0) == (counted < 0):
        then = then.removesuffix(" fewer").removesuffix(" more")
    lines = fitting(width, f"{listed} by the printed list, {then} {how}.", f"{listed} as printed, {then} {how}.")
    steps = [(part, cost.counted.steps[step]) for cost in paper if cost.printed
             for step, part in cost.printed.steps.items()]  # fmt: skip
    if any(part.cost != counted.cost for part, counted in steps):
        lines.append(" ← the printed list squares with two multiplications; one is enough.")
    return lines


def _fewer_or_more(percent: float) -> str:
    return f"{abs(percent):.2f} % {'fewer' if percent >= 0 else 'more'}"


def _lean_panel(lean: list[MechanismCost], width: int = FILE) -> list[str]:
    """Format one line for each lean kernel, with its formula where that fits."""
    wide = max(len(cost.mechanism.title) for cost in lean) + 2
    cell = max(10, *(2 + len(format_span(cost.counted.cost)) for cost in lean))
    lines = [f" {'leaner kernels':<{wide}}{_how(lean[0]):>{cell}}{'random bits':>13}{'bits sent':>11}"]
    for cost in lean:
        bits, sent = cost.random_bits or "–", cost.bits_sent or "–"
        lines.append(f" {cost.mechanism.title:<{wide}}{format_span(cost.counted.cost):>{cell}}{bits:>13}{sent:>11}")
    formulas = ["formula", *("" if cost.symbolic.formula is None else str(cost.symbolic.formula) for cost in lean)]
    with_formulas = [f"{line}   {formula}" for line, formula in zip(lines, formulas, strict=True)]
    return with_formulas if widest(with_formulas) <= width else lines


def _width_panel(report: CostReport) -> list[str]:
    found = compare_printed(report)
    panel, price = found["printed_by_operands"], found["break_even_division"]
    if len(panel) < 2:
        return []
    cell = max(8, *(1 + len(format_number(value)) for totals in panel.values() for value in totals.values()))
    lines = [" " + f"{'the printed list, if operands are':<34}" + "".join(f"{key:>{cell}}" for key in panel)]
    for name in next(iter(panel.values())):
        title = report.mechanisms[name].mechanism.title
        lines.append(f" {title:<34}" + "".join(f"{format_number(totals[name]):>{cell}}" for totals in panel.values()))
    if price is not None:
        never = " DP-SGD as printed is cheaper at no price of a division."
        below = f" DP-SGD is cheaper only where a division costs less than {price:.2f} macro-operations."
        lines.append(below if price > 0 else never)
    return lines


# How much of the panel is shown; a narrow screen has less: full titles, cycles, shares in per cent, full heads.
SHAPES = ("titles cycles shares heads", "cycles shares heads", "titles cycles heads", "cycles heads", "")


def record_panel(record: WholeRecord, printed: float | None, width: int = FILE) -> list[str]:
    """Format the panel of a whole record; `printed` is the saving by the paper's list."""
    table: list[str] = []
    for shape in SHAPES:
        table = align_columns(_record_rows(record, shape.split()))
        if widest(table) <= width:
            break
    short = f" a whole record in µJ on {describe_record(record, '')}"
    title = fitting(width, f" a whole record on {describe_record(record)}, in µJ", short)
    notes = [texts for texts in (_record_savings(record, printed), _record_notes(record)) if texts]
    return [*title, *table, *(line for texts in notes for line in fitting(width, *texts))]


def _record_rows(record: WholeRecord, shape: Sequence[str]) -> list[list[str]]:
    """Return the head and the rows of the panel."""
    often, battery, joule = record.choices.records_per_day, record.choices.battery_mah, record.joule
    day = [] if often == 1 else [f"{often:g} a day"]
    charge = [] if battery is None else [f"{'records' if 'heads' in shape else ''}/{battery:g} mAh"]
    parts = [name if "heads" in shape else SHORT.get(name, name) for name in PARTS]
    rows = [["", *(["cycles"] if "cycles" in shape else []), *parts, "total", *day, *charge]]
    for cost in (record.costs[name] for name in SHOWN if name in record.costs):
        row = [cost.title if "titles" in shape else NAMES[cost.mechanism]]
        row += [f"{cost.cycles:.0f}"] if "cycles" in shape else []
        for name in PARTS:
            share = cost.share(name) if "shares" in shape else None
            percent = "" if share is None else f"{share:4.0f} %" if share >= 1 else "  <1 %"
            row.append(f"{format_short(cost.parts[name].microjoule)}{percent}")
        row.append(format_short(cost.microjoule))
        if often != 1:
            row.append(format_short(cost.daily_microjoule(often)) if cost.fits_day(often) else "too many")
        rows.append(row + ([] if joule is None else [format_short(cost.records_per_charge(joule))]))
    return rows


def describe_record(record: WholeRecord, choose: str = "choose with ") -> str:
    """Describe the chip, the source of random words and the radio in a few words."""
    chosen = "" if record.choices.chip else f"; {choose}--chip"
    radio = f"{record.radio.radio} (of {record.radio.owner})" if record.radio.owner else record.radio.radio
    level = ", compiled code" if record.level == "machine" else ""
    return f"{record.chip.name} ({record.chip.core}{chosen}), {WORDS[record.choices.random]}, {radio}{level}"


def align_columns(rows: Sequence[Sequence[str]], least: int = LEAST) -> list[str]:
    """Align the first column to the left and the others to the right, with a space between two."""
    widths = [max(least, *(len(cell) + 1 for cell in column)) for column in zip(*rows, strict=True)]
    return [
        f" {row[0]}".ljust(widths[0] + 1)
        + "".join(cell.rjust(wide) for cell, wide in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]


def _record_savings(record: WholeRecord, printed: float | None) -> list[str]:
    """Format what remains of the paper's saving, in full and shorter; empty where one mechanism is missing."""
    found = {name: "not known" if saved is None else f"{-saved:+.2f} %" for name, saved in record.savings().items()}
    if not found:
        return []
    listed = "" if printed is None else f"{-printed:+.2f} % printed, in µJ "
    first, words, last = f"{found['arithmetic']} arithmetic", found["random words"], f"{found['on air']} in all"
    return [
        f" SPOF over DP-SGD: {listed}{first}, {words} with random words, {last}",
        f" SPOF over DP-SGD: {first}, {words} with words, {last}",
    ]


def _record_notes(record: WholeRecord) -> list[str]:
    """Format where the journal is, in full and shorter, and by how much the records exceed the band's rules."""
    often = record.choices.records_per_day
    over = {name: percent for name, percent in record.over_duty().items() if name in SHOWN}
    over = {name: percent for name, percent in over.items() if record.costs[name].fits_day(often)}
    duty = ""
    if over:
        name, percent = max(over.items(), key=lambda item: item[1])
        allowed = f"EU868 allows {record.radio.duty_percent:g} %"
        duty = f"{NAMES[name]} is {format_short(percent)} % of a day on air, {allowed}"
    if record.store is None:
        journal = f" no total: the table of {record.chip.name} has no figure for its memory"
        return [f"{journal}; {duty}" if duty else f"{journal}, where the journal is"]
    from sensorsim.kernels.journal import SLOT_BYTES

    journal = f" the journal is in {record.store.kind}"
    if duty:  # one line has no room for more
        return [f"{journal}; {duty}; --format json has more"]
    if record.store.page_bytes:
        erasing = format_short(record.store.nanojoule_erasing(SLOT_BYTES) / 1000)
        journal = f" the journal is a log in {record.store.kind} ({erasing} µJ where each write erases a page)"
    return [f"{journal}; estimates and sources: --format json", journal]


def format_short(value: float | None) -> str:
    """Format three digits, whole numbers from 1,000 on, powers of ten from 100,000 on; None as a dash."""
    if value is None:
        return "–"
    if value >= 100_000:
        return f"{value:.2e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
