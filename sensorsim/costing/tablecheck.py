"""Check tables of processors, chips, radios and published cycles; one line per fault, `file:line: what`."""

from operator import itemgetter
from pathlib import Path
from typing import Any

from sensorsim.costing.chips import ANY, CHIP_SCHEMA, RADIO_SCHEMA, chip_names, energy_file, radio_files
from sensorsim.costing.comparisons import PUBLISHED_SCHEMA, published_file
from sensorsim.costing.csv_schema import Schema, UnreadableTableError, read_cells
from sensorsim.costing.prices import (
    BASES,
    CPU_SCHEMA,
    Row,
    base_file,
    base_name,
    cpu_folder,
    cpu_names,
    parse_checked,
    parse_configuration,
    without_altered,
)

SCHEMAS = {schema.names[0]: schema for schema in (CPU_SCHEMA, CHIP_SCHEMA, RADIO_SCHEMA, PUBLISHED_SCHEMA)}
DEEPEST = 5  # tables that build on each other

Faults = list[tuple[int, str]]  # with their lines


def table_files() -> list[Path]:
    """List every table that comes with the package."""
    cpus = [cpu_folder() / f"{name}.csv" for name in cpu_names()]
    return [*cpus, energy_file(), *radio_files(), published_file()]


def check_file(path: Path) -> tuple[int, list[str]]:
    """Return the number of rows of a table and its faults. Its first column says what it is a table of."""
    try:
        header, columns, lines = read_cells(path)
    except OSError as error:
        return 0, [f"{path.name}:1: cannot be read: {error}"]
    except UnreadableTableError as error:
        return 0, [f"{path.name}:{error.line}: {error.what}"]
    schema = SCHEMAS.get("".join(columns[:1]), CPU_SCHEMA)
    faults = _check_table(path, schema, header, columns, lines)
    return len(lines), [f"{path.name}:{line}: {what}" for line, what in sorted(faults, key=itemgetter(0))]


def _check_table(
    path: Path, schema: Schema, header: dict[str, str], columns: list[str], lines: list[tuple[int, list[str]]]
) -> Faults:
    first = len(header) + 1
    if tuple(columns) != schema.names:
        return [(first, _column_fault(tuple(columns), schema.names))]
    faults: Faults = [] if lines else [(first, "no rows")]
    if schema.headers:
        faults += [] if header.get("title") else [(1, "no title; the first line is `# title: …`")]
        faults += [(1, f"unknown header {key!r}") for key in header if key not in schema.headers]
    sound: list[tuple[int, list[str]]] = []
    seen: dict[tuple[Any, ...], int] = {}
    for line, cells in lines:
        row, wrong = schema.row(path, cells)
        faults += [(line, what) for what in wrong]
        sound += [] if wrong else [(line, cells)]
        key = tuple(row.get(name) for name in schema.key)
        if schema.key and row and seen.setdefault(key, line) != line:
            faults.append((line, f"a second row for {' of '.join(map(str, key))}; the first is line {seen[key]}"))
    if schema is RADIO_SCHEMA:
        radios = dict.fromkeys(radio for radio, _ in seen)
        faults += [(first, f"no row of {radio} for any chip") for radio in radios if (radio, ANY) not in seen]
    if schema is CPU_SCHEMA:
        faults += _header_faults(path, header)
        faults += _price_faults(path, header, [Row(path, line, *schema.values(cells)) for line, cells in sound])
    return faults


def check_own(path: Path, what: str) -> list[str]:
    """Return every fault of your own table of a processor or a chip, and of the tables that it builds on."""
    try:
        header, columns, lines = read_cells(path)
    except UnreadableTableError as error:
        return [f"{path.name}:{error.line}: {error.what}"]
    wanted = CHIP_SCHEMA if what == "chip" else CPU_SCHEMA
    if columns[:1] != [wanted.names[0]]:
        return [f"{path.name}:{len(header) + 1}: no table of a {what}, whose first column is {wanted.names[0]}"]
    faults = check_file(path)[1]
    if what == "chip":
        if not faults and len(lines) != 1:
            faults.append(f"{path.name}:{len(header) + 1}: {len(lines)} chips; a file of one's own has one")
        taken = not faults and lines[0][1][0] in chip_names()
        core = "" if faults else lines[0][1][CHIP_SCHEMA.names.index("cpu")]
        if core and core not in cpu_names():
            faults += check_own(path.with_name(f"{core}.csv"), "processor")
    else:
        taken = path.stem in cpu_names()
        bases = [base for base in _base_chain(path, header)[0] if base.parent != cpu_folder()]
        faults += [fault for base in bases for fault in check_file(base)[1]]
    return [f"{path.name}:1: there is one of ours with this name; give it another"] if taken else faults


def _base_chain(path: Path, header: dict[str, str]) -> tuple[list[Path], str]:
    """Return the tables that this one builds on, the nearest first, and what is wrong with the chain, or ""."""
    found: list[Path] = []
    place = base_file(path, base_name(header))
    while place is not None:
        if place in (path, *found):
            return found, f"builds on {place.stem}, which builds on itself"
        if len(found) == DEEPEST:
            return found, f"builds on more than {DEEPEST} tables, one upon the other"
        try:
            below, columns, _ = read_cells(place)
        except (OSError, UnreadableTableError) as error:
            return found, f"builds on {place.stem}, which cannot be read ({error})"
        if tuple(columns) != CPU_SCHEMA.names:
            return found, f"builds on {place.stem}, which has not the columns of a table of a processor"
        found.append(place)
        place = base_file(place, base_name(below))
    return found, ""


def _column_fault(columns: tuple[str, ...], expected: tuple[str, ...]) -> str:
    missing = [f"missing column {name}" for name in expected if name not in columns]
    unknown = [f"unknown column {name!r}" for name in columns if name not in expected]
    return "; ".join(missing + unknown) or f"columns in another order; they are {','.join(expected)}"


def _header_faults(path: Path, header: dict[str, str]) -> Faults:
    faults: Faults = []
    for how in (how for how in BASES if how in header):
        if base_file(path, header[how]) is None:
            faults.append((1, f"{how} {header[how][:60]}, which is no table beside it, nor one of ours"))
    order = _base_chain(path, header)[1]
    faults += [(1, order)] if order else []
    if all(how in header for how in BASES):
        faults.append((1, "extends one table and alters another; a table does one of them"))
    for name, parse in (("checked", lambda: parse_checked(header.get("checked", ""))),
                        ("configuration", lambda: parse_configuration(header))):  # fmt: skip
        try:
            parse()
        except ValueError as error:
            faults.append((1, f"{name}: {error}"))
    return faults


def _price_faults(path: Path, header: dict[str, str], own: list[Row]) -> Faults:
    """Return what is priced twice, in this table or in the one that it builds on, and units that differ."""
    base = next(iter(_base_chain(path, header)[0]), None)
    others = tuple(_sound_rows(base)) if base else ()
    if "alters" in header:
        others = without_altered(others, tuple(own))
    faults: Faults = []
    priced: dict[tuple[str, str, str], Row] = {}
    forms: dict[tuple[str, str, str], Row] = {}
    unit = ""
    for row in (*others, *own):
        line = row.line if row.path == path else 0
        if unit not in ("", row.unit):
            faults.append((line, f"unit {row.unit}, where other rows of the table have another"))
        unit = row.unit
        for key in row.priced_keys():
            if priced.setdefault(key, row) is not row:
                faults.append(
                    (line, f"a second row for class {' '.join(key)}; the first is {_place(priced[key], path)}")
                )
        for form in ((row.operation, form, width) for form in row.operands for width in row.widths):
            if forms.setdefault(form, row) is not row:
                first = _place(forms[form], path)
                faults.append((line, f"duplicate of {' '.join(filter(None, form))}; the first is {first}"))
    return faults


def _place(row: Row, path: Path) -> str:
    return f"line {row.line}" if row.path == path else row.path.name


def _sound_rows(path: Path) -> list[Row]:
    """Return the rows of a processor table that have no fault of their own."""
    lines = read_cells(path)[2]
    return [Row(path, line, *CPU_SCHEMA.values(cells)) for line, cells in lines if not CPU_SCHEMA.row(path, cells)[1]]
