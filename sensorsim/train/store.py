"""Finished runs in an SQLite file. Runs trained together are one transaction: after kill -9 they are there or not.

A row that cannot be read is forgotten, so what it held is computed again.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sensorsim._util.files import brief_path, check_target, no_space
from sensorsim.errors import InputError
from sensorsim.ranges import brief

RESULTS_VERSION = 3  # raise it whenever a stored number could change
TABLES = (
    "meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "cells (key TEXT PRIMARY KEY, result TEXT NOT NULL)",  # what holds for all runs of a cell
    "runs (key TEXT, run INTEGER, result TEXT NOT NULL, PRIMARY KEY (key, run))",
    "errors (key TEXT PRIMARY KEY, sentence TEXT NOT NULL)",  # why a cell could not run; it is tried again
)
# How keys of `cells` begin that are not cells: what a key stands for, trivial predictors; and the key of the data.
CONFIG, TRIVIAL, ABOUT_DATA = "config/", "trivial/", "data"
ROLLBACK = b"\1\1"  # of the head of a file: it keeps no log beside itself
Sound = Callable[[dict[str, Any]], bool]  # whether a row holds what its reader needs


class Store:
    """A results file for one data set; use as a context manager, which opens it.

    A file of something else is refused when the store is made, and nothing is written then.
    """

    def __init__(self, path: str | Path, digest: str) -> None:
        self.path = Path(path)
        self._identity = {"results_version": str(RESULTS_VERSION), "torch": _torch_version(), "data": digest}
        check_target(path)
        self._is_new = not self.path.exists() or not self.path.stat().st_size
        if not self._is_new:
            self._look(self._identity)

    def __enter__(self) -> Store:
        try:
            self._database = sqlite3.connect(self.path, timeout=60)
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        try:
            self._open(self._identity)
        except BaseException as error:
            self._close(failed=True)
            if isinstance(error, sqlite3.Error):
                raise self._unusable(error) from None
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._close(failed=error is not None)
        if isinstance(error, sqlite3.Error):
            raise self._unusable(error) from None

    def _close(self, failed: bool) -> None:
        """Close the file; one that this run made is removed if the run failed before any result was in it."""
        empty = failed and self._is_new and not self._holds_results()
        self._database.close()
        if empty:
            for ending in ("", "-journal"):
                Path(f"{self.path}{ending}").unlink(missing_ok=True)

    def _holds_results(self) -> bool:
        """Return whether a run is kept; a file that cannot be asked may be another process's by now."""
        try:
            if not self._database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall():
                return False
            return bool(self._database.execute("SELECT 1 FROM runs LIMIT 1").fetchall())
        except sqlite3.Error as error:
            return not _is_full(error)

    def get(self, key: str, sound: Sound = bool) -> dict[str, Any] | None:
        """What is kept under that key, if it is sound."""
        row = self._database.execute("SELECT result FROM cells WHERE key = ?", (key,)).fetchone()
        found = None if row is None else _read(row[0], sound)
        if row is not None and found is None:
            with self._database:
                self._database.execute("DELETE FROM cells WHERE key = ?", (key,))
        return found

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Keep something; what is there already stays."""
        with self._database:
            self._put(key, result)

    def runs(self, key: str, most: int, sound: Sound = bool) -> dict[int, dict[str, Any]]:
        """The finished runs of a cell that are sound, by number, below `most`."""
        rows = self._database.execute("SELECT run, result FROM runs WHERE key = ? AND run < ?", (key, most)).fetchall()
        found = {run: _read(result, sound) for run, result in rows}
        damaged = [(key, run) for run, result in found.items() if result is None]
        if damaged:
            with self._database:
                self._database.executemany("DELETE FROM runs WHERE key = ? AND run = ?", damaged)
        return {run: result for run, result in found.items() if result is not None}

    def put_runs(self, key: str, about: dict[str, Any], runs: Mapping[int, dict[str, Any]]) -> None:
        """Keep finished runs of a cell, with what holds for all of them; those that are there already stay."""
        with self._database:
            self._put(key, about)
            self._database.executemany(
                "INSERT OR IGNORE INTO runs VALUES (?, ?, ?)",
                [(key, run, json.dumps(result)) for run, result in runs.items()],
            )
            self._database.execute("DELETE FROM errors WHERE key = ?", (key,))

    def put_error(self, key: str, sentence: str) -> None:
        """Keep why a cell could not run this time."""
        with self._database:
            self._database.execute("INSERT OR REPLACE INTO errors VALUES (?, ?)", (key, sentence))

    def error(self, key: str) -> str | None:
        """Why a cell could not run when it was last tried."""
        row = self._database.execute("SELECT sentence FROM errors WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def _put(self, key: str, result: dict[str, Any]) -> None:
        self._database.execute("INSERT OR IGNORE INTO cells VALUES (?, ?)", (key, json.dumps(result)))

    def _look(self, identity: dict[str, str]) -> None:
        """Refuse what is not ours without a touch: read only, and never in a mode that leaves files beside it."""
        with self.path.open("rb") as file:
            head = file.read(20)
        if not head.startswith(b"SQLite format 3\0") or head[18:] != ROLLBACK:
            raise self._foreign("not a results file")
        place = f"file:{quote(os.path.realpath(self.path))}"
        try:
            try:
                self._compare(f"{place}?mode=ro", identity)
            except sqlite3.OperationalError:  # a sweep was killed as it wrote, and what it began is undone when opened
                self._compare(f"{place}?mode=ro&immutable=1", identity)
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def _compare(self, address: str, identity: dict[str, str]) -> None:
        with closing(sqlite3.connect(address, uri=True, timeout=60)) as database:
            schema = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT 99"))
            if not schema:  # a sweep was killed as it began
                return
            if schema.get("meta") != f"CREATE TABLE {TABLES[0]}":
                raise self._foreign("a database of something else")
            found = dict(database.execute("SELECT name, value FROM meta LIMIT 99"))
        if "results_version" not in found:
            raise self._foreign("a database of something else")
        self._check(found, identity)
        if sorted(schema.values()) != sorted(f"CREATE TABLE {table}" for table in TABLES):
            raise self._foreign("a database of something else")

    def _foreign(self, what: str) -> InputError:
        return InputError(
            f"{brief_path(self.path)} is {what}; nothing was changed in it: give another file with --results."
        )

    def _open(self, identity: dict[str, str]) -> None:
        if not self._database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall():
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")  # another sweep may be starting on the same file
                for table in TABLES:
                    self._database.execute(f"CREATE TABLE IF NOT EXISTS {table}")
                self._database.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", identity.items())
        self._check(dict(self._database.execute("SELECT name, value FROM meta")), identity)

    def _check(self, found: dict[str, Any], identity: dict[str, str]) -> None:
        for name, what in (("results_version", "results version"), ("torch", "torch"), ("data", "data set")):
            if found.get(name) != identity[name]:
                raise InputError(
                    f"{self.path} was written with {what} {brief(found.get(name))}, this run has {identity[name]}; "
                    "nothing was changed in it: give another file with --results."
                )

    def _unusable(self, error: sqlite3.Error) -> InputError:
        if _is_full(error):
            return no_space(self.path)
        return InputError(
            f"{self.path} is not a results file that can be read and written ({brief(error)}); give another file with "
            "--results."
        )


def _is_full(error: sqlite3.Error) -> bool:
    """Return whether a disk is full; SQLite calls some of these an input or output error."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code == sqlite3.SQLITE_FULL


def _read(text: object, sound: Sound) -> dict[str, Any] | None:
    """A row's content; None where it is damaged."""
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and sound(found) else None


def _torch_version() -> str:
    from importlib.metadata import version

    return version("torch").split("+")[0]
