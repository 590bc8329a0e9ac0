"""Python 3.11 to 3.14: the same answers from each that is here, from 3.14 in Pyodide, and where no thread can start."""

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from command import run
from pages import ROOT

from sensorsim.language.types import Record

PURE = ("click", "rich", "pygments", "markdown_it", "mdurl")  # what these commands need, in plain Python
TABLE = "rows-eps1.6-1.txt"
COMMANDS = {
    "help": ["--help"],
    "cost": ["cost", "--n", "14", "--l", "7"],
    "kernel": ["kernel", "spof"],
    **{f"kernel of {name}.py": ["kernel", f"{name}.py:late"] for name in ("late", "text", "nope")},
    "noise check": ["noise", "check", TABLE],
    "noise make": ["noise", "make", "--epsilon", "1", "--out", "made.txt"],
    "claims": ["claims", "cost-saving"],
    "cpus check": ["cpus", "check"],
    "an error": ["cost", "--n", "14", "--l", "20"],
}
WRONG = ("kernel of nope.py", "an error")
LATE = '''"""A kernel whose annotations Python keeps as text."""

from __future__ import annotations

from sensorsim.language import Q, add, kernel

BYTE = Q("byte", "u32", 0, 0, 255, "a byte")
SUM = Q("sum", "u32", 0, 0, 510, "two bytes")


@kernel()
def late(a: BYTE, b: BYTE) -> SUM:
    """Add two bytes.

    Scaling and overflow: at most 510.
    """
    return add(a, b)
'''
READ_COPIES = """
from pathlib import Path
from sensorsim._util.errors import InputError
from sensorsim.language.static_reader import declared_kernels
for name in ("late.py", "plain.py", "text.py", "nope.py"):
    try:
        print(name, declared_kernels(Path(name))["late"].prove().result)
    except InputError as error:
        print(name, error)
"""
REFUSE = """
from sensorsim._util.errors import InputError
from sensorsim._util.files import check_targets
for place in ("round", "to round", "x" * 300, "a\\0b", "missing/new", "late.py/new", ".", "new"):
    try:
        check_targets([place])
        print("may be written")
    except InputError as error:
        print(ascii(str(error)))
"""
COMPILE = """
import pathlib, sys, warnings
warnings.simplefilter("error")
for path in sorted(pathlib.Path({site!r}, "sensorsim").rglob("*.py")):
    compile(path.read_bytes(), str(path), "exec")
print(*sys.version_info[:2], sep=".")
"""
PYODIDE = "pyodide@314.0.7"  # with Python 3.14


def interpreters():
    """Return the Pythons from 3.11 to 3.14 of this machine, by version."""
    found = {}
    for minor in (11, 12, 13, 14):
        name = f"python3.{minor}"
        for path in [shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}"))]:
            if path and subprocess.run([path, "--version"], capture_output=True).returncode == 0:
                found[name] = str(path)
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Make a folder with the package and what it needs to start, all of it plain Python."""
    folder = tmp_path_factory.mktemp("site")
    without = shutil.ignore_patterns("__pycache__", "*.so")
    for name in PURE:
        shutil.copytree(Path(importlib.util.find_spec(name).origin).parent, folder / name, ignore=without)
    shutil.copytree(ROOT / "sensorsim", folder / "sensorsim", ignore=without)
    for name in ("kernels", "tables"):
        shutil.copytree(ROOT / name, folder / "sensorsim" / name, ignore=without)
    return folder


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    shutil.copy(ROOT / "tables" / "noise" / TABLE, folder)
    (folder / "round").symlink_to("to round")
    (folder / "to round").symlink_to("round")
    plain = LATE.replace("from __future__ import annotations\n\n", "")
    texts = {"late": LATE, "plain": plain}
    texts |= {"text": plain.replace("b: BYTE", 'b: "BYTE"'), "nope": plain.replace("b: BYTE", "b: NOPE")}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory):
    """The folder of Pyodide, or skip where npm cannot install it."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("no node and npm here")
    folder = tmp_path_factory.mktemp("pyodide")
    asked = {"cwd": folder, "capture_output": True, "text": True, "timeout": 600}
    done = subprocess.run(["npm", "install", "--no-save", "--prefix", str(folder), PYODIDE], **asked)
    if done.returncode:
        pytest.skip(f"npm cannot install {PYODIDE}")
    return folder / "node_modules" / "pyodide"


def with_python(python, site, work, words):
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST_"))}
    bare |= {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "80", "NO_COLOR": "1"}
    program = ["-c", words[1]] if words[0] == "-c" else ["-m", "sensorsim", *words]
    done = subprocess.run([python, "-W", "error", *program], cwd=work, env=bare, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def with_node(pyodide, site, work, words):
    program = ["node", str(ROOT / "tests" / "support" / "pyodide.mjs"), *map(str, (pyodide, site, work)), *words]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


def agree(site, work, other):
    """Compare what is printed; the copies in a package are read by a reader of their own."""
    more = {"copies": ["-c", READ_COPIES], "places": ["-c", REFUSE]}
    for name, words in (COMMANDS | more).items():
        ours, theirs = with_python(sys.executable, site, work, words), other(words)
        assert theirs == ours, name
        assert ours[0] == (2 if name in WRONG else 0), ours


@pytest.mark.slow
@pytest.mark.parametrize("name", interpreters())
def test_another_python_gives_the_same(name, site, work):
    python = interpreters()[name]
    agree(site, work, lambda words: with_python(python, site, work, words))
    code, printed, said = with_python(python, site, work, ["-c", COMPILE.format(site=str(site))])
    assert (code, f"python{printed.strip()}") == (0, name), said


@pytest.mark.slow
def test_python_3_14_in_pyodide_gives_the_same(pyodide, site, work):
    agree(site, work, lambda words: with_node(pyodide, site, work, words))
    code, printed, said = with_node(pyodide, site, work, ["-c", COMPILE.format(site="/site")])
    assert (code, printed.strip()) == (0, "3.14"), said


def test_fields_are_found_where_annotations_are_evaluated_late():
    """From 3.14 on a class keeps no `__annotations__` of its own: Python makes them when they are asked for."""

    class Late(type):
        __annotations__ = property(lambda cls: {"first": int, "second": int})

    class Pair(Record, metaclass=Late):
        second = 2

    assert (Pair(1).first, Pair(1).second) == (1, 2) and repr(Pair(3, 4)) == "Pair(first=3, second=4)"


@pytest.mark.parametrize("words", [["plan", "--features", "1"], ["claims", "cost-saving"], ["cost"]], ids=" ".join)
def test_no_thread_is_needed(words, monkeypatch, capsys):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    code, printed, said = run(capsys, *words)
    assert code == 0 and printed and "thread" not in said, said
