"""`sensorsim cost`: the figures of the paper and its errata, the forms of output, bad input."""

import csv
import io
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from command import run as in_process

from sensorsim.commands.program import group
from sensorsim.costing.cost_report import break_even, cost, price_by_width

# Top-level modules that `sensorsim cost` may import besides the standard library.
ALLOWED = {"click", "sensorsim", "__editable___sensorsim_0_1_0_finder", "colorama"}


def run(*words, width=100):
    return CliRunner().invoke(group, list(words), catch_exceptions=False, env={"COLUMNS": str(width)})


def test_the_papers_figures():
    report = cost(14, 7)
    spof, dpsgd = report.mechanisms["spof"], report.mechanisms["dpsgd"]
    assert (spof.printed.total, spof.symbolic.total, spof.traced.total) == (364, 364, 364)
    assert (dpsgd.printed.total, dpsgd.symbolic.total, dpsgd.traced.total) == (1403, 1361, 1361)
    assert str(spof.printed.formula) == str(spof.symbolic.formula) == "(19 + l)·n"
    assert (str(dpsgd.printed.formula), str(dpsgd.symbolic.formula)) == ("80n + 283", "77n + 283")
    assert round(report.saving(), 2) == 74.06
    assert round(report.saving("traced"), 2) == 73.25
    assert break_even(report) == (364 - 16 * 14 - 27) / (2 * 14 + 8)


def test_steps_of_the_printed_list():
    report = cost(14, 7)
    steps = {step: part.cost.typical for step, part in report.mechanisms["dpsgd"].printed.steps.items()}
    assert steps == {"gradients": 476, "squares": 84, "sum": 13, "root": 252, "clip": 480, "perturbation": 98}
    executed = {step: part.cost.typical for step, part in report.mechanisms["dpsgd"].traced.steps.items()}
    assert {**steps, "squares": 42} == {step: executed[step] for step in steps}
    steps = {step: part.cost.typical for step, part in report.mechanisms["spof"].printed.steps.items()}
    assert steps == {"stabilization": 98, "coefficients": 70, "perturbation": 196}


def test_operand_widths_and_x87():
    panel = price_by_width(cost(14, 7))
    assert {key: totals["dpsgd"] for key, totals in panel.items()} == {
        **{"u8": 1403, "u16": 1943, "u32": 3095, "i32": 3419},
        "x87": 197,
    }
    assert {totals["spof"] for key, totals in panel.items() if key != "x87"} == {364}
    assert panel["x87"]["spof"] == 336


@pytest.mark.parametrize(("n", "l"), [(1, 1), (14, 7), (64, 64), (100, 3)])
def test_formulas_by_hand(n, l):
    report = cost(n, l)
    assert report.mechanisms["spof"].printed.total == (19 + l) * n
    assert report.mechanisms["dpsgd"].printed.total == 80 * n + 283
    assert report.mechanisms["dpsgd"].traced.total == 77 * n + 283


def test_lean_kernels_are_leaner():
    report = cost(14, 7)
    totals = {name: each.traced.total for name, each in report.mechanisms.items()}
    assert totals["spof-lean"] == 14 * (1 + 1 + 1 + 1)  # SUB, ADD, AND, and the SUB that negates alpha3
    assert totals["dpsgd-lean"] == 14 * (1 + 3 + 1 + 1 + 1 + 1) + 3  # A_i twice, its square, sum, noise, index; C²
    assert totals["dpsgd-lean-clipped"] == totals["dpsgd-lean"] + 14 * 3 + 7 * (1 + 3 + 32) + 32 + 1


def test_full_accounting_prices_everything_by_hand():
    """SPOF on one feature and one hidden unit: the counts of test_counts times the cycles of the M0+ manual."""
    report = cost(1, 1, cpu="cortex-m0plus", accounting="full")
    one_cycle = 7 + 2 + 1 + 2 + 4 + 2 + 3 + 5 + 8  # ADD SUB MUL NOT AND OR SHIFT COMPARE INDEX
    two_cycles = 8 + 5 + 4 + 1  # LOAD STORE BRANCH SELECT
    assert report.mechanisms["spof"].traced.total == one_cycle + 2 * two_cycles
    assert "SELECT" in report.pricing.flags  # an estimate entered the total and says so


def test_energy_is_cycles_times_the_chips_energy_per_cycle():
    cycles = cost(14, 7, cpu="cortex-m4f", accounting="full").mechanisms["spof"].traced.total
    report = cost(14, 7, chip="nrf52832", accounting="full")
    assert report.mechanisms["spof"].traced.total == pytest.approx(cycles * 174.0 / 1000)
    assert report.pricing.unit == "nJ"


def test_json_has_what_it_promises():
    data = json.loads(run("cost", "--n", "14", "--l", "7", "--format", "json").output)
    assert data["schema_version"] == 3
    head = [data[key] for key in ("n", "l", "cpu", "unit", "width", "signed", "accounting", "saving_percent")]
    assert head == [14, 7, "k7", "macro-ops", 8, False, "paper", 74.06]
    assert data["mechanisms"]["dpsgd"]["printed"]["total"] == 1403
    assert data["mechanisms"]["dpsgd"]["symbolic"]["formula"] == "77n + 283"
    assert data["mechanisms"]["spof"]["traced"]["steps"]["coefficients"]["operations"]["MUL"] == 14


def test_csv_adds_up_to_the_totals():
    rows = list(csv.DictReader(io.StringIO(run("cost", "--format", "csv").output)))
    total = sum(float(row["total"]) for row in rows if (row["mechanism"], row["counted"]) == ("dpsgd", "printed"))
    assert total == 1403


FORMS = (
    (),
    ("--accounting", "full", "--cpu", "cortex-m0plus"),
    ("--variant", "lean", "--accounting", "full", "--cpu", "cortex-m4"),
    ("--chip", "msp430fr5969", "--records-per-day", "60", "--battery-mah", "230", "--radio", "lora-sf12"),
    ("--n", "4096", "--l", "4096"),
    ("--sweep", "n=4094:4096"),
)


@pytest.mark.parametrize("words", FORMS, ids=" ".join)
def test_eighty_columns_are_enough(words):
    lines = run("cost", *words, width=80).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= (50 if not words else 64)  # the plain answer is one screen


def test_what_is_too_large_to_run_is_read_and_says_so():
    read, ran = cost(14, 7, most=0), cost(14, 7)
    assert ran.executed and not read.executed and read.saving("traced") is None
    for name, each in read.mechanisms.items():
        assert each.traced is None and each.counted.cost == ran.mechanisms[name].counted.cost
        assert each.counted.operations == ran.mechanisms[name].traced.operations
    assert read.record.to_dict() == ran.record.to_dict()
    data = json.loads(run("cost", "--n", "4096", "--l", "4096", "--format", "json").output)
    assert data["executed"] is False and data["saving_percent_executed"] is None
    assert "traced" not in data["mechanisms"]["spof"]
    assert data["mechanisms"]["spof"]["symbolic"]["total"] == (19 + 4096) * 4096
    assert "nothing was run" in run("cost", "--n", "4096", "--l", "4096").output


def test_users_and_lean_sweeps():
    data = cost(14, 7, m=3).to_dict()["mechanisms"]
    assert data["spof"]["traced"]["total_all_users"] == 3 * 364
    rows = json.loads(run("cost", "--sweep", "n=7:9", "--format", "json").stdout)["rows"]
    assert [row["saving_percent"] for row in rows] == [78.41, 77.46, 76.67]
    lean = run("cost", "--variant", "lean", "--sweep", "n=7:9")
    assert lean.exit_code == 0 and "saving" not in lean.output


def test_sweep(tmp_path):
    rows = json.loads(run("cost", "--l", "3", "--sweep", "n=1:20", "--format", "json").stdout)["rows"]
    assert [row["n"] for row in rows] == list(range(3, 21))
    assert all(row["dpsgd_printed"] == 80 * row["n"] + 283 for row in rows)
    picture = tmp_path / "sweep.svg"
    assert run("cost", "--sweep", "l=1:14", "--plot", str(picture)).exit_code == 0
    assert b"</svg>" in picture.read_bytes()


def test_a_sweep_has_what_the_report_of_each_case_has():
    rows = json.loads(run("cost", "--sweep", "n=13:15", "--format", "json").stdout)["rows"]
    for row in rows:  # as the whole report of that case has it
        report = cost(row["n"], 7)
        for name, each in report.mechanisms.items():
            assert row[f"{name}_derived"] == each.symbolic.total
        assert row["spof_uJ"] == pytest.approx(report.record.costs["spof"].microjoule)
        assert row["sensor_uJ"] == pytest.approx(report.record.costs["sensor"].microjoule)
    other = json.loads(run("cost", "--sweep", "n=14:14", "--radio", "lora-sf9", "--format", "json").stdout)["rows"][0]
    assert other["spof_uJ"] == pytest.approx(cost(14, 7, radio="lora-sf9").record.costs["spof"].microjoule)


def test_published_cycles_stand_beside_ours():
    for words in (("--cpu", "msp430"), ("--chip", "msp430fr5969")):
        line = " ".join(run("cost", *words).output.partition("One noised value")[2].split())
        assert "1436 (half-precision float), 4043 (20-bit fixed point)" in line and "ISCA 2018" in line
        form = cost(1, 1, cpu="msp430", accounting="full").mechanisms["release-stairs"]
        assert f" {form.traced.total:.0f} cycles" in line
    assert "One noised value" not in run("cost").output


BAD = {
    ("--n", "14", "--l", "20"): "l = 20 is larger than n = 14; an encoder compresses, so give --l between 1 and 14.",
    ("--l", "0"): "l = 0 hidden units is not possible",
    ("--m", "0"): "m = 0 users is not possible",
    ("--metric", "energy"): "energy needs a chip",
    ("--metric", "cycles"): "counts macro-ops, not cycles",
    ("--chip", "nrf52832", "--cpu", "k7"): "is cortex-m4f, not k7",
    ("--sweep", "n=9:1"): "--sweep n=9:1 is not a range",
    ("--sweep", "n=²:3"): "is not a range",
    ("--sweep", "n=1:1000000000"): "goes past 4096",
    ("--l", "9", "--sweep", "n=1:8"): "leaves no case with l <= n",
    ("--sweep", "n=7:9", "--battery-mah", "9"): "changes nothing here",
    ("--n", "0"): "n = 0 features is outside 1 … 4096",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_is_one_sentence_and_exit_code_2(words, capsys):
    code, out, err = in_process(capsys, "cost", *words)
    assert (code, out) == (2, "") and BAD[words] in err and "Traceback" not in err


def test_cost_imports_nothing_heavy():
    code = (
        "import sys; from sensorsim.commands.program import main; "
        "main(['cost']); print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tops = {name.partition(".")[0] for name in done.stderr.split()}
    ours = {name for name in tops if name not in sys.stdlib_module_names and not name.startswith(("_", "distutils"))}
    assert ours <= ALLOWED


def test_a_whole_release_of_the_sensor_is_counted():
    """ChaCha20 is 80 quarter rounds of four rotations; the paper's accounting changes nothing of it, the core does."""
    report = cost(14, 7)
    parts = report.sensor.steps
    assert list(parts) == ["journal", "random words", "release", "packet", "wiping"]
    assert parts["random words"].operations["ROTATE"] == 320
    assert report.sensor.cost.typical == sum(part.cost.typical for part in parts.values())
    assert report.to_dict()["sensor_release"]["total"] == cost(14, 7, accounting="full").sensor.cost.typical
    assert cost(14, 7, cpu="cortex-m0plus").sensor.cost.typical > report.sensor.cost.typical
    longer = cost(4096, 7).sensor
    assert longer.steps["packet"].cost.typical > parts["packet"].cost.typical  # twelve bits name a feature
