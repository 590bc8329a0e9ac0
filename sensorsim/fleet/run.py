"""A fleet in batches of devices, on the cores of this machine or on a Dask cluster; each is kept once it is finished.

How the devices are divided follows from the settings alone, and sums of whole numbers do not tell their order: any
number of jobs, any cluster, any interruption gives the same file, to the bit.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from sensorsim._util.files import Name
from sensorsim._util.hints import need
from sensorsim.errors import InputError
from sensorsim.fleet.store import VERSION, Store
from sensorsim.ranges import brief

if TYPE_CHECKING:
    from sensorsim.fleet.counts import Counts
    from sensorsim.fleet.settings import Settings

Progress = Callable[[str, int], None]  # what it is doing, and devices that are finished

RECORDS_OF_A_BATCH = 1 << 21  # a second or two
FEWEST_BATCHES = 8  # where there are so many devices: for every core, and for something to keep
MOST_BATCHES = 1 << 17  # whose numbers are held in memory
MOST_HELD = 1 << 25  # numbers of unfinished batches: a quarter of a gigabyte
CLUSTER_WAIT = 15  # seconds until a scheduler that does not answer, or has no workers left, is given up
CLUSTER_LOOK = 2  # seconds between looks at whether it has workers
COMPILES, RUNS = "compiles", "runs"


def simulate(
    settings: "Settings",
    path: Name,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    progress: Progress = lambda doing, devices: None,
) -> "Counts":
    """The sums of the fleet, which are also in the file at `path`; a file that is finished is read and no more.

    On as many threads as there are jobs, by default one for each core, or on the cluster at the address `dask`. Give
    the same again after an interruption: batches that are in the file are not run again.
    """
    if jobs is not None and (type(jobs) is not int or jobs < 1):
        raise InputError(f"jobs is {jobs}; give a whole number of 1 or more.")
    with Store(path, settings, batch_size(settings)) as store:
        if store.finished:
            progress(RUNS, store.devices)
        elif dask is not None:
            _on_cluster(store, dask, progress)
        else:
            _on_threads(store, jobs or os.cpu_count() or 1, progress)
        return store.sums


def finished_devices(settings: "Settings", path: Name) -> int:
    """Devices that are in the sums of the file."""
    with Store(path, settings, batch_size(settings)) as store:
        return store.devices


def batch_size(settings: "Settings") -> int:
    """Devices of a batch; more where there are so many sums that to keep them would take longer than to make them."""
    records = max(RECORDS_OF_A_BATCH, _numbers(settings))
    size = min(records // (settings.days * settings.records_per_day), -(-settings.devices // FEWEST_BATCHES))
    return max(size, -(-settings.devices // MOST_BATCHES), 1)


def _numbers(settings: "Settings") -> int:
    """That the sums of a batch are."""
    from sensorsim.fleet.counts import Counts

    return sum(array.size for array in Counts.empty(settings).arrays().values())


def _on_threads(store: Store, jobs: int, progress: Progress) -> None:
    """Batches run without Python's lock, so threads are enough."""
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

    from sensorsim.fleet.life import run_batch

    store.claim()
    progress(COMPILES, store.devices)
    run_batch(store.settings, 0, 0)  # no device: compiled here, once, and where Ctrl-C ends it
    progress(RUNS, store.devices)
    left = iter(store.missing)
    running: dict[Future[Counts], int] = {}
    most = max(1, min(jobs + 1, MOST_HELD // _numbers(store.settings)))  # one waits, so that no thread does
    pool = ThreadPoolExecutor(jobs)
    try:
        while True:
            for number in islice(left, most - len(running)):
                running[pool.submit(run_batch, store.settings, *store.range_of(number))] = number
            if not running:
                return
            _keep(store, running, wait(running, return_when=FIRST_COMPLETED).done, progress)
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C: what has begun ends, and is not kept


def _keep(store: Store, running: dict[Any, int], finished: Iterable[Any], progress: Progress) -> None:
    for future in finished:
        store.add(running.pop(future), future.result())
        progress(RUNS, store.devices)


def _on_cluster(store: Store, address: str, progress: Progress) -> None:
    with _client(store, address) as client:
        store.claim()
        progress(COMPILES, store.devices)
        try:
            _farm_out(client, store, progress)
        except InputError:
            raise
        except (OSError, CancelledError) as error:
            raise _stopped(store, address, f"went away in the middle ({type(error).__name__})") from None
        except Exception as error:  # a worker's, which may be any
            what = f"{type(error).__name__}: {brief(str(error).partition(chr(10))[0])}"
            raise _stopped(store, address, f"could not run a batch ({what})") from None


def _stopped(store: Store, address: str, why: str) -> InputError:
    return InputError(
        f"the Dask cluster at {brief(address)} {why}; {store.kept}: start it anew, and give the same command again to "
        "go on."
    )


@contextmanager
def _client(store: Store, address: str) -> Iterator[Any]:
    """A cluster that answers and has workers."""
    need("distributed", why="--dask", instead="leave --dask out")
    from distributed import Client

    with _quiet():
        try:
            client: Any = Client(address, timeout=CLUSTER_WAIT)  # type: ignore[no-untyped-call]
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                f"no Dask scheduler answers at {brief(address)} ({brief(error)}); {store.kept}: start one, or leave "
                "--dask out."
            ) from None
        with client:
            if not client.nthreads():
                raise InputError(
                    f"the Dask scheduler at {brief(address)} has no workers; {store.kept}: start one with: dask worker "
                    f"{brief(address)}"
                )
            yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask says pages on stderr about a cluster that goes away, from threads that outlive the client: none of it."""
    import logging

    levels = {log: log.level for log in map(logging.getLogger, ("distributed", "distributed.client"))}
    for log in levels:
        log.setLevel(logging.CRITICAL)
    yield
    for log, level in levels.items():  # only where all went well
        log.setLevel(level)


def _farm_out(client: Any, store: Store, progress: Progress) -> None:
    """A few batches at a time for every thread of the cluster; settings, with their people, are sent once."""
    settings = client.scatter(store.settings, broadcast=True, hash=False)
    left = iter(store.missing)
    running: dict[Any, int] = {}
    while True:
        room = 2 * sum(client.nthreads().values()) - len(running)
        for number in islice(left, max(room, 0 if running else 1)):
            first, last = store.range_of(number)
            running[client.submit(work, settings, first, last, VERSION, pure=False)] = number
        if not running:
            return
        _keep(store, running, _some_finished(client, running), progress)


def _some_finished(client: Any, running: dict[Any, int]) -> list[Any]:
    """Waits; an error once there has been no worker for a while, as batches would then wait for ever."""
    import distributed

    wait: Any = distributed.wait
    seen = time.monotonic()
    while True:
        try:
            return list(wait(list(running), timeout=CLUSTER_LOOK, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            if client.nthreads():
                seen = time.monotonic()
            if time.monotonic() - seen > CLUSTER_WAIT:
                raise ConnectionError("there are no workers any more") from None


_compiling = threading.Lock()


def work(settings: "Settings", first: int, last: int, version: int) -> "Counts":
    """What a worker of a cluster runs; it imports this by name."""
    from sensorsim.fleet.life import run_batch

    if version != VERSION:
        raise RuntimeError(f"a worker has version {VERSION} of the fleet, not {version}")
    with _compiling:  # no device: the threads of a worker compile once
        run_batch(settings, 0, 0)
    return run_batch(settings, first, last)
