"""Read CSV tables and check them against a declared schema: each column has a reader, each schema its row rules."""

import csv
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import takewhile
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from sensorsim._util.files import read_bounded

Number = int | float
Reader = Callable[[str], Any]  # raises ValueError for a cell that is not valid
MOST_BYTES = 2_000_000  # of a table; the packaged ones have a hundredth of it
LONGEST = 40  # characters of a number
LARGEST = 1_000_000_000  # number in a table: a larger one is a mistaken unit
REQUIRED = object()
STATUSES = ("confirmed", "disputed", "estimate")


class UnreadableTableError(ValueError):
    """Report the line of a file that makes it no table, and why."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line, self.what = line, what


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

    def value(self, cell: str) -> Any:
        """Return the cell's value; ValueError for a required cell that is empty or one that is not valid."""
        if cell:
            return self.read(cell)
        if self.empty is REQUIRED:
            raise ValueError("empty")
        return self.empty


class Schema(NamedTuple):
    """Declare a table: its columns, the columns that identify a row, its `# key:` lines and rules for whole rows."""

    title: str
    columns: tuple[Column, ...]
    rules: Callable[[Path, dict[str, Any]], Iterator[str]]
    key: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()  # empty: the header lines are comments

    @property
    def names(self) -> tuple[str, ...]:
        """Return the column names."""
        return tuple(column.name for column in self.columns)

    def values(self, cells: list[str]) -> list[Any]:
        """Return the values of a row in the order of the columns; ValueError for the first cell that is not valid."""
        pairs = zip(self.columns, cells, strict=True)
        return [column.read(cell) if cell else column.value(cell) for column, cell in pairs]

    def row(self, path: Path, cells: list[str]) -> tuple[dict[str, Any], list[str]]:
        """Return the values of a row by column, and its faults; the rules apply only to rows of valid cells."""
        if len(cells) != len(self.columns):
            return {}, [f"{len(cells)} cells, not {len(self.columns)}"]
        row: dict[str, Any] = {}
        faults = []
        for column, cell in zip(self.columns, cells, strict=True):
            try:
                row[column.name] = column.value(cell)
            except ValueError as error:
                faults.append(f"{column.name}: {error}" if cell else f"empty {column.name}")
        return row, faults or [*_status_faults(row), *self.rules(path, row)]


def columns_for(row: type, **special: Column) -> tuple[Column, ...]:
    """Return a column for each field of a row's class: numbers, or non-empty text, unless given by name."""
    kinds = row.__annotations__.items()
    return tuple(special.get(name) or Column(name, str if kind is str else number) for name, kind in kinds)


def _status_faults(row: dict[str, Any]) -> Iterator[str]:
    """Yield the faults of a status that every table has: what is not confirmed needs a note."""
    if row["status"] != "confirmed" and not row["note"]:
        yield f"status {row['status']} without a note that says why"
    if row["status"] == "confirmed" and row.get("status_of"):
        yield f"status_of {row['status_of']!r} with status 'confirmed'"


def read_cells(path: Path) -> tuple[dict[str, str], list[str], list[tuple[int, list[str]]]]:
    """Return a table's `# key: value` lines, its column names and its rows with their line numbers."""
    try:
        lines = read_bounded(path, MOST_BYTES).decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise UnreadableTableError(1, "cannot be read: it is not UTF-8 text") from None
    header: dict[str, str] = {}
    for place, line in enumerate(takewhile(lambda line: line.startswith("#"), lines), 1):
        key, _, value = line.lstrip("# ").partition(":")
        header[key.strip()] = value.strip()
        if len(header) < place:
            raise UnreadableTableError(place, f"a second line `# {key.strip()[:LONGEST]}`; keep one of them")
    reader = csv.reader(lines[len(header) :])
    try:
        columns = next(reader, [])
        return header, columns, [(reader.line_num + len(header), cells) for cells in reader]
    except csv.Error as error:
        raise UnreadableTableError(reader.line_num + len(header), f"not CSV ({error})") from None


@lru_cache(1000)  # a table repeats its cells
def number(text: str) -> Number:
    """Parse a whole number, a decimal or a fraction like 1/3; a whole number stays int, so that 364 prints as 364."""
    above, slash, below = text.partition("/")
    digits = above.replace(".", "", 1) if not text.isdecimal() else above
    if len(text) > LONGEST or not (digits.isdecimal() and (not slash or below.strip("0").isdecimal())):
        raise ValueError(_number_fault(text))
    value = int(text) if text.isdecimal() else int(above) / int(below) if slash else float(above)
    if value > LARGEST:
        raise ValueError(f"{text} is larger than {LARGEST}")
    return value


def _number_fault(text: str) -> str:
    shown = repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")
    try:
        value = float(text)
    except ValueError:
        return f"{shown} is not a number"
    if not isfinite(value) and len(text) <= LONGEST:
        return f"{shown} is not a number"
    if value < 0:
        return f"{shown} is below 0; give 0 or more"
    many = f"has more than {LONGEST} characters" if len(text) > LONGEST else "is not written plainly"
    return f"{shown} {many}; write it like 4, 0.5 or 1/3"


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
    if len(ends) > 3:
        raise ValueError(f"{text!r} is not min..typical..max")
    if ends != sorted(ends):
        raise ValueError(f"{text} does not ascend")
    return Span(ends[0], ends[-2] if len(ends) == 3 else ends[-1], ends[-1])


def one_of(*known: str) -> Reader:
    """Return a reader of one of these words."""

    @lru_cache(100)
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
