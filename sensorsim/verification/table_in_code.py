"""The noise table as the compiled code holds it, certified again from those bytes, with what is beside it: the weights
of an encoder or the centre of a sketch.

The arrays and constants are compiled for each target and read out of what the linker made. The table that they are is
certified by the code of `sensorsim noise check`, and everything that the package says of it is compared with that: the
table's file, the manifest, the comments in the headers.
"""

import ctypes
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.terminal import counted
from sensorsim.codegen.encoder import encoder_tables
from sensorsim.codegen.manifest import Package
from sensorsim.codegen.noise_constants import Noise, for_package
from sensorsim.codegen.sketch import sketch_table
from sensorsim.codegen.write import MANIFEST
from sensorsim.language.c.comments import comment
from sensorsim.language.c.declarations import Table
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.harness import load_host
from sensorsim.machine.targets import HOST, TARGETS, compile_elf, compile_host
from sensorsim.noise.certificate import certify
from sensorsim.noise.table_file import read_table
from sensorsim.verification.findings import Proof

if TYPE_CHECKING:
    from sensorsim.noise.certificate import Certificate
    from sensorsim.noise.noise_table import NoiseTable

ENTRY, CONSTANTS = "verify_held", "verify_constants"
LETTERS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i"}  # of struct
Read = Callable[[str, int], bytes]  # so many bytes of a symbol


@dataclass(frozen=True)
class CodeTables:
    """Arrays and constants in compiled code, by their C names."""

    arrays: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, int]


def read_code_tables(package: Package, arrays: Mapping[str, str], target: str, build: Path) -> CodeTables:
    """Read the arrays, given with their storage, and all macros of the header out of the code for a target."""
    names = list(header_constants(package))
    source = build / f"held-{target}.c"
    source.write_text(_source(package, names, list(arrays)), "utf-8")
    tables = [path for path in package.sources if path.name == f"{package.prefix}tables.c"]
    read = _built(target, [*tables, source], package.include, build / f"held-{target}")
    found = numbers(read(CONSTANTS, 4 * (len(names) + len(arrays))), "u32")
    sizes = zip(found[len(names) :], arrays.items(), strict=True)
    values = {name: numbers(read(name, size), storage) for size, (name, storage) in sizes}
    signs = zip(names, found, header_constants(package).values(), strict=False)
    return CodeTables(values, {name: value - (2**32 if stated < 0 else 0) for name, value, stated in signs})


def header_constants(package: Package) -> dict[str, int]:
    """Return the plain numbers that the header of the tables defines, by their macros."""
    lead = re.escape(package.prefix.upper())
    pattern = re.compile(rf"^#define ({lead}(?:NOISE|ENCODER|SKETCH)_\w+) +\(?(-?\d{{1,10}})\)?$", re.M)
    return {name: int(value) for name, value in pattern.findall(header_of(package).read_text("utf-8"))}


def noise_macros(package: Package) -> dict[str, int]:
    """Return the constants beside the noise table, by the names of the kernels' arguments."""
    lead = f"{package.prefix}NOISE_".upper()
    return {
        name.removeprefix(lead).lower(): value
        for name, value in header_constants(package).items()
        if name.startswith(lead)
    }


def header_of(package: Package) -> Path:
    """Return the header that declares the table."""
    if package.private:
        return package.folder / "src" / f"{package.prefix}tables.h"
    return package.folder / "include" / f"{package.prefix}kernels.h"


def symbol(program: Program, name: str, size: int) -> bytes:
    """Return the bytes of a symbol; FailedProofError where the program has none of this size."""
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


def pack_numbers(values: tuple[int, ...], storage: str) -> bytes:
    """Return the bytes of an array, as `numbers` reads them."""
    return struct.pack(f"<{len(values)}{LETTERS[storage]}", *values)


def _source(package: Package, names: Sequence[str], arrays: Sequence[str]) -> str:
    """Return C that holds the constants, then the arrays' sizes in bytes, and keeps the arrays."""
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


@dataclass(frozen=True)
class PackageTables:
    """The tables that the code of a package should hold, by its files."""

    table: "NoiseTable"  # with the certificate that it proves
    noise: Noise
    beside: tuple[Table, ...] = ()  # arrays of an encoder or a sketch, with their constants

    @property
    def array(self) -> tuple[int, ...]:
        return self.table.c_array()[1]

    @property
    def constants(self) -> dict[str, int]:
        """Return the constants of the noise table, by the names of the kernels' arguments."""
        sizes = {"n": self.table.features, "k": self.table.release} if self.table.for_releases else {}
        return sizes | self.table.c_constants()

    @property
    def macros(self) -> dict[str, int]:
        """Return those constants and what follows from them, as the header defines them."""
        return self.constants | self.table.bound_constants()

    @property
    def arrays(self) -> dict[str, str]:
        """Return every array by its C name, with the storage of an entry."""
        own = [self.noise.table] if self.array else []
        return {table.name: table.storage for table in (*own, *self.beside)}


def table_proofs(package: Package, targets: Sequence[str], build: Path) -> list[Proof]:
    """Prove the table in the code of every target, and what is said of it; nothing without a table."""
    if package.table_file is None:
        return []
    try:
        known = read_tables(package)
    except FailedProofError as error:
        return [Proof("table", False, str(error))]
    wrong: list[str] = []
    for target in targets:
        try:
            check_code_tables(
                read_code_tables(package, known.arrays, target, build), known, package, f"the code for {target}"
            )
        except FailedProofError as error:
            wrong.append(str(error))
    count = f"{len(known.array)} entries" if known.array else "two constants, no array"
    more = "".join(f", {one.name} with {len(one.values)}" for one in known.beside)
    told = f"{count}, {', '.join(f'{n} = {v}' for n, v in known.constants.items())}{more}; read from the code for "
    return [
        Proof("table", not wrong, "; ".join(wrong) or told + ", ".join(targets)),
        certificate_proof(package, known),
    ]


def table_in(program: Program, package: Package) -> "NoiseTable":
    """Certify the table that a linked program holds; FailedProofError where it is not the package's."""
    known = read_tables(package)
    values: tuple[int, ...] = ()
    if known.array:
        size = len(known.array) * struct.calcsize(LETTERS[known.noise.table.storage])
        values = numbers(symbol(program, known.noise.table.name, size), known.noise.table.storage)
    return _certify(values, noise_macros(package), known, package, "the program")


def read_tables(package: Package) -> PackageTables:
    """Read the package's table, encoder and sketch from its files; FailedProofError where they cannot be read."""
    file = package.table_file
    if file is None:
        raise InputError(f"{package.folder} has no noise table; export it with --noise.")
    try:
        table = read_table(file)
        proved = replace(table, certificate=certify(table))
        name = str(package.manifest["noise_table"]["file"])
        noise = for_package(name, proved, list(package.kernels), package.prefix)
        beside = _beside(package)
    except (InputError, KeyError, TypeError) as error:
        raise FailedProofError(f"{file.relative_to(package.folder)}: {error}") from None
    return PackageTables(proved, noise, beside)


def _beside(package: Package) -> tuple[Table, ...]:
    from sensorsim.device.sketch_file import read_sketch
    from sensorsim.encoders import read_encoder

    encoder = read_encoder(package.encoder_file) if package.encoder_file else None
    found = encoder_tables(encoder, package.prefix) if encoder else []
    if package.sketch_file:
        found.append(sketch_table(read_sketch(package.sketch_file), package.prefix))
    return tuple(found)


def check_code_tables(held: CodeTables, known: PackageTables, package: Package, where: str) -> None:
    """Raise FailedProofError with what is not as the files say."""
    lead = f"{package.prefix}NOISE_".upper()
    own = {name.removeprefix(lead).lower(): v for name, v in held.constants.items() if name.startswith(lead)}
    _certify(held.arrays.get(known.noise.table.name, ()), own, known, package, where)
    wrong = []
    for one in known.beside:
        file = package.sketch_file or package.encoder_file
        assert file is not None
        name = file.relative_to(package.folder).as_posix()
        wrong += [
            f"{macro} is {held.constants.get(macro)} in {where} and {value} by {name}"
            for macro, value in one.constants
            if held.constants.get(macro) != value
        ]
        found = held.arrays[one.name]
        if found != one.values:
            wrong.append(f"{one.name}{_first(found, one.values)} in {where} is not that of {name}")
    if wrong:
        raise FailedProofError("; ".join(wrong))


def _first(found: Sequence[int], wanted: Sequence[int]) -> str:
    """Return the first place at which two arrays differ."""
    pairs = enumerate(zip(found, wanted, strict=False))
    return f"[{next((i for i, (a, b) in pairs if a != b), min(len(found), len(wanted)))}]"


def _certify(
    values: tuple[int, ...], constants: Mapping[str, int], known: PackageTables, package: Package, where: str
) -> "NoiseTable":
    """Certify the table that is held; FailedProofError where it is another than the package's."""
    lead = f"{package.prefix}NOISE_".upper()
    file = package.table_file
    assert file is not None
    name = file.relative_to(package.folder).as_posix()
    wrong = [
        f"{lead}{one.upper()} is {constants.get(one)} in {where} and {value} by {name}"
        for one, value in known.macros.items()
        if constants.get(one) != value
    ]
    if values != known.array:
        wrong.append(f"{known.noise.table.name}{_first(values, known.array)} in {where} is not that of {name}")
    try:
        made = known.table.from_c(values, constants)
        made = replace(made, certificate=certify(made))
    except (ValueError, KeyError, ArithmeticError, IndexError) as error:
        wrong.append(f"what {where} holds is no table that can be certified ({str(error).rstrip('.')})")
    else:
        assert made.certificate is not None
        if made.certificate != known.table.certificate:
            wrong.append(f"the table in {where} proves epsilon {made.certificate.epsilon_record or 'without a bound'}")
    if wrong:
        raise FailedProofError("; ".join(wrong))
    return made


def certificate_proof(package: Package, known: PackageTables) -> Proof:
    """Prove that everything that is said of the table is what it proves."""
    certificate = known.table.certificate
    assert certificate is not None
    untrue = wrong_statements(package, known)
    return Proof("certificate", not untrue, "; ".join(untrue) or _describe_certificate(known.table, certificate))


def wrong_statements(package: Package, known: PackageTables) -> list[str]:
    """Return where the package says something else of its table than the table proves."""
    found = []
    file = package.table_file
    assert file is not None
    written, proved = read_table(file).certificate, known.table.certificate
    assert written is not None and proved is not None
    for field in proved.__dataclass_fields__:
        says, holds = getattr(written, field), getattr(proved, field)
        if says != holds:
            found.append(f"{file.relative_to(package.folder)} says {field} {says}, its counts prove {holds}")
    found += _in_record(package.manifest.get("noise_table"), known.noise.record, "noise_table")
    sensor = package.manifest.get("sensor")
    if package.private and isinstance(sensor, dict):
        expected = {"epsilon_of_a_release": str(proved.epsilon_record)}
        found += _in_record({name: sensor.get(name) for name in expected}, expected, "sensor")
    about = comment(known.noise.table.about)
    files = [header_of(package), *(path for path in package.sources if path.name == f"{package.prefix}tables.c")]
    for path in files if known.array else files[:1]:
        if about not in path.read_text("utf-8"):
            name = path.relative_to(package.folder)
            found.append(f"the comment on the table in {name} is not what the table proves (epsilon, symbol values)")
    return found


def _in_record(record: Any, expected: Mapping[str, Any], path: str) -> list[str]:
    """Return what differs between a part of the manifest and what it should say."""
    if not isinstance(record, dict):
        return [f"{MANIFEST} says nothing of {path}"]
    found = []
    for name, value in expected.items():
        says = record.get(name)
        if isinstance(value, dict):
            found += _in_record(says, value, f"{path}.{name}")
        elif says != value:
            found.append(f"{MANIFEST} says {path}.{name} is {says}, the table proves {value}")
    return found


def _describe_certificate(table: "NoiseTable", certificate: "Certificate") -> str:
    released = f"{table.release} of {counted(table.features, 'feature')}"
    if certificate.epsilon_record is not None:
        return f"a record is {certificate.epsilon_record}-private (pure), {released}; certified again from the code"
    return f"delta {certificate.delta_record} at epsilon {table.epsilon}, {released}; certified again from the code"
