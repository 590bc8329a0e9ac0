"""A CSV or Parquet of anybody's as a table of numbers, with a clear sentence for each way it can be wrong.

Rows are counted as an editor counts lines: the header is row 1, and so it is taken to be where a file has none.
"""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.hospital.parquet_files import MAGIC, list_names
from sensorsim.ranges import brief
from sensorsim.training.table_parquet import OTHERS, read_parquet

PERSON = "Id"  # the column that names a person where no other is given
MOST_BYTES = 1 << 32
ADVICE = "give a CSV file in UTF-8 with commas and one line of column names, or a Parquet file"
listed = list_names


def read_table(path: str, person: str | None = None) -> pd.DataFrame:
    """The file as a table, by its content CSV or Parquet; persons are read as text, so that 007 and 7 stay two."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise InputError(f"{path} is not an ordinary file; {ADVICE}.")
        if Path(path).stat().st_size > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES} bytes; give a part of it.")
        with Path(path).open("rb") as file:
            frame = _read(file, path, person or PERSON)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; {ADVICE}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; {ADVICE}.") from None
    except (OSError, ValueError, csv.Error, pd.errors.ParserWarning) as error:
        if isinstance(error, InputError):
            raise
        reason = brief(str(error).strip().removeprefix("Error tokenizing data. C error: ").partition("\n")[0])
        raise InputError(f"{path} cannot be read as CSV ({reason or type(error).__name__}); {ADVICE}.") from None
    filled = frame.notna().any(axis=1).to_numpy()
    last = int(np.flatnonzero(filled)[-1]) + 1 if filled.any() else 0
    return frame.iloc[:last]  # editors leave blank lines at the end


def numbers(frame: pd.DataFrame, columns: tuple[str, ...], source: str) -> np.ndarray:
    """The chosen columns as (rows, n) floats, NaN where a cell is empty; any other cell that is no number is named."""
    raw = np.empty((len(frame), len(columns)))
    for place, name in enumerate(columns):
        if name in columns[:place]:  # a column may stand twice
            raw[:, place] = raw[:, columns.index(name)]
            continue
        column = frame[name]
        raw[:, place] = values = _floats(column)
        bad = ~np.isfinite(values) & column.notna().to_numpy()
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{source} row {row + 2}, column {brief(name)}: {brief(column.iloc[row])} is not a finite number; "
                "correct it, or choose other columns with --columns."
            )
    return raw


def persons(frame: pd.DataFrame, person: str | None) -> np.ndarray:
    """A number from 0 on for the person of every row, in the order of their names; -1 where there is no name."""
    if person is None:
        return np.arange(len(frame))
    codes, names = pd.factorize(frame[person])
    keys = list(names)
    if all(isinstance(key, str) and key.isascii() and key.isdecimal() for key in keys):
        keys = [(len(digits := key.lstrip("0")), digits, key) for key in keys]  # as numbers, of any length
    place = np.empty(len(keys) + 1, dtype=np.int64)
    place[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    place[-1] = -1  # where factorize says -1
    return np.asarray(place[codes])


def person_column(frame: pd.DataFrame, person: str | None, source: str) -> str | None:
    """The column that names the persons, or None where every row counts as a person of its own."""
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InputError(f"{source} has two columns {brief(twice)}; rename one of them.")
    if person is not None:
        need_columns(frame, (person,), source, "--person")
        return person
    return PERSON if PERSON in frame.columns else None


def need_columns(frame: pd.DataFrame, columns: tuple[str, ...], source: str, option: str = "--columns") -> None:
    """Refuse names that the table does not have, or not as numbers or persons."""
    for name in columns:
        if name in frame.attrs.get(OTHERS, {}):
            kind = brief(frame.attrs[OTHERS][name])
            raise InputError(f"{source}, column {brief(name)}: it holds {kind}; pick another with {option}.")
    missing = [name for name in dict.fromkeys(columns) if name not in frame.columns]
    if missing:
        hint = did_you_mean(missing[0], map(str, frame.columns)) if len(missing) == 1 else ""
        raise InputError(
            f"{source} has no column {listed(missing)}{hint}; it has {listed(frame.columns)}: pick from these with "
            f"{option}."
        )


def numeric_columns(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame.columns if frame[name].dtype.kind in "iuf" and not frame[name].isna().all()]


def _read(file: io.BufferedReader, path: str, person: str) -> pd.DataFrame:
    if file.read(len(MAGIC)) == MAGIC:
        return read_parquet(file, path, person, _names)
    file.seek(0)
    names = _header(file, path)
    file.seek(0)
    return _body(file, names, person)


def _header(file: io.BufferedReader, path: str) -> list[str]:
    """The names in the first line."""
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    names = [name.strip() for name in next(csv.reader(text, skipinitialspace=True), [])]
    text.detach()  # the file stays open
    if not any(names):
        raise InputError(f"{path} has no column names in its first line; {ADVICE}.")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise InputError(f"{path} does not separate its columns by commas; {ADVICE}.")
    return _names(names, path)


def _names(names: list[str], path: str) -> list[str]:
    """Each once; a column without a name cannot be asked for."""
    named = [name for name in names if name]
    if len(named) != len(set(named)):
        twice = next(name for place, name in enumerate(named) if name in named[:place])
        raise InputError(f"{path} has two columns {brief(twice)}; rename one of them.")
    return [name or f"column {place} without a name" for place, name in enumerate(names, 1)]


def _body(file: io.BufferedReader, names: list[str], person: str) -> pd.DataFrame:
    """All columns: only so does pandas notice a line with too many cells, which a decimal comma makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # it would cut such lines
        return pd.read_csv(
            file,
            encoding="utf-8-sig",
            header=0,
            names=names,
            index_col=False,
            dtype={person: str} if person in names else None,
            skipinitialspace=True,
            skip_blank_lines=False,  # or rows could not be named
            low_memory=False,  # one type for a whole column
        )


def _floats(column: pd.Series) -> np.ndarray:
    """Numbers as they are and text that is a number; all else NaN, truth values and dates too."""
    kind = column.dtype.kind
    if kind in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind not in "OTU":
        return np.full(len(column), np.nan)
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(column.map(lambda cell: isinstance(cell, (bool, np.bool_))).to_numpy(dtype=bool), np.nan, values)
