"""Files of others are read with a bound; our own are written so that a reader never sees half of one."""

import errno
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError, UnableError

if TYPE_CHECKING:
    import sqlite3

Name = str | os.PathLike[str]
STANDARD_STREAM = "-"  # standard input where a file is read, standard output where one is written
PROBE_BYTES = 4096  # that a folder must have space for
_standard_output: "dict[str, Callable[[bytes], None] | None]" = {"write": None}


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
    """Refuse a place that no file can be written to, before anything is computed; return where it leads."""
    if is_standard_output(path):
        return Path(path)
    if os.fspath(path) == "":
        raise InputError("cannot write a file without a name; give its path.")
    try:
        place = _followed(path)
        taken, folder = place.is_dir(), place.parent.is_dir()
        # of the path as it is given: /dev/stdout of a pipe leads to a name that is nowhere
        other = Path(path).exists() and not Path(path).is_file() and not taken
    except (OSError, ValueError):  # links in a circle, a name that is too long or holds a zero
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
    check_takes_files(place.parent, path)
    return place


def check_takes_files(folder: Path, path: Name) -> None:
    """Refuse `path` if no file can be written to `folder`: by rights, by its file system, or for want of space.

    A file without a name is written there: rights alone say nothing of a read-only or full disk, nor of /proc.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
    except OSError as error:
        raise cannot_write(path, error, folder) from None


def cannot_write(path: Name, error: OSError, folder: Path | None = None) -> InputError:
    """Return the sentence for a file that the system does not let us write."""
    if error.errno == errno.ENOSPC:
        return no_space(path, folder)
    reason = f"its folder takes no files ({error.strerror})" if folder else error.strerror
    return InputError(f"cannot write {brief_path(path)}: {reason}; give a path in a folder you can write to.")


def no_space(path: Name, folder: Path | None = None) -> InputError:
    """Return the sentence for a full disk."""
    where = brief_path(folder or Path(path).absolute().parent)
    return InputError(
        f"cannot write {brief_path(path)}: No space left on device in {where}; make room, or give another folder."
    )


def check_folder_target(path: Name) -> None:
    """Refuse a folder that is not there and cannot be made, or that takes no files."""
    if os.fspath(path) == "":
        raise InputError("cannot write a folder without a name; give its path.")
    try:
        place = Path(path).absolute()
        while not place.exists() and not place.is_symlink():
            place = place.parent
        is_folder = place.is_dir()
    except (OSError, RuntimeError, ValueError):
        raise InputError(
            f"cannot write {brief_path(path)}: it is no path that can lead to a folder; give another."
        ) from None
    if not is_folder:
        own = "is a link that leads nowhere" if not place.exists() else "is a file"
        what = own if place == Path(path).absolute() else f"would be in {brief_path(place)}, which is no folder"
        raise InputError(f"{brief_path(path)} {what}; give the name of a folder.")
    check_takes_files(place, path)


def is_standard_output(path: Name) -> bool:
    """Return whether the path is `-` and a command line says where standard output is."""
    return _standard_output["write"] is not None and os.fspath(path) == STANDARD_STREAM


@contextmanager
def standard_output(write: Callable[[bytes], None]) -> Iterator[None]:
    """Let `-` stand for standard output: what is written to it within goes to `write`."""
    before, _standard_output["write"] = _standard_output["write"], write
    try:
        yield
    finally:
        _standard_output["write"] = before


def suffix_of(path: Name, standard: str) -> str:
    """Return the ending of a path in lower case; that of standard output is `standard`."""
    return standard if is_standard_output(path) else Path(path).suffix.lower()


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


_named: dict[str, str] = {}
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
FULL_SIGNS = ("No space left on device", "NoSpaceLeft", "Disk quota exceeded", "DiskQuota", "File too large")


@contextmanager
def temporary_folder(within: Name | None = None) -> Iterator[str]:
    """Yield a folder that is gone afterwards; InputError where there is no place for it, or no room in it."""
    try:
        with tempfile.TemporaryDirectory(dir=within, ignore_cleanup_errors=True) as name:
            yield name
    except OSError as error:
        if error.errno in FULL or _is_temporary(error.filename, within):
            raise no_room(error) from None
        raise


def name_temporary(path: Name) -> None:
    """Name this folder where there is no room: the one that the user knows, around those that we made."""
    _named["temporary"] = os.fspath(path)


def no_room(error: OSError | None = None) -> UnableError:
    """Return the sentence for a temporary folder that cannot be written to."""
    try:
        where = _named.get("temporary") or tempfile.gettempdir()
    except OSError:  # of all places where one is looked for
        where = os.environ.get("TMPDIR") or "/tmp"
    why = error.strerror if error is not None and error.strerror else "No space left on device"
    return UnableError(
        f"cannot write to the temporary folder {brief_path(where)}: {why}; make room there, or set TMPDIR to a folder "
        "that has some."
    )


def is_full_message(text: str) -> bool:
    """Return whether a program says that it found no room to write."""
    return any(sign in text for sign in FULL_SIGNS)


def _is_temporary(path: object, within: Name | None) -> bool:
    """Return whether no folder could be made: the path is none, or one in the place for temporary ones."""
    try:
        place = os.fspath(within) if within is not None else tempfile.gettempdir()
    except OSError:
        return True
    return isinstance(path, str) and Path(path).parent == Path(place)


def _place(path: Name) -> Path | None:
    """Where a path leads, if anywhere; what cannot be read is told by who reads it."""
    if os.fspath(path) == STANDARD_STREAM:
        return None
    try:
        return _followed(path)
    except (OSError, ValueError):
        return None


def _followed(path: Name) -> Path:
    """Follow a path's links; OSError where they lead in a circle, which Python tells otherwise from 3.13 on."""
    place = Path(os.path.realpath(path))
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISLNK(place.lstat().st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    return place


def write_whole(path: Name, data: bytes | str) -> None:
    """Write `data` beside `path` and rename it into place: after a crash there is the old file or the new one."""
    write_all({os.fspath(path): data})


def write_all(files: Mapping[str, bytes | str]) -> None:
    """Write several: all of them are whole beside their places before the first is renamed into its own.

    A link stays one: what it leads to is replaced.
    """
    check_targets(list(files))
    beside: dict[Path, Path] = {}
    target, shown = Path(), b""
    try:
        for path, data in files.items():
            content = data.encode() if isinstance(data, str) else data
            if is_standard_output(path):
                shown = content
            else:
                target = Path(path).resolve()
                _write_beside(target, content, beside)
        for target, written in beside.items():
            written.replace(target)
    except OSError as error:
        raise cannot_write(target, error) from None
    finally:
        for written in beside.values():
            written.unlink(missing_ok=True)
    if shown and _standard_output["write"] is not None:
        _standard_output["write"](shown)


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


def fill(folder: Path, texts: Mapping[str, str]) -> None:
    """Write every file below the folder."""
    for path, text in texts.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8", newline="\n")
