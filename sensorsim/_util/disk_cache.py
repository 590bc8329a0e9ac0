"""Cache of compiled functions: one file each, named by the hash of everything it depends on.

The folder is `sensorsim` in the user's cache folder (~/.cache on Linux); SENSORSIM_CACHE names another one, or is
`off`. Cached code is run, so a folder or a file that another user owns or may write to is ignored, and so is a file
whose hash is wrong. On any error a function is compiled as if there were no cache.
"""

import hashlib
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

VARIABLE = "SENSORSIM_CACHE"
OFF = ("off", "0", "none", "")
MOST_BYTES = 256 << 20  # of the folder: the least recently used files are removed
ENDING, BEGUN = ".compiled", ".begun-"  # suffix of cached files, prefix of files being written
SECONDS_TO_WRITE = 3600.0
HASH = 32  # bytes of SHA-256


def folder() -> Path | None:
    """Return the cache folder, or None if there is none."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        return None if given.strip().lower() in OFF else Path(given)
    from platformdirs import user_cache_path

    place = user_cache_path("sensorsim", appauthor=False, opinion=False)
    return place if place.is_absolute() else None  # a relative path would depend on the working directory


def load(name: str) -> bytes | None:
    """Return the content cached under this name, or None."""
    place = folder()
    if place is None or not is_ours(place):
        return None
    try:
        handle = os.open(place / (name + ENDING), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:  # noqa: PTH123
            if not _is_private(os.fstat(handle), stat.S_ISREG):
                return None
            data = file.read()
            with suppress(OSError):
                os.utime(handle)
    except OSError:
        return None
    return data[HASH:] if hashlib.sha256(data[HASH:]).digest() == data[:HASH] else None


def save(name: str, data: bytes) -> None:
    """Cache `data` under this name, atomically."""
    place = folder()
    if place is None:
        return
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_ours(place):
            return
        handle, new = tempfile.mkstemp(prefix=BEGUN, dir=place)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123
                file.write(hashlib.sha256(data).digest() + data)
            Path(new).replace(place / (name + ENDING))
        finally:
            Path(new).unlink(missing_ok=True)
        _trim(place)


def is_ours(place: Path) -> bool:
    """Return whether this is a folder that only this user can write to."""
    try:
        return _is_private(place.lstat(), stat.S_ISDIR)
    except OSError:
        return False


def _is_private(found: os.stat_result, is_kind: object) -> bool:
    """Return whether the file is of a kind, and only this user can write to it."""
    if not is_kind(found.st_mode):  # type: ignore[operator]
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)


def _trim(place: Path) -> None:
    """Remove what killed processes began, and above MOST_BYTES the least recently used files down to three quarters."""
    files = []
    for path in place.iterdir():
        with suppress(OSError):
            found = path.stat()
            if path.name.startswith(BEGUN) and found.st_mtime < time.time() - SECONDS_TO_WRITE:
                path.unlink()
            elif path.name.endswith(ENDING):
                files.append((found.st_mtime, found.st_size, path))
    total = sum(size for _, size, _ in files)
    goal = total if total <= MOST_BYTES else MOST_BYTES * 3 // 4
    for _, size, path in sorted(files, key=lambda file: file[0]):
        if total <= goal:
            return
        with suppress(OSError):
            path.unlink()
            total -= size
