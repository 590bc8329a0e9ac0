"""Files of others are read with a bound; our own are written so that a reader never sees half of one."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError

if TYPE_CHECKING:
    import sqlite3

Name = str | os.PathLike[str]


def read_bounded(path: Name, most: int) -> bytes:
    """The content of an ordinary file of at most so many bytes; a device has no end. OSError if it cannot be read."""
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        raise InputError(f"{brief_path(path)} is a device or a pipe; give an ordinary file.")
    with Path(path).open("rb") as file:
        large = os.fstat(file.fileno()).st_size > most  # which need not be read to be told
        content = b"" if large else file.read(most + 1)
    if large or len(content) > most:
        raise InputError(f"{brief_path(path)} has more than {most} bytes; no file of its kind is so large.")
    return content


def read_still(path: Name, most: int) -> bytes:
    """The content of a database that nobody writes to; OSError if it cannot be read."""
    for ending in ("-journal", "-wal"):
        beside = Path(f"{os.fspath(path)}{ending}")
        if beside.is_file() and beside.stat().st_size:
            raise InputError(
                f"{brief_path(path)} is being written, or its run was cut off: {brief_path(beside.name)} lies beside "
                "it; let that command end, or give it again."
            )
    return read_bounded(path, most)


def as_database(content: bytes) -> "sqlite3.Connection":
    """A database from the bytes of its file, which is not touched: no lock, no file beside it. sqlite3.Error if none.

    What is in it is a stranger's: compare the schema before any table is read, as a view may compute for ever.
    """
    import sqlite3

    if not content:  # which SQLite takes for none given
        raise sqlite3.DatabaseError("it is empty")
    database = sqlite3.connect(":memory:")
    try:
        database.deserialize(content)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA query_only = ON")
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except BaseException:
        database.close()
        raise
    return database


def check_readable(path: Name, most: int) -> None:
    """The same for what someone else reads: an ordinary file of at most so many bytes."""
    if Path(path).exists() and not Path(path).is_file():
        raise InputError(f"{brief_path(path)} is no ordinary file; give one.")
    if Path(path).stat().st_size > most:
        raise InputError(f"{brief_path(path)} has more than {most} bytes; no file of its kind is so large.")


def strict_json(text: str | bytes) -> Any:
    """JSON in which no key stands twice and every number is one: two readers then see the same. Else ValueError."""
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)


def of_version(found: Any, content: str, version: int, update: str) -> Any:
    """The document, if it is of this content and version; `update` is said of a newer one. Else ValueError."""
    if found["content"] != content or type(found["schema_version"]) is not int or found["schema_version"] < version:
        raise ValueError("content or version")
    if found["schema_version"] > version:
        raise InputError(update)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def check_target(path: Name) -> Path:
    """Refuse a place that no file can be written to, before anything is computed; returns where it leads."""
    try:
        place = Path(path).resolve()
        taken, folder = place.is_dir(), place.parent.is_dir()
        # of the path as it is given: /dev/stdout of a pipe leads to a name that is nowhere
        other = Path(path).exists() and not Path(path).is_file() and not taken
        writable = folder and os.access(place.parent, os.W_OK)
    except (OSError, RuntimeError, ValueError):  # links in a circle, a name that is too long or holds a zero
        raise InputError(
            f"cannot write {brief_path(path)}: it is no path that can lead to a file; give another."
        ) from None
    if taken:
        raise InputError(f"cannot write {brief_path(path)}: it is a folder; give the path of a file.")
    if other:
        raise InputError(
            f"cannot write {brief_path(path)}: it is a device or a pipe; give the path of an ordinary file."
        )
    if not folder:
        raise InputError(
            f"cannot write {brief_path(path)}: there is no folder for it; make it first, or give another path."
        )
    if not writable:
        raise InputError(
            f"cannot write {brief_path(path)}: its folder takes no files; give a path in a folder you can write to."
        )
    return place


def brief_path(path: Name) -> str:
    """A path as it may stand in a sentence."""
    text = os.fspath(path)
    return text if len(text) <= 120 else f"{text[:117]}…"


def check_targets(paths: Iterable[str | None], read: Iterable[Name | None] = ()) -> None:
    """The same for several, no two of which may lead to one file, nor any to one that is read. None is not given."""
    inputs = {_place(path) for path in read if path is not None}
    seen: dict[Path, str] = {}
    for path in paths:
        if path is None:
            continue
        place = check_target(path)
        if place in inputs:
            raise InputError(
                f"{brief_path(path)} is read, and would be written over; give the output a path of its own."
            )
        if place in seen:
            raise InputError(
                f"{brief_path(seen[place])} and {brief_path(path)} are one file; give each a path of its own."
            )
        seen[place] = path


@contextmanager
def folder_made(folder: Path) -> Iterator[None]:
    """A folder for what is written within; what had to be made and stays empty is gone afterwards."""
    try:
        made = [place for place in (folder, *folder.parents) if not place.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no path"
        raise InputError(f"cannot make the folder {brief_path(folder)}: {reason}; give another with --out.") from None
    try:
        yield
    finally:
        for place in made:
            with suppress(OSError):  # there is something in it
                place.rmdir()


def _place(path: Name) -> Path | None:
    """Where a path leads, if anywhere; what cannot be read is told by who reads it."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError):
        return None


def write_whole(path: Name, data: bytes | str) -> None:
    """Write `data` beside `path` and rename it into place: after a crash there is the old file or the new one."""
    write_all({os.fspath(path): data})


def write_all(files: Mapping[str, bytes | str]) -> None:
    """Write several: all of them are whole beside their places before the first is renamed into its own.

    A link stays one: what it leads to is replaced.
    """
    check_targets(list(files))
    beside: dict[Path, Path] = {}
    target = Path()
    try:
        for path, data in files.items():
            target = Path(path).resolve()
            _write_beside(target, data.encode() if isinstance(data, str) else data, beside)
        for target, written in beside.items():
            written.replace(target)
    except OSError as error:
        raise InputError(
            f"cannot write {brief_path(target)}: {error.strerror}; give a path in a folder you can write to."
        ) from None
    finally:
        for written in beside.values():
            written.unlink(missing_ok=True)


def _write_beside(target: Path, payload: bytes, beside: dict[Path, Path]) -> None:
    """A file in the same folder, noted in `beside` as soon as it is there; private until it is written."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
    beside[target] = Path(name)
    with os.fdopen(handle, "wb") as file:
        file.write(payload)
    Path(name).chmod(_mode(target))


def _mode(target: Path) -> int:
    """That of the file which is replaced, as someone may have closed it to others; or that of an ordinary file."""
    with suppress(OSError):
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
