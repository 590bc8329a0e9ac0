"""The noise table and the encoder as the compiled code holds them, certified again from those bytes.

The table's array and the constants beside it are compiled for each target and read out of what the linker made. The
table that they are is certified by the code of `sensorsim noise check`, and everything that the package says of it is
compared with that: the table's file, the manifest, the comments in the headers.
"""

import ctypes
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sensorsim.errors import FailedProofError, InputError
from sensorsim.export.manifest import Package
from sensorsim.export.noise import Noise, for_package
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.harness import load_host
from sensorsim.machine.targets import HOST, TARGETS, compile_elf, compile_host
from sensorsim.privacy.certificate import certify
from sensorsim.privacy.tablefile import read_table
from sensorsim.verify.proof import Proof

if TYPE_CHECKING:
    from sensorsim.device.encoder import EncoderWeights
    from sensorsim.privacy.tables import NoiseTable

ENTRY, CONSTANTS = "verify_held", "verify_constants"
LETTERS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i"}  # of struct
Read = Callable[[str, int], bytes]  # so many bytes of a symbol


@dataclass(frozen=True)
class Stated:
    """What the files of a package say that its code holds."""

    table: "NoiseTable"  # with the certificate that it proves
    noise: Noise
    encoder: "EncoderWeights | None"

    @property
    def array(self) -> tuple[int, ...]:
        return self.table.c_array()[1]

    @property
    def constants(self) -> dict[str, int]:
        """By the names of the kernels' arguments."""
        sizes = {"n": self.table.features, "k": self.table.release} if self.table.for_releases else {}
        return sizes | self.table.c_constants()


def table_proofs(package: Package, targets: Sequence[str], build: Path) -> list[Proof]:
    """The table in the code of every target, and what is said of it; nothing where the package has no table."""
    from sensorsim.verify.statements import certificate_proof

    if package.table_file is None:
        return []
    try:
        known = stated(package)
    except FailedProofError as error:
        return [Proof("table", False, str(error))]
    wrong: list[str] = []
    for target in targets:
        try:
            check_held(held_by(package, known, target, build), known, package, target)
        except FailedProofError as error:
            wrong.append(str(error))
    count = f"{len(known.array)} entries" if known.array else "two constants, no array"
    more = f", {len(known.encoder.weights)} weights of the encoder" if known.encoder else ""
    told = f"{count}, {', '.join(f'{n} = {v}' for n, v in known.constants.items())}{more}; read from the code for "
    return [
        Proof("table", not wrong, "; ".join(wrong) or told + ", ".join(targets)),
        certificate_proof(package, known),
    ]


def table_in(program: Program, package: Package) -> "NoiseTable":
    """The table that a linked program holds, with its certificate; FailedProofError where it is not the package's."""
    known = stated(package)
    values: tuple[int, ...] = ()
    if known.array:
        size = len(known.array) * struct.calcsize(LETTERS[known.noise.table.storage])
        values = _numbers(_symbol(program, known.noise.table.name, size), known.noise.table.storage)
    return _proved(Held(values, macros(package), None), known, package, "the program")


@dataclass(frozen=True)
class Held:
    """What the compiled code holds."""

    values: tuple[int, ...]
    constants: Mapping[str, int]
    encoder: tuple[tuple[int, ...], tuple[int, ...]] | None  # weights and bias


def stated(package: Package) -> Stated:
    """The package's table and encoder by their files; FailedProofError where they cannot be read."""
    from sensorsim.device.encoder import read_encoder

    file = package.table_file
    if file is None:
        raise InputError(f"{package.folder} has no noise table; export it with --noise.")
    try:
        table = read_table(file)
        proved = replace(table, certificate=certify(table))
        name = str(package.manifest["noise_table"]["file"])
        noise = for_package(name, proved, list(package.kernels), package.prefix)
        encoder = read_encoder(package.encoder_file) if package.encoder_file else None
    except (InputError, KeyError, TypeError) as error:
        raise FailedProofError(f"{file.relative_to(package.folder)}: {error}") from None
    return Stated(proved, noise, encoder)


def held_by(package: Package, known: Stated, target: str, build: Path) -> Held:
    """What the code for a target holds, read out of what the compiler made of it."""
    prefix, names = package.prefix, list(macros(package))
    arrays = {known.noise.table.name: known.noise.table.storage} if known.array else {}
    if known.encoder:
        arrays |= {f"{prefix}encoder_weights": "i16", f"{prefix}encoder_bias": "i32"}
    source = build / f"held-{target}.c"
    source.write_text(_source(package, names, list(arrays)), "utf-8")
    tables = [path for path in package.sources if path.name == f"{prefix}tables.c"]
    read = _built(target, [*tables, source], package.include, build / f"held-{target}")
    numbers = _numbers(read(CONSTANTS, 4 * (len(names) + len(arrays))), "u32")
    constants = dict(zip(names, numbers, strict=False))
    found = []
    for size, (name, storage) in zip(numbers[len(names) :], arrays.items(), strict=True):
        found.append(_numbers(read(name, size), storage))
    values = found.pop(0) if known.array else ()
    return Held(values, constants, (found[0], found[1]) if known.encoder else None)


def check_held(held: Held, known: Stated, package: Package, where: str) -> None:
    """FailedProofError that names what is not as the files say."""
    _proved(held, known, package, f"the code for {where}")
    if known.encoder is not None and held.encoder != (known.encoder.weights, known.encoder.bias):
        raise FailedProofError(f"the encoder's weights in the code for {where} are not those of {package.encoder_file}")


def macros(package: Package) -> dict[str, int]:
    """The constants beside the table, as the header defines them."""
    pattern = re.compile(rf"^#define {package.prefix.upper()}NOISE_(\w+) +(\d{{1,10}})$", re.M)
    found = {name.lower(): int(value) for name, value in pattern.findall(header_of(package).read_text("utf-8"))}
    return found


def _proved(held: Held, known: Stated, package: Package, where: str) -> "NoiseTable":
    """The table that is held, certified; FailedProofError where it is another than the package's."""
    lead = f"{package.prefix}NOISE_".upper()
    file = package.table_file
    assert file is not None
    name = file.relative_to(package.folder).as_posix()
    wrong = [
        f"{lead}{one.upper()} is {held.constants.get(one)} in {where} and {value} by {name}"
        for one, value in known.constants.items()
        if held.constants.get(one) != value
    ]
    if held.values != known.array:
        pairs = enumerate(zip(held.values, known.array, strict=False))
        place = next((i for i, (a, b) in pairs if a != b), min(len(held.values), len(known.array)))
        wrong.append(f"{known.noise.table.name}[{place}] in {where} is not that of {name}")
    try:
        made = known.table.from_c(held.values, held.constants)
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


def _source(package: Package, names: Sequence[str], arrays: Sequence[str]) -> str:
    """C that keeps the arrays and holds the constants, then the arrays' sizes in bytes."""
    lead = f"{package.prefix}NOISE_".upper()
    numbers = [f"(uint32_t)({lead}{name.upper()})" for name in names]
    numbers += [f"(uint32_t)sizeof({name})" for name in arrays]
    declared = f"const uint32_t {CONSTANTS}[{len(numbers)}]"
    keep = "".join(
        f"    if (which == {k}U) {{\n        place = (uintptr_t){name};\n    }}\n" for k, name in enumerate(arrays, 1)
    )
    return (
        f'#include <stdint.h>\n#include "{header_of(package).name}"\n'
        f"extern {declared};\n{declared} = {{ {', '.join(numbers)} }};\n"
        f"uintptr_t {ENTRY}(uint32_t which);\nuintptr_t {ENTRY}(uint32_t which)\n{{\n"
        f"    uintptr_t place = (uintptr_t){CONSTANTS} + which;\n{keep}    return place;\n}}\n"
    )


def _built(target: str, sources: Sequence[Path], include: Sequence[Path], out: Path) -> Read:
    """Compile for the target, and give a function that reads symbols."""
    if target != HOST:
        made = compile_elf(TARGETS[target], sources, include, ENTRY, out.with_suffix(".elf"))
        return partial(_symbol, read_elf(made.read_bytes()))
    library = load_host(compile_host(sources, include, out.with_suffix(".so")))
    return partial(_on_host, library)


def _on_host(library: ctypes.CDLL, name: str, size: int) -> bytes:
    return ctypes.string_at(ctypes.addressof(ctypes.c_uint8.in_dll(library, name)), size)


def _symbol(program: Program, name: str, size: int) -> bytes:
    if name not in program.symbols:
        raise FailedProofError(f"the code has no {name}, so it was not built with the package's table")
    address, own = program.symbols[name]
    if own not in (0, size):
        raise FailedProofError(f"{name} takes {own} bytes in the code and {size} by the package")
    try:
        return program.read(address, size)
    except InputError as error:
        raise FailedProofError(f"{name} cannot be read out of the code: {error}") from None


def _numbers(data: bytes, storage: str) -> tuple[int, ...]:
    letter = LETTERS[storage]
    size = struct.calcsize(letter)
    return struct.unpack(f"<{len(data) // size}{letter}", data[: len(data) // size * size])


def header_of(package: Package) -> Path:
    """The header that declares the table."""
    if package.private:
        return package.folder / "src" / f"{package.prefix}tables.h"
    return package.folder / "include" / f"{package.prefix}kernels.h"
