"""A sheet of panels with room for the names beside them, and the key below. Sizes are inches, so nothing shifts."""

from __future__ import annotations

import textwrap
from typing import Any

from sensorsim.training.curves import CENTRAL, KEY, LOCAL, LOST, NOT_COVERED, mark

LEFT, WIDE, RIGHT = 1.15, 4.4, 1.95  # of one panel: scale, panel, names
TALL, BETWEEN = 3.9, 0.6
TOP, BELOW = 0.85, 1.05
LETTER, NOTE_LETTER = 0.12, 0.07  # of a heading, and of the note
UNDER, LINE = 0.75, 0.17  # what the axis and its title take, and a line of the key or the note
INK = "0.25"


def sheet(across: int, down: int = 1) -> tuple[Any, list[Any]]:
    """Panels, row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width = across * (LEFT + WIDE + RIGHT)
    height = TOP + down * TALL + (down - 1) * BETWEEN + BELOW
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)  # it can say how wide a text is
    axes = []
    for row in range(down):
        for column in range(across):
            left = column * (LEFT + WIDE + RIGHT) + LEFT
            low = BELOW + (down - 1 - row) * (TALL + BETWEEN)
            axis = figure.add_axes((left / width, low / height, WIDE / width, TALL / height))
            _plain(axis)
            axes.append(axis)
    return figure, axes


def entitle(axis: Any, title: str) -> None:
    """The title of one panel."""
    axis.set_title(title, loc="left", fontsize=9, color=INK, pad=8)


def finish(figure: Any, heading: str, note: str = "") -> Any:
    """The heading, and under the panels the key of the marks that they use, with a note of data, runs and bars."""
    from matplotlib.lines import Line2D

    used = {line.get_gid() for axis in figure.axes for line in axis.lines}
    handles = [
        Line2D([], [], linestyle="", label=KEY[trust], **mark(trust, "o", INK))
        for trust in (LOCAL, CENTRAL, NOT_COVERED)
        if f"mark {trust}" in used
    ]
    if "lost" in used:
        handles.append(Line2D([], [], linestyle="", marker="v", color=INK, markersize=5, label=LOST))
    wide = figure.get_figwidth() - LEFT
    columns = len(handles) if figure.get_figwidth() > LEFT + WIDE + RIGHT else 1
    said = textwrap.wrap(note, int(wide / NOTE_LETTER))
    rows = -(-len(handles) // columns) if handles else 0
    _make_room(figure, UNDER + LINE * (rows + len(said)))
    left = LEFT / figure.get_figwidth()
    lines = textwrap.wrap(heading, int((figure.get_figwidth() - LEFT) / LETTER))
    top = 1 - 0.28 / figure.get_figheight()
    figure.text(left, top, "\n".join(lines), fontsize=12, weight="bold", va="center", gid="heading")
    low = LINE * (len(said) + 0.5) / figure.get_figheight()
    figure.text(left, low, "\n".join(said), fontsize=8, va="top", color=INK, gid="note")
    if handles:
        figure.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(left, low), borderaxespad=0.3, borderpad=0,
            ncols=columns, frameon=False, fontsize=8, handletextpad=0.3, columnspacing=1.6, labelcolor=INK,
        )  # fmt: skip
    return figure


def _make_room(figure: Any, below: float) -> None:
    """So many inches under the panels at least; the panels stay as large as they are."""
    tall = figure.get_figheight()
    more = max(0.0, below - BELOW)
    figure.set_figheight(tall + more)
    for axis in figure.axes:
        box = axis.get_position()
        axis.set_position(
            (box.x0, (box.y0 * tall + more) / (tall + more), box.width, box.height * tall / (tall + more))
        )


def _plain(axis: Any) -> None:
    """No box: two thin lines, and a faint grid to read heights by."""
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set(color="0.6", linewidth=0.8)
    axis.tick_params(color="0.6", labelsize=8, labelcolor=INK)
    axis.grid(color="0.93", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.xaxis.label.set(size=9, color=INK)
    axis.yaxis.label.set(size=9, color=INK)
