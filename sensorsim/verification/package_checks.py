"""Check a package against its own manifest and table: every file written anew, and the table certified from the code.

Export is deterministic, so every byte must come out again. What the manifest says was given to export is given again:
the options from the manifest, the table, the encoder, the sketch and kernels of others from the copies that the package
holds. A change of any of them makes other files than those that are there; a change of any other file is seen directly.
Names and contents of files are compared; file modes and empty folders are not.

The arrays and constants of the tables are compiled for each target and read out of what the linker made. The noise
table that they are is certified by the code of `sensorsim noise check`, and everything that the package says of it is
compared with that: the table's file, the manifest, the comments in the headers.
"""

import ctypes
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import FailedProofError, InputError, UnableError
from sensorsim._util.files import temporary_folder
from sensorsim._util.terminal import counted
from sensorsim.codegen.compliance import MANIFEST, tool_version
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import AGAIN, NUMBER, UNREADABLE, Package, read_regular
from sensorsim.codegen.package_options import Load, Options, wrong_parameter
from sensorsim.codegen.package_tables import Noise, encoder_tables, for_package, sketch_table
from sensorsim.codegen.write import DATA, files_in, signed_manifest
from sensorsim.language.c.comments import comment
from sensorsim.language.c.declarations import Table
from sensorsim.language.load import FILE
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.harness import load_host
from sensorsim.machine.targets import HOST, TARGETS, compile_elf, compile_host, compiler_version
from sensorsim.noise.certificate import certify
from sensorsim.noise.table_file import read_table
from sensorsim.verification.kernel_timing import Proof

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

Make = Callable[[Options, Load, bool], Mapping[str, str]]
INSTALL = {"compiler": "ziglang", "cppcheck": "cppcheck"}
ENTRY, CONSTANTS = "verify_held", "verify_constants"


def differences(package: Package, make: Make = make_package, build: Path | None = None) -> list[str]:
    """Write the package again; return a sentence for each file that differs, none where the package is whole.

    What export is given again is copied below `build`, so that whoever clears that clears it too; else among the
    system's temporary files.
    """
    check_tools(package)
    with temporary_folder(build) as name:
        options = options_of(package, Path(name))
        try:
            made = make(options, package.carried.__getitem__, DATA in package.manifest["files"])
        except UnableError:  # which says nothing of the package
            raise
        except InputError as error:
            return [f"{MANIFEST}: export refuses what it says was exported ({str(error).rstrip('.')})"]
    return compare_files(package.folder, made)


def compare_files(folder: Path, made: Mapping[str, str]) -> list[str]:
    """Compare the files of the folder with those that export makes; return a sentence for each that differs."""
    present = set(files_in(folder))
    made = {**made, MANIFEST: _with_language_hashes(made[MANIFEST], folder)} if MANIFEST in made else made
    found = [f"{path} is missing" for path in sorted(made.keys() - present)]
    found += [f"{path} was added" for path in sorted(present - made.keys())]
    for path in sorted(present & made.keys()):
        try:
            content, wanted = read_regular(folder / path), made[path].encode("utf-8")
        except FailedProofError as error:
            found.append(str(error).removesuffix(AGAIN))
            continue
        if content != wanted:
            pairs = zip(content.split(b"\n"), wanted.split(b"\n"), strict=False)
            line = next((number for number, (a, b) in enumerate(pairs, 1) if a != b), None)
            found.append(f"{path} differs" + (f" at line {line}" if line else " in its length"))
    return found


def _with_language_hashes(made: str, folder: Path) -> str:
    """Return a manifest with the package's hashes of the language's sources.

    They say by which state of sensorsim a package was made. Another state that writes the same files proves as much.
    """
    data = json.loads(made)
    try:
        found = {one["module"]: one["sha256"] for one in json.loads(read_regular(folder / MANIFEST))["kernel_sources"]}
    except (OSError, *UNREADABLE):
        return made
    for record in data["kernel_sources"]:
        note = found.get(record["module"])
        if record["module"].startswith("sensorsim.language.") and re.fullmatch("[0-9a-f]{64}", str(note)):
            record["sha256"] = note
    return signed_manifest(data)


def options_of(package: Package, copies: Path) -> Options:
    """Return the options of the export, with copies of its files under their names in `copies`."""

    def altered(why: str) -> FailedProofError:
        return FailedProofError(f"{MANIFEST} was altered: {why}; export the package again.")

    given = package.manifest["parameters"]
    if name := wrong_parameter(given):
        raise altered(f"its parameter `{name}` is none")
    values = {field.name: given[field.name] for field in fields(Options)[1:]}
    sources = {"noise": package.table_file, "encoder": package.encoder_file, "sketch": package.sketch_file}
    for option, file in sources.items():
        name = given[option]
        if name is None:
            continue
        if file is None or not file.is_file() or Path(name).name != name or name in ("", ".", ".."):
            raise altered(f"it names {name!r}, of which it has no copy")
        (copies / option).mkdir()
        try:
            values[option] = Path(shutil.copy(file, copies / option / name))
        except (OSError, ValueError):
            raise altered(f"{name!r} is no name of a file") from None
    kernels = []
    for name in given["asked"]:  # a kernel of a file is one of the package's own copies, and of no other file
        match = FILE.fullmatch(name)
        if "," in name or name != name.strip() or (match and package.folder / match["path"] not in package.carried):
            raise altered(f"{name!r} is no kernel of the package")
        kernels.append(str(package.folder / name) if match else name)
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return Options(tuple(kernels), **values)


def check_tools(package: Package) -> None:
    """Raise InputError where another compiler or cppcheck made the package: their output is in it."""
    here = {"compiler": compiler_version(), "cppcheck": tool_version()}
    tools, sizes = package.manifest.get("tools"), package.manifest.get("sizes")
    try:
        found = re.search(r"^Checked with ([^,]+),", (package.folder / "MISRA.md").read_text("utf-8"), re.M)
    except (OSError, ValueError):
        found = None
    compiler = sizes.get("compiler") if isinstance(sizes, dict) else None
    beside = {"compiler": compiler, "cppcheck": found[1] if found else None}
    if not isinstance(tools, dict) or tools.keys() != here.keys():
        raise FailedProofError(f"{MANIFEST} was altered: its `tools` are no list of tools; export the package again.")
    for name, now in here.items():
        if tools[name] == now:
            continue
        if tools[name] != beside[name]:
            raise FailedProofError(
                f"{MANIFEST} was altered: its {name} is {tools[name]}, and that of the package's figures "
                f"{beside[name]}; export the package again."
            )
        number = str(tools[name]).rpartition(" ")[2]
        install = f"run `pip install {INSTALL[name]}=={number}`, or " if NUMBER.fullmatch(number) else ""
        raise InputError(
            f"{package.folder} was made with {tools[name] or 'nothing'} and here is {now}; {install}export the package "
            "again."
        )


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

    @property
    def contents(self) -> dict[str, bytes]:
        """Return the bytes of every array, as `unpack` reads them."""
        import numpy as np

        values = {one.name: one.values for one in self.beside} | {self.noise.table.name: self.array}
        return {name: np.array(values[name], _dtype(storage)).tobytes() for name, storage in self.arrays.items()}


def read_tables(package: Package) -> PackageTables:
    """Read the package's table, encoder and sketch from its files; FailedProofError where they cannot be read."""
    from sensorsim.device.sketch_file import read_sketch
    from sensorsim.encoders import read_encoder

    file = package.table_file
    if file is None:
        raise InputError(f"{package.folder} has no noise table; export it with --noise.")
    try:
        table = read_table(file)
        proved = replace(table, certificate=certify(table))
        name = str(package.manifest["noise_table"]["file"])
        noise = for_package(name, proved, list(package.kernels), package.prefix)
        beside = encoder_tables(read_encoder(package.encoder_file), package.prefix) if package.encoder_file else []
        beside += [sketch_table(read_sketch(package.sketch_file), package.prefix)] if package.sketch_file else []
    except (InputError, KeyError, TypeError) as error:
        raise FailedProofError(f"{file.relative_to(package.folder)}: {error}") from None
    return PackageTables(proved, noise, tuple(beside))


def header_of(package: Package) -> Path:
    """Return the header that declares the table."""
    if package.private:
        return package.folder / "src" / f"{package.prefix}tables.h"
    return package.folder / "include" / f"{package.prefix}kernels.h"


def header_constants(package: Package) -> dict[str, int]:
    """Return the plain numbers that the header of the tables defines, by their macros."""
    lead = re.escape(package.prefix.upper())
    pattern = re.compile(rf"^#define ({lead}(?:NOISE|ENCODER|SKETCH)_\w+) +\(?(-?\d{{1,10}})\)?$", re.M)
    return {name: int(value) for name, value in pattern.findall(header_of(package).read_text("utf-8"))}


def noise_macros(package: Package, constants: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return the constants beside the noise table, by the names of the kernels' arguments."""
    lead = f"{package.prefix}NOISE_".upper()
    known = header_constants(package) if constants is None else constants
    return {name.removeprefix(lead).lower(): value for name, value in known.items() if name.startswith(lead)}


def _dtype(storage: str) -> str:
    return f"<{storage[0]}{int(storage[1:]) // 8}"


def unpack(data: bytes, storage: str) -> tuple[int, ...]:
    """Return the numbers of an array in little-endian memory."""
    import numpy as np

    dtype = np.dtype(_dtype(storage))
    return tuple(np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype).tolist())


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
            certify_held(
                *_compiled_tables(package, known.arrays, target, build), known, package, f"the code for {target}"
            )
        except FailedProofError as error:
            wrong.append(str(error))
    count = f"{len(known.array)} entries" if known.array else "two constants, no array"
    more = "".join(f", {one.name} with {len(one.values)}" for one in known.beside)
    said = f"{count}, {', '.join(f'{n} = {v}' for n, v in known.constants.items())}{more}; read from the code for "
    return [
        Proof("table", not wrong, "; ".join(wrong) or said + ", ".join(targets)),
        certificate_proof(package, known),
    ]


def _compiled_tables(
    package: Package, arrays: Mapping[str, str], target: str, build: Path
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Compile the tables for a target; read the arrays, given with their storage, and all macros of the header."""
    stated = header_constants(package)
    # C that holds the constants, then the arrays' sizes in bytes, and keeps the arrays
    held = [f"(uint32_t)({name})" for name in stated] + [f"(uint32_t)sizeof({name})" for name in arrays]
    declared = f"const uint32_t {CONSTANTS}[{len(held)}]"
    keep = "".join(
        f"    if (which == {k}U) {{\n        place = (uintptr_t){name};\n    }}\n" for k, name in enumerate(arrays, 1)
    )
    source, out = build / f"held-{target}.c", build / f"held-{target}.elf"
    source.write_text(
        f'#include <stdint.h>\n#include "{header_of(package).name}"\n'
        f"extern {declared};\n{declared} = {{ {', '.join(held)} }};\n"
        f"uintptr_t {ENTRY}(uint32_t which);\nuintptr_t {ENTRY}(uint32_t which)\n{{\n"
        f"    uintptr_t place = (uintptr_t){CONSTANTS} + which;\n{keep}    return place;\n}}\n",
        "utf-8",
    )
    sources = [*(path for path in package.sources if path.name == f"{package.prefix}tables.c"), source]
    if target == HOST:
        library = load_host(compile_host(sources, package.include, out.with_suffix(".so")))
        read: Callable[[str, int], bytes] = partial(_host_symbol, library)
    else:
        made = compile_elf(TARGETS[target], sources, package.include, ENTRY, out)
        read = partial(symbol, read_elf(made.read_bytes()))
    found = unpack(read(CONSTANTS, 4 * (len(stated) + len(arrays))), "u32")
    sizes = zip(found[len(stated) :], arrays.items(), strict=True)
    values = {name: unpack(read(name, size), storage) for size, (name, storage) in sizes}
    signs = zip(stated.items(), found, strict=False)
    return values, {name: value - (2**32 if number < 0 else 0) for (name, number), value in signs}


def _host_symbol(library: ctypes.CDLL, name: str, size: int) -> bytes:
    return ctypes.string_at(ctypes.addressof(ctypes.c_uint8.in_dll(library, name)), size)


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


def table_in(program: Program, package: Package) -> "NoiseTable":
    """Certify the table that a linked program holds; FailedProofError where it is not the package's."""
    known = read_tables(package)
    table = known.noise.table
    arrays = {}
    if known.array:
        arrays[table.name] = unpack(symbol(program, table.name, len(known.contents[table.name])), table.storage)
    return certify_held(arrays, header_constants(package), known, package, "the program")


def certify_held(
    arrays: Mapping[str, tuple[int, ...]],
    constants: Mapping[str, int],
    known: PackageTables,
    package: Package,
    where: str,
) -> "NoiseTable":
    """Certify the noise table that is held, and compare the arrays beside it where they are given.

    FailedProofError, which names what is not as the files say.
    """
    table_name, own = known.noise.table.name, noise_macros(package, constants)
    file = package.table_file
    assert file is not None
    name, lead = file.relative_to(package.folder).as_posix(), f"{package.prefix}NOISE_".upper()
    wanted = [(lead + one.upper(), own.get(one), value, name) for one, value in known.macros.items()]
    contents = [(table_name, arrays.get(table_name, ()), known.array, name)]
    for one in known.beside:
        if one.name in arrays:
            other = package.sketch_file or package.encoder_file
            assert other is not None
            path = other.relative_to(package.folder).as_posix()
            wanted += [(macro, constants.get(macro), value, path) for macro, value in one.constants]
            contents.append((one.name, arrays[one.name], one.values, path))
    wrong = [f"{macro} is {got} in {where} and {value} by {path}" for macro, got, value, path in wanted if got != value]
    for array, found, right, path in contents:
        if found != right:
            pairs = enumerate(zip(found, right, strict=False))
            first = next((i for i, (a, b) in pairs if a != b), min(len(found), len(right)))
            wrong.append(f"{array}[{first}] in {where} is not that of {path}")
    try:
        made = known.table.from_c(arrays.get(table_name, ()), own)
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
    """Prove that everything that is said of the table is what it proves: in its file, the manifest and the headers."""
    file, certificate, table, untrue = package.table_file, known.table.certificate, known.table, []
    assert file is not None and certificate is not None
    written = read_table(file).certificate
    for field in certificate.__dataclass_fields__:
        says, holds = getattr(written, field), getattr(certificate, field)
        if says != holds:
            untrue.append(f"{file.relative_to(package.folder)} says {field} {says}, its counts prove {holds}")
    untrue += _in_record(package.manifest.get("noise_table"), known.noise.record, "noise_table")
    sensor = package.manifest.get("sensor")
    if package.private and isinstance(sensor, dict):
        untrue += _in_record(sensor, {"epsilon_of_a_release": str(certificate.epsilon_record)}, "sensor")
    about = comment(known.noise.table.about)
    files = [header_of(package), *(path for path in package.sources if path.name == f"{package.prefix}tables.c")]
    for path in files if known.array else files[:1]:
        if about not in path.read_text("utf-8"):
            name = path.relative_to(package.folder)
            untrue.append(f"the comment on the table in {name} is not what the table proves (epsilon, symbol values)")
    proved = f"a record is {certificate.epsilon_record}-private (pure)"
    if certificate.epsilon_record is None:
        proved = f"delta {certificate.delta_record} at epsilon {table.epsilon}"
    said = f"{proved}, {table.release} of {counted(table.features, 'feature')}; certified again from the code"
    return Proof("certificate", not untrue, "; ".join(untrue) or said)


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
