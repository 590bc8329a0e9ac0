"""Anybody's CSV or Parquet: what is read, what is refused and how, persons and missing cells."""

import csv
import decimal
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

from sensorsim._util.errors import InputError
from sensorsim.commands.program import main
from sensorsim.datasets.dataset import load
from sensorsim.datasets.public_ranges import Range

MINE = {"a": Range("a", -10.0, 10.0, "g"), "b": Range("b", 0.0, 4.0, "mV")}


WRONG_FILES = {
    "empty": ("", "no column names"),
    "blank first line": ("\nId,a\n1,2\n", "no column names"),
    "binary": (bytes(range(256)) * 4, "not UTF-8"),
    "UTF-16": ("Id,a\n1,2\n".encode("utf-16"), "not UTF-8"),
    "Latin-1": (b"Id,a\n1,\xb5\n", "not UTF-8"),
    "semicolons": ("Id;a\n1;2\n", "does not separate its columns by commas"),
    "header twice": ("Id,a,a\n1,2,3\n", "two columns a"),
    "header alone": ("Id,a\n", "no rows"),
    "decimal comma": ("Id,a\n1,2,5\n1,3,5\n", "cannot be read as CSV"),
    "open quote": ('Id,a\n1,"2\n1,3\n', "EOF inside string"),
    "missing": ("Id,a\n1,2\n1,\n", "row 3, column a: the cell is missing"),
    "short line": ("Id,b,a\n1,2,3\n1\n", "row 3, column a: the cell is missing"),
    "spaces": ("Id,a\n1,  \n", "row 2, column a: the cell is missing"),
    "blank line inside": ("Id,a\n1,2\n\n1,3\n", "row 3, column Id: the cell is missing"),
    "nobody's": ("Id,a\n1,2\n,3\n", "row 3, column Id: the cell is missing"),
    "too large": ("Id,a\n1,1e999\n", "row 2, column a: inf is not"),
    "word": ("Id,a\n1,2\n1,much\n", "row 3, column a: much is not"),
    "word late": ("Id,a\n" + "1,2\n" * 70_000 + "1,much\n", "row 70002, column a: much is not"),
    "truth": ("Id,a\n1,True\n1,False\n", "row 2, column a: True is not"),
    "thousands": ('Id,a\n1,"1,000"\n', "row 2, column a: 1,000 is not"),
    "zero byte": (b"Id,a\n1,2\x003\n", r"row 2, column a: 2\?3 is not"),
    "escape": ("Id,a\n1,\x1b[31m\n", r"row 2, column a: \?\[31m is not"),
    "hexadecimal": ("Id,a\n1,0x10\n", "row 2, column a: 0x10 is not"),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_wrong_file_is_one_sentence_and_nothing_is_written(case, written, tmp_path, capsys, monkeypatch):
    content, words = WRONG_FILES[case]
    path = written(content)
    ranges = written("name,low,high,unit\na,-10,10,g\n", "ranges.csv")
    with pytest.raises(InputError, match=words):
        load(path, columns=("a",), ranges=MINE, m=1)
    there = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["sweep", "--data", path, "--columns", "a", "--ranges", ranges, "--m", "1", "--l", "1"])
    said = capsys.readouterr()
    assert end.value.code == 2 and said.out == ""
    assert said.err.startswith("Error: ") and said.err.count("\n") == 1 and len(said.err) < 400 + len(path)
    assert sorted(tmp_path.iterdir()) == there


def test_places_that_are_no_files_are_refused(tmp_path):
    for path in (tmp_path / "absent.csv", tmp_path, "/dev/zero", "https://example.org/days.csv"):
        with pytest.raises(InputError):
            load(str(path))


CELLS = (
    "",
    "1",
    "-2.5",
    " 3",
    "NaN",
    "inf",
    "1e999",
    "True",
    "x",
    '"',
    '"a\nb"',
    "1,5",
    "\0",
    "é",
    "9" * 30,
    "  ",
    "#",
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.sampled_from(CELLS), max_size=4), max_size=5), st.booleans())
def test_no_file_gives_a_traceback(tmp_path_factory, rows, drop):
    path = tmp_path_factory.getbasetemp() / "fuzzed.csv"
    path.write_text("Id,a\n" + "\n".join(",".join(row) for row in rows))
    try:
        made = load(str(path), columns=("a",), ranges=MINE, m=1, drop_missing=drop)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert made.x.shape == (len(made.person), 1) and made.x.min() >= 0 and made.x.max() <= 1


NUMBERS = st.floats(-1e6, 1e6).map(repr)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(("7", "007", "10", "9", "Ann")), NUMBERS, NUMBERS), min_size=1, max_size=12))
def test_records_against_the_csv_module(tmp_path_factory, rows):
    """Both limits of both ranges, persons and clipping by plain Python."""
    path = tmp_path_factory.getbasetemp() / "plain.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("who", "a", "b"), *rows])
    made = load(str(path), columns=("b", "a", "b"), person="who", ranges=MINE, m=1)
    for row, (_, a, b) in enumerate(rows):
        want_a = (min(max(float(a), -10), 10) + 10) / 20
        want_b = min(max(float(b), 0), 4) / 4
        np.testing.assert_allclose(made.x[row], [want_b, want_a, want_b], rtol=1e-15, atol=0)
    same = [[one[0] == other[0] for other in rows] for one in rows]
    assert (made.person[:, None] == made.person).tolist() == same
    out_a, out_b = sum(abs(float(a)) > 10 for _, a, _ in rows), sum(not 0 <= float(b) <= 4 for _, _, b in rows)
    assert made.clipped_in == (out_b, out_a, out_b) and made.clipped == 2 * out_b + out_a


def test_persons_are_told_apart_and_stand_in_order(written):
    text = "Id,a\n10,1\n9,1\n007,1\n7,1\n10,2\n" + "".join(f"9007199254740992{end},1\n" for end in (1, 2, 1))
    made = load(written(text), columns=("a",), ranges=MINE, m=1)
    assert made.person.tolist() == [3, 2, 0, 1, 3, 4, 5, 4]
    assert made.persons_known
    names = load(written("who,a\nBob,1\nAnn,1\nBob,1\n"), columns=("a",), person="who", ranges=MINE, m=1)
    assert names.person.tolist() == [1, 0, 1]


def test_a_person_s_number_may_be_of_any_length(written):
    text = f"Id,a\n{'9' * 5000},1\n{'1' * 5000},1\n12,1\n{'0' * 5000}9,1\n{'1' * 5000},2\n"
    made = load(written(text), columns=("a",), ranges=MINE, m=1)
    assert made.person.tolist() == [3, 2, 1, 0, 2]


def test_without_persons_every_row_is_one(written):
    made = load(written("a,b\n1,2\n1,2\n-3,9\n"), columns=("a", "b"), ranges=MINE, m=3)
    assert not made.persons_known
    assert made.person.tolist() == [0, 1, 2] and sorted(made.user) == [0, 1, 2]
    with pytest.raises(InputError, match="3 persons, fewer than m = 4"):
        load(written("a,b\n1,2\n1,2\n-3,9\n"), columns=("a", "b"), ranges=MINE, m=4)


def test_missing_cells_can_be_dropped_with_their_persons(written):
    path = written("Id,a,b,c\n1,1,,\n2,2,2,\n,3,3,3\n3,NaN,1,\n2,4,4,4\n9,1,1,\n\n\n")
    made = load(path, columns=("a", "b"), ranges=MINE, m=1, drop_missing=True)
    np.testing.assert_allclose(made.x, [[0.6, 0.5], [0.7, 1.0], [0.55, 0.25]])
    assert made.person.tolist() == [0, 0, 1]  # persons 2 and 9
    assert made.dropped == 3
    with pytest.raises(InputError, match="word is not a finite number"):  # a word is no missing cell
        load(written("Id,a\n1,word\n1,\n"), columns=("a",), ranges=MINE, m=1, drop_missing=True)
    with pytest.raises(InputError, match="no row without a missing cell"):
        load(written("Id,a\n1,\n"), columns=("a",), ranges=MINE, m=1, drop_missing=True)


def test_a_file_that_the_generator_cannot_be_beside_is_told_so(written, tmp_path, capsys):
    file = written("who,hr\na,1\nb,2\n")
    for words in (("compare", file), ("fit", file, "--out", tmp_path)):
        with pytest.raises(SystemExit) as ended:
            main(["data", *map(str, words)])
        said = capsys.readouterr().err
        assert ended.value.code == 2 and "--columns" not in said and "that `sensorsim data make` writes" in said


# ---- Parquet


def parquet(columns, **options):
    """The bytes of a Parquet file."""
    arrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    writer.write_table(columns if isinstance(columns, arrow.Table) else arrow.table(columns), file, **options)
    return file.getvalue()


SAME_CELLS = st.one_of(st.none(), st.integers(-20, 20), st.floats(-20, 20).map(lambda value: round(value, 3)))
WHO = st.one_of(st.none(), st.sampled_from(["7", "007", "10", "Ann"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(WHO, SAME_CELLS, SAME_CELLS), min_size=1, max_size=12), st.booleans(), st.integers(1, 5))
def test_parquet_gives_the_same_records_or_the_same_sentence_as_csv(tmp_path_factory, rows, drop, group):
    folder = tmp_path_factory.getbasetemp()
    frame = pd.DataFrame(rows, columns=["Id", "a", "b"]).astype({"Id": object, "a": float, "b": float})
    frame.to_csv(folder / "same.csv", index=False)
    (folder / "same.parquet").write_bytes(parquet(dict(frame), row_group_size=group))
    found = []
    for name in ("same.csv", "same.parquet"):
        try:
            made = load(str(folder / name), columns=("b", "a"), ranges=MINE, m=1, drop_missing=drop)
            found.append((made.digest, made.clipped_in, made.dropped))
        except InputError as error:
            found.append(str(error).replace(name, "FILE"))
    assert found[0] == found[1]


def test_parquet_by_its_content_with_every_type_of_number_and_person(written):
    arrow = pytest.importorskip("pyarrow")
    halves = [0.5, 2.0, 0.5, None]
    typed = {
        "half": arrow.array(np.array([0.5, 2.0, 0.5, np.nan], np.float16)),
        "float": arrow.array(halves, arrow.float32()),
        "double": arrow.array(halves),
        "decimal": arrow.array(
            [None if v is None else decimal.Decimal(str(v)) for v in halves], arrow.decimal128(9, 1)
        ),
    }
    people = {
        "text": arrow.array(["9", "10", "9", "9"]),
        "large text": arrow.array(["9", "10", "9", "9"], arrow.large_string()),
        "whole": arrow.array([9, 10, 9, 9]),
        "float": arrow.array([9.0, 10.0, 9.0, 9.0]),
        "categories": arrow.array(["9", "10", "9", "9"]).dictionary_encode(),
        "twice": arrow.DictionaryArray.from_arrays(arrow.array([0, 1, 2, 0]), ["9", "10", "9"]),
        "coded numbers": arrow.array([9, 10, 9, 9]).dictionary_encode(),
    }
    for a in typed.values():
        for who in people.values():
            path = written(parquet({" Id": who, "a ": a, "b": [1, 2, 3, 4]}, row_group_size=3), "records.csv")
            made = load(path, columns=("a", "b"), ranges=MINE, m=1, drop_missing=True)
            assert made.person.tolist() == [0, 1, 0] and made.dropped == 1
            np.testing.assert_allclose(made.x, [[0.525, 0.25], [0.6, 0.5], [0.525, 0.75]])


def test_what_is_no_number_is_refused_only_if_asked_for(written):
    arrow = pytest.importorskip("pyarrow")
    columns = {"Id": [1, 2], "a": [1.0, 2.0], "nested": [[1], [2]], "said": ["1", "no"], "well": [True, False]}
    columns |= {
        "when": arrow.array([2**50, 0], arrow.timestamp("ms")),
        "named": arrow.array(["x", "y"]).dictionary_encode(),
    }
    path = written(parquet(columns), "mine.parquet")
    assert load(path, columns=("a",), ranges=MINE, m=1).x.shape == (2, 1)
    for name, kind in (("nested", "list"), ("said", "string"), ("well", "bool"), ("when", "timestamp")):
        with pytest.raises(InputError, match=rf"^mine\.parquet, column {name}: it holds {kind}"):
            load(path, columns=("a", name), ranges=MINE | {name: Range(name, 0, 1, "")}, m=1)
    with pytest.raises(InputError, match="column nested: it holds list"):
        load(path, columns=("a",), person="nested", ranges=MINE, m=1)
    assert load(path, columns=("a",), person="named", ranges=MINE, m=1).person.tolist() == [0, 1]


def test_wrong_parquet_is_one_sentence(written, monkeypatch, capsys, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    good = parquet({"Id": [1, 2], "a": [1.0, float("inf")]})
    run = arrow.DictionaryArray.from_arrays(arrow.array(np.zeros(2**20), arrow.int32()), arrow.array([0.0]))
    wrong = {
        "infinite": (good, "row 3, column a: inf is not a finite number"),
        "cut off": (good[:-9], "cut off"),
        "changed": (good[:-60] + b"\xff" * 40 + good[-20:], "cannot be read as Parquet"),
        "no rows": (parquet({"Id": arrow.array([], arrow.int64()), "a": arrow.array([], arrow.float64())}), "no rows"),
        "two columns": (parquet(arrow.table([[1], [2]], ["a", " a"])), "two columns a"),
        "many rows": (parquet({"a": run.cast(arrow.float64())}), "more than 1000000 cells"),
    }
    monkeypatch.setattr("sensorsim.datasets.record_tables.MOST_CELLS", 1_000_000)
    for content, words in wrong.values():
        path = written(content, "mine.parquet")
        with pytest.raises(InputError, match=words) as caught:
            load(path, columns=("a",), ranges=MINE, m=1)
        assert "\n" not in str(caught.value) and "mine.parquet" in str(caught.value)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(SystemExit) as end:
        main(["train", "--data", written(good, "mine.parquet"), "--out", str(tmp_path / "x.npz")])
    assert end.value.code == 2 and "pip install -c constraints.txt '.[data]'" in capsys.readouterr().err


def test_people_of_a_fleet(tmp_path):
    """A file's people, days in their order; the same in both forms."""
    from sensorsim.commands.fleet import people_of
    from sensorsim.commands.training_options import RecordOptions
    from sensorsim.fleets.settings import People

    rows = [("b", 1.0, 0.5), ("a", -10.0, 4.0), ("b", 2.0, 3.0), ("b", 30.0, None)]
    frame = pd.DataFrame(rows, columns=["who", "a", "b"])
    frame.to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "d.parquet").write_bytes(parquet(dict(frame)))
    ranges = tmp_path / "ranges.csv"
    ranges.write_text("name,low,high,unit\na,-10,10,g\nb,0,4,mV\n")
    for name in ("d.csv", "d.parquet"):
        given = {"data": str(tmp_path / name), "columns": "a,b", "person": "who", "ranges": str(ranges)}
        with pytest.warns(UserWarning, match="1 of 4 rows have a missing cell"):
            people = people_of(RecordOptions(**given, drop_missing=True), 0)
        want = [[(v + 10) / 20 * 2**15, w / 4 * 2**15] for v, w in ((-10, 4), (1, 0.5), (2, 3))]
        assert people.records.tolist() == np.rint(want).astype(int).tolist()
        assert (people.columns, people.count.tolist(), people.first.tolist()) == (("a", "b"), [1, 2], [0, 1])
    assert (
        people_of(RecordOptions(columns="TotalSteps,Calories"), 3).digest
        == People.generated(("TotalSteps", "Calories"), 3).digest
    )
    with pytest.raises(InputError, match="person is about a file"):
        people_of(RecordOptions(person="who"), 0)


BIG = """
import sys
from sensorsim.datasets import synthetic
frame = synthetic.make(rows=1_000_000, persons=40_000).round(3)
frame.to_csv(sys.argv[1], index=False) if sys.argv[1].endswith("csv") else frame.to_parquet(sys.argv[1])
"""
# The peak is that of this program: what getrusage says of a child begins with the size of the process it came from.
READ = """
import re, sys, time
from sensorsim.datasets.dataset import load
began = time.perf_counter()
made = load(sys.argv[1])
peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
print(len(made.x), time.perf_counter() - began, int(peak[1]) / 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_a_million_rows_load_in_seconds_and_below_a_gigabyte(end, tmp_path):
    path = str(tmp_path / f"big.{end}")
    subprocess.run([sys.executable, "-c", BIG, path], check=True)
    done = subprocess.run([sys.executable, "-c", READ, path], check=True, capture_output=True, text=True)
    rows, seconds, megabytes = map(float, done.stdout.split())
    assert rows == 1_000_000 and seconds < 15 and megabytes < 1000
