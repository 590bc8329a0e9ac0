"""Cycles that others have published for noise in software (tables/published.csv), to set ours beside them."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sensorsim.cost.rows import STATUSES, number, read_cells
from sensorsim.tables import folder

BESIDE = "release-stairs"  # of ours: one value, one draw from a certified table, as theirs is one value and one draw


class Published(NamedTuple):
    """One row; the names are the columns'. What follows the first comma of `what` tells the rows of a core apart."""

    cpu: str
    what: str
    cycles: int
    cited: str
    source: str
    status: str
    note: str


PUBLISHED_COLUMNS = Published._fields


def published_file() -> Path:
    """The table."""
    return Path(folder(), "published.csv")


def load_published(cpu: str) -> list[Published]:
    """What there is for a core."""
    _, columns, lines = read_cells(published_file())
    found = (dict(zip(columns, cells, strict=True)) for _, cells in lines)
    return [Published(**{**cells, "cycles": int(cells["cycles"])}) for cells in found if cells["cpu"] == cpu]  # type: ignore[arg-type]


def published_line(cpu: str) -> list[str]:
    """One line that sets our cycles for one noised value beside those of others; none where nobody published any."""
    rows = load_published(cpu)
    if not rows:
        return []
    theirs = ", ".join(f"{row.cycles} ({row.what.partition(', ')[2]})" for row in rows)
    by = "; ".join(dict.fromkeys(row.cited for row in rows))
    return [f" One noised value: {ours(cpu):.0f} cycles, random words left out; {by}: {theirs}."]


def beside_published(cpu: str) -> dict[str, object] | None:
    """Return our cycles for one noised value and those of others, for JSON; None where nobody published any."""
    rows = load_published(cpu)
    others = [{"what": row.what, "cycles": row.cycles, "cited": row.cited} for row in rows]
    return {"ours_cycles": ours(cpu), "others": others} if rows else None


def ours(cpu: str) -> float:
    """Cycles of our kernel for one value, every operation priced; its random word is not in it."""
    from sensorsim.cost.forms import forms
    from sensorsim.cost.record_parts import full_pricing

    (form,) = (form for form in forms("lean") if form.name == BESIDE)
    counts: Counter[str] = Counter()
    for (_, operation), times in form.traced(1, 1).items():
        counts[operation] += times
    return float(full_pricing(cpu).total(counts).typical)


def is_published(path: Path) -> bool:
    """Whether a file is such a table, by the names of its columns."""
    try:
        return read_cells(path)[1][:2] == list(PUBLISHED_COLUMNS[:2])
    except (OSError, ValueError):  # told by who reads it next
        return False


def check_published(path: Path) -> tuple[int, list[str]]:
    """The number of rows of such a table and its faults, a line for each."""
    header, columns, lines = read_cells(path)
    if tuple(columns) != PUBLISHED_COLUMNS:
        wrong = f"not the columns of published cycles, which are {','.join(PUBLISHED_COLUMNS)}"
        return len(lines), [f"{path.name}:{len(header) + 1}: {wrong}"]
    faults = [] if lines else [f"{path.name}:{len(header) + 1}: no rows"]
    seen: dict[tuple[str, str], int] = {}
    for line, row in lines:
        if len(row) != len(PUBLISHED_COLUMNS):
            faults.append(f"{path.name}:{line}: {len(row)} cells, not {len(PUBLISHED_COLUMNS)}")
            continue
        cells = dict(zip(PUBLISHED_COLUMNS, row, strict=True))
        if seen.setdefault((cells["cpu"], cells["what"]), line) != line:
            faults.append(f"{path.name}:{line}: a second row for the same on {cells['cpu']}")
        faults += [f"{path.name}:{line}: {what}" for what in _row_faults(cells)]
    return len(lines), faults


def _row_faults(cells: Mapping[str, str]) -> list[str]:
    from sensorsim.cost.prices import cpu_names

    faults = [f"empty {name}" for name in PUBLISHED_COLUMNS if not cells[name] and name != "note"]
    if cells["cpu"] and cells["cpu"] not in cpu_names():
        faults.append(f"unknown cpu {cells['cpu']!r}")
    if cells["cycles"] and not _is_count(cells["cycles"]):
        faults.append(f"cycles {cells['cycles']!r} is not a whole number from 1 on")
    if cells["what"] and ", " not in cells["what"]:
        faults.append("what has no comma; after it stands what tells it from others, as `…, half-precision float`")
    if cells["status"] and cells["status"] not in STATUSES:
        faults.append(f"unknown status {cells['status']!r}; one of {', '.join(STATUSES)}")
    if cells["status"] in ("disputed", "estimate") and not cells["note"]:
        faults.append(f"status {cells['status']} without a note that says why")
    return faults


def _is_count(text: str) -> bool:
    """Return whether the text is a whole number from 1 on that a table may hold."""
    try:
        return text.isdecimal() and number(text) > 0
    except ValueError:
        return False
