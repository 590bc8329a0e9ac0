"""The C files: which kernel goes where, and what stands around it.

The layout is that of the kernels' own files: each becomes one .c file and, where others use it, one internal .h file.
Kernels without a loop are `static inline` in that header, so that a compiler sees through them; a kernel with a loop is
a function of its own. The kernels that were asked for are declared in the one public header.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sensorsim.language.c.comments import about, remark
from sensorsim.language.c.functions import function, has_loop, signature
from sensorsim.language.c.helpers import HEADER
from sensorsim.language.c.names import Constants, Names, spelled
from sensorsim.language.c.text import (
    C_TYPES,
    ascii_text,
    comment,
    describe,
    parameter_lines,
    prose,
    with_prefix,
    wrap,
)
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Q

OURS = "sensorsim.kernels."


@dataclass(frozen=True)
class Table:
    """A constant array of the package: its C name, element storage, values and the comment above it.

    Without values it is no array, only the constants that stand in for one.
    """

    name: str
    storage: str
    values: tuple[int, ...]
    about: tuple[str, ...]
    constants: tuple[tuple[str, int], ...] = ()  # arguments that belong to it, defined beside it


def c_sources(entries: Sequence[Kernel], prefix: str, tables: Sequence[Table], banner: str) -> dict[str, str]:
    """Every file below include/ and src/, by its path; RangeError for a kernel that is not proved."""
    for kernel in entries:
        kernel.prove()  # what the C relies on: no signed operation overflows
    names = Names(entries, prefix)
    plan = _Plan(names)
    constants = Constants(prefix)
    plan.units(constants)  # a first pass, to see with which signs the constants are used
    texts = {
        f"include/{prefix}kernels.h": _public_header(names, tables),
        f"src/{prefix}arithmetic.h": with_prefix("\n".join([HEADER, *names.helpers, "#endif\n"]), prefix),
        **plan.units(constants),
        f"src/{prefix}constants.h": _constants_header(constants),
    }
    tables = [table for table in tables if table.values]
    if tables:
        texts[f"src/{prefix}tables.c"] = _tables_source(tables, prefix)
    return {path: banner + text for path, text in sorted(texts.items())}


def known_tables(entries: Sequence[Kernel], prefix: str) -> list[Table]:
    """The constant tables that the kernels declare, such as that of e^a."""
    names = Names(entries, prefix)
    found: dict[str, Table] = {}
    for (kernel, name), full in names.tables.items():
        kind = kernel.arrays[name]
        text = f"The argument `{name}` of {names.functions[kernel]}(): {describe(kind.element)}."
        found[full] = Table(full, kind.storage, kind.contents or (), tuple(wrap(text)))
    return list(found.values())


class _Plan:
    """Which kernel goes into which file."""

    def __init__(self, names: Names) -> None:
        self.names, self.prefix, self.entries = names, names.prefix, names.entries
        callers = {one: {names.units[c] for c in names.kernels if one in c.called} for one in names.kernels}
        # Visible outside its file: what other files call, and what those functions call that are compiled there too.
        self.shared = {one for one in names.kernels if one not in self.entries and callers[one] - {names.units[one]}}
        waiting = list(self.shared)
        while waiting:
            one = waiting.pop()
            more = {k for k in one.called if k not in self.entries} - self.shared if self.inline(one) else set()
            self.shared |= more
            waiting += more

    def inline(self, kernel: Kernel) -> bool:
        return kernel not in self.entries and not has_loop(kernel)

    def units(self, constants: Constants) -> dict[str, str]:
        texts: dict[str, str] = {}
        for unit, mine in self.names.unit_kernels():
            header = [kernel for kernel in mine if kernel in self.shared]
            source = [kernel for kernel in mine if kernel not in header or not self.inline(kernel)]
            if header:
                texts[f"src/{unit}.h"] = self.header(unit, header, constants)
            if source:
                texts[f"src/{unit}.c"] = self.source(unit, source, bool(header), constants)
        return texts

    def header(self, unit: str, kernels: list[Kernel], constants: Constants) -> str:
        guard = f"{unit}_H".upper()
        lines = [comment(wrap(_title(kernels[0]))), f"#ifndef {guard}", f"#define {guard}", ""]
        lines += [*self.includes(kernels, unit), ""]
        parts = [self.define(k, constants) if self.inline(k) else self.declare(k) for k in kernels]
        return "\n".join(lines) + "\n" + "\n".join(parts) + "\n#endif\n"

    def source(self, unit: str, kernels: list[Kernel], has_header: bool, constants: Constants) -> str:
        own = [f'#include "{unit}.h"'] if has_header else []
        public = [f'#include "{self.prefix}kernels.h"'] if any(k in self.entries for k in kernels) else []
        includes = list(dict.fromkeys([*public, *own, *self.includes(kernels, unit)]))
        head = comment(wrap(_title(kernels[0])))
        return "\n".join([head, *includes, ""]) + "\n" + "\n".join(self.define(k, constants) for k in kernels)

    def includes(self, kernels: list[Kernel], unit: str) -> list[str]:
        callees = {callee for kernel in kernels for callee in kernel.called}
        used = {self.names.units[callee] for callee in callees if callee not in self.entries} - {unit}
        public = ["kernels"] if any(callee in self.entries for callee in callees) else []
        files = [*(self.prefix + name for name in [*public, "arithmetic", "constants"]), *sorted(used)]
        return [f'#include "{name}.h"' for name in files]

    def define(self, kernel: Kernel, constants: Constants) -> str:
        local = kernel not in self.entries and (self.inline(kernel) or kernel not in self.shared)
        head = signature(kernel, self.names, static=local, inline=self.inline(kernel))
        declared = kernel in self.entries or (kernel in self.shared and not self.inline(kernel))
        text = about(kernel, self.prefix, self.names.short, whole=not declared)  # else it stands above the declaration
        return comment(text) + "\n" + function(kernel, self.names, constants, head)

    def declare(self, kernel: Kernel) -> str:
        return comment(about(kernel, self.prefix, self.names.short)) + "\n" + signature(kernel, self.names) + ";\n"


def _title(kernel: Kernel) -> str:
    """The first paragraph of what the kernel's module says of itself."""
    doc = getattr(sys.modules.get(kernel.module), "__doc__", None) or f"Kernels of {kernel.path.name}."
    return " ".join(prose(doc.strip().split("\n\n")[0]))


def _public_header(names: Names, tables: Sequence[Table]) -> str:
    prefix = names.prefix
    guard = f"{prefix}KERNELS_H".upper()
    parts = [comment(with_prefix(line, prefix) for line in _intro(names.entries))]
    parts += [f"#ifndef {guard}\n#define {guard}", "#include <stdint.h>"]
    parts += ['#ifdef __cplusplus\nextern "C" {\n#endif']
    for table in tables:
        size = f"{table.name}_ENTRIES".upper()
        lines = [f"#define {name} {value}" for name, value in table.constants]
        if table.values:
            lines.insert(0, f"#define {size} {len(table.values)}U")
            lines.append(f"extern const {C_TYPES[table.storage]} {table.name}[{size}];")
        parts.append("\n".join([comment(table.about), *lines]))
    for kernel in names.entries:
        doc = [*about(kernel, prefix, names.short), "", *parameter_lines(kernel, spelled(kernel, prefix))]
        parts.append(comment(doc) + "\n" + signature(kernel, names) + ";")
    return "\n\n".join([*parts, "#ifdef __cplusplus\n}\n#endif", "#endif"]) + "\n"


def _intro(entries: Iterable[Kernel]) -> list[str]:
    formats: dict[Q, None] = {}
    for kernel in entries:
        for kind in [*kernel.parameters.values(), kernel.result]:
            element = kind.element if isinstance(kind, Array) else kind
            if isinstance(element, Q):
                formats[element] = None
    width = max((len(ascii_text(kind.name)) for kind in formats), default=0)
    ours = all(kernel.module.startswith(OURS) for kernel in entries)
    return [
        "Private records for a body-worn sensor: the kernels, in integers only." if ours else "Kernels, in integers.",
        "",
        "Number formats: Qn is a signed, UQn an unsigned integer that stands for integer / 2^n. For values in",
        "the stated ranges it is proved that nothing overflows and no index leaves its array; keeping to",
        "them is the caller's part.",
        "",
        *(f"  {ascii_text(kind.name):<{width}}  {describe(kind)}" for kind in sorted(formats, key=lambda q: q.name)),
        "",
        "No function allocates, recurses, keeps state between calls or calls anything outside this package",
        "(but see SS_NO_HW_DIV in the README). Arrays must not overlap.",
    ]


def _constants_header(constants: Constants) -> str:
    guard = f"{constants.prefix}CONSTANTS_H".upper()
    lines = [comment(["The numbers that the kernels share."]), f"#ifndef {guard}", f"#define {guard}", ""]
    if any(value == -(2**31) for _, value in constants.uses):
        lines += ["#include <stdint.h>", ""]
    for name, value in sorted(constants.uses):
        beside = remark(name, constants.origins[name, value])
        lines.append(constants.define(name, value) + (f" {comment([beside])}" if beside else ""))
    return "\n".join([*lines, "", "#endif"]) + "\n"


def _tables_source(tables: Sequence[Table], prefix: str) -> str:
    parts = [comment(["The constant tables."]) + f'\n#include "{prefix}kernels.h"\n']
    for table in tables:
        size = table.name.upper() + "_ENTRIES"
        parts.append(comment(table.about) + "\n" + array(table.name, table.storage, table.values, size))
    return "\n".join(parts)


def array(name: str, kind: str, values: Sequence[int], size: str, static: bool = False) -> str:
    """A constant array, as many values in a line as fit."""
    words = [literal(value, kind) for value in values]
    head = f"{'static ' if static else ''}const {C_TYPES[kind]} {name}[{size}] = {{"
    if len(head) + sum(len(word) + 2 for word in words) <= 92:
        return f"{head} {', '.join(words)} }};\n"
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) + 2 > 96:
            lines.append(line)
            line = "   "
        line += f" {word},"
    lines.append(line)
    return head + "\n" + "\n".join(lines) + "\n};\n"


def literal(value: int, kind: str) -> str:
    """A number as a C constant of that storage type."""
    if kind.startswith("u"):
        return f"{value}U"
    return "INT32_MIN" if value == -(2**31) else str(value)
