"""A sensor that sends a sketch: packet for packet beside the definition, in batches, its file, and what it refuses."""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import naive_device as naive
import naive_sketch
import numpy as np
import pytest
from sensorsim.tables import folder
from test_device import live_alike, looked_up, mirrored, rows, several, stairs

from sensorsim._util.errors import InputError
from sensorsim.datasets.public_ranges import Range
from sensorsim.device import Firmware, Sketch, read_sketch, sketch_records, write_sketch
from sensorsim.encoders import read_encoder
from sensorsim.noise.certificate import certify
from sensorsim.noise.noise_table import certified, ready_table

ONE = ready_table("1.6", 1)
CENTRE = tuple(2000 * i for i in range(14))
SKETCH = Sketch(14, CENTRE, 40000, 1, 10)
STAIRS = ready_table("1.6", 1, "stairs")


class Sketched(naive.Table):
    """A table of one feature that draws from the sketch of a record."""

    def __init__(self, table: naive.Table, sketch: Sketch) -> None:
        super().__init__(2**sketch.direction_bits, 1, table.value_bits, table.draw, table.lift)
        self.sketch = sketch

    def release(self, x: Any, words: Any, order: Any) -> Any:
        known = self.sketch
        number = words[0] // 2 ** (32 - known.direction_bits)
        u = naive_sketch.sketch(x, known.centre, number, known.factor, known.halvings)
        return [number], [self.draw(u, words[1])]


CASES: dict[str, tuple[Callable[[], Any], Callable[[Any], naive.Table]]] = {
    "rows by a search": (lambda: ONE, rows),
    "rows by thresholds": (lambda: ready_table("3.2", 1), rows),
    "rows mirrored": (mirrored, lambda table: rows(table, "mirrored")),
    "rows of one bit": (lambda: ready_table("0.1", 1), lambda table: rows(table, "bit")),
    "stairs": (lambda: STAIRS, stairs),
    "rows looked up": (looked_up, rows),
}
DEEPER = ("rows by thresholds", "rows mirrored", "rows looked up")  # each takes a compilation


@pytest.mark.parametrize(
    "make, naively",
    [pytest.param(*case, id=name, marks=[pytest.mark.slow] * (name in DEEPER)) for name, case in CASES.items()],
)
def test_packets_are_those_of_the_definition(make: Any, naively: Any) -> None:
    table = make()
    made = Firmware(table, budget_epsilon=11 * table.epsilon, reserve=3, sketch=SKETCH)
    assert live_alike(made, Sketched(naively(table), SKETCH)) > 11


@pytest.mark.parametrize(
    "sketch", [Sketch(1, (5,), 65534, 0, 1), Sketch(3, (0, 2**15, 7), 2**15, 12, 16)], ids=["1", "16"]
)
def test_the_fewest_and_the_most_directions(sketch: Sketch) -> None:
    made = Firmware(ONE, budget_epsilon=160, sketch=sketch, numbers=("epoch", "sequence"))
    assert live_alike(made, Sketched(rows(ONE), sketch), n=sketch.n) == 24
    assert made.layout.which_bits == sketch.direction_bits


def test_what_a_firmware_says_of_its_sketch() -> None:
    made = Firmware(ONE, sketch=SKETCH)
    assert (made.n, made.features, made.k, made.words, made.picks, made.blocks) == (14, 1024, 1, 2, 1, 1)
    assert made.kernel.name == "release_rows_search" and made.arguments["n"] == 1
    assert made.layout.bits == 4 + 16 + 10 + 3
    assert made.epsilon == certify(ONE).epsilon_record == Firmware(ONE).epsilon
    assert Firmware(certified(replace(ONE, features=99)), sketch=SKETCH).identity == made.identity


def test_the_identity_covers_all_of_the_sketch() -> None:
    others = [
        Sketch(14, (*CENTRE[:-1], 1), 40000, 1, 10),
        Sketch(14, CENTRE, 40001, 1, 10),
        Sketch(14, CENTRE, 40000, 2, 10),
        Sketch(14, CENTRE, 40000, 1, 11),
        Sketch(15, (*CENTRE, 0), 40000, 1, 10),
    ]
    found = {Firmware(ONE, sketch=sketch).identity for sketch in (SKETCH, *others)} | {Firmware(ONE).identity}
    assert len(found) == 7
    assert Firmware(ONE, sketch=replace(SKETCH, columns=("a",) * 14)).identity == Firmware(ONE, sketch=SKETCH).identity


def test_what_no_sensor_is_made_of() -> None:
    encoder = read_encoder(folder() / "encoders" / "default.json")
    with pytest.raises(InputError, match="not both"):
        Firmware(certified(replace(ONE, features=7)), encoder, sketch=SKETCH)
    for table in (several(ONE, 3), ready_table("6.4", "all")):
        with pytest.raises(InputError, match="release 1"):
            Firmware(table, sketch=SKETCH)
        with pytest.raises(InputError, match="release 1"):
            sketch_records(np.zeros((2, 14), np.uint16), table, SKETCH)
    Firmware(certified(replace(ONE, features=1)), sketch=SKETCH)  # for how many features it was made is all one


# ── many records ──


def test_values_are_the_definition_s() -> None:
    chance = np.random.default_rng(5)
    x = chance.integers(0, 2**16, (200, 14)).astype(np.uint16)
    numbers = chance.integers(0, 1024, 200)
    wanted = [naive_sketch.sketch(r.tolist(), CENTRE, int(q), 40000, 1) for r, q in zip(x, numbers, strict=True)]
    assert SKETCH.value(x, numbers).tolist() == wanted


@pytest.mark.parametrize("table", [ONE, STAIRS], ids=["rows", "stairs"])
def test_released_records_are_unbiased_and_even(table: Any) -> None:
    """Two records, half of the rows each; four directions. Six standard deviations, of the estimate by the table."""
    sketch = Sketch(14, CENTRE, 40000, 1, 2)
    two, count = np.array([[0] * 14, [2**15] * 14], np.uint16), 40_000
    numbers, y = sketch_records(np.repeat(two, count // 2, axis=0), table, sketch, seed=[1, 2])
    which = np.repeat([0, 1], count // 2)
    for number in range(4):
        for record in (0, 1):
            mine = (numbers == number) & (which == record)
            assert abs(mine.sum() - count / 8) < 6 * (count / 2 * 3 / 16) ** 0.5
            u = naive_sketch.sketch(two[record].tolist(), CENTRE, number, 40000, 1) / 2**15
            assert abs(table.estimate(y[mine]).mean() - u) < 6 * table.estimate_sd / mine.sum() ** 0.5


def test_directions_and_draws_have_words_of_their_own() -> None:
    """With u = 0 for every direction, symbols come as the table's counts say, whatever the direction."""
    sketch = Sketch(14, CENTRE, 40000, 1, 1)
    x = np.tile(np.array(CENTRE, np.uint16), (40_000, 1))
    counts = np.array(ONE.counts[0]) / 2**16
    for seed in (3, None):
        numbers, y = sketch_records(x, ONE, sketch, seed)
        for number in (0, 1):
            drawn = np.bincount(y[numbers == number], minlength=len(counts)) / (numbers == number).sum()
            assert abs(drawn - counts).max() < 6 * (0.25 / 20_000) ** 0.5


def test_a_seed_makes_the_same_again_in_any_number_of_threads() -> None:
    x = np.random.default_rng(1).integers(0, 2**15, (20_000, 14)).astype(np.uint16)
    one, two, other, own = (sketch_records(x, ONE, SKETCH, *given) for given in ((7, 1), (7, 2), (8, 1), (None,)))
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    for differs in (other, own):
        assert all((a != b).any() for a, b in zip(one, differs, strict=True))


def test_a_table_that_does_not_hold_releases_no_sketch() -> None:
    forged = replace(ONE, epsilon=Decimal("0.1"))
    with pytest.raises(InputError, match="nothing is released"):
        sketch_records(np.zeros((2, 14), np.uint16), forged, SKETCH)
    with pytest.raises(InputError, match="no sensor is made"):
        Firmware(forged, sketch=SKETCH)


@pytest.mark.parametrize(
    "x, numbers, what",
    [
        (np.zeros((2, 13), np.uint16), [0, 1], "14 features"),
        (np.zeros(14, np.uint16), [0], "14 features"),
        (np.zeros((2, 14), np.uint16), [0, 1024], "0 to 1023"),
        (np.zeros((2, 14), np.uint16), [0, -1], "0 to 1023"),
        (np.zeros((2, 14), np.uint16), [0.5, 1], "0 to 1023"),
        (np.zeros((2, 14), np.uint16), [0], "records"),
    ],
)
def test_other_records_and_directions_are_refused(x: Any, numbers: Any, what: str) -> None:
    with pytest.raises(InputError, match=what):
        SKETCH.value(x, numbers)


# ── what is asked for, and the file ──


@pytest.mark.parametrize("root", [0.5001, 0.7, 1.0, 1.3, 2.0, 2.0001, 17.5, 4095.9, 4096.0])
def test_a_bound_is_rounded_to_the_format(root: float) -> None:
    made = Sketch.of([0.25, 1, 0], root, 4)
    assert made.centre == (2**13, 2**15, 0) and made.middle.tolist() == [0.25, 1, 0]
    assert abs(made.root / root - 1) < 2**-16 + 1e-12
    assert made.root == 2**made.halvings * 2**15 / made.factor


@pytest.mark.parametrize("halvings", [0, 1, 7, 12])
def test_a_bound_that_was_rounded_stays(halvings: int) -> None:
    for factor in (2**15, 2**15 + 1, 40000, 46341, 2**16 - 3, 2**16 - 2):
        made = Sketch(1, (77,), factor, halvings, 4)
        assert Sketch.of(made.middle.tolist(), made.root, 4) == made


@pytest.mark.parametrize(
    "centre, root, bits",
    [
        ([0.5], 0.0, 1),
        ([0.5], float("nan"), 1),
        ([float("inf")], 1.0, 1),
        ([], 1.0, 1),
        ([0.5], 1.0, 0),
        ([0.5], 1.0, 17),
    ],
)
def test_what_is_no_sketch(centre: list[float], root: float, bits: int) -> None:
    with pytest.raises(InputError):
        Sketch.of(centre, root, bits)


RANGES = (Range("pulse", 20.0, 250.0, "1/min"), Range("steps", 0.0, 1e5, ""))
NAMED = Sketch.of([0.2, 0.3], 1.1, 9, ("pulse", "steps"), RANGES)


def test_a_sketch_is_read_as_it_was_written(tmp_path: Path) -> None:
    for sketch in (SKETCH, NAMED):
        write_sketch(sketch, tmp_path / "s.json")
        found = read_sketch(tmp_path / "s.json")
        assert found == sketch and (found.columns, found.ranges) == (sketch.columns, sketch.ranges)


WRONG: dict[str, dict[str, Any]] = {
    "another content": {"content": "sensorsim encoder"},
    "a newer version": {"schema_version": 2},
    "no whole number": {"factor": 40000.0},
    "a flag for a number": {"direction_bits": True},
    "too many directions": {"direction_bits": 17},
    "a factor below one": {"factor": 32767},
    "too many halvings": {"halvings": 13},
    "a centre above one": {"centre": [0, 2**15 + 1]},
    "a short centre": {"centre": [1]},
    "a centre of text": {"centre": "12"},
    "no features": {"n": 0, "centre": []},
    "columns of another number": {"columns": ["a"]},
    "a column with a line feed": {"columns": ["a\n", "b"]},
    "a range upside down": {"ranges": [{"name": "a", "low": 2, "high": 1, "unit": ""}] * 2},
    "a range without an end": {"ranges": [{"name": "a", "low": 2, "unit": ""}] * 2},
    "a range of 400 digits": {"ranges": [{"name": "a", "low": 2, "high": 10**400, "unit": ""}] * 2},
    "a factor of 400 digits": {"factor": 10**400},
    "a centre of 400 digits": {"centre": [0, -(10**400)]},
    "a flag for a version": {"schema_version": True},
    "a broken version": {"schema_version": 1.0},
    "a text for a version": {"schema_version": "1"},
    "no version yet": {"schema_version": 0},
    "a version of 4,000 digits": {"schema_version": 10**4000},
    "a range of text": {"ranges": [{"name": "a", "low": "1", "high": 2, "unit": ""}] * 2},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_other_files_are_one_sentence(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_sketch(NAMED, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError) as error:
        read_sketch(path)
    assert "s.json" in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 250
