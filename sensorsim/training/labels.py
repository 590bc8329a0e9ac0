"""Labels that sit at the end of their lines: in the margin where a line ends there, else beside its last point.

In the margin they keep the order of the lines' ends and are pushed apart, so that the thin leaders to those that had to
move do not cross each other. Inside the panel, a label takes the nearest free place that no line runs through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from sensorsim._util.drawing import apart

GAP = 11.0  # points from one label of the margin to the next
NEAR_THE_EDGE = 0.75  # of the panel's width: a line that ends beyond has its label in the margin
LEADER, MARK, TEXT = 4.0, 17.0, 25.0  # points from the panel's edge to where these begin
MOVED, SHORT = 2.5, 16.0  # points: a label that moved further has a leader, and one of a line that ends shorter
FAR = 9.0  # points from a label inside the panel to its line's end, from where it has a leader
ON_A_LINE = 60.0  # points of way that a label goes to keep off a line
ON_GREY = 8.0  # off a thin grey one
CROSSING = 30.0  # and so that its leader crosses none


@dataclass(frozen=True)
class Label:
    """A text in the colour of its line, at the line's end (in data coordinates); the mark stands before the text."""

    text: str
    x: float
    y: float
    colour: str
    size: float = 8.5
    mark: dict[str, Any] | None = None  # marker, colours and size, as a plot takes them


def write(axis: Any, labels: Sequence[Label], points: Sequence[np.ndarray], levels: Sequence[float] = ()) -> None:
    """Every label. `points` are the curves (k, 2) in data coordinates that a label inside the panel keeps off.

    It may stand on one of the thin grey lines at these `levels`, if there is no better place.
    """
    ends = [_fraction(axis, label.x, label.y) for label in labels]
    outside = [place for place, end in enumerate(ends) if end[0] > NEAR_THE_EDGE]
    _in_the_margin(axis, [labels[place] for place in outside], [ends[place] for place in outside])
    inside = [labels[place] for place in range(len(labels)) if place not in outside]
    if inside:
        heights = [_fraction(axis, labels[0].x, level)[1] * _size(axis)[1] for level in levels]
        _beside(axis, inside, _dense(axis, points), np.array(heights))


def _in_the_margin(axis: Any, labels: list[Label], ends: list[tuple[float, float]]) -> None:
    if not labels:
        return
    width, height = _size(axis)
    order = sorted(range(len(labels)), key=lambda i: (ends[i][1], labels[i].text))
    wanted = [min(max(ends[i][1], 0.0), 1.0) * height for i in order]
    for i, was, now in zip(order, wanted, apart(wanted, GAP, 0.0, height), strict=True):
        label = labels[i]
        x, y = 1 + TEXT / width, now / height
        begin = min(max(ends[i][0], 0.0), 1.0) + (LEADER if label.mark else 0) / width
        turn, stop = 1 + LEADER / width, 1 + ((MARK - 4) if label.mark else TEXT - 2) / width
        if abs(was - now) > MOVED or label.mark is None or (1 - ends[i][0]) * width > SHORT:
            ys = [was / height, was / height, y]
            axis.plot(
                [min(begin, turn), turn, stop], ys, color=label.colour, linewidth=0.6, clip_on=False,
                transform=axis.transAxes, gid=f"leader {label.text}", zorder=2,
            )  # fmt: skip
        if label.mark:
            axis.plot([1 + MARK / width], [y], clip_on=False, transform=axis.transAxes, linestyle="", **label.mark)
        axis.text(
            x, y, label.text, color=dark(label.colour), fontsize=label.size, va="center_baseline",
            transform=axis.transAxes, gid=f"label {label.text}",
        )  # fmt: skip


def _beside(axis: Any, labels: list[Label], lines: np.ndarray, levels: np.ndarray) -> None:
    """Each at the nearest place where neither a line nor another label is; from the right to the left."""
    from matplotlib.patheffects import withStroke

    room = Room(*_size(axis), lines, levels, [])
    for label in sorted(labels, key=lambda label: (-label.x, label.y)):
        text = axis.text(0, 0, label.text, color=dark(label.colour), fontsize=label.size, va="center", zorder=6)
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])
        extent = text.get_window_extent(axis.figure.canvas.get_renderer())
        across, up = _fraction(axis, label.x, label.y)
        end = np.array([across * room.width, up * room.height])
        box = room.place(end, extent.width * 72 / axis.figure.dpi + 2, extent.height * 72 / axis.figure.dpi)
        middle = ((box.left + 1) / room.width, (box.low + box.top) / 2 / room.height)
        text.set(position=middle, transform=axis.transAxes, gid=f"label {label.text}")
        if box.away(end) > FAR:
            xs, ys = zip(end, box.nearest(end), strict=True)
            axis.plot(
                np.array(xs) / room.width, np.array(ys) / room.height, color=label.colour, linewidth=0.6, zorder=2,
                transform=axis.transAxes, clip_on=False, gid=f"leader {label.text}",
            )  # fmt: skip


class Box(NamedTuple):
    """A place for a label, in points from the panel's lower left corner."""

    left: float
    low: float
    right: float
    top: float

    def nearest(self, end: np.ndarray) -> np.ndarray:
        """Its point that is nearest to a line's end."""
        return np.asarray(np.clip(end, (self.left, self.low), (self.right, self.top)))

    def away(self, end: np.ndarray) -> float:
        return float(np.hypot(*(self.nearest(end) - end)))

    def meets(self, other: Box) -> bool:
        return self.left < other.right and other.left < self.right and self.low < other.top and other.low < self.top


class Room(NamedTuple):
    """The panel: its size, the points of its lines, its thin level lines, and the labels that have their place."""

    width: float
    height: float
    lines: np.ndarray
    levels: np.ndarray
    taken: list[Box]

    def place(self, end: np.ndarray, wide: float, tall: float) -> Box:
        """The best place for a label of this size, which is taken then."""
        found = [Box(x, y, x + wide, y + tall) for x, y in _corners(end, wide, tall)]
        best = min(found, key=lambda box: self._price(box, end))
        self.taken.append(best)
        return best

    def _price(self, box: Box, end: np.ndarray) -> float:
        """The way from the line's end, and the lines under the label; another label or the edge all but forbid it."""
        if box.left < 2 or box.low < 2 or box.right > self.width - 2 or box.top > self.height - 2:
            return 1e6
        if any(box.meets(other) for other in self.taken):
            return 1e5
        inside = (self.lines > (box.left - 2, box.low - 1)) & (self.lines < (box.right + 2, box.top + 1))
        under = int(inside.all(axis=1).sum())
        grey = ON_GREY * int(((self.levels > box.low) & (self.levels < box.top)).sum())
        to_the_left = 5.0 if box.left < end[0] else 0.0  # a reader looks to the right first
        return box.away(end) + to_the_left + grey + (ON_A_LINE + under if under else 0) + self._crossed(box, end)

    def _crossed(self, box: Box, end: np.ndarray) -> float:
        """What it costs that the leader runs through lines, other than at the end that it comes from."""
        if box.away(end) <= FAR:
            return 0.0
        way = end + np.linspace(0, 1, 20)[:, None] * (box.nearest(end) - end)
        near = (np.abs(way[:, None] - self.lines).max(axis=2) < 1.5).any(axis=1)
        return CROSSING if near[np.hypot(*(way - end).T) > FAR].any() else 0.0


def _corners(end: np.ndarray, wide: float, tall: float) -> list[tuple[float, float]]:
    """Lower left corners around a line's end: right of it, left of it, above and below it; near ones first."""
    found = []
    for step in range(25):
        for sign in (1, -1) if step else (1,):
            low = end[1] + sign * step * 4.0 - tall / 2
            found += [(end[0] + 7, low), (end[0] - wide - 7, low)]
            if step * 4 > tall / 2 + 4:
                found += [(end[0] - share * wide, low) for share in (0.5, 0.3, 0.7, 0.1, 0.9)]
    return found


def _dense(axis: Any, points: Sequence[np.ndarray]) -> np.ndarray:
    """The curves as points of the panel, two points of print apart."""
    width, height = _size(axis)
    found = [np.empty((0, 2))]
    for curve in points:
        seen = np.array([_fraction(axis, x, y) for x, y in curve]) * (width, height)
        for a, b in pairwise(seen):
            count = int(np.hypot(*(b - a)) // 2) + 2
            found.append(a + np.linspace(0, 1, count)[:, None] * (b - a))
        found.append(seen)
    return np.concatenate(found)


def _fraction(axis: Any, x: float, y: float) -> tuple[float, float]:
    """Data coordinates as parts of the panel's width and height."""
    across, up = (axis.transScale + axis.transLimits).transform((x, y))
    return float(across), float(up)


def _size(axis: Any) -> tuple[float, float]:
    """Of the panel, in points."""
    place = axis.get_position()
    wide, tall = axis.figure.get_size_inches()
    return float(72 * wide * place.width), float(72 * tall * place.height)


def dark(colour: str) -> tuple[float, float, float]:
    """The colour as a text can bear it on white."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    light = 0.30 * red + 0.59 * green + 0.11 * blue
    factor = min(1.0, 0.45 / light) if light else 1.0
    return red * factor, green * factor, blue * factor
