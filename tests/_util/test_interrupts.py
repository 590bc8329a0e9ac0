"""Ctrl-C and signals at random moments: the exit code says so, nothing is half-written, no process stays behind."""

import contextlib
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bad_inputs import furnish

PROGRAM = [sys.executable, "-m", "sensorsim"]
SECONDS = 30  # until a process has to be gone
KEPT = ("results.sqlite", "fleet.sqlite", "out.sqlite")  # files that hold what is finished, batch by batch
NOISE = ["--noise", "table.txt"]
FINISHED = {"receive": 1}  # exit codes other than 0: of these packets none is accepted
LONG = {
    "cost": ["cost", "--sweep", "n=1:4096", "--accounting", "full"],
    "data": ["data", "make", "--rows", "300000", "--persons", "900", "--out", "made.csv"],
    "noise make": ["noise", "make", "--epsilon", "0.7", "--out", "made.txt"],
    "noise audit": ["noise", "audit", "table.txt", "--draws", "1e9"],
    "plan": ["plan", "--compare", "--features", "14"],
    "fleet": ["fleet", "--devices", "3000", "--days", "30", *NOISE, "--out", "fleet.sqlite", "--plot", "made.svg"],
    "train": ["train", "--mechanism", "dpsgd", "--epochs", "5000", "--out", "made.npz", "--encoder", "made.json"],
    "sweep": ["sweep", "--mechanism", "dpsgd,spof", "--runs", "50", "--jobs", "2"],
    "figures": ["figures", "--out", "made", "--only", "accuracy_epsilon", "--runs", "50", "--results", "out.sqlite"],
    "export": ["export", "--out", "made", *NOISE],
    "receive": ["receive", "packets.bin", "--table", "table.txt", "--out", "made.json"],
    "evaluate": ["evaluate", "--model", "model.npz", "--runs", "10000", "--sigma", "5"],
    "verify": ["verify", "package", "--random-host", "100000"],
}


def started(pid: int) -> bool:
    """Whether the command hears signals: it catches the one to end."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = next(line for line in lines if line.startswith("SigCgt"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
    return False


def of_session(session: int) -> list[int]:
    """The processes that are left of it."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = stat.read_text().rpartition(")")[2].split()
            if int(words[3]) == session and words[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def stopped(words: list[str], after: float, number: int, folder: Path) -> tuple[int, str]:
    """Exit code and stderr of a command that gets a signal so many seconds after it began to hear them."""
    process = subprocess.Popen(
        [*PROGRAM, *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background process ignores it
    )
    while process.poll() is None and not started(process.pid):
        time.sleep(0.01)
    time.sleep(after)
    process.send_signal(number)
    try:
        _, said = process.communicate(timeout=SECONDS)
        end = time.monotonic() + 5
        while of_session(process.pid) and time.monotonic() < end:
            time.sleep(0.1)
        assert not of_session(process.pid), f"{words} leaves processes behind"
    finally:
        for left in of_session(process.pid):
            os.kill(left, signal.SIGKILL)
    return process.returncode, said


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def check(command: str, after: float, number: int, folder: Path) -> None:
    """It ends as it should, with all of its files or none of them."""
    before = names(folder)
    code, said = stopped(LONG[command], after, number, folder)
    new = names(folder) - before
    about = f"{command} after {after:.2f} s: {code} {said[-600:]} {new}"
    assert code in (128 + number, FINISHED.get(command, 0)), about  # it may be faster than that
    assert "Traceback" not in said and "Exception ignored" not in said, about
    written = {name for name in new if not name.startswith(KEPT)}
    assert code != 128 + number or not written, about
    for name in sorted(new, reverse=True):
        path = folder / name
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    furnish(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["cost", "noise make"])
def test_a_moment(command: str, folder: Path) -> None:
    check(command, 0.3, signal.SIGINT, folder)


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a model, a package and packets too."""
    place = tmp_path_factory.mktemp("long")
    furnish(place)
    for words in (["train", "--out", "model.npz"], ["export", "--kernels", "spof", "--out", "package"]):
        subprocess.run([*PROGRAM, *words], cwd=place, check=True, capture_output=True)
    (place / "packets.bin").write_bytes(random.Random(1).randbytes(1 << 26))
    return place


@pytest.mark.slow
@pytest.mark.parametrize("command", LONG)
def test_random_moments(command: str, furnished: Path) -> None:
    random_ = random.Random(command)
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        check(command, random_.uniform(0, 8), number, furnished)


def stored(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All figures of a results file."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        tables = ("meta", "cells", "runs", "errors")
        found = {name: sorted(database.execute(f"SELECT * FROM {name}")) for name in tables}
    timed = re.compile(r', "seconds": [0-9.e-]+')  # how long a run took is no figure of it
    return {name: [tuple(timed.sub("", str(cell)) for cell in row) for row in rows] for name, rows in found.items()}


@pytest.mark.slow
def test_a_sweep_that_was_broken_off_and_goes_on_is_the_same_to_the_bit(folder: Path) -> None:
    """With other numbers of processes each time: in all runs, and in the trivial predictors."""
    words = ["sweep", "--mechanism", "none,dpsgd,sketch", "--epsilon", "0.4,1.6", "--runs", "20", "--format", "json"]

    def through(results: str, jobs: int) -> bytes:
        line = [*PROGRAM, *words, "--results", results, "--jobs", str(jobs)]
        return subprocess.run(line, cwd=folder, check=True, capture_output=True).stdout

    for after, number in ((9, signal.SIGINT), (12, signal.SIGKILL)):
        stopped([*words, "--results", "broken.sqlite", "--jobs", "2"], after, number, folder)
    assert through("broken.sqlite", 1) == through("whole.sqlite", 2)
    assert stored(folder / "broken.sqlite") == stored(folder / "whole.sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_of_a_sweep_stays_behind(number: int, folder: Path) -> None:
    code, _ = stopped(LONG["sweep"], 10, number, folder)
    assert code == (143 if number == signal.SIGTERM else -9)


WAITING = {  # for ever, as nobody writes to the pipe
    "receive": (["receive", "pipe", "--table", "table.txt"], "waiting for packets from pipe, up to its end"),
    "decode": (
        ["decode", "--model", "two.npz", "--packets", "pipe", "--table", "two.txt"],
        "waiting for packets from pipe, up to its end",
    ),
    "kernel": (["kernel", "endless.py:twice"], "importing endless.py"),
}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("what", WAITING)
def test_what_waits_says_so_and_ends_at_once(what: str, number: int, folder: Path) -> None:
    (folder / "endless.py").write_text("while True:\n    pass\n")
    if what == "decode":
        for words in (
            ["noise", "make", "--epsilon", "6.4", "--features", "2", "--release", "1", "--out", "two.txt"],
            ["train", "--l", "2", "--m", "1", "--epsilon", "6.4", "--out", "two.npz"],
        ):
            subprocess.run([*PROGRAM, *words], cwd=folder, check=True, capture_output=True)
    words, said = WAITING[what]
    after = 4.0  # a command says what it waits for after two seconds
    began = time.monotonic()
    code, found = stopped(words, after, number, folder)
    assert code == 128 + number and f"{said} …\n" in found, (code, found)
    assert time.monotonic() - began < after + 5
