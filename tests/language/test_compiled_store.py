"""Compiled functions are kept for the processes that follow, and only for as long as all they call stays the same."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from sensorsim._util import disk_cache as store
from sensorsim.codegen import compliance
from sensorsim.language.numba_backend.jit import UnknownError, callback, fingerprint, jit

CALLEE = """
    from sensorsim.language import Q, add, kernel
    X = Q("x", "i32", 0, 0, 9, "")
    WIDE = Q("wide", "i32", 0, 0, 99, "")
    @kernel()
    def more(x: X) -> WIDE:
        return add(x, {more})
"""
CALLER = """
    from sensorsim.language import kernel
    from callee import WIDE, X, more
    @kernel()
    def outer(x: X) -> WIDE:
        return more(x)
"""
PROGRAM = """
    from caller import outer
    from sensorsim.language.numba_backend import outer as compiled
    print(outer.run(x=5), sum(compiled(outer).stats.cache_hits.values()))
"""


def function(text, **scope):
    exec(textwrap.dedent(text), scope)
    return scope["f"]


def add(number):
    """A function of its own for each number."""
    return function("def f(x):\n    return x + k", k=number)


def stored(plain):
    """Whether compiling a function leaves machine code in the cache."""
    made = jit(plain, kept=True)
    made(1)
    return bool(made.stats.cache_path) and bool(list(Path(made.stats.cache_path).glob(f"*{made.__qualname__}*.nbc")))


@pytest.fixture
def own(tmp_path, monkeypatch):
    place = tmp_path / "kept"
    monkeypatch.setenv(store.VARIABLE, str(place))
    return place


def test_a_callee_in_another_file_that_changes_is_seen(tmp_path, own):
    (tmp_path / "caller.py").write_text(textwrap.dedent(CALLER))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(more):
        (tmp_path / "callee.py").write_text(textwrap.dedent(CALLEE.format(more=more)))
        command = [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    assert run(1) == ["6", "0"]
    assert run(1) == ["6", "1"]  # it came from the store
    assert run(2) == ["7", "0"]  # and the old one did not


def test_what_a_function_refers_to_is_in_its_fingerprint():
    callee = "def f(x):\n    return x + {}"
    caller = "def f(x):\n    return g(x)"

    def of(text, **scope):
        return fingerprint(function(text, **scope), {})

    same = of(caller, g=numba.njit(function(callee.format(1))))
    assert same == of(caller, g=numba.njit(function(callee.format(1))))
    assert same != of(caller, g=numba.njit(function(callee.format(2))))
    assert same != of(caller, g=numba.njit(error_model="numpy")(function(callee.format(1))))
    for one, two in ((1, 2), (1, 1.0), (np.arange(3), np.arange(4)), (np.uint32(1), np.int32(1)), ((1, 2), (2, 1))):
        assert of("def f(x):\n    return g", g=one) == of("def f(x):\n    return g", g=one)
        assert of("def f(x):\n    return g", g=one) != of("def f(x):\n    return g", g=two)
    assert fingerprint(function(caller, g=1), {}) != fingerprint(function(caller, g=1), {"nogil": True})
    with pytest.raises(UnknownError):
        of(caller, g=object())


def test_a_plain_function_that_is_called_counts_too():
    inner = function("def f(x):\n    return x + k", k=1), function("def f(x):\n    return x + k", k=2)
    text = "def f(x):\n    return g(x)"
    one, two = (fingerprint(function(text, g=numba.njit(part)), {}) for part in inner)
    assert one != two


def test_functions_of_one_name_do_not_meet_in_one_process(own):
    for more in range(3):
        assert jit(add(more), kept=True)(10) == 10 + more
    assert len(list((own / store.MACHINE_CODE).glob("*.py"))) == 3
    assert jit(add(0), kept=True) is jit(add(0), kept=True)


def test_what_is_saved_is_loaded(own):
    assert store.load("a") is None
    store.save("a", b"a report")
    assert store.load("a") == b"a report"
    assert store.load("b") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="a folder has no such permissions here")
def test_only_a_folder_that_no_other_user_can_write_to_is_trusted(own, tmp_path, monkeypatch):
    store.save("a", b"1")
    assert stored(add(50)) and store.load("a") == b"1"
    inner = own / store.MACHINE_CODE / "__pycache__"
    for number, (place, mode) in enumerate(((own, 0o777), (own, 0o770), (inner.parent, 0o777), (inner, 0o775))):
        place.chmod(mode)
        assert not stored(add(60 + number)), place
        assert store.load("a") == (b"1" if place != own else None)
        place.chmod(0o700)
    assert stored(add(70)) and store.load("a") == b"1"
    link = tmp_path / "link"
    link.symlink_to(own)
    monkeypatch.setenv(store.VARIABLE, str(link))
    assert store.load("a") is None and not stored(add(80))
    monkeypatch.setenv(store.VARIABLE, str(own))
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert store.load("a") is None and not stored(add(90))


def test_where_it_is(monkeypatch, tmp_path):
    monkeypatch.delenv(store.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.folder() == tmp_path / "sensorsim"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert store.folder() != Path("not/absolute") / "sensorsim"
    for word in ("off", "0", ""):
        monkeypatch.setenv(store.VARIABLE, word)
        assert store.folder() is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "file" / "below"))  # cannot be made
    store.save("a", b"1")
    assert store.load("a") is None


def test_the_page_says_where_and_how_much():
    said = (Path(__file__).parents[2] / "docs" / "README.md").read_text("utf-8")
    assert f"`{store.VARIABLE}=off`" in said and f"{store.MOST_BYTES >> 20} MB at most" in said
    assert store.OFF[0] == "off" and "~/.cache/sensorsim" in said


def test_it_does_not_grow_for_ever(own, monkeypatch):
    jit(add(3), kept=True)(1)
    for path in (own / store.MACHINE_CODE).rglob("*.*"):
        os.utime(path, (100, 100))
    monkeypatch.setattr(store, "MOST_BYTES", 1000)
    for number in range(20):
        store.save(f"{number:02}", b"x" * 100)
        os.utime(own / f"{number:02}{store.ENDING}", (200 + number, 200 + number))
    left = [path for path in own.rglob("*.*") if path.is_file()]
    assert sum(path.stat().st_size for path in left) <= 1000
    names = sorted(path.stem for path in left)
    assert names[-1] == "19" and "00" not in names and not list((own / store.MACHINE_CODE).rglob("*.nbc"))


def test_what_ships_can_be_kept(own):
    """Every runner, and the whole loop of a fleet: an unknown part would only be slow, so it is asked for here."""
    from sensorsim.kernels.rows_search import sampled_rows_search_one

    from sensorsim.auditing import cell_counts as tally
    from sensorsim.device.firmware import Firmware
    from sensorsim.fleets.board import draw_of
    from sensorsim.fleets.life import loop
    from sensorsim.language.numba_backend import outer
    from sensorsim.machine import avr_core, msp430
    from sensorsim.machine.interpreted import compile_loop
    from sensorsim.noise.host_noise import _compiled
    from sensorsim.noise.noise_table import ready_table

    live = loop(draw_of(Firmware(ready_table(1.6, 1))))
    found = [
        live,
        outer(sampled_rows_search_one),
        _compiled(),
        *map(tally._compiled, (tally._sum_weights, tally._count_values)),
    ]
    found += [compile_loop(avr_core.loop), compile_loop(msp430.loop)]
    assert all(one.stats.cache_path for one in found)


def test_a_callback_comes_from_the_store_and_a_changed_one_does_not(own):
    text = "def f(x):\n    return x + k"
    signature = numba.int64(numba.int64)
    hits = []
    for more in (1, 1, 2):
        made = callback(function(text, k=more), signature)
        assert made.ctypes(10) == 10 + more
        hits.append(made.cache_hits)
    assert hits == [0, 1, 0]


def test_the_checker_of_c_runs_once_for_the_same_text(own, tmp_path, monkeypatch):
    runs = []

    def checker(command, name, **options):
        runs.append(command)
        return SimpleNamespace(returncode=0, stderr="src/a.c:1:misra-c2012-2.3")

    compliance.tool_version()
    monkeypatch.setattr(compliance, "run_tool", checker)
    source = tmp_path / "src" / "a.c"
    source.parent.mkdir()
    for text, expected in (("int a;\n", 1), ("int a;\n", 1), ("int b;\n", 2)):
        source.write_text(text)
        assert compliance.misra_report(tmp_path)[1] == {"2.3": 1}
        assert len(runs) == expected
    monkeypatch.setattr(compliance, "tool_version", lambda: "another")
    compliance.misra_report(tmp_path)
    assert len(runs) == 3
    monkeypatch.setattr(compliance, "USUAL", "__clang__")  # another way to read the same text
    compliance.misra_report(tmp_path)
    assert len(runs) == 4
