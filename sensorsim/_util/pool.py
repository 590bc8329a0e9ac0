"""Worker processes that end with the process that started them, and connections to Dask clusters.

Nothing heavy is imported here, so that a worker begins to watch its parent at once.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sensorsim._util.errors import SHORT, InputError, cut, one_line
from sensorsim._util.hints import need

LOOK = 0.5  # seconds between two looks at the parent
CLUSTER_WAIT = 15.0  # seconds until a scheduler that does not answer is given up


def end_with_parent(parent: int, end: Callable[[], object] = lambda: os._exit(1)) -> None:
    """Call `end` in this process when its parent is gone, however it ended: no one waits for the result."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK)
        end()

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def cluster_client(address: str, progress: str = "") -> Iterator[Any]:
    """Yield a client of the Dask cluster at the address; raise InputError unless it answers and has workers.

    `progress` says what is stored so far. Dask writes pages to stderr about a cluster that went away, from threads
    that outlive the client, so its log stays off after an error.
    """
    need("distributed", why="--dask", instead="leave --dask out")
    import logging

    from distributed import Client

    shown, stored = _brief(address), f"; {progress}: " if progress else "; "
    levels = {log: log.level for log in map(logging.getLogger, ("distributed", "distributed.client"))}
    for log in levels:
        log.setLevel(logging.CRITICAL)
    try:
        client: Any = Client(address, timeout=CLUSTER_WAIT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {shown} ({_brief(error)}){stored}start one, or leave --dask out."
        ) from None
    with client:
        if not client.nthreads():
            raise InputError(f"the Dask scheduler at {shown} has no workers{stored}start one with: dask worker {shown}")
        yield client
    for log, level in levels.items():
        log.setLevel(level)


def _brief(what: object) -> str:
    return cut(one_line(str(what)), SHORT)
