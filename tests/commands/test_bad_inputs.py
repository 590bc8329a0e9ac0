"""Whatever is wrong, a command says so in one short sentence, with exit code 2, and leaves everything as it was."""

import os
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_inputs import DEVICES, HOLDS, Case, bad_values, declared, every_case, furnish, furnish_more, line, seen
from command import run

from sensorsim._util.option_kinds import Output

SECONDS = 5
MOST_MEMORY = 16 << 30  # bytes of addresses: a reader that fills memory fails here and harms nobody
# Commands whose refusals need nothing heavy: they are tried often, the others by what click refuses.
LIGHT = ("cost", "cpus", "sensitivity", "kernel", "noise check", "noise show", "receive", "data ranges")
FAST, DEEP = 600, 2400


def chosen(count: int, light: bool) -> list[Case]:
    """So many of all cases, the same ones each time; every command and every kind of value is among them."""
    cases = [case for case in every_case() if not light or " ".join(case.words[:2]).startswith(LIGHT)]
    assert len(cases) >= count
    return sorted(random.Random(14).sample(cases, count), key=lambda case: case.words)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("bad")
    furnish(folder)
    old, limit = Path.cwd(), resource.getrlimit(resource.RLIMIT_AS)
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, limit[1]))
    (folder / "temporary").mkdir()  # what is left there is seen too
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TMPDIR", str(folder / "temporary"))
        patched.setattr(tempfile, "tempdir", None)
        yield folder
    resource.setrlimit(resource.RLIMIT_AS, limit)
    os.chdir(old)


def wrong_with(case: Case, capsys: pytest.CaptureFixture[str]) -> str:
    """What is not as it should be; nothing if all is."""
    began = time.monotonic()
    code, out, said = run(capsys, *case.words)
    took = time.monotonic() - began
    faults = [f"exit code {code}"] * (code != 2)
    faults += ["output"] * bool(out)
    faults += [f"{said.count(chr(10))} lines"] * (said.count("\n") != 1)
    faults += ["long"] * (len(said) >= 300) + ["no sentence"] * (not said.startswith("Error: "))
    faults += [f"{took:.0f} s"] * (took > SECONDS)
    return f"{case}: {', '.join(faults)}: {said[:200]}" if faults else ""


def check(cases: list[Case], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, wrong = seen(place), []
    for number, case in enumerate(cases):
        fault = wrong_with(case, capsys)
        if fault or number % 50 == 0:
            new = seen(place).keys() - before.keys()
            wrong += [fault] * bool(fault) + [f"{case} leaves {name} behind" for name in sorted(new)[:1]]
            for name in sorted(new, reverse=True):
                path = place / name
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert seen(place) == before
    assert all(Path(device).is_char_device() for device in DEVICES if device.startswith("/dev/"))
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:60])


def test_bad_inputs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(chosen(FAST, light=True), place, capsys)


@pytest.mark.slow
def test_many_bad_inputs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside files that hold, so that nothing but the bad value is refused."""
    furnish_more(place)
    capsys.readouterr()
    check(chosen(DEEP, light=False), place, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HOLDS if name != "decode"])  # a table of hidden units is its own
def test_every_line_holds_without_its_fault(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    furnish(tmp_path)
    furnish_more(tmp_path)
    code, _, said = run(capsys, *line(name, HOLDS[name]))
    assert code == 0, said


def test_bad_inputs_are_of_every_command() -> None:
    counts = Counter(case.words[0] for case in every_case())
    assert set(declared()) == set(HOLDS) and sum(counts.values()) >= DEEP
    assert all(counts[name.split()[0]] >= 20 for name in HOLDS if bad_values_of(name))


def bad_values_of(name: str) -> list[str]:
    return [value for kind in declared()[name].values() for value in bad_values(kind)]


WRITTEN = [
    (name, option)
    for name, options in declared().items()
    for option, kind in options.items()
    if isinstance(kind, Output) and kind.form in ("file", "database") and (name, option) != ("fleet", "--statistics")
]
ENDINGS = {"--plot": ".svg", "train --out": ".npz", "--results": ".sqlite", "fleet --out": ".sqlite"}
QUICK = ("cost", "data make", "sensitivity", "noise show")


def check_link(name: str, option: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link stays one, and what it leads to is the output, or it is refused; beside it nothing is new."""
    ending = ENDINGS.get(f"{name} {option}", ENDINGS.get(option, ".json"))
    target, link = folder / f"real{ending}", folder / f"link{ending}"
    link.symlink_to(target.name)
    before = seen(folder)
    code, _, said = run(capsys, *line(name, {**HOLDS[name], option: link.name}))
    if option == "--lock" or (name, option) == ("fleet", "--out"):  # a file that is known by its name: no link is one
        assert code == 2 and said.count("\n") == 1 and seen(folder) == before
        return
    assert code == 0, said
    assert link.is_symlink() and target.stat().st_size
    others = {value for value in HOLDS[name].values() if isinstance(value, str)} | {"results.sqlite"}
    assert {path for path in seen(folder).keys() - before.keys() if path.split("/")[0] not in others} == {target.name}
    assert all(seen(folder)[path] == content for path, content in before.items() if path not in others)


@pytest.mark.parametrize(
    ("name", "option"), [pytest.param(*one, marks=[] if one[0] in QUICK else pytest.mark.slow) for one in WRITTEN]
)
def test_a_link_stays_a_link(
    name: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    furnish(tmp_path)
    if name in ("verify", "receive"):
        furnish_more(tmp_path)
        capsys.readouterr()
    check_link(name, option, tmp_path, capsys)


def test_the_same_line_without_its_fault_holds(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a bad value stands in is not refused for another reason."""
    for name in ("cost", "cpus check", "cpus show", "sensitivity", "data ranges", "noise check", "kernel"):
        code, out, _ = run(capsys, *line(name, HOLDS[name]))
        assert code == 0 and out, name
