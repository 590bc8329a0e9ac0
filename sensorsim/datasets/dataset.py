"""Records in 0 … 1, checked, scaled and split among the users of a distributed autoencoder.

Split by person: all records of a person stay with one user and on one side of the hold-out split.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.datasets import MAXIMA as MAXIMA
from sensorsim.datasets import RANGES as RANGES
from sensorsim.datasets.parquet import list_names
from sensorsim.datasets.public_ranges import Range, brief, outside, ranges_for, to_unit
from sensorsim.datasets.record_tables import need_columns, numbers, person_column, persons, read_table

NUMERIC_COLUMNS = (
    "TotalSteps",
    "TotalDistance",
    "TrackerDistance",
    "LoggedActivitiesDistance",
    "VeryActiveDistance",
    "ModeratelyActiveDistance",
    "LightActiveDistance",
    "SedentaryActiveDistance",
    "VeryActiveMinutes",
    "FairlyActiveMinutes",
    "LightlyActiveMinutes",
    "SedentaryMinutes",
    "Calories",
)
# The authors' 14 features: the 13 numeric columns with Calories twice.
PAPER_COLUMNS = (*NUMERIC_COLUMNS, "Calories")
HELD_OUT_SHARE = 0.2
CROWDS = {"generator": "the shipped generator", "flipped": "half of its columns flipped (x → 1 − x)"}
CROWD_MECHANISMS = ("none", "sampled", "sketch")
LEAST_CROWD = 20  # records; fewer have no persons to hold out


@dataclass(frozen=True)
class Dataset:
    """Records in [0, 1]; `user` and `held_out` are set per person, never inside one."""

    x: np.ndarray  # (rows, n) float64
    columns: tuple[str, ...]
    person: np.ndarray  # (rows,) int, 0 … persons-1
    user: np.ndarray  # (rows,) int, 0 … m-1
    held_out: np.ndarray  # (rows,) bool
    source: str
    normalise: str  # RANGES, or MAXIMA: divided by private maxima
    ranges: tuple[Range, ...] | None = None  # of the columns; None with MAXIMA
    persons_known: bool = True  # else every row counts as a person of its own
    clipped_in: tuple[int, ...] = ()  # readings outside of their range, by column
    dropped: int = 0  # rows left out for a missing cell

    @property
    def n(self) -> int:
        return int(self.x.shape[1])

    @property
    def m(self) -> int:
        return int(self.user.max()) + 1

    @property
    def clipped(self) -> int:
        return sum(self.clipped_in)

    @cached_property
    def variation(self) -> float:
        """Return the sum of squared distances from the column means."""
        return float(np.square(self.x - self.x.mean(axis=0)).sum())

    @property
    def digest(self) -> str:
        """Identify the data in a results file, so that two data sets never mix."""
        seen = hashlib.sha256(np.ascontiguousarray(self.x).data)
        for part in (self.person.astype(np.int64), self.user.astype(np.int64), self.held_out):
            seen.update(np.ascontiguousarray(part).data)
        seen.update(repr((self.columns, self.normalise, self.ranges, self.persons_known)).encode())
        return seen.hexdigest()[:16]


def load(
    path: str | None = None, *, columns: tuple[str, ...] | None = None, person: str | None = None, **options: Any
) -> Dataset:
    """Load the file at `path`, or the synthetic set when there is none; options as in `prepare`."""
    if path is not None:
        frame = read_table(path, person)
        return prepare(frame, columns=columns, person=person, source=Path(path).name, **options)
    from sensorsim.datasets.synthetic import make

    frame = make(seed=0)
    unknown = [name for name in columns or () if name not in frame.columns]
    if unknown:
        hint = did_you_mean(unknown[0], NUMERIC_COLUMNS) if len(unknown) == 1 else ""
        raise InputError(
            f"the synthetic set has no column {list_names(unknown)}{hint}; give your records with --data, or "
            "pick from the columns that `sensorsim data make` writes with --columns."
        )
    return prepare(frame, columns=columns, person=person, source="synthetic (seed 0)", **options)


def prepare(
    frame: pd.DataFrame,
    *,
    m: int = 2,
    columns: tuple[str, ...] | None = None,
    person: str | None = None,
    ranges: str | Mapping[str, Range] | None = None,
    normalise: str = RANGES,
    drop_missing: bool = False,
    seed: int = 0,
    source: str = "a data frame",
) -> Dataset:
    """Check a table column by column, scale it to 0 … 1, and assign its persons to users.

    `columns` are the paper's 14 unless named; `person` is the column that names a person, Id where there is one.
    `normalise="ranges"` scales by public ranges, shipped ones or those of a file, and clips. `"max"` divides by the
    column maximum as the paper prints; that maximum is private data, so no epsilon holds.
    """
    if normalise not in (RANGES, MAXIMA):
        raise InputError(f"normalise is {brief(normalise)}; it is {RANGES} or {MAXIMA}.")
    if normalise == MAXIMA and ranges is not None:
        raise InputError("ranges are given, and max does not use them; leave out --ranges or --normalise max.")
    by = person_column(frame, person, source)
    columns = _choose_columns(frame, columns, by, source)
    known = None if normalise == MAXIMA else ranges_for(columns, ranges)  # before the cells: they may be many
    raw, person_of = numbers(frame, columns, source), persons(frame, by)
    gap, nameless = np.isnan(raw), person_of < 0
    whole = ~(gap.any(axis=1) | nameless)
    if not whole.all() and not drop_missing:
        row = int(np.argmin(whole))
        column = by if nameless[row] else columns[int(np.argmax(gap[row]))]
        raise InputError(
            f"{source} row {row + 2}, column {brief(column)}: the cell is missing; fill it in, or leave such rows out "
            "with --drop-missing."
        )
    if not whole.any():
        what = "no rows" if len(raw) == 0 else "no row without a missing cell"
        raise InputError(f"{source} has {what}; at least one complete row is needed.")
    dropped = int((~whole).sum())
    if dropped:  # persons that lost all their rows are gone, and the others move up
        raw, person_of = raw[whole], np.unique(person_of[whole], return_inverse=True)[1]
    user_of, held_out_of = assign(np.bincount(person_of), m, seed, source)
    return Dataset(
        _by_maxima(raw, columns, source) if known is None else to_unit(raw, known),
        columns,
        person_of,
        user_of[person_of],
        held_out_of[person_of],
        source,
        MAXIMA if known is None else RANGES,
        known,
        by is not None,
        () if known is None else outside(raw, known),
        dropped,
    )


def _choose_columns(
    frame: pd.DataFrame, columns: tuple[str, ...] | None, person: str | None, source: str
) -> tuple[str, ...]:
    """Return the requested columns, or the paper's where the table has them."""
    if columns is None:
        missing = [name for name in NUMERIC_COLUMNS if name not in frame.columns]
        if not missing:
            return PAPER_COLUMNS
        filled = (name for name in frame.columns if frame[name].dtype.kind in "iuf" and not frame[name].isna().all())
        numeric = [str(name) for name in filled if name != person]
        what = "is missing" if len(missing) == 1 else f"and {len(missing) - 1} others are missing"
        has = f"its numeric columns are {list_names(numeric)}" if numeric else "it has no numeric column"
        raise InputError(
            f"{source} is no Fitbit daily activity ({missing[0]} {what}); name your columns with --columns: {has}."
        )
    if not columns:
        raise InputError("no columns were chosen; name at least one numeric column, or leave --columns out.")
    need_columns(frame, columns, source)
    if person in columns:
        raise InputError(
            f"column {brief(person)} names the persons and cannot be a feature; leave it out of --columns."
        )
    return tuple(columns)


def _by_maxima(raw: np.ndarray, columns: tuple[str, ...], source: str) -> np.ndarray:
    """Divide by the column maxima as the paper prints; refuse columns below 0 or without variation."""
    for name, column in zip(columns, raw.T, strict=True):
        least, most = column.min(), column.max()
        if least < 0 or least == most:
            what = "has values below 0" if least < 0 else "has one value only"
            raise InputError(
                f"{source}: column {brief(name)} {what} and cannot be divided by its maximum; use --normalise ranges, "
                "or leave it out with --columns."
            )
    return np.asarray(raw / raw.max(axis=0))


def assign(rows_of: np.ndarray, m: int, seed: int, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a user and a held-out flag for every person: users get nearly equal row counts, each trains a person.

    `rows_of` has the rows of every person, at least one each. A fifth of the persons is held out.
    """
    count = len(rows_of)
    if m < 1:
        raise InputError(f"m = {m}; there is at least one user, so give --m 1 or more.")
    if count < m:
        people = "1 person" if count == 1 else f"{count} persons"
        allowed = "1" if count == 1 else f"between 1 and {count}"
        raise InputError(f"{source} has {people}, fewer than m = {m} users; give --m {allowed}.")
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(count)
    order = order[np.argsort(-rows_of[order], kind="stable")]  # large persons first, ties at random
    user = np.empty(count, dtype=np.int64)
    least = [(0, j) for j in range(m)]  # a heap: the rows that user j has so far
    for person, rows in zip(order.tolist(), rows_of[order].tolist(), strict=True):
        had, j = least[0]
        user[person] = j
        heapq.heapreplace(least, (had + rows, j))
    held_out = np.zeros(count, dtype=bool)
    wanted, left = round(HELD_OUT_SHARE * count), np.bincount(user, minlength=m)
    for person in rng.permutation(count):
        if wanted and left[user[person]] > 1:
            held_out[person] = True
            left[user[person]] -= 1
            wanted -= 1
    return user, held_out


def crowd(name: str, size: int, *, m: int = 2, seed: int = 0, normalise: str = RANGES) -> Dataset:
    """Make `size` synthetic records, with as many people for them as the generator's file has.

    In the set `flipped` every second column is 1 - x: a prior that was made for step counts shows itself there.
    """
    from sensorsim.datasets.synthetic import PERSONS, ROWS, make

    if size < LEAST_CROWD:
        raise InputError(f"{size} records are too few for a crowd; give --records {LEAST_CROWD} or more.")
    people = max(round(size * PERSONS / ROWS), 2 * m)
    source = f"{CROWDS[name]}, {size} rows"
    dataset = prepare(make(size, people, 0), m=m, normalise=normalise, seed=seed, source=source)
    if name != "flipped":
        return dataset
    order = list(dict.fromkeys(dataset.columns))  # a column that is used twice is flipped in both places or in none
    turned = [order.index(column) % 2 == 1 for column in dataset.columns]
    return replace(dataset, x=np.where(turned, 1 - dataset.x, dataset.x))
