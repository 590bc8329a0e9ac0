"""Sums from the tables of `columnar.py`, whoever wrote them: every day is checked like a file of its own."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, BinaryIO

from sensorsim._util.files import of_version
from sensorsim.errors import InputError
from sensorsim.hospital.columnar import DAY, FEATURE, PACKETS, SHARED, Row
from sensorsim.hospital.expected import REASONS
from sensorsim.hospital.parquet import check_group, names_of, need_arrow, opened_parquet
from sensorsim.hospital.reading import MARK
from sensorsim.hospital.statistics import (
    CONTENT,
    MOST_BYTES,
    MOST_ROWS,
    SCHEMA_VERSION,
    Statistics,
    altered,
    newer,
    parse_sums,
)
from sensorsim.privacy.kinds.rows import MOST_SYMBOLS

MOST_LINES = 1 << 22
TEXT, LONGEST_TEXT = ("identity", "epsilon"), 64
WHOLE = re.compile(r"-?[0-9]{1,40}")
AT_ONCE = 1 << 12  # rows of a Parquet table that become objects at a time


def csv_sums(content: bytes, name: str) -> Statistics:
    """Sums over all rows of a table in CSV."""
    try:
        if len(content) > MOST_BYTES:
            raise ValueError("bytes")
        text = io.TextIOWrapper(io.BytesIO(content.removeprefix(MARK)), "utf-8", newline="")
        lines = csv.reader(text, strict=True)
        names = next(lines)
        return _total(names, (_typed(names, cells) for cells in lines if cells), name)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, IndexError, StopIteration, csv.Error):
        raise altered(name) from None


def parquet_sums(file: BinaryIO, name: str) -> Statistics:
    """The same of a table in Parquet."""
    with opened_parquet(file, name, TEXT) as parquet:
        try:
            names = names_of(parquet)
            if parquet.metadata.num_rows > MOST_LINES or len(names) > MOST_SYMBOLS + len(PACKETS) + 8:
                raise ValueError("size")
            return _total(names, _parquet_rows(parquet, name), name)
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, IndexError) as error:
            if isinstance(error, need_arrow().ArrowException):
                raise  # for the sentence of a broken file
            raise altered(name) from None


def _parquet_rows(parquet: Any, name: str) -> Iterator[tuple[Any, ...]]:
    for group in range(parquet.num_row_groups):
        for column in TEXT:
            check_group(parquet, parquet, group, column, name, LONGEST_TEXT)
        for batch in parquet.iter_batches(AT_ONCE, row_groups=[group], use_threads=False):
            yield from zip(*map(_plain, names_of(parquet), batch.columns), strict=True)


def _typed(names: list[str], cells: list[str]) -> Row:
    """The cells of a line as they were before they were written."""
    if len(cells) != len(names):
        raise ValueError("cells")
    return [cell if SHARED.get(name) is str else _int(cell) for name, cell in zip(names, cells, strict=True)]


def _int(cell: str) -> int:
    if not WHOLE.fullmatch(cell):
        raise ValueError("whole number")
    return int(cell)


def _plain(name: str, column: Any) -> list[Any]:
    """Values of a column as Python's own; decimals, which are written where numbers are very large, as integers."""
    types = need_arrow().types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_decimal(kind) and kind.scale == 0:
        return [int(value) for value in column.to_pylist()]
    if not (types.is_integer(kind) or (name in TEXT and (types.is_string(kind) or types.is_large_string(kind)))):
        raise ValueError("type")
    return list(column.to_pylist())


def _total(names: list[str], rows: Iterable[Sequence[int | str]], name: str) -> Statistics:
    """Every day is checked like a file of its own, and they are added up."""
    place = {column: i for i, column in enumerate(names)}
    if len(place) != len(names):
        raise ValueError("a column stands twice")
    total, last = None, -1
    for day, part in groupby(rows, key=lambda row: row[place[DAY]] if DAY in place else 0):
        if type(day) is not int or day <= last:
            raise ValueError("days")
        read = _day(place, list(islice(part, MOST_ROWS + 1)), name)
        if total is not None and (read.identity, read.n) != (total.identity, total.n):
            raise ValueError("two tables")
        total, last = read if total is None else total + read, day
    if total is None:
        raise ValueError("no rows")
    return total


def _day(place: dict[str, int], rows: list[Sequence[Any]], name: str) -> Statistics:
    known = {DAY, FEATURE, *PACKETS, *SHARED}
    found: dict[str, Any] = {column: rows[0][place[column]] for column in SHARED}
    of_version({**found, "content": CONTENT}, CONTENT, SCHEMA_VERSION, newer(name))
    same = all(row[place[column]] == value for column, value in found.items() for row in rows)
    if not same or [row[place[FEATURE]] for row in rows] != list(range(len(rows))):
        raise ValueError("features")
    packets = {column: sum(row[place[column]] for row in rows) for column in PACKETS}
    rejected = {reason: packets[f"rejected_{reason}"] for reason in REASONS}
    sums = {column: [row[i] for row in rows] for column, i in place.items() if column not in known}
    return parse_sums({**found, **packets, "rejected": rejected, "sums": sums})
