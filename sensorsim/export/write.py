"""Writing a folder so that a reader never sees half of one."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from sensorsim.errors import InputError
from sensorsim.export.files import MANIFEST
from sensorsim.files import cannot_write, check_folder_target, check_takes_files, read_bounded, temporary_folder
from sensorsim.files import fill as fill

T = TypeVar("T")


def write_folder(out: Path, texts: Mapping[str, str]) -> None:
    """Write the files beside `out` and rename the whole folder; an earlier package there is replaced."""
    check_folder(out)
    beside: Path | None = None
    try:
        beside = Path(tempfile.mkdtemp(dir=out.absolute().parent, prefix=f".{out.name[:40]}."))
        fill(beside, texts)
        beside.chmod(0o755)
        if out.exists():
            old = beside.with_name(beside.name + ".old")
            try:
                out.rename(old)
                beside.rename(out)
            finally:  # Ctrl-C between the two leaves the earlier package where it was
                if old.exists() and not out.exists():
                    old.rename(out)
                shutil.rmtree(old, ignore_errors=True)
        else:
            beside.rename(out)
    except OSError as error:
        raise cannot_write(out, error) from None
    finally:
        if beside is not None and beside.exists():
            shutil.rmtree(beside, ignore_errors=True)


def in_temporary_folder(texts: Mapping[str, str], use: Callable[[Path], T]) -> T:
    """What `use` makes of the files, written to a folder that is gone afterwards."""
    with temporary_folder() as name:
        fill(Path(name), texts)
        return use(Path(name))


def check_folder(out: Path) -> None:
    """Refuse a place that no package can be written to, before anything is made.

    A folder may be replaced when it is empty or an earlier package with nothing else in it but what make built.
    """
    check_folder_target(out)
    if out.is_symlink():
        raise InputError(f"{out} is a link; give the folder itself.")
    if not out.exists():
        parent = out.absolute().parent
        if not parent.is_dir():
            why = "Not a directory" if parent.exists() else "there is no such place to write to"
            raise InputError(f"cannot write {out}: {why}; give a folder in a place you can write to.")
    check_takes_files(out.absolute().parent, out)
    if not out.exists():
        return
    hashes = _earlier(out)
    known = {*hashes, MANIFEST} if hashes else set()
    present = []
    try:
        for path in _files_in(out):  # up to the first that is none of ours: a folder of others may have no end
            if path not in known and not (known and path.startswith("build/")):
                raise InputError(f"{out} has other files in it ({path}); give a new or empty folder.")
            present.append(path)
    except OSError as error:
        raise InputError(f"cannot read {out}: {error.strerror}; give a new or empty folder.") from None
    edited = [path for path in present if path in hashes and _hash(out / path) != hashes[path]]
    if edited:
        raise InputError(
            f"{out / edited[0]} was edited since the export; give a new folder, or remove the edited file."
        )


def _earlier(out: Path) -> dict[str, str]:
    """Return the files of the package that is in the folder, with their hashes; none where there is none."""
    from sensorsim.export.manifest import MOST_BYTES

    try:
        manifest = json.loads(read_bounded(out / MANIFEST, MOST_BYTES))
        return dict(manifest["files"].items()) if manifest["sensorsim"] else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):  # which is none of ours
        return {}


def _files_in(folder: Path) -> Iterator[str]:
    """Yield the paths of all that is no folder below it, as they are found; OSError where one cannot be read."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            yield from (f"{entry.name}/{path}" for path in _files_in(Path(entry.path)))
        else:
            yield entry.name


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
