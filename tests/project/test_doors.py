"""Check that a command or `import sensorsim` reaches every module, by imports or by its name in a string."""

import ast
import re
from pathlib import Path

import pytest

from sensorsim.commands import COMMANDS

ROOT = Path(__file__).parents[2]
# What a user starts with. Kernels that ship are found by the files of their folder, and tables are data.
COMMAND_MODULES = {f"sensorsim.commands.{entry.place.partition(':')[0]}" for entry in COMMANDS.values()}
DOORS = ("sensorsim", "sensorsim.__main__", *COMMAND_MODULES)
FOUND_BY_FILE = ("sensorsim.kernels", "sensorsim.tables")
NAMED = re.compile(r"sensorsim(\.\w+)+")


def modules() -> dict[str, Path]:
    """Return every module of the package by its full name."""
    files = [path.relative_to(ROOT) for path in (ROOT / "sensorsim").rglob("*.py")]
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): ROOT / path for path in files}


def used_by(text: str, known: set[str]) -> set[str]:
    """Return the modules that a source needs when it runs: imported anywhere in it, or named by a string.

    A string names a module whole, or its last part where the source has the folder in an f-string. What is imported for
    a type checker alone does not count, and neither does a docstring.
    """
    names, folders, words = [], [], []
    stack: list[ast.AST] = [ast.parse(text)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            stack += node.orelse
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = NAMED.match(node.value)
            names += [found[0]] if found else []
            words.append(node.value)
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            folders.append(str(node.values[0].value))
        stack += ast.iter_child_nodes(node)
    names += [folder + word for folder in folders if folder.startswith("sensorsim.") for word in words]
    return {name for name in names if name in known}


def without_door(sources: dict[str, str]) -> list[str]:
    """Return the modules that no door leads to. A package is there as soon as one of its modules is."""
    reached: set[str] = set()
    waiting = {name for name in DOORS if name in sources}
    while waiting:
        name = waiting.pop()
        reached.add(name)
        parts = name.split(".")
        parents = {".".join(parts[:length]) for length in range(1, len(parts))}
        waiting |= (used_by(sources[name], set(sources)) | parents & set(sources)) - reached
    return sorted(set(sources) - reached)


BEING_BUILT = ("sensorsim.proof",)  # verify will use the prover, which has tests of its own


def test_every_module_has_a_door() -> None:
    sources = {name: path.read_text("utf-8") for name, path in modules().items()}
    assert len(sources) > 150 and not any(name.startswith(FOUND_BY_FILE) for name in sources)
    assert [name for name in without_door(sources) if not name.startswith(BEING_BUILT)] == []


@pytest.mark.parametrize(
    "text, reached",
    [
        ("from sensorsim.some.place import thing", True),
        ("from sensorsim.some import place", True),
        ("def f():\n    import sensorsim.some.place", True),
        ('PLACES = {"thing": "sensorsim.some.place:thing"}', True),
        ('FILES = ("place", "other")\nfor name in FILES:\n    load(f"sensorsim.some.{name}")', True),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sensorsim.some import place", False),
        ('"""See sensorsim.some.place."""', False),
        ('TEXT = "see sensorsim.some.place"', False),
    ],
)
def test_what_counts_as_a_door(text: str, reached: bool) -> None:
    sources = {"sensorsim": text, "sensorsim.some": "", "sensorsim.some.place": ""}
    assert ("sensorsim.some.place" not in without_door(sources)) == reached


def test_modules_that_import_each_other_have_no_door() -> None:
    sources = {"sensorsim": "", "sensorsim.a": "import sensorsim.b", "sensorsim.b": "import sensorsim.a"}
    assert without_door(sources) == ["sensorsim.a", "sensorsim.b"]
