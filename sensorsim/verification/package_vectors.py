"""The vectors that a kernel of a package is verified with.

Bits are compared over the whole declared range of every argument. What is counted, priced and watched runs with the
lengths and constants of the package itself: what its own firmware calls the kernel with.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from sensorsim.codegen.golden import inputs_of
from sensorsim.codegen.manifest import Package
from sensorsim.language.arguments import array_length, bounds, lengths_to_check
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Q
from sensorsim.machine.vectors import Vectors, edge_vectors, of_one_call, random_vectors
from sensorsim.verification.findings import Effort

TABLES = {"table": "noise_table", "noise": "noise_table", "centre": "sketch_centre"}  # kernels' names, and C names
WHICH, VALUES = "features", "values"  # parts of a packet
PARTS = {"pack_chosen": WHICH, "pack_direction": WHICH, "pack_symbols": VALUES, "pack_values": VALUES}
OTHERS = ("encoder",)  # its features are those before the table's
OF_SKETCH = ("direction", "sketch")  # so are theirs, and the package says how many


class FixedArguments(NamedTuple):
    """Lengths, and values of other arguments: numbers, or a list for the table."""

    lengths: dict[str, int]
    values: dict[str, Any]


def fixed_arguments(package: Package, kernel: Kernel) -> FixedArguments:
    """Return what the package fixes of the kernel's arguments; other lengths are typical."""
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
    return FixedArguments(lengths, values)


def _constants(package: Package, kernel: Kernel) -> dict[str, int]:
    """Return the macros of the package's table, sensor and packet, by the kernels' names for them."""
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
    """Return where the kernel's part of a packet begins, and the bits of one value there."""
    packet = package.manifest.get("sensor", {}).get("packet", {})
    if not packet or not kernel.name.startswith("pack_"):
        return {}
    made = {"bytes": int(packet["bytes"])}
    for part in packet["fields"]:
        if part["what"] == PARTS.get(kernel.name):
            made |= {"at": int(part["first_bit"]), "bits": int(part["bits"]) // max(known.get("k", 1), 1)}
    return made


def _table(package: Package, name: str) -> list[int]:
    """Return the entries of an array of the package from its C."""
    array = re.compile(rf"\b{re.escape(package.prefix)}{name}\[[^\]]*\] = \{{([^}}]*)\}}")
    for text in _texts(package, "*.c"):
        for entries in array.findall(text):
            return [int(value.rstrip("U"), 0) for value in re.split(r"[,\s]+", entries) if value]
    return []


def _texts(package: Package, pattern: str) -> list[str]:
    paths = [path for name in ("include", "src") for path in sorted((package.folder / name).glob(pattern))]
    return [path.read_text("utf-8") for path in paths]


COUNTED = 2  # of all sets the last ones: edges and random values, with the package's own lengths and constants
FEW = 3  # vectors of a long record
LONG = 2000  # values in a vector that is long


def vector_sets(package: Package, kernel: Kernel, effort: Effort, seed: int) -> list[Vectors]:
    """Return golden vectors, edges at several lengths and random vectors.

    The last two have the package's own lengths and constants. Where it has any, half of the random vectors have them,
    the others take every value that is allowed.
    """
    own, edges, many = fixed_arguments(package, kernel), effort.edges, effort.core
    made = [of_one_call(kernel, inputs_of(vector, kernel)) for vector in package.golden(kernel)]
    for lengths in lengths_to_check(kernel):
        made.append(edge_vectors(kernel, lengths, _how_many(kernel, lengths, edges // 4), seed))
    if many > 1 and (own.values or own.lengths != kernel.lengths_at()):
        made += [edge_vectors(kernel, {}, edges, seed), random_vectors(kernel, {}, many // 2, seed)]
        many, seed = many - many // 2, seed + 1
    made.append(edge_vectors(kernel, own.lengths, edges, seed).holding(own.values))
    return [*made, random_vectors(kernel, own.lengths, many, seed).holding(own.values)]


def random_sets(package: Package, kernel: Kernel, count: int, seed: int) -> list[Vectors]:
    """Return random vectors, half of them with the package's own lengths, table and constants where it has any."""
    own = fixed_arguments(package, kernel)
    if count < 2 or (not own.values and own.lengths == kernel.lengths_at()):
        return [random_vectors(kernel, {}, count, seed)]
    half = random_vectors(kernel, own.lengths, count - count // 2, seed + 1).holding(own.values)
    return [random_vectors(kernel, {}, count // 2, seed), half]


def _how_many(kernel: Kernel, lengths: Mapping[str, int], usual: int) -> int:
    """Return the number of vectors at these lengths: few where each is long."""
    size = sum(array_length(kernel, name, lengths) for name, kind in kernel.arrays.items() if kind.contents is None)
    return FEW if size > LONG else max(usual, FEW)
