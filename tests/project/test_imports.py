"""Check who imports whom, and that a plain command loads nothing heavy."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
HEAVY = {"torch", "numba", "pandas", "matplotlib", "scipy", "llvmlite"}


def imported(path):
    """The parts of the package that a file imports, with the line of each."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "sensorsim":
                yield (*name.split("."), "")[1], node.lineno


def folders():
    """Return the folders in the order of the page's diagram, highest first, each with its path."""
    lines = PAGE.read_text("utf-8").split("```text\n")[1].split("```")[0].splitlines()
    apart = {"kernels": ROOT / "kernels", "tables": ROOT / "tables"}
    return {name: apart.get(name, ROOT / "sensorsim" / name) for name in (line.split()[0] for line in lines)}


def test_the_diagram_has_every_folder():
    packages = {path.parent.name for path in (ROOT / "sensorsim").glob("*/__init__.py")}
    assert packages | {"kernels", "tables"} == set(folders())


def test_imports_go_down():
    order = list(folders())
    upward = {
        (f"{folder}/{path.relative_to(place).as_posix()}", part)
        for folder, place in folders().items()
        for path in place.rglob("*.py")
        for part, _ in imported(path)
        if part in order and order.index(part) < order.index(folder)
    }
    assert upward == set()


ASKS_FOR_A_KIND = re.compile(
    r"isinstance\([^()]*(Rows|Stairs|Sample|Naive|Quantile|Counted)Table|"
    r"(\.kind|\[\"kind\"\]) (==|!=|in|not in) .*\"(rows|stairs|naive|quantile|samples)\""
)


def test_nothing_outside_the_kinds_asks_which_one_a_table_is():
    sources = [path for path in (ROOT / "sensorsim").rglob("*.py") if path.parent.name != "kinds"]
    assert [str(path) for path in sources if ASKS_FOR_A_KIND.search(path.read_text("utf-8"))] == []


KERNEL = """from sensorsim.language import Q, add, kernel
X = Q("x", "i32", 0, 0, 9, "")
WIDE = Q("wide", "i32", 0, 0, 99, "")
@kernel()
def twice(x: X) -> WIDE:
    return add(x, x)
"""
COMMANDS = {
    "help": (["--help"], {"numpy", *HEAVY}),
    "kernel help": (["kernel", "--help"], {"numpy", *HEAVY}),
    "cost help": (["cost", "--help"], {"numpy", *HEAVY}),
    "cost": (["cost"], {"numpy", *HEAVY}),
    "kernel": (["kernel", "{file}:twice"], HEAVY),
    "kernel that ships": (["kernel", "spof"], HEAVY),
    "report help": (["report", "--help"], {"numpy", *HEAVY}),
    "report": (["report", "--no-claims", "--out", "{file}.html"], HEAVY - {"scipy"}),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_plain_command_loads_nothing_heavy(command, tmp_path):
    words, heavy = COMMANDS[command]
    (tmp_path / "mine.py").write_text(KERNEL)
    words = [word.format(file=tmp_path / "mine.py") for word in words]
    program = "import json, sys\nfrom sensorsim.commands.program import main\ntry:\n    main(json.loads(sys.argv[1]))\n"
    program += "except SystemExit as end:\n    assert not end.code, end.code\n"
    program += "print('LOADED', json.dumps(sorted({name.split('.')[0] for name in sys.modules})))\n"
    done = subprocess.run([sys.executable, "-c", program, json.dumps(words)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.rpartition("LOADED ")[2])
    assert heavy.isdisjoint(loaded), heavy & set(loaded)
