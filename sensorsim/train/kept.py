"""A sweep from its results file alone, for those who did not run it: the file is read and never touched, without torch.

What is shown is what the file holds: a mean over the runs that are finished, beside the trivial predictors of its data.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from sensorsim._util.files import Name, strict_json
from sensorsim._util.resumable import as_database
from sensorsim.errors import InputError
from sensorsim.ranges import brief
from sensorsim.train.interval import interval
from sensorsim.train.store import ABOUT_DATA, CONFIG, RESULTS_VERSION, TABLES, TRIVIAL

MOST_BYTES = 1 << 28
MOST_ROWS = 200_000  # of a table
MOST_TEXT = 1 << 20  # of a row
OPTION = "--sweep"


@dataclass(frozen=True)
class KeptCell:
    """One configuration: what it is, what it spends, what its finished runs gave."""

    mechanism: str
    sigma: float
    c: float
    nominal_epsilon: float | None
    spent_epsilon: float | None  # None: no bound
    epsilon_person: float | None  # of the person with the median number of records
    trust: str
    covers: str  # with secret noise, in short
    runs: int
    diverged: int
    accuracy: float | None  # mean over the runs; None where one diverged
    low: float | None
    high: float | None
    held_out: float | None
    r2: float | None


@dataclass(frozen=True)
class TrivialScore:
    """A predictor that needs no training."""

    sigma: float
    name: str
    accuracy: float
    held_out: float | None
    r2: float | None


@dataclass(frozen=True)
class KeptSweep:
    """All cells that have a run, in the order of the file."""

    source: str
    rows: int
    n: int
    cells: tuple[KeptCell, ...]
    trivial: tuple[TrivialScore, ...]


def kept_sweep(path: Name, content: bytes) -> KeptSweep:
    """What the file says, every number of it checked to be one."""
    try:
        database = as_database(content)
        try:
            return _read(path, database)
        finally:
            database.close()
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise _other(path, f"is not a results file ({brief(error)})") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise _other(path, "has a row that no sweep writes") from None


def _read(path: Name, database: sqlite3.Connection) -> KeptSweep:
    asked = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND length(sql) <= ? LIMIT 9"
    if {sql for (sql,) in database.execute(asked, (MOST_TEXT,))} != {f"CREATE TABLE {table}" for table in TABLES}:
        raise _other(path, "is a database of something else")
    meta = dict(database.execute("SELECT name, value FROM meta WHERE length(value) <= ? LIMIT 9", (MOST_TEXT,)))
    if meta.get("results_version") != str(RESULTS_VERSION):
        raise _other(path, f"was written with results version {brief(meta.get('results_version'))}")
    cells = dict(_rows(database, "SELECT key, result FROM cells WHERE length(result) <= ? LIMIT ?"))
    if ABOUT_DATA not in cells:
        raise InputError(
            f"{brief(path)} does not say what it is of; give the command of that sweep again: it adds that."
        )
    about = strict_json(cells[ABOUT_DATA])
    runs: dict[str, list[Any]] = {}
    for key, result in _rows(
        database, "SELECT key, result FROM runs WHERE length(result) <= ? ORDER BY key, run LIMIT ?"
    ):
        runs.setdefault(key, []).append(strict_json(result))
    found = [_cell(strict_json(cells[f"{CONFIG}{key}"]), strict_json(text), runs[key])
             for key, text in cells.items() if key in runs and f"{CONFIG}{key}" in cells]  # fmt: skip
    if not found:
        raise _other(path, "has no finished run")
    trivial = [one for key, text in cells.items() if key.startswith(TRIVIAL) for one in _trivial(key, text, cells)]
    return KeptSweep(brief(about["source"]), int(about["rows"]), int(about["n"]), tuple(found), tuple(trivial))


def _rows(database: sqlite3.Connection, query: str) -> Iterator[tuple[str, str]]:
    for key, text in database.execute(query, (MOST_TEXT, MOST_ROWS)):
        if type(key) is not str or type(text) is not str:
            raise ValueError("no text")
        yield key, text


def _cell(config: Any, said: Any, runs: list[Any]) -> KeptCell:
    scores = {name: [_number(run[name]) for run in runs] for name in ("accuracy", "accuracy_held_out", "r2")}
    accuracy = interval(scores["accuracy"])
    return KeptCell(
        brief(config["mechanism"]),
        _real(config["sigma"]),
        _real(config["c"]),
        _number(said["nominal_epsilon"]),
        _number(said["spent_epsilon"]),
        _number(said["epsilon_person_median"]),
        brief(said["trust"]),
        brief(said["with_secret_noise"]),
        len(runs),
        scores["accuracy"].count(None),
        accuracy["mean"],
        accuracy["low"],
        accuracy["high"],
        interval(scores["accuracy_held_out"])["mean"],
        interval(scores["r2"])["mean"],
    )


def _trivial(key: str, text: str, cells: dict[str, str]) -> Iterator[TrivialScore]:
    config = cells.get(f"{CONFIG}{key.removeprefix(TRIVIAL)}")
    if config is None:
        return
    sigma = _real(strict_json(config)["sigma"])
    for name, scores in strict_json(text).items():
        held_out, r2 = _number(scores["accuracy_held_out"]), _number(scores.get("r2"))
        yield TrivialScore(sigma, brief(name), _real(scores["accuracy"]), held_out, r2)


def _number(value: Any) -> float | None:
    return None if value is None else _real(value)


def _real(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value):
        raise ValueError("no number")
    return float(value)


def _other(path: Name, why: str) -> InputError:
    return InputError(f"{brief(path)} {why}; give one that `sensorsim sweep --results` wrote with {OPTION}.")
