"""Find every command that a page names, in whatever form: blocks, indented code, spans of code, tables."""

import re
import shlex
from dataclasses import dataclass

from page_text import Block, blocks, commands

PROGRAMS = (
    *("sensorsim", "pytest", "python", "python3", "pip", "ruff", "mypy", "git", "make", "cmake", "ninja", "bash", "sh"),
    *("zsh", "node", "npm", "npx", "apt", "apt-get", "sudo", "west", "cppcheck", "gcc", "cc", "clang", "docker", "tox"),
)
SCRIPT = re.compile(r"(?:bench|tests)/\w+\.py")  # a span that names a script of the project by its path
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
FENCED = re.compile(r"^```.*?^```$", re.S | re.M)
STEP = re.compile(r"^\s*(?:- )?run: (?:\|\s*)?", re.M)  # of a CI's YAML
FOLDER = re.compile(r"^(?:\S*/)?bin/")
PLACEHOLDER = re.compile(r"[A-Z][A-Z_]*|[A-Z]+\.\w+(?::[A-Z]+)?|…")


@dataclass(frozen=True)
class Named:
    """A command as a page names it; `how` is "block" where tests/support/pages.py runs it, else "code" or "prose"."""

    page: str
    command: str
    how: str

    @property
    def plain(self) -> str:
        """Return it without the folder of its program."""
        return FOLDER.sub("", self.command)

    @property
    def words(self) -> list[str]:
        """Split it as a shell does."""
        return shlex.split(self.plain, comments=True)


def named_commands(page: str, text: str) -> list[Named]:
    """Return every command that a page names."""
    found = [each for block in blocks(text) for each in _of_block(page, block)]
    prose = FENCED.sub("", text)
    lines = prose.splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("    ") and not before.strip() and is_command(line):
            found += [Named(page, part, "code") for part in _parts(line)]
    ready = {each.command for each in found}
    for span in SPAN.findall(prose.replace("\n", " ")):
        command = f"python {span}" if SCRIPT.match(span) and _is_script(span) else span
        if is_command(command) and command not in ready:
            found.append(Named(page, command, "prose"))
    return found


def is_command(text: str) -> bool:
    """Tell whether a text begins with a program and says more, as `make` alone is a word and `make clean` a command."""
    program, _, rest = text.strip().partition(" ")
    return FOLDER.sub("", program) in PROGRAMS and bool(rest.strip())


def covers(run: Named, named: Named) -> bool:
    """Tell whether a command that is run has all words of a named one; a word in capitals stands for any."""
    left = run.words
    for word in named.words:
        if PLACEHOLDER.fullmatch(word):
            continue
        if word not in left:
            return False
        left.remove(word)
    return run.words[0] == named.words[0]


def _of_block(page: str, block: Block) -> list[Named]:
    if block.kind == "console":
        lines = [command.replace("\\\n", " ") for command, _ in commands(block.text)]
        return [Named(page, part, "block") for line in lines for part in _parts(line)]
    if block.kind == "schemas":
        return [Named(page, span, "block") for span in SPAN.findall(block.text) if is_command(span)]
    if block.kind == "sh":
        return [Named(page, part, "code") for line in block.text.splitlines() for part in _parts(line)]
    if block.kind == "yaml":
        lines = STEP.sub("", block.text).replace("\\\n", " ").splitlines()
        return [Named(page, part, "code") for line in lines if is_command(line) for part in _parts(line)]
    return []


def _parts(line: str) -> list[str]:
    return [part.strip() for part in line.split("&&") if is_command(part)]


def _is_script(span: str) -> bool:
    """Tell whether a span names a script that one runs: it has options, or stands in bench beside the benchmarks."""
    return " " in span or (span.startswith("bench/") and not span.startswith("bench/bench_"))
