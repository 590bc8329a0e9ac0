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


BAD = [  # beside the values that tests/commands/test_bad_inputs.py gives to every option
    ("--records-per-day", "70000"),  # a period has too many records
    ("--reserve", "9"),
    ("--columns", "TotalSteps"),
    ("--statistics", "f.sqlite"),
    ("--statistics", NOISE),
    ("--plot", "a.svg", "--sketch", "./a.svg"),  # would be written over
    ("--statistics", "r.csv", "--ranges", "r.csv"),
    ("--out", "d.csv", "--data", "d.csv"),
    ("--chip", "potato", "--data", "nowhere.csv"),
    ("--days", "36525", "--every", "1"),  # too many estimates
]


@pytest.mark.parametrize("words", BAD, ids=lambda words: " ".join(words)[:40])
def test_bad_input_is_one_sentence_and_leaves_nothing(fleet, ran, tmp_path, words):
    code, out, err = fleet(*words)
    assert code == 2 and out == "", err
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
