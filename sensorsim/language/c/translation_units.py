"""Write the C files of a package: which kernel goes into which file, and the text around it.

The layout follows the kernels' own files: each becomes one .c file and, where others use it, one internal .h file.
Kernels without a loop are `static inline` in that header, so that a compiler sees through them; a kernel with a loop is
a function of its own. The requested kernels are declared in the one public header.

A private package has a header for each file of kernels instead, with local functions only. A firmware calls a release
with constants: the table, its lengths, its limits. Where the compiler sees the whole function beside the call it folds
them, and what is left is as short as code written for those constants.
"""

from collections.abc import Iterable, Sequence

from sensorsim.language.c.comments import (
    about,
    ascii_text,
    comment,
    describe,
    parameter_lines,
    remark,
    title,
    with_prefix,
    wrap,
)
from sensorsim.language.c.declarations import (
    Table,
    apart,
    declared,
    has_loop,
    header_of,
    memory,
    record_header,
    records_of,
    signature,
    tables_header,
    tables_source,
)
from sensorsim.language.c.functions import function
from sensorsim.language.c.helpers import HEADER, HOLDS, LOCAL
from sensorsim.language.c.identifiers import Constants, Names, spelled
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Q

OURS = "sensorsim.kernels."


def c_sources(
    entries: Sequence[Kernel],
    prefix: str,
    tables: Sequence[Table],
    banner: str,
    private: bool = False,
    flash: Iterable[tuple[Kernel, str]] = (),
) -> dict[str, str]:
    """Return every file below include/ and src/, by its path; RangeError for a kernel that is not proved.

    `private`: no public header, every function in a private one. `flash` are the parameters that the package binds to
    constant tables; those that declare their table are known.
    """
    for kernel in entries:
        kernel.prove()  # what the C relies on: no signed operation overflows
    names = Names(entries, prefix, flash, private)
    plan = (_PrivateFiles if private else _PublicFiles)(names)
    constants = Constants(prefix)
    plan.units(constants)  # a first pass, to see with which signs the constants are used
    texts = {
        f"src/{prefix}arithmetic.h": _arithmetic(names),
        **plan.units(constants),
        f"src/{prefix}constants.h": _constants_header(constants),
    }
    folder = "src" if private else "include"
    for record in records_of(names.kernels):
        texts[f"{folder}/{header_of(record, prefix)}"] = record_header(record, prefix)
    if not private:
        texts[f"include/{prefix}kernels.h"] = _public_header(names, tables)
    elif tables or names.in_flash:
        texts[f"src/{prefix}tables.h"] = tables_header(tables, prefix)
    arrays = [table for table in tables if table.values]
    if arrays:
        texts[f"src/{prefix}tables.c"] = tables_source(arrays, prefix, "tables" if private else "kernels")
    return {path: banner + text for path, text in sorted(texts.items())}


def _arithmetic(names: Names) -> str:
    local = [LOCAL] if names.private else []
    return with_prefix("\n".join([HEADER, *local, *names.helpers, "#endif\n"]), names.prefix)


class _PrivateFiles:
    """One private header for each file of kernels, with all of its functions."""

    def __init__(self, names: Names) -> None:
        self.names, self.prefix, self.entries = names, names.prefix, names.entries

    def units(self, constants: Constants) -> dict[str, str]:
        return {f"src/{unit}.h": self.header(unit, mine, constants) for unit, mine in self.names.unit_kernels()}

    def header(self, unit: str, kernels: list[Kernel], constants: Constants) -> str:
        guard = f"{unit}_H".upper()
        lines = [comment(wrap(title(kernels, self.names))), f"#ifndef {guard}", f"#define {guard}", ""]
        parts = [self.in_header(kernel, constants) for kernel in kernels]
        return "\n".join([*lines, *self.includes(kernels, unit), ""]) + "\n" + "\n".join(parts) + "\n#endif\n"

    def in_header(self, kernel: Kernel, constants: Constants) -> str:
        text = about(kernel, self.names)
        if kernel in self.entries:
            text += ["", *parameter_lines(kernel, spelled(kernel, self.prefix))]
        return self.define(kernel, text, f"{self.prefix.upper()}LOCAL ", constants)

    def define(self, kernel: Kernel, text: list[str], lead: str, constants: Constants) -> str:
        return comment(text) + "\n" + function(kernel, self.names, constants, lead) + apart(kernel, self.names)

    def includes(self, kernels: list[Kernel], unit: str) -> list[str]:
        used = {self.names.units[callee] for callee in self.callees(kernels)} - {unit}
        records = [header_of(record, self.prefix) for record in records_of(kernels)]
        files = [*(self.prefix + name for name in self.common(kernels)), *sorted(used)]
        return [f'#include "{name}"' for name in [*records, *(f"{file}.h" for file in files)]]

    def callees(self, kernels: list[Kernel]) -> set[Kernel]:
        return {callee for kernel in kernels for callee in kernel.called}

    def common(self, kernels: list[Kernel]) -> list[str]:
        return ["arithmetic", "constants", *(["tables"] if self.reads_tables(kernels) else [])]

    def reads_tables(self, kernels: list[Kernel]) -> bool:
        return any(kernel in kernels for kernel, _ in self.names.in_flash)


class _PublicFiles(_PrivateFiles):
    """A .c file for each file of kernels, and a header for what other files use."""

    def __init__(self, names: Names) -> None:
        super().__init__(names)
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

    def in_header(self, kernel: Kernel, constants: Constants) -> str:
        if self.inline(kernel):
            return self.in_source(kernel, constants)
        return comment(about(kernel, self.names)) + "\n" + signature(kernel, self.names) + ";\n"

    def source(self, unit: str, kernels: list[Kernel], has_header: bool, constants: Constants) -> str:
        own = [f'#include "{unit}.h"'] if has_header else []
        public = [f'#include "{self.prefix}kernels.h"'] if any(k in self.entries for k in kernels) else []
        includes = list(dict.fromkeys([*public, *own, *self.includes(kernels, unit)]))
        head = comment(wrap(title(kernels, self.names)))
        return "\n".join([head, *includes, ""]) + "\n" + "\n".join(self.in_source(k, constants) for k in kernels)

    def in_source(self, kernel: Kernel, constants: Constants) -> str:
        local = kernel not in self.entries and (self.inline(kernel) or kernel not in self.shared)
        lead = ("static " if local else "") + ("inline " if self.inline(kernel) else "")
        declared = kernel in self.entries or (kernel in self.shared and not self.inline(kernel))
        text = about(kernel, self.names, whole=not declared)  # else it is above the declaration
        return self.define(kernel, text, lead, constants)

    def callees(self, kernels: list[Kernel]) -> set[Kernel]:
        return super().callees(kernels) - set(self.entries)

    def common(self, kernels: list[Kernel]) -> list[str]:
        public = self.reads_tables(kernels) or not super().callees(kernels).isdisjoint(self.entries)
        return [*(["kernels"] if public else []), "arithmetic", "constants"]


def _public_header(names: Names, tables: Sequence[Table]) -> str:
    prefix = names.prefix
    guard = f"{prefix}KERNELS_H".upper()
    parts = [comment(with_prefix(line, prefix) for line in _intro(names.entries))]
    own = [f'#include "{header_of(record, prefix)}"' for record in records_of(names.entries)]
    parts += [f"#ifndef {guard}\n#define {guard}", "\n".join(["#include <stdint.h>", *own])]
    parts += ['#ifdef __cplusplus\nextern "C" {\n#endif']
    if names.in_flash or any(table.values for table in tables):
        parts.append(memory(prefix))
    parts += [declared(table, prefix) for table in tables]
    for kernel in names.entries:
        doc = [*about(kernel, names), "", *parameter_lines(kernel, spelled(kernel, prefix))]
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
        "",
        *wrap(HOLDS),
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


def entries_source(names: Names) -> str:
    """Return a file that makes every function of the private headers external, for tests that call them one by one."""
    head = comment(["The functions of the private headers, for tests that call them one by one."])
    headers = [f'#include "{unit}.h"' for unit, _ in names.unit_kernels()]
    return "\n".join([head, with_prefix("#define SS_LOCAL", names.prefix), *headers]) + "\n"
