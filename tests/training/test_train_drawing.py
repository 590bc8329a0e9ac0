"""Data figures from rows written by hand: what an axis shows, what marks say, what is told. Nothing is trained."""

from xml.etree import ElementTree

import pytest
from figure_rows import EPSILONS, FIGURES, artists, row, trivial
from matplotlib.colors import to_hex

from sensorsim._util.drawing import picture, save_both
from sensorsim.datasets.dataset import CROWDS
from sensorsim.training import curves, run_figures
from sensorsim.training.curves import ACCURACY, R2, log_ticks


def test_the_axis_shows_the_top():
    (axis,) = FIGURES["nominal"]().axes
    assert axis.get_yscale() == "log"
    to_height = axis.transData.transform
    steps = [to_height((1, 1 - accuracy))[1] for accuracy in (0.9, 0.99, 0.999)]
    assert steps[0] < steps[1] < steps[2]  # better is higher
    assert steps[2] - steps[1] == pytest.approx(steps[1] - steps[0])
    labels = [(round(tick.get_position()[1], 9), tick.get_text()) for tick in axis.get_yticklabels()]
    assert (0.001, "99.9 %") in labels and (0.1, "90 %") in labels
    assert {ACCURACY.written(error) for error in (0.3, 0.0005, 2.0)} == {"70 %", "99.95 %", "−100 %"}


@pytest.mark.parametrize("low, high", [(0.0004, 0.2), (0.03, 0.1), (0.1, 0.13), (1e-6, 1.0)])
def test_every_axis_has_ticks_that_can_be_read(low, high):
    ticks = log_ticks(low, high)
    assert all(low <= tick <= high for tick in ticks) and 2 <= len(ticks) <= 12


def test_points_stand_where_their_numbers_are():
    accuracies = [97.0, 98.5, 99.2, 99.6]
    rows = [row("sampled", epsilon, value) for epsilon, value in zip(EPSILONS, accuracies, strict=True)]
    (axis,) = run_figures.accuracy_against_epsilon(rows[::-1], trivial()).axes
    line = artists(axis, "lines", "curve ")["curve sampled"]
    assert list(line.get_xdata()) == list(EPSILONS)
    assert line.get_ydata() == pytest.approx([0.03, 0.015, 0.008, 0.004])
    assert artists(axis, "lines", "trivial ")["trivial half"].get_ydata()[0] == pytest.approx(0.136)


CASES = [
    ("sampled", {}, "local"),
    ("dpsgd-weights", {}, "central"),
    ("dpsgd", {}, "not covered"),
    ("fm", {}, "not covered"),
    ("spof", {"with_secret_noise": "weights too"}, "not covered"),  # no bound was spent
    ("sampled", {"with_secret_noise": "nothing"}, "not covered"),
    ("none", {}, "none"),
]


@pytest.mark.parametrize("mechanism, more, expected", CASES)
def test_who_is_trusted_and_what_is_covered(mechanism, more, expected):
    assert curves.trust_of(row(mechanism, 1.6, 90.0, **more)) == expected


def test_marks_tell_local_central_and_not_covered_apart():
    looks = {}
    figure = FIGURES["nominal"]()
    for line in figure.axes[0].lines:
        if (line.get_gid() or "").startswith("mark "):
            looks.setdefault(line.get_gid(), line)
    local, central, uncovered = (looks[f"mark {word}"] for word in ("local", "central", "not covered"))
    assert to_hex(local.get_markerfacecolor()) == to_hex(local.get_markeredgecolor()) != "#ffffff"
    assert to_hex(central.get_markerfacecolor()) == "#ffffff" != to_hex(central.get_markeredgecolor())
    assert uncovered.get_marker() == "x"
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [word.split(":")[0] for word in words] == ["local", "central", "not covered"]
    assert "dpsgd-weights, tuned" in {text.get_text() for text in figure.axes[0].texts}


def test_cells_without_a_mean_are_said_and_not_drawn():
    rows = [row("sampled", epsilon, 98.0) for epsilon in EPSILONS]
    rows[1] = row("sampled", EPSILONS[1], None, diverged=3)
    failed = {"error": "it cannot run.", "spent_epsilon": None, "settings": None, "with_secret_noise": None}
    rows += [row("release", epsilon, None, **failed) for epsilon in EPSILONS]
    rows += [row("dp-zo", epsilon, 90.0) for epsilon in EPSILONS[1:]] + [row("dp-zo", EPSILONS[0], None, **failed)]
    for against, measure in (("nominal", ACCURACY), ("spent", ACCURACY), ("nominal", R2)):
        figure = run_figures.accuracy_against_epsilon(rows, trivial(), against, measure)
        (axis,) = figure.axes
        assert EPSILONS[1] not in artists(axis, "lines", "curve ")["curve sampled"].get_xdata()
        lost = [list(line.get_xdata()) for line in axis.lines if line.get_gid() == "lost"]
        assert lost == ([[EPSILONS[1]], [EPSILONS[0]], list(EPSILONS)] if against == "nominal" else [[EPSILONS[1]]])
        assert len(artists(axis, "lines", "curve dp-zo")) == 1
        assert "no bound" not in axis.get_xlabel()
        told = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
        assert (run_figures.AS_STATED in told) is (against != "nominal"), told
        assert "no result: release" in artists(axis, "texts", "corner")["corner"].get_text().replace("\u00a0", " ")
        assert curves.LOST in [text.get_text() for text in figure.legends[0].get_texts()]
        assert picture(figure, "png", 40)


def test_what_is_off_the_scale_is_named_with_its_number():
    rows = [row("sampled", epsilon, 99.0) for epsilon in EPSILONS]
    exact = {"accuracy": 100.0, "r2": 1.0}
    (axis,) = run_figures.accuracy_against_epsilon(rows, trivial(**{"PCA-14": exact})).axes
    told = " ".join(text.get_text() for text in axis.texts if text.get_gid() == "corner").replace("\u00a0", " ")
    assert "zeros 20 %" in told and "above: PCA-14 ≥ 99.9999 %" in told
    assert "label zeros" not in artists(axis, "texts", "label ")


def test_mechanisms_without_a_bound_are_named_where_it_is_the_axis():
    (axis,) = FIGURES["spent"]().axes
    assert "no bound holds for spof" in axis.get_xlabel()
    assert "curve spof" not in artists(axis, "lines", "curve ")


def test_the_headline_has_both_measures_of_both_sets():
    axes = FIGURES["records"]().axes
    assert [axis.get_title("left") for axis in axes[:2]] == list(CROWDS.values())
    assert [axis.get_yscale() for axis in axes] == ["log", "log", "linear", "linear"]
    assert next(tick.get_text() for tick in axes[2].get_xticklabels()) == "1\u2009000\n76 people"
    for axis in axes:
        assert list(artists(axis, "lines", "curve ")["curve sampled"].get_xdata()) == [1000, 10_000, 100_000]
        assert {"trivial PCA-7", "trivial column mean"} == artists(axis, "lines", "trivial ").keys()


@pytest.mark.parametrize("name", ["nominal", "records"])
def test_the_same_rows_are_the_same_bytes_and_svg_is_xml(name, tmp_path):
    first, second = (save_both(FIGURES[name](), tmp_path / f"{turn}.{name}") for turn in range(2))
    assert [path.name for path in first] == [f"0.{name}.svg", f"0.{name}.png"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert ElementTree.parse(first[0]).getroot().tag.endswith("svg")
    assert first[1].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
