"""The ledger of a filter in a file, so that it survives a restart: the two slots of the journal, on the disk.

A ledger is made once, with `new`. A path that leads to none is refused, as it would give the whole budget back; a copy
of the file that is put back does give it back, so keep the file where only the server writes.
"""

import os
from pathlib import Path

from sensorsim.device.flash import BLANK, SLOTS
from sensorsim.errors import InputError
from sensorsim.kernels.journal import SLOT_BYTES

APART = 4096  # bytes from slot to slot: no sector holds both, so a torn write tears one


class LedgerFile:
    """Two slots, each in a block of its own. A store is on the disk when it returns. One process at a time holds it."""

    def __init__(self, path: str | os.PathLike[str], new: bool = False) -> None:
        self.path = Path(path)
        try:
            if new:
                _make(self.path)
            self._file = os.open(self.path, os.O_RDWR)
        except OSError as error:
            raise InputError(f"cannot open the ledger {self.path}: {error.strerror}; a new one is made once.") from None
        try:
            self._hold()
        except BaseException:
            self.close()
            raise

    def _hold(self) -> None:
        import fcntl

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another process holds the ledger {self.path}; end that one first.") from None
        if os.fstat(self._file).st_size != SLOTS * APART:
            raise InputError(f"{self.path} is no ledger: it should have {SLOTS * APART} bytes; give the right file.")

    def load(self, slot: int) -> bytes:
        return os.pread(self._file, SLOT_BYTES, slot * APART)

    def store(self, slot: int, entry: bytes) -> None:
        if os.pwrite(self._file, entry, slot * APART) != len(entry):
            raise OSError("the disk took a part of it")
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)


def _make(path: Path) -> None:
    """A blank file, whole on the disk or not there. It never replaces one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("xb") as file:
        file.write(BLANK.ljust(APART, b"\xff") * SLOTS)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(beside, path)
    finally:
        beside.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
