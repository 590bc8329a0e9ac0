"""The README shows what the program prints."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from sensorsim.cli import group
from sensorsim.errors import InputError

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text("utf-8")
QUICK = (
    "sensorsim cost",
    "sensorsim cpus",
    "sensorsim sensitivity",
    "sensorsim plan",
)  # the others take files or minutes


def shown():
    """Each quick command in a console block, with the output below it."""
    for block in re.findall(r"^```\n(\$ .*?)^```", TEXT, re.S | re.M):
        for command, output in re.findall(r"^\$ (.*?)\n(.*?)(?=^\$ |\Z)", block, re.S | re.M):
            if command.startswith(QUICK):  # at machine level the kernels are compiled first
                deep = [pytest.mark.slow] if "--level" in command else []
                yield pytest.param(command, output, id=command, marks=deep)


@pytest.mark.parametrize(("command", "output"), list(shown()))
def test_shown_output_is_real(command, output):
    printed = CliRunner().invoke(group, shlex.split(command)[1:], env={"COLUMNS": "120"}).stdout
    assert [line.rstrip() for line in printed.splitlines()] == [line.rstrip() for line in output.splitlines()]


def test_the_ci_runs_the_readmes_test_command():
    command = next(line.strip() for line in TEXT.splitlines() if "pytest -n" in line)
    assert command in (ROOT / ".ci" / "run").read_text("utf-8")


def test_the_question_of_a_fleet_is_answered_as_shown():
    command = next(iter(re.findall(r"`(sensorsim plan [^`]*)` says no", TEXT)))
    told = CliRunner().invoke(group, shlex.split(command)[1:])
    assert isinstance(told.exception, InputError) and f"> {told.exception}\n" in TEXT
