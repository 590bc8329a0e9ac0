"""The whole record in eight lines: what a battery pays for one, and where it goes."""

from collections.abc import Sequence

from sensorsim.cost.record import WholeRecord
from sensorsim.cost.record_cost import PARTS, RecordCost

SHOWN = ("spof", "dpsgd", "spof-lean", "sensor")  # all others are in the JSON
WORDS = {"chacha20": "ChaCha20 words", "chacha12": "ChaCha12 words", "trng": "true random words", "free": "words free"}
LEFT_OUT = " A whole record leaves out sensing, sleep, the upkeep of a link and a radio's protocol stack."
LEAST = (31, 7, *[13] * len(PARTS), 8, 11, 11)  # columns are wider only where a figure needs it


def record_panel(record: WholeRecord, printed: float | None) -> list[str]:
    """At most eight lines; `printed` is the saving by the paper's list."""
    rows = [_head(record), *(_row(record, record.costs[name]) for name in SHOWN if name in record.costs)]
    lines = [f" a whole record on {made_of(record)}, in µJ", *columns(rows, LEAST)]
    if record.savings():
        lines.append(_savings(record, printed))
    return [*lines, _note(record)]


def made_of(record: WholeRecord) -> str:
    """The chip, where the random words come from and what sends, in a few words."""
    chosen = "" if record.choices.chip else "; choose with --chip"
    radio = f"{record.radio.radio} (of {record.radio.owner})" if record.radio.owner else record.radio.radio
    level = ", compiled code" if record.level == "machine" else ""
    return f"{record.chip.name} ({record.chip.core}{chosen}), {WORDS[record.choices.random]}, {radio}{level}"


def columns(rows: Sequence[Sequence[str]], least: Sequence[int]) -> list[str]:
    """The first column to the left, the others to the right; always a space between two of them."""
    widths = [
        max(wide, *(len(row[k]) + 1 for row in rows)) for k, wide in zip(range(len(rows[0])), least, strict=False)
    ]
    return [
        "".join(
            cell.rjust(wide) if k else f" {cell}".ljust(wide)
            for k, (cell, wide) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _head(record: WholeRecord) -> list[str]:
    often, battery = record.choices.records_per_day, record.choices.battery_mah
    day = [] if often == 1 else [f"{often:g} a day"]
    charge = [] if battery is None else [f"records/{battery:g} mAh"]
    return ["", "cycles", *PARTS, "total", *day, *charge]


def _row(record: WholeRecord, cost: RecordCost) -> list[str]:
    parts = []
    for name in PARTS:
        share, part = cost.share(name), cost.parts[name].nJ
        percent = "" if share is None else f"{share:4.0f} %" if share >= 1 else "  <1 %"
        parts.append(f"{short(None if part is None else part / 1000)}{percent}")
    often, joule = record.choices.records_per_day, record.joule
    day = [] if often == 1 else [short(cost.a_day(often)) if cost.fits(often) else "too many"]
    charge = [] if joule is None else [short(cost.a_charge(joule))]
    return [cost.title, f"{cost.cycles:.0f}", *parts, short(cost.microjoule), *day, *charge]


def _savings(record: WholeRecord, printed: float | None) -> str:
    found = record.savings()
    listed = "" if printed is None else f"{_change(printed)} printed, in µJ "
    steps = f"{_change(found['arithmetic'])} arithmetic, {_change(found['random words'])} with random words"
    return f" SPOF over DP-SGD: {listed}{steps}, {_change(found['on air'])} in all"


def _change(saving: float | None) -> str:
    return "not known" if saving is None else f"{-saving:+.2f} %"


def _note(record: WholeRecord) -> str:
    duty = _duty(record)
    if record.store is None:
        kept = f" no total: energy.csv has no figure for the memory of {record.chip.name}"
        return f"{kept}; {duty}" if duty else f"{kept}, where the journal is"
    from sensorsim.kernels.journal import SLOT_BYTES

    kept = f" the journal is in {record.store.kind}"
    if duty:  # one line has no room for more
        return f"{kept}; {duty}; --format json has more"
    if record.store.page_bytes:
        erasing = short(record.store.nanojoule_erasing(SLOT_BYTES) / 1000)
        kept = f" the journal is a log in {record.store.kind} ({erasing} µJ where each write erases a page)"
    return f"{kept}; estimates and sources: --format json"


def _duty(record: WholeRecord) -> str:
    """That so many records a day are more than the band's rules allow, or ""."""
    often = record.choices.records_per_day
    over = {name: percent for name, percent in record.over_duty().items() if name in SHOWN}
    over = {name: percent for name, percent in over.items() if record.costs[name].fits(often)}
    if not over:
        return ""
    name, percent = max(over.items(), key=lambda item: item[1])
    who = {"spof": "SPOF", "dpsgd": "DP-SGD", "spof-lean": "lean SPOF"}.get(name, "the sensor")
    return f"{who} is {short(percent)} % of a day on air, EU868 allows {record.radio.duty_percent:g} %"


def short(value: float | None) -> str:
    """Three digits, whole numbers from a thousand on, powers of ten from a hundred thousand on."""
    if value is None:
        return "–"
    if value >= 100_000:
        return f"{value:.2e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
