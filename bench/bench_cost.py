"""How fast `sensorsim cost` starts, beside a bare import of click. Run: pytest bench/bench_cost.py

Goal: at most 2.5 times `python -c "import click"`, both with their modules compiled on disk, as pip leaves an installed
package. For the ratio the rounds are taken in turn, so that both meet the same machine.
"""

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import pytest

COMMANDS = {
    "import click": [sys.executable, "-c", "import click"],
    "sensorsim cost": [sys.executable, "-m", "sensorsim", "cost", "--n", "14", "--l", "7"],
    "sensorsim --help": [sys.executable, "-m", "sensorsim", "--help"],
}


CACHE = tempfile.TemporaryDirectory()
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["PYTHONPYCACHEPREFIX"] = CACHE.name


def start(name: str) -> None:
    subprocess.run(COMMANDS[name], check=True, capture_output=True, env=ENVIRONMENT)


@pytest.mark.benchmark(group="start")
@pytest.mark.parametrize("name", COMMANDS)
def test_start(benchmark: Any, name: str) -> None:
    benchmark.pedantic(start, (name,), rounds=15, warmup_rounds=2)


def test_start_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(15):
        for name in COMMANDS:
            begin = time.perf_counter()
            start(name)
            best[name] = min(best[name], time.perf_counter() - begin)
    with capsys.disabled():
        for name, seconds in best.items():
            print(f"\n{name:<18} {1000 * seconds:6.1f} ms   {seconds / best['import click']:.2f} ×", end="")
    assert best["sensorsim cost"] > best["import click"]
