"""The whole record in eight lines: what a battery pays for one, and where it goes."""

from collections.abc import Sequence
from typing import NamedTuple

from sensorsim.cost.record import WholeRecord
from sensorsim.cost.record_cost import PARTS, RecordCost
from sensorsim.terminal import FILE, fitting, widest

SHOWN = ("spof", "dpsgd", "spof-lean", "sensor")  # all others are in the JSON
WORDS = {"chacha20": "ChaCha20 words", "chacha12": "ChaCha12 words", "trng": "true random words", "free": "words free"}
LEFT_OUT = " A whole record leaves out sensing, sleep, the upkeep of a link and a radio's protocol stack."
LEAST = 7  # characters of a column; it is wider only where a figure needs it
NAMES = {"spof": "SPOF", "dpsgd": "DP-SGD", "spof-lean": "lean SPOF", "sensor": "the sensor"}
SHORT = {"random words": "words", "on air": "air"}


class Shape(NamedTuple):
    """How much of the panel is shown; a narrow screen has less of it."""

    titles: bool = True  # in full, or the short names
    cycles: bool = True
    shares: bool = True  # of the energy, in per cent
    heads: bool = True  # in full


SHAPES = (
    Shape(),
    Shape(titles=False),
    Shape(shares=False),
    Shape(titles=False, shares=False),
    Shape(titles=False, shares=False, cycles=False, heads=False),
)


def record_panel(record: WholeRecord, printed: float | None, width: int = FILE) -> list[str]:
    """Eight lines where they are long enough; `printed` is the saving by the paper's list."""
    shown = [record.costs[name] for name in SHOWN if name in record.costs]
    tables = (columns([_head(record, shape), *(_row(record, each, shape) for each in shown)]) for shape in SHAPES)
    table: list[str] = []
    for table in tables:
        if widest(table) <= width:
            break
    made = fitting(
        width, f" a whole record on {made_of(record)}, in µJ", f" a whole record in µJ on {made_of(record, '')}"
    )
    told = [line for texts in (_savings(record, printed), _notes(record)) if texts for line in fitting(width, *texts)]
    return [*made, *table, *told]


def made_of(record: WholeRecord, choose: str = "choose with ") -> str:
    """The chip, where the random words come from and what sends, in a few words."""
    chosen = "" if record.choices.chip else f"; {choose}--chip"
    radio = f"{record.radio.radio} (of {record.radio.owner})" if record.radio.owner else record.radio.radio
    level = ", compiled code" if record.level == "machine" else ""
    return f"{record.chip.name} ({record.chip.core}{chosen}), {WORDS[record.choices.random]}, {radio}{level}"


def columns(rows: Sequence[Sequence[str]], least: int = LEAST) -> list[str]:
    """The first column to the left, the others to the right; always a space between two of them."""
    widths = [max(least, *(len(row[k]) + 1 for row in rows)) for k in range(len(rows[0]))]
    widths[0] += 1
    return [
        "".join(
            cell.rjust(wide) if k else f" {cell}".ljust(wide)
            for k, (cell, wide) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _head(record: WholeRecord, shape: Shape) -> list[str]:
    often, battery = record.choices.records_per_day, record.choices.battery_mah
    day = [] if often == 1 else [f"{often:g} a day"]
    charge = [] if battery is None else [f"{'records' if shape.heads else ''}/{battery:g} mAh"]
    parts = [name if shape.heads else SHORT.get(name, name) for name in PARTS]
    return ["", *(["cycles"] if shape.cycles else []), *parts, "total", *day, *charge]


def _row(record: WholeRecord, cost: RecordCost, shape: Shape) -> list[str]:
    parts = []
    for name in PARTS:
        share, part = cost.share(name), cost.parts[name].nJ
        percent = "" if share is None or not shape.shares else f"{share:4.0f} %" if share >= 1 else "  <1 %"
        parts.append(f"{short(None if part is None else part / 1000)}{percent}")
    often, joule = record.choices.records_per_day, record.joule
    day = [] if often == 1 else [short(cost.a_day(often)) if cost.fits(often) else "too many"]
    charge = [] if joule is None else [short(cost.a_charge(joule))]
    title = cost.title if shape.titles else NAMES[cost.mechanism]
    return [title, *([f"{cost.cycles:.0f}"] if shape.cycles else []), *parts, short(cost.microjoule), *day, *charge]


def _savings(record: WholeRecord, printed: float | None) -> list[str]:
    """What becomes of the paper's saving, at length and shorter; nothing where there are not both."""
    found = record.savings()
    if not found:
        return []
    listed = "" if printed is None else f"{_change(printed)} printed, in µJ "
    first, last = f"{_change(found['arithmetic'])} arithmetic", f"{_change(found['on air'])} in all"
    words = _change(found["random words"])
    return [
        f" SPOF over DP-SGD: {listed}{first}, {words} with random words, {last}",
        f" SPOF over DP-SGD: {first}, {words} with words, {last}",
    ]


def _change(saving: float | None) -> str:
    return "not known" if saving is None else f"{-saving:+.2f} %"


def _notes(record: WholeRecord) -> list[str]:
    """Where the journal is, at length and shorter; and what the band's rules forbid."""
    duty = _duty(record)
    if record.store is None:
        kept = f" no total: the table of {record.chip.name} has no figure for its memory"
        return [f"{kept}; {duty}" if duty else f"{kept}, where the journal is"]
    from sensorsim.kernels.journal import SLOT_BYTES

    kept = f" the journal is in {record.store.kind}"
    if duty:  # one line has no room for more
        return [f"{kept}; {duty}; --format json has more"]
    if record.store.page_bytes:
        erasing = short(record.store.nanojoule_erasing(SLOT_BYTES) / 1000)
        kept = f" the journal is a log in {record.store.kind} ({erasing} µJ where each write erases a page)"
    return [f"{kept}; estimates and sources: --format json", kept]


def _duty(record: WholeRecord) -> str:
    """That so many records a day are more than the band's rules allow, or ""."""
    often = record.choices.records_per_day
    over = {name: percent for name, percent in record.over_duty().items() if name in SHOWN}
    over = {name: percent for name, percent in over.items() if record.costs[name].fits(often)}
    if not over:
        return ""
    name, percent = max(over.items(), key=lambda item: item[1])
    return f"{NAMES[name]} is {short(percent)} % of a day on air, EU868 allows {record.radio.duty_percent:g} %"


def short(value: float | None) -> str:
    """Three digits, whole numbers from a thousand on, powers of ten from a hundred thousand on."""
    if value is None:
        return "–"
    if value >= 100_000:
        return f"{value:.2e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
