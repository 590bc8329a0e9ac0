"""Find every command that a page names, in whatever form: blocks, indented code, spans of code, tables."""

import re
import shlex
from dataclasses import dataclass

from page_text import Block, blocks, commands

PROGRAMS = (
    *("sensorsim", "pytest", "python", "python3", "pip", "ruff", "mypy", "git", "make", "cmake", "ninja", "bash", "sh"),
    *("zsh", "node", "npm", "npx", "apt", "apt-get", "sudo", "west", "cppcheck", "gcc", "cc", "clang", "docker", "tox"),
)
SCRIPT = re.compile(r"(?:bench|tests)/\w+\.py .*|bench/(?!bench_)\w+\.py")  # a script that one runs, by its path
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
    found = [(part, how) for block in blocks(text) for line, how in lines_of(block) for part in parts(line)]
    prose = FENCED.sub("", text)
    lines = prose.splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("    ") and not before.strip():
            found += [(part, "code") for part in parts(line)]
    ready = {command for command, _ in found}
    spans = SPAN.findall(prose.replace("\n", " "))
    named = [f"python {span}" if SCRIPT.fullmatch(span) else span for span in spans]
    found += [(span, "prose") for span in named if is_command(span) and span not in ready]
    return [Named(page, command, how) for command, how in found]


def lines_of(block: Block) -> list[tuple[str, str]]:
    """Return the lines of a block that may be commands, and how the page names them."""
    if block.kind == "console":
        return [(command.replace("\\\n", " "), "block") for command, _ in commands(block.text)]
    if block.kind == "schemas":
        return [(span, "block") for span in SPAN.findall(block.text)]
    if block.kind in ("sh", "yaml"):
        return [(line, "code") for line in STEP.sub("", block.text).replace("\\\n", " ").splitlines()]
    return []


def parts(line: str) -> list[str]:
    return [part.strip() for part in line.split("&&") if is_command(part)]


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
