"""Labels of figures: none covers another, each is at its line or has a leader to it, order is kept."""

import itertools

import numpy as np
import pytest
from figure_rows import FIGURES, artists
from matplotlib.backends.backend_agg import FigureCanvasAgg

from sensorsim._util.drawing import apart


def boxes(figure):
    """Everything written beside the lines, the scales under them, and the heading."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts = [text for axis in figure.axes for text in axis.texts if text.get_gid()]
    texts += [text for text in figure.texts if text.get_gid() == "heading"]
    for axis in figure.axes:
        low, high = axis.get_xlim()
        texts += [tick for tick in axis.get_xticklabels() if low <= tick.get_position()[0] <= high]
    return {f"{number} {text.get_gid()}": text.get_window_extent(renderer) for number, text in enumerate(texts)}


@pytest.mark.parametrize("name", FIGURES)
def test_no_label_covers_another_and_none_leaves_the_sheet(name):
    figure = FIGURES[name]()
    found = boxes(figure)
    assert found
    for (one, a), (other, b) in itertools.combinations(found.items(), 2):
        shared = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(shared) <= 0.5, f"{one} covers {other}"
    for label, box in found.items():
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, label


@pytest.mark.parametrize("name", ["nominal", "spent", "person", "uneven", "records", "c", "cost"])
def test_a_label_sits_at_its_line_or_a_leader_leads_to_it(name):
    figure = FIGURES[name]()
    renderer = FigureCanvasAgg(figure).get_renderer()
    point = figure.dpi / 72
    for axis in figure.axes:
        leaders = artists(axis, "lines", "leader ")
        lines = {gid.split(" ", 1)[1]: line for gid, line in artists(axis, "lines", "curve ").items()}
        assert lines
        for word, line in lines.items():
            end = axis.transData.transform((line.get_xdata()[-1], line.get_ydata()[-1]))
            box = axis_label(axis, word).get_window_extent(renderer)
            near = np.clip(end, (box.x0, box.y0), (box.x1, box.y1))
            if f"leader {word}" not in leaders:
                assert abs(near[1] - end[1]) <= 9 * point and abs(near[0] - end[0]) <= 45 * point, word
                continue
            ends = axis.transAxes.transform(np.column_stack(leaders[f"leader {word}"].get_data()))
            assert np.hypot(*(ends[0] - end)) <= 12 * point, word
            assert np.hypot(*(np.clip(ends[-1], (box.x0, box.y0), (box.x1, box.y1)) - ends[-1])) <= 16 * point, word


def axis_label(axis, word):
    return artists(axis, "texts", "label ")[f"label {word}"]


def test_labels_of_the_margin_keep_the_order_of_their_lines():
    figure = FIGURES["nominal"]()
    (axis,) = figure.axes
    lines = artists(axis, "lines", "curve ") | artists(axis, "lines", "trivial ")
    ends = {gid.split(" ", 1)[1]: line.get_ydata()[-1] for gid, line in lines.items()}
    shown = {word: error for word, error in ends.items() if axis.get_ylim()[0] >= error >= axis.get_ylim()[1]}
    assert len(shown) >= 12
    heights = [axis_label(axis, word).get_position()[1] for word in sorted(shown, key=lambda word: -shown[word])]
    assert heights == sorted(heights)


def test_heights_move_as_little_as_possible():
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    for count in (1, 2, 5, 8):
        wanted = np.sort(rng.random(count) ** 2 * 100)
        placed = np.array(apart(list(wanted), 9.0, 0.0, 100.0))
        order = [{"type": "ineq", "fun": lambda y, i=i: y[i + 1] - y[i] - 9} for i in range(count - 1)]
        best = minimize(
            lambda y, wanted=wanted: np.square(y - wanted).sum(),
            np.arange(count) * 9.5,
            bounds=[(0, 100)] * count,
            constraints=order,
        )
        assert (np.diff(placed) >= 9 - 1e-9).all() and placed.min() >= 0 and placed.max() <= 100
        assert placed == pytest.approx(best.x, abs=1e-3)
    assert apart([50.0, 50.0, 50.0], 60.0, 0.0, 100.0) == pytest.approx([0, 50, 100])  # no room: a smaller gap
    assert apart([], 9.0, 0.0, 1.0) == []
