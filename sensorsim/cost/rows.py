"""A row of a processor table and how its cells are read. The columns are explained in tables/cpu/README.md."""

import csv
import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from sensorsim._util.files import read_bounded

Number = int | float
MOST_BYTES = 2_000_000  # of a table; ours have a hundredth of it
LONGEST = 40  # letters of a number
LARGEST = 1_000_000_000  # number in a table: above it somebody has mistaken a unit

COLUMNS = (
    "operation",
    "operands",
    "class",
    "width",
    "signedness",
    "unit",
    "min",
    "typical",
    "max",
    "per_register",
    "latency_cycles",
    "reciprocal_throughput_cycles",
    "source",
    "status",
    "status_of",
    "note",
)
INTEGER_CLASSES = (
    *("ADD", "SUB", "MUL", "DIV", "AND", "OR", "XOR", "NOT", "SHIFT", "ROTATE"),
    *("LOAD", "STORE", "COMPARE", "SELECT", "BRANCH"),
    "INDEX",  # address and loop arithmetic
)
FLOAT_CLASSES = ("FADD", "FSUB", "FMUL", "FDIV", "FSQRT")
CLASSES = INTEGER_CLASSES + FLOAT_CLASSES
WIDTHS = ("8", "16", "32", "64", "80", "f32", "any")
SIGNEDNESS = ("any", "signed", "unsigned")
UNITS = ("macro-ops", "cycles")
STATUSES = ("confirmed", "disputed", "estimate")
QUANTITIES = ("native", "latency", "throughput")  # what a status may speak of


# `# checked: AGAINST; 36 kernels, largest error 0.7 % (crc32), mean error 0.1 %`
_CHECKED = (
    r"(?P<against>.+); (?P<kernels>[1-9]\d*) kernels?, "
    r"largest error (?P<largest>\d+(\.\d+)?) %( \((?P<worst>[^()]+)\))?, mean error (?P<mean>\d+(\.\d+)?) %"
)
NEVER = "never"


class Checked(NamedTuple):
    """What a table's `checked` line says: machine code priced by the table, beside the same code on something exact.

    An error is of one kernel: the cycles that the table says, less those that were measured, in per cent of the latter;
    here without its sign. `worst` is the kernel of the largest one. Figures stay text, as they are printed.
    """

    against: str  # the simulator or chip, its configuration, and the compiler
    kernels: int
    largest: str
    worst: str
    mean: str


class Span(NamedTuple):
    """A quantity that depends on the operands or on what stands around the instruction."""

    min: Number
    typical: Number
    max: Number


class Row(NamedTuple):  # not a dataclass: those take milliseconds to build at import
    """One row; the names are the columns'. Where a column is a list in the file, it is a tuple here."""

    path: Path
    line: int
    operation: str
    operands: tuple[str, ...]
    classes: tuple[str, ...]
    widths: tuple[str, ...]
    signedness: str
    unit: str
    min: Number
    typical: Number
    max: Number
    per_register: Number
    latency_cycles: Span | None
    reciprocal_throughput_cycles: Span | None
    source: str
    status: str
    status_of: str
    note: str

    def flag(self, metric: str) -> str:
        """What a reader must be told about the quantity used: "" or "disputed" or "estimate"."""
        speaks_of_it = self.status_of in ("", metric)
        return self.status if speaks_of_it and self.status != "confirmed" else ""

    def cost(self, registers: int = 0) -> Span:
        """The native cost of the instruction; `registers` is the length of its register list, if it has one."""
        extra = self.per_register * registers
        return Span(self.min + extra, self.typical + extra, self.max + extra)


class UnreadableTableError(ValueError):
    """Say which line of a file makes it no table, and why."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line, self.what = line, what


def read_cells(path: Path) -> tuple[dict[str, str], list[str], list[tuple[int, list[str]]]]:
    """A table file as text: what its `# key: value` lines say, its column names, its lines with their numbers.

    UnreadableTableError where it is no such text.
    """
    try:
        lines = read_bounded(path, MOST_BYTES).decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise UnreadableTableError(1, "cannot be read: it is not UTF-8 text") from None
    header: dict[str, str] = {}
    for number, line in enumerate(takewhile(lambda line: line.startswith("#"), lines), 1):
        key, _, value = line.lstrip("# ").partition(":")
        header[key.strip()] = value.strip()
        if len(header) < number:
            raise UnreadableTableError(number, f"a second line `# {key.strip()[:LONGEST]}`; keep one of them")
    reader = csv.reader(lines[len(header) :])
    try:
        columns = next(reader, [])
        return header, columns, [(reader.line_num + len(header), cells) for cells in reader]
    except csv.Error as error:  # a cell that is too long, say
        raise UnreadableTableError(reader.line_num + len(header), f"not CSV ({error})") from None


def read_checked(text: str) -> Checked | None:
    """A `checked` line; None for a table that never was, whether it says so or nothing; ValueError for another form."""
    if text in ("", NEVER):
        return None
    match = re.fullmatch(_CHECKED, text)
    if match is None:
        raise ValueError(f"{text!r} is neither {NEVER!r} nor `AGAINST; K kernels, largest error X %, mean error Y %`")
    if float(match["mean"]) > float(match["largest"]):
        raise ValueError(f"mean error {match['mean']} % above the largest, {match['largest']} %")
    return Checked(match["against"], int(match["kernels"]), match["largest"], match["worst"] or "", match["mean"])


def read_configuration(header: Mapping[str, str]) -> str:
    """A `configuration` line: short plain text; nothing for a core without a choice; ValueError for another form."""
    text = header.get("configuration", "")
    if "configuration" in header and (not text or len(text) > 120 or text[-1] in ".;"):
        raise ValueError(f"{text!r} is not a few words such as `single-cycle multiplier`, without a stop behind them")
    return text


def parse(path: Path, line: int, cells: Mapping[str, str]) -> Row:
    """One row from its cells; ValueError for a cell that is no number. `tablecheck` finds every other fault."""
    return Row(
        path=path,
        line=line,
        operation=cells["operation"],
        operands=tuple(cells["operands"].split("|")),
        classes=tuple(filter(None, cells["class"].split("/"))),
        widths=tuple(cells["width"].split("/")),
        signedness=cells["signedness"],
        unit=cells["unit"],
        min=number(cells["min"]),
        typical=number(cells["typical"]),
        max=number(cells["max"]),
        per_register=number(cells["per_register"] or "0"),
        latency_cycles=span(cells["latency_cycles"]),
        reciprocal_throughput_cycles=span(cells["reciprocal_throughput_cycles"]),
        source=cells["source"],
        status=cells["status"],
        status_of=cells["status_of"],
        note=cells["note"],
    )


def number(text: str) -> Number:
    """A whole number, a decimal or a fraction like 1/3. Whole numbers stay int, so that a total prints as 364."""
    above, slash, below = text.partition("/")
    digits = above.replace(".", "", 1) if not text.isdecimal() else above
    if len(text) > LONGEST or not (digits.isdecimal() and (not slash or below.strip("0").isdecimal())):
        raise ValueError(_no_number(text))
    value = int(text) if text.isdecimal() else int(above) / int(below) if slash else float(above)
    if value > LARGEST:
        raise ValueError(f"{text} is larger than {LARGEST}")
    return value


def _no_number(text: str) -> str:
    """Return why a cell is not taken."""
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


def span(text: str) -> Span | None:
    """`4`, `11..25` (typical is the upper end, as everywhere) or `11..20..25`; None for an empty cell."""
    if not text:
        return None
    ends = [number(part) for part in text.split("..")]
    if len(ends) > 3:
        raise ValueError(f"{text!r} is not min..typical..max")
    return Span(ends[0], ends[-2] if len(ends) == 3 else ends[-1], ends[-1])


def keys(row: Row) -> Iterator[tuple[str, str, str]]:
    """Every (class, width, signedness) that the row prices. INDEX has no width: addresses do not shrink with data."""
    signs = ("signed", "unsigned") if row.signedness == "any" else (row.signedness,)
    for cls in row.classes:
        for width in ("any",) if cls == "INDEX" else row.widths:
            for sign in signs:
                yield cls, width, sign
