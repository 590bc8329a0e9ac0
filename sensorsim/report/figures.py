"""The figures: SVG with real text, wide as a phone, in colours of the style sheet, and readable without colour."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sensorsim.cost.cost_text import SHOWN, format_short
from sensorsim.cost.record_energy import PARTS
from sensorsim.report.parts import Markup, at, box, drawing, line, tag
from sensorsim.report.words import percent

if TYPE_CHECKING:
    from sensorsim.cost.whole_record import WholeRecord
    from sensorsim.report.gather import Rival

WIDTH = 340
BAR, STEP = 18, 46  # height of a bar, and from one to the next
LETTER = 6.6  # width of a letter, at most, at the size of the style sheet
BOLD = 7.6
SPACE = 8


def energy_bars(record: "WholeRecord") -> Markup:
    """A bar for each mechanism, its parts from left to right as in the key."""
    costs = [record.costs[name] for name in SHOWN if name in record.costs and record.costs[name].microjoule]
    longest = max((cost.microjoule or 0.0 for cost in costs), default=1.0)
    made, told, top = [_key()], [], 62.0
    for cost in costs:
        whole = cost.microjoule or 0.0
        made += [at(0, top, cost.title), at(WIDTH, top, f"{format_short(whole)} µJ", class_="strong", anchor="end")]
        x = 0.0
        for place, name in enumerate(PARTS):
            value = cost.parts[name].microjoule or 0.0
            wide = WIDTH * value / longest
            made.append(box(x, top + 7, wide, BAR, f"part{place}"))
            label = format_short(value)
            if wide > len(label) * LETTER + SPACE:
                made.append(at(x + wide / 2, top + 20, label, class_=f"on{place}", anchor="middle"))
            x += wide
        parts = ", ".join(f"{name} {format_short(cost.parts[name].microjoule or 0.0)}" for name in PARTS)
        told.append(f"{cost.title}: {format_short(whole)} µJ ({parts})")
        top += STEP
    about = "; ".join(told) or "No energy is known for this chip"
    return drawing("energy", "Energy of one record, by what takes it", f"{about}.", WIDTH, int(top - 14), *made)


def _key() -> Markup:
    """What the parts are called, in the order of the bars."""
    cells = []
    for place, name in enumerate(PARTS):
        x, y = WIDTH / 2 * (place % 2), 4 + 20 * (place // 2)
        cells += [box(x, y, 12, 12, f"part{place}"), at(x + 18, y + 10, name)]
    return tag("g", *cells)


def rival_bars(rivals: "Sequence[Rival]") -> Markup:
    """Standard deviations, the plan's own named in bold."""
    longest = max(one.sd for one in rivals)
    made, left, room = [], 122, WIDTH - 122 - 60
    for place, one in enumerate(rivals):
        y, wide = 24 * place, room * one.sd / longest
        named = "strong" if one.own else None
        made.append(at(0, y + 14, one.name, class_=named))
        made.append(box(left, y + 3, wide, 15, "part3" if one.own else "part2"))
        made.append(at(left + wide + 6, y + 14, f"{one.sd:.4g}", class_=named))
    told = ", ".join(f"{one.name} {one.sd:.4g}" for one in rivals)
    title = "Standard deviation of the estimate, in ranges of x"
    return drawing("rivals", title, f"{told}.", WIDTH, 24 * len(rivals), *made)


def reach_curve(curve: Sequence[tuple[int, float]], devices: int) -> Markup:
    """Half width over devices, both on logarithmic axes."""
    left, right, top, bottom = 60, WIDTH - 18, 30, 190
    xs, ys = [math.log10(many) for many, _ in curve], [math.log10(half) for _, half in curve]
    low, high = min(xs), max(max(xs), min(xs) + 0.1)
    least, most = math.floor(min(ys) * 2) / 2, max(ys) + 0.05

    def place(many: float, half: float) -> tuple[float, float]:
        x = left + (math.log10(many) - low) / (high - low) * (right - left)
        return x, bottom - (math.log10(half) - least) / (most - least) * (bottom - top)

    made = [at(0, 13, "± share of the range, 95 %", class_="soft")]
    for tick in _ticks(10**least, 10**most, (1, 2, 5)):
        y = place(curve[0][0], tick)[1]
        made += [line([(left, y), (right, y)], "grid"), at(left - 6, y + 4, percent(tick), class_="soft", anchor="end")]
    for tick in _ticks(curve[0][0], curve[-1][0], (1,)):
        x = place(tick, 10**least)[0]
        made += [
            line([(x, bottom), (x, bottom + 4)], "axis"),
            at(x, bottom + 18, _few(tick), class_="soft", anchor="middle"),
        ]
    made += [line([(left, bottom), (right, bottom)], "axis"), line([place(*one) for one in curve], "curve")]
    half = dict(curve)[devices]
    x, y = place(devices, half)
    made.append(tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="4.5", class_="mark"))
    words = f"{devices:,}: ±{percent(half)}"
    fits = x + 9 + len(words) * BOLD < WIDTH
    made.append(at(x + 9 if fits else WIDTH, y - 9, words, class_="strong", anchor=None if fits else "end"))
    made.append(at(right, bottom + 36, "devices", class_="soft", anchor="end"))
    told = ", ".join(f"{many:,} devices ±{percent(value)}" for many, value in curve)
    return drawing(
        "reach", "How the interval narrows with the number of devices", f"{told}.", WIDTH, bottom + 42, *made
    )


def _ticks(low: float, high: float, steps: Sequence[int]) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [step * 10.0**power for power in powers for step in steps]
    return [tick for tick in found if low * 0.999 <= tick <= high * 1.001]


def _few(count: float) -> str:
    """1,000 · 10k · 1M: what fits below an axis."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if count >= size:
            return f"{count / (1000 if letter == 'k' else size):g}{letter}"
    return f"{count:,.0f}"
