"""Records: read, checked, brought to 0 … 1, and handed to the users of a distributed autoencoder.

Rows go to users by person: a whole person belongs to one user, and is either trained on or held out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.ranges import Range, brief, outside, ranges_for, to_unit
from sensorsim.training import table
from sensorsim.training.choosing import MAXIMA as MAXIMA
from sensorsim.training.choosing import RANGES as RANGES
from sensorsim.training.split import assign

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

    @property
    def digest(self) -> str:
        """What a results file remembers of the data, so that two data sets never mix."""
        seen = hashlib.sha256(np.ascontiguousarray(self.x).data)
        for part in (self.person.astype(np.int64), self.user.astype(np.int64), self.held_out):
            seen.update(np.ascontiguousarray(part).data)
        seen.update(repr((self.columns, self.normalise, self.ranges, self.persons_known)).encode())
        return seen.hexdigest()[:16]


def load(
    path: str | None = None,
    *,
    m: int = 2,
    columns: tuple[str, ...] | None = None,
    person: str | None = None,
    ranges: str | Mapping[str, Range] | None = None,
    normalise: str = RANGES,
    drop_missing: bool = False,
    seed: int = 0,
) -> Dataset:
    """The file at `path`, or the synthetic set when there is none, ready for training; options as in `prepare`."""
    if path is None:
        from sensorsim.training.synthetic import make

        frame, source = make(seed=0), "synthetic (seed 0)"
        unknown = [name for name in columns or () if name not in frame.columns]
        if unknown:
            hint = did_you_mean(unknown[0], NUMERIC_COLUMNS) if len(unknown) == 1 else ""
            raise InputError(
                f"the synthetic set has no column {table.listed(unknown)}{hint}; give your records with --data, or "
                "pick from the columns that `sensorsim data make` writes with --columns."
            )
    else:
        frame, source = table.read_table(path, person), Path(path).name
    return prepare(
        frame,
        m=m,
        columns=columns,
        person=person,
        ranges=ranges,
        normalise=normalise,
        drop_missing=drop_missing,
        seed=seed,
        source=source,
    )


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
    """Check a table column by column, bring it to 0 … 1, and give its persons to users.

    `columns` are the paper's 14 unless named; `person` is the column that names a person, Id where there is one.
    `normalise="ranges"` scales by public ranges, ready ones or those of a file, and clips. `"max"` divides by the
    column maximum as the paper prints; that maximum is private data, so no epsilon holds.
    """
    normalise = _rule(normalise, ranges)
    by = table.person_column(frame, person, source)
    columns = _columns(frame, columns, by, source)
    known = ranges_for(columns, ranges) if normalise == RANGES else None  # before the cells: they may be many
    raw, person_of, dropped = _complete(
        table.numbers(frame, columns, source), table.persons(frame, by), columns, by, drop_missing, source
    )
    user_of, held_out_of = assign(np.bincount(person_of), m, seed, source)
    return Dataset(
        _by_maxima(raw, columns, source) if known is None else to_unit(raw, known),
        columns,
        person_of,
        user_of[person_of],
        held_out_of[person_of],
        source,
        normalise,
        known,
        by is not None,
        () if known is None else outside(raw, known),
        dropped,
    )


def _rule(normalise: str, ranges: object) -> str:
    """How the columns are scaled; `public` is what `ranges` was called before ranges could be given."""
    if normalise not in (RANGES, MAXIMA, "public"):
        raise InputError(f"normalise is {brief(normalise)}; it is {RANGES} or {MAXIMA}.")
    if normalise == MAXIMA and ranges is not None:
        raise InputError("ranges are given, and max does not use them; leave out --ranges or --normalise max.")
    return MAXIMA if normalise == MAXIMA else RANGES


def _columns(frame: pd.DataFrame, columns: tuple[str, ...] | None, person: str | None, source: str) -> tuple[str, ...]:
    """The columns asked for, or the paper's where the table has them."""
    if columns is None:
        missing = [name for name in NUMERIC_COLUMNS if name not in frame.columns]
        if not missing:
            return PAPER_COLUMNS
        numeric = [name for name in table.numeric_columns(frame) if name != person]
        what = "is missing" if len(missing) == 1 else f"and {len(missing) - 1} others are missing"
        has = f"its numeric columns are {table.listed(numeric)}" if numeric else "it has no numeric column"
        raise InputError(
            f"{source} is no Fitbit daily activity ({missing[0]} {what}); name your columns with --columns: {has}."
        )
    if not columns:
        raise InputError("no columns were chosen; name at least one numeric column, or leave --columns out.")
    table.need_columns(frame, columns, source)
    if person in columns:
        raise InputError(
            f"column {brief(person)} names the persons and cannot be a feature; leave it out of --columns."
        )
    return tuple(columns)


def _complete(
    raw: np.ndarray,
    person: np.ndarray,
    columns: tuple[str, ...],
    by: str | None,
    drop_missing: bool,
    source: str,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows with a person and a number in every column; others are refused by row and column, or dropped."""
    gap = np.isnan(raw)
    nameless = person < 0
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
    if whole.all():
        return raw, person, 0
    # Persons that lost all their rows are gone, and the others move up.
    return raw[whole], np.unique(person[whole], return_inverse=True)[1], int((~whole).sum())


def _by_maxima(raw: np.ndarray, columns: tuple[str, ...], source: str) -> np.ndarray:
    """As the paper prints; what lies below 0, or never changes, has no place on that scale."""
    for name, column in zip(columns, raw.T, strict=True):
        least, most = column.min(), column.max()
        if least < 0 or least == most:
            what = "has values below 0" if least < 0 else "has one value only"
            raise InputError(
                f"{source}: column {brief(name)} {what} and cannot be divided by its maximum; use --normalise ranges, "
                "or leave it out with --columns."
            )
    return np.asarray(raw / raw.max(axis=0))
