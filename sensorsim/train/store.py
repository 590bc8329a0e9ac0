"""Finished cells in an SQLite file. A cell is one transaction: after kill -9 it is there or it is not."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from sensorsim.errors import InputError

RESULTS_VERSION = 2  # raise it whenever a stored number could change


class Store:
    """A results file for one data set; use as a context manager."""

    def __init__(self, path: str | Path, digest: str) -> None:
        self.path = Path(path)
        identity = {"results_version": str(RESULTS_VERSION), "torch": _torch_version(), "data": digest}
        try:
            self._database = sqlite3.connect(self.path, timeout=60)
            self._open(identity)
        except sqlite3.Error as error:
            raise InputError(
                f"{path} is not a results file that can be written ({error}); give another file with --results."
            ) from None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def get(self, key: str) -> dict[str, Any] | None:
        """The finished cell of that key."""
        row = self._database.execute("SELECT result FROM cells WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Keep a finished cell; one that is there already stays."""
        with self._database:
            self._database.execute("INSERT OR IGNORE INTO cells (key, result) VALUES (?, ?)", (key, json.dumps(result)))

    def _open(self, identity: dict[str, str]) -> None:
        with self._database:
            self._database.execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            self._database.execute("CREATE TABLE IF NOT EXISTS cells (key TEXT PRIMARY KEY, result TEXT NOT NULL)")
            found = dict(self._database.execute("SELECT name, value FROM meta"))
            if not found:
                self._database.executemany("INSERT INTO meta VALUES (?, ?)", identity.items())
                return
        for name, what in (("results_version", "results version"), ("torch", "torch"), ("data", "data set")):
            if found.get(name) != identity[name]:
                self._database.close()
                raise InputError(
                    f"{self.path} was written with {what} {found.get(name)}, this run has {identity[name]}; "
                    "nothing was changed in it: give another file with --results."
                )


def _torch_version() -> str:
    from importlib.metadata import version

    return version("torch").split("+")[0]
