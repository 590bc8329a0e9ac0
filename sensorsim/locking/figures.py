"""The figures of a report: its JSON laid flat, every number under the path that leads to it."""

import math
from collections.abc import Iterator, Mapping, Set
from typing import Any

from sensorsim.locking.lock import Figure, Value

DIGITS = 12  # of a float: more than any figure here means, fewer than machines may differ in
# What is not a figure: words for readers, what `choices` and `toolchain` say, what follows from other figures, and what
# is of other choices.
LEFT_OUT = {
    *("schema_version", "title", "about", "notes", "estimates", "table_notes", "machine_notes", "machine_text"),
    *("verdict", "findings", "exceptions", "varying", "moving", "folder", "image", "file", "line", "lines", "seconds"),
    *("unit", "cost_unit", "compiler", "gcc", "flags", "level", "costs", "classes", "machine_classes"),
    *("total_all_users", "share_percent", "uJ_per_day", "missing", "unsettled", "variant", "chip_given"),
    *("printed_by_operands", "break_even_division", "published"),
}
TRANSPARENT = {"mechanisms", "results", "cases", "machine", "kernels"}  # what every path would begin with
IDENTIFY = ("kernel", "cpu", "target", "mechanism", "call", "part", "name")  # what tells the items of a list apart
PRICED = {"typical", "min", "max", "price", "paper", "machine_cost", "machine_worst_case", "by_data"}
UNITS = {"bytes": "bytes", "bits": "bits", "percent": "%", "nanojoule": "nJ", "instructions": "instructions"}
UNITS |= {name: name for name in ("cycles", "pJ", "nJ", "uJ", "mJ", "mAh", "us", "ms")}
# Below these a name is a step's or a kernel's, so it may be any word; how many levels deep.
NAMED_BY_USERS = {"counts": 2, **dict.fromkeys(("steps", "parts", "operations", "formula", "formula_otherwise"), 1)}
NAMED_BY_USERS |= dict.fromkeys(("kernels", "mechanisms", "cost", "at", "lengths"), 1)
OF_ALL_BELOW = {"operations", "counts", "instructions", "price", "saving_percent"}  # their unit is that of their parts

Figures = dict[str, Figure]


def figures_of(report: Mapping[str, Any], choices: Set[str] = frozenset(), leave: Set[str] = frozenset()) -> Figures:
    """All figures of a report's JSON, but the command's choices at its top and the keys to leave out anywhere."""
    found: Figures = {}
    own = {name: part for name, part in report.items() if name not in choices}
    for name, figure in _walk(own, "", "", str(report.get("unit", "")), LEFT_OUT | leave):
        if name in found:
            raise RuntimeError(f"two figures are called {name}")
        found[name] = figure
    return found


def _walk(node: Any, path: str, key: str, unit: str, leave: Set[str], free: int = 0) -> Iterator[tuple[str, Figure]]:
    """Every leaf below the node; `unit` is what prices are in here, `free` how many levels are named by a user."""
    if isinstance(node, Mapping):
        unit = unit if free else str(node.get("unit") or node.get("cost_unit") or unit)
        for name, part in node.items():
            if not free and (name in leave or _is_said_already(name, node)):
                continue
            inner = path if name in TRANSPARENT and _has_parts(part) and not free else _joined(path, str(name))
            below = free - 1 if free else NAMED_BY_USERS.get(name, 0)
            yield from _walk(part, inner, _unit_key(key, name), unit, leave, below)
    elif isinstance(node, list | tuple) and any(isinstance(item, Mapping) for item in node):
        for place, item in enumerate(node):
            own = _identity(item)
            parts = [part for part in own.values() if part not in path.split("/")] if own else [str(place)]
            yield from _walk(item, _joined(path, *parts), key, unit, leave | set(own))
    elif node is not None and node not in ([], ()):
        yield path, Figure(_value(node), _unit(key, unit) if not isinstance(node, str | bool) else "")


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _has_parts(node: Any) -> bool:
    return isinstance(node, Mapping | list | tuple)


def _is_said_already(name: str, node: Mapping[str, Any]) -> bool:
    """A least or largest total that is the total: one change would be three rows."""
    return name in ("total_min", "total_max") and node[name] == node.get("total")


def _identity(item: Mapping[str, Any]) -> dict[str, str]:
    """What an item of a list is called by."""
    return {name: item[name] for name in IDENTIFY if isinstance(item.get(name), str)}


def _unit_key(key: str, name: str) -> str:
    """The key that decides the unit."""
    return key if key in OF_ALL_BELOW else str(name)


def _value(node: Any) -> Value:
    if isinstance(node, bool | int | str):
        return node
    if isinstance(node, list | tuple):
        return ", ".join(str(_value(item)) for item in node)
    if isinstance(node, float) and math.isfinite(node):
        shown = float(f"{node:.{DIGITS}g}")
        return int(shown) if shown.is_integer() else shown
    return str(node)


def _unit(key: str, unit: str) -> str:
    if key in ("operations", "counts"):
        return "operations"
    if key in PRICED or key.startswith(("total", "cost")):
        return unit
    return next((UNITS[word] for word in key.split("_") if word in UNITS), "")
