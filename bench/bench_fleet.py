"""Speed of a simulated fleet: whole runs, file included. Run: pytest bench/bench_fleet.py

Goal: 10^6 devices over 365 days of one feature a day, cryptographic generator included, in 10 minutes on two cores, in
less than a gigabyte, and linear in devices × days. Threads and workers of a Dask cluster run the same fleet into files
of their own, and must give the same sums, to the bit. Compiling is not counted: it is done once, before.
"""

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sensorsim.device.firmware import Firmware
from sensorsim.fleets.life import run_batch
from sensorsim.fleets.settings import People, Settings
from sensorsim.fleets.simulation import simulate
from sensorsim.noise.noise_table import ready_table

DEVICES, DAYS = 40_000, 365
GOAL = 10**6 * 365 / 600  # device-days a second, on two cores
MOST_MB = 1000
NOISE = Path(__file__).parent.parent / "tables" / "noise" / "rows-eps1.6-1.txt"


def fleet(devices: int = DEVICES, days: int = DAYS, **others: Any) -> Settings:
    firmware = Firmware(ready_table("1.6", 1, "rows"))
    return Settings(firmware, People.generated(), devices=devices, days=days, **others)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    run_batch(fleet(), 0, 0)


def timed(settings: Settings, path: Path, **others: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    found = simulate(settings, path, **others)
    return time.perf_counter() - start, found


def test_threads_and_workers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed")
    settings, here = fleet(), {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    took, sums = {}, {}
    for jobs in (1, 2):
        name = f"{jobs} threads"
        took[name], sums[name] = timed(settings, tmp_path / name, jobs=jobs)
    for workers in (1, 2):
        name = f"{workers} workers"
        with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, **here) as cluster:
            address = cluster.scheduler_address
            simulate(fleet(1000, seed=1), tmp_path / f"{name} compile", dask=address)
            took[name], sums[name] = timed(settings, tmp_path / name, dask=address)
    assert all(found == sums["1 threads"] for found in sums.values())
    first = took["1 threads"]
    with capsys.disabled():
        for name, seconds in took.items():
            print(f"\n  {name:<12}{DEVICES * DAYS / seconds:>12,.0f} device-days/s, {first / seconds:.2f} ×", end="")
    assert DEVICES * DAYS / took["2 threads"] > GOAL


@pytest.mark.parametrize("times", ["devices", "days"])
def test_linear(tmp_path: Path, capsys: pytest.CaptureFixture[str], times: str) -> None:
    """Four times the devices, or the days, take four times as long."""
    once = {"devices": 10_000, "days": 90}
    more = once | {times: 4 * once[times]}
    one, _ = timed(fleet(**once), tmp_path / "one", jobs=1)
    four, _ = timed(fleet(**more), tmp_path / "four", jobs=1)
    with capsys.disabled():
        print(f"\n  4 × {times}: {four / one:.2f} × the time", end="")
    assert four / one < 5


def test_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command's own high-water mark, for a hundred times the devices: the sums are as many."""
    program = "import sys\nfrom sensorsim.commands.program import main\nmain(sys.argv[1:])\n"
    program += "print(open('/proc/self/status').read())"
    peaks = []
    for devices in (1_000, 100_000):
        words = ["fleet", "--devices", devices, "--days", 90, "--noise", NOISE, "--out", tmp_path / f"{devices}"]
        done = subprocess.run([sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True)
        found = re.search(r"VmHWM:\s+(\d+) kB", done.stdout)
        assert found, done.stderr
        peaks.append(int(found[1]) / 1000)
    with capsys.disabled():
        print(f"\n  {peaks[0]:.0f} MB for 1,000 devices, {peaks[1]:.0f} MB for 100,000", end="")
    assert max(peaks) < MOST_MB
