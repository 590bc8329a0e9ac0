"""Constant arrays in C: how they are declared and defined, and the macros that say in which memory they lie."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sensorsim.language.c.names import Names
from sensorsim.language.c.text import C_TYPES, WIDTH, comment, describe, with_prefix, wrap
from sensorsim.language.kernel import Kernel

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
        """The macro that says how many entries it has."""
        return f"{self.name}_ENTRIES".upper()


def known_tables(entries: Sequence[Kernel], prefix: str, bound: Iterable[tuple[Kernel, str]] = ()) -> list[Table]:
    """The constant tables that the kernels declare, such as that of e^a."""
    names = Names(entries, prefix, bound)
    found: dict[str, Table] = {}
    for (kernel, name), full in names.tables.items():
        kind = kernel.arrays[name]
        text = f"The argument `{name}` of {names.functions[kernel]}(): {describe(kind.element)}."
        flash = (kernel, name) in names.in_flash
        found[full] = Table(full, kind.storage, kind.contents or (), tuple(wrap(text)), flash=flash)
    return list(found.values())


def memory(prefix: str) -> str:
    """The macros SS_TABLE and SS_FLASH."""
    return with_prefix(MEMORY, prefix)


def declared(table: Table, prefix: str) -> str:
    """The table in a header: its macros and, where it is an array, its declaration."""
    lines = [f"#define {name} {value if value >= 0 else f'({value})'}" for name, value in table.constants]
    if table.values:
        lines.insert(0, f"#define {table.size} {len(table.values)}U")
        lines.append(f"extern const {_space(table.flash, prefix)}{C_TYPES[table.storage]} {table.name}[{table.size}];")
    return "\n".join([comment(table.about), *lines])


def tables_source(tables: Sequence[Table], prefix: str, header: str) -> str:
    """The file that defines every table."""
    parts = [comment(["The constant tables."]) + f'\n#include "{prefix}{header}.h"\n']
    for table in tables:
        lead = f"{prefix.upper()}TABLE const {_space(table.flash, prefix)}"
        parts.append(comment(table.about) + "\n" + array(table.name, table.storage, table.values, table.size, lead))
    return "\n".join(parts)


def tables_header(tables: Sequence[Table], prefix: str) -> str:
    """The private header of the tables."""
    guard = f"{prefix}TABLES_H".upper()
    head = comment(["The constant tables, and the numbers that go with them."])
    parts = [f"{head}\n#ifndef {guard}\n#define {guard}", "#include <stdint.h>", memory(prefix)]
    return "\n\n".join([*parts, *(declared(table, prefix) for table in tables), "#endif"]) + "\n"


def array(name: str, kind: str, values: Sequence[int], size: str, lead: str = "const ", indent: str = "") -> str:
    """A constant array, as many values in a line as fit."""
    words = [literal(value, kind) for value in values]
    head = f"{indent}{lead}{C_TYPES[kind]} {name}[{size}] = {{"
    line = f"{head} {', '.join(words)} }};\n"
    if len(line) <= WIDTH + 1:
        return line
    inner = indent + "    "
    lines = textwrap.wrap(", ".join(words) + ",", WIDTH, initial_indent=inner, subsequent_indent=inner)
    return "\n".join([head, *lines, f"{indent}}};\n"])


def literal(value: int, kind: str) -> str:
    """A number as a C constant of that storage type."""
    if kind.startswith("u"):
        return f"{value}U"
    return "INT32_MIN" if value == -(2**31) else str(value)


def _space(flash: bool, prefix: str) -> str:
    return f"{prefix.upper()}FLASH " if flash else ""
