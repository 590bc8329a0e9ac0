"""Results that survive interruptions, in SQLite files."""

import os
import sqlite3
from pathlib import Path

from sensorsim._util.files import Name, brief_path, read_bounded
from sensorsim.errors import InputError


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
