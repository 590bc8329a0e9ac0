"""Who may import whom, read off the source; and what a plain command does not load."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = (
    "language", "noise", "accounting", "audit", "mechanisms", "cost", "device", "machine", "export", "verify",
    "locking", "hospital", "train", "plan", "fleet", "paper", "claims", "report", "api", "cli", "proof", "commands",
)  # fmt: skip
FOLDERS = {name: ROOT / "sensorsim" / name for name in OURS}
FOLDERS |= {"_util": ROOT / "sensorsim" / "_util", "kernels": ROOT / "kernels", "tables": ROOT / "tables"}
# Single modules that anyone may use.
SMALL = {
    *("_util", "errors", "encoders", "drawing", "ranges", "results", "doors", "records", "terminal", "calls"),
}
ALLOWED = {
    # kernels: `load` finds those that ship, by name, when asked
    "language": {"language", "_util", "errors", "kernels", "tables"},
    "kernels": {"kernels", "language"},
    "tables": set(),
    "noise": {"noise", "language", "kernels", "tables", *SMALL},
    "accounting": {"accounting", "noise", *SMALL},
    "audit": {"audit", "noise", "language", "kernels", *SMALL},
    "mechanisms": {"mechanisms", "audit", "accounting", "noise", "language", "kernels", "tables", *SMALL},
    "cost": {"cost", "mechanisms", "language", "kernels", "tables", *SMALL},
    "device": {"device", "noise", "language", "kernels", *SMALL},
    "hospital": {"hospital", "device", "noise", "language", "kernels", *SMALL},
    "machine": {"machine", "device", "mechanisms", "cost", "language", "kernels", "tables", *SMALL},
    "proof": {"proof", "machine", "language"},
    "export": {"export", "machine", "device", "mechanisms", "cost", "noise", "language", "kernels", "tables", *SMALL},
    "verify": {
        *("verify", "export", "machine", "device", "cost", "audit", "noise", "language", "kernels", "tables"),
        *SMALL,
    },
    "locking": {"locking", "export", "machine", "device", "noise", "cost", "language", "kernels", "tables", *SMALL},
    "train": {
        *("train", "hospital", "device", "mechanisms", "cost", "accounting", "noise", "language", "kernels", "tables"),
        *SMALL,
    },
    "plan": {
        *("plan", "hospital", "device", "mechanisms", "cost", "accounting", "noise", "language", "kernels", "tables"),
        *SMALL,
    },
    "fleet": {
        *("fleet", "train", "hospital", "device", "mechanisms", "cost", "accounting", "noise", "language", "kernels"),
        *("tables", *SMALL),
    },
    "paper": {"paper", "accounting", "noise"},
    "claims": {
        *("claims", "train", "device", "export", "machine", "mechanisms", "cost", "accounting", "noise", "language"),
        *("kernels", *SMALL),
    },
    "report": {*OURS, "kernels", "tables", *SMALL} - {"cli", "api", "commands"},
    "api": {*OURS, "kernels", "tables", *SMALL} - {"cli", "commands"},
    "cli": {"cli", *OURS, "kernels", "tables", *SMALL},
    "commands": {"commands", *OURS, "kernels", "tables", *SMALL} - {"cli"},
    "_util": {"_util", "errors"},
}
# The first two ask the mechanism that is named; the third composes the delta of a table of samples;
# the last prints and locks as the other commands do.
UPWARD = {
    ("accounting/__init__.py", "mechanisms"),
    ("audit/table_sources.py", "mechanisms"),
    ("noise/certificate.py", "accounting"),
    ("commands/shell.py", "cli"),
}
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


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_go_one_way(folder):
    files = list(FOLDERS[folder].rglob("*.py"))
    assert files
    inside = [(path, f"{folder}/{path.relative_to(FOLDERS[folder]).as_posix()}") for path in files]
    wrong = [f"{path.relative_to(ROOT)}:{line} imports {part}" for path, name in inside for part, line in imported(path)
             if part not in ALLOWED[folder] and part != "__version__" and (name, part) not in UPWARD]  # fmt: skip
    assert wrong == []


def upward():
    """Return (file, folder) of every import of a folder that stands above the file's own in the picture."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    order = [line.split()[0] for line in page.split("```text\n")[1].split("```")[0].splitlines()]
    assert set(order) == set(FOLDERS)
    return {
        (path.relative_to(ROOT / "sensorsim").as_posix(), part)
        for folder, place in FOLDERS.items()
        for path in place.rglob("*.py")
        for part, _ in imported(path)
        if part in order and order.index(part) < order.index(folder)
    }


def test_the_page_names_every_import_that_goes_up():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    told = {
        (file, folder)
        for line in page.splitlines()
        if (found := re.fullmatch(r"- (.*) import `(\w+)`.*", line))
        for file, folder in [(file, found[2]) for file in re.findall(r"`(\S+\.py)`", found[1])]
    }
    assert told == upward()


def test_the_page_names_every_package_whose_call_leads_up():
    from sensorsim.doors import FUNCTIONS

    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    line = next(line for line in page.splitlines() if "sensorsim/doors.py" in line)
    up = {name.split(".")[1] for name, place in FUNCTIONS.items() if place.startswith("sensorsim.api.")}
    assert set(re.findall(r"`(\w+)`", line)) - {"api"} == up
    words = {9: "nine"}
    assert f"{words[len(FUNCTIONS)]} packages callable" in line


ASKS_FOR_A_KIND = re.compile(
    r"isinstance\([^()]*(Rows|Stairs|Sample|Naive|Quantile|Counted)Table|"
    r"(\.kind|\[\"kind\"\]) (==|!=|in|not in) .*\"(rows|stairs|naive|quantile|samples)\""
)


def test_nothing_outside_the_kinds_asks_which_one_a_table_is():
    sources = [path for path in (ROOT / "sensorsim").rglob("*.py") if path.parent.name != "kinds"]
    assert [str(path) for path in sources if ASKS_FOR_A_KIND.search(path.read_text("utf-8"))] == []


LOOKS_FOR_KERNELS = {
    "load.py": "finds those that ship, by name",
    "comments.py": "remarks beside their constants",
    "generators.py": "the cipher is one of them",
}


def test_the_language_does_not_need_the_kernels():
    """A few of its files look at them when asked to, inside a function; to import the language loads none."""
    for path in FOLDERS["language"].rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        inner = {id(node) for part in ast.walk(tree) if isinstance(part, ast.FunctionDef) for node in ast.walk(part)}
        for node in ast.walk(tree):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if any(name.startswith("sensorsim.kernels") for name in names):
                assert path.name in LOOKS_FOR_KERNELS and id(node) in inner, f"{path}:{node.lineno}"


def test_every_folder_has_a_rule():
    packages = {path.parent.name for path in (ROOT / "sensorsim").glob("*/__init__.py")}
    assert packages | {"kernels", "tables"} == set(ALLOWED)


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
    program = "import json, sys\nfrom sensorsim.cli import main\ntry:\n    main(json.loads(sys.argv[1]))\n"
    program += "except SystemExit as end:\n    assert not end.code, end.code\n"
    program += "print('LOADED', json.dumps(sorted({name.split('.')[0] for name in sys.modules})))\n"
    done = subprocess.run([sys.executable, "-c", program, json.dumps(words)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.rpartition("LOADED ")[2])
    assert heavy.isdisjoint(loaded), heavy & set(loaded)
