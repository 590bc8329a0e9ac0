"""A fleet that needs no compiler: sums that follow from a device's number alone, for tests of what keeps and adds them.

Run as a program it simulates one into a file, and ends as it is told: python fleet_standin.py FILE JOBS [HOW]
"""

import os
import resource
import signal
import sys
import time
from typing import Any

import numpy as np

from sensorsim.device.firmware import Firmware
from sensorsim.fleets import fleet_file, life, simulation
from sensorsim.fleets.counts import OUTCOMES, Counts
from sensorsim.fleets.settings import People, Settings
from sensorsim.noise.noise_table import ready_table

ONE = 2**15
BECAME = ("received", "lost", "passed over", "spent", "no entropy", "bad clock", "cut")  # of a record
DEVICES, DAYS = 100, 3
LONG = 365  # days of which the sums are larger
PAUSE = 0.01  # seconds that a batch takes
SOME_BATCHES = 3  # until it ends as it is told


def people(rows: int = 30, n: int = 14, seed: int = 0) -> People:
    x = np.random.default_rng(seed).random((rows, n))
    return People.of([f"c{i}" for i in range(n)], x, np.arange(rows) // 3, "made here")


def settings(**others: Any) -> Settings:
    given = {"firmware": Firmware(ready_table("1.6", 1, "rows")), "people": people(), "devices": DEVICES, "days": DAYS}
    return Settings(**(given | others))


def run_batch(made_for: Settings, first: int, last: int) -> Counts:
    """Devices that fare by chance, a record a day; sums that a fleet of symbols can have."""
    counts, n = Counts.empty(made_for), made_for.people.n
    for device in range(first, last):
        own = np.random.default_rng(device)
        x = own.integers(0, ONE + 1, (made_for.days, n))
        counts.truth[...] += x
        counts.records[...] += 1
        became = own.choice(len(BECAME), made_for.days)
        for name, days in zip(BECAME, np.bincount(became, minlength=len(BECAME)), strict=True):
            counts.outcomes[OUTCOMES.index(name)] += days
            counts.outcomes[OUTCOMES.index("released")] += days if name in ("received", "lost") else 0
        counts.outcomes[OUTCOMES.index("records")] += made_for.days
        for name in ("opens", "stores"):
            counts.outcomes[OUTCOMES.index(name)] += own.integers(2**40)
        for day in np.flatnonzero(became == BECAME.index("received")):
            feature, symbol = own.integers(n), own.integers(made_for.columns)
            counts.tally[day, feature, symbol] += 1
            counts.behind[day, feature] += x[day, feature]
        for array in (counts.spent, counts.energy):  # each device stands once in these
            array[own.integers(array.size)] += 1
        counts.worst[...] = np.maximum(counts.worst, own.integers(made_for.days, size=2))
    time.sleep(PAUSE if last > first else 0)
    return counts


def plain_batch(made_for: Settings, first: int, last: int) -> Counts:
    """Devices of which each sends one feature a day, and nothing goes wrong: sums that a result can be made of."""
    counts, n = Counts.empty(made_for), made_for.people.n
    for device in range(first, last):
        for day in range(made_for.days):
            counts.tally[day, (device + day) % n, device % made_for.columns] += 1
            counts.truth[day] += 1 << 14
            counts.behind[day, (device + day) % n] += 1 << 14
            counts.records[day] += 1
        for name in ("records", "released", "received"):
            counts.outcomes[OUTCOMES.index(name)] += made_for.days
        counts.spent[made_for.days // made_for.spent_step] += 1
        counts.worst[:] = 1
        counts.energy[3] += 1
    time.sleep(PAUSE if last > first else 0)
    return counts


def ended(where: str) -> None:
    """Make the program end in a write of its fourth batch: before, within or after; or by Ctrl-C as it is run."""
    calls = 1 if where == "after" else 0

    def ends(step: Any, before: bool, how: signal.Signals) -> Any:
        def stepped(*values: Any) -> Any:
            nonlocal calls
            calls += 1
            last = calls == SOME_BATCHES + 2  # the first call is that of an empty file, or of no devices
            if last and before:
                os.kill(os.getpid(), how)
            found = step(*values)
            if last and not before:
                os.kill(os.getpid(), how)
            return found

        return stepped

    if where == "ctrl-c":
        life.run_batch = ends(plain_batch, True, signal.SIGINT)
    else:
        name, kept = "add" if where == "after" else "write_sums", fleet_file.FleetFile
        setattr(kept, name, ends(getattr(kept, name), where == "before", signal.SIGKILL))


def fills_up(doing: str, devices: int) -> None:
    """Limit file sizes once a third of the fleet is finished, as a full disk does."""
    if devices > DEVICES // 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def main(path: str, jobs: str, how: str = "") -> None:
    global PAUSE
    life.run_batch = run_batch
    others: dict[str, Any] = {}
    if how == "full disk":
        others["progress"] = fills_up
    elif how == "slowly":
        PAUSE = 0.4
    elif how:
        ended(how)
    simulation.simulate(settings(days=LONG) if how == "slowly" else settings(), path, jobs=int(jobs), **others)


if __name__ == "__main__":
    main(*sys.argv[1:])
