"""How a command ends: its exit code, one short sentence, and what --debug adds."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from command import run

from sensorsim._util import hints
from sensorsim._util.errors import MOST_LETTERS, shortened
from sensorsim.commands.program import CODES, without_debug

PROGRAM = [sys.executable, "-m", "sensorsim"]
FAULTS = [KeyError("x"), RuntimeError("a\nb " + "c" * 9000), RecursionError("deep"), MemoryError(), OSError(5, "I/O")]


def failing(error: BaseException) -> object:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_a_fault_of_ours(
    error: BaseException, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sensorsim.commands.program.group.invoke", failing(error))
    for words in (["cost"], ["cost", "--n", "9" * 500]):
        code, out, said = run(capsys, *words)
        assert (code, out) == (70, "") and said.count("\n") == 1 and len(said) < 300 and "--debug" in said
    for words in (["--debug", "cost"], ["cost", "--debug"]):
        code, out, said = run(capsys, *words)
        assert (code, out) == (70, "") and "Traceback (most recent call last)" in said and said.count("Error: ") >= 1
    monkeypatch.setenv("SENSORSIM_DEBUG", "1")
    assert "Traceback" in run(capsys, "cost")[2]


def test_where_debug_may_stand() -> None:
    assert without_debug(["--debug", "cost", "--n", "3"]) == (["cost", "--n", "3"], True)
    assert without_debug(["cost", "--", "--debug"]) == (["cost", "--", "--debug"], False)
    assert without_debug(["cost"]) == (["cost"], False)


def test_the_codes_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0 and all(re.search(rf"^ +{number} +\w", out, re.MULTILINE) for number in CODES)
    assert list(CODES) == [0, 1, 2, 70, 130, 143] and "--debug" in out


LONG = [
    "9" * 5000,
    "x" * 300,
    "a b " * 2000,
    "ü" * 999,
    "\x1b[31m" + "y" * 400,
    "n=1:" + "9" * 5000,
    "/".join("z" * 99),
]
PLACES = [["cost", "--n"], ["cost", "--sweep"], ["cost", "--format"], ["cost", "--cpu"], ["export", "--kernels"],
          ["noise", "show"], ["noise"], [], ["plan", "--devices"], ["cost", "--"]]  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_what_was_typed_is_not_echoed_at_length(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for word in LONG:
        code, out, said = run(capsys, *place, word)
        assert (code, out) == (2, ""), (code, place, word[:20])
        assert len(said) < 300 and said.count("\n") == 1 and said[:-1].isprintable() and said.startswith("Error: ")
        assert said.endswith((".\n", "`.\n")), said


def test_a_short_sentence_stays_as_it_is() -> None:
    assert shortened("Error: l = 20 is larger than n = 14.", ["--l", "20"]) == "Error: l = 20 is larger than n = 14."
    for text in ("w" * 9000, "w " * 9000, "ab" * 100 + " " + "c " * 200):
        assert len(shortened(text, [])) <= MOST_LETTERS


def test_a_package_that_is_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it was asked for at the start, and where an import comes upon it."""
    from importlib.metadata import requires

    for name, extra in {
        "torch": "train",
        "pyarrow": "data",
        "ziglang": "firmware",
        "numpy": "",
        "ruff": "test",
    }.items():
        assert hints.extra_of(name) == extra
        assert any(line.startswith(name) for line in requires("sensorsim") or [])
    assert hints.extra_of("nonsense") is None
    monkeypatch.setattr("sensorsim.commands.program.group.invoke", failing(ModuleNotFoundError("no", name="torch.nn")))
    code, out, said = run(capsys, "cost")
    assert (code, out) == (2, "") and "this needs torch" in said and "pip install -c constraints.txt '.[train]'" in said
    monkeypatch.setattr("sensorsim.commands.program.group.invoke", failing(ModuleNotFoundError("no", name="nonsense")))
    assert run(capsys, "cost")[0] == 70


# What a plain install lacks, or may lack one day, beside a command that comes upon it.
LACKING = {
    "torch": ["train", "--mechanism", "dpsgd"],
    "joblib": ["sweep"],
    "safetensors": ["train"],
    "scipy": ["data", "make", "--out", "x.csv"],
    "pandas": ["evaluate", "--model", "m.npz"],
    "ziglang": ["cost", "--level", "machine"],
    "matplotlib": ["sensitivity", "--plot", "x.svg"],
    "numba": ["noise", "audit", "--epsilon", "1.6", "--draws", "1e4"],
}


QUICK = ("torch", "ziglang")


@pytest.mark.parametrize("package", [pytest.param(p, marks=[] if p in QUICK else [pytest.mark.slow]) for p in LACKING])
def test_a_plain_install(package: str, tmp_path: Path) -> None:
    program = (
        f"import sys\nsys.modules[{package!r}] = None\nfrom sensorsim.commands.program import main\n"
        "main(sys.argv[1:])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *LACKING[package]], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1 and f"needs {package}" in done.stderr and len(done.stderr) < 300
    assert "pip install -c constraints.txt" in done.stderr and list(tmp_path.iterdir()) == []


def test_a_signal_to_end(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It breaks off what runs, whatever that makes of it."""
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        for masked in (None, ImportError("cannot load"), SystemExit(130)):
            handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            before = signal.signal(number, handler)  # another test may have left its own

            def stop(*_: object, number: int = number, masked: BaseException | None = masked, **__: object) -> None:
                try:
                    signal.raise_signal(number)  # to this thread: another one could take a signal to the process
                except KeyboardInterrupt:
                    if masked is None:
                        raise
                    raise masked from None

            monkeypatch.setattr("sensorsim.commands.program.group.invoke", stop)
            found, out, said = run(capsys, "cost")
            left = signal.signal(number, before)
            assert (found, out) == (code, "") and said.strip() in ("Interrupted.", "")
            assert left is handler
