"""Read an untrusted CSV or Parquet file as a table of numbers; each fault gives one sentence.

Rows are counted as an editor counts lines: the header, which is taken to be there, is row 1.
"""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.datasets.parquet import MAGIC, column_names, is_text, list_names, need_arrow, open_parquet
from sensorsim.datasets.public_ranges import brief

PERSON = "Id"  # the column that names a person where no other is given
MOST_BYTES = 1 << 32
MOST_CELLS = 1 << 29  # of a Parquet file: 4 GB as numbers
OTHERS = "others"  # of the table's attributes: columns that are neither numbers nor persons, and their types
ADVICE = "give a CSV file in UTF-8 with commas and one line of column names, or a Parquet file"


def read_table(path: str, person: str | None = None) -> pd.DataFrame:
    """Read a file, CSV or Parquet by its content; persons are read as text, so that 007 and 7 stay two."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise InputError(f"{path} is not an ordinary file; {ADVICE}.")
        if Path(path).stat().st_size > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES} bytes; give a part of it.")
        with Path(path).open("rb") as file:
            read = _read_parquet if file.read(len(MAGIC)) == MAGIC else _read_csv
            frame = read(file, path, person or PERSON)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; {ADVICE}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; {ADVICE}.") from None
    except (OSError, ValueError, csv.Error, pd.errors.ParserWarning) as error:
        if isinstance(error, InputError):
            raise
        reason = brief(str(error).strip().removeprefix("Error tokenizing data. C error: ").partition("\n")[0])
        raise InputError(f"{path} cannot be read as CSV ({reason or type(error).__name__}); {ADVICE}.") from None
    filled = np.flatnonzero(frame.notna().any(axis=1).to_numpy())
    return frame.iloc[: filled[-1] + 1 if len(filled) else 0]  # editors leave blank lines at the end


def _read_csv(file: io.BufferedReader, path: str, person: str) -> pd.DataFrame:
    file.seek(0)
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    names = [name.strip() for name in next(csv.reader(text, skipinitialspace=True), [])]
    text.detach()  # the file stays open
    if not any(names):
        raise InputError(f"{path} has no column names in its first line; {ADVICE}.")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise InputError(f"{path} does not separate its columns by commas; {ADVICE}.")
    names = _distinct(names, path)
    file.seek(0)
    with warnings.catch_warnings():
        # Read all columns: only so does pandas notice a line with too many cells, which a decimal comma makes.
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


def _distinct(names: list[str], path: str) -> list[str]:
    """Refuse a repeated name; give a column without a name one that says so."""
    named = [name for name in names if name]
    if len(named) != len(set(named)):
        twice = next(name for place, name in enumerate(named) if name in named[:place])
        raise InputError(f"{path} has two columns {brief(twice)}; rename one of them.")
    return [name or f"column {place} without a name" for place, name in enumerate(names, 1)]


def _read_parquet(file: io.BufferedReader, path: str, person: str) -> pd.DataFrame:
    """Read the columns of numbers and the one that names persons; others are listed in the attribute OTHERS."""
    with open_parquet(file, path) as found:
        stored = column_names(found)
        names = _distinct([name.strip() for name in stored], path)
        kinds = dict(zip(names, found.schema_arrow.types, strict=True))
        rows = found.metadata.num_rows
    used = {
        name: old
        for old, name in zip(stored, names, strict=True)
        if _is_number(kinds[name]) or (name == person and (is_text(kinds[name]) or _is_coded(kinds[name])))
    }
    if rows * max(1, len(used)) > MOST_CELLS:
        raise InputError(f"{path} has {rows} rows of {len(used)} columns, more than {MOST_CELLS} cells; give a part.")
    made: dict[str, Any] = {}
    texts = (used[person],) if person in used and is_text(kinds[person]) else ()
    with open_parquet(file, path, texts) as found:
        for name, old in used.items():
            cells = found.read([old], use_threads=False).column(0)
            made[name] = _parquet_persons(cells) if name == person else _parquet_numbers(cells)
    if made and {rows} != {len(column) for column in made.values()}:
        raise InputError(f"{path} has columns of other lengths than the {rows} rows it says; write it again.")
    frame = pd.DataFrame(made, index=pd.RangeIndex(rows), copy=False)
    frame.attrs[OTHERS] = {name: str(kind) for name, kind in kinds.items() if name not in used}
    return frame


def _is_number(kind: Any) -> bool:
    types = need_arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))


def _is_coded(kind: Any) -> bool:
    """Return whether a type is a dictionary of texts or numbers."""
    return need_arrow().types.is_dictionary(kind) and (is_text(kind.value_type) or _is_number(kind.value_type))


def _parquet_numbers(cells: Any) -> Any:
    """Return numbers, NaN where a cell is empty."""
    arrow = need_arrow()
    plain = arrow.types.is_integer(cells.type) or arrow.types.is_floating(cells.type)
    return (cells if plain else cells.cast(arrow.float64())).to_numpy()


def _parquet_persons(cells: Any) -> pd.Categorical:
    """Return names as text, None where there is none. A name that the file's dictionary holds twice is one here."""
    arrow = need_arrow()
    if arrow.types.is_floating(cells.type):  # whole numbers with gaps, as pandas writes them
        cells = arrow.chunked_array([arrow.array(cells.to_numpy(), from_pandas=True)])
    coded = cells.combine_chunks()
    if not arrow.types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    texts = [text if text and text.strip() else None for text in coded.dictionary.cast(arrow.string()).to_pylist()]
    place, names = pd.factorize(np.array(texts, object))
    place = np.append(place, -1)  # where a code is -1
    return pd.Categorical.from_codes(place[coded.indices.fill_null(-1).to_numpy()], names)


def numbers(frame: pd.DataFrame, columns: tuple[str, ...], source: str) -> np.ndarray:
    """Return columns as (rows, n) floats, NaN where a cell is empty; report any other cell that is no number."""
    raw = np.empty((len(frame), len(columns)))
    for place, name in enumerate(columns):
        if name in columns[:place]:  # a column may be used twice
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


def _floats(column: pd.Series) -> np.ndarray:
    """Convert numbers, and text that is a number; all else is NaN, truth values and dates too."""
    kind = column.dtype.kind
    if kind in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind not in "OTU":
        return np.full(len(column), np.nan)
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.where(column.map(lambda cell: isinstance(cell, (bool, np.bool_))).to_numpy(dtype=bool), np.nan, values)


def persons(frame: pd.DataFrame, person: str | None) -> np.ndarray:
    """Number the persons of all rows from 0 on, in the order of their names; -1 where there is no name."""
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
    """Return the column that names the persons, or None where every row counts as a person of its own."""
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
            f"{source} has no column {list_names(missing)}{hint}; it has {list_names(frame.columns)}: pick from these "
            f"with {option}."
        )
