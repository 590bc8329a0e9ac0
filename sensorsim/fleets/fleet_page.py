"""Draw a page of figures of a simulated fleet, readable in grey."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sensorsim._util.terminal import counted
from sensorsim.fleets.estimates import NANOJOULES_PER_MICROJOULE
from sensorsim.fleets.fleet_result import OF_RECORDS, OF_RELEASED
from sensorsim.fleets.fleet_text import shorten
from sensorsim.noise.certificate import format_epsilon as epsilon

if TYPE_CHECKING:
    from sensorsim.fleets.estimates import Spread
    from sensorsim.fleets.fleet_result import FleetResult

INK, PALE, LIGHT = "0.25", "0.6", "0.8"
SIZE = (9.5, 13.0)
MOST_FEATURES = 20
NAME = 28  # characters of a feature's name
MOST_BARS = 60  # of a histogram
MOST_SPENDS = 300  # releases, from the least to the most of a person, that each have room for a bar of their own
UNITS = (("J", 10**9), ("mJ", 10**6), ("µJ", 10**3))  # in nanojoules: that of an axis has ticks of few digits


def page(result: "FleetResult", feature: int = 0) -> Any:
    """Draw one feature over time, all features, spent epsilon, energy, and the outcomes of records."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=SIZE, layout=ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.08))
    shown = min(len(result.features), MOST_FEATURES)
    grid = figure.add_gridspec(4, 2, height_ratios=(1.15, 0.5 + 0.07 * shown, 0.85, 0.9))
    _over_time(figure.add_subplot(grid[0, :]), result, feature)
    widths = figure.add_subplot(grid[1, 0])
    _half_widths(widths, result)
    _coverages(figure.add_subplot(grid[1, 1], sharey=widths), result)
    _spent(figure.add_subplot(grid[2, 0]), result)
    _energy(figure.add_subplot(grid[2, 1]), result)
    _packets(figure.add_subplot(grid[3, :]), result)
    for axes in figure.axes:  # two thin lines in place of the box
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set(color=PALE, linewidth=0.8)
        axes.tick_params(color=PALE, labelcolor=INK)
        for axis in (axes.xaxis, axes.yaxis):
            axis.label.set(size=8.5, color=INK)
    settings = result.settings
    devices, days = counted(settings.devices, "device"), counted(settings.days, "day")
    told = f"people: {shorten(settings.people.source, NAME)}, one run, seed {settings.seed}"
    heading = f"{devices} over {days}: a simulation, nothing of it is private\n{told}"
    figure.suptitle(heading, x=0.01, ha="left", fontsize=12, weight="bold")
    return figure


def _over_time(axes: Any, result: "FleetResult", feature: int) -> None:
    found = [one for one in result.estimates if one.feature == feature]
    for one in found:
        begins, ends = one.first_day - 0.5, one.first_day - 0.5 + one.days
        middle, wide = (begins + ends) / 2, 2.8 if one.covered is False else 1.3
        axes.plot([middle, middle], [one.low, one.high], color=INK, linewidth=wide, solid_capstyle="butt", zorder=2)
        if one.mean is not None:
            inside = min(max(one.mean, one.low), one.high)  # noise may put a mean outside of 0 … 1
            face = "black" if one.whole else "white"
            axes.plot(middle, inside, "o", markersize=4.5, color="black", markerfacecolor=face, zorder=3)
        if one.truth is not None:
            axes.plot([begins, ends], [one.truth] * 2, color=PALE, linewidth=4, solid_capstyle="butt", zorder=1)
    axes.set(xlabel="day", ylabel="mean, 0 … 1 being the range", xlim=(0.5, result.settings.days + 0.5))
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, 0.0), high if result.settings.firmware.sketch is not None else min(high, 1.0))
    if result.settings.firmware.sketch is not None:
        axes.set_ylabel("mean of u·R²")
    missed = sum(one.covered is False for one in found)
    note = f"; {missed} missed, drawn thick" if missed else ""
    short = "; hollow: fewer days" if not all(one.whole for one in found) else ""
    _entitle(
        axes, f"{shorten(found[0].name, NAME)}: estimates with 95 % intervals, the truth as a grey band{note}{short}"
    )


def _half_widths(axes: Any, result: "FleetResult") -> None:
    features = result.features[:MOST_FEATURES]
    places = np.arange(len(features))
    scale = 100.0 if result.settings.firmware.sketch is None else 1.0
    axes.barh(places, [scale * (one.half or 0.0) for one in features], color=LIGHT, edgecolor=INK, linewidth=0.6)
    for place, one in enumerate(features):
        if one.half is None:
            axes.annotate("none: no whole period", (0, place), (4, 0), textcoords="offset points", va="center",
                          fontsize=7.5, color=INK)  # fmt: skip
    axes.set_xlim(left=0, right=None if any(one.half for one in features) else 1)
    axes.set_yticks(places, [shorten(one.name, NAME) for one in features], fontsize=7.5)
    axes.set_ylim(len(features) - 0.4, -0.6)
    axes.set_xlabel("half width, % of the range" if scale > 1 else "half width of u·R²")
    more = len(result.features) - len(features)
    _entitle(axes, "half width of the intervals" + (f" ({more} features more)" if more > 0 else ""))


def _coverages(axes: Any, result: "FleetResult") -> None:
    least = 90.0
    for place, one in enumerate(result.features[:MOST_FEATURES]):
        for coverage, mark, up in ((one.coverage, "o", -0.16), (one.coverage_of_records, "s", 0.16)):
            if coverage.share is None:
                continue
            low, high = coverage.limits
            axes.plot([100 * low, 100 * high], [place + up] * 2, color=PALE, linewidth=1)
            face = "black" if mark == "o" else "white"
            axes.plot(100 * coverage.share, place + up, mark, color="black", markerfacecolor=face, markersize=4,
                      clip_on=False, zorder=3)  # fmt: skip
            least = min(least, 100 * low)
    axes.axvline(95, color=INK, linewidth=0.9, linestyle="--")
    axes.set_xlim(max(0.0, least - 2), 100)
    axes.tick_params(labelleft=False)
    axes.set_xlabel("intervals that hold, %, with what chance leaves open")
    _entitle(axes, f"● of {result.of_people}   □ of those that came")


def _spent(axes: Any, result: "FleetResult") -> None:
    wear, each = result.wear, _spends(axes, result.spent, float(result.settings.firmware.epsilon))
    together = f"; a bar: {each} numbers of releases" if each > 1 else ""
    axes.set(xlabel=f"ε of a person over all days, basic composition{together}", ylabel="people")
    composed = f"{epsilon(wear.median_at_delta)} and {epsilon(wear.most_at_delta)}"
    basic = f"median ε {epsilon(wear.median_basic)}, most {epsilon(wear.most_basic)}"
    _entitle(axes, f"spent: {basic}\nat delta {wear.delta:g}: {composed}")


def _spends(axes: Any, spread: "Spread", unit: float) -> int:
    """Draw each spend as a thin bar at its value, or group spends that have no room; return the spends of a bar.

    A spend is a whole number of releases, so a bar never covers an epsilon that nobody can have spent: a thin one marks
    a value, and a bar of a group reaches from its least spend to its most.
    """
    held = np.flatnonzero(spread.devices)
    if not len(held):
        return 1
    first, last = int(held[0]), int(held[-1])
    bins = 1 if last - first < MOST_SPENDS else -(-(last - first + 1) // MOST_BARS)
    each, bars = bins * spread.step, np.arange(first, last + 1, bins)
    counts = np.add.reduceat(spread.devices[: last + 1], bars)
    bars, counts = bars[counts > 0], counts[counts > 0]
    low = bars * spread.step * unit
    width = unit / 4 if each == 1 else (each - 1) * unit
    middle = low if each == 1 else low + width / 2
    axes.bar(middle, counts, width, color=LIGHT, edgecolor=INK, linewidth=0.6)
    begin, end = float(low[0]) - unit / 2, float(low[-1]) + (each - 0.5) * unit
    axes.set_xlim(begin, end)
    marked: list[float] = []
    for value in map(float, low):
        if not marked or value - marked[-1] >= (end - begin) / 6:  # room for its label
            marked.append(value)
    axes.set_xticks(marked, [epsilon(value) for value in marked])
    return each


def _energy(axes: Any, result: "FleetResult") -> None:
    used, board = result.used, result.board
    if used is None:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no prices of energy", ha="center", va="center", color=INK, fontsize=9)
        return
    most = used.spread.quantile(1.0)
    unit, size = next((pair for pair in UNITS if most >= pair[1]), UNITS[-1])
    _histogram(axes, used.spread, 1 / size)
    axes.set(xlabel=f"energy of a device over all days, {unit}", ylabel="devices")
    parts = ", ".join(f"{name} {100 * part / used.mean:.0f} %" for name, part in used.parts.items())
    on = "" if board is None else f" ({board.chip}, {board.radio})"
    if used.spread.overflows:
        axes.annotate("and beyond", (1, 0.9), xycoords="axes fraction", ha="right", fontsize=7.5, color=INK)
    _entitle(axes, f"energy{on}: {used.mean / NANOJOULES_PER_MICROJOULE / used.days:.3g} µJ a day\n{parts}")


def _histogram(axes: Any, spread: "Spread", unit: float) -> None:
    """Draw a histogram of at most MOST_BARS bars; a bar is at least as wide as the widest bin."""
    from matplotlib.ticker import MaxNLocator

    held = np.flatnonzero(spread.devices)
    first, last = (int(held[0]), int(held[-1])) if len(held) else (0, 0)
    begin, widest = spread.begins(first), spread.begins(last + 1) - spread.begins(last)
    width = max(widest, -(-(spread.begins(last + 1) - begin) // MOST_BARS))
    bars = np.array([(spread.begins(int(place)) - begin) // width for place in held], np.int64)
    counts = np.bincount(bars, spread.devices[held])
    left = (begin + width * np.arange(len(counts))) * spread.step * unit
    axes.bar(left, counts, width * spread.step * unit, align="edge", color=LIGHT, edgecolor=INK, linewidth=0.6)
    if len(left):  # room around bars of any width, wide enough that ticks differ
        low, high = float(left[0]), float(left[-1]) + width * spread.step * unit
        spare = max(0.05 * (high - low), 0.01 * high)
        axes.set_xlim(max(low - spare, 0.0), high + spare)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.ticklabel_format(axis="x", style="plain", useOffset=False)


def _packets(axes: Any, result: "FleetResult") -> None:
    named = {one.name: one for one in result.outcomes}
    shown = [named[name] for name in (*OF_RECORDS, *OF_RELEASED) if named[name].count]
    places = np.arange(len(shown))
    for place, one in zip(places, shown, strict=True):
        hatch = "//" if one.name in OF_RELEASED else ""
        axes.barh(place, one.count, color=LIGHT, edgecolor=INK, linewidth=0.6, hatch=hatch)
        share = "" if one.share is None else f" · {100 * one.share:.3g} % of {one.of}"
        axes.annotate(f"{one.count:,}{share}", (one.count, place), (4, 0), textcoords="offset points", va="center",
                      fontsize=7.5, color=INK)  # fmt: skip
    axes.set_xscale("log")
    most = max(one.count for one in shown)
    axes.set_xlim(0.7, most ** (1 / 0.72) + 10)  # room for the words at the longest bar
    axes.set_yticks(places, [one.name for one in shown], fontsize=8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlabel("records, and of those released the packets (hatched); logarithmic")
    _entitle(axes, f"what became of {counted(named['records'].count, 'record')}")


def _entitle(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=9, color=INK)
