"""Panels of data figures: curves with marks, trivial predictors, names in the margin, a key below.

Accuracy has a log scale of the error 1 - accuracy, better at the top: 99.9 and 99.99 per cent are as far apart as 90
and 99. R² has a linear scale from a little under 0, where the column mean is, to 1. A mark shows who is trusted, and
whether an epsilon holds. Names stand in the margin, in the order of the ends of their lines and pushed apart, so that
the leaders do not cross each other. Sizes are inches, so nothing shifts.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sensorsim._util.drawing import apart
from sensorsim.mechanisms import find

Row = dict[str, Any]
Scores = dict[str, dict[str, Any]]  # of the trivial predictors, by name

LOCAL, CENTRAL, NOT_COVERED, NONE = "local", "central", "not covered", "none"
KEY = {
    LOCAL: "local: noise is added on the body",
    CENTRAL: "central: a trusted server sees raw records",
    NOT_COVERED: "not covered: the weights have no epsilon",
}
UNCOVERED = ("nothing", "coefficients", "gradients")  # what a statement covers where the weights are not in it
LOST = "diverged, or could not run"
FAR_BELOW = 1.6  # times the largest error of a curve, from where a trivial predictor would squeeze the panel
SIZE = 6.0
CORNER_WIDTH = 31  # characters of a line beside the corner
NO_BREAK = "\u00a0"
LEVEL = (0.0,)  # the places of a curve that is a level line
GREY, INK = "0.45", "0.25"
LEAST_ERROR = 1e-6  # a smaller one is as good as exact, and above the axis
STEPS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9))  # ticks of a decade
ENOUGH = 5  # ticks on an axis
LOWEST_R2 = -0.15  # a model that is worse than the column mean is off the scale, with its number
GAP = 11.0  # points from one label of the margin to the next
LEADER, MARK, TEXT = 4.0, 17.0, 25.0  # points from the panel's edge to where these begin
MOVED, SHORT = 2.5, 16.0  # points: a label that moved further has a leader, and one of a line that ends shorter
LEFT, WIDE, RIGHT = 1.15, 4.4, 1.95  # of one panel: scale, panel, names
TALL, BETWEEN = 3.9, 0.6
TOP, BELOW = 0.85, 1.05
LETTER, NOTE_LETTER = 0.12, 0.07  # of a heading, and of the note
UNDER, LINE = 0.75, 0.17  # what the axis and its title take, and a line of the key or the note


@dataclass(frozen=True)
class Measure:
    """One field of a result row, as a height in a figure."""

    field: str
    title: str
    log: bool

    def height(self, scores: Row, part: str = "") -> float | None:
        """Return the height of a result, None without a number; `part` is "", "_low" or "_high"."""
        value = scores.get(self.field + part)
        if value is None or not math.isfinite(value):
            return None
        return max(1 - value / 100, LEAST_ERROR) if self.log else float(value)

    def written(self, height: float) -> str:
        """Format a height for a reader."""
        more = "≥ " if self.log and height <= LEAST_ERROR else ""
        return (f"{more}{round(100 * (1 - height), 6):g} %" if self.log else f"{height:.2f}").replace("-", "−")

    def off(self, axis: Any, height: float) -> int:
        """Return 1 where the height is above what the axis shows, -1 where it is below, else 0."""
        bottom, top = axis.get_ylim()
        if min(bottom, top) <= height <= max(bottom, top):
            return 0
        return 1 if (height > top) == (top > bottom) else -1

    def dress(self, axis: Any, heights: Iterable[float]) -> None:
        """Set limits around these heights, ticks and titles; of accuracy also the error itself, small and grey."""
        from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

        def beside(text: str, place: tuple[float, float], shift: tuple[float, float], colour: str, within: Any) -> None:
            style = {"ha": "right", "va": "center", "fontsize": 7, "color": colour}
            axis.annotate(text, place, shift, xycoords=within, textcoords="offset points", **style)

        if self.log:
            known = [height for height in heights if height > LEAST_ERROR] or [0.01, 1.0]
            best, worst = min(known) / 1.35, max(known) * 1.35
            axis.set_yscale("log")
            axis.set_ylim(worst, best)
            ticks = log_ticks(best, worst)
            axis.yaxis.set_major_locator(FixedLocator(ticks))
            axis.yaxis.set_minor_locator(NullLocator())
            axis.yaxis.set_major_formatter(FuncFormatter(lambda error, _: self.written(error)))
            for tick in ticks:
                error = f"{tick:.8f}".rstrip("0").rstrip(".")
                beside(error, (0, tick), (-50, 0), GREY, ("axes fraction", "data"))
            beside("MSE", (0, 1), (-50, 11), GREY, "axes fraction")
        else:
            axis.set_ylim(max(min([0.0, *heights]) - 0.05, LOWEST_R2), 1.0)
        beside(self.title, (0, 1), (-7, 11), INK, "axes fraction")


ACCURACY = Measure("accuracy", "accuracy", log=True)
R2 = Measure("r2", "R²", log=False)


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between the two, in as many steps of a decade as give enough of them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in STEPS:
        ticks = [tick for power in powers for step in steps if low <= (tick := step * 10.0**power) <= high]
        if len(ticks) >= ENOUGH:
            break
    return ticks


# ── curves ──


@dataclass(frozen=True)
class Curve:
    """The rows of one mechanism in one setting, from left to right."""

    mechanism: str
    name: str  # at its end
    places: tuple[float, ...]
    rows: tuple[Row, ...]
    line: str = ""  # its style; that of the mechanism if there is none

    def points(self, axis: Any, measure: Measure) -> np.ndarray:
        """Return the points (k, 2) of its line: those with a height, or from edge to edge of a level line."""
        heights = ((place, measure.height(row)) for place, row in zip(self.places, self.rows, strict=True))
        found = np.array([pair for pair in heights if pair[1] is not None], dtype=float).reshape(-1, 2)
        if self.places != LEVEL or not len(found):
            return found
        return np.column_stack([axis.get_xlim(), np.repeat(found[:, 1], 2)])


@dataclass(frozen=True)
class Label:
    """A text in the colour of its line, for the line's end (in data coordinates)."""

    text: str
    x: float
    y: float
    colour: str
    size: float = 8.5
    mark: dict[str, Any] | None = None  # before the text: marker, colours and size, as a plot takes them


def trust_of(row: Row) -> str:
    """Return the mark of a row. A sweep draws from a seed, so the question is what would hold with secret noise."""
    mechanism = find(row["mechanism"])
    if not mechanism.private:
        return NONE
    covers = row.get("with_secret_noise") or row.get("covers_short") or UNCOVERED[0]
    if row.get("spent_epsilon") is None or covers in UNCOVERED:
        return NOT_COVERED
    return str(row.get("trust") or mechanism.trust)


def mark(trust: str, marker: str, colour: str) -> dict[str, Any]:
    """Return the look of a mark: filled for local, open for central, a cross for not covered, none without privacy."""
    if trust == NONE:
        return {"marker": "None"}
    if trust == NOT_COVERED:
        return {"marker": "x", "color": colour, "markersize": SIZE - 1, "markeredgewidth": 1.4}
    size, face = SIZE + (3 if marker == "*" else 0), "white" if trust == CENTRAL else colour
    return {"marker": marker, "color": colour, "markerfacecolor": face, "markersize": size, "markeredgewidth": 1.3}


def curves_of(rows: Sequence[Row], place: str) -> list[Curve]:
    """Return one curve for each mechanism and setting, over the field `place`; leave out rows without that field.

    A cell that could not run knows no setting: it belongs to the first curve of its mechanism.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.get("error") is not None):
        if row.get(place) is not None:
            key = (row["mechanism"], row.get("settings"), row.get("redraw"))
            if row.get("error"):
                key = next((other for other in groups if other[0] == row["mechanism"]), key)
            groups.setdefault(key, []).append(row)
    found = []
    for (mechanism, settings, redraw), part in groups.items():
        part.sort(key=lambda row: row[place])
        words = [find(mechanism).title if not find(mechanism).private else mechanism]
        words += [settings] if settings in ("tuned", "as printed") else []
        words += ["fresh noise"] if redraw else []
        found.append(Curve(mechanism, ", ".join(words), tuple(row[place] for row in part), tuple(part)))
    return found


def draw(
    axis: Any,
    measure: Measure,
    curves: Sequence[Curve],
    trivial: Scores,
    lines: Sequence[Curve] = (),
    growing: bool = False,
    without: Sequence[str] = (),
) -> None:
    """Draw curves and trivial predictors with their labels, once the limits of x are set.

    `trivial` are level lines; `lines` are grey curves, for predictors that change along the axis; `growing` marks
    become larger from one row of a curve to the next; those `without` a result are named.
    """
    heights = [height for curve in curves for row in curve.rows if (height := measure.height(row)) is not None]
    levels = {name: height for name, scores in trivial.items() if (height := measure.height(scores)) is not None}
    grey = [height for line in lines for row in line.rows if (height := measure.height(row)) is not None]
    worst = max(heights, default=1.0) * FAR_BELOW
    shown = [height for height in levels.values() if not measure.log or height <= worst]
    measure.dress(axis, [*heights, *shown, *grey])
    labels = [label for curve in curves if (label := _draw_curve(axis, measure, curve, growing))]
    edges, dotted = axis.get_xlim(), {"color": GREY, "linewidth": 0.8, "linestyle": (0, (1, 1.5)), "zorder": 1}
    for line in lines:
        if len(points := line.points(axis, measure)):
            xs, ys = [edges[0], *points[:, 0], edges[1]], [points[0, 1], *points[:, 1], points[-1, 1]]
            axis.plot(xs, ys, gid=f"trivial {line.name}", **dotted)
            labels.append(Label(line.name, edges[1], ys[-1], GREY, 7.5))
    for name, height in levels.items():
        if measure.log or not measure.off(axis, height):  # how far under the mean a guess is says nothing
            axis.axhline(height, gid=f"trivial {name}", **dotted)
            labels.append(Label(name, edges[1], height, GREY, 7.5))
    write_labels(axis, [label for label in labels if not measure.off(axis, label.y)])
    lost = [curve.name for curve in curves if not len(curve.points(axis, measure))]
    sides: dict[int, dict[str, list[str]]] = {
        1: {"above:": []},
        0: {"below:": [], "no result:": list(dict.fromkeys([*without, *lost]))},
    }
    for label in sorted(labels, key=lambda label: (label.y, label.text)):
        if side := measure.off(axis, label.y):
            said = f"{label.text.split(',')[0]} {measure.written(float(f'{label.y:.3g}'))}"
            sides[max(side, 0)]["above:" if side > 0 else "below:"].append(said)
    for height, lists in sides.items():  # beside the panel's upper (1) or lower (0) right corner; no name is broken
        whole = [
            f"{word} {', '.join(name.replace(' ', NO_BREAK) for name in names)}"
            for word, names in lists.items()
            if names
        ]
        if whole:
            axis.annotate(
                "\n".join(textwrap.fill(text, CORNER_WIDTH, break_on_hyphens=False) for text in whole),
                (1, height), (TEXT, 12 if height else -12), xycoords="axes fraction", textcoords="offset points",
                va="bottom" if height else "top", fontsize=7, color=GREY, gid="corner",
            )  # fmt: skip


def _draw_curve(axis: Any, measure: Measure, curve: Curve, growing: bool) -> Label | None:
    """Draw a line of means with faint 95 % bars and marks; a cell without a mean is a triangle at the bottom."""
    line, marker, colour = find(curve.mechanism).style
    lost = [
        place
        for place, row in zip(curve.places, curve.rows, strict=True)
        if row.get("accuracy") is None and (row.get("error") or row.get("diverged"))
    ]
    if lost:
        floor = axis.get_xaxis_transform()
        axis.plot(lost, [0.015] * len(lost), "v", color=colour, markersize=5, transform=floor, label=LOST, gid="lost")
    points = curve.points(axis, measure)
    if not len(points):
        return None
    xs, ys = points.T
    width = 1.8 if trust_of(curve.rows[-1]) != NOT_COVERED else 1.1
    style = {"linestyle": curve.line or line, "color": colour, "linewidth": width, "zorder": 3}
    axis.plot(xs, ys, gid=f"curve {curve.name}", **style)
    for turn, (place, row) in enumerate(zip(curve.places, curve.rows, strict=True)):
        low, height, high = (measure.height(row, part) for part in ("_low", "", "_high"))
        if low is not None and high is not None and not growing:  # a column of growing marks would hide it
            if curve.places == LEVEL:
                axis.axhspan(low, high, color=colour, alpha=0.1, linewidth=0, zorder=1)
            else:
                bar = {"linewidth": 3.2, "alpha": 0.28, "solid_capstyle": "butt", "zorder": 2}
                axis.plot((place, place), [low, high], color=colour, **bar)
        if height is not None and curve.places != LEVEL:
            look = mark(trust_of(row), marker, colour)
            look["markersize"] = look.get("markersize", SIZE) * (0.5 + 0.15 * turn if growing else 1.0)
            axis.plot([place], [height], linestyle="", zorder=4, gid=f"mark {trust_of(row)}", **look)
    trust = trust_of(next(row for row in reversed(curve.rows) if measure.height(row) is not None))
    return Label(curve.name, xs[-1], ys[-1], colour, mark=None if trust == NONE else mark(trust, marker, colour))


def write_labels(axis: Any, labels: Sequence[Label]) -> None:
    """Write labels in the margin, with thin leaders to those that had to move or whose lines end inside the panel."""
    place, inches = axis.get_position(), axis.figure.get_size_inches()
    width, height = 72 * inches[0] * place.width, 72 * inches[1] * place.height  # of the panel, in points
    ends = [(axis.transScale + axis.transLimits).transform((label.x, label.y)) for label in labels]
    order = sorted(range(len(labels)), key=lambda i: (ends[i][1], labels[i].text))
    wanted = [min(max(ends[i][1], 0.0), 1.0) * height for i in order]
    panel: dict[str, Any] = {"transform": axis.transAxes, "clip_on": False}
    for i, was, now in zip(order, wanted, apart(wanted, GAP, 0.0, height), strict=True):
        label, y = labels[i], now / height
        if abs(was - now) > MOVED or label.mark is None or (1 - ends[i][0]) * width > SHORT:
            begin = min(max(ends[i][0], 0.0), 1.0) + (LEADER if label.mark else 0) / width
            turn, stop = 1 + LEADER / width, 1 + ((MARK - 4) if label.mark else TEXT - 2) / width
            xs, ys = [min(begin, turn), turn, stop], [was / height, was / height, y]
            axis.plot(xs, ys, color=label.colour, linewidth=0.6, gid=f"leader {label.text}", zorder=2, **panel)
        if label.mark:
            axis.plot([1 + MARK / width], [y], linestyle="", **panel, **label.mark)
        style = {"color": dark(label.colour), "fontsize": label.size, "va": "center_baseline"}
        axis.text(1 + TEXT / width, y, label.text, transform=axis.transAxes, gid=f"label {label.text}", **style)


def dark(colour: str) -> tuple[float, float, float]:
    """Return the colour, darkened until it is readable as text on white."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    light = 0.30 * red + 0.59 * green + 0.11 * blue
    factor = min(1.0, 0.45 / light) if light else 1.0
    return red * factor, green * factor, blue * factor


# ── the sheet ──


def sheet(across: int, down: int = 1) -> tuple[Any, list[Any]]:
    """Return a figure and its panels, row by row: two thin lines and a faint grid, no box."""
    from matplotlib.figure import Figure

    width = across * (LEFT + WIDE + RIGHT)
    height = TOP + down * TALL + (down - 1) * BETWEEN + BELOW
    figure = Figure(figsize=(width, height))
    axes = []
    for row in range(down):
        for column in range(across):
            left = column * (LEFT + WIDE + RIGHT) + LEFT
            low = BELOW + (down - 1 - row) * (TALL + BETWEEN)
            axis = figure.add_axes((left / width, low / height, WIDE / width, TALL / height))
            axis.spines[["top", "right"]].set_visible(False)
            axis.spines[["left", "bottom"]].set(color="0.6", linewidth=0.8)
            axis.tick_params(color="0.6", labelsize=8, labelcolor=INK)
            axis.grid(color="0.93", linewidth=0.6)
            axis.set_axisbelow(True)
            axis.xaxis.label.set(size=9, color=INK)
            axis.yaxis.label.set(size=9, color=INK)
            axes.append(axis)
    return figure, axes


def entitle(axis: Any, title: str) -> None:
    """Set the title of one panel."""
    axis.set_title(title, loc="left", fontsize=9, color=INK, pad=8)


def finish(figure: Any, heading: str, note: str = "") -> Any:
    """Add the heading, and under the panels the key of the marks that they use, with a note of data, runs and bars."""
    from matplotlib.lines import Line2D

    used = {line.get_gid() for axis in figure.axes for line in axis.lines}
    handles = [
        Line2D([], [], linestyle="", label=KEY[trust], **mark(trust, "o", INK))
        for trust in (LOCAL, CENTRAL, NOT_COVERED)
        if f"mark {trust}" in used
    ]
    if "lost" in used:
        handles.append(Line2D([], [], linestyle="", marker="v", color=INK, markersize=5, label=LOST))
    wide, tall = figure.get_size_inches()
    columns = len(handles) if wide > LEFT + WIDE + RIGHT else 1
    said = textwrap.wrap(note, int((wide - LEFT) / NOTE_LETTER))
    rows = -(-len(handles) // columns) if handles else 0
    more = max(0.0, UNDER + LINE * (rows + len(said)) - BELOW)  # inches under the panels, which stay as large
    figure.set_figheight(tall + more)
    for axis in figure.axes:
        box, scale = axis.get_position(), tall / (tall + more)
        axis.set_position((box.x0, (box.y0 * tall + more) / (tall + more), box.width, box.height * scale))
    left, low, top = LEFT / wide, LINE * (len(said) + 0.5) / (tall + more), 1 - 0.28 / (tall + more)
    lines = textwrap.wrap(heading, int((wide - LEFT) / LETTER))
    figure.text(left, top, "\n".join(lines), fontsize=12, weight="bold", va="center", gid="heading")
    figure.text(left, low, "\n".join(said), fontsize=8, va="top", color=INK, gid="note")
    if handles:
        figure.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(left, low), borderaxespad=0.3, borderpad=0,
            ncols=columns, frameon=False, fontsize=8, handletextpad=0.3, columnspacing=1.6, labelcolor=INK,
        )  # fmt: skip
    return figure
