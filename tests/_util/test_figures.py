"""Figures: the same bytes twice, words that are words, bars that grey print tells apart, nothing over a title."""

import itertools
import tempfile
from decimal import Decimal
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import click
import figure_rows
import numpy as np
import pytest
from command import run
from figure_checks import faults, words_of
from matplotlib.backends.backend_agg import FigureCanvasAgg

import sensorsim as ss
from sensorsim._util.drawing import FORMATS, GREYS, HATCHES, look, picture
from sensorsim._util.results import bars, whiskers
from sensorsim.commands.evaluate import Evaluation
from sensorsim.commands.noise_release import Released
from sensorsim.commands.program import group
from sensorsim.costing.cost_report import cost, sweep
from sensorsim.costing.plot import merge_orders, report_figure, sweep_figure
from sensorsim.noise.baseline import peers
from sensorsim.noise.noise_figures import records_figure
from sensorsim.noise.table_file import write_table
from sensorsim.paper.printed_sensitivities import sensitivity_figure

# By command that writes a figure: what to ask, where `FILE` is the figure and `TABLE` a noise table, and what it says.
COMMANDS = {
    "cost": (["--plot", "FILE"], "n = 14 features, l = 7 hidden units"),
    "cost --sweep": (["--sweep", "n=7:30", "--plot", "FILE"], "l = 7 · AMD K7"),
    "sensitivity": (["--plot", "FILE"], "expansion point a"),
    "plan": (["--columns", "TotalSteps", "--devices", "5000", "--plot", "FILE"], "predicted in closed form"),
    "noise show": (["TABLE", "--plot", "FILE"], "proved now"),
    "noise peers": (["--plot", "FILE"], "2,000 runs"),
    "fleet": (
        ["--devices", "20", "--days", "7", "--noise", "TABLE", "--jobs", "1", "--plot", "FILE", "--out", "KEPT"],
        "one run, seed 0",
    ),
    "figures": (["--only", "bmax_density,sensitivity", "--out", "FOLDER"], "the largest of 100 draws"),
}  # fmt: skip
SLOW = ("noise peers", "fleet", "figures")


def slow_if(name, slow):
    return pytest.param(name, marks=[pytest.mark.slow] if name in slow else [])


def writers(command=group, words=()):
    """The commands that write a figure, by their words."""
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                yield from writers(command.get_command(context, name), (*words, name))
    elif words == ("figures",) or any(option.name == "plot" for option in command.params):
        yield " ".join(words)


def test_every_command_that_draws_is_looked_at():
    assert set(writers()) == {name.split(" --")[0] for name in COMMANDS}


@pytest.mark.parametrize("name", [slow_if(n, SLOW) for n in COMMANDS])
def test_a_command_writes_the_same_bytes_twice_and_its_words_are_words(name, tmp_path, capsys):
    words, said = COMMANDS[name]
    table = tmp_path / "table.txt"
    write_table(table, TABLE)
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        places = {
            "FILE": folder / "figure.svg",
            "FOLDER": folder,
            "TABLE": table,
            "KEPT": folder.with_suffix(".sqlite"),
        }
        assert run(capsys, *name.split(" --")[0].split(), *(places.get(word, word) for word in words))[0] == 0
    found = [{path.name: path.read_bytes() for path in folder.glob("*.*g")} for folder in folders]
    assert found[0] == found[1] and found[0]
    drawn = [text for name, text in found[0].items() if name.endswith(".svg")]
    nodes = [node for text in drawn for node in ElementTree.fromstring(text).iter() if node.tag.endswith("}text")]
    texts = ["".join(node.itertext()) for node in nodes]
    assert any(said in text for text in texts), texts
    assert not any(b"<dc:date>" in text for text in drawn)


TABLE = ss.noise_table(epsilon=1.6, release=1)


def released():
    """As `release` makes it; its kernels are compiled elsewhere."""
    draws = np.random.default_rng(0)
    picked, symbols = draws.integers(0, 14, (200, 1), np.uint32), draws.integers(0, 5, (200, 1))
    return Released(TABLE, picked, symbols, Decimal("1.6"), private=False)


@cache
def packet():
    sensor = ss.Sensor(TABLE)
    sensor.open()
    return sensor.release([0.5] * 14)[1]


def folder():
    return Path(tempfile.mkdtemp())


def evaluation(sigmas=(0.0, 5.0)):
    score = {"accuracy": 99.97, "accuracy_train": None, "accuracy_held_out": None, "r2": 0.9}
    worse = score | {"accuracy": -3.0}
    found = {"mechanism": "sketch", "form": "linear", "rows": 457, "data": "synthetic (seed 0)"}
    parts = [{"sigma": sigma, "runs": 20, **score, "trivial": {"zeros": worse}} for sigma in sigmas]
    return Evaluation(found | {"scores": parts})


# By result: how to make one, and what its figure says of data, runs or bars.
RESULTS = {
    "table": (lambda: TABLE, ["epsilon 1.59", "proved now", "rows table, 5 knots"]),
    "stairs": (lambda: ss.noise_table(1.6, kind="stairs", release=1), ["512 entries", "ends, always clamped"]),
    "naive": (lambda: ss.noise_table(1, kind="naive", frac_bits=6, entries=2**8), ["NOT PRIVATE", "gives x away"]),
    "certify": (lambda: ss.certify(TABLE), ["proved now"]),
    "release": (released, ["200 records released", "95 % interval", "NOT PRIVATE"]),
    "receive": (lambda: ss.receive(packet(), TABLE), ["1 packet accepted", "95 % interval", "feature 13, "]),
    "kernel": (lambda: ss.kernel("spof", at="n=14"), ["n = 14", "runs in one call"]),
    "audit": (lambda: ss.audit(TABLE, draws=10_000), ["9,984 draws, seed", "confidence", "claimed 1.59"]),
    "plan": (ss.plan, ["95 % interval", "lines: predicted", "its own table"]),
    "claims": (lambda: ss.claims(only=("cost-spof",)), ["1 claim: 0 hold, 1 holds as arithmetic", "Recomputed on"]),
    "evaluate": (evaluation, ["457 rows of synthetic", "20 runs", "not private"]),
    "cost": (lambda: ss.cost(), ["n = 14"]),
    "export": (lambda: ss.export(folder() / "package"), ["bytes of the file"]),
    "fleet": (lambda: ss.fleet(20, 7, TABLE, jobs=1), ["people: synthetic, one run, seed", "95 % intervals"]),
    "train": (lambda: ss.train(mechanism="sampled"), ["weights of encoder 0"]),
    "verify": (
        lambda: ss.verify(ss.export(folder() / "package").folder, target="cortex-m0plus", random_core=100),
        ["mean over the inputs"],
    ),
}
SLOW_RESULTS = ("receive", "audit", "certify", "cost", "export", "fleet", "train", "verify")


@pytest.mark.parametrize("name", [slow_if(name, SLOW_RESULTS) for name in RESULTS])
def test_a_result_draws_itself_without_fault(name):
    make, said = RESULTS[name]
    found = make()
    figure = found.plot()
    assert faults(figure) == []
    assert [text for text in said if text not in words_of(figure)] == [], words_of(figure)


def test_a_figure_without_noise_or_cores_says_so():
    from sensorsim.planning.deployment import Asked
    from sensorsim.planning.plan_figure import _title
    from sensorsim.verification.verification import Verification

    assert "sigma > 0" not in words_of(evaluation((0.0,)).plot())
    assert "of 1 feature · budgets: of a person in 1 day\n" in _title(Asked(features=1, budget_days=1))
    told = words_of(Verification("package", "cc", "-O2", None, 0, ()).plot())
    assert "no core was emulated" in told


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_the_same_bytes_twice_in_every_form(name, kind):
    found = RESULTS[name][0]()
    assert picture(found.plot(), kind, 50) == picture(found.plot(), kind, 50)


WITHOUT = {"noise_table", "read_table", "write_table", "report"}  # what they give is above, or is no result
WITHOUT |= {
    "cpus",
    "data",
    "decode",
    "figures",
    "noise_peers",
    "sensitivity",
    "sweep",
}  # drawn elsewhere, or not


def test_every_result_of_the_public_functions_is_drawn_here():
    makers = {"cost", "kernel", "release", "audit", "receive", "plan", "fleet", "train", "evaluate", "export", "verify"}
    assert makers | {"claims", "certify", "table"} <= set(RESULTS)
    shown = {name for name in ss.__all__ if callable(getattr(ss, name)) and name.islower()}
    assert shown - set(RESULTS) <= WITHOUT, "draw it above"


@pytest.mark.parametrize("name", figure_rows.FIGURES)
def test_a_data_figure_has_no_fault_and_says_data_and_runs(name):
    figure = figure_rows.FIGURES[name]()
    assert faults(figure) == []
    said = (
        ["computed"] if name.startswith("bmax") else ["Data: rows written by hand", "mean of 5 runs", "95 % interval"]
    )
    assert all(text.lower() in words_of(figure).lower() for text in said), words_of(figure)


def test_the_sensitivities_have_no_fault():
    assert faults(sensitivity_figure()) == []


@pytest.mark.slow
def test_the_peers_have_no_fault():
    assert faults(records_figure(peers()[:3], runs=5)) == []


def test_points_that_noise_put_outside_stay_on_the_axis():
    figure = whiskers("title", ["a", "b"], [(1.4, 0.2, 1.0), (None, 0.0, 1.0)], "mean")
    assert figure.axes[0].get_xlim() == (0, 1) and "hollow" in words_of(figure)


def test_what_is_wrong_is_seen():
    """The checks find what they are for."""
    figure = bars("a title", {"one": 90.0}, "accuracy, %")
    axes = figure.axes[0]
    axes.text(0.5, 0.5, "first", transform=axes.transAxes)
    axes.text(0.51, 0.5, "second", transform=axes.transAxes)
    axes.text(0.99, 0.2, "a text that leaves the page", transform=axes.transAxes).set_in_layout(False)
    axes.set_xlim(0, 101)
    axes.plot([0, 1], [0, 0], "-", color="red", label="red")
    axes.plot([0, 1], [0, 0], "-", color="#a33", label="dark red")
    axes.legend()
    found = " ".join(faults(figure))
    for part in ("lies on 'second'", "is cut off", "ends at 101", "look alike", "lies on a panel"):
        assert part in found, found
    axes.set(xlim=(-1, 100), xlabel="records")
    assert "'records' begins at -1" in faults(figure)


def test_no_figure_is_made_by_pyplot():
    for path in Path(ss.__file__).parent.rglob("*.py"):
        assert "pyplot" not in path.read_text(encoding="utf-8"), path


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
    assert merge_orders([["a", "c"], ["b", "c"], ["c", "d"]]) == ["a", "b", "c", "d"]
