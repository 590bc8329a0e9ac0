"""What an operation costs: the processor tables (tables/cpu/*.csv) and the chips' energy (tables/energy.csv).

>>> load_cpu("k7").price("DIV", 16, signed=False, metric="native").typical
47
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from sensorsim._util.hints import did_you_mean
from sensorsim.cost.chip_parts import STORE_COLUMNS, TRNG_COLUMNS
from sensorsim.cost.rows import (
    CLASSES,
    COLUMNS,
    Checked,
    Number,
    Row,
    Span,
    keys,
    number,
    parse,
    read_cells,
    read_checked,
    read_configuration,
)
from sensorsim.errors import InputError
from sensorsim.tables import folder

SHOWN = 60  # letters of a path in a sentence
METRICS = ("native", "latency")  # native: the unit of the processor's table

# The conditions that a row named `Jcc`, `Bcc`, … stands for: those of x86, Arm and AVR.
CONDITIONS = {
    *("O", "NO", "B", "C", "NAE", "AE", "NB", "NC", "E", "Z", "NE", "NZ", "BE", "NA", "A", "NBE", "S", "NS", "P", "PE"),
    *("NP", "PO", "L", "NGE", "GE", "NL", "LE", "NG", "G", "NLE", "EQ", "CS", "HS", "CC", "LO", "MI", "PL", "VS"),
    *("VC", "HI", "LS", "LT", "GT", "SH", "HC", "TS", "TC", "ID", "IE"),
}


@dataclass(frozen=True)
class Price:
    """What one operation costs, in `unit`, and the row that says so."""

    min: Number
    typical: Number
    max: Number
    unit: str
    row: Row


@dataclass(frozen=True)
class Cpu:
    """A processor's table. `unit` is the table's own: macro-ops or cycles."""

    name: str
    title: str
    unit: str
    rows: tuple[Row, ...]
    path: Path
    checked: Checked | None = None  # None: never compared with something exact
    configuration: str = ""  # what the prices take for granted of a core that is built in several ways

    def price(self, cls: str, width: int | str, signed: bool, metric: str) -> Price:
        """The price of one operation of class `cls` on operands of `width` bits ("f32" for a 32-bit float)."""
        if metric not in METRICS:
            raise InputError(f"metric {metric!r} is not known; the tables have {' and '.join(METRICS)}.")
        sign = "signed" if signed else "unsigned"
        row = self._by_class.get((cls, str(width), sign)) or self._by_class.get((cls, "any", sign))
        if row is None:
            raise InputError(self._no_price(cls, str(width), sign))
        if metric == "native":
            return Price(row.min, row.typical, row.max, row.unit, row)
        if row.latency_cycles is None:
            hint = "; its cycles are its native unit" if self.unit == "cycles" else ""
            raise InputError(f"{row.path.name} has no latency for {cls} at width {width} (line {row.line}){hint}.")
        return Price(row.latency_cycles.min, row.latency_cycles.typical, row.latency_cycles.max, "cycles", row)

    def instruction(self, mnemonic: str, operands: str, width: int | str) -> Row:
        """The row of a machine instruction, as `instruction("MOV", "r,m", 32)`; conditions as written (`JNE`)."""
        name = mnemonic.upper()
        named = self._by_mnemonic.get(name) or self._family(name)
        if not named:
            raise InputError(f"{self.path.name} has no row for the instruction {mnemonic}; add one with its source.")
        of_form = [row for row in named if operands in row.operands] or [row for row in named if "any" in row.operands]
        if not of_form:
            forms = sorted({form or "no operands" for row in named for form in row.operands})
            raise InputError(f"{self.path.name} has {mnemonic} with {'; '.join(forms)}, not with {operands!r}.")
        for row in of_form:
            if str(width) in row.widths or "any" in row.widths:
                return row
        widths = sorted({width for row in of_form for width in row.widths}, key=_by_size)
        raise InputError(f"{self.path.name} has {mnemonic} {operands} at {', '.join(widths)} bit, not at {width}.")

    @cached_property
    def _by_class(self) -> dict[tuple[str, str, str], Row]:
        return {key: row for row in self.rows for key in keys(row)}

    @cached_property
    def _by_mnemonic(self) -> dict[str, list[Row]]:
        named: dict[str, list[Row]] = {}
        for row in self.rows:
            named.setdefault(row.operation.upper() if not row.operation.endswith("cc") else row.operation, []).append(
                row
            )
        return named

    def _family(self, name: str) -> list[Row]:
        """The rows of `Jcc` for JNE: a stem in the table followed by a condition."""
        for stem, rows in self._by_mnemonic.items():
            if stem.endswith("cc") and name.startswith(stem[:-2]) and name[len(stem) - 2 :] in CONDITIONS:
                return rows
        return []

    def _no_price(self, cls: str, width: str, sign: str) -> str:
        if cls not in CLASSES:
            return f"{cls} is not an operation class; the tables know {', '.join(CLASSES)}."
        widths = sorted({w for c, w, s in self._by_class if c == cls and s == sign}, key=_by_size)
        if not widths:
            return f"{self.path.name} has no row for {cls} (width {width}, {sign}); add one with its source."
        return f"{self.path.name} has {cls} ({sign}) at width {', '.join(widths)}, not {width}; choose one it has."


class Chip(NamedTuple):
    """A chip's energy per cycle, by its maker's supply current. `cpu` is "" where its core has no table here."""

    chip: str
    name: str
    core: str
    cpu: str
    uA_per_MHz: float  # noqa: N815 - the unit's own spelling
    supply_V: float  # noqa: N815
    MHz: float | None
    pJ_per_cycle: float  # noqa: N815
    condition: str
    source: str
    status: str
    note: str


CHIP_COLUMNS = (*Chip._fields, *TRNG_COLUMNS, *STORE_COLUMNS)  # of energy.csv


def cpu_folder() -> Path:
    """Where the processor tables are."""
    return Path(folder(), "cpu")


def energy_file() -> Path:
    """The table of chips."""
    return Path(folder(), "energy.csv")


def cpu_names() -> list[str]:
    """The processors that have a table, in alphabetical order."""
    return sorted(path.stem for path in cpu_folder().glob("*.csv"))


def load_cpu(name: str) -> Cpu:
    """The processor's table, or one of your own by its file; InputError with the known names for an unknown one."""
    if is_own(name):
        return read_cpu(own_table(name, "processor"))
    if name.lower() not in cpu_names():
        raise InputError(_unknown("processor", name, cpu_names()))
    return read_cpu(cpu_folder() / f"{name.lower()}.csv")


def is_own(name: str) -> bool:
    """Whether a name is that of a file, as `--cpu my-core.csv`, and not of a table that comes with the package."""
    return name.lower().endswith(".csv")


def own_table(name: str, what: str) -> Path:
    """The path of a stranger's table without faults; InputError with the first fault of one that has any."""
    from sensorsim.cost.tablecheck import check_own

    path = Path(name)
    shown = name if len(name) <= SHOWN else f"…{name[2 - SHOWN :]}"
    try:
        faults = check_own(path, what)
    except OSError as error:
        why = error.strerror or "no such file"
        raise InputError(
            f"cannot read {shown}: {why}; give a table of a {what}, or a name of `sensorsim cpus`."
        ) from None
    if faults:
        first = faults[0] if len(faults[0]) <= 120 else f"{faults[0][:118]}…"
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise InputError(
            f"{first}{more}; `sensorsim cpus check FILE` lists all faults, tables/cpu/README.md explains the columns."
        )
    return path


def base_name(header: Mapping[str, str]) -> str:
    """Return the name of the table that another with this header extends or alters, or ""."""
    return header.get("extends") or header.get("alters") or ""


def base_file(path: Path, base: str) -> Path | None:
    """The table that another extends or alters: beside it, or one of the package; None where there is none."""
    if not re.fullmatch(r"[\w-]{1,60}", base) or base == path.stem:
        return None
    found = (path.with_name(f"{base}.csv"), cpu_folder() / f"{base}.csv")
    return next((place for place in found if place.is_file()), None)


def read_cpu(path: Path) -> Cpu:
    """A table file; `# extends: other` puts the rows of the table beside it in front of its own.

    `# alters: other` does so too, less those of them that the file itself has a row for.
    """
    header, columns, lines = read_cells(path)
    if tuple(columns) != COLUMNS:
        raise InputError(f"{path.name} does not have the columns of a processor table; run `sensorsim cpus check`.")
    found = base_file(path, base_name(header))
    base = read_cpu(found).rows if found else ()
    try:
        own = tuple(parse(path, line, dict(zip(COLUMNS, cells, strict=True))) for line, cells in lines)
        checked, configuration = read_checked(header.get("checked", "")), read_configuration(header)
    except ValueError as error:
        raise InputError(f"{path.name} cannot be read ({error}); run `sensorsim cpus check` for the line.") from None
    if "alters" in header:
        forms = {(row.operation, form) for row in own for form in row.operands}
        base = tuple(row for row in base if not any((row.operation, form) in forms for form in row.operands))
    rows = base + own
    title, unit = header.get("title", path.stem), rows[0].unit if rows else ""
    return Cpu(path.stem, title, unit, rows, path, checked, configuration)


def load_chips() -> list[Chip]:
    """Every chip of the energy table, in the file's order."""
    with energy_file().open(encoding="utf-8", newline="") as file:
        return [_chip(cells) for cells in csv.DictReader(file)]


def chip_names() -> list[str]:
    """The chips whose energy per cycle is known."""
    return [chip.chip for chip in load_chips()]


def load_chip(name: str) -> Chip:
    """The chip of that name, or of a file of your own; InputError with the known names for an unknown one."""
    if is_own(name):
        return _own_chip(own_table(name, "chip"))
    for chip in load_chips():
        if chip.chip == name.lower():
            return chip
    raise InputError(_unknown("chip", name, chip_names()))


def load_priced_chip(name: str) -> Chip:
    """The same; InputError for one whose core has no table, as its cycles are not known."""
    chip = load_chip(name)
    if not chip.cpu:
        mend = "name one in its column cpu, or choose another" if is_own(name) else "choose another"
        raise InputError(f"{chip.name} has a {chip.core}, whose cycles are in no table here; {mend}.")
    return chip


def _own_chip(path: Path) -> Chip:
    """The one chip of a file; its core is one of ours, or a table beside it."""
    _, columns, lines = read_cells(path)
    chip = _chip(dict(zip(columns, lines[0][1], strict=True)))
    beside = path.with_name(f"{chip.cpu}.csv")
    own_core = chip.cpu and chip.cpu not in cpu_names()
    return chip._replace(cpu=str(beside)) if own_core else chip


def _chip(cells: dict[str, str]) -> Chip:
    return Chip(
        chip=cells["chip"],
        name=cells["name"],
        core=cells["core"],
        cpu=cells["cpu"],
        uA_per_MHz=number(cells["uA_per_MHz"]),
        supply_V=number(cells["supply_V"]),
        MHz=number(cells["MHz"]) if cells["MHz"] else None,
        pJ_per_cycle=number(cells["pJ_per_cycle"]),
        condition=cells["condition"],
        source=cells["source"],
        status=cells["status"],
        note=cells["note"],
    )


def _unknown(what: str, name: str, known: list[str]) -> str:
    hint = f" (did you mean {name}.csv?)" if _is_file(f"{name}.csv") else did_you_mean(name, known)
    return f"{what} {name!r} is not known{hint}; there are {', '.join(known)}."


def _is_file(name: str) -> bool:
    try:
        return len(name) <= SHOWN and Path(name).is_file()
    except (OSError, ValueError):
        return False


def _by_size(width: str) -> tuple[bool, int | str]:
    return (not width.isdecimal(), int(width) if width.isdecimal() else width)


__all__ = ["Chip", "Cpu", "Price", "Row", "Span", "chip_names", "cpu_names", "load_chip", "load_chips", "load_cpu"]
