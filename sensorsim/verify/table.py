"""The noise table as the compiled code holds it, certified again from those bytes; and what stands beside it, the
weights of an encoder or the centre of a sketch.

The arrays and the constants beside them are compiled for each target and read out of what the linker made. The table
that they are is certified by the code of `sensorsim noise check`, and everything that the package says of it is
compared with that: the table's file, the manifest, the comments in the headers.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sensorsim.errors import FailedProofError, InputError
from sensorsim.export.encoder import encoder_tables
from sensorsim.export.manifest import Package
from sensorsim.export.noise import Noise, for_package
from sensorsim.export.sketch import sketch_table
from sensorsim.language.c.files import Table
from sensorsim.machine.elf import Program
from sensorsim.privacy.certificate import certify
from sensorsim.privacy.tablefile import read_table
from sensorsim.verify.held import LETTERS, Held, held_by, macros, numbers, symbol
from sensorsim.verify.proof import Proof

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable


@dataclass(frozen=True)
class Stated:
    """What the files of a package say that its code holds."""

    table: "NoiseTable"  # with the certificate that it proves
    noise: Noise
    beside: tuple[Table, ...] = ()  # arrays of an encoder or a sketch, with their constants

    @property
    def array(self) -> tuple[int, ...]:
        return self.table.c_array()[1]

    @property
    def constants(self) -> dict[str, int]:
        """Of the noise table, by the names of the kernels' arguments."""
        sizes = {"n": self.table.features, "k": self.table.release} if self.table.for_releases else {}
        return sizes | self.table.c_constants()

    @property
    def macros(self) -> dict[str, int]:
        """Return those constants and what follows from them, as the header defines them."""
        return self.constants | self.table.bound_constants()

    @property
    def arrays(self) -> dict[str, str]:
        """Every array by its C name, with the storage of an entry."""
        own = [self.noise.table] if self.array else []
        return {table.name: table.storage for table in (*own, *self.beside)}


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
            check_held(held_by(package, known.arrays, target, build), known, package, f"the code for {target}")
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
    """The table that a linked program holds, with its certificate; FailedProofError where it is not the package's."""
    known = stated(package)
    values: tuple[int, ...] = ()
    if known.array:
        size = len(known.array) * struct.calcsize(LETTERS[known.noise.table.storage])
        values = numbers(symbol(program, known.noise.table.name, size), known.noise.table.storage)
    return _proved(values, macros(package), known, package, "the program")


def stated(package: Package) -> Stated:
    """The package's table, encoder and sketch by their files; FailedProofError where they cannot be read."""
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
    return Stated(proved, noise, beside)


def _beside(package: Package) -> tuple[Table, ...]:
    from sensorsim.device.sketch_file import read_sketch
    from sensorsim.encoders import read_encoder

    encoder = read_encoder(package.encoder_file) if package.encoder_file else None
    found = encoder_tables(encoder, package.prefix) if encoder else []
    if package.sketch_file:
        found.append(sketch_table(read_sketch(package.sketch_file), package.prefix))
    return tuple(found)


def check_held(held: Held, known: Stated, package: Package, where: str) -> None:
    """FailedProofError that names what is not as the files say."""
    lead = f"{package.prefix}NOISE_".upper()
    own = {name.removeprefix(lead).lower(): v for name, v in held.constants.items() if name.startswith(lead)}
    _proved(held.arrays.get(known.noise.table.name, ()), own, known, package, where)
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
    """The first place at which two arrays differ."""
    pairs = enumerate(zip(found, wanted, strict=False))
    return f"[{next((i for i, (a, b) in pairs if a != b), min(len(found), len(wanted)))}]"


def _proved(
    values: tuple[int, ...], constants: Mapping[str, int], known: Stated, package: Package, where: str
) -> "NoiseTable":
    """The table that is held, certified; FailedProofError where it is another than the package's."""
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
