"""A linked image and the package that it should hold: which symbols are where, and what its tables prove."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import temporary_folder
from sensorsim.codegen.manifest import Package
from sensorsim.codegen.sensor_package import firmware_of
from sensorsim.device.firmware import Firmware
from sensorsim.language.kernel import Kernel
from sensorsim.language.secrecy import unproved
from sensorsim.machine.compilers import OwnCompiler
from sensorsim.machine.elf import Program, identify_core, read_elf
from sensorsim.machine.emulated_sensor import BOARD_ENTRY, board_entry
from sensorsim.machine.emulator import Machine
from sensorsim.machine.targets import Target
from sensorsim.verification.bits import Effort, KernelResult, Work
from sensorsim.verification.findings import Proof
from sensorsim.verification.reproduce import differences, options_of
from sensorsim.verification.table_in_code import certificate_proof, pack_numbers, read_tables, table_in


@dataclass(frozen=True)
class Image:
    """A linked program that should hold a package: what a `Statement` about a build is made of."""

    program: Program
    target: Target
    package: Package

    @property
    def kernels(self) -> list[Kernel]:
        """Return the kernels of the package whose functions the image has; a sensor's are inside of its functions."""
        functions = self.package.names.functions
        return [one for one in self.package.kernels if self.package.private or functions[one] in self.program.symbols]


Statement = Callable[[Image], list[Proof]]  # proves something of a build; no proof where there is nothing to prove


def with_symbols(program: Program, given: Mapping[str, int]) -> Program:
    """Return the program with symbols at other addresses, each of which must lie in it."""
    for name, address in given.items():
        if not any(section.address <= address & ~1 < section.end for section in program.sections):
            raise InputError(f"--symbol {name}=0x{address:x} is no address in the image; look at its map file.")
    known = program.symbols | {name: (address, program.symbols.get(name, (0, 0))[1]) for name, address in given.items()}
    doubtful = {name: places for name, places in program.doubtful.items() if name not in given}
    return replace(program, symbols=known, doubtful=doubtful)


def firmware_in(package: Package) -> Firmware:
    """Return the firmware that a sensor's package binds, with the proof of its table."""
    with temporary_folder() as name:
        return firmware_of(options_of(package, Path(name)))


def package_proofs(package: Package) -> list[Proof]:
    """Prove what does not depend on a build: files, secrecy, and the statements about the table."""
    try:
        wrong = differences(package)
    except FailedProofError as error:
        wrong = [str(error)]
    told = "every file is as export writes it from the manifest, byte for byte"
    proofs = [Proof("files", not wrong, "; ".join(wrong) or told)]
    if leaks := unproved({kernel.name: kernel.secrecy().verdict for kernel in package.kernels}):
        proofs.append(Proof("secrecy", False, "; ".join(leaks)))
    if package.table_file is not None:
        try:
            said = certificate_proof(package, read_tables(package))  # its bytes in the build are another proof
            proofs.append(replace(said, detail=said.detail.replace("from the code", "from its file")))
        except FailedProofError as error:
            proofs.append(Proof("certificate", False, str(error)))
    return proofs


def not_proved(package: Package) -> tuple[str, ...]:
    """Return what nobody may take as proved of a build."""
    whole = f"`sensorsim verify {package.folder}` counts them as compiled for this machine"
    found = (
        [f"every draw of this build: only those that were tried are compared; {whole}"] if package.table_file else []
    )
    more = ["what is left in registers after a call", "every path and address: those of the trials are compared"]
    return (*found, *(more if package.private else more[1:]))


class ImageWork(Work):
    """Kernels as a linked image has them: nothing is compiled."""

    def __init__(self, package: Package, build: Path, effort: Effort, seed: int, program: Program) -> None:
        super().__init__(package, build, effort, seed)
        self.program = program

    def machine(self, target: Target, kernel: Kernel, options: Any = ()) -> Machine:
        return Machine(target, self.program)

    def selftest_on(self, target: Target) -> None:
        """Do nothing: the image's self-test runs once, in `selftest_proofs`."""

    def on_core(self, target: Target, kernel: Kernel) -> KernelResult:
        result = super().on_core(target, kernel)  # its flash, RAM and runtime are the whole image's
        size = self.program.symbols[self.package.names.functions[kernel]][1]
        return replace(result, flash_bytes=size or None, ram_bytes=None, runtime=())


def check_certain(program: Program, name: str) -> None:
    if name in program.doubtful:
        places = ", ".join(f"0x{address:x}" for address in program.doubtful[name])
        raise InputError(f"the image has several functions {name} ({places}); say which with --symbol {name}=….")


def link_package(package: Package, compiler: OwnCompiler, build: Path, target: str | None) -> tuple[Program, Target]:
    """Link all of the package with the user's compiler: the sensor, or a file that holds every kernel."""
    entry, sources = BOARD_ENTRY, list(package.sources)
    if package.private:
        sources.append(board_entry(package.prefix, build, close=True))
    else:
        entry = f"{package.prefix}whole"
        table = [f"{package.prefix}noise_table"] if package.table_file and read_tables(package).array else []
        functions = [package.names.functions[kernel] for kernel in package.kernels]
        lines = [
            f"const void *volatile {entry}_{place} = (const void *){name};" for place, name in enumerate(functions)
        ]
        lines += [f"const void *volatile {entry}_table = (const void *){name};" for name in table]
        used = " ".join(f"(void){line.split()[3]};" for line in lines)
        whole = build / "whole.c"
        text = f"{package.kernel_header}\n" + "\n".join(f"static {line}" for line in lines)
        whole.write_text(f"{text}\nvoid {entry}(void);\nvoid {entry}(void)\n{{\n    {used}\n}}\n", "utf-8")
        sources.append(whole)
    path = compiler.elf(None, sources, package.include, entry, build / "whole.elf")
    program = read_elf(path.read_bytes())
    return program, identify_core(program, target)


def selftest_proofs(image: Image) -> list[Proof]:
    """Run the package's self-test where the image holds it."""
    name = f"{image.package.prefix}selftest"
    if name not in image.program.symbols:
        return []
    try:
        number = Machine(image.target, image.program).call(name, [])
    except InputError as error:
        return [Proof("self-test", False, str(error))]
    told = f"{name} fails at vector {number}" if number else f"{name} of the image answers 0"
    return [Proof("self-test", not number, told)]


def table_contents(package: Package) -> dict[str, bytes]:
    """Return the bytes of the noise table and of the arrays beside it, by their names in C."""
    if package.table_file is None:
        return {}
    known = read_tables(package)
    own = {known.noise.table.name: pack_numbers(known.array, known.noise.table.storage)} if known.array else {}
    return own | {one.name: pack_numbers(one.values, one.storage) for one in known.beside}


def table_proofs(image: Image) -> list[Proof]:
    """Prove the table in the image by certifying it; compare the arrays of an encoder or a sketch beside it."""
    package = image.package
    if package.table_file is None or not any(kernel in image.kernels for kernel in read_tables(package).noise.users):
        return []
    wanted, found = table_contents(package), image.program
    beside = {one.name for one in read_tables(package).beside}
    for name, content in wanted.items():
        found = _locate(found, name, content)
        address, _ = found.symbols.get(name, (0, 0))
        if name not in found.symbols:
            return [Proof("table", False, f"{name} is not in the image: neither its name nor its bytes")]
        if name in beside and _bytes(found, address, len(content)) != content:
            file = package.sketch_file or package.encoder_file
            return [Proof("table", False, f"{name} in the image is not that of {file}")]
    try:
        table = table_in(found, package)
    except FailedProofError as error:
        return [Proof("table", False, str(error))]
    assert table.certificate is not None
    epsilon = table.certificate.epsilon_record
    return [Proof("table", True, f"{sum(map(len, wanted.values()))} bytes in the image prove epsilon {epsilon}")]


STATEMENTS: tuple[Statement, ...] = (table_proofs, selftest_proofs)  # in the order of a report


def table_places(program: Program, package: Package) -> list[int]:
    """Find where the noise table may lie: at its symbol, or wherever its bytes are in a file without one."""
    known = read_tables(package)
    name = known.noise.table.name
    if not known.array:
        return []
    content, found = pack_numbers(known.array, known.noise.table.storage), []
    if name in program.symbols:
        place, _ = program.symbols[name]
        return [place] if _bytes(program, place, len(content)) else []
    for section in program.sections:
        place = section.data.find(content)
        while place >= 0:
            found.append(section.address + place)
            place = section.data.find(content, place + 1)
    return found


def _bytes(program: Program, address: int, size: int) -> bytes:
    try:
        return program.read(address, size)
    except InputError:
        return b""


def _locate(program: Program, name: str, content: bytes) -> Program:
    """Add a symbol for the bytes: their own, or the place where they are in a file without symbols."""
    if name in program.symbols:
        address, size = program.symbols[name]
        return replace(program, symbols=program.symbols | {name: (address, size or len(content))})
    for section in program.sections:
        place = section.data.find(content)
        if place >= 0:
            return replace(program, symbols=program.symbols | {name: (section.address + place, len(content))})
    return program
