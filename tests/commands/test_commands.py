"""A command declared as a dataclass: its shell command, its Python function, its checks and its schema."""

import json

import pytest
from click.testing import CliRunner

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import Choice, Known, Number, Open, Several, Whole
from sensorsim.commands import COMMANDS
from sensorsim.commands.declare import function_of, schema_of
from sensorsim.commands.shell import click_command

ENTRY = COMMANDS["sensitivity"]
sensitivity = function_of(ENTRY.load(), "sensitivity", ENTRY.about)


def test_the_shell_command_prints_what_the_function_returns():
    words = ["--n", "20", "--clip", "3", "--format", "json"]
    made = CliRunner().invoke(click_command("sensitivity", ENTRY), words)
    assert made.exit_code == 0
    assert json.loads(made.output) == json.loads(json.dumps(sensitivity(n=20, C=3.0).to_dict()))


@pytest.mark.parametrize("given", [{"n": "x"}, {"n": 0}, {"n": 2.5}, {"a": 101}, {"c": float("nan")}, {"what": 1}])
def test_a_bad_value_is_one_sentence(given):
    with pytest.raises(InputError):
        sensitivity(**given)


def test_the_schema_has_bounds_and_defaults():
    found = schema_of(ENTRY.load())["properties"]
    assert found["n"]["minimum"] == 1 and found["n"]["default"] == 14
    assert found["a"]["maximum"] == 100


@pytest.mark.parametrize(
    "kind, text, value",
    [
        (Whole(spelled=True), "2^14", 16384),
        (Whole(spelled=True), "2^2+1", 5),
        (Whole(spelled=True), "1e8", 10**8),
        (Open(Whole(1)), "7", 7),
        (Number(), "1e-6", 1e-6),
    ],
)
def test_numbers_are_read_as_they_are_spelled(kind, text, value):
    assert kind.check("it", kind.read("it", text)) == value


@pytest.mark.parametrize("kind, value", [(Choice("a", "b"), "c"), (Whole(1, 5), 6), (Several(Whole(1)), [1, 0]),
                                         (Known(list, several=True), [1])])  # fmt: skip
def test_values_outside_of_a_kind_are_refused(kind, value):
    with pytest.raises(InputError):
        kind.check("it", value)
