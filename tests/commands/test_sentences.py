"""Sentences about bad input name the true reason: the line, the option, the value, in few words."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bad_inputs import KERNEL, furnish
from command import run

import sensorsim as ss
from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim.costing.csv_schema import number
from sensorsim.noise.table_file import parse_table

ROOT = Path(__file__).parents[2]
NOISE = ROOT / "tables" / "noise"


def sealed(body: str) -> bytes:
    return f"{body}sha256 {hashlib.sha256(body.encode()).hexdigest()}\n".encode()


@pytest.mark.parametrize("place", range(20))
def test_every_line_of_a_table(place: int) -> None:
    """A word in place of any line is told with its number, or with that of the counts it belongs to."""
    text = (NOISE / "rows-eps1.6-1.txt").read_text()
    lines = text[: text.index("sha256")].splitlines()
    lines[place] = "nonsense"
    with pytest.raises(InputError) as caught:
        parse_table(sealed("\n".join(lines) + "\n"), "t.txt")
    expected = "is not a noise table" if place == 0 else f"t.txt line {place + 1}: "
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-0.5", "'-0.5' is not a number; write it like 4, 0.5 or 1/3"),
        ("1e3", "'1e3' is not a number"),
        ("+4", "'+4' is not a number"),
        ("9" * 50, "… has more than 40 characters".replace("… ", "…' ")),
        ("many", "'many' is not a number"),
        ("nan", "'nan' is not a number"),
        ("inf", "'inf' is not a number"),
        ("", "'' is not a number"),
        ("1/0", "'1/0' is not a number"),
        ("1e400", "'1e400' is not a number"),
    ],
)
def test_a_number_that_is_not_taken(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        number(text)
    assert reason in str(caught.value)


FILES = {
    "wrong_name.py": "from sensorsim.language import nope\n",
    "wrong_part.py": "from os.path import nope\n",
    "no_package.py": "import no_such_package\n",
    "none.py": "x = 1\n",
    "twice.py": KERNEL,
}
SAID = {
    "kernel wrong_name.py": "wrong_name.py:1: cannot import name 'nope' from 'sensorsim.language'; correct the name",
    "kernel wrong_part.py": "cannot import name 'nope' from 'posixpath'; correct the name in the import",
    "kernel no_package.py": "No module named 'no_such_package'; install it, or put it beside the file",
    "kernel none.py:x": "none.py declares no kernel",
    "kernel twice.py:nope": "twice.py declares no kernel 'nope'; it has twice",
    "export --out p --kernels twice.py:nope": "twice.py declares no kernel 'nope'",
    "plan --budget-epsilon x": "budget epsilon is 'x'",
    "plan --budget-epsilon -1": "budget epsilon is -1",
    "data make --out d.csv --rows 1 --persons 2": "1 row for 2 persons",
    "data compare missing.csv": "there is no file missing.csv; give a CSV file in UTF-8 with commas and one line of "
    "column names, or a Parquet file.",
    "data ranges words.txt": "the header is 'not what you are looking for'",
    "verify --elf words.txt --manifest x/MANIFEST.json": "words.txt: this is no ELF file",
    "figures --out d --records-runs 0": "--records-runs is 0",
}


@pytest.mark.parametrize("words", SAID)
def test_the_reason_is_the_true_one(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    furnish(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content)
    code, out, said = run(capsys, *words.split())
    assert (code, out) == (2, "") and SAID[words] in said and "/tmp" not in said, said


@pytest.mark.parametrize(
    "words", ["export --out p --encoder x.json", "evaluate --model x.npz", "kernel x.py", "noise check x.txt"]
)
def test_a_pipe_is_named_once(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = words.split()[-1]
    os.mkfifo(name)
    assert run(capsys, *words.split()) == (2, "", f"Error: {name} is a device or a pipe; give an ordinary file.\n")


def test_an_import_that_takes_long_says_what_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "SECONDS_OF_SILENCE", 0.0)
    Path("slow.py").write_text(f"import time\ntime.sleep(0.5)\n{KERNEL}")
    code, _, said = run(capsys, "kernel", "slow.py:twice")
    assert code == 0 and "importing slow.py …\n" in said


# ---- arguments in Python

ARGUMENTS: dict[str, tuple[Callable[[], object], str]] = {
    "unknown": (lambda: ss.plan(nope=3), "plan: got an unexpected keyword argument 'nope'; see help(sensorsim.plan)."),
    "missing": (lambda: ss.export(), "export: missing a required argument: 'out'; see help(sensorsim.export)."),
    "function": (lambda: ss.read_table("t", 3), "read_table: too many positional arguments"),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_a_wrong_argument_is_a_sentence_that_names_the_function(what: str) -> None:
    call, said = ARGUMENTS[what]
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).startswith(said)


# ---- long values in Python

LONG = ("x" * 3000, "a b " * 800, "9" * 3000)
CALLS: dict[str, Callable[[Any], object]] = {
    "epsilon": lambda value: ss.noise_table(epsilon=value),
    "cpu": lambda value: ss.cost(cpu=value),
    "kernel": lambda value: ss.kernel(value),
    "mechanism": lambda value: ss.train(mechanism=value),
    "data": lambda value: ss.train(data=value),
    "table": lambda value: ss.audit(value),
    "folder": lambda value: ss.export(value),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_long_value_is_not_repeated_whole(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for value in LONG:
        with pytest.raises(InputError) as caught:
            CALLS[what](value)
        assert len(str(caught.value)) <= 400 and "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_number_of_many_digits_is_not_repeated_whole() -> None:
    with pytest.raises(InputError) as caught:
        ss.plan(devices=10**290)
    assert len(str(caught.value)) < 150 and "…" in str(caught.value)
