"""The public functions: there, lazy, typed, documented; their results show themselves; the command line agrees."""

import doctest
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import sensorsim as ss

ROOT = Path(__file__).parents[2]
NAMES = [
    *("cost", "kernel", "noise_table", "release", "audit", "Sensor", "receive"),
    *("plan", "fleet", "train", "evaluate", "export", "verify", "claims"),
]
HEAVY = ("torch", "numba", "pandas", "matplotlib", "scipy")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_names_are_there_and_nothing_is_loaded():
    said = python(
        "import sys, json, sensorsim as ss\nnames = dir(ss)\n"
        "loaded = [m for m in sys.modules if m.startswith('sensorsim.')]\n"
        "print(json.dumps([names, loaded, 'numpy' in sys.modules]))\nss.cost(n=14, l=7)\n"
        f"print(json.dumps([m for m in ('numpy', *{HEAVY}) if m in sys.modules]))"
    )
    names, loaded, numpy = json.loads(said.splitlines()[0])
    assert set(NAMES) <= set(names) and not loaded and not numpy
    assert json.loads(said.splitlines()[1]) == []  # a cost needs none of them
    assert python(
        "import sys, sensorsim as ss\nfor n in ss.__all__: getattr(ss, n)\n"
        f"print([m for m in {HEAVY} if m in sys.modules])\n"
        "ss.cost().plot()\nprint('matplotlib.pyplot' in sys.modules)"  # no figure is left with pyplot
    ).splitlines() in (["[]", "False"], ["['numba']", "False"])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Sensor"])
def test_every_function_is_documented_and_typed(name):
    function = getattr(ss, name)
    assert not inspect.ismodule(function)
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(one.annotation is not one.empty for one in signature.parameters.values())
    for parameter in signature.parameters:
        assert f"    {parameter}: " in inspect.getdoc(function)


COMPILING = ("audit", "receive", "fleet")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in COMPILING else ()) for name in NAMES]
)
def test_the_examples_of_the_documentation_run(name):
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(getattr(ss, name)), {}, name, None, 0)
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert not found.failed and (found.attempted or name not in ("noise_table", "plan", "release", "receive", "audit"))


STRANGER = """import numpy as np

import sensorsim as ss

report = ss.cost(n=14, l=7)
saved: float | None = report.saving()
table = ss.noise_table(epsilon=1.6, release=1)
released = ss.release(np.full((10, 14), 0.5), table)
text: str = released.protects
plan = ss.plan(devices=100)
half: float = plan.half
ok: bool = ss.certify(table).holds
"""


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [None, 'ss.cost(n="many")', "ss.nothing()", "ss.plan(device=3)"])
def test_a_stranger_script_is_typed(wrong, tmp_path):
    """mypy --strict, on a tree laid out as the package is installed."""
    package = tmp_path / "lib" / "sensorsim"
    package.mkdir(parents=True)
    for part in [*(ROOT / "sensorsim").iterdir(), ROOT / "kernels", ROOT / "tables"]:
        (package / part.name).symlink_to(part)
    script = tmp_path / "stranger.py"
    script.write_text(STRANGER + (f"{wrong}\n" if wrong else ""))
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports", script]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env={"MYPYPATH": str(tmp_path / "lib"), "PATH": ""}
    )
    assert (done.returncode == 0) is (wrong is None), done.stdout + done.stderr
    if wrong:
        assert "stranger.py:13" in done.stdout
