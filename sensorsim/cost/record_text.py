"""The whole record in eight lines: what a battery pays for one, and where it goes."""

from sensorsim.cost.record import WholeRecord
from sensorsim.cost.record_cost import PARTS, RecordCost

SHOWN = ("spof", "dpsgd", "spof-lean", "sensor")  # all others are in the JSON
WORDS = {"chacha20": "ChaCha20 words", "chacha12": "ChaCha12 words", "trng": "true random words", "free": "words free"}


def record_panel(record: WholeRecord, printed: float | None) -> list[str]:
    """At most eight lines; `printed` is the saving by the paper's list."""
    how = f"{WORDS[record.choices.random]}, {record.radio.radio}"
    chosen = "" if record.choices.chip else "; choose with --chip"
    level = ", compiled code" if record.level == "machine" else ""
    lines = [f" a whole record on {record.chip.name} ({record.chip.core}{chosen}), {how}{level}, in µJ"]
    often = record.choices.records_per_day
    day = "" if often == 1 else f"{f'{often:g} a day':>11}"
    lines.append(f" {'':<30}{'cycles':>7}" + "".join(f"{name:>13}" for name in PARTS) + f"{'total':>8}{day}")
    lines += [_line(record.costs[name], often) for name in SHOWN if name in record.costs]
    if record.savings():
        lines.append(_savings(record, printed))
    return [*lines, _note(record)]


def _line(cost: RecordCost, often: float) -> str:
    parts = []
    for name in PARTS:
        share, part = cost.share(name), cost.parts[name].nJ
        percent = "" if share is None else f"{share:4.0f} %" if share >= 1 else "  <1 %"
        parts.append(f"{microjoule(None if part is None else part / 1000)}{percent}".rjust(13))
    whole = cost.microjoule
    day = "" if often == 1 else f"{microjoule(None if whole is None else whole * often):>11}"
    return f" {cost.title:<30}{cost.cycles:>7.0f}{''.join(parts)}{microjoule(whole):>8}{day}"


def _savings(record: WholeRecord, printed: float | None) -> str:
    found = record.savings()
    listed = "" if printed is None else f"{_change(printed)} printed, in µJ "
    steps = f"{_change(found['arithmetic'])} arithmetic, {_change(found['random words'])} with random words"
    return f" SPOF over DP-SGD: {listed}{steps}, {_change(found['on air'])} in all"


def _change(saving: float | None) -> str:
    return "not known" if saving is None else f"{-saving:+.2f} %"


def _note(record: WholeRecord) -> str:
    if record.store is None:
        return f" no total: energy.csv has no figure for the memory of {record.chip.name}, where the journal is"
    from sensorsim.kernels.journal import SLOT_BYTES

    kept = f" the journal is in {record.store.kind}"
    if record.store.page_bytes:
        erasing = microjoule(record.store.nanojoule_erasing(SLOT_BYTES) / 1000)
        kept = f" the journal is a log in {record.store.kind} ({erasing} µJ where each write erases a page)"
    return f"{kept}; estimates and sources: --format json"


def microjoule(value: float | None) -> str:
    """Three digits, whole numbers from a thousand on."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
