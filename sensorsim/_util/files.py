"""Read untrusted files up to a size limit, check output paths before work begins, and write files atomically."""

import errno
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError, UnableError

Name = str | os.PathLike[str]
STANDARD_STREAM = "-"  # standard input where a file is read, standard output where one is written
PROBE_BYTES = 4096  # that a folder must have space for
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
FULL_SIGNS = ("No space left on device", "NoSpaceLeft", "Disk quota exceeded", "DiskQuota", "File too large")
_standard_output: "dict[str, Callable[[bytes], None] | None]" = {"write": None}
_temporary: dict[str, str] = {}  # the folder that errors name


def brief_path(path: Name) -> str:
    """Return a path for an error message, cut after 120 characters."""
    text = os.fspath(path)
    return text if len(text) <= 120 else f"{text[:117]}…"


# ---- read


def read_bounded(path: Name, most: int) -> bytes:
    """Return the content of an ordinary file of at most `most` bytes; raise OSError if it cannot be read."""
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        raise InputError(f"{brief_path(path)} is a device or a pipe; give an ordinary file.")
    with Path(path).open("rb") as file:
        _check_size(path, os.fstat(file.fileno()).st_size, most)
        content = file.read(most + 1)
    _check_size(path, len(content), most)
    return content


def check_readable(path: Name, most: int) -> None:
    """Refuse what is no ordinary file of at most `most` bytes, before another program reads it."""
    if Path(path).exists() and not Path(path).is_file():
        raise InputError(f"{brief_path(path)} is no ordinary file; give one.")
    _check_size(path, Path(path).stat().st_size, most)


def _check_size(path: Name, size: int, most: int) -> None:
    if size > most:
        raise InputError(f"{brief_path(path)} has more than {most} bytes; no file of its kind is so large.")


def strict_json(text: str | bytes) -> Any:
    """Parse JSON; raise ValueError on duplicate keys, NaN and infinities, which readers treat differently."""

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a name is in it twice")
        return dict(pairs)

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no number")

    return json.loads(text, object_pairs_hook=unique_keys, parse_constant=refuse)


def of_version(found: Any, content: str, version: int, update: str) -> Any:
    """Return the document if its content and version are these; raise InputError(update) if newer, else ValueError."""
    if found["content"] != content or type(found["schema_version"]) is not int or found["schema_version"] < version:
        raise ValueError("content or version")
    if found["schema_version"] > version:
        raise InputError(update)
    return found


# ---- check output paths


def check_target(path: Name) -> Path:
    """Refuse a path that no file can be written to; return the path behind its links."""
    if is_standard_output(path):
        return Path(path)
    if os.fspath(path) == "":
        raise InputError("cannot write a file without a name; give its path.")
    try:
        place = _resolve(path)
        is_folder, has_folder = place.is_dir(), place.parent.is_dir()
        # The path as given: /dev/stdout of a pipe links to a name that does not exist.
        is_special = Path(path).exists() and not Path(path).is_file() and not is_folder
    except (OSError, ValueError):  # a circle of links, a name that is too long or holds a zero
        raise _cannot(path, "it is no path that can lead to a file", "give another") from None
    if is_folder:
        raise _cannot(path, "it is a folder", "give the path of a file")
    if is_special:
        raise _cannot(path, "it is a device or a pipe", "give the path of an ordinary file")
    if not has_folder:
        raise _cannot(path, "there is no folder for it", "make it first, or give another path")
    check_takes_files(place.parent, path)
    return place


def check_targets(paths: Iterable[str | None], read: Iterable[Name | None] = ()) -> None:
    """Refuse outputs of which two are one file, or one is a file that is read; None stands for an absent option."""
    inputs = {_resolve_input(path) for path in read if path is not None}
    seen: dict[Path, str] = {}
    for path in paths:
        if path is None:
            continue
        place, shown = check_target(path), brief_path(path)
        if place in inputs:
            raise InputError(f"{shown} is read, and would be written over; give the output a path of its own.")
        if place in seen:
            raise InputError(f"{brief_path(seen[place])} and {shown} are one file; give each a path of its own.")
        seen[place] = path


def check_folder_target(path: Name) -> None:
    """Refuse a folder that does not exist and cannot be made, or that takes no files."""
    if os.fspath(path) == "":
        raise InputError("cannot write a folder without a name; give its path.")
    try:
        place = Path(path).absolute()
        while not place.exists() and not place.is_symlink():
            place = place.parent
        is_folder = place.is_dir()
    except (OSError, RuntimeError, ValueError):
        raise _cannot(path, "it is no path that can lead to a folder", "give another") from None
    if not is_folder:
        own = "is a file" if place.exists() else "is a link that leads nowhere"
        what = own if place == Path(path).absolute() else f"would be in {brief_path(place)}, which is no folder"
        raise InputError(f"{brief_path(path)} {what}; give the name of a folder.")
    check_takes_files(place, path)


def check_takes_files(folder: Path, path: Name) -> None:
    """Refuse `path` if no file can be written to `folder`.

    An unnamed file is written, since access rights say nothing about a read-only or full disk, or about /proc.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
    except OSError as error:
        raise cannot_write(path, error, folder) from None


def cannot_write(path: Name, error: OSError, folder: Path | None = None) -> InputError:
    """Return the error for a file that the system does not let us write."""
    if error.errno == errno.ENOSPC:
        where = brief_path(folder or Path(path).absolute().parent)
        return _cannot(path, f"No space left on device in {where}", "make room, or give another folder")
    reason = f"its folder takes no files ({error.strerror})" if folder else str(error.strerror)
    return _cannot(path, reason, "give a path in a folder you can write to")


def _cannot(path: Name, why: str, advice: str) -> InputError:
    return InputError(f"cannot write {brief_path(path)}: {why}; {advice}.")


def _resolve_input(path: Name) -> Path | None:
    """Return the file behind a path that is read; None for standard input and paths that its reader will refuse."""
    with suppress(OSError, ValueError):
        return None if os.fspath(path) == STANDARD_STREAM else _resolve(path)
    return None


def _resolve(path: Name) -> Path:
    """Follow the links of a path; raise OSError on a circle, as Python does before 3.13."""
    place = Path(os.path.realpath(path))
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISLNK(place.lstat().st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    return place


# ---- standard output


def is_standard_output(path: Name) -> bool:
    """Return whether the path is `-` and a command line defined what standard output is."""
    return _standard_output["write"] is not None and os.fspath(path) == STANDARD_STREAM


@contextmanager
def standard_output(write: Callable[[bytes], None]) -> Iterator[None]:
    """Let `-` stand for standard output: pass what is written to it to `write`."""
    before, _standard_output["write"] = _standard_output["write"], write
    try:
        yield
    finally:
        _standard_output["write"] = before


def suffix_of(path: Name, standard: str) -> str:
    """Return the ending of a path in lower case; that of standard output is `standard`."""
    return standard if is_standard_output(path) else Path(path).suffix.lower()


# ---- folders


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Make a folder and its parents; remove those that were made and are still empty at the end."""
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
            with suppress(OSError):  # it is not empty
                place.rmdir()


@contextmanager
def temporary_folder(within: Name | None = None) -> Iterator[str]:
    """Yield a folder that is removed afterwards; raise UnableError if it cannot be made or its disk is full."""
    made = False
    try:
        with tempfile.TemporaryDirectory(dir=within, ignore_cleanup_errors=True) as name:
            made = True
            yield name
    except OSError as error:
        if made and error.errno not in FULL:
            raise
        raise no_room(error) from None


def name_temporary(path: Name) -> None:
    """Set the folder that `no_room` names: the one the user knows, around those that we made."""
    _temporary["named"] = os.fspath(path)


def no_room(error: OSError | None = None) -> UnableError:
    """Return the error for a temporary folder that cannot be written to."""
    try:
        where = _temporary.get("named") or tempfile.gettempdir()
    except OSError:  # no temporary folder is usable
        where = os.environ.get("TMPDIR") or "/tmp"
    why = error.strerror if error is not None and error.strerror else "No space left on device"
    advice = "make room there, or set TMPDIR to a folder that has some"
    return UnableError(f"cannot write to the temporary folder {brief_path(where)}: {why}; {advice}.")


def is_full_message(text: str) -> bool:
    """Return whether the output of a program reports a full disk."""
    return any(sign in text for sign in FULL_SIGNS)


# ---- write


def write_whole(path: Name, data: bytes | str) -> None:
    """Write a file beside `path` and rename it into place: a crash leaves the old file or the new one."""
    write_all({os.fspath(path): data})


def write_all(files: Mapping[str, bytes | str]) -> None:
    """Write several files beside their places, and rename them when all are complete; links stay links."""
    check_targets(list(files))
    beside: dict[Path, Path] = {}
    target, shown = Path(), b""
    try:
        for path, data in files.items():
            content = data.encode() if isinstance(data, str) else data
            if is_standard_output(path):
                shown = content
                continue
            target = Path(path).resolve()
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.")
            beside[target] = Path(name)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).chmod(_mode(target))
        for target, written in beside.items():
            written.replace(target)
    except OSError as error:
        raise cannot_write(target, error) from None
    finally:
        for written in beside.values():
            written.unlink(missing_ok=True)
    if shown and _standard_output["write"] is not None:
        _standard_output["write"](shown)


def _mode(target: Path) -> int:
    """Return the mode of the file that is replaced, or that of a new file."""
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
