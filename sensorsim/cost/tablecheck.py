"""Finds what is wrong with a table of a processor, of chips or of radios; one line per fault, `file:line: what`."""

import re
from pathlib import Path

from sensorsim.cost.prices import CHIP_COLUMNS, base_file, base_name, chip_names, cpu_folder, cpu_names, energy_file
from sensorsim.cost.radio import radio_files
from sensorsim.cost.rows import (
    CLASSES,
    COLUMNS,
    QUANTITIES,
    SIGNEDNESS,
    STATUSES,
    UNITS,
    WIDTHS,
    Number,
    UnreadableTableError,
    keys,
    number,
    parse,
    read_cells,
    read_checked,
    read_configuration,
    span,
)
from sensorsim.cost.tablecheck_radio import part_faults, radio_faults

COST = ("min", "typical", "max")
BASES = ("extends", "alters")  # headers that name another table, whose rows count too
HEADERS = ("title", "checked", "configuration", *BASES)
DEEPEST = 5  # tables that build on each other
SPANS = ("latency_cycles", "reciprocal_throughput_cycles")


def table_files() -> list[Path]:
    """Every table that comes with the package."""
    return [cpu_folder() / f"{name}.csv" for name in cpu_names()] + [energy_file(), *radio_files()]


def check_file(path: Path) -> tuple[int, list[str]]:
    """The number of rows of a table and its faults. Its first column says what is in it: chips, radios, operations."""
    try:
        header, columns, lines = read_cells(path)
    except OSError as error:
        return 0, [f"{path.name}:1: cannot be read: {error}"]
    except UnreadableTableError as error:
        return 0, [f"{path.name}:{error.line}: {error.what}"]
    if columns[:1] == ["radio"]:
        return len(lines), [f"{path.name}:{line}: {what}" for line, what in radio_faults(header, columns, lines)]
    expected = CHIP_COLUMNS if columns[:1] == ["chip"] else COLUMNS
    first = len(header) + 1
    if tuple(columns) != expected:
        return len(lines), [f"{path.name}:{first}: {_columns_fault(tuple(columns), expected)}"]
    faults = [] if expected is CHIP_COLUMNS else _header_faults(path, header)
    if not lines:
        faults.append((first, "no rows"))
    whole = [(line, cells) for line, cells in lines if len(cells) == len(expected)]
    faults += [(n, f"{len(c)} cells, not {len(expected)}") for n, c in lines if len(c) != len(expected)]
    rows = [(line, dict(zip(expected, cells, strict=True))) for line, cells in whole]
    faults += _chip_faults(path, rows) if expected is CHIP_COLUMNS else _cpu_faults(path, header, rows)
    return len(lines), [f"{path.name}:{line}: {what}" for line, what in sorted(faults)]


def check_own(path: Path, what: str) -> list[str]:
    """Every fault of a stranger's table of a processor or a chip, and of the tables that it builds on."""
    try:
        header, columns, lines = read_cells(path)
    except UnreadableTableError as error:
        return [f"{path.name}:{error.line}: {error.what}"]
    kind = {"chip": "chip", "operation": "processor"}.get("".join(columns[:1]), "")
    if kind != what:
        return [f"{path.name}:{len(header) + 1}: no table of a {what}, whose first column is {FIRST[what]}"]
    faults = check_file(path)[1]
    if what == "chip":
        if not faults and len(lines) != 1:
            faults.append(f"{path.name}:{len(header) + 1}: {len(lines)} chips; a file of one's own has one")
        taken = not faults and lines[0][1][0] in chip_names()
        core = "" if faults else lines[0][1][CHIP_COLUMNS.index("cpu")]
        if core and core not in cpu_names():
            faults += check_own(path.with_name(f"{core}.csv"), "processor")
    else:
        taken = path.stem in cpu_names()
        bases = [base for base in _built_on(path, header)[0] if base.parent != cpu_folder()]
        faults += [fault for base in bases for fault in check_file(base)[1]]
    return [f"{path.name}:1: there is one of ours with this name; give it another"] if taken else faults


FIRST = {"chip": "chip", "processor": "operation"}


def _built_on(path: Path, header: dict[str, str]) -> tuple[list[Path], str]:
    """Return the tables below this one, the nearest first, and what is wrong with their order, or ""."""
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
        if tuple(columns) != COLUMNS:
            return found, f"builds on {place.stem}, which has not the columns of a table of a processor"
        found.append(place)
        place = base_file(place, base_name(below))
    return found, ""


def _columns_fault(columns: tuple[str, ...], expected: tuple[str, ...]) -> str:
    missing = [name for name in expected if name not in columns]
    extra = [name for name in columns if name not in expected]
    parts = [f"missing column {name}" for name in missing] + [f"unknown column {name!r}" for name in extra]
    return "; ".join(parts) or f"columns in another order; they are {','.join(expected)}"


def _header_faults(path: Path, header: dict[str, str]) -> list[tuple[int, str]]:
    faults = [] if header.get("title") else [(1, "no title; the first line is `# title: …`")]
    faults += [(1, f"unknown header {key!r}") for key in header if key not in HEADERS]
    for how in (how for how in BASES if how in header):
        if base_file(path, header[how]) is None:
            faults.append((1, f"{how} {header[how][:60]}, which is no table beside it, nor one of ours"))
    order = _built_on(path, header)[1]
    faults += [(1, order)] if order else []
    if all(how in header for how in BASES):
        faults.append((1, "extends one table and alters another; a table does one of them"))
    try:
        read_checked(header.get("checked", ""))
    except ValueError as error:
        faults.append((1, f"checked: {error}"))
    try:
        read_configuration(header)
    except ValueError as error:
        faults.append((1, f"configuration: {error}"))
    return faults


def _cpu_faults(path: Path, header: dict[str, str], rows: list[tuple[int, dict[str, str]]]) -> list[tuple[int, str]]:
    faults = [(line, what) for line, cells in rows for what in _cell_faults(cells)]
    broken = {line for line, _ in faults}
    sound = [(line, cells) for line, cells in rows if line not in broken]
    own = {id(cells) for _, cells in sound}
    base = next(iter(_built_on(path, header)[0]), None)
    if base is not None:
        others = [cells for cells in _rows_of(base) if not _cell_faults(cells)]
        if "alters" in header:
            others = [cells for cells in others if not _same_form(cells, sound)]
        sound = [(0, cells) for cells in others] + sound
    priced: dict[tuple[str, str, str], str] = {}
    forms: dict[tuple[str, str, str], str] = {}
    units: set[str] = set()
    for line, cells in sound:
        where = f"line {line}" if base is None or id(cells) in own else base.name
        units.add(cells["unit"])
        if len(units) > 1:
            faults.append((line, f"unit {cells['unit']}, where other rows of the table have another"))
            units = {cells["unit"]}
        row = parse(path, line, cells)
        for key in keys(row):
            if priced.setdefault(key, where) != where:
                faults.append((line, f"a second row for class {' '.join(key)}; the first is {priced[key]}"))
        for form in ((row.operation, form, width) for form in row.operands for width in row.widths):
            if form in forms:
                faults.append((line, f"duplicate of {' '.join(filter(None, form))}; the first is {forms[form]}"))
            forms.setdefault(form, where)
    return faults


def _rows_of(path: Path) -> list[dict[str, str]]:
    """Return the whole rows of a readable processor table."""
    lines = read_cells(path)[2]
    return [dict(zip(COLUMNS, cells, strict=True)) for _, cells in lines if len(cells) == len(COLUMNS)]


def _same_form(cells: dict[str, str], rows: list[tuple[int, dict[str, str]]]) -> bool:
    """Whether one of the rows is for the same instruction."""
    forms = set(cells["operands"].split("|"))
    return any(row["operation"] == cells["operation"] and forms & set(row["operands"].split("|")) for _, row in rows)


def _cell_faults(cells: dict[str, str]) -> list[str]:
    faults = [f"empty {name}" for name in ("operation", "width", "source", *COST) if not cells[name]]
    allowed = {"class": CLASSES, "width": WIDTHS}
    for name, known in allowed.items():
        faults += [f"unknown {name} {part!r}" for part in cells[name].split("/") if cells[name] and part not in known]
    for name, choice in (("signedness", SIGNEDNESS), ("unit", UNITS), ("status", STATUSES)):
        if cells[name] not in choice:
            faults.append(f"unknown {name} {cells[name]!r}; one of {', '.join(choice)}")
    if cells["status_of"] and (cells["status_of"] not in QUANTITIES or cells["status"] == "confirmed"):
        faults.append(f"status_of {cells['status_of']!r} with status {cells['status']!r}")
    if cells["status"] in ("disputed", "estimate") and not cells["note"]:
        faults.append(f"status {cells['status']} without a note that says why")
    if cells["class"] not in ("", "BRANCH") and cells["width"] == "any":
        faults.append("a row that prices a class names its widths; only BRANCH may have any")
    return faults + _number_faults(cells)


def _number_faults(cells: dict[str, str]) -> list[str]:
    faults: list[str] = []
    for name in (*COST, "per_register", *SPANS):
        try:
            ends: list[Number] = []
            if name in SPANS and (quantity := span(cells[name])):
                ends = [quantity.min, quantity.typical, quantity.max]
            elif name not in SPANS and cells[name]:
                number(cells[name])
            if ends != sorted(ends):
                faults.append(f"{name} {cells[name]} does not ascend")
        except ValueError as error:
            faults.append(f"{name}: {error}")
    if not faults and all(cells[name] for name in COST):
        low, typical, high = (number(cells[name]) for name in COST)
        if not low <= typical <= high:
            faults.append(f"min {low}, typical {typical}, max {high} do not ascend")
        if high == 0:
            faults.append("a cost of zero")
    return faults


def _chip_faults(path: Path, rows: list[tuple[int, dict[str, str]]]) -> list[tuple[int, str]]:
    faults: list[tuple[int, str]] = []
    seen: dict[str, int] = {}
    for line, cells in rows:
        needed = ("chip", "name", "core", "uA_per_MHz", "supply_V", "pJ_per_cycle", "condition", "source")
        faults += [(line, f"empty {name}") for name in needed if not cells[name]]
        if seen.setdefault(cells["chip"], line) != line:
            faults.append((line, f"duplicate of chip {cells['chip']}; the first is line {seen[cells['chip']]}"))
        beside = re.fullmatch(r"[\w-]{1,60}", cells["cpu"]) and path.with_name(f"{cells['cpu']}.csv").is_file()
        if cells["cpu"] and cells["cpu"] not in cpu_names() and not beside:
            faults.append((line, f"unknown cpu {cells['cpu']!r}"))
        if cells["status"] not in STATUSES:
            faults.append((line, f"unknown status {cells['status']!r}; one of {', '.join(STATUSES)}"))
        faults += [(line, what) for what in _energy_faults(cells) + part_faults(cells)]
    return faults


def _energy_faults(cells: dict[str, str]) -> list[str]:
    names = ("uA_per_MHz", "supply_V", "MHz", "pJ_per_cycle")
    try:
        current, volt, _, energy = (number(cells[name] or "0") for name in names)
    except ValueError as error:
        return [str(error)]
    if not (current > 0 and volt > 0 and energy > 0):
        return [f"{current} uA/MHz, {volt} V and {energy} pJ per cycle: each is above 0"]
    # 1 µA/MHz at 1 V is 1 pJ per cycle; one of the makers rounds to three digits
    if abs(current * volt / energy - 1) > 0.005:
        return [f"{current} uA/MHz at {volt} V is {current * volt:g} pJ per cycle, not {energy}"]
    return []
