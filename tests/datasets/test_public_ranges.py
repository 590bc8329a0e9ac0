"""Public ranges: scaling there and back, files of strangers, and what the command line says of them."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sensorsim._util.errors import InputError
from sensorsim.commands.program import main
from sensorsim.datasets.public_ranges import (
    Range,
    from_unit,
    outside,
    ranges_for,
    read_ranges,
    ready_ranges,
    to_unit,
)

UNIT = Fraction(1, 2**53)  # one rounding, relative
LEAST = Fraction(1, 2**1074)  # and absolute: the smallest double
HEADER = "name,low,high,unit\n"


@st.composite
def some_ranges(draw):
    low = draw(st.floats(-1e9, 1e9))
    high = low + draw(st.floats(1e-3, 1e9))
    return Range("x", low, high, "")


@given(some_ranges(), st.lists(st.one_of(st.floats(-2e9, 2e9), st.floats(-1e300, 1e300)), min_size=1, max_size=9))
def test_scaling_against_exact_fractions(known, readings):
    x = to_unit(np.array(readings)[:, None], [known])[:, 0]
    back = from_unit(x[:, None], [known])[:, 0]
    low, high = Fraction(known.low), Fraction(known.high)
    for reading, scaled, again in zip(readings, x, back, strict=True):
        clipped = min(max(Fraction(reading), low), high)
        exact = (clipped - low) / (high - low)
        assert abs(Fraction(scaled) - exact) <= 4 * UNIT * exact + LEAST  # two differences and a quotient are rounded
        # Back: the error of x times the span, one rounding each of 1 - x, two products and a sum.
        assert abs(Fraction(again) - clipped) <= 12 * UNIT * max(abs(low), abs(high))
    assert outside(np.array(readings)[:, None], [known]) == (sum(not low <= r <= high for r in readings),)


@given(some_ranges())
@example(Range("x", -1e9, 0.1, ""))  # where low plus the width is not high
def test_the_ends_of_a_range_are_0_and_1_exactly(known):
    ends = np.array([[known.low], [known.high]])
    assert to_unit(ends, [known]).ravel().tolist() == [0.0, 1.0]
    assert (from_unit([[0.0], [1.0]], [known]) == ends).all()


def test_scaling_by_hand_and_in_any_shape():
    both = [Range("a", -8, 8, "g"), Range("b", 20, 60, "")]
    raw = [[-8.0, 30.0], [4.0, 70.0]]
    assert to_unit(raw, both).tolist() == [[0.0, 0.25], [0.75, 1.0]]
    assert to_unit([raw, raw], both).shape == (2, 2, 2)
    assert from_unit([0.5, 0.25], both).tolist() == [0.0, 30.0]
    assert raw == [[-8.0, 30.0], [4.0, 70.0]]  # left as it was
    for wrong in ([1.0], 1.0, [[1.0, 2.0, 3.0]]):
        with pytest.raises(InputError, match="meet 2 ranges"):
            to_unit(wrong, both)


def test_the_ready_ranges():
    ready = ready_ranges()
    assert (ready["TotalSteps"].low, ready["TotalSteps"].high) == (0, 40_000)
    signs = ("heart_rate", "spo2", "respiratory_rate", "skin_temperature", "core_temperature", "blood_glucose", "eda")
    signs += ("systolic_blood_pressure", "diastolic_blood_pressure", "hrv_rmssd", "steps_per_minute", "ecg", "bmi")
    assert set(signs) <= set(ready)
    assert ready["acceleration_x"].low == -ready["acceleration_x"].high < 0
    # A resting adult, as any textbook has it, lies well inside.
    for name, value in {"heart_rate": 70, "spo2": 98, "respiratory_rate": 14, "core_temperature": 37}.items():
        assert ready[name].low < value < ready[name].high
    assert all(known.unit and known.name == name for name, known in ready.items())
    # Names that differ in capitals and underscores only would be one name.
    assert len({name.lower().replace("_", "") for name in ready}) == len(ready)
    ready.clear()
    assert ready_ranges()  # nobody spoils it for others


def test_a_column_finds_its_range(tmp_path):
    found = ranges_for(("Heart Rate", "Calories", "Calories", "SKIN_TEMPERATURE"))
    assert [known.name for known in found] == ["Heart Rate", "Calories", "Calories", "SKIN_TEMPERATURE"]
    assert (found[0].low, found[0].high) == (ready_ranges()["heart_rate"].low, ready_ranges()["heart_rate"].high)
    mine = tmp_path / "mine.csv"
    mine.write_text(HEADER + "Calories,-5,5,J\n")
    own = ranges_for(("Calories", "spo2"), mine)
    assert own[0] == Range("Calories", -5, 5, "J") and own[1].unit == "%"
    with pytest.raises(InputError, match=r"no public range is known for left, right; .*left,LOW,HIGH,UNIT"):
        ranges_for(("left", "spo2", "right", "left"))
    with pytest.raises(InputError, match=r"mine\.csv has no range for left, .*left,LOW,HIGH,UNIT"):
        ranges_for(("left",), mine)
    with pytest.raises(InputError, match="and 15 more"):
        ranges_for([f"column {place}" for place in range(20)])


def test_a_file_of_ones_own(tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_bytes(
        b'\xef\xbb\xbf# mine\r\nname,low,high,unit\r\n\r\n a , -1.5e1 , +.5 , \xc2\xb5S\r\n"b, left",0,1,\r\n'
    )
    assert read_ranges(mine) == {"a": Range("a", -15.0, 0.5, "µS"), "b, left": Range("b, left", 0.0, 1.0, "")}


HOSTILE = {
    "empty": ("", "line 1: the header is missing"),
    "no header": ("a,0,1,s\n", "line 1: the header is 'a,0,1,s'; it must be name,low,high,unit"),
    "nothing below": (HEADER, "holds no range"),
    "few cells": (HEADER + "a,0,1\n", "line 2 has 3 cells"),
    "decimal comma": (HEADER + "a,0,36,5,s\n", "line 2 has 5 cells"),
    "semicolons": ("name;low;high;unit\na;0;1;s\n", "the header is 'name;low;high;unit'"),
    "no name": (HEADER + ",0,1,s\n", "line 2: nothing is no name"),
    "long name": (HEADER + "a" * 5000 + ",0,1,s\n", "line 2: a{40}… is no name"),
    "strange name": (HEADER + "a\x1b[31m,0,1,s\n", r"line 2: a\?\[31m is no name"),
    "word": (HEADER + "a,few,1,s\n", "line 2: low is few"),
    "blank": (HEADER + "a,0,,s\n", "line 2: high is empty"),
    "nan": (HEADER + "a,nan,1,s\n", "line 2: low is nan"),
    "too large": (HEADER + "a,0,1e999,s\n", "line 2: high is 1e999"),
    "underscore": (HEADER + "a,0,1_000,s\n", "line 2: high is 1_000"),
    "other digits": (HEADER + "a,0,\uff11,s\n", "line 2: high is"),
    "reversed": (HEADER + "# why\na,2,1,s\n", "line 3: the range of a is 2.0 … 1.0; both must be"),
    "too wide": (HEADER + "a,-1.7e308,1.7e308,s\n", "cannot be scaled"),
    "too narrow": (HEADER + "a,0,5e-324,s\n", "cannot be scaled"),
    "twice": (HEADER + "a,0,1,s\nb,0,1,s\na,0,2,s\n", "line 4: a has a range already"),
    "open quote": (HEADER + '"a,0,1,s\n', "line 2 is not CSV"),
    "huge cell": (HEADER + "a" * 200_000 + ",0,1,s\n", "line 2 is not CSV"),
    "Latin-1": (HEADER.encode() + b"a,0,1,\xb5S\n", "not UTF-8"),
    "UTF-16": ((HEADER + "a,0,1,s\n").encode("utf-16"), "not UTF-8"),
    "too long": (HEADER + "# remark\n" * 600_000, "more than 4194304 bytes"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(case, tmp_path, capsys):
    content, words = HOSTILE[case]
    mine = tmp_path / "mine.csv"
    mine.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=words) as caught:
        read_ranges(mine)
    assert len(str(caught.value)) < 300 + len(str(mine))
    with pytest.raises(SystemExit) as end:
        main(["data", "ranges", str(mine)])
    said = capsys.readouterr()
    assert end.value.code == 2
    assert said.out == "" and said.err == f"Error: {caught.value}\n"


@settings(max_examples=200)
@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode), st.text("a0,\n\r\"'#.-e", max_size=40)))
def test_no_file_gives_a_traceback(tmp_path_factory, content):
    mine = tmp_path_factory.getbasetemp() / "fuzzed.csv"
    mine.write_bytes(content if isinstance(content, bytes) else (HEADER + content).encode())
    try:
        found = read_ranges(mine)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert all(math.isfinite(known.low) and known.low < known.high for known in found.values())


@pytest.mark.parametrize("limits", [(1, 1), (2, 1), (math.nan, 1), (0, math.inf)])
def test_a_range_cannot_be_made_wrong(limits):
    with pytest.raises(InputError, match="the range of a"):
        Range("a", *limits, "")


def test_what_is_printed_can_be_read_again(tmp_path, capsys):
    main(["data", "ranges", "--format", "csv"])
    mine = tmp_path / "mine.csv"
    mine.write_text(capsys.readouterr().out)
    assert read_ranges(mine) == ready_ranges()
    main(["data", "ranges", str(mine), "--format", "json"])
    said = json.loads(capsys.readouterr().out)["ranges"]
    assert {"name": "TotalSteps", "low": 0, "high": 40000, "unit": "steps"} in said
    assert len(said) == len(ready_ranges())
    main(["data", "ranges"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if "acceleration_x" in line] == [["acceleration_x", "-8", "8", "g"]]
