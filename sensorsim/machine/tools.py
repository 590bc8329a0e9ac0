"""Run a compiler or a checker within a time limit and with its own temporary folder, and end all that it started.

The compiler of ziglang caches what it builds (the arithmetic of a core, which takes it some ten seconds) in a folder
inside our cache, so that it needs no HOME. Where that cannot be used, it gets a temporary one for this process.
"""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from sensorsim._util import disk_cache as store
from sensorsim._util.errors import UnableError
from sensorsim._util.files import is_full_message, no_room, temporary_folder

SECONDS = 600  # for one run of a tool of ours; the first link for a core takes the compiler some ten seconds
VARIABLES = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
MOST_BYTES = 512 << 20  # of the compiler's folder; it is emptied when it holds more and no tool uses it
MARK = "last-used"
IDLE = 3600  # seconds without a new process that compiles
LITTLE_ROOM = 4 << 20  # bytes free in the temporary folder: a tool that ends without a word may have lacked them
_group = {"own": True}


class TimedOutError(UnableError):
    """Report a tool that was stopped because it took too long."""


def run_tool(
    command: Sequence[str], name: str = "the compiler", seconds: float = SECONDS, cwd: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tool and return what it printed; OSError where it cannot be started, TimedOutError where it does not end.

    Whatever ends the wait, Ctrl-C too, ends the tool and everything that it started. What it writes to its temporary
    folder goes with it.
    """
    with temporary_folder() as room:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **environment(), "TMPDIR": room},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            process_group=0 if os.name == "posix" and _group["own"] else None,
        )
        try:
            out, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise TimedOutError(f"{name} took more than {seconds:g} s and was stopped.") from None
        finally:
            _end(process)
        silent = process.returncode < 0 or not (said + out).strip()  # ended by a signal, or without a word
        if process.returncode and (
            is_full_message(said + out) or (silent and shutil.disk_usage(room).free < LITTLE_ROOM)
        ):
            raise no_room()
    return subprocess.CompletedProcess(command, process.returncode, out, said)


def stay_in_group() -> None:
    """Start tools in the process group of this process from now on: its parent ends the whole group."""
    _group["own"] = False


def environment() -> Mapping[str, str]:
    """Return the variables that set the cache of ziglang's compiler; the user's own take precedence."""
    place = os.environ.get(VARIABLES[0]) or str(_folder())
    return {VARIABLES[0]: place, VARIABLES[1]: os.environ.get(VARIABLES[1]) or place}


def _end(process: "subprocess.Popen[str]") -> None:
    """End the tool and what it started, if anything is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix" and _group["own"]:
            os.killpg(process.pid, signal.SIGKILL)
        elif process.poll() is None:
            process.kill()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


@cache
def _folder() -> Path:
    """Return the compiler's folder: inside ours where that can be written, else one that goes with this process."""
    kept = store.folder()
    if kept is not None:
        place = kept.absolute() / "zig"
        with contextlib.suppress(OSError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if store.is_ours(kept) and store.is_ours(place):
                _bound(place)
                return place
    try:
        made = Path(tempfile.mkdtemp(prefix="sensorsim-zig-"))
    except OSError:
        raise no_room() from None
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _bound(place: Path) -> None:
    """Empty a folder that is too large and was not used for a while; parts name each other, so none can stay."""
    idle = not (place / MARK).exists() or time.time() - (place / MARK).stat().st_mtime > IDLE
    if idle and sum(one.stat().st_blocks for one in place.rglob("*")) * 512 > MOST_BYTES:
        for part in place.iterdir():
            shutil.rmtree(part, ignore_errors=True)
    (place / MARK).touch()
