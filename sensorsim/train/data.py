"""Daily-activity data: read, check, normalise, and hand to the users of a distributed autoencoder.

Rows go to users by person: a whole person belongs to one user, and is either trained on or held out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sensorsim.errors import InputError

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

# Public caps: what a day can hold (minutes), or a round number far above ordinary days; no file was looked at.
PUBLIC_CAPS = {
    "TotalSteps": 40_000.0,
    "TotalDistance": 30.0,
    "TrackerDistance": 30.0,
    "LoggedActivitiesDistance": 30.0,
    "VeryActiveDistance": 30.0,
    "ModeratelyActiveDistance": 30.0,
    "LightActiveDistance": 30.0,
    "SedentaryActiveDistance": 1.0,
    "VeryActiveMinutes": 1_440.0,
    "FairlyActiveMinutes": 1_440.0,
    "LightlyActiveMinutes": 1_440.0,
    "SedentaryMinutes": 1_440.0,
    "Calories": 6_000.0,
}
HELD_OUT_SHARE = 0.2


@dataclass(frozen=True)
class Dataset:
    """Normalised records in [0, 1]; `user` and `held_out` are set per person, never inside one."""

    x: np.ndarray  # (rows, n) float64
    columns: tuple[str, ...]
    person: np.ndarray  # (rows,) int, 0 … persons-1
    user: np.ndarray  # (rows,) int, 0 … m-1
    held_out: np.ndarray  # (rows,) bool
    source: str
    normalise: str

    @property
    def n(self) -> int:
        return int(self.x.shape[1])

    @property
    def m(self) -> int:
        return int(self.user.max()) + 1

    @property
    def digest(self) -> str:
        """What a results file remembers of the data, so that two data sets never mix."""
        seen = hashlib.sha256(np.ascontiguousarray(self.x).tobytes())
        seen.update(self.user.astype(np.int64).tobytes() + self.held_out.tobytes() + repr(self.columns).encode())
        return seen.hexdigest()[:16]


def load(
    path: str | None = None,
    *,
    m: int = 2,
    columns: tuple[str, ...] = PAPER_COLUMNS,
    normalise: str = "max",
    seed: int = 0,
) -> Dataset:
    """The file at `path`, or the synthetic set when there is none, ready for training.

    `normalise="max"` divides by the column maximum as the paper prints; that maximum is private data, and no
    epsilon in this package covers it. `normalise="public"` divides by public caps and clips.
    """
    if path is None:
        from sensorsim.train.synthetic import make

        frame, source = make(seed=0), "synthetic (seed 0)"
    else:
        frame, source = read_csv(path), Path(path).name
    return prepare(frame, m=m, columns=columns, normalise=normalise, seed=seed, source=source)


def read_csv(path: str) -> pd.DataFrame:
    """The file as a table, with a clear sentence for each way it can be wrong."""
    try:
        frame = pd.read_csv(path)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; give a Fitbit daily-activity CSV, or leave --data out.") from None
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{path} cannot be read as CSV ({reason}); give a Fitbit daily-activity CSV.") from None
    return frame


def prepare(
    frame: pd.DataFrame,
    *,
    m: int = 2,
    columns: tuple[str, ...] = PAPER_COLUMNS,
    normalise: str = "max",
    seed: int = 0,
    source: str = "a data frame",
) -> Dataset:
    """Check a table column by column, normalise it, and give its persons to users."""
    raw = _numbers(frame, columns, source)
    x = _normalise(raw, columns, normalise, source)
    person = np.unique(frame["Id"].to_numpy(), return_inverse=True)[1]
    user_of, held_out_of = _assign(np.bincount(person), m, seed, source)
    return Dataset(x, tuple(columns), person, user_of[person], held_out_of[person], source, normalise)


def _numbers(frame: pd.DataFrame, columns: tuple[str, ...], source: str) -> np.ndarray:
    """The chosen columns as floats; the first bad cell is named by row and column."""
    if not columns:
        raise InputError("no columns were chosen; name at least one numeric column, or leave --columns out.")
    missing = [name for name in dict.fromkeys(("Id", *columns)) if name not in frame.columns]
    if missing:
        has = ", ".join(map(str, frame.columns[:16]))
        raise InputError(f"{source} has no column {', '.join(missing)}; it has {has}: pick from these with --columns.")
    if len(frame) == 0 or frame["Id"].isna().any():
        what = "no rows" if len(frame) == 0 else "a row without an Id"
        raise InputError(f"{source} has {what}; every row needs an Id that names its person.")
    for name in dict.fromkeys(columns):
        values = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64)
        for bad, what in ((~np.isfinite(values), "is not a finite number"), (values < 0, "is negative")):
            if bad.any():
                row = int(np.argmax(bad))
                cell = frame[name].iloc[row]
                raise InputError(
                    f"{source} row {row + 2}, column {name}: {cell} {what}; every value must be a number of at least 0."
                )
    return np.column_stack([frame[name].to_numpy(dtype=np.float64) for name in columns])


def _normalise(raw: np.ndarray, columns: tuple[str, ...], normalise: str, source: str) -> np.ndarray:
    constant = [name for name, column in zip(columns, raw.T, strict=True) if column.min() == column.max()]
    if constant:
        raise InputError(
            f"{source}: column {constant[0]} has one value only and cannot be scaled; leave it out with --columns."
        )
    if normalise == "max":
        return np.asarray(raw / raw.max(axis=0))
    if normalise == "public":
        unknown = [name for name in columns if name not in PUBLIC_CAPS]
        if unknown:
            raise InputError(
                f"no public cap is known for {unknown[0]}; choose from {', '.join(PUBLIC_CAPS)}, or use max."
            )
        return np.asarray(np.minimum(raw / np.array([PUBLIC_CAPS[name] for name in columns]), 1.0))
    raise InputError(f"normalise is {normalise!r}; it is max or public.")


def _assign(rows_of: np.ndarray, m: int, seed: int, source: str) -> tuple[np.ndarray, np.ndarray]:
    """A user and a held-out flag for every person: users get nearly equal row counts, each keeps a training person."""
    persons = len(rows_of)
    if m < 1:
        raise InputError(f"m = {m}; there is at least one user, so give --m 1 or more.")
    if persons < m:
        raise InputError(f"{source} has {persons} persons, fewer than m = {m} users; give --m between 1 and {persons}.")
    rng = np.random.default_rng([seed, 1])
    order = rng.permutation(persons)
    order = order[np.argsort(-rows_of[order], kind="stable")]  # large persons first, ties at random
    user = np.empty(persons, dtype=np.int64)
    load_of = np.zeros(m, dtype=np.int64)
    for place, person in enumerate(order):
        chosen = place if place < m else int(np.argmin(load_of))
        user[person] = chosen
        load_of[chosen] += rows_of[person]
    held_out = np.zeros(persons, dtype=bool)
    wanted = round(HELD_OUT_SHARE * persons)
    kept = np.bincount(user, minlength=m)
    for person in rng.permutation(persons):
        if wanted and kept[user[person]] > 1:
            held_out[person] = True
            kept[user[person]] -= 1
            wanted -= 1
    return user, held_out
