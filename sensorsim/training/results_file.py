"""Finished runs of a sweep in a resumable file: runs that are trained together are one transaction.

A report reads a file from its bytes alone, without torch: the mean of each cell over its finished runs, beside the
trivial predictors of its data.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from math import isfinite
from types import SimpleNamespace
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import Name, strict_json
from sensorsim._util.resumable import OTHER, ResumableFile, as_database, read_meta
from sensorsim.datasets.public_ranges import brief

RESULTS_VERSION = 3  # raise it whenever a stored number could change
_COLUMNS = {
    "meta": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
    "cells": "key TEXT PRIMARY KEY, result TEXT NOT NULL",  # what holds for all runs of a cell
    "runs": "key TEXT, run INTEGER, result TEXT NOT NULL, PRIMARY KEY (key, run)",
    "errors": "key TEXT PRIMARY KEY, sentence TEXT NOT NULL",  # why a cell could not run; it is tried again
}
TABLES = {name: f"CREATE TABLE {name} ({columns})" for name, columns in _COLUMNS.items()}
# Prefixes of keys that are no cells: the configuration of a key, trivial predictors; and the key of the data.
CONFIG, TRIVIAL, ABOUT_DATA = "config/", "trivial/", "data"
IDENTITY = {"results_version": "results version", "torch": "torch", "data": "data set"}
MOST_BYTES = 1 << 28  # of a file in a report
MOST_ROWS = 200_000  # of a table in a report
MOST_TEXT = 1 << 20  # of a row in a report
OPTION = "--sweep"  # that names a file in a report


class ResultsFile(ResumableFile):
    """The finished runs of sweeps over one data set; several processes may add to it."""

    kind, option, wait, tables = "results file", "--results", 60.0, TABLES

    def __init__(self, path: Name, digest: str) -> None:
        from importlib.metadata import version

        torch = version("torch").split("+")[0]
        super().__init__(path, {"results_version": str(RESULTS_VERSION), "torch": torch, "data": digest})

    def check_identity(self, found: Mapping[str, Any]) -> None:
        """Refuse results of another version, of another torch, or of other data."""
        if "results_version" not in found:
            raise self.refusal(OTHER)
        for name, label in IDENTITY.items():
            if found.get(name) != self.identity[name]:
                theirs = brief(found.get(name))
                raise self.refusal(f"was written with {label} {theirs}, this run has {self.identity[name]}")

    def has_results(self) -> bool:
        """Return whether a run is stored; a file that cannot be read may be in use by another process."""
        try:
            tables = self.run("SELECT 1 FROM sqlite_master LIMIT 1")
            return bool(tables and self.run("SELECT 1 FROM runs LIMIT 1"))
        except sqlite3.Error as error:
            return (getattr(error, "sqlite_errorcode", 0) & 0xFF) != sqlite3.SQLITE_FULL

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what is stored under the key."""
        rows = self.run("SELECT result FROM cells WHERE key = ?", key)
        return self._parse(rows[0][0]) if rows else None

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Store a result, unless there is one."""
        self.run("INSERT OR IGNORE INTO cells VALUES (?, ?)", key, json.dumps(result))

    def runs(self, key: str, most: int) -> dict[int, dict[str, Any]]:
        """Return the finished runs of a cell below `most`, by number."""
        rows = self.run("SELECT run, result FROM runs WHERE key = ? AND run < ?", key, most)
        return {number: self._parse(text) for number, text in rows}

    def put_runs(self, key: str, about: dict[str, Any], runs: Mapping[int, dict[str, Any]]) -> None:
        """Store finished runs of a cell with what holds for all of them, in one transaction; keep what is there."""
        with self.transaction():
            self.put(key, about)
            for number, result in runs.items():
                self.run("INSERT OR IGNORE INTO runs VALUES (?, ?, ?)", key, number, json.dumps(result))
            self.run("DELETE FROM errors WHERE key = ?", key)

    def put_error(self, key: str, sentence: str) -> None:
        """Store why a cell could not run this time."""
        self.run("INSERT OR REPLACE INTO errors VALUES (?, ?)", key, sentence)

    def _parse(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, TypeError, RecursionError):
            raise self.damage("a row that no sweep writes") from None


# ---- for reports


@dataclass(frozen=True)
class StoredSweep:
    """All cells that have a finished run, in the order of the file, and the predictors that need no training."""

    source: str
    rows: int
    n: int
    cells: list[SimpleNamespace]  # configuration, privacy budget (with secret noise), mean scores over the runs
    trivial: list[SimpleNamespace]  # sigma, name, accuracy, held_out, r2


def stored_sweep(path: Name, content: bytes) -> StoredSweep:
    """Return the results in the bytes of a file; raise InputError unless every number is one."""
    try:
        with closing(as_database(content)) as database:
            return _read_sweep(path, database)
    except InputError:
        raise
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise _foreign(path, f"is not a results file ({brief(error)})") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _foreign(path, "has a row that no sweep writes") from None


def _read_sweep(path: Name, database: sqlite3.Connection) -> StoredSweep:
    schema, meta = read_meta(database, TABLES)
    if schema != TABLES:
        raise _foreign(path, OTHER)
    if meta.get("results_version") != str(RESULTS_VERSION):
        raise _foreign(path, f"was written with results version {brief(meta.get('results_version'))}")
    query = "SELECT key, result FROM cells WHERE length(result) <= ? LIMIT ?"
    cells = dict(database.execute(query, (MOST_TEXT, MOST_ROWS)).fetchall())
    if ABOUT_DATA not in cells:
        raise InputError(f"{brief(path)} does not describe its data; give the command of that sweep again to add that.")
    about = strict_json(cells[ABOUT_DATA])
    runs: dict[str, list[Any]] = {}
    query = "SELECT key, result FROM runs WHERE length(result) <= ? ORDER BY key, run LIMIT ?"
    for key, result in database.execute(query, (MOST_TEXT, MOST_ROWS)):
        runs.setdefault(key, []).append(strict_json(result))
    named = [key for key in cells if key in runs and f"{CONFIG}{key}" in cells]
    if not named:
        raise _foreign(path, "has no finished run")
    found = [_cell(strict_json(cells[f"{CONFIG}{key}"]), strict_json(cells[key]), runs[key]) for key in named]
    trivial = []
    for key, text in cells.items():
        config = cells.get(f"{CONFIG}{key.removeprefix(TRIVIAL)}")
        if key.startswith(TRIVIAL) and config is not None:
            sigma = _real(strict_json(config)["sigma"])
            for name, scores in strict_json(text).items():
                held_out, r2 = _number(scores["accuracy_held_out"]), _number(scores.get("r2"))
                accuracy = _real(scores["accuracy"])
                one = SimpleNamespace(sigma=sigma, name=brief(name), accuracy=accuracy, held_out=held_out, r2=r2)
                trivial.append(one)
    return StoredSweep(brief(about["source"]), int(about["rows"]), int(about["n"]), found, trivial)


def _cell(config: Any, said: Any, runs: list[Any]) -> SimpleNamespace:
    from sensorsim.training.scores import interval

    names = ("accuracy", "accuracy_held_out", "r2")
    accuracy, held_out, r2 = (interval([_number(run[name]) for run in runs]) for name in names)
    return SimpleNamespace(
        mechanism=brief(config["mechanism"]),
        sigma=_real(config["sigma"]),
        c=_real(config["c"]),
        nominal_epsilon=_number(said["nominal_epsilon"]),
        spent_epsilon=_number(said["spent_epsilon"]),
        epsilon_person=_number(said["epsilon_person_median"]),
        trust=brief(said["trust"]),
        covers=brief(said["with_secret_noise"]),
        runs=len(runs),
        diverged=sum(run["accuracy"] is None for run in runs),
        accuracy=accuracy["mean"],  # None if a run diverged
        low=accuracy["low"],
        high=accuracy["high"],
        held_out=held_out["mean"],
        r2=r2["mean"],
    )


def _number(value: Any) -> float | None:
    return None if value is None else _real(value)


def _real(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value):
        raise ValueError("no number")
    return float(value)


def _foreign(path: Name, why: str) -> InputError:
    return InputError(f"{brief(path)} {why}; give one that `sensorsim sweep --results` wrote with {OPTION}.")
