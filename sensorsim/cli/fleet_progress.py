"""Show the progress of a fleet as a bar on stderr; it starts with the work, so that errors come without one."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sensorsim.cli.output import progress_bar

if TYPE_CHECKING:
    from sensorsim.fleets.counts import Counts
    from sensorsim.fleets.fleet_result import FleetResult
    from sensorsim.fleets.settings import Settings
    from sensorsim.fleets.simulation import Progress

SOON = 1.0  # seconds without a bar


def run_with_progress(settings: "Settings", path: str, jobs: int | None, dask: str | None) -> "Counts":
    """Simulate the fleet behind a bar; after Ctrl-C report how many devices are stored, and exit."""
    from sensorsim.fleets.simulation import finished_devices, simulate

    with _bar(settings) as progress:
        try:
            return simulate(settings, path, jobs=jobs, dask=dask, progress=progress)
        except KeyboardInterrupt:
            pass
    done = finished_devices(settings, path)  # from the file: Ctrl-C may come between a write and its report
    click.echo(f"{done:,} devices are safe in {path}; run the same command to go on.", err=True)
    sys.exit(130)


@contextmanager
def _bar(settings: "Settings") -> "Iterator[Progress]":
    """Yield a function that updates a bar with the device-days per second."""
    from sensorsim.fleets.simulation import COMPILES

    bar = progress_bar("fleet", "devices")
    task = bar.add_task("starting", total=settings.devices)
    began: tuple[float, int] | None = None  # start time, and devices that were finished then

    def show(doing: str, devices: int) -> None:
        nonlocal began
        bar.start()  # here, so that an error before comes without one
        if doing == COMPILES:
            bar.update(task, completed=devices, description="compiling, some 20 seconds")
            return
        now = time.monotonic()
        began = began or (now, devices)
        passed, made = now - began[0], devices - began[1]
        speed = f"{made * settings.days / passed:,.0f} device-days/s" if made and passed else "running"
        bar.update(task, completed=devices, description=speed)

    try:
        yield show
    finally:
        bar.stop()


def reckon_with_progress(result: "FleetResult") -> None:
    """Compute the estimates, behind a bar if they take long."""
    from sensorsim.fleets.estimates import number_of

    bar = progress_bar("means", "intervals")
    task = bar.add_task("each takes some milliseconds", total=number_of(result.settings, result.every))
    began = time.monotonic()

    def show(made: int) -> None:
        if time.monotonic() - began > SOON:
            bar.start()
        bar.update(task, completed=made)

    try:
        result.reckon(show)
    finally:
        bar.stop()
