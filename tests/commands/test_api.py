"""The public functions: there, lazy, typed, documented; their results show themselves; the command line agrees."""

import doctest
import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

import sensorsim as ss
from sensorsim.commands.program import group

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
    assert "sensorsim" in inspect.getdoc(function) or name == "claims"


MODULES = ("noise", "releasing", "kernels", "planning")
COMPILING = ("auditing", "receiving")


@pytest.mark.parametrize("name", [*MODULES, *(pytest.param(name, marks=pytest.mark.slow) for name in COMPILING)])
def test_the_examples_of_the_docstrings_run(name):
    found = doctest.testmod(import_module(f"sensorsim.api.{name}"), optionflags=doctest.ELLIPSIS)
    assert found.attempted and not found.failed


def test_the_example_of_cost_runs():
    found = doctest.testmod(import_module("sensorsim.costing.cost_report"))
    assert found.attempted and not found.failed


# By command: the function that it is a thin layer of.
COMMANDS = {
    "cost": ss.cost, "plan": ss.plan, "fleet": ss.fleet, "train": ss.train, "evaluate": ss.evaluate,
    "kernel": ss.kernel,
    "export": ss.export, "verify": ss.verify, "receive": ss.receive, "claims": ss.claims, "noise make": ss.noise_table,
    "noise check": ss.certify, "noise audit": ss.audit,
}  # fmt: skip
# Options that say what to print or to write besides, or that run another question.
OF_THE_COMMAND_LINE = {
    *("format", "plot", "lock", "check", "also", "tolerance", "sweep", "quick", "full", "help"),
    *("write_table", "write_sketch", "root", "direction_bits", "statistics"),
}
# What only a caller can give, and what the command line names in another way.
OF_PYTHON = {"told", "progress", "form", "only", "most"}


def options_of(words):
    """By parameter of the function, the click parameter."""
    from sensorsim._util.errors import RENAMED

    command = group
    with click.Context(group) as context:
        for word in words.split():
            command = command.get_command(context, word)
    for option in command.params:
        if isinstance(option, click.Argument):
            yield None, option
        else:
            flag = max(option.opts, key=len).lstrip("-")
            yield RENAMED.get(flag, flag.replace("-", "_")), option


@pytest.mark.parametrize("words", COMMANDS)
def test_defaults_are_the_same(words):
    """Read from click and from the signature: no value stands here."""
    parameters = dict(inspect.signature(COMMANDS[words]).parameters)
    met = {next(iter(parameters))} if any(name is None for name, _ in options_of(words)) else set()
    for name, option in options_of(words):
        if name is None or name == "hex":
            continue
        if name not in parameters:
            assert name in OF_THE_COMMAND_LINE | {"level", "out"}, f"{words}: --{name} is no parameter of the function"
            continue
        met.add(name)
        want = parameters[name].default
        if option.required:
            assert want in (inspect.Parameter.empty, None), name
            continue
        context = click.Context(click.Command("x"))
        found = option.get_default(context)
        found = option.type_cast_value(context, found) if isinstance(found, str | int | float | bool) else found
        empty = found is None or repr(found) in ("()", "Sentinel.UNSET")
        assert want in (None, ()) if empty else found == want and type(found) is type(want), (
            f"{words} --{name}: {found!r} on the command line, {want!r} in Python"
        )
    assert set(parameters) - met <= OF_PYTHON, f"{words}: no option for {set(parameters) - met - OF_PYTHON}"


def test_a_default_that_differs_would_be_seen(monkeypatch):
    from sensorsim.cli import cost

    option = next(one for one in cost.command.params if one.name == "n")
    monkeypatch.setattr(option, "default", 15)
    with pytest.raises(AssertionError, match="--n: 15 on the command line, 14 in Python"):
        test_defaults_are_the_same("cost")


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
