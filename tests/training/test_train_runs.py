"""Runs of a cell: their own seeds, adding to them, cells that cannot run, and what a table says of them."""

import json

import numpy as np
import pytest
from training_setup import COLUMNS

from sensorsim._util.errors import InputError
from sensorsim.commands.program import main
from sensorsim.mechanisms import dpsgd_weights
from sensorsim.training import cells, results_file, sweeps
from sensorsim.training.config import Config

SMALL = {"l": 2, "epochs": 2, "batch": 1, "start": "random", "seed": 0, "kind": "stairs"}


@pytest.fixture
def asked(monkeypatch):
    """Every number of a run that is trained."""
    found = []
    run_some = cells.run_some

    def remembered(dataset, config, runs):
        found.extend(runs)
        return run_some(dataset, config, runs)

    monkeypatch.setattr(cells, "run_some", remembered)
    return found


def swept(small, kept, runs, mechanisms=("dpsgd-weights",), **given):
    base = Config("none", runs=runs, **SMALL | given)
    return sweeps.run(small, sweeps.grid(base, mechanisms, [1.0], [0.0], [0.0], small.n, small), kept)


def test_adding_runs_computes_the_new_ones_alone(small, tmp_path, asked):
    with results_file.ResultsFile(tmp_path / "r.sqlite", small.digest) as kept:
        first = swept(small, kept, 3)[0]
        more = swept(small, kept, 5)[0]
        fewer = swept(small, kept, 2)[0]
    assert asked == [0, 1, 2, 3, 4]
    assert more["accuracy"][:3] == first["accuracy"] and fewer["accuracy"] == first["accuracy"][:2]
    assert len(set(more["accuracy"])) == 5
    assert [result["config"]["runs"] for result in (first, more, fewer)] == [3, 5, 2]


@pytest.mark.parametrize("batch", [1, 4, 100])
@pytest.mark.parametrize(
    "given",
    [
        {"mechanism": "dpsgd-weights"},
        {"mechanism": "dpsgd-weights", "sampling": "poisson", "sigma": 1.0},
        {"mechanism": "dpsgd-weights", "noise": "laplace", "sigma": 1.0},
        {"mechanism": "dp-zo"},
        {"mechanism": "dp-zo", "noise": "laplace"},
        {"mechanism": "spof", "redraw": True, "sigma": 1.0},
        {"mechanism": "dpsgd"},
        {"mechanism": "sampled"},
    ],
    ids=lambda given: " ".join(map(str, given.values())),
)
def test_a_run_is_the_same_in_any_company(small, given, batch, monkeypatch):
    """Its draws are its own. Sums in another order may differ by rounding, nothing more."""
    if "sampling" in given:  # what the noise should be is not asked here, and takes long to find
        monkeypatch.setattr(dpsgd_weights, "noise_scale", lambda config, weights: 1.0)
    config, dataset = cells.ready(Config(epsilon=2.0, runs=6, **SMALL | {"batch": batch} | given), small)
    together = cells.run_some(dataset, config, range(6))
    apart = [*cells.run_some(dataset, config, [0]), *cells.run_some(dataset, config, [3, 5])]
    for one, number in zip(apart, (0, 3, 5), strict=True):
        for name in ("accuracy", "accuracy_held_out", "r2"):
            assert one[name] == pytest.approx(together[number][name], rel=0, abs=1e-5)
    assert abs(together[0]["accuracy"] - together[1]["accuracy"]) > 1e-4  # the check can tell


def test_memory_bounds_the_runs_trained_at_once(small, tmp_path, monkeypatch):
    """In pieces or at once, the results are those of the same runs."""
    pieces = []
    run_some = cells.run_some
    monkeypatch.setattr(cells, "run_some", lambda d, c, runs: pieces.append(len(runs)) or run_some(d, c, runs))
    with results_file.ResultsFile(tmp_path / "a.sqlite", small.digest) as kept:
        whole = swept(small, kept, 5)[0]
    monkeypatch.setattr(sweeps, "runs_at_once", lambda dataset, config: 2)
    with results_file.ResultsFile(tmp_path / "b.sqlite", small.digest) as kept:
        cut = swept(small, kept, 5)[0]
    assert pieces == [5, 2, 2, 1]
    assert cut["accuracy"] == pytest.approx(whole["accuracy"], abs=1e-4)


def test_one_impossible_cell_is_recorded_and_does_not_end_the_sweep(small, tmp_path, monkeypatch):
    """An InputError or a lack of memory is tried again next time; what could run has run."""
    run_some = cells.run_some
    broken = {"dpsgd": InputError("a sentence."), "spof": MemoryError(), "fm": RuntimeError("can't allocate memory")}

    def breaks(dataset, config, runs):
        if config.mechanism in broken:
            raise broken[config.mechanism]
        return run_some(dataset, config, runs)

    monkeypatch.setattr(cells, "run_some", breaks)
    names = ("dpsgd", "spof", "fm", "none")
    with results_file.ResultsFile(tmp_path / "r.sqlite", small.digest) as kept:
        found = swept(small, kept, 2, names)
        assert [result["config"]["mechanism"] for result in found] == list(names)
        assert found[0]["error"] == "a sentence." and found[3]["error"] is None
        assert all("not enough memory" in found[place]["error"] for place in (1, 2))
        assert ("a sentence.",) in kept.run("SELECT sentence FROM errors")
        rows = [sweeps.row(result) for result in found]
        assert rows[0]["accuracy"] is None and rows[0]["error"] == "a sentence." and rows[3]["accuracy"] is not None
        assert all(row.keys() == rows[3].keys() for row in rows)
        broken.clear()
        again = swept(small, kept, 2, names)
        assert [result["error"] for result in again] == [None] * 4
        assert ("a sentence.",) not in kept.run("SELECT sentence FROM errors")
    broken["none"] = RuntimeError("a mistake in the code\nand where")
    with results_file.ResultsFile(tmp_path / "s.sqlite", small.digest) as kept:
        found = swept(small, kept, 2, names)
    assert [result["error"] is None for result in found] == [True, True, True, False]
    assert "RuntimeError: a mistake in the code)" in found[3]["error"] and "\n" not in found[3]["error"]
    broken["none"] = KeyboardInterrupt()
    with results_file.ResultsFile(tmp_path / "s.sqlite", small.digest) as kept, pytest.raises(KeyboardInterrupt):
        swept(small, kept, 2, names)


@pytest.mark.parametrize("modules", [(sweeps, cells), (cells,)], ids=["in the grid", "later"])
def test_a_cell_that_breaks_before_it_is_run_does_not_end_the_sweep(small, tmp_path, monkeypatch, modules):
    whole = cells.checked

    def breaks(config, *given):
        if config.mechanism == "dpsgd":
            raise OverflowError("too large")
        return whole(config, *given)

    for module in modules:
        monkeypatch.setattr(module, "checked", breaks)
    with results_file.ResultsFile(tmp_path / "r.sqlite", small.digest) as kept:
        found = swept(small, kept, 1, ("dpsgd", "none"))
    assert "OverflowError: too large" in found[0]["error"] and found[1]["error"] is None


def test_a_results_file_that_breaks_under_way_is_one_sentence(small, tmp_path):
    with (
        pytest.raises(InputError, match=r"not a results file that can be read and written \(no such table"),
        results_file.ResultsFile(tmp_path / "r.sqlite", small.digest) as kept,
    ):
        kept.run("DROP TABLE runs")
        swept(small, kept, 1)


ARGUMENTS = ["--columns", ",".join(COLUMNS), "--l", "2", "--epochs", "1", "--batch", "1"]


def test_an_epsilon_that_cannot_be_has_its_sentence_in_the_table(tmp_path, capsys):
    words = ["sweep", "--mechanism", "none,dpsgd", "--sigma", "0", "--runs", "2", *ARGUMENTS]
    words += ["--results", str(tmp_path / "r.sqlite"), "--jobs", "1"]
    main([*words, "--epsilon", "0,1.6", "--format", "json"])
    said = json.loads(capsys.readouterr().out)
    errors = {(row["mechanism"], row["nominal_epsilon"]): row["error"] for row in said["rows"]}
    assert said["schema_version"] == 3
    assert "epsilon is 0.0" in errors["dpsgd", 0.0]
    assert {key for key, sentence in errors.items() if sentence is None} == {("none", None), ("dpsgd", 1.6)}
    main([*words, "--epsilon", "0,1.6"])
    shown = capsys.readouterr().out
    assert "a number from 1e-09 to 1e+09" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 118
    for word in ("local", "none", "R²", "person", "Not shown for want of room: settings"):
        assert word in shown


def test_a_sigma_that_cannot_be_does_not_end_the_sweep(tmp_path, capsys):
    words = ["sweep", "--mechanism", "none", "--sigma", "0,-1", "--runs", "1", *ARGUMENTS]
    main([*words, "--results", str(tmp_path / "r.sqlite"), "--jobs", "1"])
    assert "--sigma is -1.0; give a number from 0 to 1000" in " ".join(capsys.readouterr().out.split())


def test_a_sweep_in_which_nothing_can_run_ends_with_the_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        main(["sweep", "--mechanism", "dpsgd", "--epsilon", "0", "--results", str(tmp_path / "r.sqlite")])
    assert left.value.code == 2 and "--epsilon is" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_every_row_says_who_is_trusted_and_what_a_person_spends(small, tmp_path):
    with results_file.ResultsFile(tmp_path / "r.sqlite", small.digest) as kept:
        rows = {r["mechanism"]: r for r in map(sweeps.row, swept(small, kept, 2, ("none", "dpsgd", "dpsgd-weights")))}
    assert [row["trust"] for row in rows.values()] == ["none", "local", "central"]
    records = np.bincount(small.person[~small.held_out])
    records = np.sort(records[records > 0])
    assert rows["dpsgd"]["records_per_person_median"] in records
    assert rows["dpsgd"]["epsilon_person_most"] >= rows["dpsgd"]["epsilon_person_median"] > 1.0
    assert all({"r2", "r2_low", "r2_high", "r2_sd", "error", "settings"} <= row.keys() for row in rows.values())
