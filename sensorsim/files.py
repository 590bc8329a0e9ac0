"""Files of others are read with a bound; our own are written so that a reader never sees half of one."""

import os
import tempfile
from pathlib import Path

from sensorsim.errors import InputError


def read_bounded(path: str | os.PathLike[str], most: int) -> bytes:
    """The content of an ordinary file of at most so many bytes; a device has no end. OSError if it cannot be read."""
    if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
        raise InputError(f"{path} is a device or a pipe; give an ordinary file.")
    with Path(path).open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"{path} has more than {most} bytes; no file of its kind is so large.")
    return content


def write_whole(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write `data` beside `path` and rename it into place: after a crash there is the old file or the new one."""
    target = Path(path)
    payload = data.encode() if isinstance(data, str) else data
    try:
        handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(
            f"cannot write {target}: {error.strerror}; give a path in a folder you can write to."
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(payload)
        umask = os.umask(0)
        os.umask(umask)
        Path(beside).chmod(0o666 & ~umask)  # mkstemp makes private files; ours are ordinary ones
        Path(beside).replace(target)
    except OSError as error:
        Path(beside).unlink(missing_ok=True)
        raise InputError(
            f"cannot write {target}: {error.strerror}; give a path in a folder you can write to."
        ) from None
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
