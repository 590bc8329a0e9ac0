"""Simulate a fleet in batches of devices, on the cores of this machine or on a Dask cluster.

The division into batches depends on the settings alone, and sums of whole numbers do not depend on their order: any
number of jobs, any cluster and any interruption gives the same sums, bit for bit.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any

from sensorsim._util import pool
from sensorsim._util.errors import InputError
from sensorsim._util.files import Name
from sensorsim.datasets.public_ranges import brief
from sensorsim.fleets.fleet_file import VERSION, FleetFile

if TYPE_CHECKING:
    from sensorsim.fleets.counts import Counts
    from sensorsim.fleets.settings import Settings

Progress = Callable[[str, int], None]  # the current activity, and how many devices are finished

RECORDS_OF_A_BATCH = 1 << 21  # a second or two
FEWEST_BATCHES = 8  # if there are that many devices: for every core, and to have something to resume from
MOST_BATCHES = 1 << 17  # whose numbers are held in memory
MOST_HELD = 1 << 25  # numbers of unfinished batches: a quarter of a gigabyte
CLUSTER_LOOK = 2  # seconds between looks at whether a cluster has workers
COMPILES, RUNS = "compiles", "runs"


def simulate(
    settings: "Settings",
    path: Name,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    progress: Progress = lambda doing, devices: None,
) -> "Counts":
    """Return the sums of the fleet, which are also in the file at `path`; a finished file is only read.

    The work runs on `jobs` threads, by default one for each core, or on the cluster at the address `dask`. The same
    call after an interruption runs only the batches that are missing in the file.
    """
    if jobs is not None and (type(jobs) is not int or jobs < 1):
        raise InputError(f"jobs is {jobs}; give a whole number of 1 or more.")
    with FleetFile(path, settings, batch_size(settings)) as file:
        if file.finished:
            progress(RUNS, file.devices)
        else:
            with nullcontext() if dask is None else pool.cluster_client(dask, file.progress()) as client:
                file.claim()
                progress(COMPILES, file.devices)
                if dask is None:
                    _run_on_threads(file, jobs or os.cpu_count() or 1, progress)
                else:
                    _run_on_cluster(file, dask, client, progress)
        return file.sums


def finished_devices(settings: "Settings", path: Name) -> int:
    """Return how many devices are in the sums of the file."""
    with FleetFile(path, settings, batch_size(settings)) as file:
        return file.devices


def batch_size(settings: "Settings") -> int:
    """Return how many devices a batch has; more if writing its sums would take longer than computing them."""
    records = max(RECORDS_OF_A_BATCH, _sum_count(settings))
    size = min(records // (settings.days * settings.records_per_day), -(-settings.devices // FEWEST_BATCHES))
    return max(size, -(-settings.devices // MOST_BATCHES), 1)


def _sum_count(settings: "Settings") -> int:
    """Return how many numbers the sums of a batch are."""
    from sensorsim.fleets.counts import Counts

    return sum(array.size for array in Counts.empty(settings).arrays().values())


def _run_batches(
    file: FleetFile,
    room: Callable[[], int],
    submit: Callable[[int, int], Any],
    finished: Callable[[Iterable[Any]], Iterable[Any]],
    progress: Progress,
) -> None:
    """Run the missing batches, `room()` of them at a time, and store each as it finishes."""
    left = iter(file.missing)
    running: dict[Any, int] = {}
    while True:
        for number in islice(left, max(room() - len(running), 0 if running else 1)):
            running[submit(*file.range_of(number))] = number
        if not running:
            return
        for future in finished(running):
            file.add(running.pop(future), future.result())
            progress(RUNS, file.devices)


def _run_on_threads(file: FleetFile, jobs: int, progress: Progress) -> None:
    """Run on threads: compiled code holds no lock of Python's."""
    from sensorsim.fleets.life import run_batch

    run_batch(file.settings, 0, 0)  # no device: compile once, where Ctrl-C works
    progress(RUNS, file.devices)
    most = max(1, min(jobs + 1, MOST_HELD // _sum_count(file.settings)))  # one waits, so that no thread does
    threads = ThreadPoolExecutor(jobs)
    try:
        _run_batches(
            file,
            lambda: most,
            lambda first, last: threads.submit(run_batch, file.settings, first, last),
            lambda running: wait(running, return_when=FIRST_COMPLETED).done,
            progress,
        )
    finally:
        threads.shutdown(cancel_futures=True)  # after Ctrl-C, batches that began end and are not stored


def _run_on_cluster(file: FleetFile, address: str, client: Any, progress: Progress) -> None:
    """Keep two batches per thread of the cluster running; settings, with their people, are sent once."""
    import distributed

    wait_for: Any = distributed.wait

    def finished(running: Iterable[Any]) -> list[Any]:
        """Return finished batches; raise ConnectionError once there has been no worker for a while."""
        seen = time.monotonic()
        while True:
            try:
                return list(wait_for(list(running), timeout=CLUSTER_LOOK, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                if client.nthreads():
                    seen = time.monotonic()
                if time.monotonic() - seen > pool.CLUSTER_WAIT:
                    raise ConnectionError("there are no workers any more") from None

    try:
        settings = client.scatter(file.settings, broadcast=True, hash=False)
        _run_batches(
            file,
            lambda: 2 * sum(client.nthreads().values()),
            lambda first, last: client.submit(work, settings, first, last, VERSION, pure=False),
            finished,
            progress,
        )
    except (InputError, sqlite3.Error):
        raise
    except Exception as error:
        why = f"could not run a batch ({type(error).__name__}: {brief(str(error).partition(chr(10))[0])})"
        if isinstance(error, OSError | CancelledError):  # not of a worker
            why = f"went away in the middle ({type(error).__name__})"
        advice = "start it anew, and give the same command again to go on"
        raise InputError(f"the Dask cluster at {brief(address)} {why}; {file.progress()}: {advice}.") from None


_compiling = threading.Lock()


def work(settings: "Settings", first: int, last: int, version: int) -> "Counts":
    """Run a batch in a worker of a cluster, which imports this function by name."""
    from sensorsim.fleets.life import run_batch

    if version != VERSION:
        raise RuntimeError(f"a worker has version {VERSION} of the fleet, not {version}")
    with _compiling:  # no device: the threads of a worker compile once
        run_batch(settings, 0, 0)
    return run_batch(settings, first, last)
