"""Find the cores on which an operation takes longer for some operands: read off the prices in tables/cpu."""

import csv
from functools import cache
from pathlib import Path

from sensorsim.tables import folder


@cache
def uneven_cores(operation: str) -> tuple[str, ...]:
    """Return the cores whose table gives an operation class on 32-bit words a range of prices, such as DIV: 2 to 12."""
    names = sorted(path.stem for path in Path(folder(), "cpu").glob("*.csv"))
    return tuple(name for name in names if any(_is_uneven(row, operation) for row in _rows(name)))


def _is_uneven(row: dict[str, str], operation: str) -> bool:
    priced = operation in row["class"].split("/") and {"32", "any"} & set(row["width"].split("/"))
    return bool(priced) and row["min"] != row["max"]


@cache
def _rows(name: str) -> tuple[dict[str, str], ...]:
    """Return the rows of a table, after those that it keeps of the one that it extends or alters."""
    lines = Path(folder(), "cpu", f"{name}.csv").read_text("utf-8").splitlines()
    header = dict(line.lstrip("# ").partition(": ")[::2] for line in lines if line.startswith("#"))
    own = tuple(csv.DictReader(lines[len(header) :]))
    base = header.get("extends") or header.get("alters")
    forms = {(row["operation"], form) for row in own for form in row["operands"].split("|")}
    kept = (row for row in (_rows(base) if base else ()) if forms.isdisjoint(
        (row["operation"], form) for form in row["operands"].split("|")))  # fmt: skip
    return (*kept, *own)
