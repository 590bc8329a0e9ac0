"""The ledger of a filter in a file, so that it survives a restart: the two slots of the journal, on the disk.

A ledger is made once, with `new`. A path that leads to none is refused, as it would give the whole budget back; a copy
of the file that is put back does give it back, so keep the file where only the server writes. While it is held, a file
that is moved away, replaced or made anew is noticed at the next load or store, and refused.
"""

import os
from pathlib import Path

from sensorsim.device.flash import BLANK, SLOTS
from sensorsim.errors import InputError
from sensorsim.kernels.journal import SLOT_BYTES

APART = 4096  # bytes from slot to slot: no sector holds both, so a torn write tears one


class LedgerFile:
    """Two slots, each in a block of its own. A store is on the disk when it returns. One object at a time holds them.

    The lock of the file is of the opened file, which a fork has too; so only the process that opened it may use it.
    """

    def __init__(self, path: str | os.PathLike[str], new: bool = False) -> None:
        self.path = Path(path).absolute()  # whatever folder the process goes to
        self._process = os.getpid()
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
            raise InputError(f"the ledger {self.path} is held already, here or elsewhere; close it there.") from None
        if os.fstat(self._file).st_size != SLOTS * APART:
            raise InputError(f"{self.path} is no ledger: it should have {SLOTS * APART} bytes; give the right file.")
        self._check()

    def _check(self) -> None:
        """This process opened the file, and the path still leads to it."""
        if os.getpid() != self._process:
            raise InputError(f"the ledger {self.path} belongs to the process that opened it, not to a fork; ask there.")
        held = os.fstat(self._file)
        try:
            same = os.path.samestat(self.path.stat(), held)
        except OSError:
            same = False
        if not same:
            raise InputError(f"{self.path} is not the ledger that was opened; put that one back and open it again.")

    def __reduce__(self) -> str:
        raise InputError(f"the ledger {self.path} is held by one object and not copied; open it where it is used.")

    def load(self, slot: int) -> bytes:
        self._check()
        return os.pread(self._file, SLOT_BYTES, slot * APART)

    def store(self, slot: int, entry: bytes) -> None:
        self._check()
        if os.pwrite(self._file, entry, slot * APART) != len(entry):
            raise OSError("the disk took a part of it")
        os.fsync(self._file)

    def close(self) -> None:
        """Let the file go; what is asked on it from here on is refused."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1  # the number may be another file's soon


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
