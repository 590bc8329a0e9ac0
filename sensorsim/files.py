"""Writing files so that a reader never sees half of one."""

import os
import tempfile
from pathlib import Path

from sensorsim.errors import InputError


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
