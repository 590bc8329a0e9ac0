"""Figures: the same bytes twice, words that are words, bars that grey print tells apart, nothing over a title."""

import itertools
import re
from functools import cache
from xml.etree import ElementTree

import pytest
from command import run
from matplotlib.backends.backend_agg import FigureCanvasAgg

from sensorsim.cost.compare import sweep
from sensorsim.cost.plot import merged, report_figure, sweep_figure
from sensorsim.cost.report import cost
from sensorsim.drawing import GREYS, HATCHES, look, picture

COMMANDS = {
    "cost": (["cost"], "n = 14 features, l = 7 hidden units"),
    "sweep": (["cost", "--sweep", "n=7:30"], "l = 7 · AMD K7"),
    "sensitivity": (["sensitivity"], "expansion point a"),
    "plan": (["plan", "--columns", "TotalSteps", "--devices", "5000"], "devices"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_plot_is_the_same_bytes_twice_and_its_words_are_words(name, tmp_path, capsys):
    words, said = COMMANDS[name]
    paths = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for path in paths:
        assert run(capsys, *words, "--plot", path)[0] == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()
    texts = ["".join(node.itertext()) for node in ElementTree.parse(paths[0]).iter() if node.tag.endswith("}text")]
    assert any(said in text for text in texts), texts
    assert not re.search(rb"<dc:date>", paths[0].read_bytes())


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_other_forms_are_the_same_bytes_twice(kind):
    small = cost(14, 7, variant="paper")
    first, second = (picture(report_figure(small), kind, 50) for _ in range(2))
    assert first == second


def drawn(figure):
    """The figure with everything in its place, and what can say where that is."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.get_renderer()


@cache
def report():
    return cost(14, 7)


@cache
def rows():
    return list(sweep(report(), [(n, 7) for n in range(7, 40)]))


FIGURES = {
    "report": lambda: report_figure(report()),
    "no memory": lambda: report_figure(cost(4, 2, variant="paper", chip="max32650")),
    "sweep": lambda: sweep_figure(rows(), "n", report()),
    "one": lambda: sweep_figure(rows()[:1], "n", report()),
}


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_lies_over_a_title_or_leaves_the_page(name):
    figure = FIGURES[name]()
    renderer = drawn(figure)
    page = figure.bbox
    for axes in figure.axes:
        title = axes.title.get_window_extent(renderer)
        inside = [axes.patch.get_window_extent(renderer)]
        legend = axes.get_legend()
        inside += [legend.get_window_extent(renderer)] if legend else []
        inside += [text.get_window_extent(renderer) for text in axes.texts]
        assert not any(title.overlaps(box) for box in inside), name
        assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= page.width + 1 and box.y1 <= page.height + 1
                   for box in (title, *inside)), name  # fmt: skip
        assert axes.get_xlim()[0] >= 0 and min(axes.get_ylim()) >= -0.6


def test_names_at_the_ends_do_not_overlap():
    figure = FIGURES["sweep"]()
    renderer = drawn(figure)
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    # an annotation's extent has its line in it: compare the letters alone, which start at one place
    heights = sorted(text.xyann[1] for text in figure.axes[0].texts)
    assert min(b - a for a, b in itertools.pairwise(heights)) * figure.axes[0].bbox.height >= 0.9 * 7 / 72 * figure.dpi
    assert len(boxes) == 21


def test_every_part_of_a_bar_is_told_apart_in_grey():
    places = range(len(GREYS) * len(HATCHES))
    looks = [look(place) for place in places]
    assert len({(each["facecolor"], each["hatch"]) for each in looks}) == len(looks)
    for one, other in itertools.pairwise(looks):  # neighbours differ by lightness, whatever the hatch
        assert abs(float(one["facecolor"]) - float(other["facecolor"])) >= 0.3
    axes = report_figure(report()).axes[0]
    filled = [(bars.patches[0].get_facecolor(), bars.patches[0].get_hatch()) for bars in axes.containers]
    assert len(set(filled)) == len(filled) == len(axes.get_legend().get_texts())


def test_bars_have_their_numbers_headroom_and_a_legend_in_their_order():
    axes = report_figure(report()).axes[0]
    said = {text.get_text() for text in axes.texts}
    assert {"364", "1403", "1361"} <= said
    assert axes.get_xlim()[1] > 1.1 * max(cost.counted.total for cost in report().mechanisms.values())
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    dpsgd = list(report().mechanisms["dpsgd"].printed.steps)
    assert [step for step in legend if step in dpsgd] == dpsgd
    assert merged([["a", "c"], ["b", "c"], ["c", "d"]]) == ["a", "b", "c", "d"]
