"""What is wrong with a command line is said before any work: at once, without heavy imports, with nothing left."""

import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bad_inputs import HOLDS, declared, furnish, line, seen
from command import run

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import Flag, Output
from sensorsim.commands import COMMANDS
from sensorsim.commands.declare import options_of
from sensorsim.fleets.fleet_file import FleetFile
from sensorsim.training.results_file import ResultsFile

SECONDS = 1.0  # of processor time
OUTPUTS = {
    f"{name} {word}": (name, word, kind)
    for name, options in declared().items()
    for word, kind in options.items()
    if isinstance(kind, Output)
}
PLACES = {  # of a file {x}, or of a folder
    "no folder": "missing/{x}",
    "in a file": "table.txt/{x}",
    "no place for files": "/proc/{x}",
    "a circle": "loop/{x}",
    "no name": "",
    "too long": "x" * 300 + "{x}",
}
QUICK = ("no folder", "no place for files")
TAKEN = {  # folders that are made together with those above them
    ("figures", "missing/{x}"),
    ("data fit", "missing/{x}"),
}


def at(place: str, kind: Output) -> str:
    return place.format(x=f"new{kind.endings[0] if kind.endings else ''}")


class Program:
    """The commands in a folder: one process, which forks for each line that it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        script = str(Path(__file__).parents[1] / "support" / "forked.py")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, script], cwd=folder, text=True, **pipes)

    def ask(self, *words: str) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(words), file=self.process.stdin, flush=True)
        return dict(json.loads(self.process.stdout.readline()))

    def end(self) -> None:
        self.process.communicate()


def check_refused(lines: list[tuple[str, ...]], program: Program) -> list[dict[str, Any]]:
    """All lines are refused, as they should be; returns the answers."""
    before = seen(program.folder)
    answers, wrong = [program.ask(*words) for words in lines], []
    for words, found in zip(lines, answers, strict=True):
        sound = found["code"] == 2 and not found["out"] and found["error"].count("\n") == 1
        light = not {"torch", "numba"} & set(found.get("heavy", ()))
        if not (sound and light and found["seconds"] < SECONDS and found["error"].startswith("Error: ")):
            wrong.append((" ".join(words)[:150], found))
    assert not wrong, "\n".join(map(str, wrong[:10]))
    assert seen(program.folder) == before
    return answers


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("first")
    furnish(folder)
    made = Program(folder)
    yield made
    made.end()


def test_every_output_has_a_kind_of_its_own() -> None:
    """So that an option that writes cannot be added without its checks."""
    assert len(OUTPUTS) >= 25
    words = ("write", "draw ", "save", "folder for", "folder to", "where the files go", "where finished")
    others = {
        f"{name} {word}"
        for name, entry in COMMANDS.items()
        if entry.shell
        for word, one in options_of(entry.load()).items()
        if not isinstance(one.kind, Output | Flag) and one.help.lower().startswith(words)
    }
    assert others == {"train seed"}  # what it draws is noise


@pytest.mark.parametrize("what", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in PLACES])
def test_bad_places_are_refused_before_any_work(what: str, program: Program) -> None:
    """Every option that takes an output path."""
    place = PLACES[what]
    options = [one for one in OUTPUTS.values() if (one[0], place) not in TAKEN]
    lines = [line(name, {**HOLDS[name], option: at(place, kind)}) for name, option, kind in options]
    answers = check_refused(lines, program)
    assert all("/proc" not in found["error"] or "takes no files" in found["error"] for found in answers)


def test_standard_output_takes_one_file(program: Program) -> None:
    others, formed = ([one for one in OUTPUTS.values() if (one[2].form == "file") == file] for file in (False, True))
    with_format = {name for name, options in declared().items() if "--format" in options}
    both = [
        line(name, {**HOLDS[name], option: "-", "--format": "json"})
        for name, option, _ in formed
        if name in with_format
    ]
    twice = [("train", "--out", "-", "--encoder", "-"), ("plan", "--write-table", "-", "--plot", "-")]
    lines = [line(name, {**HOLDS[name], option: "-"}) for name, option, _ in others]
    assert all("standard output" in found["error"] for found in check_refused([*lines, *both, *twice], program))


def test_a_wrong_ending_is_refused(program: Program) -> None:
    lines = [
        line(name, {**HOLDS[name], option: f"x{ending}"})
        for name, option, kind in OUTPUTS.values()
        if kind.endings
        for ending in (".txt", "", ".jsn")
    ]
    assert all("give a name that ends in" in found["error"] for found in check_refused(lines, program))


LATE = (
    *("figures --out drawn --data missing.csv", "figures --out drawn --data words.txt --runs 1"),
    *("figures --out drawn --epsilon -1", "figures --out drawn --records-epsilon -1"),
    *("train --epsilon -1", "train --mechanism dpsgd --lr 0", "train --data missing.csv", "export --out /"),
    *("train --mechanism dpsgd --clip 1e300", "sweep --epsilon 0,-1", "sweep --c -1 --mechanism spof"),
    *("sweep --data missing.csv", "kernel mine.py:twice --c /", "kernel spof --cpu k7,nope"),
    *("kernel spof --verify host,nope", "cost --level machine --cpu cortex-m4,nope"),
    "fleet --devices 2 --days 0 --noise table.txt --out f.sqlite",
    "receive x0.hex --table table.txt --write-sketch s.json --root 0.1",
    "receive x0.hex --table table.txt --write-sketch s.json --direction-bits 17",
)


def test_numbers_names_and_files_are_checked_before_any_work(program: Program) -> None:
    check_refused([tuple(words.split()) for words in LATE], program)


def test_empty_paths_are_named_as_such(program: Program) -> None:
    for words, found in zip(EMPTY, check_refused([(*words.split(), "") for words in EMPTY], program), strict=True):
        assert "is empty; give it a value" in found["error"], (words, found["error"])


EMPTY = (
    *("kernel spof --c", "export --out", "cost --lock", "cost --check", "verify --elf", "verify", "receive --table t"),
    *("export --out p --encoder", "noise audit --package"),
)


# ---- what is written


ONE_FILE = {
    "noise make --epsilon 1.6 --release 1 --out": "t.txt",
    "plan --devices 100 --write-table": "t.txt",
    "receive x0.hex x1.hex --table table.txt --out": "r.json",
    "sensitivity --plot": "p.svg",
    "data make --out": "d.csv",
    "kernel mine.py:twice --lock": "k.lock",
    "report --no-claims --out": "r.html",
}


@pytest.mark.parametrize(
    "words", [one if one.startswith("noise") else pytest.param(one, marks=pytest.mark.slow) for one in ONE_FILE]
)
def test_standard_output_has_the_bytes_of_the_file(
    words: str, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(program.folder)
    name = ONE_FILE[words]
    file, shown = (program.ask(*words.split(), path) for path in (name, "-"))
    content = Path(name).read_text()
    Path(name).unlink()
    assert file["code"] == shown["code"] and shown["out"] == content[: len(shown["out"])] and content
    assert file["out"].replace(name, "-") in shown["error"] and not Path("-").exists()


def test_a_python_path_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a command line has a standard output to write to."""
    from sensorsim._util.files import write_whole

    monkeypatch.chdir(tmp_path)
    write_whole("-", "new")
    assert Path("-").read_text() == "new"


# ---- full disks


def test_a_full_folder_is_told_before_any_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    for words in ("sweep", "cost --plot x.svg", "export --out p", "figures --out drawn", "noise make --epsilon 1"):
        code, out, said = run(capsys, *words.split())
        assert (code, out) == (2, "") and f"No space left on device in {tmp_path}; make room" in said
    assert not list(tmp_path.iterdir())


def small(pages: int) -> Any:
    """A connection to a database that is full after so many pages."""
    connect = sqlite3.connect

    def connected(*given: Any, **named: Any) -> sqlite3.Connection:
        made = connect(*given, **named)
        made.execute(f"PRAGMA max_page_count = {pages}")
        return made

    return connected


@pytest.mark.parametrize("pages", [2, 9])
def test_results_on_a_full_disk(pages: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The disk is blamed, not the file; one without a result is gone."""
    monkeypatch.setattr(sqlite3, "connect", small(pages))
    path = tmp_path / "r.sqlite"
    with pytest.raises(InputError, match="No space left on device in"), ResultsFile(path, "digest") as kept:
        kept.put_runs("key", {"about": "x" * 100_000}, {0: {"a": 1}})
    assert not list(tmp_path.iterdir())


def test_results_that_are_there_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    with ResultsFile(path, "digest") as kept:
        kept.put_runs("key", {"about": 1}, {0: {"a": 1}})
    monkeypatch.setattr(sqlite3, "connect", small(9))
    with pytest.raises(InputError, match="No space left"), ResultsFile(path, "digest") as kept:
        kept.put("more", {"about": "x" * 100_000})
    monkeypatch.undo()
    with ResultsFile(path, "digest") as kept:
        assert kept.runs("key", 9) == {0: {"a": 1}}


def test_a_fleet_on_a_full_disk(program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = str(program.folder / "table.txt")
    settings, _ = COMMANDS["fleet"].load()(devices=2, days=2, noise=table, out=str(tmp_path / "f.sqlite")).settings()
    monkeypatch.setattr(sqlite3, "connect", small(2))
    with pytest.raises(InputError, match="No space left"), FleetFile(tmp_path / "f.sqlite", settings, 1) as kept:
        kept.claim()
    assert not list(tmp_path.iterdir())
