"""Load processor tables (tables/cpu/*.csv) and look up the price of an operation or an instruction.

>>> load_cpu("k7").price("DIV", 16, signed=False, metric="native").typical
47
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.costing.csv_schema import (
    NOTE,
    STATUS,
    Column,
    Number,
    Schema,
    Span,
    Table,
    UnreadableTableError,
    number,
    one_of,
    parts_of,
    read_cells,
    span,
)
from sensorsim.tables import folder

DEEPEST = 5  # tables that build on each other
INTEGER_CLASSES = (
    *("ADD", "SUB", "MUL", "DIV", "AND", "OR", "XOR", "NOT", "SHIFT", "ROTATE"),
    *("LOAD", "STORE", "COMPARE", "SELECT", "BRANCH"),
    "INDEX",  # address and loop arithmetic
)
FLOAT_CLASSES = ("FADD", "FSUB", "FMUL", "FDIV", "FSQRT")
CLASSES = INTEGER_CLASSES + FLOAT_CLASSES
WIDTHS = ("8", "16", "32", "64", "80", "f32", "any")
UNITS = ("macro-ops", "cycles")
BASES = ("extends", "alters")  # headers that name another table, whose rows count too
# The conditions that a row named `Jcc`, `Bcc`, … stands for: those of x86, Arm and AVR.
_CONDITIONS = (
    "O NO B C NAE AE NB NC E Z NE NZ BE NA A NBE S NS P PE NP PO L NGE GE NL LE NG G NLE EQ CS HS CC LO MI PL VS VC HI "
    "LS LT GT SH HC TS TC ID IE"
)
CONDITIONS = _CONDITIONS.split()
# `# checked: AGAINST; 36 kernels, largest error 0.7 % (crc32), mean error 0.1 %`
_CHECKED = (
    r"(?P<against>.+); (?P<kernels>[1-9]\d*) kernels?, "
    r"largest error (?P<largest>\d+(\.\d+)?) %( \((?P<worst>[^()]+)\))?, mean error (?P<mean>\d+(\.\d+)?) %"
)


class Checked(NamedTuple):
    """Say how well a table predicts the cycles of machine code that ran on a simulator or a chip.

    An error is the relative difference in per cent, without its sign. Figures stay text, as they are printed.
    """

    against: str  # the simulator or chip, its configuration, and the compiler
    kernels: int
    largest: str
    worst: str  # the kernel with the largest error
    mean: str


class Row(NamedTuple):  # not a dataclass: those take milliseconds to build at import
    """Hold one row of a processor table: its place, then a field for each column."""

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
        """Return "disputed" or "estimate" where the status is about this quantity, else ""."""
        return self.status if self.status_of in ("", metric) and self.status != "confirmed" else ""

    def cost(self, registers: int = 0) -> Span:
        """Return the native cost; `registers` is the length of the instruction's register list, if it has one."""
        extra = self.per_register * registers
        return Span(self.min + extra, self.typical + extra, self.max + extra)

    def priced_keys(self) -> Iterator[tuple[str, str, str]]:
        """Yield every (class, width, signedness) that the row prices; INDEX has no width, as addresses have one."""
        signs = ("signed", "unsigned") if self.signedness == "any" else (self.signedness,)
        for cls in self.classes:
            for width in ("any",) if cls == "INDEX" else self.widths:
                for sign in signs:
                    yield cls, width, sign


class Price(NamedTuple):
    """Hold the price of one operation in `unit`, and the row that it is from."""

    min: Number
    typical: Number
    max: Number
    unit: str
    row: Row


@dataclass(frozen=True)
class Cpu:
    """Hold a processor's table. `unit` is the table's own: macro-ops or cycles."""

    name: str
    title: str
    unit: str
    rows: tuple[Row, ...]
    path: Path
    checked: Checked | None = None  # None: never compared with something exact
    configuration: str = ""  # the variant of the core that the prices are for

    def price(self, cls: str, width: int | str, signed: bool, metric: str) -> Price:
        """Return the price of one operation of class `cls` on operands of `width` bits ("f32": a 32-bit float).

        `metric` is `native` for the unit of the table, or `latency`.
        """
        sign = "signed" if signed else "unsigned"
        row = self._by_class.get((cls, str(width), sign)) or self._by_class.get((cls, "any", sign))
        if row is None:
            widths = sorted({w for c, w, s in self._by_class if (c, s) == (cls, sign)})
            has = f" (it has {', '.join(widths)})" if widths else ""
            raise InputError(f"{self.path.name} has no price for {cls}, width {width}{has}, {sign}; add a row.")
        if metric == "native":
            return Price(row.min, row.typical, row.max, row.unit, row)
        if row.latency_cycles is None:
            hint = "; its cycles are its native unit" if self.unit == "cycles" else ""
            raise InputError(f"{row.path.name} has no latency for {cls} at width {width} (line {row.line}){hint}.")
        return Price(*row.latency_cycles, "cycles", row)

    def instruction(self, mnemonic: str, operands: str, width: int | str) -> Row:
        """Return the row of a machine instruction, as `instruction("MOV", "r,m", 32)`; conditions as in `JNE`."""
        named = self._by_mnemonic.get(mnemonic.upper()) or self._family(mnemonic.upper())
        matching = [row for row in named if operands in row.operands] or [row for row in named if "any" in row.operands]
        for row in matching:
            if str(width) in row.widths or "any" in row.widths:
                return row
        what = f"{mnemonic} {operands} at {width} bit" if named else mnemonic
        raise InputError(f"{self.path.name} has no row for the instruction {what}; add one with its source.")

    @cached_property
    def _by_class(self) -> dict[tuple[str, str, str], Row]:
        return {key: row for row in self.rows for key in row.priced_keys()}

    @cached_property
    def _by_mnemonic(self) -> dict[str, list[Row]]:
        named: dict[str, list[Row]] = {}
        for row in self.rows:
            named.setdefault(row.operation if row.operation.endswith("cc") else row.operation.upper(), []).append(row)
        return named

    def _family(self, name: str) -> list[Row]:
        """Return the rows of `Jcc` for JNE: a stem in the table followed by a condition."""
        for stem, rows in self._by_mnemonic.items():
            if stem.endswith("cc") and name.startswith(stem[:-2]) and name[len(stem) - 2 :] in CONDITIONS:
                return rows
        return []


def cpu_folder() -> Path:
    """Return the folder of the packaged processor tables."""
    return Path(folder(), "cpu")


def cpu_names() -> list[str]:
    """List the packaged processors in alphabetical order."""
    return sorted(path.stem for path in cpu_folder().glob("*.csv"))


def load_cpu(name: str) -> Cpu:
    """Load a packaged processor by its name, or your own by its file name."""
    if is_own(name):
        return read_cpu(check_own_table(name, CPU_SCHEMA, Path(name).stem in cpu_names()))
    if name.lower() not in cpu_names():
        raise InputError(unknown_name("processor", name, cpu_names()))
    return read_cpu(cpu_folder() / f"{name.lower()}.csv")


def read_cpu(path: Path) -> Cpu:
    """Read a table file. `# extends: other` adds its rows to those of another table.

    `# alters: other` does so too, and replaces rows of that table for the same instructions.
    """
    try:
        table = CPU_SCHEMA.read(path, sound=True)
        checked = parse_checked(table.header.get("checked", ""))
    except ValueError as error:
        raise InputError(f"{path.name} cannot be read ({error}); run `sensorsim cpus check` for the line.") from None
    header, own, base = table.header, _rows_of(table), base_file(path, table.header)
    rows = _beside_own(read_cpu(base).rows if base else (), own, header) + own
    unit = rows[0].unit if rows else ""
    return Cpu(path.stem, header.get("title", path.stem), unit, rows, path, checked, header.get("configuration", ""))


def _rows_of(table: Table) -> tuple[Row, ...]:
    return tuple(Row(table.path, line, *row.values()) for line, row in table.rows.items())


def _beside_own(base: tuple[Row, ...], own: tuple[Row, ...], header: dict[str, str]) -> tuple[Row, ...]:
    """Return the rows of `base` that a table with `own` rows has too: all, or those whose instructions it leaves."""
    forms = {(row.operation, form) for row in own for form in row.operands} if "alters" in header else set()
    return tuple(row for row in base if not any((row.operation, form) in forms for form in row.operands))


def base_file(path: Path, header: dict[str, str]) -> Path | None:
    """Return the table that `path` extends or alters: beside it or packaged; None where there is none."""
    base = header.get("extends") or header.get("alters") or ""
    if not re.fullmatch(r"[\w-]{1,60}", base) or base == path.stem:
        return None
    found = (path.with_name(f"{base}.csv"), cpu_folder() / f"{base}.csv")
    return next((place for place in found if place.is_file()), None)


def parse_checked(text: str) -> Checked | None:
    """Parse a `checked` line; None for a table that was never compared; ValueError for another form."""
    if text in ("", "never"):
        return None
    match = re.fullmatch(_CHECKED, text)
    if match is None:
        raise ValueError(f"{text!r} is neither 'never' nor `AGAINST; K kernels, largest error X %, mean error Y %`")
    return Checked(match["against"], int(match["kernels"]), match["largest"], match["worst"] or "", match["mean"])


# ── checks ──


def _check_row(path: Path, row: dict[str, Any]) -> Iterator[str]:
    low, typical, high = row["min"], row["typical"], row["max"]
    if not low <= typical <= high:
        yield f"min {low}, typical {typical}, max {high} do not ascend"
    if high == 0:
        yield "a cost of zero"
    if row["class"] not in ((), ("BRANCH",)) and row["width"] == ("any",):
        yield "a row that prices a class names its widths; only BRANCH may have any"


def base_chain(path: Path) -> tuple[list[Path], str]:
    """Return the tables that this one builds on, the nearest first, and what is wrong with the chain, or ""."""
    found: list[Path] = []
    place = path
    while True:
        try:
            base = base_file(place, CPU_SCHEMA.read(place).header)
        except (OSError, UnreadableTableError) as error:
            return found[:-1], f"builds on {place.stem}, which cannot be read ({error})"
        if base is None:
            return found, ""
        if base in (path, *found):
            return found, f"builds on {base.stem}, which builds on itself"
        if len(found) == DEEPEST:
            return found, f"builds on more than {DEEPEST} tables, one upon the other"
        found.append(base)
        place = base


def _check_table(table: Table) -> Iterator[tuple[int, str]]:
    """Yield the faults of the header, what is priced twice here or in the table built on, and units that differ."""
    path, header = table.path, table.header
    named = [how for how in BASES if how in header]
    if named and base_file(path, header) is None:
        yield 1, f"{named[0]} {header[named[0]][:60]}, which is no table beside it, nor one of ours"
    bases, wrong = base_chain(path)
    if wrong:
        yield 1, wrong
    if len(named) > 1:
        yield 1, "extends one table and alters another; a table does one of them"
    try:
        parse_checked(header.get("checked", ""))
    except ValueError as error:
        yield 1, f"checked: {error}"
    own, others = _rows_of(table), _rows_of(CPU_SCHEMA.read(bases[0])) if bases else ()
    first: dict[tuple[str, ...], Row] = {}
    rows = (*_beside_own(others, own, header), *own)
    for row in rows:
        line = row.line if row.path == path else 0
        if row.unit != rows[0].unit:
            yield line, f"unit {row.unit}, where other rows of the table have another"
        keys = [("a second row for class", *key) for key in row.priced_keys()]
        keys += [("duplicate of", row.operation, form, width) for form in row.operands for width in row.widths]
        for key in keys:
            other = first.setdefault(key, row)
            if other is not row:
                place = f"line {other.line}" if other.path == path else other.path.name
                yield line, f"{' '.join(filter(None, key))}; the first is {place}"


CPU_SCHEMA = Schema(
    "processor",
    (
        Column("operation"),
        Column("operands", lambda text: tuple(text.split("|")), ("",)),
        Column("class", parts_of(*CLASSES), ()),
        Column("width", parts_of(*WIDTHS)),
        Column("signedness", one_of("any", "signed", "unsigned")),
        Column("unit", one_of(*UNITS)),
        *(Column(name, number) for name in ("min", "typical", "max")),
        Column("per_register", number, 0),
        Column("latency_cycles", span, None),
        Column("reciprocal_throughput_cycles", span, None),
        Column("source"),
        STATUS,
        Column("status_of", one_of("native", "latency", "throughput"), ""),
        NOTE,
    ),
    _check_row,
    headers=("title", "checked", "configuration", *BASES),
    table_rules=_check_table,
)


# ── your own tables ──


def is_own(name: str) -> bool:
    """Return whether a name is that of your own file, as `--cpu my-core.csv`, and not of a packaged table."""
    return name.lower().endswith(".csv")


def check_own_table(name: str, schema: Schema, taken: bool = False) -> Path:
    """Return the path of your own table; InputError with the first fault of it or of those that it builds on."""
    path = Path(name)
    try:
        header, columns, _ = read_cells(path)
        if columns[:1] != [schema.names[0]]:
            what = f"no table of a {schema.title}, whose first column is {schema.names[0]}"
            faults = [f"{path.name}:{len(header) + 1}: {what}"]
        elif taken:
            faults = [f"{path.name}:1: there is one of ours with this name; give it another"]
        else:
            bases = base_chain(path)[0] if schema is CPU_SCHEMA else []
            own = [path, *(base for base in bases if base.parent != cpu_folder())]
            faults = [fault for table in own for fault in schema.faults(table)]
    except UnreadableTableError as error:
        faults = [str(error)]
    except OSError as error:
        why = error.strerror or "no such file"
        raise InputError(f"cannot read {name}: {why}; give a table of a {schema.title}.") from None
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        hint = "`sensorsim cpus check FILE` lists all, tables/cpu/README.md has the columns."
        raise InputError(f"{faults[0]}{more}; {hint}")
    return path


def unknown_name(what: str, name: str, known: list[str]) -> str:
    """Return the message for a name that is not known, with the nearest known one or your own file as a hint."""
    is_file = re.fullmatch(r"[\w-]{1,60}", name) and Path(f"{name}.csv").is_file()
    hint = f" (did you mean {name}.csv?)" if is_file else did_you_mean(name, known)
    return f"{what} {name!r} is not known{hint}; there are {', '.join(known)}."
