"""The folder where results are stored for later processes: machine code, and reports of the MISRA checker.

It is `sensorsim` in the user's cache folder (~/.cache on Linux); SENSORSIM_CACHE names another folder, or is `off`.
Machine code from it is executed, so a folder that another user owns or can write to is not used.
"""

import contextlib
import os
import tempfile
from pathlib import Path

VARIABLE = "SENSORSIM_CACHE"
OFF = ("off", "0", "none", "")
MOST_BYTES = 256 << 20  # of all files; the oldest are removed first
ENDING = ".stored"
MACHINE_CODE = Path("numba")


def folder() -> Path | None:
    """Return the path of the cache folder, or None if there is none."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        return None if given.strip().lower() in OFF else Path(given)
    from platformdirs import user_cache_path

    place = user_cache_path("sensorsim", appauthor=False, opinion=False)
    return place if place.is_absolute() else None  # a relative path would depend on the working directory


def is_ours(place: Path) -> bool:
    """Check that a path is a folder of this user, and that no other user can write to it."""
    try:
        found = place.lstat()
    except OSError:
        return False
    if not place.is_dir() or place.is_symlink():
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)


def private_folder(below: Path = Path()) -> Path | None:
    """Create the cache folder, or a folder in it, and return its path; None if it cannot be written or trusted."""
    top = folder()
    if top is None:
        return None
    parts = [top.joinpath(*below.parts[:length]) for length in range(len(below.parts) + 1)]
    try:
        for part in parts:
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return parts[-1] if all(map(is_ours, parts)) else None


def load(name: str) -> bytes | None:
    """Return the content that was saved under this name, or None."""
    place = private_folder()
    try:
        return None if place is None else (place / (name + ENDING)).read_bytes()
    except OSError:
        return None


def save(name: str, data: bytes) -> None:
    """Store the content under this name, if there is a cache; another process never reads half of it."""
    place = private_folder()
    if place is not None:
        write(place / (name + ENDING), data)


def write(path: Path, data: bytes) -> bool:
    """Write one file of the cache in one step, make space for it, and return whether that worked."""
    try:
        handle, new = tempfile.mkstemp(dir=path.parent)
        with open(handle, "wb") as file:  # noqa: PTH123
            file.write(data)
        os.replace(new, path)  # noqa: PTH105
    except OSError:
        return False
    _trim()
    return True


def _trim() -> None:
    """Remove the oldest files until three quarters of the limit are left, once the files exceed it."""
    top = folder()
    files = []
    for place in (top, top / MACHINE_CODE, top / MACHINE_CODE / "__pycache__") if top else ():
        for path in place.glob("*.*"):
            with contextlib.suppress(OSError):
                if path.is_file():
                    files.append((path.stat().st_mtime, path.stat().st_size, path))
    total = sum(size for _, size, _ in files)
    most = MOST_BYTES if total <= MOST_BYTES else MOST_BYTES * 3 // 4
    for _, size, path in sorted(files):
        if total <= most:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size
