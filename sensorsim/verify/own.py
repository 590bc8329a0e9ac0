"""The sizes and constants that a package was made for: what its own firmware calls a kernel with.

Bits are compared over the whole declared range of every argument. What is counted, priced and watched runs with these.
"""

import re
from typing import Any, NamedTuple

from sensorsim.export.manifest import Package
from sensorsim.language.arguments import array_length, bounds
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Q

TABLES = {"table": "noise_table", "noise": "noise_table", "centre": "sketch_centre"}  # kernels' names, and C names
WHICH, VALUES = "features", "values"  # parts of a packet
PARTS = {"pack_chosen": WHICH, "pack_direction": WHICH, "pack_symbols": VALUES, "pack_values": VALUES}
OTHERS = ("encoder",)  # its features are those before the table's
OF_SKETCH = ("direction", "sketch")  # so are theirs, and the package says how many


class Own(NamedTuple):
    """Lengths, and values of other arguments: numbers, or a list for the table."""

    lengths: dict[str, int]
    values: dict[str, Any]


def own_of(package: Package, kernel: Kernel) -> Own:
    """What the package fixes of the kernel's arguments; lengths that it does not are typical."""
    known = {} if kernel.name in OTHERS else _constants(package, kernel)
    fits = {name: known[name] for name, kind in kernel.lengths.items() if kind.lo <= known.get(name, -1) <= kind.hi}
    lengths = kernel.lengths_at(fits)
    values: dict[str, Any] = {}
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Q) and name in known and kind.lo <= known[name] <= kind.hi:
            values[name] = known[name]
        elif isinstance(kind, Array) and name in TABLES and kind.contents is None:
            entries = _table(package, TABLES[name])
            least, most = bounds(kind.element, lengths)
            if len(entries) == array_length(kernel, name, lengths) and least <= min(entries) <= max(entries) <= most:
                values[name] = entries
    return Own(lengths, values)


def _constants(package: Package, kernel: Kernel) -> dict[str, int]:
    """The macros of the package's table, sensor and packet, by the kernels' names for them."""
    table = package.manifest.get("noise_table") or {}
    known = {"n": int(table["features"]), "k": int(table["release"])} if table else {}
    macro = re.compile(rf"^#define {re.escape(package.prefix.upper())}(\w+) \(?(-?\d+)U?\b", re.M)
    found = {name: int(value) for text in _texts(package, "*.h") for name, value in macro.findall(text)}
    lead = "SKETCH_" if kernel.name in OF_SKETCH else "NOISE_"
    known |= {name.removeprefix(lead).lower(): v for name, v in found.items() if name.startswith(lead)}
    if not package.private:
        return known
    named = {"reserve": "RESERVE", "budget": "BUDGET_MOST"}
    known |= {name: found[macro_name] for name, macro_name in named.items() if macro_name in found}
    return known | _packet(package, kernel, known)


def _packet(package: Package, kernel: Kernel, known: dict[str, int]) -> dict[str, int]:
    """Where the kernel's part of a packet begins, and how many bits one value has there."""
    packet = package.manifest.get("sensor", {}).get("packet", {})
    if not packet or not kernel.name.startswith("pack_"):
        return {}
    made = {"bytes": int(packet["bytes"])}
    for part in packet["fields"]:
        if part["what"] == PARTS.get(kernel.name):
            made |= {"at": int(part["first_bit"]), "bits": int(part["bits"]) // max(known.get("k", 1), 1)}
    return made


def _table(package: Package, name: str) -> list[int]:
    """The entries of an array of the package, as they stand in its C."""
    array = re.compile(rf"\b{re.escape(package.prefix)}{name}\[[^\]]*\] = \{{([^}}]*)\}}")
    for text in _texts(package, "*.c"):
        for entries in array.findall(text):
            return [int(value.rstrip("U"), 0) for value in re.split(r"[,\s]+", entries) if value]
    return []


def _texts(package: Package, pattern: str) -> list[str]:
    paths = [path for name in ("include", "src") for path in sorted((package.folder / name).glob(pattern))]
    return [path.read_text("utf-8") for path in paths]
