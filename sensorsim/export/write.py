"""Writing a folder so that a reader never sees half of one."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from sensorsim.errors import InputError
from sensorsim.files import read_bounded

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
        raise InputError(f"cannot write {out}: {error.strerror}; give a folder in a place you can write to.") from None
    finally:
        if beside is not None and beside.exists():
            shutil.rmtree(beside, ignore_errors=True)


def fill(folder: Path, texts: Mapping[str, str]) -> None:
    """Write every file below the folder."""
    for path, text in texts.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8", newline="\n")


def in_temporary_folder(texts: Mapping[str, str], use: Callable[[Path], T]) -> T:
    """What `use` makes of the files, written to a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        fill(Path(name), texts)
        return use(Path(name))


def check_folder(out: Path) -> None:
    """Refuse a place that no package can be written to, before anything is made.

    A folder may be replaced when it is empty or an earlier package with nothing else in it but what make built.
    """
    if out.is_symlink():
        raise InputError(f"{out} is a link; give the folder itself.")
    if not out.exists():
        parent = out.absolute().parent
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            why = "Not a directory" if parent.exists() and not parent.is_dir() else "there is no such place to write to"
            raise InputError(f"cannot write {out}: {why}; give a folder in a place you can write to.")
        return
    if not out.is_dir():
        raise InputError(f"{out} is a file; give the name of a folder.")
    present = {path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir()}
    if not present:
        return
    from sensorsim.export.files import MANIFEST
    from sensorsim.export.manifest import MOST_BYTES

    made = {path for path in present if path.startswith("build/")}
    try:
        manifest = json.loads(read_bounded(out / MANIFEST, MOST_BYTES))
        by, hashes = manifest["sensorsim"], dict(manifest["files"].items())
        known = {*hashes, MANIFEST} if by else set()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):  # which is none of ours
        hashes, known = {}, set()
    others = sorted(present - known - (made if known else set()))
    if others:
        raise InputError(f"{out} has other files in it ({others[0]}); give a new or empty folder.")
    edited = [path for path in sorted(present & set(hashes)) if _hash(out / path) != hashes[path]]
    if edited:
        raise InputError(
            f"{out / edited[0]} was edited since the export; give a new folder, or remove the edited file."
        )


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
