"""The C files: which kernel goes where, and what stands around it.

The layout is that of kernels/: a module becomes one .c file and, where others use it, one internal .h file. Kernels
without a loop are `static inline` in that header, so that a compiler sees through them; a kernel with a loop is a
function of its own. The kernels that were asked for are declared in the one public header.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from pkgutil import iter_modules

from sensorsim.errors import InputError
from sensorsim.export.ctext import C_TYPES, comment, describe, parameter_lines, prose, storage, wrap
from sensorsim.export.emit import Constants, called, constant_comment, function, has_loop, signature, written
from sensorsim.kernels.formats import Array, Q
from sensorsim.kernels.language import KERNELS, Kernel

VARIANTS = ("paper", "lean")
SHORT = {"sampled": "release_sampled"}  # names that users give to kernels called otherwise


@dataclass(frozen=True)
class Table:
    """A constant array of the package: its C name, element storage, values and the comment above it."""

    name: str
    storage: str
    values: tuple[int, ...]
    about: tuple[str, ...]
    constants: tuple[tuple[str, int], ...] = ()  # arguments that belong to it, defined beside it


def load_kernels() -> Mapping[str, Kernel]:
    """Every kernel there is."""
    import sensorsim.kernels as package

    for module in iter_modules(package.__path__):
        source = Path(package.__path__[0], f"{module.name}.py")
        if "\n@kernel(" in source.read_text("utf-8"):  # the others import Numba, which takes a second
            import_module(f"sensorsim.kernels.{module.name}")
    known: Mapping[str, Kernel] = KERNELS
    return known


def choose(names: Iterable[str], variant: str) -> list[Kernel]:
    """The kernels of these names; the lean variant of one where it is asked for and there is one."""
    known = load_kernels()
    if variant not in VARIANTS:
        raise InputError(f"variant {variant!r} is not known; there are {' and '.join(VARIANTS)}.")
    chosen: dict[Kernel, None] = {}
    for name in names:
        kernel = known.get(SHORT.get(name, name))
        if kernel is None:
            offered = sorted(n for n in known if not n.endswith("_lean"))
            raise InputError(f"kernel {name!r} is not known; there are {', '.join(offered)}.")
        chosen[known.get(f"{kernel.name}_lean", kernel) if variant == "lean" else kernel] = None
    return list(chosen)


def c_sources(entries: Sequence[Kernel], prefix: str, tables: Sequence[Table], banner: str) -> dict[str, str]:
    """Every file below include/ and src/, by its path."""
    plan = _Plan(tuple(entries), prefix)
    plan.modules(Constants(prefix))  # a first pass, to see with which signs the constants are used
    constants = plan.seen
    written = plan.modules(constants)
    arithmetic = (files("sensorsim.export") / "templates" / "arithmetic.h").read_text("utf-8")
    texts = {
        f"include/{prefix}kernels.h": _public_header(entries, prefix, tables),
        f"src/{prefix}arithmetic.h": with_prefix(arithmetic, prefix),
        f"src/{prefix}constants.h": _constants_header(constants),
        **written,
    }
    if tables:
        texts[f"src/{prefix}tables.c"] = _tables_source(tables, prefix)
    return {path: banner + text for path, text in sorted(texts.items())}


def with_prefix(text: str, prefix: str) -> str:
    """A template's text, with its ss_ and SS_ names under another prefix."""
    return text.replace("ss_", prefix).replace("SS_", prefix.upper())


def known_tables(entries: Iterable[Kernel], prefix: str) -> list[Table]:
    """The constant tables that the kernels declare, such as that of e^a."""
    found: dict[str, Table] = {}
    for kernel in entries:
        for name, kind in kernel.parameters.items():
            if isinstance(kind, Array) and kind.contents:
                full = table_name(kernel, name, prefix)
                about = (f"The argument `{name}` of {prefix}{kernel.name}(): {describe(kind.element)}.",)
                found[full] = Table(full, storage(kind.element), kind.contents, about)
    return list(found.values())


def table_name(kernel: Kernel, name: str, prefix: str) -> str:
    """The C name of a constant table that is a kernel's parameter."""
    return f"{prefix}{kernel.name if name == 'table' else name}_table"


class _Plan:
    """Which kernel goes into which file."""

    def __init__(self, entries: tuple[Kernel, ...], prefix: str) -> None:
        self.entries, self.prefix = entries, prefix
        self.kernels = reachable(entries)  # callees first
        self.names = {kernel.name for kernel in self.kernels}
        self.callers = {k: {c.path for c in self.kernels if k in called(c)} for k in self.kernels}

    def inline(self, kernel: Kernel) -> bool:
        return kernel not in self.entries and not has_loop(kernel)

    def shared(self, kernel: Kernel) -> bool:
        return kernel not in self.entries and self.callers[kernel] != {kernel.path}

    def modules(self, constants: Constants) -> dict[str, str]:
        self.seen = constants
        texts: dict[str, str] = {}
        for path in dict.fromkeys(kernel.path for kernel in self.kernels):
            mine = [kernel for kernel in self.kernels if kernel.path == path]
            header = [kernel for kernel in mine if self.shared(kernel)]
            # What a shared inline function calls must be visible wherever it is.
            header = [k for k in mine if k in header or (self.inline(k) and any(k in called(h) for h in header))]
            source = [kernel for kernel in mine if kernel not in header or not self.inline(kernel)]
            name = self.prefix + path.stem
            if header:
                texts[f"src/{name}.h"] = self.header(path.stem, header, constants)
            if source:
                texts[f"src/{name}.c"] = self.source(path.stem, source, bool(header), constants)
        return texts

    def header(self, module: str, kernels: list[Kernel], constants: Constants) -> str:
        parts = [self.define(k, constants) if self.inline(k) else self.declare(k) for k in kernels]
        guard = f"{self.prefix}{module}_H".upper()
        lines = [comment([*wrap(_title(kernels[0], self.prefix)), f"Internal; users include {self.prefix}kernels.h."])]
        lines += [f"#ifndef {guard}", f"#define {guard}", "", *self.includes(kernels, module), ""]
        return "\n".join(lines) + "\n" + "\n".join(parts) + "\n#endif\n"

    def source(self, module: str, kernels: list[Kernel], has_header: bool, constants: Constants) -> str:
        own = [f'#include "{self.prefix}{module}.h"'] if has_header else []
        public = [f'#include "{self.prefix}kernels.h"'] if any(k in self.entries for k in kernels) else []
        includes = list(dict.fromkeys([*public, *own, *self.includes(kernels, module)]))
        head = comment(wrap(_title(kernels[0], self.prefix)))
        return "\n".join([head, *includes, ""]) + "\n" + "\n".join(self.define(k, constants) for k in kernels)

    def includes(self, kernels: list[Kernel], module: str) -> list[str]:
        callees = {callee for kernel in kernels for callee in called(kernel)}
        used = {callee.path.stem for callee in callees if callee not in self.entries} - {module}
        public = ["kernels"] if any(callee in self.entries for callee in callees) else []
        names = [*public, "arithmetic", "constants", *sorted(used)]
        return [f'#include "{self.prefix}{name}.h"' for name in names]

    def define(self, kernel: Kernel, constants: Constants) -> str:
        local = kernel not in self.entries and (self.inline(kernel) or not self.shared(kernel))
        head = signature(kernel, self.prefix, static=local, inline=self.inline(kernel))
        doc = prose(kernel.doc, self.prefix, self.names)
        if kernel in self.entries or (self.shared(kernel) and not self.inline(kernel)):
            doc = doc[: doc.index("")] if "" in doc else doc  # the whole text stands above the declaration
        return comment(doc) + "\n" + function(kernel, constants, head)

    def declare(self, kernel: Kernel) -> str:
        return comment(prose(kernel.doc, self.prefix, self.names)) + "\n" + signature(kernel, self.prefix) + ";\n"


def reachable(entries: Iterable[Kernel]) -> list[Kernel]:
    """The kernels and all that they call, callees first."""
    order: dict[Kernel, None] = {}

    def visit(kernel: Kernel) -> None:
        for callee in called(kernel):
            visit(callee)
        order.setdefault(kernel)

    for kernel in entries:
        visit(kernel)
    # Within a module the order of its source, which defines before it uses, is the one a reader knows.
    modules = list(dict.fromkeys(kernel.path for kernel in order))
    return sorted(order, key=lambda kernel: (modules.index(kernel.path), kernel.tree.lineno))


@cache
def _title(kernel: Kernel, prefix: str) -> str:
    """The first sentence of the kernel's module."""
    doc = import_module(kernel.function.__module__).__doc__ or kernel.path.stem
    return " ".join(prose(doc.strip().split("\n\n")[0], prefix))


def _public_header(entries: Sequence[Kernel], prefix: str, tables: Sequence[Table]) -> str:
    guard = f"{prefix}KERNELS_H".upper()
    names = {kernel.name for kernel in entries}
    formats: dict[str, Q] = {}
    for kernel in entries:
        for kind in [*kernel.parameters.values(), kernel.result]:
            element = kind.element if isinstance(kind, Array) else kind
            if isinstance(element, Q):
                formats[element.name] = element
    width = max((len(name) for name in formats), default=0)
    intro = [
        "Private records for a body-worn sensor: the kernels, in integers only.",
        "",
        "Number formats: Qn is a signed, UQn an unsigned integer that stands for integer / 2^n. For values in",
        "the stated ranges it is proved that nothing overflows and no index leaves its array; keeping to",
        "them is the caller's part.",
        "",
        *(f"  {name:<{width}}  {describe(kind)}" for name, kind in sorted(formats.items())),
        "",
        "No function allocates, recurses, keeps state between calls or calls anything outside this package",
        "(but see SS_NO_HW_DIV in the README). Arrays must not overlap.",
    ]
    parts = [comment(with_prefix(line, prefix) for line in intro)]
    parts += [f"#ifndef {guard}\n#define {guard}", "#include <stdint.h>"]
    parts += ['#ifdef __cplusplus\nextern "C" {\n#endif']
    for table in tables:
        size = f"{table.name}_ENTRIES".upper()
        text = comment(table.about) + f"\n#define {size} {len(table.values)}U\n"
        text += "".join(f"#define {name} {value}\n" for name, value in table.constants)
        parts.append(text + f"extern const {C_TYPES[table.storage]} {table.name}[{size}];")
    for kernel in entries:
        doc = [*prose(kernel.doc, prefix, names), "", *parameter_lines(kernel, written(kernel))]
        parts.append(comment(doc) + "\n" + signature(kernel, prefix) + ";")
    return "\n\n".join([*parts, "#ifdef __cplusplus\n}\n#endif", "#endif"]) + "\n"


def _constants_header(constants: Constants) -> str:
    guard = f"{constants.prefix}CONSTANTS_H".upper()
    lines = [comment(["The numbers that the kernels share."]), f"#ifndef {guard}", f"#define {guard}", ""]
    for name in sorted(constants.values):
        remark = constant_comment(constants, name)
        lines.append(
            f"#define {constants.macro(name)} {constants.literal(name)}" + (f" /* {remark} */" if remark else "")
        )
    return "\n".join([*lines, "", "#endif"]) + "\n"


def _tables_source(tables: Sequence[Table], prefix: str) -> str:
    parts = [comment(["The constant tables."]) + f'\n#include "{prefix}kernels.h"\n']
    for table in tables:
        parts.append(
            comment(table.about)
            + "\n"
            + array(table.name, table.storage, table.values, table.name.upper() + "_ENTRIES")
        )
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
