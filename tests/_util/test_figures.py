"""Figures: the same bytes twice, words that are words, bars that grey print tells apart, nothing over a title."""

import itertools
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import click
import figure_rows
import pytest
from command import run
from figure_checks import faults, words_of

import sensorsim as ss
from sensorsim._util.drawing import GREYS, HATCHES, look
from sensorsim._util.results import whiskers
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


# By result: how to make one, and what its figure says of data, runs or bars.
def test_a_figure_without_noise_or_cores_says_so():
    from sensorsim.planning.deployment import Asked
    from sensorsim.planning.plan_figure import _title
    from sensorsim.verification.verification import Verification

    assert "of 1 feature · budgets: of a person in 1 day\n" in _title(Asked(features=1, budget_days=1))
    told = words_of(Verification("package", "cc", "-O2", None, 0, ()).plot())
    assert "no core was emulated" in told


@pytest.mark.parametrize("name", figure_rows.FIGURES)
def test_a_data_figure_has_no_fault_and_says_data_and_runs(name):
    figure = figure_rows.FIGURES[name]()
    assert faults(figure) == []
    said = (
        ["computed"] if name.startswith("bmax") else ["Data: rows written by hand", "mean of 5 runs", "95 % interval"]
    )
    assert all(text.lower() in words_of(figure).lower() for text in said), words_of(figure)


@cache
def report():
    return cost(14, 7)


@cache
def rows():
    return list(sweep(report(), [(n, 7) for n in range(7, 40)]))


FIGURES = {
    "sensitivities": sensitivity_figure,
    "stairs": lambda: ss.noise_table(1.6, kind="stairs", release=1).plot(),
    "peers": lambda: records_figure(peers()[:3], runs=5),
    "report": lambda: report_figure(report()),
    "no memory": lambda: report_figure(cost(4, 2, variant="paper", chip="max32650")),
    "sweep": lambda: sweep_figure(rows(), "n", report()),
    "one": lambda: sweep_figure(rows()[:1], "n", report()),
}


@pytest.mark.parametrize("name", [slow_if(name, ("peers",)) for name in FIGURES])
def test_a_figure_has_no_fault(name):
    found = faults(FIGURES[name]())  # a chip without figures for its memory has an empty panel below its label
    assert [fault for fault in found if name != "no memory" or "energy of a record" not in fault] == []


def test_points_that_noise_put_outside_stay_on_the_axis():
    figure = whiskers("title", ["a", "b"], [(1.4, 0.2, 1.0), (None, 0.0, 1.0)], "mean")
    assert figure.axes[0].get_xlim() == (0, 1) and "hollow" in words_of(figure)


def test_no_figure_is_made_by_pyplot():
    for path in Path(ss.__file__).parent.rglob("*.py"):
        assert "pyplot" not in path.read_text(encoding="utf-8"), path


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
