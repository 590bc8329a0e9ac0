"""What pages and help print can be typed into bash and zsh as it stands, whatever files the folder has."""

import re
import shlex
import shutil
import subprocess
from importlib import import_module

import click
import pytest
from command import run
from page_commands import named_commands
from pages import PAGES, PATH

import sensorsim as ss
from sensorsim._util.errors import InputError
from sensorsim.commands.program import group
from sensorsim.planning.deployment import SOLVABLE

SHELLS = [pytest.param(one, marks=pytest.mark.skipif(not shutil.which(one), reason=one)) for one in ("bash", "zsh")]
MORE = re.compile(r"[|<>;&`$#]")  # does more than call a program with words
EXAMPLE = re.compile(r"^(?: *Example:)? *(sensorsim (?:.*\\\n)*.*)$", re.M)
SOLVES = "sensorsim plan --features 1 --devices {} --accuracy 0.05"


def helps(command=group, path=("sensorsim",)):
    """Yield the help of every command."""
    context = click.Context(command, info_name=" ".join(path))
    yield command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            yield from helps(command.get_command(context, name), (*path, name))


def printed():
    """Return every command of ours that a page or a help prints, in one line each."""
    pages = (each.command for page in PAGES for each in named_commands(page.name, page.read_text("utf-8")))
    examples = (found for text in helps() for found in EXAMPLE.findall(text))
    lines = (re.sub(r"\s*\\\n\s*", " ", line) for line in (*pages, *examples))
    return sorted({line for line in lines if line.startswith("sensorsim ") and not MORE.search(line)})


def words_in(shell, lines, folder):
    """Return what the shell hands to the program for each line, or its error."""
    program = "sensorsim() { printf '%s\\n' \"$@\"; }"
    script = "\n".join([program, *(f"echo '@'; {line}" for line in lines)])
    done = subprocess.run([shell, "-c", script], cwd=folder, capture_output=True, text=True, timeout=60)
    return [part.splitlines() for part in done.stdout.split("@\n")[1:]], done.stderr


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("files", [(), ("a", "1", "n")])
def test_a_shell_passes_on_what_is_printed(shell, files, tmp_path):
    lines = printed()
    assert sum("'?'" in line for line in lines) >= 2 and len(lines) > 60
    for name in files:
        (tmp_path / name).touch()
    found, said = words_in(shell, lines, tmp_path)
    assert said == "" and found == [shlex.split(line)[1:] for line in lines]


def test_help_quotes_the_question_mark(capsys):
    assert not [text for text in helps() if re.search(r"[ |]\?", text)]
    code, _, said = run(capsys, "plan", "--devices", "many")
    assert code == 2 and "'?'" in said and "solve" in said


@pytest.mark.parametrize("word", ["?", "solve"])
@pytest.mark.parametrize("name", SOLVABLE)
def test_the_word_solve_leaves_a_number_open(name, word, monkeypatch, capsys):
    asked = []

    def planned(about, **_):
        asked.append(about)
        raise InputError("Heard.")

    monkeypatch.setattr(import_module("sensorsim.planning.study_plan"), "plan", planned)
    given = {"accuracy": 0.05} | {name: word}
    with pytest.raises(InputError, match="Heard"):
        ss.plan(**given)
    words = (text for each, value in given.items() for text in (f"--{each.replace('_', '-')}", value))
    assert run(capsys, "plan", *words) == (2, "", "Error: Heard.\n")
    assert [about.open for about in asked] == [name, name]


@pytest.mark.slow
@pytest.mark.parametrize("word", ["'?'", "solve"])
@pytest.mark.parametrize("shell", SHELLS)
def test_a_plan_is_solved_from_a_shell(shell, word, tmp_path):
    (tmp_path / "a").touch()
    asked = {"cwd": tmp_path, "env": {"PATH": PATH}, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([shell, "-c", SOLVES.format(word)], **asked)
    assert done.returncode == 0 and "devices (solved)" in done.stdout, done.stderr
    bare = subprocess.run([shell, "-c", SOLVES.format("?")], **asked)
    assert bare.returncode != 0, "a bare ? is not what a shell passes on"
