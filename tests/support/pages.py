"""Read the blocks of the pages, run them, compare what they show with what the program prints, and renew them.

    python tests/support/pages.py [--write] [--slow] [PAGE…]     compare; --write puts the real output into the pages

A page is Markdown. In a ```console block each line that begins with `$ ` is a command (a line that ends in a
backslash goes on in the next), and what follows is its output at 80 columns: stdout, and stderr if it fails; what is
said on stderr besides is of the moment, like progress. All blocks of a page run in order in one empty folder. A line
` …` stands for lines left out. A command that fails is followed by `$ echo $?`. A ```python block is a doctest, or a
file, or a quotation. Remarks before a block, in <!-- -->, `;` between them:

    slow               runs in the deeper suite only
    needs: PROGRAM     left out where the program is not installed
    varies: REGEX      on lines that match, numbers are not compared: they are drawn from secret noise, or are times
    file: NAME         the block is this file, and later commands find it
    from: PATH         the block is quoted: each of its lines stands in that file of the project
    clone              the block runs in the project's folder
    with: PAGE         the files of that page are here too
    schemas            not a block but a table of commands: schema, its version and the keys of what each prints as JSON
"""

import contextlib
import difflib
import doctest
import io
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from page_text import Block, blocks, commands, renewed, same, trimmed
from schema_text import faults

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for pattern in ("*.md", "docs/*.md", "bench/*.md", "tables/**/*.md") for page in ROOT.glob(pattern))
SHELL = re.compile(r"[|<>;&*`$]")  # what only a shell understands
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
SETTINGS = {"COLUMNS": "80", "LINES": "24", "NO_COLOR": "1", "PATH": PATH}
ROW = re.compile(r"^\| `(?P<command>sensorsim [^`]*)` \| \[[^]]*\]\(schemas/(?P<name>[^)]*)\.schema\.json\) \|", re.M)
LONGEST = 900  # seconds of one command


@dataclass
class Found:
    """The text of a block with the real output in it, and what differs."""

    text: str
    differences: list[str]


@dataclass
class Console:
    """A terminal of 80 columns in a folder; a command of ours runs in this process."""

    folder: Path
    code: int = 0

    def run(self, command: str) -> list[str]:
        """The lines that a command prints."""
        line = command.replace("\\\n", " ")
        if line.strip() == "echo $?":
            printed, said, self.code = f"{self.code}\n", "", 0
        elif line.startswith("sensorsim ") and not SHELL.search(line):
            printed, said = self._ours(shlex.split(line, comments=True)[1:])
        else:
            printed, said = self._shell(line)
        told = [line for line in said.splitlines() if not line.endswith(" …")]  # progress, on a machine that is busy
        return trimmed([*printed.splitlines(), *(told if self.code else [])])

    def json(self, command: str) -> Any:
        """Return what a command of ours prints as JSON."""
        printed, said = self._ours([*shlex.split(command)[1:], "--format", "json"])
        assert printed.startswith("{"), f"{command} prints no JSON: {printed[:200]} {said}"
        return json.loads(printed)

    def _ours(self, words: list[str]) -> tuple[str, str]:
        from sensorsim.commands.program import main

        raws = io.BytesIO(), io.BytesIO()
        out, err = (io.TextIOWrapper(raw, "utf-8", write_through=True) for raw in raws)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(words)
                self.code = 0
            except SystemExit as stop:
                self.code = int(stop.code or 0)
        return raws[0].getvalue().decode(), raws[1].getvalue().decode()

    def _shell(self, line: str) -> tuple[str, str]:
        bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # of this run
        asked = {"cwd": self.folder, "env": bare, "capture_output": True, "text": True, "timeout": LONGEST}
        done = subprocess.run(["bash", "-c", line], **asked)
        self.code = done.returncode
        return done.stdout, done.stderr


def run_console(block: Block, console: Console) -> Found:
    """Run a console block: every command must print what is shown, and one that fails must say so."""
    out, wrong = [], []
    console = replace(console, folder=ROOT) if "clone" in block.remarks else console
    asked = [*commands(block.text), ("", [])]
    for (command, shown), (following, _) in itertools.pairwise(asked):
        real = console.run(command)
        if console.code and following.strip() != "echo $?":
            why = f"ends with exit code {console.code} and no `$ echo $?` follows"
            wrong.append("\n".join([f"$ {command}", why, *real]))
        if not same(trimmed(shown), real, block.remarks.get("varies")):
            changes = difflib.unified_diff(trimmed(shown), real, "shown", "real", lineterm="")
            wrong.append("\n".join([f"$ {command}", *changes]))
            shown = renewed(trimmed(shown), real) + [""] * (len(shown) - len(trimmed(shown)))
        out += [f"$ {command}", *shown]
    return Found("\n".join(out) + "\n", wrong)


class _Recorder(doctest.DocTestRunner):
    """A runner that keeps what each example gave in place of printing."""

    def __init__(self) -> None:
        super().__init__(optionflags=doctest.ELLIPSIS)
        self.gave: dict[int, str] = {}

    def report_start(self, out: Any, test: Any, example: Any) -> None:
        pass

    def report_failure(self, out: Any, test: Any, example: Any, got: str) -> None:
        frames = re.compile(r"^(Traceback .*?\n)(?:    .*\n|  File .*\n)+", re.M)
        self.gave[example.lineno] = frames.sub(r"\1    ...\n", got)

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        self.gave[example.lineno] = (
            f"Traceback (most recent call last):\n    ...\n{exc_info[0].__name__}: {exc_info[1]}\n"
        )


def run_doctest(block: Block, names: dict[str, Any]) -> Found:
    """Run the examples of a block; `names` lives on in the page's next block."""
    pieces = doctest.DocTestParser().parse(block.text)
    examples = [piece for piece in pieces if isinstance(piece, doctest.Example)]
    test = doctest.DocTest(examples, names, "page", None, block.first, block.text)
    recorder = _Recorder()
    recorder.run(test, clear_globs=False, out=lambda text: None)
    names.update(test.globs)
    text, wrong = "", []
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        got = recorder.gave.get(piece.lineno, piece.want)
        if piece.lineno in recorder.gave:
            wrong.append(f">>> {piece.source}shown:\n{piece.want}real:\n{got}")
        first, *rest = piece.source.splitlines()
        text += "\n".join([f">>> {first}", *(f"... {line}".rstrip() for line in rest)]) + "\n" + got
    return Found(text, wrong)


def run_schemas(block: Block, console: Console) -> Found:
    """Run the commands of a table: each row must have the version and the keys of the JSON, which its schema allows."""
    out, wrong = [], []
    for line in block.text.splitlines():
        if asked := ROW.match(line):
            found = console.json(asked["command"])
            keys = ", ".join(key for key in found if key != "schema_version")
            link = f"[version {found['schema_version']}](schemas/{asked['name']}.schema.json)"
            real = f"| `{asked['command']}` | {link} | {keys} |"
            if line != real:
                wrong.append(f"shown: {line}\nreal:  {real}")
            wrong += faults(asked["name"], found)
            line = real
        elif line.startswith("| `"):
            wrong.append(f"no schema is linked: {line}")
        out.append(line)
    return Found("\n".join(out) + "\n", wrong)


def run_page(text: str, folder: Path, slow: bool) -> tuple[str, list[str]]:
    """Run a page's blocks in order in an empty folder: the page with the real output, and what differs."""
    lines, wrong = text.splitlines(), []
    console, names, results = Console(folder), {"__name__": "page"}, []
    with contextlib.chdir(folder), _paths(), environment(**SETTINGS):
        for block in blocks(text):
            if (block.slow and not slow) or block.missing:
                continue
            others = blocks((ROOT / page).read_text("utf-8")) if (page := block.remarks.get("with")) else []
            for other in [*others, block]:
                if name := other.remarks.get("file"):
                    (folder / name).write_text(other.text, "utf-8")
            if "file" in block.remarks:
                continue
            if block.kind == "console":
                results.append((block, run_console(block, console)))
            elif block.kind == "schemas":
                results.append((block, run_schemas(block, console)))
            elif block.kind == "python" and ">>> " in block.text:
                results.append((block, run_doctest(block, names)))
    for block, found in reversed(results):
        lines[block.first : block.first + len(block.text.splitlines())] = found.text.splitlines()
        wrong = found.differences + wrong
    return "\n".join(lines) + "\n", wrong


@contextlib.contextmanager
def _paths() -> Iterator[None]:
    """Restore Python's module path and forget modules of the page's folder."""
    path, modules = sys.path[:], set(sys.modules)
    try:
        yield
    finally:
        sys.path[:] = path
        here = Path.cwd()
        for name in set(sys.modules) - modules:
            if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(here):
                del sys.modules[name]


def environment(**values: str) -> Any:
    """Set variables of the environment for a while."""
    return mock.patch.dict(os.environ, values)


def main(words: list[str]) -> int:
    """Compare the pages, or write them; 1 if something differs and is not written."""
    pages = [Path(word).resolve() for word in words if not word.startswith("--")] or PAGES
    code = 0
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            text, wrong = run_page(page.read_text("utf-8"), Path(folder), "--slow" in words)
        for difference in wrong:
            print(f"{page.name}: {difference}\n")
        if wrong and "--write" in words:
            page.write_text(text, "utf-8")
        elif wrong:
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
