"""Write C declarations: function signatures, structs of records, constant arrays and the memory that they are in."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sensorsim._util.errors import InputError
from sensorsim.language import ir
from sensorsim.language.arguments import polynomial
from sensorsim.language.c.comments import C_TYPES, WIDTH, comment, describe, with_prefix, wrap
from sensorsim.language.c.identifiers import Names, spelled
from sensorsim.language.kernel import Kernel
from sensorsim.language.polynomial import Bounds
from sensorsim.language.types import Array, Port, Struct, grouped

MEMORY = """\
/*
 * Where constant tables lie. SS_TABLE stands before each definition: define it to choose a section.
 * SS_FLASH stands wherever a table is pointed to: on AVR in GNU C (-std=gnu99) it is __flash, which
 * keeps tables out of RAM; elsewhere it is empty.
 */
#ifndef SS_TABLE
#define SS_TABLE
#endif
#ifndef SS_FLASH
#if defined(__AVR__) && defined(__FLASH) && !defined(__STRICT_ANSI__)
#define SS_FLASH __flash
#else
#define SS_FLASH
#endif
#endif"""


@dataclass(frozen=True)
class Table:
    """A constant array of the package: its C name, element storage, values and the comment above it.

    Without values it is no array, only the constants that stand in for one. `flash`: the parameters that it is passed
    to are table parameters, so it carries SS_FLASH.
    """

    name: str
    storage: str
    values: tuple[int, ...]
    about: tuple[str, ...]
    constants: tuple[tuple[str, int], ...] = ()  # arguments that belong to it, defined beside it
    flash: bool = False

    @property
    def size(self) -> str:
        """Return the name of the macro for the number of entries."""
        return f"{self.name}_ENTRIES".upper()


def known_tables(entries: Sequence[Kernel], prefix: str, bound: Iterable[tuple[Kernel, str]] = ()) -> list[Table]:
    """Return the constant tables that the kernels declare, such as that of e^a."""
    names = Names(entries, prefix, bound)
    found: dict[str, Table] = {}
    for (kernel, name), full in names.tables.items():
        kind = kernel.arrays[name]
        text = f"The argument `{name}` of {names.functions[kernel]}(): {describe(kind.element)}."
        flash = (kernel, name) in names.in_flash
        found[full] = Table(full, kind.storage, kind.contents or (), tuple(wrap(text)), flash=flash)
    return list(found.values())


def memory(prefix: str) -> str:
    """Define the macros SS_TABLE and SS_FLASH."""
    return with_prefix(MEMORY, prefix)


def declared(table: Table, prefix: str) -> str:
    """Declare a table in a header: its macros and, if it is an array, its declaration."""
    lines = [f"#define {name} {value if value >= 0 else f'({value})'}" for name, value in table.constants]
    if table.values:
        lines.insert(0, f"#define {table.size} {len(table.values)}U")
        lines.append(f"extern const {_space(table.flash, prefix)}{C_TYPES[table.storage]} {table.name}[{table.size}];")
    return "\n".join([comment(table.about), *lines])


def tables_source(tables: Sequence[Table], prefix: str, header: str) -> str:
    """Return the file that defines every table."""
    parts = [comment(["The constant tables."]) + f'\n#include "{prefix}{header}.h"\n']
    for table in tables:
        lead = f"{prefix.upper()}TABLE const {_space(table.flash, prefix)}"
        parts.append(comment(table.about) + "\n" + array(table.name, table.storage, table.values, table.size, lead))
    return "\n".join(parts)


def tables_header(tables: Sequence[Table], prefix: str) -> str:
    """Return the private header of the tables."""
    guard = f"{prefix}TABLES_H".upper()
    head = comment(["The constant tables, and the numbers that go with them."])
    parts = [f"{head}\n#ifndef {guard}\n#define {guard}", "#include <stdint.h>", memory(prefix)]
    return "\n\n".join([*parts, *(declared(table, prefix) for table in tables), "#endif"]) + "\n"


def array(name: str, kind: str, values: Sequence[int], size: str, lead: str = "const ", indent: str = "") -> str:
    """Define a constant array, with as many values in a line as fit."""
    words = [literal(value, kind) for value in values]
    head = f"{indent}{lead}{C_TYPES[kind]} {name}[{size}] = {{"
    line = f"{head} {', '.join(words)} }};\n"
    if len(line) <= WIDTH + 1:
        return line
    inner = indent + "    "
    lines = textwrap.wrap(", ".join(words) + ",", WIDTH, initial_indent=inner, subsequent_indent=inner)
    return "\n".join([head, *lines, f"{indent}}};\n"])


def literal(value: int, kind: str) -> str:
    """Format a number as a C constant of that storage type."""
    if kind.startswith("u"):
        return f"{value}U"
    return "INT32_MIN" if value == -(2**31) else str(value)


def _space(flash: bool, prefix: str) -> str:
    return f"{prefix.upper()}FLASH " if flash else ""


def signature(kernel: Kernel, names: Names, lead: str = "") -> str:
    """Return the function's signature after `lead`, such as `static`; one parameter per line if it is too long."""
    return _head(kernel, names, f"{lead}{_result(kernel)} {names.functions[kernel]}")


def pointer(kernel: Kernel, names: Names, name: str) -> str:
    """Define a constant pointer to the function that the compiler cannot see through."""
    return _head(kernel, names, f"static {_result(kernel)} (*const volatile {name})") + f" = {names.functions[kernel]};"


def apart(kernel: Kernel, names: Names) -> str:
    """Define the pointer to call a kernel through if it needs a stack frame of its own; empty for others."""
    if not kernel.apart:
        return ""
    why = comment(["Called through this, so that no compiler merges its frame with that of its caller."])
    return f"\n{why}\n{pointer(kernel, names, names.called(kernel))}\n"


def _head(kernel: Kernel, names: Names, start: str) -> str:
    spelling = spelled(kernel, names.prefix)
    parameters = []
    for owner in grouped(kernel.parameters):
        kind = kernel.parameters.get(owner)
        const = "" if any(name.partition(".")[0] == owner for name in kernel.written) else "const "
        if owner in kernel.records:
            parameters.append(f"{const}{names.prefix}{kernel.records[owner].name} *{owner}")
        elif isinstance(kind, Array):
            const += "volatile " if kernel.lasting else ""
            parameters.append(f"{const}{space(kernel, owner, names)}{C_TYPES[kind.storage]} {spelling[owner]}[]")
        elif kind is not None:
            parameters.append(f"{C_TYPES[kind.storage]} {spelling[owner]}")
    line = f"{start}({', '.join(parameters) or 'void'})"
    if len(line) <= WIDTH:
        return line
    return f"{start}(\n" + ",\n".join(f"    {parameter}" for parameter in parameters) + ")"


def _result(kernel: Kernel) -> str:
    return C_TYPES[kernel.result.storage] if kernel.result is not None else "void"


def space(kernel: Kernel, array: str, names: Names) -> str:
    return _space((kernel, array) in names.in_flash, names.prefix)


def has_loop(kernel: Kernel) -> bool:
    """Return whether the kernel has a loop that can run more than once."""
    bounds = Bounds()
    for name, kind in kernel.lengths.items():
        bounds.length(name, kind.lo, kind.hi, kind.at_most)
    for node in (node for node in kernel.nodes if isinstance(node, ir.For)):
        plain = all(
            isinstance(part, ir.Const | ir.Index) or (isinstance(part, ir.Name) and part.name in kernel.lengths)
            for part in ir.walk(node.first, node.last)
        )
        if not plain or bounds.highest(polynomial(node.last) - polynomial(node.first)) > 1:
            return True
    return False


def records_of(kernels: Sequence[Kernel]) -> list[Struct]:
    """Return the records that some kernels take, each once, with all fields that one of them asks for."""
    found: dict[str, Struct] = {}
    for record in (record for kernel in kernels for record in kernel.records.values()):
        known = found.setdefault(record.name, record)
        if record.extends(known):
            found[record.name] = record
        elif not known.extends(record):
            raise InputError(f"two records are called {record.name}, and neither has all fields of the other.")
    return list(found.values())


def header_of(record: Struct, prefix: str) -> str:
    """Return the name of the header that defines a record."""
    return f"{prefix}{record.name}.h"


def members(record: Struct, prefix: str) -> list[str]:
    """Return the members of a record's struct, with their comments."""
    found = []
    for name, kind in record.fields.items():
        size = "" if kind.cell else f"[{kind.length}]"
        declared = f"{prefix}port {name};" if kind.ports else f"{C_TYPES[kind.storage]} {name}{size};"
        found.append(f"{declared} /**< {record.about[name]} */")
    return found


def record_header(record: Struct, prefix: str) -> str:
    """Return the header of a record, with the functions of its board where it has one."""
    guard = f"{prefix}{record.name}_H".upper()
    lines = [comment(["A record of the kernels."]), f"#ifndef {guard}", f"#define {guard}", ""]
    lines += ["#include <stdint.h>", ""]
    for kind in record.fields.values():
        if kind.ports:
            lines += ["typedef struct {", "    void *board; /**< handed to every function as it is */"]
            lines += [line for port in kind.ports for line in (f"    /** {port.about} */", f"    {_function(port)};")]
            lines += [f"}} {prefix}port;", ""]
    lines += ["typedef struct {", *(f"    {line}" for line in members(record, prefix)), f"}} {prefix}{record.name};"]
    return "\n".join([*lines, "", "#endif", ""])


def _function(port: Port) -> str:
    result = "int" if port.fails else C_TYPES[port.result.storage]
    given = ["void *board", *(f"{C_TYPES[kind.storage]} {kind.name}" for kind in port.takes)]
    if port.buffer is not None:
        const = "" if port.buffer.written else "const "
        given += [f"{const}{C_TYPES[port.buffer.storage]} *bytes", "uint32_t count"]
    return f"{result} (*{port.name})({', '.join(given)})"
