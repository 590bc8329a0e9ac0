"""Run every command that a page names, but for those that test_pages.py runs; a new one fails until it is run.

What lasts, writes into the project or installs is run as small as it can be, with the reason beside it.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass

import pytest
from own_tables import CORE, board
from page_commands import Named, covers, named_commands
from page_text import blocks
from pages import PAGES, PATH, ROOT, Console, environment

TEXTS = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in PAGES if page.name != "CHANGELOG.md"}
NAMED = [each for page, text in TEXTS.items() for each in named_commands(page, text)]
SENSOR = (
    "sensorsim noise make --epsilon 1.6 --release 1 --out table.txt"
    " && sensorsim export --out sensor --noise table.txt --budget-epsilon 16"
)
IMAGE = (
    "python -m ziglang cc -target thumb-freestanding-eabi -mcpu=cortex_m4 -O2 -ffunction-sections -fdata-sections"
    " -nostdlib -Wl,--gc-sections -Wl,--entry=main_loop -T {tests}/boards/application.ld -Isensor/include -Isensor/src"
    " sensor/src/*.c {tests}/boards/application.c -o firmware.elf"
)
LONG = "with all its runs it takes hours"


@dataclass(frozen=True)
class Case:
    """How a named command is run: `line` where it needs files first or is made smaller; `why` where it is not all."""

    line: str = ""
    slow: bool = False
    clone: bool = False
    why: str = ""
    needs: str = ""


CASES = {
    "python3 -m venv .venv": Case(slow=True),
    "pytest bench": Case(slow=True, clone=True),
    "pytest bench/bench_cost.py": Case(slow=True, clone=True),
    "pytest bench/bench_release_c.py -s": Case(slow=True, clone=True),
    "ruff check": Case(clone=True),
    "ruff format": Case("ruff format --check", clone=True, why="it writes files"),
    "python tests/support/pages.py": Case(
        "python tests/support/pages.py README.md", True, True, why="test_pages.py runs all pages"
    ),
    "python tests/support/schemas.py --write": Case(
        "cp -r {root}/tests {root}/docs {root}/kernels {root}/tables . && python tests/support/schemas.py --write"
        " && diff -r docs/schemas {root}/docs/schemas",
        slow=True,
    ),
    "python bench/goals.py": Case("python bench/goals.py --runs 1 --only wide", True, True, why=LONG),
    "python bench/search_dpsgd.py": Case("python bench/search_dpsgd.py --quick", True, True, why="it writes a table"),
    "python bench/ratios.py --check": Case("python bench/ratios.py --help", True, True, why="test_ratios.py runs it"),
    "make clean": Case(f"{SENSOR} && cd sensor && make -s && make clean && sensorsim verify .", True, needs="make"),
    'sensorsim cost --check cost.lock | tee -a "$GITHUB_STEP_SUMMARY"': Case(
        "sensorsim cost --lock cost.lock && export GITHUB_STEP_SUMMARY=summary.md && set -o pipefail"
        ' && sensorsim cost --check cost.lock | tee -a "$GITHUB_STEP_SUMMARY"',
        slow=True,
    ),
    "sensorsim cpus show k7": Case(),
    "sensorsim cpus show cortex-m0plus": Case(),
    "sensorsim cpus check my-core.csv": Case(),
    "sensorsim cost --cpu my-core.csv": Case(),
    "sensorsim cost --chip board.csv": Case(),
    "sensorsim cost --chip my-board.csv": Case(),
    "sensorsim cost --radio ble-1m --chip nrf52840": Case(),
    "sensorsim completion --help": Case(),
    "sensorsim data ranges --format csv": Case(),
    "sensorsim data fit FILE --out .": Case(
        "sensorsim data make --out days.csv && sensorsim data fit days.csv --out .", slow=True
    ),
    "sensorsim export --kernels due": Case("sensorsim export --kernels due --out due", slow=True),
    "sensorsim export --kernels smooth.py:smooth": Case(
        "sensorsim export --kernels smooth.py:smooth --out smooth", slow=True
    ),
    "sensorsim noise peers --plot peers.png": Case(slow=True),
    "sensorsim noise show FILE --plot table.png": Case(
        f"{SENSOR} && sensorsim noise show table.txt --plot table.png", True
    ),
    "sensorsim verify --elf firmware.elf --manifest sensor/MANIFEST.json": Case(
        f"{SENSOR} && {IMAGE} && sensorsim verify --elf firmware.elf --manifest sensor/MANIFEST.json", slow=True
    ),
    "sensorsim figures --out figures": Case(
        "sensorsim figures --out figures --runs 1 --epsilon 1.6 --sigma 0 --records 1000 --records-runs 1",
        True,
        why=LONG,
    ),
    "sensorsim figures --only accuracy_records": Case(
        "sensorsim figures --only accuracy_records --out figures --records 1000 --records-runs 1", True, why=LONG
    ),
    "sensorsim sweep --data FILE --mechanism sampled --epsilon 0.1,0.4,1.6,6.4 --sigma 0,5": Case(
        "sensorsim data make --out days.csv && sensorsim sweep --data days.csv --mechanism sampled"
        " --epsilon 0.1,0.4,1.6,6.4 --sigma 0,5 --runs 1 --results results.sqlite",
        slow=True,
        why=LONG,
    ),
    "sensorsim sweep --mechanism dpsgd-weights,sketch --epsilon 0.1,1.6 --sigma 0,5 --runs 100": Case(
        "sensorsim sweep --mechanism dpsgd-weights,sketch --epsilon 0.1,1.6 --sigma 0,5 --runs 1"
        " --results results.sqlite",
        slow=True,
        why=LONG,
    ),
}


def case_of(command):
    """Return how a command is run here; those that install or test are run by a rule."""
    if command.startswith("pip install "):
        small = "python -m pip install --dry-run --no-deps "
        why = "test_base_install.py installs; packages come by network"
        return Case(small + command.removeprefix("pip install "), slow=True, clone=True, why=why)
    if command.startswith("pytest ") and command not in CASES:
        return Case(f"{command} --collect-only", slow=True, clone=True, why="these tests are the suite itself")
    return CASES.get(command)


def uncovered(named):
    """Return the commands that neither a page nor a test runs."""
    shown = [each for each in named if each.how == "block"]
    rest = [each for each in named if each.how != "block"]
    return [each for each in rest if not case_of(each.plain) and not any(covers(run, each) for run in shown)]


def test_every_command_is_run():
    assert not [f"{each.page}: {each.command}" for each in uncovered(NAMED)]
    assert CASES.keys() <= {each.plain for each in NAMED}, "no page names these any more"


@pytest.mark.parametrize(
    "text",
    [
        "Type `sensorsim cost --n 9` now.",
        "Type `python bench/new.py --all`.",
        "See `bench/new.py`.",
        "`.venv/bin/mypy sensorsim`",
        "Then:\n\n    cmake -B build && cmake --build build\n",
        "```sh\nnpm test\n```",
        "```yaml\n- run: sensorsim sweep --all\n```",
    ],
)
def test_a_new_command_is_found(text):
    assert uncovered([*NAMED, *named_commands("page.md", f"# A page\n\n{text}\n")])


def test_a_smaller_run_has_a_reason():
    for command, case in CASES.items():
        parts = [Named("", part.strip(), "block") for part in (case.line or command).split("&&")]
        same = any(covers(part, Named("", command, "prose")) for part in parts)
        assert same or case.why, command


def runs(slow):
    """Return the commands to run, each once."""
    found = dict.fromkeys(each.plain for each in NAMED if each.how != "block")
    return [command for command in found if (case := case_of(command)) and case.slow is slow]


@pytest.fixture
def place(tmp_path):
    """A folder with the files that the commands name."""
    for name in ("board.csv", "my-board.csv"):
        (tmp_path / name).write_text(board(), "utf-8")
    (tmp_path / "my-core.csv").write_text(CORE, "utf-8")
    for block in blocks(TEXTS["docs/kernels.md"]):
        if "file" in block.remarks:
            (tmp_path / block.remarks["file"]).write_text(block.text, "utf-8")
    return tmp_path


def run(command, case, folder):
    line = (case.line or command).replace("{root}", str(ROOT)).replace("{tests}", str(ROOT / "tests" / "support"))
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GITHUB_"))}
    bare |= {"PATH": PATH, "COLUMNS": "80", "SENSORSIM_CACHE": str(folder / ".cache")}
    asked = {"cwd": ROOT if case.clone else folder, "env": bare, "capture_output": True, "text": True}
    done = subprocess.run(["bash", "-c", line], timeout=3600, **asked)
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


@pytest.mark.parametrize("command", runs(slow=False))
def test_a_quick_command(command, place, monkeypatch):
    case = case_of(command)
    if not command.startswith("sensorsim "):
        run(command, case, place)
        return
    monkeypatch.chdir(place)
    console = Console(place)
    with environment(COLUMNS="80"):
        said = console.run(command)
    assert console.code == 0 and said, said


@pytest.mark.slow
@pytest.mark.parametrize("command", runs(slow=True))
def test_a_long_command(command, place):
    case = case_of(command)
    if case.needs and not shutil.which(case.needs):
        pytest.skip(f"{case.needs} is not installed")
    done = run(command, case, place)
    if "pip install" in case.line:
        assert "Would install sensorsim" in done.stdout or " -q" in command
        assert "does not provide the extra" not in done.stderr
    if command.startswith("pytest bench") and "--collect-only" not in case.line:
        assert "benchmark" in done.stdout or " -s" in command, "no table of pytest-benchmark"
