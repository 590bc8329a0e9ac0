"""Run every command that a page names, but for those that test_pages.py runs; a new one fails until it runs.

Commands that last, install or write into the project are run as small as they can be.
"""

import os
import shutil
import subprocess

import pytest
from own_tables import CORE, board
from page_commands import covers, named_commands
from page_text import blocks
from pages import PAGES, PATH, ROOT, Console, environment

TEXTS = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in PAGES if page.name != "CHANGELOG.md"}
NAMED = [each for page, text in TEXTS.items() for each in named_commands(page, text)]
SENSOR = (
    "sensorsim noise make --epsilon 1.6 --release 1 --out table.txt"
    " && sensorsim export --out sensor --noise table.txt --budget-epsilon 16 && "
)
DAYS = "sensorsim data make --out days.csv && "
IMAGE = (
    "python -m ziglang cc -target thumb-freestanding-eabi -mcpu=cortex_m4 -O2 -ffunction-sections -fdata-sections"
    " -nostdlib -Wl,--gc-sections -Wl,--entry=main_loop -T {tests}/boards/application.ld -Isensor/include -Isensor/src"
    " sensor/src/*.c {tests}/boards/application.c -o firmware.elf && "
)
SMALL = "--out figures --records 1000 --records-runs 1"
# By a slow command the line that is run: with the files that it needs, or smaller; "" where it runs as it is.
SLOW = {
    "python3 -m venv .venv": "",
    "pytest bench": "",
    "pytest bench/bench_cost.py": "",
    "pytest bench/bench_release_c.py -s": "",
    "python tests/support/pages.py": "python tests/support/pages.py README.md",
    "python tests/support/schemas.py --write": "cp -r {root}/tests {root}/docs {root}/kernels {root}/tables ."
    " && python tests/support/schemas.py --write && diff -r docs/schemas {root}/docs/schemas",
    "python bench/goals.py": "python bench/goals.py --runs 1 --only wide",
    "python bench/search_dpsgd.py": "python bench/search_dpsgd.py --quick",
    "python bench/ratios.py --check": "python bench/ratios.py --help",  # test_ratios.py runs it
    "make clean": f"{SENSOR}cd sensor && make -s && make clean && sensorsim verify .",
    'sensorsim cost --check cost.lock | tee -a "$GITHUB_STEP_SUMMARY"': "sensorsim cost --lock cost.lock"
    " && export GITHUB_STEP_SUMMARY=summary.md && set -o pipefail"
    ' && sensorsim cost --check cost.lock | tee -a "$GITHUB_STEP_SUMMARY"',
    "sensorsim data fit FILE --out .": f"{DAYS}sensorsim data fit days.csv --out .",
    "sensorsim export --kernels due": "sensorsim export --kernels due --out due",
    "sensorsim export --kernels smooth.py:smooth": "sensorsim export --kernels smooth.py:smooth --out smooth",
    "sensorsim noise peers --plot peers.png": "",
    "sensorsim noise show FILE --plot table.png": f"{SENSOR}sensorsim noise show table.txt --plot table.png",
    "sensorsim verify --elf firmware.elf --manifest sensor/MANIFEST.json": f"{SENSOR}{IMAGE}"
    "sensorsim verify --elf firmware.elf --manifest sensor/MANIFEST.json",
    "sensorsim figures --out figures": f"sensorsim figures {SMALL} --runs 1 --epsilon 1.6 --sigma 0",
    "sensorsim figures --only accuracy_records": f"sensorsim figures --only accuracy_records {SMALL}",
    "sensorsim sweep --data FILE --mechanism sampled --epsilon 0.1,0.4,1.6,6.4 --sigma 0,5": f"{DAYS}sensorsim sweep"
    " --data days.csv --mechanism sampled --epsilon 0.1,0.4,1.6,6.4 --sigma 0,5 --runs 1 --results results.sqlite",
    "sensorsim sweep --mechanism dpsgd-weights,sketch --epsilon 0.1,1.6 --sigma 0,5 --runs 100": "sensorsim sweep"
    " --mechanism dpsgd-weights,sketch --epsilon 0.1,1.6 --sigma 0,5 --runs 1 --results results.sqlite",
}
QUICK = {"ruff check": "", "ruff format": "ruff format --check"}
IN_CLONE = ("pytest ", "ruff ", "python bench/", "python tests/support/pages.py", "pip install ")


def line_of(command):
    """Return the line that is run for a command, and whether it is slow; no line for one that no test knows."""
    if command.startswith("pip install "):  # test_base_install.py installs
        return f"python -m pip install --dry-run --no-deps {command.removeprefix('pip install ')}", True
    if command in SLOW:
        return SLOW[command] or command, True
    if command.startswith("pytest "):
        return f"{command} --collect-only", True
    if command in QUICK or command.startswith("sensorsim "):
        return QUICK.get(command) or command, False
    return "", False


def named_elsewhere(named):
    """Return the commands, each once, that no console block of a page runs."""
    shown = [each for each in named if each.how == "block"]
    rest = [each for each in named if each.how != "block" and not any(covers(run, each) for run in shown)]
    return list(dict.fromkeys(each.plain for each in rest))


def test_every_command_is_run():
    assert [command for command in named_elsewhere(NAMED) if not line_of(command)[0]] == []
    assert SLOW.keys() | QUICK.keys() <= {each.plain for each in NAMED}, "no page names these any more"


@pytest.mark.parametrize(
    "text",
    ["`python bench/new.py --all`", "Then:\n\n    cmake -B build && cmake --build build\n", "```sh\nnpm test\n```"],
)
def test_a_new_command_is_found(text):
    found = named_elsewhere(named_commands("page.md", f"# A page\n\n{text}\n"))
    assert found and not any(line_of(command)[0] for command in found)


@pytest.fixture
def place(tmp_path):
    """Make a folder with the files that the commands name."""
    for name in ("board.csv", "my-board.csv"):
        (tmp_path / name).write_text(board(), "utf-8")
    (tmp_path / "my-core.csv").write_text(CORE, "utf-8")
    for block in blocks(TEXTS["docs/kernels.md"]):
        if "file" in block.remarks:
            (tmp_path / block.remarks["file"]).write_text(block.text, "utf-8")
    return tmp_path


def run(command, folder):
    line = line_of(command)[0].replace("{root}", str(ROOT)).replace("{tests}", str(ROOT / "tests" / "support"))
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GITHUB_"))}
    bare |= {"PATH": PATH, "COLUMNS": "80", "SENSORSIM_CACHE": str(folder / ".cache")}
    asked = {"cwd": ROOT if command.startswith(IN_CLONE) else folder, "env": bare, "capture_output": True, "text": True}
    done = subprocess.run(["bash", "-c", line], timeout=3600, **asked)
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


@pytest.mark.parametrize("command", [each for each in named_elsewhere(NAMED) if not line_of(each)[1]])
def test_a_quick_command(command, place, monkeypatch):
    if command in QUICK:
        run(command, place)
        return
    monkeypatch.chdir(place)
    console = Console(place)
    with environment(COLUMNS="80"):
        said = console.run(command)
    assert console.code == 0 and said, said


@pytest.mark.slow
@pytest.mark.parametrize("command", [each for each in named_elsewhere(NAMED) if line_of(each)[1]])
def test_a_long_command(command, place):
    if command == "make clean" and not shutil.which("make"):
        pytest.skip("make is not installed")
    done = run(command, place)
    if command.startswith("pip install"):
        assert "Would install sensorsim" in done.stdout or " -q" in command
        assert "does not provide the extra" not in done.stderr
    if command in SLOW and command.startswith("pytest bench"):
        assert "benchmark" in done.stdout or " -s" in command, "no table of pytest-benchmark"
