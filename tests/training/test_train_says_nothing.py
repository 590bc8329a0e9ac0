"""Nothing that `train` says depends on a reading: what the ranges are chosen by would otherwise read it off."""

import json

import pytest

pytest.importorskip("torch")

from sensorsim.commands.program import main
from sensorsim.training.model_files import load

RANGES = "name,low,high,unit\nsteps,0,{high},1\npulse,30,220,bpm\n"
READINGS = {"inside": 900, "at the end": 1000, "outside": 1001, "below": -5, "far away": 1e300, "smallest": 5e-324}
MECHANISMS = ("sampled", "release", "sketch", "spof", "fm", "dpsgd", "dpsgd-weights", "dp-zo")


def told(folder, capsys, monkeypatch, mechanism, reading, high=1000, *options):
    """Return stdout, stderr and the statement of a model whose first record has this reading."""
    monkeypatch.chdir(folder)
    rows = [f"{who},{100 + 37 * (day * 5 + who)},{60 + day}" for who in range(5) for day in range(4)]
    (folder / "d.csv").write_text("\n".join(["Id,steps,pulse", f"0,{reading!r},70", *rows]) + "\n")
    (folder / "r.csv").write_text(RANGES.format(high=high))
    loop = () if mechanism in ("sampled", "release", "sketch") else ("--epochs", "1")
    users = () if mechanism == "fm" else ("--m", "1")
    given = ("--data", "d.csv", "--columns", "steps,pulse", "--ranges", "r.csv", "--l", "1", *users, *loop)
    main(["train", "--mechanism", mechanism, "--epsilon", "1.6", *given, "--out", "m.npz", *options])
    out, err = capsys.readouterr()
    err = [line for line in err.splitlines() if not line.endswith("…")]  # such a line says what takes long
    return out, tuple(err), load("m.npz").about


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_reading_changes_a_word(tmp_path, capsys, monkeypatch, mechanism):
    few = ("inside", "outside", "far away") if mechanism != "sampled" else READINGS
    found = [told(tmp_path, capsys, monkeypatch, mechanism, READINGS[name]) for name in few]
    assert {one[:2] for one in found} == {found[0][:2]}
    assert all(json.dumps(one[2]) == json.dumps(found[0][2]) for one in found)


def test_no_range_finds_the_largest_reading(tmp_path, capsys, monkeypatch):
    """By bisection over the ranges: every answer is the same, in text and in JSON."""
    for options in ((), ("--format", "json")):
        said = set()
        for high in (10, 999, 1001, 5000, 10**6):
            out, err, _ = told(tmp_path, capsys, monkeypatch, "sampled", 1000, high, *options)
            if options:
                out = json.dumps({name: value for name, value in json.loads(out).items() if name != "ranges"})
            said.add((out, err))
        assert len(said) == 1


def test_what_is_fitted_to_raw_records_says_that_it_is_not_private(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sensorsim.datasets.synthetic.FIT_ROUNDS", 1)
    main(["data", "make", "--out", str(tmp_path / "d.csv")])
    main(["data", "fit", str(tmp_path / "d.csv"), "--out", str(tmp_path)])
    assert "NOT PRIVATE" in "".join(capsys.readouterr())
    for name in ("fitbit_marginals.csv", "fitbit_correlations.csv"):
        assert (tmp_path / name).read_text().startswith("# NOT PRIVATE")
    main(["data", "compare", str(tmp_path / "d.csv")])
    assert "not private" in capsys.readouterr().out
    main(["data", "compare", str(tmp_path / "d.csv"), "--format", "json"])
    assert json.loads(capsys.readouterr().out)["private"] is False
