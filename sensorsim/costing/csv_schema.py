"""Read and check CSV tables by a declared schema: readers of columns, rules for rows, rules for the whole table."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from sensorsim._util.files import read_bounded

Number = int | float
Reader = Callable[[str], Any]  # raises ValueError for a cell that is not valid
Lines = list[tuple[int, list[str]]]  # line numbers and cells
MOST_BYTES = 2_000_000  # of a table; the packaged ones have a hundredth of it
LONGEST = 40  # characters of a number
LARGEST = 1_000_000_000  # number in a table: a larger one is a mistaken unit
REQUIRED = object()
STATUSES = ("confirmed", "disputed", "estimate")
PLAIN = re.compile(r"\d*\.?\d+|\d+/0*[1-9]\d*", re.ASCII)


class UnreadableTableError(ValueError):
    """Report the file and line that is not CSV, and why."""


class Span(NamedTuple):
    """Hold a quantity that depends on the operands or on the neighbouring instructions."""

    min: Number
    typical: Number
    max: Number


class Column(NamedTuple):
    """Declare a column: how its cells are read, and the value of an empty cell if it may be empty."""

    name: str
    read: Reader = str
    empty: Any = REQUIRED


class Table(NamedTuple):
    """Hold what was read of a table: its `# key: value` lines, rows of valid cells by line, and the other lines."""

    path: Path
    header: dict[str, str]
    rows: dict[int, dict[str, Any]]
    faults: list[tuple[int, str]]


class Schema(NamedTuple):
    """Declare a table: its columns, row rules, the columns that identify a row, its `# key:` lines, table rules."""

    title: str
    columns: tuple[Column, ...]
    rules: Callable[[Path, dict[str, Any]], Iterator[str]]
    key: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()  # empty: the header lines are comments
    table_rules: Callable[[Table], Iterable[tuple[int, str]]] = lambda table: ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the column names."""
        return tuple(column.name for column in self.columns)

    def read(self, path: Path, sound: bool = False) -> Table:
        """Read the cells of a table; UnreadableTableError for other columns, and if `sound` for any fault of a cell."""
        header, columns, lines = read_cells(path)
        if tuple(columns) != self.names:
            wrong = [f"missing column {name}" for name in self.names if name not in columns]
            wrong += [f"unknown column {name!r}" for name in columns if name not in self.names]
            what = "; ".join(wrong) or f"columns in another order than {self.names}"
            raise UnreadableTableError(f"{path.name}:{len(header) + 1}: {what}")
        table = Table(path, header, {}, [] if lines else [(len(header) + 1, "no rows")])
        for line, cells in lines:
            row, faults = self._parse(cells)
            table.faults.extend((line, fault) for fault in faults)
            if not faults:
                table.rows[line] = row
        if sound and lines and table.faults:
            raise UnreadableTableError(table.faults[0][1])
        return table

    def load(self, path: Path) -> list[list[Any]]:
        """Return the values of every row; UnreadableTableError for the first cell that is not valid."""
        return [list(row.values()) for row in self.read(path, sound=True).rows.values()]

    def faults(self, path: Path) -> list[str]:
        """Return every fault of a table as `file:line: what`, in the order of the lines."""
        table = self.read(path)
        header, found = table.header, table.faults
        if self.headers:
            found += [] if header.get("title") else [(1, "no title; the first line is `# title: …`")]
            found += [(1, f"unknown header {key!r}") for key in header if key not in self.headers]
        seen: dict[tuple[Any, ...], int] = {}
        for line, row in table.rows.items():
            if row["status"] != "confirmed" and not row["note"]:
                found.append((line, f"status {row['status']} without a note that says why"))
            if row["status"] == "confirmed" and row.get("status_of"):
                found.append((line, f"status_of {row['status_of']!r} with status 'confirmed'"))
            found += [(line, what) for what in self.rules(path, row)]
            key = tuple(row[name] for name in self.key)
            if key and seen.setdefault(key, line) != line:
                found.append((line, f"a second row for {' of '.join(map(str, key))}; the first is line {seen[key]}"))
        found += self.table_rules(table)
        return [f"{path.name}:{line}: {what}" for line, what in sorted(found, key=lambda fault: fault[0])]

    def _parse(self, cells: list[str]) -> tuple[dict[str, Any], list[str]]:
        """Return the values of a row by column, and the faults of its cells."""
        if len(cells) != len(self.columns):
            return {}, [f"{len(cells)} cells, not {len(self.columns)}"]
        row: dict[str, Any] = {}
        faults = []
        for (name, read, empty), cell in zip(self.columns, cells, strict=True):
            try:
                row[name] = read(cell) if cell else empty
            except ValueError as error:
                faults.append(f"{name}: {error}")
        return row, faults + [f"empty {name}" for name, value in row.items() if value is REQUIRED]


def columns_for(row: type, prefix: str = "", optional: bool = False, **special: Column) -> tuple[Column, ...]:
    """Return a column for each field of a row's class, numbers or text, unless given by name."""
    columns = []
    for name, kind in row.__annotations__.items():
        plain = Column(prefix + name, str, "") if kind is str else Column(prefix + name, number, None)
        columns.append(special.get(name) or (plain if optional else plain._replace(empty=REQUIRED)))
    return tuple(columns)


def read_cells(path: Path) -> tuple[dict[str, str], list[str], Lines]:
    """Return a table's `# key: value` lines, its column names and its rows with their line numbers."""
    try:
        lines = read_bounded(path, MOST_BYTES).decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise UnreadableTableError(f"{path.name}:1: cannot be read: it is not UTF-8 text") from None
    header: dict[str, str] = {}
    for place, line in enumerate(takewhile(lambda line: line.startswith("#"), lines), 1):
        key, _, value = line.lstrip("# ").partition(":")
        header[key.strip()] = value.strip()
        if len(header) < place:
            raise UnreadableTableError(f"{path.name}:{place}: a second line `# {key.strip()[:LONGEST]}`; keep one")
    reader = csv.reader(lines[len(header) :])
    try:
        columns = next(reader, [])
        return header, columns, [(reader.line_num + len(header), cells) for cells in reader]
    except csv.Error as error:
        raise UnreadableTableError(f"{path.name}:{reader.line_num + len(header)}: not CSV ({error})") from None


@lru_cache(1000)  # a table repeats its cells
def number(text: str) -> Number:
    """Parse a whole number, a decimal or a fraction like 1/3; a whole number stays int, so that 364 prints as 364."""
    if len(text) > LONGEST:
        raise ValueError(f"'{text[:LONGEST]}…' has more than {LONGEST} characters")
    if not PLAIN.fullmatch(text):
        raise ValueError(f"{text!r} is not a number; write it like 4, 0.5 or 1/3")
    above, _, below = text.partition("/")
    value = int(text) if text.isdecimal() else float(above) / int(below or 1)
    if value > LARGEST:
        raise ValueError(f"{text} is larger than {LARGEST}")
    return value


def whole(least: int) -> Reader:
    """Return a reader of whole numbers from `least` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or number(text) < least:
            raise ValueError(f"{text!r} is not a whole number from {least} on")
        return int(text)

    return read


@lru_cache(1000)
def span(text: str) -> Span:
    """Parse `4`, `11..25` (typical is the upper end) or `11..20..25`."""
    ends = [number(part) for part in text.split("..")]
    if len(ends) > 3 or ends != sorted(ends):
        raise ValueError(f"{text} does not ascend as min..typical..max")
    return Span(ends[0], ends[-2] if len(ends) == 3 else ends[-1], ends[-1])


def one_of(*known: str) -> Reader:
    """Return a reader of one of these words."""

    def read(text: str) -> str:
        if text not in known:
            raise ValueError(f"{text!r} is not one of {', '.join(known)}")
        return text

    return read


def parts_of(*known: str) -> Reader:
    """Return a reader of these words, joined by `/`."""
    read = one_of(*known)
    return lru_cache(1000)(lambda text: tuple(map(read, text.split("/"))))


STATUS, NOTE = Column("status", one_of(*STATUSES)), Column("note", str, "")
