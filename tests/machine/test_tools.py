"""Compilers and checkers that are run: a full temporary folder, no HOME, tools that never end."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from bad_inputs import KERNEL
from command import run

from sensorsim._util.errors import InputError, UnableError
from sensorsim.machine import compilers, tools
from sensorsim.machine.compilers import OwnCompiler

PROGRAM = [sys.executable, "-m", "sensorsim"]
WHERE = [sys.executable, "-c", f"import os; print(os.environ[{tools.VARIABLES[0]!r}])"]
NOWHERE = "/proc/none"  # a cache that cannot be made, not even by root


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """Forget which folder the compiler has."""
    tools._folder.cache_clear()
    yield
    tools._folder.cache_clear()


# ---- a full temporary folder


@pytest.mark.parametrize("script", ["kill -9 $$", "kill -BUS $$", "exit 1", "echo half a line; kill -9 $$"])
def test_a_tool_that_ends_without_a_word_on_a_full_disk(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["sh", "-c", script]
    assert tools.run_tool(command).returncode != 0
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=20_000))
    with pytest.raises(UnableError, match=r"cannot write to the temporary folder .*No space left"):
        tools.run_tool(command)
    assert tools.run_tool(["sh", "-c", "echo no such type >&2; exit 1"]).returncode == 1
    assert tools.run_tool(["true"]).returncode == 0


@pytest.mark.parametrize("size", ["120k", *(pytest.param(size, marks=pytest.mark.slow) for size in ("20k", "200k"))])
def test_a_small_disk(size: str, tmp_path: Path) -> None:
    apart = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size={size} none {tmp_path}"
    if shutil.which("unshare") is None or subprocess.run([*apart, mount], capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    words = f'{mount} && TMPDIR={tmp_path} exec "$0" -m sensorsim cost --level machine'
    done = subprocess.run([*apart, words, sys.executable], capture_output=True, text=True)
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 2 and f"cannot write to the temporary folder {tmp_path}" in said, done.stderr


# ---- the compiler's folder


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "SENSORSIM_CACHE", *tools.VARIABLES):
        monkeypatch.delenv(name, raising=False)


def test_the_compiler_needs_no_home(no_home: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENSORSIM_CACHE", str(tmp_path / "cache"))
    assert tools.run_tool(WHERE).stdout.strip() == str(tmp_path / "cache" / "zig")
    monkeypatch.setenv(tools.VARIABLES[0], "/mine")
    assert tools.run_tool(WHERE).stdout.strip() == "/mine"


@pytest.mark.parametrize("cache", [NOWHERE, "off"])
def test_a_cache_that_cannot_be_written(cache: str, no_home: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENSORSIM_CACHE", cache)
    place = Path(tools.run_tool(WHERE).stdout.strip())
    assert place.is_dir() and place.parent == Path(tempfile.gettempdir())
    place.rmdir()


def test_code_is_compiled_without_a_home(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(KERNEL)
    (tmp_path / "t").mkdir()
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", *tools.VARIABLES)}
    own = {"SENSORSIM_CACHE": NOWHERE, "TMPDIR": str(tmp_path / "t")}
    words = ["kernel", "mine.py:twice", "--level", "machine", "--cpu", "k7"]
    done = subprocess.run([*PROGRAM, *words], cwd=tmp_path, env=kept | own, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "t").iterdir())


def test_the_compilers_folder_is_bounded(no_home: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tools.MOST_BYTES == 512 << 20
    monkeypatch.setenv("SENSORSIM_CACHE", str(tmp_path))
    monkeypatch.setattr(tools, "MOST_BYTES", 20_000)

    def names() -> set[str]:
        tools._folder.cache_clear()
        return {path.name for path in tools._folder().iterdir()}

    assert names() == {tools.MARK}
    part = tmp_path / "zig" / "o" / "core.a"
    part.parent.mkdir()
    part.write_bytes(bytes(8_000))
    os.utime(tmp_path / "zig" / tools.MARK, (0, 0))
    assert names() == {tools.MARK, "o"}
    part.write_bytes(bytes(40_000))
    assert names() == {tools.MARK, "o"}  # another command compiles
    os.utime(tmp_path / "zig" / tools.MARK, (0, 0))
    assert names() == {tools.MARK}


# ---- a compiler of one's own


def test_a_compiler_that_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "good.c").write_text("int f(void);\nint f(void) { return 0; }\n")
    with pytest.raises(InputError, match="true ended without an error but wrote no code"):
        OwnCompiler("true").elf(None, [tmp_path / "good.c"], [], "f", tmp_path / "good.elf")


def test_verify_with_a_compiler_that_writes_nothing_or_never_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "export", "--kernels", "spof", "--out", tmp_path / "p")[0] == 0
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    monkeypatch.setattr(compilers, "SECONDS", 0.5)
    endless = tmp_path / "endless"
    endless.write_text('#!/bin/sh\ntouch "$TMPDIR/left"\nsleep 60 &\nexec sleep 60\n')
    endless.chmod(0o755)
    for command, said in (("true", "wrote no code"), (str(endless), "took more than 0.5 s and was stopped")):
        code, out, found = run(capsys, "verify", tmp_path / "p", "--cc", command)
        assert (code, out) == (2, "") and said in found and found.count("\n") == 1, found
        assert not list((tmp_path / "t").iterdir())


def test_a_tool_that_never_ends_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(tools.TimedOutError, match=r"took more than 0\.3 s and was stopped"):
        tools.run_tool(["sh", "-c", 'touch "$TMPDIR/left"; sleep 60 & exec sleep 60'], seconds=0.3)
    assert not list(tmp_path.iterdir())
