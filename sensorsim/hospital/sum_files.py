"""Sums of received packets: exact integers that add up over files, clinics and weeks, as JSON, CSV or Parquet.

A table, CSV or Parquet, has a row for each (day and) feature:

    day        from 0 on, where days are kept apart
    feature    or direction of a sketch, from 0 on
    0, 1, …    how often each symbol came; count, sum and sum_of_squares where values are numbers
    accepted, empty, rejected_…    packets. They are of no single feature, so they stand in its day's first row, above
               zeros: every column of counts adds up to its total
    identity, epsilon, n, k, schema_version    the same in all rows

All cells are integers or text; no float is involved. Readers check every day like a file of its own.
"""

import csv
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import of_version, strict_json, suffix_of, write_whole
from sensorsim.datasets.parquet import MAGIC, check_group, column_names, is_text, need_arrow, open_parquet
from sensorsim.datasets.public_ranges import brief
from sensorsim.hospital.packets import CSV, MARK, PARQUET, REASONS, STAIRS_COLUMNS, Expected, Stream
from sensorsim.kernels.formats import DIRECTION_BITS, LIMIT, N
from sensorsim.noise.kinds.rows_table import MOST_SYMBOLS

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware
    from sensorsim.hospital.receiver import Received

SCHEMA_VERSION = 1
CONTENT = "packets received by sensorsim"
MOST_JSON = 1 << 25
MOST_ROWS = 1 << DIRECTION_BITS.hi  # directions of a sketch: more than there can be features
MOST_PACKETS = 1 << 50
COINCIDENCE = 1e-6  # probability above which equal sums may well be those of different packets
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
Name = str | os.PathLike[str]


@dataclass(frozen=True)
class Statistics:
    """Sufficient statistics: the packets themselves are no longer needed."""

    identity: str  # of the table, and of the encoder or sketch where there is one
    epsilon: str  # of one packet
    n: int
    k: int
    columns: tuple[str, ...]  # the symbols, or count, sum and sum_of_squares
    sums: tuple[tuple[int, ...], ...]  # a row for each feature, or for each direction of a sketch
    accepted: int
    empty: int
    rejected: dict[str, int]

    @classmethod
    def of(
        cls,
        expected: Expected,
        sums: Iterable[Iterable[int]],
        accepted: int,
        empty: int = 0,
        rejected: dict[str, int] | None = None,
    ) -> "Statistics":
        """Return the sums of packets that were expected."""
        refused = dict.fromkeys(REASONS, 0) | (rejected or {})
        shape = (expected.identity, f"{expected.epsilon:f}", expected.n, expected.k, expected.columns)
        return cls(*shape, tuple(map(tuple, sums)), accepted, empty, refused)

    @classmethod
    def of_tally(cls, expected: Expected, tally: Any) -> "Statistics":
        """Return the sums (features, columns) of packets of which none was refused: each has k values."""
        values = tally[:, 0].sum() if expected.columns == STAIRS_COLUMNS else tally.sum()
        return cls.of(expected, tally.tolist(), int(values) // expected.k)

    @classmethod
    def none(cls, expected: Expected) -> "Statistics":
        """Return empty statistics."""
        return cls.of(expected, [[0] * len(expected.columns)] * expected.n, 0)

    def __add__(self, other: "Statistics") -> "Statistics":
        """Return the statistics of both sets of packets, exactly, in any order and division."""
        mine, theirs = ((each.identity, each.n, each.k, each.columns) for each in (self, other))
        if mine != theirs:
            raise InputError(
                "sums of two tables, encoders or sketches do not add up; add those whose packets were made with one."
            )
        return replace(
            self,
            sums=tuple(tuple(map(add, *rows)) for rows in zip(self.sums, other.sums, strict=True)),
            accepted=self.accepted + other.accepted,
            empty=self.empty + other.empty,
            rejected={reason: self.rejected[reason] + other.rejected[reason] for reason in REASONS},
        )

    @property
    def counts(self) -> list[int]:
        """Number of values received of each feature."""
        return [row[0] if self.columns == STAIRS_COLUMNS else sum(row) for row in self.sums]

    @property
    def digest(self) -> bytes | None:
        """Hash of the sums, in any file form; None where two hospitals may well have equal sums.

        That is by the probability that as many packets of the same people give these counts again; sums of numbers
        never do.
        """
        log = 0.0 if not self.accepted else -math.inf
        if self.columns != STAIRS_COLUMNS:
            log = 0.0
            for row in self.sums:
                seen = [count for count in row if count]
                every = sum(seen)
                log += math.lgamma(every + 1)
                log += sum(count * math.log(count / every) - math.lgamma(count + 1) for count in seen)
        content = (self.sums, self.accepted, self.empty, [self.rejected[reason] for reason in REASONS])
        return None if math.exp(log) > COINCIDENCE else hashlib.sha256(repr(content).encode()).digest()

    def to_dict(self) -> dict[str, Any]:
        made = {name: getattr(self, name) for name in ("identity", "epsilon", "n", "k", "accepted", "empty")}
        sums = {name: [row[i] for row in self.sums] for i, name in enumerate(self.columns)}
        return {**made, "rejected": dict(self.rejected), "sums": sums}

    def check(self, expected: Expected, name: str) -> None:
        """Refuse sums that no packets of this table can give."""
        if self.identity != expected.identity:
            raise InputError(
                f"{name} is of another table, encoder or sketch; give the ones that its packets were made with."
            )
        sound = (self.n, self.k, self.columns) == (expected.n, expected.k, expected.columns)
        limit = expected.limit
        if limit is not None and sound:
            sound = all(abs(y) <= c * limit and y * y <= c * squares <= (c * limit) ** 2 for c, y, squares in self.sums)
        if not sound:
            raise InputError(f"{name} has sums that no packets of this table give; write it again from the packets.")


# ── write ──


def form_to_write(path: Name) -> str:
    """Return the form that the end of a file name asks for; JSON by default."""
    return {".parquet": PARQUET, ".csv": CSV}.get(suffix_of(path, ".json"), JSON)


def check_out(path: Name) -> None:
    """Refuse a form whose library is missing, before any work is done."""
    if form_to_write(path) == PARQUET:
        need_arrow()


def check_size(path: Name, groups: int, features: int, columns: int) -> None:
    """Refuse to write more sums than a table may have; `groups` are days that are kept apart."""
    rows, numbers = groups * features, groups * features * columns
    if form_to_write(path) != JSON and (rows > MOST_TABLE_ROWS or numbers > MOST_SUMS):
        raise InputError(
            f"{numbers} sums in {rows} rows are too many for a table, which has up to {MOST_SUMS} in "
            f"{MOST_TABLE_ROWS}; give {brief(Path(path).name)} the ending .json, which keeps the sums over all days."
        )


def received_content(path: Name, received: "Received") -> bytes:
    """Return the content of `receive --out`: JSON with the means, or a table of the sums."""
    import numpy as np

    if form_to_write(path) == JSON:
        return (json.dumps(received.to_dict(), indent=1, allow_nan=False) + "\n").encode()
    found = received.statistics
    check_size(path, 1, found.n, len(found.columns))
    packets = [found.accepted, found.empty, *(found.rejected[reason] for reason in REASONS)]
    return _table_content(path, found, np.array([found.sums], object), [packets])


def write_days(path: Name, firmware: "Firmware", tally: Any) -> None:
    """Write sums (days, features, columns) of this firmware's packets: days apart in a table, their total in JSON."""
    from sensorsim.hospital.receiver import Received

    expected = Expected(firmware)
    check_size(path, *tally.shape)
    if form_to_write(path) == JSON:
        total = sum(day.astype(object) for day in tally)  # as Python integers: 64 bits may hold a day but not all
        received = Received(firmware.table, Statistics.of_tally(expected, total), firmware.sketch)
        write_whole(path, received_content(path, received))
        return
    packets = [[Statistics.of_tally(expected, day).accepted, *[0] * (len(PACKETS) - 1)] for day in tally]
    write_whole(path, _table_content(path, Statistics.none(expected), tally, packets))


def _table_content(path: Name, head: Statistics, tally: Any, packets: list[list[int]]) -> bytes:
    """Return a table of sums (days, features, columns) and of packets (days, PACKETS), made a few days at a time."""
    step, file = max(1, GROUP // head.n), io.BytesIO()
    blocks = (_block(head, tally, packets, range(len(tally))[at : at + step]) for at in range(0, len(tally), step))
    first = next(blocks)
    if form_to_write(path) == CSV:
        from pandas import DataFrame

        for block in chain([first], blocks):
            lines = DataFrame(block).to_csv(index=False, header=block is first, lineterminator="\n")
            file.write(str(lines).encode())
        return file.getvalue()
    arrow = need_arrow()

    def kind(name: str, values: Any) -> Any:
        """Return the type: only the sums of many files, which are one block, may be wider than 64 bits."""
        if name in TEXT:
            return arrow.string()
        return arrow.int64() if max(map(abs, values)) < 1 << 63 else arrow.decimal128(38)

    schema = arrow.schema([(name, kind(name, values)) for name, values in first.items()])
    with arrow.parquet.ParquetWriter(file, schema) as writer:
        for block in chain([first], blocks):
            writer.write_table(arrow.table(block, schema=schema))
    return file.getvalue()


def _block(head: Statistics, tally: Any, packets: list[list[int]], days: range) -> dict[str, Any]:
    """Return the columns of some days."""
    import numpy as np

    part, n = tally[days.start : days.stop], head.n
    counts = np.zeros((len(days), n, len(PACKETS)), np.int64)
    counts[:, 0] = packets[days.start : days.stop]
    block: dict[str, Any] = {DAY: np.repeat(days, n)} if len(tally) > 1 else {}
    block[FEATURE] = np.tile(np.arange(n), len(days))
    block |= {name: part[:, :, i].ravel() for i, name in enumerate(head.columns)}
    block |= {name: counts[:, :, i].ravel() for i, name in enumerate(PACKETS)}
    shared = zip(SHARED, (head.identity, head.epsilon, head.n, head.k, SCHEMA_VERSION), strict=True)
    return block | {name: [value] * (len(days) * n) for name, value in shared}


# ── read ──


def read_received(path: Name) -> Statistics:
    """Read and check a file of `sensorsim receive --out`; `receive` with its table makes means of it again."""
    try:
        with Path(path).open("rb") as file:
            return read_sums(Stream(file, str(path)))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a file of `sensorsim receive --out`.") from None


def read_sums(stream: Stream) -> Statistics:
    """Read sums from a file of any form."""
    head, name = stream.look(), stream.name
    if head.startswith(MAGIC):
        with open_parquet(stream.file, name, TEXT) as parquet, _refuse_altered(name):
            names = column_names(parquet)
            if parquet.metadata.num_rows > MOST_LINES or len(names) > MOST_SYMBOLS + len(PACKETS) + 8:
                raise ValueError("size")
            return _sum_days(names, _parquet_rows(parquet, name), name)
    content = head + stream.file.read(MOST_BYTES)
    with _refuse_altered(name):
        if content.lstrip().startswith(b"{"):
            return parse_sums(_check_version(strict_json(content) if len(content) <= MOST_JSON else {}, name))
        if len(content) > MOST_BYTES:
            raise ValueError("bytes")
        text = io.TextIOWrapper(io.BytesIO(content.removeprefix(MARK)), "utf-8", newline="")
        lines = csv.reader(text, strict=True)
        names = next(lines, [])
        return _sum_days(names, (_typed_cells(names, cells) for cells in lines if cells), name)


@contextmanager
def _refuse_altered(name: str) -> Iterator[None]:
    """Refuse a file that `receive --out` cannot have written; pass on the errors of pyarrow."""
    try:
        yield
    except (ValueError, LookupError, TypeError, RecursionError, csv.Error) as error:
        if isinstance(error, InputError) or type(error).__module__.startswith("pyarrow"):
            raise
        raise InputError(
            f"{name} is no file of `sensorsim receive --out`, or was altered; write it again from the packets."
        ) from None


def _check_version(found: Any, name: str) -> Any:
    newer = f"{name} has a newer schema version than {SCHEMA_VERSION}, which this sensorsim reads; update sensorsim."
    return of_version(found, CONTENT, SCHEMA_VERSION, newer)


def _typed_cells(names: list[str], cells: list[str]) -> list[int | str]:
    if not all(name in TEXT or INTEGER.fullmatch(cell) for name, cell in zip(names, cells, strict=True)):
        raise ValueError("integer")
    return [cell if name in TEXT else int(cell) for name, cell in zip(names, cells, strict=True)]


def _parquet_rows(parquet: Any, name: str) -> Iterator[tuple[Any, ...]]:
    types = need_arrow().types

    def cells(column_name: str, column: Any) -> list[Any]:
        """Return the values of a column; large numbers are stored as decimals."""
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        if types.is_decimal(kind) and kind.scale == 0:
            return [int(value) for value in column.to_pylist()]
        if not (types.is_integer(kind) or (column_name in TEXT and is_text(kind))):
            raise ValueError("type")
        return list(column.to_pylist())

    for group in range(parquet.num_row_groups):
        for column in TEXT:
            check_group(parquet, parquet, group, column, name, LONGEST_TEXT)
        for batch in parquet.iter_batches(BATCH, row_groups=[group], use_threads=False):
            yield from zip(*map(cells, column_names(parquet), batch.columns), strict=True)


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
    _check_version({**found, "content": CONTENT}, name)
    same = all(row[place[column]] == value for column, value in found.items() for row in rows)
    if not same or [row[place[FEATURE]] for row in rows] != list(range(len(rows))):
        raise ValueError("features")
    packets = {column: sum(row[place[column]] for row in rows) for column in PACKETS}
    rejected = {reason: packets[f"rejected_{reason}"] for reason in REASONS}
    known = {DAY, FEATURE, *PACKETS, *SHARED}
    sums = {column: [row[i] for row in rows] for column, i in place.items() if column not in known}
    return parse_sums({**found, **packets, "rejected": rejected, "sums": sums})


def parse_sums(found: dict[str, Any]) -> Statistics:
    """Check the output of `Statistics.to_dict`; ValueError, KeyError or TypeError where no packets can give it."""

    def integer(value: object, least: int = 0, most: int = MOST_PACKETS) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError("integer")
        return value

    n, k = integer(found["n"], 1, MOST_ROWS), integer(found["k"], 1, N.hi)
    columns = tuple(found["sums"])
    symbols = tuple(str(symbol) for symbol in range(len(columns)))
    if columns != STAIRS_COLUMNS and (columns != symbols or not 2 <= len(columns) <= MOST_SYMBOLS):
        raise ValueError("columns")
    lists = []
    for name in columns:
        most = MOST_PACKETS * {"sum": LIMIT.hi, "sum_of_squares": LIMIT.hi**2}.get(name, 1)
        lists.append([integer(value, -most if name == "sum" else 0, most) for value in found["sums"][name]])
    if {len(values) for values in lists} != {n}:
        raise ValueError("features")
    rejected = {reason: integer(found["rejected"][reason]) for reason in REASONS}
    accepted, empty = integer(found["accepted"]), integer(found["empty"])
    identity, epsilon = found["identity"], found["epsilon"]
    named = isinstance(identity, str) and isinstance(epsilon, str) and len(bytes.fromhex(identity)) == 32
    made = Statistics(identity, epsilon, n, k, columns, tuple(zip(*lists, strict=True)), accepted, empty, rejected)
    even = max(made.counts) <= accepted and sum(made.counts) == k * accepted
    if not (named and even and len(epsilon) <= 40 and k <= n):
        raise ValueError("totals")
    return made
