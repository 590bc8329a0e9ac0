"""`sensorsim fleet` on a stand-in for the engine: what it prints, keeps and refuses."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import fleet_standin
import pytest
from command import run

from sensorsim.fleets import life
from sensorsim.fleets.settings import People
from sensorsim.noise.noise_table import make_table
from sensorsim.noise.table_file import write_table

NOISE = str(Path(__file__).parents[2] / "tables" / "noise" / "rows-eps0.2-1.txt")  # of one bit: intervals are quick
WORDS = ("fleet", "--devices", "40", "--days", "14", "--noise", NOISE)


@pytest.fixture
def ran(monkeypatch):
    """Batches that were run."""
    found = []

    def run_batch(settings, first, last):
        found.append((first, last))
        return fleet_standin.plain_batch(settings, first, last)

    monkeypatch.setattr(life, "run_batch", run_batch)
    made = People.generated
    people = fleet_standin.people()
    monkeypatch.setattr(People, "generated", lambda columns, seed: people if columns is None else made(columns, seed))
    return found


@pytest.fixture
def fleet(ran, capsys, tmp_path, monkeypatch):
    """The command with these words, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: run(capsys, *WORDS, "--out", "f.sqlite", *words)


def test_a_table_says_what_it_is(fleet):
    code, out, err = fleet("--seed", "3")
    assert code == 0 and "40 devices" in out and "a simulation" in out and "nothing of it is private" in out
    assert "40/40 devices" in err and "Note" not in err


def test_it_goes_on_where_it_was_and_prints_the_same(fleet, ran):
    _, first, _ = fleet("--format", "json")
    count = len(ran)
    code, second, _ = fleet("--format", "json", "--jobs", "1")
    found = json.loads(first)
    assert code == 0 and first == second and len(ran) == count > 0
    assert found["simulation"] is True and found["private"] is False and found["settings"]["devices"] == 40


def test_rows_are_csv(fleet):
    _, out, _ = fleet("--format", "csv", "--every", "5")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 3 * 14 and {"feature", "low", "high"} <= set(rows[0])


@pytest.mark.slow
def test_files_beside_it(fleet, tmp_path):
    code, _, _ = fleet("--plot", "page.svg", "--statistics", "sums.csv")
    assert code == 0 and {path.name for path in tmp_path.iterdir()} == {"f.sqlite", "page.svg", "sums.csv"}
    assert (tmp_path / "page.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("name", ["sums.csv", "sums.parquet", "sums.json"])
def test_statistics_are_what_receive_reads(fleet, capsys, name):
    _, out, _ = fleet("--statistics", name, "--format", "json")
    released = {row["name"]: row["count"] for row in json.loads(out)["packets"]}["released"]
    code, out, _ = run(capsys, "receive", name, "--table", NOISE, "--format", "json")
    assert code == 0 and json.loads(out)["accepted"] == released == 40 * 14


def test_a_file_of_raw_records_stays_in_the_house(fleet, tmp_path):
    rows = ["Id,TotalSteps", *(f"{i % 3},{1000 * i}" for i in range(12))]
    (tmp_path / "mine.csv").write_text("\n".join(rows) + "\n")
    write_table("one.txt", make_table("stairs", "1.6", 1))
    code, out, err = fleet("--data", "mine.csv", "--columns", "TotalSteps", "--noise", "one.txt")
    assert code == 0 and "Note: f.sqlite holds sums of raw records of mine.csv: keep it where" in err and "mine" in out


@pytest.mark.parametrize("place", [0, 1])
def test_a_device_over_its_budget_is_exit_code_1(fleet, monkeypatch, place):
    """By its journal, or by packets that left it whatever the journal says."""

    def run_batch(settings, first, last):
        counts = fleet_standin.plain_batch(settings, first, last)
        counts.worst[place] = 2
        return counts

    monkeypatch.setattr(life, "run_batch", run_batch)
    code, out, _ = fleet()
    assert code == 1 and "OVER BUDGET" in out


BAD = {
    "devices": (("--devices", "0"), "--devices is 0; give a number from 1"),
    "days": (("--days", "-3"), "--days is -3; give a number from 1"),
    "too long": (("--days", "10000000"), "--days is 10000000; give a number from 1"),
    "records": (("--records-per-day", "0"), "--records-per-day is 0"),
    "period": (("--records-per-day", "70000"), "a budget period of 70000 records"),
    "budget": (("--budget-epsilon", "0.1"), "allows no release that costs"),
    "budget text": (("--budget-epsilon", "much"), "budget"),
    "budget days": (("--budget-days", "0"), "the budget is for 0 days"),
    "reserve": (("--reserve", "9"), "the reserve is 9"),
    "loss": (("--loss", "1.5"), "--loss is 1.5"),
    "nan": (("--reset-rate", "nan"), "--reset-rate is not a number"),
    "skew": (("--clock-skew", "-1"), "--clock-skew is -1"),
    "schedule": (("--schedule", "lazy"), "--schedule"),
    "features": (("--columns", "TotalSteps"), "the noise table is for 14 features and the data has 1 columns"),
    "chip": (("--chip", "potato"), "potato"),
    "radio": (("--radio", "smoke"), "smoke"),
    "battery": (("--battery-mah", "-1"), "a battery of -1 mAh is not possible"),
    "every": (("--every", "0"), "--every"),
    "jobs": (("--jobs", "0"), "--jobs"),
    "table": (("--noise", "nowhere.txt"), "nowhere.txt"),
    "sketch": (("--sketch", "nowhere.json"), "nowhere.json"),
    "data": (("--data", "nowhere.csv"), "nowhere.csv"),
    "out": (("--out", "."), "it is a folder"),
    "out device": (("--out", "/dev/null"), "is a device or a pipe"),
    "plot": (("--plot", "page.doc"), "ends in .doc; give a name that ends in .svg, .png or .pdf"),
    "statistics as text": (("--statistics", "x.txt"), "give a name that ends in .json, .csv or .parquet"),
    "plot folder": (("--plot", "no/page.svg"), "there is no folder"),
    "statistics": (("--statistics", "no/sums.csv"), "there is no folder"),
    "one file": (("--statistics", "f.sqlite"), "are one file"),
    "dask": (("--dask", "nonsense"), "'nonsense' is no address of a Dask scheduler"),
    "over the table": (("--statistics", NOISE), "is read, and would be written over"),
    "over a sketch": (("--plot", "a.svg", "--sketch", "./a.svg"), "a.svg is read, and would be written over"),
    "over the ranges": (("--statistics", "r.csv", "--ranges", "r.csv"), "r.csv is read, and would be written over"),
    "over the data": (("--out", "d.csv", "--data", "d.csv"), "d.csv is read, and would be written over"),
    "no column": (("--columns", "x"), "the generator has no column x; it has TotalSteps"),
    "chip before data": (("--chip", "potato", "--data", "nowhere.csv"), "potato"),
    "long chip": (("--chip", "x" * 4000), "is not known; there are"),
    "long radio": (("--radio", "x" * 4000), "is not known"),
    "long table": (("--noise", "x" * 4000), "cannot read"),
    "long sketch": (("--sketch", "x" * 4000), "cannot read"),
    "long data": (("--data", "x" * 4000), "cannot be read"),
    "long columns": (("--columns", "x" * 4000), "the generator has no column xxx"),
    "long budget": (("--budget-epsilon", "x" * 4000), "a privacy budget is a number above 0"),
    "long dask": (("--dask", "x" * 4000), "is no address of a Dask scheduler"),
    "many estimates": (("--days", "36525", "--every", "1"), "511350 estimates; at most"),
} | {
    f"empty {name}": ((f"--{name}", ""), f"--{name} is empty; give it a value")
    for name in ("sketch", "statistics", "plot", "columns", "data", "person", "ranges", "dask", "noise", "out", "chip")
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(fleet, ran, tmp_path, what):
    words, sentence = BAD[what]
    code, out, err = fleet(*words)
    assert code == 2 and out == "" and sentence in err, err
    told = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert len(told) == 1 and "Traceback" not in err and ran == [] and list(tmp_path.iterdir()) == []
    assert len(err) <= 300 and "devices ·" not in err  # no bar comes before


def test_data_are_not_written_over(fleet, ran, tmp_path):
    rows = ["Id,TotalSteps", *(f"{i % 3},{1000 * i}" for i in range(12))]
    (tmp_path / "d.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "link.csv").symlink_to("d.csv")
    for name in ("d.csv", "link.csv"):
        code, _, err = fleet("--data", "d.csv", "--columns", "TotalSteps", "--statistics", name)
        assert code == 2 and f"{name} is read, and would be written over" in err
    assert (tmp_path / "d.csv").read_text() == "\n".join(rows) + "\n" and ran == []


def test_a_table_that_is_too_large_is_refused_before_the_run(fleet, ran, tmp_path, monkeypatch):
    """Two weeks of 14 features with 2 symbols each."""
    from sensorsim.hospital import sum_files

    monkeypatch.setattr(sum_files, "MOST_SUMS", 14 * 14 * 2 - 1)
    code, _, err = fleet("--statistics", "s.csv")
    assert code == 2 and "too many for a table" in err and ran == [] and list(tmp_path.iterdir()) == []
    assert fleet("--statistics", "s.json")[0] == 0  # of all days


def test_a_result_is_printed_before_files_are_written(fleet, tmp_path, monkeypatch):
    """A disk that is full then takes nothing of it."""
    from sensorsim._util.errors import InputError
    from sensorsim.hospital import sum_files

    def full(*_):
        raise InputError("the disk is full.")

    monkeypatch.setattr(sum_files, "write_days", full)
    code, out, err = fleet("--statistics", "s.csv")
    assert (code, out) == (2, "") and "the disk is full" in err


def test_estimates_that_take_long_have_a_bar(fleet, monkeypatch):
    from sensorsim.commands import fleet as command

    assert "intervals" not in fleet()[2]
    monkeypatch.setattr(command, "SOON", 0)
    assert "28/28 intervals" in fleet()[2]


def test_a_store_of_other_settings_is_told_without_a_bar(fleet):
    fleet()
    assert fleet("--loss", "0.25")[2].startswith("Error: f.sqlite is of a fleet with loss 0.0")


def test_other_settings_are_named(fleet):
    fleet()
    code, _, err = fleet("--loss", "0.25")
    assert code == 2 and re.search(r"f.sqlite is of a fleet with loss 0.0, this run has 0.25; nothing was changed", err)


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished(fleet, tmp_path, ran):
    """A real signal to a process of its own."""
    program = "import sys, fleet_standin\nfrom sensorsim.commands.program import main\n"
    program += "fleet_standin.ended('ctrl-c')\nmain(sys.argv[1:])"
    words = [sys.executable, "-c", program, *WORDS, "--out", "g.sqlite", "--jobs", "1"]
    words += ["--columns", "TotalSteps,Calories" + ",Calories" * 12]
    path = os.pathsep.join([str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 130 and done.stdout == "", done.stderr
    kept = re.search(r"([0-9]+) devices safe in g.sqlite: run the same command to go on", done.stderr)
    assert kept and 0 < int(kept[1]) < 40 and "Traceback" not in done.stderr
    code, _, _ = fleet("--out", "g.sqlite", *words[-2:])
    assert code == 0 and sum(last - first for first, last in ran) == 40 - int(kept[1])
