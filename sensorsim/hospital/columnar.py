"""Sums as tables, CSV or Parquet, that any program reads: a row for each feature, or for each day and feature.

    day        from 0 on, where days are kept apart
    feature    or direction of a sketch, from 0 on
    0, 1, …    how often each symbol came; count, sum and sum_of_squares where values are numbers
    accepted, empty, rejected_…    packets. They are of no single feature, so they stand in its day's first row, above
               zeros: every column of counts adds up to its total
    identity, epsilon, n, k, schema_version    the same in all rows

All of them are whole numbers or text, and no float is on their way.
"""

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from sensorsim.errors import InputError
from sensorsim.files import of_version, write_whole
from sensorsim.hospital.expected import REASONS, STAIRS_COLUMNS, Expected
from sensorsim.hospital.parquet import check_group, names_of, need_arrow, opened_parquet
from sensorsim.hospital.reading import CSV, MARK, PARQUET
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

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware
    from sensorsim.hospital.received import Received

JSON = "json"
MOST_NUMBERS = 1 << 22  # sums that a table is written of
MOST_LINES = 1 << 22
DAY, FEATURE = "day", "feature"
PACKETS = ("accepted", "empty", *(f"rejected_{reason}" for reason in REASONS))
SHARED = {"identity": str, "epsilon": str, "n": int, "k": int, "schema_version": int}
TEXT, LONGEST_TEXT = ("identity", "epsilon"), 64
WHOLE = re.compile(r"-?[0-9]{1,40}")
AT_ONCE = 1 << 12  # rows of a Parquet table that become objects at a time


def form_to_write(path: str | os.PathLike[str]) -> str:
    """What the end of its name says; JSON if nothing else."""
    return {".parquet": PARQUET, ".csv": CSV}.get(Path(path).suffix.lower(), JSON)


def check_out(path: str | os.PathLike[str]) -> None:
    """Say what is missing to write such a file, before any work is done."""
    if form_to_write(path) == PARQUET:
        need_arrow()


def received_content(path: str | os.PathLike[str], received: "Received") -> bytes:
    """What `sensorsim receive --out` writes: JSON with the means, or a table of the sums."""
    if form_to_write(path) == JSON:
        import json

        return (json.dumps(received.to_dict(), indent=1, allow_nan=False) + "\n").encode()
    return _table_content(path, [received.statistics])


def write_days(path: str | os.PathLike[str], firmware: "Firmware", tally: Any) -> None:
    """Write the sums (days, features, columns) of packets of this firmware as a table, or as JSON those of all days."""
    from sensorsim.hospital.received import Received

    expected = Expected(firmware)
    if tally.ndim != 3 or tally.shape[1:] != (expected.n, len(expected.columns)) or not len(tally):
        raise InputError(
            f"sums of shape {tally.shape} are not of this table; give (days, {expected.n}, {len(expected.columns)}), "
            "one day or more."
        )
    if form_to_write(path) == JSON:
        received = Received(firmware.table, _of_day(expected, tally.sum(axis=0).tolist()), firmware.sketch)
        write_whole(path, received_content(path, received))
    else:
        write_whole(path, _table_content(path, [_of_day(expected, day) for day in tally.tolist()]))


def _table_content(path: str | os.PathLike[str], days: Sequence[Statistics]) -> bytes:
    numbers = sum(part.n * len(part.columns) for part in days)
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"{numbers} sums are more than the {MOST_NUMBERS} that a table is written of; give {path} the ending "
            ".json, which keeps the sums over all days."
        )
    apart = len(days) > 1
    rows = [row for day, part in enumerate(days) for row in _rows(part, [day] if apart else [])]
    names = _names(days[0], apart)
    return _parquet_content(names, rows) if form_to_write(path) == PARQUET else _csv_content(names, rows)


def csv_sums(content: bytes, name: str) -> Statistics:
    """Sums over all rows of a table in CSV."""
    try:
        if len(content) > MOST_BYTES:
            raise ValueError("bytes")
        lines = csv.reader(io.StringIO(content.removeprefix(MARK).decode("utf-8"), newline=""), strict=True)
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


def _of_day(expected: Expected, sums: list[list[int]]) -> Statistics:
    """Packets from their values: each accepted one has k of them."""
    values = sum(row[0] if expected.columns == STAIRS_COLUMNS else sum(row) for row in sums)
    return Statistics.of(expected, sums, values // expected.k)


def _names(part: Statistics, days: bool) -> list[str]:
    return [*([DAY] if days else []), FEATURE, *part.columns, *PACKETS, *SHARED]


def _rows(part: Statistics, day: list[int]) -> Iterator[list[int | str]]:
    packets = [part.accepted, part.empty, *(part.rejected[reason] for reason in REASONS)]
    shared: list[int | str] = [part.identity, part.epsilon, part.n, part.k, SCHEMA_VERSION]
    for feature, sums in enumerate(part.sums):
        yield [*day, feature, *sums, *(packets if feature == 0 else [0] * len(packets)), *shared]


def _csv_content(names: list[str], rows: Iterable[list[int | str]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue().encode()


def _parquet_content(names: list[str], rows: list[list[int | str]]) -> bytes:
    arrow = need_arrow()
    made = []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        fits = SHARED.get(name) is str or max(map(abs, values)) < 1 << 63
        kind = arrow.string() if SHARED.get(name) is str else arrow.int64() if fits else arrow.decimal128(38)
        made.append(arrow.array(values, kind))
    file = io.BytesIO()
    arrow.parquet.write_table(arrow.table(made, names), file)
    return file.getvalue()


def _typed(names: list[str], cells: list[str]) -> list[int | str]:
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
