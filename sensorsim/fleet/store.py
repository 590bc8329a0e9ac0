"""Sums of a fleet in an SQLite file. A batch of devices is one transaction: after kill -9 it is in the sums or not.

The file belongs to one process while it is written to. SQLite's own locks see to it, and the system lets go of them
when the process ends, however it ends.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.files import Name, brief_path, check_target, strict_json
from sensorsim.errors import InputError
from sensorsim.ranges import brief

if TYPE_CHECKING:
    from sensorsim.fleet.counts import Counts, Whole
    from sensorsim.fleet.settings import Settings

CONTENT = "a fleet simulated by sensorsim"
VERSION = 2  # raise it whenever a stored number could change
SCHEMA = {
    "meta": "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "batches": "CREATE TABLE batches (number INTEGER PRIMARY KEY)",  # those that are in the sums
    "sums": "CREATE TABLE sums (name TEXT PRIMARY KEY, shape TEXT NOT NULL, data BLOB NOT NULL) WITHOUT ROWID",
}
WAIT = 5  # seconds for another process that may be about to end
MOST_TEXT = 1 << 16  # of a value of meta
LEVEL = 1  # of zlib: sums are mostly zeros at first, and speed counts for more than size
UNWRITABLE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
MOST_LETTERS = 50  # of the path, in a message
SPARE = 1 << 10  # bytes that zlib may add, and a thousandth
CALLED = {  # settings that a reader knows by another name
    "identity": "noise table",
    "data": "people (--data, or --seed of the generator)",
    "releases": "releases of a period",
    "prices": "prices of energy (--chip, --radio)",
}


class Store:
    """The sums of one fleet, in batches of `size` devices; use as a context manager.

    Nothing is written before `claim`. A file that is there is read at once, and refused if it is of something else.
    """

    option = "--out"  # that names the file, for messages

    def __init__(self, path: Name, settings: "Settings", size: int) -> None:
        from sensorsim.fleet.counts import Counts

        self.path, self.settings, self.size = Path(path), settings, size
        self.batches = -(-settings.devices // size)
        self.done: set[int] = set()
        self.sums: Counts = Counts.empty(settings)
        self._database: sqlite3.Connection | None = None
        self._is_new = not self._is_there()
        if not self._is_new:
            self._guarded(self._look)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def finished(self) -> bool:
        return len(self.done) == self.batches

    @property
    def devices(self) -> int:
        """Those that are in the sums."""
        spare = self.batches * self.size - self.settings.devices  # what the last batch is short of
        return len(self.done) * self.size - (spare if self.batches - 1 in self.done else 0)

    @property
    def _named(self) -> str:
        """The file in a message: of a long path its end."""
        text = str(self.path)
        return text if len(text) <= MOST_LETTERS else f"…{text[1 - MOST_LETTERS :]}"

    @property
    def kept(self) -> str:
        """What a run that ends early leaves behind."""
        if not self.done:
            return f"0 of {self.batches} batches are finished"
        return f"{len(self.done)} of {self.batches} batches are kept in {self._named}"

    @property
    def missing(self) -> Iterable[int]:
        return (number for number in range(self.batches) if number not in self.done)

    def range_of(self, number: int) -> tuple[int, int]:
        """First device of a batch, and the one after its last."""
        return number * self.size, min((number + 1) * self.size, self.settings.devices)

    def claim(self) -> None:
        """Make the file, or hold the one that is there, so that no other process adds to it."""
        self._guarded(self._claim)

    def add(self, number: int, counts: "Counts") -> None:
        """A batch that is finished: into the sums, and onto the list, or neither."""
        self._guarded(lambda: self._write(number, counts))
        self.done.add(number)

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _guarded(self, step: Any) -> None:
        """Run a step that ends whole or not at all; one that fails leaves the file closed and as it was.

        A file that this run made and that a full disk leaves without a batch is removed.
        """
        try:
            step()
        except BaseException as error:
            self._close()
            if isinstance(error, sqlite3.Error):
                if self._is_new and not self.done and _code(error) == sqlite3.SQLITE_FULL:
                    for ending in ("", "-journal"):
                        Path(f"{self.path}{ending}").unlink(missing_ok=True)
                raise self._unusable(error) from None
            raise

    def _run(self, statement: str, *values: Any) -> list[Any]:
        if self._database is None:  # transactions are begun and ended here by name
            self._database = self._connect()
        return self._database.execute(statement, values).fetchall()

    def _is_there(self) -> bool:
        check_store(self.path)
        return self.path.exists() and self.path.stat().st_size > 0

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)

    def _look(self) -> bool:
        """Read the file, unless it is empty: a run that was killed as it began leaves one."""
        self._run("PRAGMA trusted_schema = OFF")
        if not self._run("SELECT 1 FROM sqlite_master LIMIT 1"):
            return False
        self._read()
        return True

    def _claim(self) -> None:
        self._run("PRAGMA locking_mode = EXCLUSIVE")  # held after the transaction too
        self._run("BEGIN EXCLUSIVE")
        if not self._look():  # else another process may have gone on with it since
            for statement in SCHEMA.values():
                self._run(statement)
            for item in self._identity().items():
                self._run("INSERT INTO meta VALUES (?, ?)", *item)
            self._put_sums()
        self._run("COMMIT")

    def _write(self, number: int, counts: "Counts") -> None:
        self._run("BEGIN IMMEDIATE")
        self.sums.add(counts)
        self._run("INSERT INTO batches VALUES (?)", number)
        self._put_sums()
        self._run("COMMIT")

    def _put_sums(self) -> None:
        for name, array in self.sums.arrays().items():
            data = zlib.compress(array.astype("<i8", copy=False).data, LEVEL)
            self._run("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", name, json.dumps(array.shape), data)

    def _identity(self) -> dict[str, str]:
        settings = json.dumps(self.settings.to_dict(), sort_keys=True)
        made = {"content": CONTENT, "version": str(VERSION), "devices of a batch": str(self.size)}
        return made | {"digest": self.settings.digest, "settings": settings}

    def _read(self) -> None:
        """What is there, if it is of this fleet."""
        from sensorsim.fleet.sound import unsound

        query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND length(sql) <= ? LIMIT 9"
        found = dict(self._run(query, MOST_TEXT))
        if found != SCHEMA:
            raise self._refused("is a database of something else")
        self._check_identity()
        numbers = [number for (number,) in self._run("SELECT number FROM batches LIMIT ?", self.batches + 1)]
        if any(type(number) is not int or not 0 <= number < self.batches for number in numbers):
            raise self._damaged("batches that the fleet does not have")
        self.done = set(numbers)
        for name, array in self.sums.arrays().items():
            array[...] = self._sum_of(name, array)
        why = unsound(self.settings, self.sums, self.devices)
        if len(numbers) != len(self.done) or why:
            raise self._damaged(why or "a batch that stands twice")

    def _check_identity(self) -> None:
        rows = self._run("SELECT name, value FROM meta WHERE length(value) <= ? LIMIT 9", MOST_TEXT)
        found, wanted = dict(rows), self._identity()
        if found.get("content") != CONTENT:
            raise self._refused("is a database of something else")
        if found.get("version") != wanted["version"]:
            written = brief(found.get("version"))
            raise self._refused(f"was written with version {written} of the fleet, this run has {VERSION}")
        if found.get("settings") != wanted["settings"]:
            raise self._refused(self._difference(found.get("settings")))
        if found != wanted:
            raise self._damaged("a digest or a division that is not that of its settings")

    def _difference(self, text: Any) -> str:
        """The first setting that is another one there."""
        try:
            theirs = strict_json(text)
            names = [name for name, mine in self.settings.to_dict().items() if theirs.get(name) != mine]
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise self._damaged("settings that cannot be read") from None
        if not names:
            raise self._damaged("settings that the program does not write")
        name, mine = names[0], self.settings.to_dict()[names[0]]
        called = CALLED.get(name, name.replace("_", " "))
        return f"is of a fleet with {called} {brief(theirs.get(name))}, this run has {brief(mine)}"

    def _sum_of(self, name: str, array: "Whole") -> "Whole":
        """An array of the file, if it has as many numbers as it must; no more than these are ever unpacked."""
        import numpy as np

        most = array.nbytes + array.nbytes // 1000 + SPARE
        query = "SELECT shape, data FROM sums WHERE name = ? AND typeof(data) = 'blob' AND length(data) <= ? LIMIT 1"
        rows = self._run(query, name, most)
        if not rows or rows[0][0] != json.dumps(array.shape):
            raise self._damaged(f"no {name} of its shape")
        unpack = zlib.decompressobj()
        try:
            content = unpack.decompress(rows[0][1], array.nbytes + 1)
        except zlib.error as error:
            raise self._damaged(f"{name}: {error}") from None
        if len(content) != array.nbytes or not unpack.eof:
            raise self._damaged(f"{name} of another length")
        return np.frombuffer(content, "<i8").reshape(array.shape)

    def _refused(self, why: str) -> InputError:
        return InputError(f"{self._named} {why}; nothing was changed in it: give another file with {self.option}.")

    def _damaged(self, why: str) -> InputError:
        return InputError(f"{self._named} is damaged ({why}); remove it, or give another file with {self.option}.")

    def _unusable(self, error: sqlite3.Error) -> InputError:
        code = _code(error)
        if code == sqlite3.SQLITE_BUSY:
            other = f"let that one end, or give another file with {self.option}."
            return InputError(f"{self._named} is being written by another run; {other}")
        if code in UNWRITABLE:
            where = f"No space left on device in {brief_path(self.path.absolute().parent)}"
            reason = where if code == sqlite3.SQLITE_FULL else brief(error)
            return InputError(
                f"cannot write {self._named} ({reason}); {self.kept}: make room or see to its rights, and give "
                "the same command again to go on."
            )
        return self._refused(f"is not a file of a fleet that can be read ({brief(error)})")


def _code(error: sqlite3.Error) -> int:
    """Return the error code of SQLite, without what it adds to it."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def check_store(path: Name) -> None:
    """Refuse a place that is no ordinary file of its own, before anything is computed."""
    check_target(path)
    place = Path(path)
    if place.is_symlink():
        raise InputError(f"{brief(path)} is a link; give the path of the file itself.")
    if place.exists() and not place.is_file():
        raise InputError(f"{brief(path)} is a device or a pipe; give an ordinary file.")
