"""Records in C: a struct with documented members."""

from collections.abc import Sequence

from sensorsim.errors import InputError
from sensorsim.language.c.text import C_TYPES, comment
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, Port, Struct


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
    return [f"{_declared(name, kind, prefix)} /**< {record.about[name]} */" for name, kind in record.fields.items()]


def record_header(record: Struct, prefix: str) -> str:
    """Return the header of a record, with the functions of its board where it has one."""
    guard = f"{prefix}{record.name}_H".upper()
    lines = [
        comment(["A record of the kernels."]),
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
    ]
    for kind in record.fields.values():
        if kind.ports:
            lines += ["typedef struct {", "    void *board; /**< handed to every function as it is */"]
            lines += [line for port in kind.ports for line in (f"    /** {port.about} */", f"    {_function(port)};")]
            lines += [f"}} {prefix}port;", ""]
    lines += ["typedef struct {", *(f"    {line}" for line in members(record, prefix)), f"}} {prefix}{record.name};"]
    return "\n".join([*lines, "", "#endif", ""])


def _declared(name: str, kind: Array, prefix: str) -> str:
    if kind.ports:
        return f"{prefix}port {name};"
    return f"{C_TYPES[kind.storage]} {name}{'' if kind.cell else f'[{kind.length}]'};"


def _function(port: Port) -> str:
    result = "int" if port.fails else C_TYPES[port.result.storage]
    given = ["void *board", *(f"{C_TYPES[kind.storage]} {kind.name}" for kind in port.takes)]
    if port.buffer is not None:
        const = "" if port.buffer.written else "const "
        given += [f"{const}{C_TYPES[port.buffer.storage]} *bytes", "uint32_t count"]
    return f"{result} (*{port.name})({', '.join(given)})"
