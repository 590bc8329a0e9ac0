"""Result rows as curves of one panel, each point with a mark that says who is trusted, and whether an epsilon holds."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sensorsim.mechanisms import find
from sensorsim.training.axes import GREY, Measure
from sensorsim.training.labels import TEXT, Label, write

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
CORNER_WIDTH = 31  # letters of a line beside the corner
NO_BREAK = "\u00a0"
LEVEL = (0.0,)  # the places of a curve that is a level line


@dataclass(frozen=True)
class Curve:
    """The rows of one mechanism in one setting, from left to right."""

    mechanism: str
    name: str  # at its end
    places: tuple[float, ...]
    rows: tuple[Row, ...]
    line: str = ""  # its style; that of the mechanism if there is none


def trust_of(row: Row) -> str:
    """Which mark a row has. A sweep draws from a seed, so the question is what would hold with secret noise."""
    mechanism = find(row["mechanism"])
    if not mechanism.private:
        return NONE
    covers = row.get("with_secret_noise") or row.get("covers_short") or UNCOVERED[0]
    if row.get("spent_epsilon") is None or covers in UNCOVERED:
        return NOT_COVERED
    return str(row.get("trust") or mechanism.trust)


def curves_of(rows: Sequence[Row], place: str) -> list[Curve]:
    """One curve for each mechanism and setting, over the field `place`; rows without that field are left out.

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
    """Curves and trivial predictors with their labels, once the limits of x are set.

    `trivial` are level lines; `lines` are grey curves, for predictors that change along the axis; `growing` marks
    become larger from one row of a curve to the next; those `without` a result are named.
    """
    heights = [height for curve in curves for row in curve.rows if (height := measure.height(row)) is not None]
    levels = {name: height for name, scores in trivial.items() if (height := measure.height(scores)) is not None}
    grey = [height for line in lines for row in line.rows if (height := measure.height(row)) is not None]
    worst = max(heights, default=1.0) * FAR_BELOW
    shown = [height for height in levels.values() if not measure.log or height <= worst]
    measure.dress(axis, [*heights, *shown, *grey])
    labels = [label for curve in curves if (label := _curve(axis, measure, curve, growing))]
    labels += [label for line in lines if (label := _grey(axis, measure, line))]
    for name, height in levels.items():
        if measure.log or not measure.off(axis, height):  # how far under the mean a guess is says nothing
            labels.append(_level(axis, name, height))
    points = [_course(axis, _points(measure, curve), curve) for curve in [*curves, *lines]]
    shown_labels = [label for label in labels if not measure.off(axis, label.y)]
    write(axis, shown_labels, [each for each in points if len(each)], list(levels.values()))
    above, below = (_off(axis, measure, labels, side) for side in (1, -1))
    without = list(dict.fromkeys([*without, *(curve.name for curve in curves if not len(_points(measure, curve)))]))
    _at_the_corner(axis, 1, [("above:", above)])
    _at_the_corner(axis, 0, [("below:", below), ("no result:", without)])


def _off(axis: Any, measure: Measure, labels: Sequence[Label], side: int) -> list[str]:
    """Those that end above or below what the panel shows, with their numbers."""
    out = sorted((label.y, label.text) for label in labels if measure.off(axis, label.y) == side)
    return [f"{name.split(',')[0]} {measure.written(float(f'{height:.3g}'))}" for height, name in out]


def _at_the_corner(axis: Any, height: int, lists: list[tuple[str, list[str]]]) -> None:
    """Small lists beside the panel's upper (1) or lower (0) right corner; a name is never broken."""
    whole = [f"{word} {', '.join(name.replace(' ', NO_BREAK) for name in names)}" for word, names in lists if names]
    if whole:
        axis.annotate(
            "\n".join(textwrap.fill(text, CORNER_WIDTH, break_on_hyphens=False) for text in whole),
            (1, height), (TEXT, 12 if height else -12), xycoords="axes fraction", textcoords="offset points",
            va="bottom" if height else "top", fontsize=7, color=GREY, gid="corner",
        )  # fmt: skip


def _curve(axis: Any, measure: Measure, curve: Curve, growing: bool) -> Label | None:
    """A line of means with 95 % bars, and a mark at each; a cell without a mean is a triangle at the bottom."""
    line, _, colour = find(curve.mechanism).style
    line = curve.line or line
    lost = [place for place, row in zip(curve.places, curve.rows, strict=True) if _is_lost(row)]
    if lost:
        floor = axis.get_xaxis_transform()
        axis.plot(lost, [0.015] * len(lost), "v", color=colour, markersize=5, transform=floor, label=LOST, gid="lost")
    points = _points(measure, curve)
    if not len(points):
        return None
    level = curve.places == LEVEL
    xs, ys = _course(axis, points, curve).T
    width = 1.8 if trust_of(curve.rows[-1]) != NOT_COVERED else 1.1
    axis.plot(xs, ys, linestyle=line, color=colour, linewidth=width, gid=f"curve {curve.name}", zorder=3)
    for turn, (place, row) in enumerate(zip(curve.places, curve.rows, strict=True)):
        _interval(axis, measure, axis.get_xlim() if level else (place, place), row, growing)
        if not level:
            _mark(axis, measure, place, row, 0.5 + 0.15 * turn if growing else 1.0)
    last = next(row for row in reversed(curve.rows) if measure.height(row) is not None)
    return Label(curve.name, xs[-1], ys[-1], colour, mark=None if trust_of(last) == NONE else mark_of(last))


def _is_lost(row: Row) -> bool:
    return row.get("accuracy") is None and bool(row.get("error") or row.get("diverged"))


def _interval(axis: Any, measure: Measure, places: tuple[float, float], row: Row, growing: bool) -> None:
    """The 95 % interval of a mean, faint; a column of growing marks would hide it."""
    low, high = (measure.height(row, part) for part in ("_low", "_high"))
    if low is None or high is None or growing:
        return
    colour = find(row["mechanism"]).style.colour
    if places[0] == places[1]:
        axis.plot(places, [low, high], color=colour, linewidth=3.2, alpha=0.28, solid_capstyle="butt", zorder=2)
    else:
        axis.axhspan(low, high, color=colour, alpha=0.1, linewidth=0, zorder=1)


def _mark(axis: Any, measure: Measure, place: float, row: Row, scale: float) -> None:
    height = measure.height(row)
    if height is None:
        return
    look = mark_of(row)
    look["markersize"] = look.get("markersize", SIZE) * scale
    axis.plot([place], [height], linestyle="", zorder=4, gid=f"mark {trust_of(row)}", **look)


def _grey(axis: Any, measure: Measure, line: Curve) -> Label | None:
    points = _points(measure, line)
    if not len(points):
        return None
    edges = axis.get_xlim()
    xs, ys = [edges[0], *points[:, 0], edges[1]], [points[0, 1], *points[:, 1], points[-1, 1]]
    axis.plot(xs, ys, color=GREY, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=1, gid=f"trivial {line.name}")
    return Label(line.name, edges[1], ys[-1], GREY, 7.5)


def _level(axis: Any, name: str, height: float) -> Label:
    axis.axhline(height, color=GREY, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=1, gid=f"trivial {name}")
    return Label(name, axis.get_xlim()[1], height, GREY, 7.5)


def _course(axis: Any, points: np.ndarray, curve: Curve) -> np.ndarray:
    """Where its line runs: through its points, or from edge to edge."""
    if curve.places != LEVEL or not len(points):
        return points
    return np.column_stack([axis.get_xlim(), np.repeat(points[:, 1], 2)])


def _points(measure: Measure, curve: Curve) -> np.ndarray:
    heights = [(place, measure.height(row)) for place, row in zip(curve.places, curve.rows, strict=True)]
    return np.array([(place, height) for place, height in heights if height is not None], dtype=float).reshape(-1, 2)


def mark_of(row: Row) -> dict[str, Any]:
    """The mechanism's own marker: filled for local, open for central, a cross for not covered, none without privacy."""
    _, marker, colour = find(row["mechanism"]).style
    return mark(trust_of(row), marker, colour)


def mark(trust: str, marker: str, colour: str) -> dict[str, Any]:
    size = SIZE + (3 if marker == "*" else 0)
    if trust == NONE:
        return {"marker": "None"}
    if trust == NOT_COVERED:
        return {"marker": "x", "color": colour, "markersize": SIZE - 1, "markeredgewidth": 1.4}
    face = "white" if trust == CENTRAL else colour
    return {"marker": marker, "color": colour, "markerfacecolor": face, "markersize": size, "markeredgewidth": 1.3}
