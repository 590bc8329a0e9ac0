"""Constant arrays and macros of a package as compiled code holds them: read out of what the linker made."""

import ctypes
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sensorsim.errors import FailedProofError, InputError
from sensorsim.export.manifest import Package
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.harness import load_host
from sensorsim.machine.targets import HOST, TARGETS, compile_elf, compile_host

ENTRY, CONSTANTS = "verify_held", "verify_constants"
LETTERS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i"}  # of struct
Read = Callable[[str, int], bytes]  # so many bytes of a symbol


@dataclass(frozen=True)
class Held:
    """Arrays and constants, by their C names."""

    arrays: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, int]


def held_by(package: Package, arrays: Mapping[str, str], target: str, build: Path) -> Held:
    """What the code for a target holds of the arrays, given with their storage, and of all the header's macros."""
    names = list(defined(package))
    source = build / f"held-{target}.c"
    source.write_text(_source(package, names, list(arrays)), "utf-8")
    tables = [path for path in package.sources if path.name == f"{package.prefix}tables.c"]
    read = _built(target, [*tables, source], package.include, build / f"held-{target}")
    found = numbers(read(CONSTANTS, 4 * (len(names) + len(arrays))), "u32")
    sizes = zip(found[len(names) :], arrays.items(), strict=True)
    values = {name: numbers(read(name, size), storage) for size, (name, storage) in sizes}
    signs = zip(names, found, defined(package).values(), strict=False)
    return Held(values, {name: value - (2**32 if stated < 0 else 0) for name, value, stated in signs})


def defined(package: Package) -> dict[str, int]:
    """The plain numbers that the header of the tables defines, by their macros."""
    lead = re.escape(package.prefix.upper())
    pattern = re.compile(rf"^#define ({lead}(?:NOISE|ENCODER|SKETCH)_\w+) +\(?(-?\d{{1,10}})\)?$", re.M)
    return {name: int(value) for name, value in pattern.findall(header_of(package).read_text("utf-8"))}


def macros(package: Package) -> dict[str, int]:
    """The constants beside the noise table, by the names of the kernels' arguments."""
    lead = f"{package.prefix}NOISE_".upper()
    return {name.removeprefix(lead).lower(): value for name, value in defined(package).items() if name.startswith(lead)}


def header_of(package: Package) -> Path:
    """The header that declares the table."""
    if package.private:
        return package.folder / "src" / f"{package.prefix}tables.h"
    return package.folder / "include" / f"{package.prefix}kernels.h"


def symbol(program: Program, name: str, size: int) -> bytes:
    """The bytes of a symbol; FailedProofError where the program has none of this size."""
    if name not in program.symbols:
        raise FailedProofError(f"the code has no {name}, so it was not built with the package's table")
    address, own = program.symbols[name]
    if own not in (0, size):
        raise FailedProofError(f"{name} takes {own} bytes in the code and {size} by the package")
    try:
        return program.read(address, size)
    except InputError as error:
        raise FailedProofError(f"{name} cannot be read out of the code: {error}") from None


def numbers(data: bytes, storage: str) -> tuple[int, ...]:
    letter = LETTERS[storage]
    size = struct.calcsize(letter)
    return struct.unpack(f"<{len(data) // size}{letter}", data[: len(data) // size * size])


def packed(values: tuple[int, ...], storage: str) -> bytes:
    """The bytes of an array, as `numbers` reads them."""
    return struct.pack(f"<{len(values)}{LETTERS[storage]}", *values)


def _source(package: Package, names: Sequence[str], arrays: Sequence[str]) -> str:
    """C that keeps the arrays and holds the constants, then the arrays' sizes in bytes."""
    held = [f"(uint32_t)({name})" for name in names] + [f"(uint32_t)sizeof({name})" for name in arrays]
    declared = f"const uint32_t {CONSTANTS}[{len(held)}]"
    keep = "".join(
        f"    if (which == {k}U) {{\n        place = (uintptr_t){name};\n    }}\n" for k, name in enumerate(arrays, 1)
    )
    return (
        f'#include <stdint.h>\n#include "{header_of(package).name}"\n'
        f"extern {declared};\n{declared} = {{ {', '.join(held)} }};\n"
        f"uintptr_t {ENTRY}(uint32_t which);\nuintptr_t {ENTRY}(uint32_t which)\n{{\n"
        f"    uintptr_t place = (uintptr_t){CONSTANTS} + which;\n{keep}    return place;\n}}\n"
    )


def _built(target: str, sources: Sequence[Path], include: Sequence[Path], out: Path) -> Read:
    """Compile for the target, and give a function that reads symbols."""
    if target != HOST:
        made = compile_elf(TARGETS[target], sources, include, ENTRY, out.with_suffix(".elf"))
        return partial(symbol, read_elf(made.read_bytes()))
    library = load_host(compile_host(sources, include, out.with_suffix(".so")))
    return partial(_on_host, library)


def _on_host(library: ctypes.CDLL, name: str, size: int) -> bytes:
    return ctypes.string_at(ctypes.addressof(ctypes.c_uint8.in_dll(library, name)), size)
