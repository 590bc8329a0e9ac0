"""How fast `sensorsim cost` starts, beside a bare import of click. Run: pytest bench/bench_cost.py

Goal: at most 2.5 times `python -c "import click"`. For the ratio the rounds are taken in turn, so that both meet the
same machine.
"""

import subprocess
import sys
import time
from typing import Any

import pytest

COMMANDS = {
    "import click": [sys.executable, "-c", "import click"],
    "sensorsim cost": [sys.executable, "-m", "sensorsim", "cost", "--n", "14", "--l", "7"],
    "sensorsim --help": [sys.executable, "-m", "sensorsim", "--help"],
}


@pytest.mark.benchmark(group="start")
@pytest.mark.parametrize("name", COMMANDS)
def test_start(benchmark: Any, name: str) -> None:
    benchmark.pedantic(
        subprocess.run, (COMMANDS[name],), {"check": True, "capture_output": True}, rounds=15, warmup_rounds=2
    )


def test_start_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    best = dict.fromkeys(COMMANDS, float("inf"))
    for _ in range(15):
        for name, command in COMMANDS.items():
            begin = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            best[name] = min(best[name], time.perf_counter() - begin)
    with capsys.disabled():
        for name, seconds in best.items():
            print(f"\n{name:<18} {1000 * seconds:6.1f} ms   {seconds / best['import click']:.2f} ×", end="")
    assert best["sensorsim cost"] > best["import click"]
