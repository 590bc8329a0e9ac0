"""Results that survive interruptions, in SQLite files.

Finished work is written in transactions: after kill -9 each of them is complete or absent. A file of something else is
refused before anything in it is changed.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import quote

from sensorsim._util.errors import SHORT, InputError, cut, one_line
from sensorsim._util.files import Name, brief_path, check_target, read_bounded

MOST_TEXT = 1 << 16  # characters of a value of `meta`, and of a statement of the schema
NO_LOG = b"\1\1"  # bytes 18 and 19 of a file that needs no write-ahead log beside it
UNWRITABLE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
OTHER = "is a database of something else"


class ResumableFile:
    """An SQLite file that belongs to one piece of work; use as a context manager.

    A subclass names its tables, of which `meta` holds the identity of the work, and compares that identity. With
    `content`, the bytes of a file, it is read only and no file is opened.
    """

    kind: ClassVar[str]  # of file, for messages
    option: ClassVar[str]  # that names the file
    wait: ClassVar[float]  # seconds for another process that writes
    tables: ClassVar[Mapping[str, str]]

    def __init__(self, path: Name, identity: Mapping[str, str], content: bytes | None = None) -> None:
        self.path, self.identity = Path(path), identity
        self.is_new = self._is_created = False
        self._database: sqlite3.Connection | None = None
        try:
            if content is not None:
                self._database = as_database(content)
                self._check(self._database)
                return
            check_target(path)
            self.is_new = not self.path.exists() or not self.path.stat().st_size
            if not self.is_new:
                self._inspect()
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the file; remove it if this run made it and failed before it stored a result."""
        remove = error is not None and self._is_created and not self.has_results()
        if self._database is not None:
            self._database.close()
            self._database = None
        if remove:
            for ending in ("", "-journal"):
                Path(f"{self.path}{ending}").unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise self._unusable(error) from None

    # ---- for subclasses

    def check_identity(self, found: Mapping[str, Any]) -> None:
        """Raise InputError unless the rows of `meta` are those of this work."""
        raise NotImplementedError

    def has_results(self) -> bool:
        """Return whether the file holds anything that took work."""
        raise NotImplementedError

    def progress(self) -> str:
        """Say what a run that ends early leaves behind."""
        return "finished runs are kept"

    def start(self) -> None:
        """Begin to use the file."""
        self.open()

    def initialise(self) -> None:
        """Fill the tables of a new file."""

    def resume(self) -> None:
        """Read the tables of a file that exists."""

    def open(self, exclusive: bool = False) -> None:
        """Make the tables, or read those that exist; if `exclusive`, keep other processes out until the end."""
        if exclusive:
            self.run("PRAGMA locking_mode = EXCLUSIVE")
        with self.transaction("EXCLUSIVE" if exclusive else "IMMEDIATE"):
            assert self._database is not None
            if self._check(self._database):
                self.resume()
                return
            self._is_created = True
            for statement in self.tables.values():
                self.run(statement)
            self._database.executemany("INSERT INTO meta VALUES (?, ?)", self.identity.items())
            self.initialise()

    @contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """Commit all statements inside, or none."""
        self.run(f"BEGIN {kind}")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self.run("ROLLBACK")
            raise
        self.run("COMMIT")

    def run(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement, and return its rows."""
        if self._database is None:
            self._database = sqlite3.connect(self.path, timeout=self.wait, isolation_level=None)
            self._database.execute("PRAGMA trusted_schema = OFF")
        return self._database.execute(statement, values).fetchall()

    def refusal(self, why: str) -> InputError:
        """Return the error for a file of something else."""
        return InputError(
            f"{brief_path(self.path)} {why}; nothing was changed in it: give another file with {self.option}."
        )

    def damage(self, why: str) -> InputError:
        """Return the error for a file of this work that cannot be right."""
        return InputError(f"{brief_path(self.path)} is damaged ({why}); remove it, or give another with {self.option}.")

    # ---- checks

    def _inspect(self) -> None:
        """Refuse a file of something else, read only: SQLite would finish another program's transaction in it."""
        with self.path.open("rb") as file:
            head = file.read(20)
        if not head.startswith(b"SQLite format 3\0") or head[18:] != NO_LOG:
            raise self.refusal(f"is not a {self.kind}")
        address = f"file:{quote(os.path.realpath(self.path))}?mode=ro"
        try:
            self._check_at(address)
        except sqlite3.OperationalError as error:
            if _code(error) not in UNWRITABLE:
                raise
            self._check_at(f"{address}&immutable=1")  # a run was killed as it wrote: do not undo that yet

    def _check_at(self, address: str) -> None:
        with closing(sqlite3.connect(address, uri=True, timeout=self.wait)) as database:
            self._check(database)

    def _check(self, database: sqlite3.Connection) -> bool:
        """Return whether the tables are there, and InputError if they are not ours; a killed run leaves none."""
        schema, meta = read_meta(database, self.tables)
        if not schema:
            return False
        self.check_identity(meta)
        if schema != self.tables:
            raise self.refusal(OTHER)
        return True

    def _unusable(self, error: sqlite3.Error) -> InputError:
        code, shown, reason = _code(error), brief_path(self.path), cut(one_line(str(error)), SHORT)
        if code == sqlite3.SQLITE_BUSY:
            advice = f"let that one end, or give another file with {self.option}"
            return InputError(f"{shown} is being written by another run; {advice}.")
        if code in UNWRITABLE:
            if code == sqlite3.SQLITE_FULL:
                reason = f"No space left on device in {brief_path(self.path.absolute().parent)}"
            advice = "make room or change its access rights, and give the same command again to go on"
            return InputError(f"cannot write {shown} ({reason}); {self.progress()}: {advice}.")
        return InputError(
            f"{shown} is not a {self.kind} that can be read and written ({reason}); give another with {self.option}."
        )


def read_meta(database: sqlite3.Connection, tables: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the schema by table, and the rows of `meta` if that table is as in `tables`; nothing else is read."""
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND length(sql) <= ? LIMIT 99"
    schema = dict(database.execute(query, (MOST_TEXT,)))
    if schema.get("meta") != tables["meta"]:
        return schema, {}
    rows = database.execute("SELECT name, value FROM meta WHERE length(value) <= ? LIMIT 99", (MOST_TEXT,))
    return schema, dict(rows)


def read_still(path: Name, most: int) -> bytes:
    """Return the content of a database that no process writes to; raise OSError if it cannot be read."""
    for ending in ("-journal", "-wal"):
        beside = Path(f"{os.fspath(path)}{ending}")
        if beside.is_file() and beside.stat().st_size:
            raise InputError(
                f"{brief_path(path)} is being written, or its run was interrupted: {brief_path(beside.name)} is beside "
                "it; let that command end, or give it again."
            )
    return read_bounded(path, most)


def as_database(content: bytes) -> sqlite3.Connection:
    """Open the bytes of a database file, which is neither locked nor changed; raise sqlite3.Error if they are none.

    The content is untrusted: compare the schema before a table is read, as a view may compute for ever.
    """
    if not content:  # SQLite would open an empty database
        raise sqlite3.DatabaseError("it is empty")
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        database.deserialize(content)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA query_only = ON")
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except BaseException:
        database.close()
        raise
    return database


def _code(error: sqlite3.Error) -> int:
    """Return the primary error code of SQLite."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
