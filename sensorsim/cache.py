"""Compiled functions on disk: one file each, named by the hash of all that it follows from.

The folder is `sensorsim` in the user's cache ($XDG_CACHE_HOME, ~/.cache); SENSORSIM_CACHE names another one, or is
`off`. What is read is run, so a folder or a file that someone else owns or may write to is not trusted, and a file
whose content is not what was written is not read. Whatever goes wrong here, a function is compiled as if there were
no store.
"""

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

VARIABLE = "SENSORSIM_CACHE"
OFF = ("off", "0", "none", "")
MOST_BYTES = 256 << 20  # of the folder: the files that were not used for longest go
ENDING, BEGUN = ".compiled", ".begun-"  # how names end, and how those begin that are being written
SECONDS_TO_WRITE = 3600.0
HASH = 32


def folder() -> Path | None:
    """Where compiled functions are kept, or None: nowhere."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        return None if given.strip().lower() in OFF else Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")  # noqa: PTH111, PTH118
    # A relative path would be another folder in every place from which we are started.
    return Path(base) / "sensorsim" if base and os.path.isabs(base) else None  # noqa: PTH117


def load(name: str) -> bytes | None:
    """What was kept under this name, or None."""
    place = folder()
    if place is None:
        return None
    try:
        with open(name + ENDING, "rb", opener=partial(_opened, place)) as file:
            if not _is_private(os.fstat(file.fileno()), stat.S_ISREG):
                return None
            data = file.read()
            with contextlib.suppress(OSError):
                os.utime(file.fileno())
    except OSError:
        return None
    return data[HASH:] if hashlib.sha256(data[HASH:]).digest() == data[:HASH] else None


def save(name: str, data: bytes) -> None:
    """Keep it, whole or not at all: another process never sees half a file."""
    place = folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_ours(place):
            return
        handle, new = tempfile.mkstemp(prefix=BEGUN, dir=place)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123
                file.write(hashlib.sha256(data).digest() + data)
            os.replace(new, place / (name + ENDING))  # noqa: PTH105
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)  # noqa: PTH108
            raise
        _trim(place)


def _opened(place: Path, name: str, flags: int) -> int:
    """A file of the folder. The folder is looked at when it is open: no other can be put in its place after that."""
    if os.open not in os.supports_dir_fd:
        return os.open(place / name, flags)
    room = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if not _is_private(os.fstat(room), stat.S_ISDIR):
            raise PermissionError(f"{place} is not ours alone")
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=room)
    finally:
        os.close(room)


def is_ours(place: Path) -> bool:
    """Return whether it is a folder that nobody else can have put something into."""
    try:
        return _is_private(place.lstat(), stat.S_ISDIR)
    except OSError:
        return False


def _is_private(found: os.stat_result, kind: object) -> bool:
    """Whether it is of that kind, and nobody else can have put something there."""
    if not kind(found.st_mode):  # type: ignore[operator]
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)


def _trim(place: Path) -> None:
    """Below three quarters of what it may hold, once it holds more; what a process that was killed had begun goes."""
    for path in place.glob(BEGUN + "*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - SECONDS_TO_WRITE:
                path.unlink()
    files = []
    for path in place.glob("*" + ENDING):
        with contextlib.suppress(OSError):
            found = path.stat()
            files.append((found.st_mtime, found.st_size, path))
    total = sum(size for _, size, _ in files)
    if total <= MOST_BYTES:
        return
    for _, size, path in sorted(files, key=lambda file: file[0]):
        if total <= MOST_BYTES * 3 // 4:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size
