"""Format the result of a fleet for one screen of 80 columns."""

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from sensorsim._util.terminal import counted
from sensorsim.fleets.estimates import NANOJOULES_PER_MICROJOULE
from sensorsim.fleets.fleet_result import OF_RECORDS
from sensorsim.noise.certificate import format_epsilon as epsilon

if TYPE_CHECKING:
    from sensorsim.fleets.estimates import Coverage
    from sensorsim.fleets.fleet_result import FleetResult

WIDTH = 80
MOST_FEATURES = 14
NAME = 26  # characters of a feature's name
NOT_PRIVATE = " a simulation: seeded, its truth is known, and nothing of it is private"


def text(result: "FleetResult") -> str:
    """Return the main results; the rest is in the JSON."""
    settings = result.settings
    often = "a record" if settings.records_per_day == 1 else f"{settings.records_per_day:,} records"
    devices, days = counted(settings.devices, "device"), counted(settings.days, "day")
    lines = [f" {devices} × {days}, {often} a day; people: {shorten(settings.people.source, 24)}", NOT_PRIVATE]
    if result.over_budget:
        spent = epsilon(result.worst_period, 6)
        lines.append(f" OVER BUDGET: a device spent ε {spent} in a period whose budget is {settings.firmware.budget}")
    lines += ["", *_packets(result), "", *_estimates(result), "", *_spend(result), *_energy(result)]
    return "\n".join(lines)


def _packets(result: "FleetResult") -> list[str]:
    found = {one.name: one for one in result.outcomes}
    records, came = (
        [f"{_share(found[name].share)} {name}" for name in names if found[name].count]
        for names in (OF_RECORDS, ("received", "lost"))
    )
    lines = _wrap(" records   ", [f"{found['records'].count:,}:", *_with_commas(records)])
    if came:
        lines += _wrap(" packets   ", [f"{found['released'].count:,}:", *_with_commas(came)])
    happened = [counted(found[name].count, word) for name, word in (("resets", "reset"), ("opens", "opening"))]
    if found["stuck devices"].count:
        happened.append(f"{found['stuck devices'].count:,} with stuck entropy")
    return lines + _wrap(" devices   ", _with_commas(happened))


def _estimates(result: "FleetResult") -> list[str]:
    sketch = result.settings.firmware.sketch
    days = result.settings.days if sketch else result.every
    period = "a day" if days == 1 else f"{days} days"
    mean, whole = ("mean", "the range") if sketch is None else ("mean square", "its bound")
    what = f" 95 % intervals of a {mean} over {period}"
    if result.half is None:
        return [f"{what}: the run is shorter"]
    scale = 1.0 if sketch is None else sketch.root**2
    lines = [f"{what}: ±{_percent(result.half / scale)} of {whole}, from {_number(result.count)} values"]
    lines.append(f"   of {result.of_people:26}{_coverage(result.coverage)}")
    lines.append(f"   of {'the records that came':26}{_coverage(result.coverage_of_records)}")
    if result.error_sd is not None and result.foretold_sd is not None:
        error, foretold = _percent(result.error_sd / scale), _percent(result.foretold_sd / scale)
        lines.append(f"   off the truth, root of the mean square {error}; at the worst people {foretold}")
    if sketch:
        return lines
    lines += ["", f" {'feature':{NAME}}{'half width':>11}{'in its unit':>22}{'held':>10}{'values':>9}"]
    for one in result.features[:MOST_FEATURES]:
        half = "" if one.half is None else f"±{_percent(one.half)}"
        own = "" if one.half_in_unit is None or one.range is None else f"±{_number(one.half_in_unit)} {one.range.unit}"
        held, values = f"{one.coverage.covered}/{one.coverage.intervals}", _number(one.count)
        lines.append(f" {shorten(one.name, NAME):{NAME}}{half:>11}{shorten(own, 21):>22}{held:>10}{values:>9}")
    left = len(result.features) - MOST_FEATURES
    return [*lines, f" … and {left} more: --format json has them"] if left > 0 else lines


def _spend(result: "FleetResult") -> list[str]:
    firmware, wear, high = result.settings.firmware, result.wear, result.spent.quantile(0.95)
    period = "a day" if firmware.budget_days == 1 else f"{firmware.budget_days} days"
    basic = epsilon(wear.median_basic), epsilon(high * float(firmware.epsilon)), epsilon(wear.most_basic)
    rows = [
        (" a person over all days", "median", "95 %", "most"),
        ("   releases", f"{wear.median_releases:,}", f"{high:,}", f"{wear.most_releases:,}"),
        ("   ε, basic", *basic),
        (f"   ε at delta {wear.delta:g}", epsilon(wear.median_at_delta), "", epsilon(wear.most_at_delta)),
    ]
    lines = [f"{name:{NAME + 1}}{middle:>11}{above:>11}{most:>11}".rstrip() for name, middle, above, most in rows]
    return [*lines, f"   ε, the most in a period: {epsilon(result.worst_period, 6)} of {firmware.budget} in {period}"]


def _energy(result: "FleetResult") -> list[str]:
    used, board = result.used, result.board
    if used is None:
        return [] if board is None or not board.note else ["", *_wrap(" energy    ", board.note.split(" "))]
    on = "" if board is None else f", {board.chip} with {board.radio}"
    q = {name: _number(value / NANOJOULES_PER_MICROJOULE) for name, value in used.spread.quantiles().items()}
    beyond = " or more" if used.spread.overflows else ""
    parts = ", ".join(f"{_share(part / used.mean)} {name}" for name, part in used.parts.items())
    lines = ["", f" energy of a device{on}: {used.mean / NANOJOULES_PER_MICROJOULE / used.days:.3g} µJ a day"]
    lines.append(f"   over all days: median {q['median']}, 95 % {q['95 %']}, most {q['most']}{beyond} µJ")
    lines.append(f"   {parts}; no sensing, sleep or link")
    share = used.share(board, used.mean)
    if board is not None and share is not None:
        lines.append(f"   {100 * share:.2g} % of a charge of {board.battery_mah:g} mAh")
    return lines


def _coverage(coverage: "Coverage") -> str:
    if coverage.share is None:
        return "nothing came"
    low, high = coverage.limits
    return f"{100 * coverage.share:.1f} % of {coverage.intervals:,} held ({100 * low:.1f} … {100 * high:.1f} %)"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _share(share: float | None) -> str:
    if share is None:
        return "none"
    return f"{100 * share:.1f} %" if share >= 0.01 or not share else f"{100 * share:.1g} %"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def shorten(name: str, most: int) -> str:
    """Cut a name to `most` characters."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _with_commas(parts: Sequence[str]) -> list[str]:
    return [f"{part}," for part in parts[:-1]] + list(parts[-1:])


def _wrap(head: str, parts: Iterable[str]) -> list[str]:
    """Wrap parts, whole, into lines of 80 columns with a hanging indent."""
    whole = " ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts)
    lines = wrap(whole, WIDTH, initial_indent=f"{head} ", subsequent_indent=" " * (len(head) + 1))
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
