"""The table of ratios: what counts as worse, that the stored file is whole, and in the deeper suite that it holds."""

import json
from pathlib import Path

import pytest
from ratios import STORED, Ratio, main, table, worse

FOUND = [
    Ratio("numpy", "a sum", "time", 2.0, 60.0, 30.0),
    Ratio("C by hand", "a release", "instructions", 38, 38, 1.0),
]
AS_STORED = {"ratios": [vars(one) for one in FOUND]}


def changed(number, ratio):
    return [*FOUND[:number], Ratio(*list(vars(FOUND[number]).values())[:5], ratio), *FOUND[number + 1 :]]


def test_times_may_halve_and_instructions_may_not_grow():
    assert worse(FOUND, AS_STORED) == [] == worse(changed(0, 15.1), AS_STORED)
    assert worse(changed(0, 14.9), AS_STORED) == ["numpy, a sum: 14.9 ×, below 15 (30 stored)"]
    assert worse(changed(1, 38 / 39), AS_STORED)[0].startswith("C by hand, a release: 0.974359 ×, below 1")
    assert worse(FOUND[:1], AS_STORED) == ["C by hand, a release: stored and not measured"]
    assert "30 ×  ns" in table(FOUND)


def test_every_peer_is_stored():
    stored = json.loads(STORED.read_text("utf-8"))
    assert {one["peer"] for one in stored["ratios"]} == {
        *("numpy", "opendp", "cmsisdsp", "apytypes", "opacus", "C by hand"),
    }
    assert all(one["ratio"] > 0 for one in stored["ratios"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the peers
def test_no_ratio_got_worse(tmp_path: Path, capsys):
    code = main(["--check", "--out", str(tmp_path / "now.json")])
    assert code == 0, capsys.readouterr().out
    assert len(json.loads((tmp_path / "now.json").read_text("utf-8"))["ratios"]) == 10
