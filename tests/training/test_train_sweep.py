"""Runs, the store, resuming after kill -9, a Dask cluster, and the commands."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from clusters import local_cluster
from training_setup import COLUMNS

from sensorsim._util import pool
from sensorsim._util.errors import InputError
from sensorsim.commands.program import main
from sensorsim.datasets import synthetic
from sensorsim.mechanisms import every
from sensorsim.training import cells, results_file, sweeps
from sensorsim.training.cells import PARTS
from sensorsim.training.config import Config, checked

SMALL = {"l": 2, "runs": 3, "epochs": 2, "seed": 0, "kind": "stairs"}
ARGUMENTS = ["--columns", ",".join(COLUMNS), "--l", "2", "--epochs", "2", "--kind", "stairs"]


def plain(result):
    return {name: value for name, value in result.items() if name != "seconds"}


@pytest.mark.parametrize("mechanism", [mechanism.name for mechanism in every()])
@pytest.mark.parametrize("sigma", [0.0, 5.0])
def test_every_mechanism_is_reproducible_and_scored(small, mechanism, sigma):
    config = Config(mechanism, 1.0, sigma=sigma, **SMALL)
    first, second = (cells.run_cell(small, config) for _ in range(2))
    assert plain(first) == plain(second)
    assert len(first["accuracy"]) == 3 and len(set(first["accuracy"])) == 3
    assert all(-100 < value < 100 for value in first["accuracy"])
    assert (first["accuracy"] == first["accuracy_clean_input"]) == (sigma == 0)


@pytest.mark.parametrize(
    "options", [{"batch": 4}, {"bias": True}, {"optimiser": "sgd"}, {"redraw": True}, {"forward": "released"}]
)
def test_options_run_and_matter(small, options):
    base = Config("dpsgd", 4.0, **SMALL)
    changed = Config("dpsgd", 4.0, **SMALL, **options)
    assert cells.run_cell(small, base)["accuracy"] != cells.run_cell(small, changed)["accuracy"]


def test_a_diverging_run_is_recorded_and_never_averaged_away(small):
    """The printed loss has no lower bound, so plain gradient descent runs away from it."""
    config = Config("spof", 1e4, c=0.0, optimiser="sgd", lr=20.0, l=2, runs=3, epochs=20, seed=0)
    result = cells.run_cell(small, config)
    assert result["diverged"] > 0
    assert result["accuracy"].count(None) == result["diverged"]
    assert sweeps.row(result)["accuracy"] is None


def test_the_loss_that_holds_does_not_diverge_where_the_printed_one_does(small):
    config = Config("release", 1e2, estimator="loss", optimiser="sgd", lr=0.05, **SMALL | {"epochs": 20})
    assert cells.run_cell(small, config)["diverged"] == 0


def test_unused_settings_do_not_make_a_new_cell():
    base = Config("none", l=2)
    cells = sweeps.grid(base, ["none", "dpsgd", "spof"], [0.1, 0.2], [0.0], [0.0, 1.0], 4)
    assert [config.mechanism for config in cells] == ["none", "dpsgd", "dpsgd", *["spof"] * 4]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": None}, "above 0"),
        ({"l": 5}, "l = 5"),
        ({"k": 9}, "k = 9"),
        ({"sigma": float("nan")}, "sigma is not a number"),
        ({"m": 65_537}, "from 1 to 65536"),
        ({"mechanism": "magic"}, "no mechanism 'magic'"),
        ({"forward": "raw"}, "reads nothing but the release"),
    ],
)
def test_bad_configurations_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        checked(Config(**({"mechanism": "sampled", "epsilon": 1.0, "l": 2} | change)), 4)


def test_store_keeps_runs_and_refuses_what_is_not_its_own(tmp_path):
    path = tmp_path / "results.sqlite"
    with results_file.ResultsFile(path, "d1") as kept:
        kept.put("a", {"value": [0.1, None]})
        kept.put("a", {"value": 2})
        assert kept.get("a") == {"value": [0.1, None]} and kept.get("b") is None
        kept.put_error("c", "why not")
        kept.put_runs("c", {"said": 1}, {0: {"accuracy": 1 / 3}, 2: {"accuracy": None}})
        kept.put_runs("c", {"said": 2}, {2: {"accuracy": 7.0}, 3: {"accuracy": 4.0}})
        assert kept.runs("c", 3) == {0: {"accuracy": 1 / 3}, 2: {"accuracy": None}}
        assert kept.get("c") == {"said": 1} and kept.run("SELECT 1 FROM errors") == []
    before = path.read_bytes()
    with pytest.raises(InputError, match="data set d1"):
        results_file.ResultsFile(path, "d2")
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE meta SET value = '0' WHERE name = 'results_version'")
    database.close()
    changed = path.read_bytes()
    with pytest.raises(InputError, match="results version 0"):
        results_file.ResultsFile(path, "d1")
    assert path.read_bytes() == changed != before
    (tmp_path / "text.sqlite").write_text("no database " * 200)
    with pytest.raises(InputError, match="not a results file"):
        results_file.ResultsFile(tmp_path / "text.sqlite", "d1")


def test_a_statement_says_what_is_taken_as_public(small):
    config, dataset = cells.ready(Config("sketch", 1.0, l=2), small)
    usual = cells.about(dataset, config)["covers"]
    dropped = cells.about(replace(dataset, dropped=1), config)["covers"]
    assert "whose a record is, and how many a person has, is taken as public" in usual and "empty cell" not in usual
    assert dropped.startswith(usual) and "which rows have an empty cell" in dropped
    config, dataset = cells.ready(Config("none", l=2), small)
    assert cells.about(replace(dataset, dropped=1), config)["covers"] == "nothing"


CELLS = 10


def sweep_arguments(results, jobs="1"):
    epsilons = ",".join(f"{0.1 * step:.1f}" for step in range(1, CELLS + 1))
    grid = ["sweep", "--mechanism", "dpsgd", "--epsilon", epsilons, "--sigma", "0", "--runs", "4"]
    return [*grid, *ARGUMENTS[:-2], "--results", str(results), "--jobs", jobs, "--format", "json"]


@pytest.mark.slow
def test_kill_and_resume_lose_nothing_and_change_nothing(tmp_path, capsys):
    killed = tmp_path / "killed.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-m", "sensorsim", *sweep_arguments(killed)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        deadline = time.monotonic() + 60
        while count(killed) < 2 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = contents(killed)
    assert 2 <= len(kept) < CELLS * 4, "the sweep was not caught in the middle"
    main(sweep_arguments(killed))
    resumed = capsys.readouterr().out
    main(sweep_arguments(tmp_path / "whole.sqlite"))
    whole = capsys.readouterr().out
    assert resumed == whole
    after = contents(killed)
    assert {key: after[key] for key in kept} == kept
    assert len(after) == CELLS * 4


def count(path):
    try:
        return len(contents(path))
    except sqlite3.Error:
        return 0


def contents(path):
    if not path.exists():
        return {}
    database = sqlite3.connect(path)
    try:
        return {(key, run): result for key, run, result in database.execute("SELECT key, run, result FROM runs")}
    finally:
        database.close()


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize(
    ("mechanism", "processes"),
    [
        ("dpsgd-weights", False),
        *(pytest.param(name, True, marks=pytest.mark.slow) for name in ("dpsgd-weights", "spof", "sampled")),
    ],
)
def test_a_dask_cluster_gives_the_same_results(small, tmp_path, mechanism, processes):
    """A scheduler and two workers on loopback, every port chosen by the system, no dashboard to the outside.

    Workers of their own processes have one thread each, so sums may be in another order than here: to rounding.
    """
    cells = sweeps.grid(Config("none", **SMALL), ["none", mechanism], [0.4, 1.6], [0.0], [0.0], small.n)
    with results_file.ResultsFile(tmp_path / "local.sqlite", small.digest) as kept:
        local = sweeps.run(small, cells, kept)
    with (
        local_cluster(processes=processes) as cluster,
        results_file.ResultsFile(tmp_path / "dask.sqlite", small.digest) as kept,
    ):
        remote = sweeps.run(small, cells, kept, dask=cluster.scheduler_address)
    for comp, ref in zip(remote, local, strict=True):
        assert comp["error"] is None and comp.keys() == ref.keys()
        for name in MEASURED:
            assert comp.pop(name) == pytest.approx(ref.pop(name), rel=0, abs=1e-4)
        assert plain(comp) == plain(ref)


MEASURED = (*PARTS, "column_mse")


def test_a_scheduler_that_does_not_answer_is_one_sentence(small, tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "CLUSTER_WAIT", 0.3)
    with (
        results_file.ResultsFile(tmp_path / "r.sqlite", small.digest) as kept,
        pytest.raises(InputError, match="no Dask scheduler answers"),
    ):
        sweeps.run(small, [checked(Config("none", **SMALL), small.n)], kept, dask="tcp://127.0.0.1:1")


def test_without_held_out_persons_the_json_has_null(tmp_path, capsys):
    days = tmp_path / "days.csv"
    synthetic.make(rows=60, persons=4).to_csv(days, index=False)
    grid = ["--mechanism", "none", "--sigma", "0", "--runs", "1", "--batch", "4", "--m", "4", "--data", str(days)]
    words = ["sweep", *ARGUMENTS[:-2], *grid, "--results", str(tmp_path / "r.sqlite"), "--jobs", "1"]
    main([*words, "--format", "json"])
    said = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert said["rows"][0]["accuracy_held_out"] is None and said["rows"][0]["accuracy"] is not None
    assert said["trivial"][0]["predictors"]["zeros"]["accuracy_held_out"] is None
    main(words)
    assert "nan" not in capsys.readouterr().out


@pytest.mark.slow
def test_several_processes_give_the_same_results(small, tmp_path):
    cells = sweeps.grid(Config("none", **SMALL), ["dpsgd"], [0.5, 1.0, 2.0], [0.0], [0.0], small.n)
    with results_file.ResultsFile(tmp_path / "one.sqlite", small.digest) as kept:
        one = sweeps.run(small, cells, kept)
    with results_file.ResultsFile(tmp_path / "two.sqlite", small.digest) as kept:
        two = sweeps.run(small, cells, kept, jobs=2)
    assert [plain(result) for result in one] == [plain(result) for result in two]


def test_a_sweep_over_no_mechanism_is_refused_and_leaves_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(["sweep", "--mechanism", ","])
    assert left.value.code == 2 and "names none" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
