"""Geometry of the figures: rectangles, lines and text at their places, which templates/macros.html draws as SVG."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sensorsim.costing.cost_text import SHOWN, format_short
from sensorsim.costing.record_energy import NANOJOULES_PER_MICROJOULE, PARTS

if TYPE_CHECKING:
    from sensorsim.costing.record_energy import WholeRecord
    from sensorsim.reporting.findings import Rival

WIDTH = 340  # as wide as a phone
CHARACTER, BOLD_CHARACTER = 6.6, 7.6  # largest width of a character at the font size of the style sheet
SUFFIXES = ((10**9, 10**9, "G"), (10**6, 10**6, "M"), (10**4, 1000, "k"))  # from, divisor, suffix


@dataclass
class Chart:
    """A figure of WIDTH by `height`. Classes are those of the style sheet; `description` is read to the blind."""

    name: str
    title: str
    height: float
    description: str = ""
    rects: list[tuple[float, float, float, float, str]] = field(default_factory=list)  # x, y, width, height, class
    lines: list[tuple[str, str]] = field(default_factory=list)  # points, class
    dots: list[tuple[float, float]] = field(default_factory=list)
    texts: list[tuple[float, float, str, str, str]] = field(default_factory=list)  # x, y, text, class, anchor
    width: int = WIDTH

    def text(self, x: float, y: float, text: str, css: str = "", anchor: str = "start") -> None:
        """Place text at (x, y), which is its start, middle or end."""
        self.texts.append((x, y, text, css, anchor))

    def line(self, points: Iterable[tuple[float, float]], css: str) -> None:
        """Draw a line through the points."""
        self.lines.append((" ".join(f"{x:.1f},{y:.1f}" for x, y in points), css))


def percent(share: float) -> str:
    """Format a share with three digits, as in 24.2 %."""
    return f"{100 * share:.3g} %"


def energy_chart(record: "WholeRecord") -> Chart | None:
    """Draw one stacked bar per mechanism; None where the chip has no figure for the energy of a part."""
    costs = [record.costs[name] for name in SHOWN if name in record.costs and record.costs[name].microjoule]
    if not costs:
        return None
    chart = Chart("energy", "Energy of one record by component", 46 * len(costs) + 48)
    for place, name in enumerate(PARTS):
        x, y = WIDTH / 2 * (place % 2), 4.0 + 20 * (place // 2)
        chart.rects.append((x, y, 12, 12, f"part{place}"))
        chart.text(x + 18, y + 10, name)
    longest, descriptions = max(cost.microjoule or 0.0 for cost in costs), []
    for row, cost in enumerate(costs):
        x, y = 0.0, 62.0 + 46 * row
        energies = {name: (cost.parts[name].nJ or 0.0) / NANOJOULES_PER_MICROJOULE for name in PARTS}
        chart.text(0, y, cost.title)
        chart.text(WIDTH, y, f"{format_short(cost.microjoule)} µJ", "strong", "end")
        for place, energy in enumerate(energies.values()):
            width = WIDTH * energy / longest
            chart.rects.append((x, y + 7, width, 18, f"part{place}"))
            if width > len(format_short(energy)) * CHARACTER + 8:
                chart.text(x + width / 2, y + 20, format_short(energy), f"on{place}", "middle")
            x += width
        parts = ", ".join(f"{name} {format_short(energy)}" for name, energy in energies.items())
        descriptions.append(f"{cost.title}: {format_short(cost.microjoule)} µJ ({parts})")
    chart.description = f"{'; '.join(descriptions)}."
    return chart


def rival_chart(rivals: "Sequence[Rival]") -> Chart:
    """Draw one bar per mechanism for its standard deviation, the plan's own in bold."""
    left, longest = 122, max(one.sd for one in rivals)
    chart = Chart("rivals", "Standard deviation of the estimate, in ranges of x", 24 * len(rivals))
    for row, one in enumerate(rivals):
        y, width, css = 24 * row, (WIDTH - left - 60) * one.sd / longest, "strong" if one.own else ""
        chart.text(0, y + 14, one.name, css)
        chart.rects.append((left, y + 3, width, 15, "part3" if one.own else "part2"))
        chart.text(left + width + 6, y + 14, f"{one.sd:.4g}", css)
    chart.description = ", ".join(f"{one.name} {one.sd:.4g}" for one in rivals) + "."
    return chart


def precision_chart(curve: Sequence[tuple[int, float]], devices: int) -> Chart:
    """Draw the half width over the number of devices, both axes logarithmic, with `devices` marked."""
    left, right, top, bottom = 60, WIDTH - 18, 30, 190
    xs, ys = [math.log10(count) for count, _ in curve], [math.log10(half) for _, half in curve]
    low, high = min(xs), max(max(xs), min(xs) + 0.1)
    least, most = math.floor(min(ys) * 2) / 2, max(ys) + 0.05

    def place(count: float, half: float) -> tuple[float, float]:
        x = left + (math.log10(count) - low) / (high - low) * (right - left)
        return x, bottom - (math.log10(half) - least) / (most - least) * (bottom - top)

    chart = Chart("precision", "The interval narrows with the number of devices", bottom + 42)
    chart.text(0, 13, "± share of the range, 95 %", "soft")
    for tick in _ticks(10**least, 10**most, (1, 2, 5)):
        y = place(curve[0][0], tick)[1]
        chart.line([(left, y), (right, y)], "grid")
        chart.text(left - 6, y + 4, percent(tick), "soft", "end")
    for tick in _ticks(curve[0][0], curve[-1][0], (1,)):
        x = place(tick, 10**least)[0]
        chart.line([(x, bottom), (x, bottom + 4)], "axis")
        chart.text(x, bottom + 18, _short_count(tick), "soft", "middle")
    chart.text(right, bottom + 36, "devices", "soft", "end")
    chart.line([(left, bottom), (right, bottom)], "axis")
    chart.line([place(*point) for point in curve], "curve")
    half = dict(curve)[devices]
    x, y = place(devices, half)
    chart.dots.append((x, y))
    label = f"{devices:,}: ±{percent(half)}"
    fits = x + 9 + len(label) * BOLD_CHARACTER < WIDTH
    chart.text(x + 9 if fits else WIDTH, y - 9, label, "strong", "start" if fits else "end")
    chart.description = ", ".join(f"{count:,} devices ±{percent(half)}" for count, half in curve) + "."
    return chart


def _ticks(low: float, high: float, steps: Sequence[int]) -> list[float]:
    """Return the multiples `steps` of powers of ten from low to high."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]


def _short_count(count: float) -> str:
    """Format a count to fit below an axis: 1,000, 10k, 1M."""
    return next((f"{count / by:g}{suffix}" for least, by, suffix in SUFFIXES if count >= least), f"{count:,.0f}")
