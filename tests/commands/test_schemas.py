"""The JSON Schemas in docs/schemas: they are schemas, the pages name them, and what differs from them is found.

What every command of docs/formats.md prints is compared with its schema by test_pages.py, which runs them all.
"""

import importlib
import json
import re

import click
import pytest
import schemas
from jsonschema import Draft202012Validator
from pages import ROW
from schema_text import ENDING, FOLDER, faults, file_of, text_of
from sensorsim.tables import folder

from sensorsim.commands.lock_file import Figure, Lock, Taken
from sensorsim.commands.program import group
from sensorsim.device import Sketch
from sensorsim.device.sketch_file import sketch_text
from sensorsim.encoders import as_json, read_encoder

PAGE = schemas.PAGE.read_text("utf-8")
ROWS = {found["name"]: found["command"] for found in ROW.finditer(PAGE)}
FILES = re.findall(r"^\| \[[^]]*\]\(schemas/(.*)\.schema\.json\).*`([\w.]*)\.([A-Z_]*)` = ", PAGE, re.M)
NAMES = sorted(path.name.removesuffix(ENDING) for path in FOLDER.iterdir())


def schema(name):
    return json.loads(file_of(name).read_text("utf-8"))


def version(name):
    return schema(name)["properties"]["schema_version"]["const"]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_schema(name):
    found = schema(name)
    Draft202012Validator.check_schema(found)
    assert "schema_version" in found["required"]
    text = file_of(name).read_text("utf-8")
    assert text == text_of(found) + "\n" and max(map(len, text.splitlines())) <= 120


def test_the_page_has_every_schema_with_its_version():
    shown = {name: int(number) for number, name in re.findall(r"\[version (\d+)\]\(schemas/([\w-]*)\.", PAGE)}
    assert shown == {name: version(name) for name in ROWS}
    assert sorted([*ROWS, *(name for name, _, _ in FILES)]) == NAMES


def test_versions_of_files_are_those_of_the_program():
    assert sorted(name for name, _, _ in FILES) == sorted(schemas.FILES)
    for name, module, constant in FILES:
        assert getattr(importlib.import_module(module), constant) == version(name), name


def with_json(command, *words):
    """The words of every command that prints JSON."""
    context = click.Context(command)
    if any("--format" in parameter.opts for parameter in command.params):
        yield " ".join(words)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        yield from with_json(command.get_command(context, name), *words, name)


def test_no_command_is_without_a_schema():
    for words in with_json(group, "sensorsim"):
        assert any(f"{command} ".startswith(f"{words} ") for command in ROWS.values()), words


def test_files_in_users_hands():
    lock = Lock("cost", {"n": 14, "cpu": None}, Taken({"a": Figure(1.5, "uJ"), "b": Figure(True)}, {"compiler": "c"}))
    sketch, encoder = Sketch.of([0.25, 0.5], 0.5, 4), read_encoder(folder() / "encoders" / "default.json")
    for name, text in {"lock": lock.text(), "sketch": sketch_text(sketch), "encoder": as_json(encoder)}.items():
        content = json.loads(text)
        assert faults(name, content) == [], name
        assert all(faults(name, {**content, key: [["a word"]]}) for key in content), name


@pytest.mark.slow
def test_they_are_what_the_program_prints():
    assert schemas.main([]) == 0
