"""Sums as tables, CSV or Parquet, that any program reads: a row for each feature, or for each day and feature.

    day        from 0 on, where days are kept apart
    feature    or direction of a sketch, from 0 on
    0, 1, …    how often each symbol came; count, sum and sum_of_squares where values are numbers
    accepted, empty, rejected_…    packets. They are of no single feature, so they stand in its day's first row, above
               zeros: every column of counts adds up to its total
    identity, epsilon, n, k, schema_version    the same in all rows

All of them are whole numbers or text, and no float is on their way. Here they are written; `columnar_reading.py` reads
them.
"""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.files import suffix_of, write_whole
from sensorsim.errors import InputError
from sensorsim.hospital.expected import REASONS, STAIRS_COLUMNS, Expected
from sensorsim.hospital.parquet import need_arrow
from sensorsim.hospital.reading import CSV, PARQUET
from sensorsim.hospital.statistics import SCHEMA_VERSION, Statistics
from sensorsim.ranges import brief

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware
    from sensorsim.hospital.received import Received

JSON = "json"
MOST_NUMBERS = 1 << 22  # sums that a table is written of
MOST_WRITTEN = 1 << 20  # rows of it: with 256 bytes each, a CSV is still read again
DAY, FEATURE = "day", "feature"
PACKETS = ("accepted", "empty", *(f"rejected_{reason}" for reason in REASONS))
SHARED = {"identity": str, "epsilon": str, "n": int, "k": int, "schema_version": int}
OF_A_GROUP = 1 << 14  # rows that are written together
Row = list[int | str]


def form_to_write(path: str | os.PathLike[str]) -> str:
    """What the end of its name says; JSON if nothing else."""
    return {".parquet": PARQUET, ".csv": CSV}.get(suffix_of(path, ".json"), JSON)


def check_out(path: str | os.PathLike[str]) -> None:
    """Say what is missing to write such a file, before any work is done."""
    if form_to_write(path) == PARQUET:
        need_arrow()


def received_content(path: str | os.PathLike[str], received: "Received") -> bytes:
    """What `sensorsim receive --out` writes: JSON with the means, or a table of the sums."""
    if form_to_write(path) == JSON:
        import json

        return (json.dumps(received.to_dict(), indent=1, allow_nan=False) + "\n").encode()
    kept = received.statistics
    check_size(path, 1, kept.n, len(kept.columns))
    return _table_content(path, [kept], apart=False)


def check_size(path: str | os.PathLike[str], groups: int, features: int, columns: int) -> None:
    """Refuse more sums than a table is written of, before any work is done. Groups are days that are kept apart."""
    rows, numbers = groups * features, groups * features * columns
    if form_to_write(path) != JSON and (rows > MOST_WRITTEN or numbers > MOST_NUMBERS):
        raise InputError(
            f"{numbers} sums in {rows} rows are more than a table is written of, {MOST_NUMBERS} in {MOST_WRITTEN}; "
            f"give {brief(Path(path).name)} the ending .json, which keeps the sums over all days."
        )


def write_days(path: str | os.PathLike[str], firmware: "Firmware", tally: Any) -> None:
    """Write the sums (days, features, columns) of packets of this firmware as a table, or as JSON those of all days."""
    from sensorsim.hospital.received import Received

    expected = Expected(firmware)
    if tally.ndim != 3 or tally.shape[1:] != (expected.n, len(expected.columns)) or not len(tally):
        raise InputError(
            f"sums of shape {tally.shape} are not of this table; give (days, {expected.n}, {len(expected.columns)}), "
            "one day or more."
        )
    check_size(path, *tally.shape)
    if form_to_write(path) == JSON:
        total = sum(day.astype(object) for day in tally)  # as Python's integers: 64 bits may hold a day and not all
        received = Received(firmware.table, _of_day(expected, total.tolist()), firmware.sketch)
        write_whole(path, received_content(path, received))
    else:
        days = (_of_day(expected, day.tolist()) for day in tally)
        write_whole(path, _table_content(path, days, apart=len(tally) > 1))


def _table_content(path: str | os.PathLike[str], days: Iterable[Statistics], apart: bool) -> bytes:
    """The table, made a day at a time: as rows of Python's own, all days would take a gigabyte."""
    parts = iter(days)
    first = next(parts)
    blocks = (list(_rows(part, [day] if apart else [])) for day, part in enumerate(chain([first], parts)))
    write = _parquet_content if form_to_write(path) == PARQUET else _csv_content
    return write(_names(first, apart), blocks)


def _of_day(expected: Expected, sums: list[list[int]]) -> Statistics:
    """Packets from their values: each accepted one has k of them."""
    values = sum(row[0] if expected.columns == STAIRS_COLUMNS else sum(row) for row in sums)
    return Statistics.of(expected, sums, values // expected.k)


def _names(part: Statistics, days: bool) -> list[str]:
    return [*([DAY] if days else []), FEATURE, *part.columns, *PACKETS, *SHARED]


def _rows(part: Statistics, day: list[int]) -> Iterator[Row]:
    packets = [part.accepted, part.empty, *(part.rejected[reason] for reason in REASONS)]
    shared: Row = [part.identity, part.epsilon, part.n, part.k, SCHEMA_VERSION]
    for feature, sums in enumerate(part.sums):
        yield [*day, feature, *sums, *(packets if feature == 0 else [0] * len(packets)), *shared]


def _csv_content(names: list[str], blocks: Iterable[list[Row]]) -> bytes:
    file = io.BytesIO()
    text = io.TextIOWrapper(file, "utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for rows in blocks:
        writer.writerows(rows)
    text.flush()
    return file.getvalue()


def _parquet_content(names: list[str], blocks: Iterable[list[Row]]) -> bytes:
    arrow = need_arrow()
    groups = _grouped(blocks)
    first = next(groups)
    # What is wider than 64 bits are sums of many files, which stand in one block; those of a day are not.
    schema = arrow.schema(list(zip(names, map(_kind, names, zip(*first, strict=True)), strict=True)))
    file = io.BytesIO()
    with arrow.parquet.ParquetWriter(file, schema) as writer:
        for rows in chain([first], groups):
            cells = map(arrow.array, zip(*rows, strict=True), schema.types)
            writer.write_table(arrow.table(list(cells), schema=schema))
    return file.getvalue()


def _grouped(blocks: Iterable[list[Row]]) -> Iterator[list[Row]]:
    """Blocks joined, or a file would have a row group for each day."""
    rows: list[Row] = []
    for block in blocks:
        rows += block
        if len(rows) >= OF_A_GROUP:
            yield rows
            rows = []
    if rows:
        yield rows


def _kind(name: str, values: Sequence[Any]) -> Any:
    arrow = need_arrow()
    if SHARED.get(name) is str:
        return arrow.string()
    return arrow.int64() if max(map(abs, values)) < 1 << 63 else arrow.decimal128(38)
