"""What every public function returns shows itself: as text, as HTML, as data, as a frame, as a figure."""

import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from figure_checks import faults, words_of

import sensorsim as ss
from sensorsim._util.drawing import FORMATS, picture
from sensorsim._util.results import Result, Shown, as_text

OWN_FILE = """from sensorsim.language import Q, add, kernel

BYTE = Q("byte", "u32", 0, 0, 255, "")
TWICE = Q("twice", "u32", 0, 0, 510, "")


@kernel()
def twice(x: BYTE) -> TWICE:
    return add(x, x)
"""
# What returns no result: classes, and what writes files; decode has tests of its own.
CLASSES = {"Firmware", "FailedProofError", "InputError", "Sensor"}
NO_RESULTS = {*CLASSES, "write_table", "figures", "decode"}


@cache
def table() -> Any:
    return ss.noise_table(epsilon=1.6, release=1)


def packet() -> bytes:
    sensor = ss.Sensor(table())
    sensor.open()
    return sensor.release([0.5] * 14)[1]


def own_package(folder: Path) -> Path:
    (folder / "twice.py").write_text(OWN_FILE, "utf-8")
    ss.export(folder / "package", kernels=f"{folder}/twice.py:twice")
    return folder / "package"


def saved_table(folder: Path) -> Path:
    ss.write_table(folder / "<b>&.txt", table())
    return folder / "<b>&.txt"


# By public name: small calls of it, each given an empty folder. Those marked slow take more than a second.
CALLS = {
    "certify": lambda folder: ss.certify(saved_table(folder)),
    "claims": lambda folder: ss.claims(only=("cost-spof",)),
    "cost": lambda folder: ss.cost(n=14, l=7),
    "cpus": lambda folder: ss.cpus(),
    "data": lambda folder: ss.data.ranges(),
    "noise_peers": lambda folder: ss.noise_peers(),
    "sensitivity": lambda folder: ss.sensitivity(),
    "kernel": lambda folder: ss.kernel("spof", at="n=14"),
    "noise_table": lambda folder: ss.noise_table(1, kind="naive", frac_bits=6, entries=2**8),
    "plan": lambda folder: ss.plan(),
    "read_table": lambda folder: ss.read_table(saved_table(folder)),
    "release": lambda folder: ss.release(np.full((200, 14), 0.9), table()),
}
SLOW = {
    "audit": lambda folder: ss.audit(table(), draws=10_000),
    "evaluate": lambda folder: ss.evaluate(ss.train(seed=1)),
    "export": lambda folder: ss.export(folder / "<i>&"),
    "fleet": lambda folder: ss.fleet(devices=20, days=7, noise=table()),
    "report": lambda folder: ss.report(claims=False),
    "receive": lambda folder: ss.receive(packet(), table()),
    "sweep": lambda folder: ss.sweep("release", epsilon=1.6, sigma=0, runs=1, results=str(folder / "r.sqlite")),
    "train": lambda folder: ss.train(seed=1),
    "verify": lambda folder: ss.verify(own_package(folder), target="host", random_host=100, random_core=10, trust=True),
}


# What figures say of data, runs or bars; these have no fault, and are the same bytes twice in every form.
SAID = {
    "certify": ["proved now"],
    "noise_table": ["NOT PRIVATE", "gives x away"],
    "release": ["200 records released", "95 % interval"],
    "receive": ["1 packet accepted", "95 % interval", "feature 13, "],
    "kernel": ["n = 14", "runs in one call"],
    "audit": ["9,984 draws, seed", "confidence", "claimed 1.59"],
    "plan": ["95 % interval", "lines: predicted", "its own table"],
    "claims": ["1 claim: 0 hold, 1 holds as arithmetic", "Recomputed on"],
    "evaluate": ["457 rows of synthetic", "not private"],
    "cost": ["n = 14"],
    "export": ["bytes of the file"],
    "fleet": ["people: synthetic, one run, seed", "95 % intervals"],
    "train": ["weights of encoder 0"],
    "verify": [],
}


def test_no_public_name_is_left_out():
    public = {name for name in dir(ss) if not name.startswith("_")}
    assert {*CALLS, *SLOW} == public - NO_RESULTS
    assert all(inspect.isclass(getattr(ss, name)) for name in CLASSES)


@pytest.mark.parametrize("name", [*CALLS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_a_result_shows_itself(name, tmp_path):
    (tmp_path / "given").mkdir()
    found = {**CALLS, **SLOW}[name](tmp_path / "given")
    held(found, tmp_path)
    if name in SAID:
        figure = found.plot()
        assert faults(figure) == []
        assert [text for text in SAID[name] if text not in words_of(figure)] == [], words_of(figure)
        assert all(picture(found.plot(), kind, 50) == picture(found.plot(), kind, 50) for kind in FORMATS)


def held(found: Any, folder: Path) -> None:
    """All that a result must do."""
    assert isinstance(found, Shown)
    assert 10 < len(repr(found)) < 2000 and repr(found) == as_text(found.title(), found.facts())
    _html(found)
    made = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert type(made["schema_version"]) is int and made["schema_version"] >= 1 and len(made) > 1
    _frame(found)
    figure = found.plot(str(folder / "figure.svg"))
    assert type(figure).__name__ == "Figure" and figure.axes and b"<svg" in (folder / "figure.svg").read_bytes()
    assert type(found.plot()).__name__ == "Figure"
    with pytest.raises(ss.InputError, match="not a figure"):
        found.plot(str(folder / "figure.doc"))


def _html(found: Any) -> None:
    """Well-formed, and every text in it is a text: what looks like a tag is none."""
    tree = ElementTree.fromstring(found._repr_html_())
    assert not {"script", "style", "img", "b", "i"} & {one.tag for one in tree.iter()}
    if "_repr_html_" not in vars(type(found)):  # claims and a report show more
        assert tree.findtext("caption") == found.title()
        shown = {row.findtext("th"): row.findtext("td") for row in tree.iter("tr")}
        assert shown == dict(found.facts()) and all(shown.values())


def _frame(found: Any) -> None:
    frame = found.to_frame()
    assert len(frame) > 0 and len(frame.columns) > 0 and frame.columns.is_unique
    if isinstance(found, Result):
        rows = [dict(row) for row in found.rows()]
        assert {tuple(row) for row in rows} == {tuple(frame.columns)} and len(rows) == len(frame)


def test_a_sensor_and_its_firmware_say_what_they_are_in_a_line():
    sensor = ss.Sensor(ss.Firmware(table(), budget_epsilon=16, budget_days=7))
    assert repr(sensor) == (
        "Sensor(Firmware(rows table: 1 of 14 features of a record; epsilon 1.599958023791 a release, proved; "
        "budget epsilon 16 in 7 days), closed)"
    )


def test_means_stand_at_the_places_of_their_features():
    table = ss.noise_table(epsilon=1.6, features=4, release=1)
    found = ss.release(np.full((1, 4), 0.5), table, seed=0)
    means = [row["mean"] for row in found.rows()]
    shown = ", ".join("–" if mean is None else f"{mean:.3f}" for mean in means)
    assert means.count(None) == 3 and f"means     {shown} (features 0 …" in repr(found)
    assert repr(found).startswith("1 record released")


def test_a_note_is_a_warning_at_the_line_that_asked():
    from sensorsim.datasets import warn

    with pytest.warns(UserWarning, match="some rows") as caught:
        warn("some rows")
    assert caught[0].filename == __file__
