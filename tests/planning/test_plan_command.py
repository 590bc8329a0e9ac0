"""`sensorsim plan`: one screen, JSON whose every line can be had again, files that are whole, bad input."""

import csv
import importlib
import io
import json
import re
import subprocess
import sys

import pytest
from command import run

from sensorsim.device.firmware import Firmware
from sensorsim.noise.noise_table import ready_table
from sensorsim.noise.table_file import read_table
from sensorsim.planning import Asked, plan
from sensorsim.planning.plan_text import HEIGHT, WIDTH, plan_text

STEPS = ("--columns", "TotalSteps")
PLANS = {
    "nothing given": Asked(),
    "two columns": Asked(columns=("TotalSteps", "Calories"), battery_mah=200, days=100, loss=0.1, expect=0.2),
    "solved": Asked(devices=None, accuracy=0.02),
    "days solved": Asked(every=None, days=36_525, accuracy=0.0123456789),
    "every feature": Asked(budget_epsilon=1000, records_per_day=2),
    "covariance": Asked(goal="covariance", devices=10**6, battery_mah=100, days=100, budget_days=28),
    "covariance of nothing": Asked(goal="covariance", features=3, devices=1, every=1),
    "no packet": Asked(devices=1, every=1),
    "a table": Asked(noise=ready_table("1.6", 1), budget_epsilon="1.6", budget_days=1),
    "stairs": Asked(noise=ready_table("1", 1, "stairs")),
    "much of everything": Asked(
        features=4096,
        devices=None,
        accuracy=0.49,
        records_per_day=3,
        budget_days=20_000,
        days=36_525,
        every=36_525,
        budget_epsilon="0.0123456789",
        battery_mah=12345.6,
        delta=1.2345e-7,
        chip="cc2340r2",
        radio="lora-sf7",
    ),
}
QUICK = ("two columns", "covariance", "covariance of nothing", "no packet")  # to say again
MODULE = re.compile(r"\bsensorsim(?:\.[a-z_]+)+")


@pytest.fixture(scope="module")
def plans():
    return {name: plan(asked) for name, asked in PLANS.items()}


def again(how, table):
    """What the expression says, with every module that it names."""
    for name in MODULE.findall(how):
        parts = name.split(".")
        for end in range(2, len(parts) + 1):
            try:
                importlib.import_module(".".join(parts[:end]))
            except ModuleNotFoundError:
                break  # a function, not a module
    return eval(how, {"sensorsim": importlib.import_module("sensorsim"), "table": table})


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PLANS]
)
def test_every_line_can_be_had_again(name, plans):
    found = plans[name]
    lines = json.loads(json.dumps(found.to_dict(), allow_nan=False))["lines"]
    assert len(lines) > 20 and all(set(line) == {"name", "value", "unit", "how"} for line in lines)
    assert len({line["name"] for line in lines}) == len(lines)
    for line in lines:
        expected = None if line["value"] is None else pytest.approx(line["value"], rel=1e-12)
        assert again(line["how"], found.table) == expected, line


@pytest.mark.parametrize("name", PLANS)
def test_one_screen(name, plans):
    lines = plan_text(plans[name]).split("\n")
    assert len(lines) <= HEIGHT == 24
    assert max(map(len, lines)) <= WIDTH == 80, lines
    assert plan_text(plans[name]).count("local") >= 1


@pytest.mark.slow
def test_one_screen_with_other_ways_to_spend_a_budget(capsys):
    code, out, _ = run(capsys, "plan", *STEPS, "--battery-mah", 200, "--compare", "--days", 100)
    assert code == 0
    lines = out.rstrip("\n").split("\n")
    assert len(lines) <= HEIGHT and max(map(len, lines)) <= WIDTH
    assert all(any(name in line for line in lines) for name in ("time sampling ", "every record ", "memoised "))
    assert "on uniform people who change once, sampled once a period" in lines[-1]


def test_the_question_of_the_readme(capsys):
    """5,000 wearables, the weekly mean of steps within 2 %, epsilon 1 a month: no, and what it would take."""
    asked = ("plan", *STEPS, "--devices", 5000, "--budget-epsilon", 1, "--budget-days", 30, "--every", 7)
    code, out, said = run(capsys, *asked, "--accuracy", 0.02)
    assert (code, out) == (2, "") and said.count("\n") == 1
    assert re.fullmatch(r"Error: 5,000 devices reach ±6\.\d+ % of the range a week, not ±2 %: it takes [\d,]+ devices, "
                        r"or epsilon [\d.]+ in 30 days, or a mean over \d+ days\.\n", said)  # fmt: skip
    code, out, _ = run(capsys, *asked)
    assert code == 0 and "TotalSteps ±2," in out


def test_every_form_of_output(capsys):
    _, out, _ = run(capsys, "plan", *STEPS, "--format", "json")
    found = json.loads(out)
    assert found["solved"] == plan(Asked(columns=("TotalSteps",))).half
    assert found["schema_version"] == 1 and found["solved_for"] == "accuracy" and found["privacy"].startswith("local")
    _, out, _ = run(capsys, "plan", *STEPS, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["name"] for row in rows] == [line["name"] for line in found["lines"]]
    frame = plan(Asked(columns=("TotalSteps",))).to_frame()
    assert list(frame.columns) == ["name", "value", "unit", "how"] and len(frame) == len(rows)
    assert len(repr(plan())) < 2000


def test_a_table_that_is_written_is_the_plans(capsys, tmp_path):
    path, figure = tmp_path / "noise.txt", tmp_path / "plan.svg"
    code, _, said = run(capsys, "plan", "--devices", "?", "--accuracy", 0.05, "--write-table", path, "--plot", figure)
    assert (code, said) == (0, "")
    assert Firmware(read_table(path), budget_epsilon=1, budget_days=30).releases == 1
    assert b"</svg>" in figure.read_bytes()
    asked = ("plan", "--noise", path, "--devices", "?", "--accuracy", 0.05, "--format", "json")
    with_table = json.loads(run(capsys, *asked)[1])
    assert with_table["solved"] == plan(Asked(devices=None, accuracy=0.05)).asked.devices


BAD = {
    "a budget that allows no release": (["--budget-epsilon", "0.5", "--noise", "{ready}"], "allows no release"),
    "a budget too small for any table": (["--budget-epsilon", "0.00001"], "too small"),
    "an accuracy that is not reached": (["--accuracy", "0.02"], "it takes"),
    "two open": (["--devices", "?"], "give all but one"),
    "a table for other features": (["--noise", "{ready}", "--features", "3"], "made for them"),
    "a word for a number": (["--devices", "many"], "or '?' or solve to have it solved for"),
    "no devices": (["--devices", "0"], "from 1 to"),
    "an accuracy of everything": (["--accuracy", "0.9"], "--accuracy is"),
    "an accuracy that is no number": (["--accuracy", "nan"], "--accuracy is"),
    "a longer estimate than the run": (["--every", "400"], "smaller --every"),
    "too many records": (["--records-per-day", "65535"], "fewer records a day"),
    "all packets lost": (["--loss", "1"], "below 1"),
    "a column without a range": (["--columns", "Moods"], "no public range"),
    "ranges of nothing": (["--ranges", "x.csv"], "--columns"),
    "columns without a name": (["--columns", ","], "names none"),
    "a figure of a model": (["--for", "model", "--plot", "{folder}/x.png"], "no curve"),
    "a figure that is none": (["--plot", "{folder}/x.txt"], "ends in .txt; give a name that ends in"),
    "a place that is none": (["--write-table", "{folder}/no/x.txt"], "no folder"),
    "a model of an accuracy": (["--for", "model", "--accuracy", "0.1"], "not solved for"),
    "a covariance of one": (["--for", "covariance", "--features", "1"], "at least 2"),
    "an unknown chip": (["--chip", "zx80"], "zx80"),
    "no delta": (["--delta", "0"], "delta"),
    "one record to compare": (["--compare", "--budget-days", "1"], "no choice"),
    "a missing table": (["--noise", "{folder}/none.txt"], "none.txt"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence_and_nothing_is_written(name, capsys, tmp_path):
    from sensorsim.noise.table_file import write_table

    ready = tmp_path / "ready.txt"
    write_table(ready, ready_table("1", 1))
    words, expected = BAD[name]
    words = [word.format(ready=ready, folder=tmp_path) for word in words]
    own = [] if {"--write-table", "--plot"} & set(words) else ["--write-table", tmp_path / "out.txt"]
    code, out, said = run(capsys, "plan", *words, *own)
    assert (code, out) == (2, "") and said.startswith("Error: ") and said.count("\n") == 1, said
    assert expected in said and said.rstrip().endswith((".", "`"))
    assert [path.name for path in tmp_path.iterdir()] == ["ready.txt"]


def test_help_loads_nothing_heavy():
    program = (
        "import sys\nfrom sensorsim.commands.program import main\n"
        "try:\n    main(['plan', '--help'])\nexcept SystemExit:\n    pass\n"
    )
    program += "print({'numpy', 'scipy', 'numba', 'pandas', 'matplotlib', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Example: sensorsim plan" in done.stdout and done.stdout.endswith("set()\n"), done.stderr
