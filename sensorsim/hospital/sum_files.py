"""Write and read sums of packets as JSON or as a table, CSV or Parquet, with a row for each (day and) feature:

    day        from 0 on, where days are kept apart
    feature    or direction of a sketch, from 0 on
    0, 1, …    how often each symbol came; count, sum and sum_of_squares where values are numbers
    accepted, empty, rejected_…    packets. They are of no single feature, so they stand in its day's first row, above
               zeros: every column of counts adds up to its total
    identity, epsilon, n, k, schema_version    the same in all rows

All cells are integers or text; no float is involved. Readers check every day like a file of its own.
"""

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from sensorsim._util.errors import InputError
from sensorsim._util.files import suffix_of, write_whole
from sensorsim.hospital.packet_files import CSV, MARK, PARQUET
from sensorsim.hospital.packet_tally import REASONS, Expected
from sensorsim.hospital.parquet_files import MAGIC, check_group, column_names, is_text, need_arrow, open_parquet
from sensorsim.hospital.sufficient_statistics import (
    CONTENT,
    MOST_ROWS,
    SCHEMA_VERSION,
    Statistics,
    check_version,
    parse_json,
    parse_sums,
    refuse_altered,
)
from sensorsim.noise.kinds.rows_table import MOST_SYMBOLS
from sensorsim.ranges import brief

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware
    from sensorsim.hospital.receiver import Received

JSON = "json"
MOST_SUMS = 1 << 22  # in a table that is written
MOST_TABLE_ROWS = 1 << 20  # of it: with 256 bytes each, a CSV can still be read again
MOST_BYTES, MOST_LINES = 1 << 28, 1 << 22  # of a table that is read
DAY, FEATURE = "day", "feature"
PACKETS = ("accepted", "empty", *(f"rejected_{reason}" for reason in REASONS))
SHARED = ("identity", "epsilon", "n", "k", "schema_version")
TEXT, LONGEST_TEXT = ("identity", "epsilon"), 64
GROUP = 1 << 14  # rows that are written together
BATCH = 1 << 12  # rows of a Parquet table that are read together
INTEGER = re.compile(r"-?[0-9]{1,40}")


# ── write ──


def form_to_write(path: str | os.PathLike[str]) -> str:
    """Return the form that the end of a file name asks for; JSON by default."""
    return {".parquet": PARQUET, ".csv": CSV}.get(suffix_of(path, ".json"), JSON)


def check_out(path: str | os.PathLike[str]) -> None:
    """Refuse a form whose library is missing, before any work is done."""
    if form_to_write(path) == PARQUET:
        need_arrow()


def check_size(path: str | os.PathLike[str], groups: int, features: int, columns: int) -> None:
    """Refuse to write more sums than a table may have; `groups` are days that are kept apart."""
    rows, numbers = groups * features, groups * features * columns
    if form_to_write(path) != JSON and (rows > MOST_TABLE_ROWS or numbers > MOST_SUMS):
        raise InputError(
            f"{numbers} sums in {rows} rows are too many for a table, which has up to {MOST_SUMS} in "
            f"{MOST_TABLE_ROWS}; give {brief(Path(path).name)} the ending .json, which keeps the sums over all days."
        )


def received_content(path: str | os.PathLike[str], received: "Received") -> bytes:
    """Return the content of `receive --out`: JSON with the means, or a table of the sums."""
    import numpy as np

    if form_to_write(path) == JSON:
        return (json.dumps(received.to_dict(), indent=1, allow_nan=False) + "\n").encode()
    found = received.statistics
    check_size(path, 1, found.n, len(found.columns))
    packets = [found.accepted, found.empty, *(found.rejected[reason] for reason in REASONS)]
    return _table_content(path, found, np.array([found.sums], object), [packets])


def write_days(path: str | os.PathLike[str], firmware: "Firmware", tally: Any) -> None:
    """Write sums (days, features, columns) of this firmware's packets: days apart in a table, their total in JSON."""
    from sensorsim.hospital.receiver import Received

    expected = Expected(firmware)
    if tally.ndim != 3 or tally.shape[1:] != (expected.n, len(expected.columns)) or not len(tally):
        raise InputError(
            f"sums of shape {tally.shape} are not of this table; give (days, {expected.n}, {len(expected.columns)}), "
            "one day or more."
        )
    check_size(path, *tally.shape)
    if form_to_write(path) == JSON:
        total = sum(day.astype(object) for day in tally)  # as Python integers: 64 bits may hold a day but not all
        received = Received(firmware.table, Statistics.of_tally(expected, total), firmware.sketch)
        write_whole(path, received_content(path, received))
        return
    packets = [[Statistics.of_tally(expected, day).accepted, *[0] * (len(PACKETS) - 1)] for day in tally]
    write_whole(path, _table_content(path, Statistics.none(expected), tally, packets))


def _table_content(path: str | os.PathLike[str], head: Statistics, tally: Any, packets: list[list[int]]) -> bytes:
    blocks = _blocks(head, tally, packets)
    return _parquet_content(blocks) if form_to_write(path) == PARQUET else _csv_content(blocks)


def _blocks(head: Statistics, tally: Any, packets: list[list[int]]) -> Iterator[dict[str, list[Any]]]:
    """Yield columns of a few days at a time: as Python objects, all days would take a gigabyte."""
    shared = dict(zip(SHARED, (head.identity, head.epsilon, head.n, head.k, SCHEMA_VERSION), strict=True))
    step = max(1, GROUP // head.n)
    for first in range(0, len(tally), step):
        part, days = tally[first : first + step], packets[first : first + step]
        block = {DAY: [day for day in range(first, first + len(part)) for _ in range(head.n)]}
        block[FEATURE] = list(range(head.n)) * len(part)
        block |= {name: part[:, :, i].ravel().tolist() for i, name in enumerate(head.columns)}
        zeros = [0] * (head.n - 1)
        block |= {name: [cell for day in days for cell in (day[i], *zeros)] for i, name in enumerate(PACKETS)}
        if len(tally) == 1:
            del block[DAY]
        yield block | {name: [value] * (head.n * len(part)) for name, value in shared.items()}


def _csv_content(blocks: Iterator[dict[str, list[Any]]]) -> bytes:
    file = io.BytesIO()
    text = io.TextIOWrapper(file, "utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    first = next(blocks)
    writer.writerow(first)
    for block in chain([first], blocks):
        writer.writerows(zip(*block.values(), strict=True))
    text.flush()
    return file.getvalue()


def _parquet_content(blocks: Iterator[dict[str, list[Any]]]) -> bytes:
    arrow = need_arrow()
    first = next(blocks)
    # Only the sums of many files, which are one block, may be wider than 64 bits; those of a day are not.
    schema = arrow.schema([(name, _arrow_type(name, values)) for name, values in first.items()])
    file = io.BytesIO()
    with arrow.parquet.ParquetWriter(file, schema) as writer:
        for block in chain([first], blocks):
            writer.write_table(arrow.table(block, schema=schema))
    return file.getvalue()


def _arrow_type(name: str, values: Sequence[Any]) -> Any:
    arrow = need_arrow()
    if name in TEXT:
        return arrow.string()
    return arrow.int64() if max(map(abs, values)) < 1 << 63 else arrow.decimal128(38)


# ── read ──


def read_received(path: str | os.PathLike[str]) -> Statistics:
    """Read and check a file of `sensorsim receive --out`; `receive` with its table makes means of it again."""
    try:
        with Path(path).open("rb") as file:
            return read_sums(file.read(len(MAGIC)), file, str(path))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a file of `sensorsim receive --out`.") from None


def read_sums(head: bytes, file: BinaryIO, name: str) -> Statistics:
    """Read sums from a file of any form that starts with `head`."""
    if head.startswith(MAGIC):
        return _parse_parquet(file, name)
    content = head + file.read(MOST_BYTES)
    return parse_json(content, name) if content.lstrip().startswith(b"{") else _parse_csv(content, name)


def _parse_csv(content: bytes, name: str) -> Statistics:
    with refuse_altered(name):
        if len(content) > MOST_BYTES:
            raise ValueError("bytes")
        text = io.TextIOWrapper(io.BytesIO(content.removeprefix(MARK)), "utf-8", newline="")
        lines = csv.reader(text, strict=True)
        names = next(lines, [])
        return _sum_days(names, (_typed_cells(names, cells) for cells in lines if cells), name)


def _parse_parquet(file: BinaryIO, name: str) -> Statistics:
    with open_parquet(file, name, TEXT) as parquet, refuse_altered(name):
        names = column_names(parquet)
        if parquet.metadata.num_rows > MOST_LINES or len(names) > MOST_SYMBOLS + len(PACKETS) + 8:
            raise ValueError("size")
        return _sum_days(names, _parquet_rows(parquet, name), name)


def _parquet_rows(parquet: Any, name: str) -> Iterator[tuple[Any, ...]]:
    for group in range(parquet.num_row_groups):
        for column in TEXT:
            check_group(parquet, parquet, group, column, name, LONGEST_TEXT)
        for batch in parquet.iter_batches(BATCH, row_groups=[group], use_threads=False):
            yield from zip(*map(_python_cells, column_names(parquet), batch.columns), strict=True)


def _typed_cells(names: list[str], cells: list[str]) -> list[int | str]:
    if len(cells) != len(names):
        raise ValueError("cells")
    return [cell if name in TEXT else _parse_integer(cell) for name, cell in zip(names, cells, strict=True)]


def _parse_integer(cell: str) -> int:
    if not INTEGER.fullmatch(cell):
        raise ValueError("integer")
    return int(cell)


def _python_cells(name: str, column: Any) -> list[Any]:
    """Return the values of a column; large numbers are stored as decimals."""
    types = need_arrow().types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_decimal(kind) and kind.scale == 0:
        return [int(value) for value in column.to_pylist()]
    if not (types.is_integer(kind) or (name in TEXT and is_text(kind))):
        raise ValueError("type")
    return list(column.to_pylist())


def _sum_days(names: list[str], rows: Iterable[Sequence[int | str]], name: str) -> Statistics:
    """Check every day like a file of its own, and add them up."""
    place = {column: i for i, column in enumerate(names)}
    if len(place) != len(names):
        raise ValueError("a repeated column")
    total, last = None, -1
    for day, part in groupby(rows, key=lambda row: row[place[DAY]] if DAY in place else 0):
        if type(day) is not int or day <= last:
            raise ValueError("days")
        read = _parse_day(place, list(islice(part, MOST_ROWS + 1)), name)
        if total is not None and (read.identity, read.n) != (total.identity, total.n):
            raise ValueError("two tables")
        total, last = read if total is None else total + read, day
    if total is None:
        raise ValueError("no rows")
    return total


def _parse_day(place: dict[str, int], rows: list[Sequence[Any]], name: str) -> Statistics:
    found: dict[str, Any] = {column: rows[0][place[column]] for column in SHARED}
    check_version({**found, "content": CONTENT}, name)
    same = all(row[place[column]] == value for column, value in found.items() for row in rows)
    if not same or [row[place[FEATURE]] for row in rows] != list(range(len(rows))):
        raise ValueError("features")
    packets = {column: sum(row[place[column]] for row in rows) for column in PACKETS}
    rejected = {reason: packets[f"rejected_{reason}"] for reason in REASONS}
    known = {DAY, FEATURE, *PACKETS, *SHARED}
    sums = {column: [row[i] for row in rows] for column, i in place.items() if column not in known}
    return parse_sums({**found, **packets, "rejected": rejected, "sums": sums})
