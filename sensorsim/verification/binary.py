"""Your compiler, your binary: a package proved as your own build has it.

`verify_with` compiles the package with a command line of yours; `verify_elf` takes the linked image that you flash. A
sensor is put through a life beside the firmware model; of single kernels every one that is there is run on vectors.
What the image executes is counted and priced as it stands in it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import read_bounded, temporary_folder
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import counted
from sensorsim.codegen.manifest import Package, open_package
from sensorsim.codegen.sensor_package import firmware_of
from sensorsim.device.firmware import Firmware
from sensorsim.language.kernel import Kernel
from sensorsim.language.secrecy import unproved
from sensorsim.machine.compilers import OwnCompiler
from sensorsim.machine.elf import MOST_BYTES, Program, identify_core, read_elf
from sensorsim.machine.emulated_sensor import BOARD_ENTRY, board_entry
from sensorsim.machine.emulator import Machine
from sensorsim.machine.targets import Target, need_firmware_tools
from sensorsim.verification.bits import Effort, Work
from sensorsim.verification.kernel_timing import (
    SCHEMA_VERSION,
    KernelResult,
    Proof,
    describe_leaks,
    proof_facts,
    spread_cells,
)
from sensorsim.verification.package_checks import certificate_proof, differences, options_of, read_tables, table_in
from sensorsim.verification.sensor_draws import draw_proof, packets_differ
from sensorsim.verification.sensor_life import Life, SensorBuild, as_built, run_life
from sensorsim.verification.sensor_timing import CallResult, Calls, leftovers, timing_proofs, watch_calls
from sensorsim.verification.verification import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RELEASES, TRIALS, WIPES = 300, 60, 8
PACKETS = 10_000  # one after the other, beside those of a life
CALLED = ("open", "release")  # the functions of a sensor without which there is nothing to prove


@dataclass(frozen=True)
class Image:
    """A linked program that should hold a package."""

    program: Program
    target: Target
    package: Package

    @property
    def kernels(self) -> list[Kernel]:
        """Return the kernels of the package whose functions the image has; a sensor's are inside of its functions."""
        functions = self.package.names.functions
        return [one for one in self.package.kernels if self.package.private or functions[one] in self.program.symbols]


@dataclass(frozen=True, repr=False)
class BinaryReport(Result):
    """The proofs of one build. `flash_bytes` and `ram_bytes` are of the whole image."""

    image: str
    folder: str
    target: str
    compiler: str
    flags: str
    flash_bytes: int
    ram_bytes: int
    own_bytes: int | None  # of the sensor's functions that ran and its tables, where the image tells sizes
    proofs: tuple[Proof, ...]
    notes: tuple[str, ...] = ()
    life: Life | None = None
    calls: Calls | None = None
    kernels: tuple[KernelResult, ...] = ()
    absent: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # what was not proved

    @property
    def passed(self) -> bool:
        return all(proof.passed for proof in self.proofs)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each call of the sensor and each kernel."""
        calls = self.calls.results if self.calls else ()
        rows = [_row(self.target, one.call, one.paths, one) for one in calls]
        return rows + [_row(self.target, one.kernel, one.sequences_by_secret, one) for one in self.kernels]

    def to_dict(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "passed": self.passed, **asdict(self)}

    def title(self) -> str:
        return f"{self.image} on {self.target}: {'every proof holds' if self.passed else 'FAILED'}"

    def facts(self) -> dict[str, str]:
        return proof_facts(self.proofs, self.left_out)

    def figure(self) -> "Figure":
        """Draw the instructions of each function."""
        values: dict[str, float | None] = {row["function"]: row["instructions_mean"] for row in self.rows()}
        return bars(self.title(), values, "instructions of one call, mean over the inputs it was run on")


def _row(target: str, name: str, paths: int | None, one: KernelResult | CallResult) -> dict[str, Any]:
    return {
        "function": name,
        "target": target,
        **spread_cells("instructions", one.instructions),
        **spread_cells("cost", one.price, ("mean", "max")),
        "cost_unit": one.unit,
        "stack_bytes": one.stack_bytes,
        "paths": paths,
        "varying": " ".join(one.varying),
    }


def verify_elf(
    elf: Path,
    manifest: Path,
    symbols: Mapping[str, int] | None = None,
    target: str | None = None,
    progress: Progress | None = None,
    effort: Effort | None = None,
    seed: int = 0,
    trust: bool = False,
) -> BinaryReport:
    """Prove what a linked image holds of a package. Functions are found by name, or at the addresses of `symbols`."""
    try:
        program = read_elf(read_bounded(elf, MOST_BYTES))
    except OSError as error:
        raise InputError(f"{elf} cannot be read ({error.strerror}); give the linked ELF file.") from None
    except InputError as error:
        said = str(error)
        raise InputError(said if elf.name in said else f"{elf.name}: {said}") from None
    program = with_symbols(program, symbols or {})
    core = identify_core(program, target)
    package, say, of_package = _open(manifest if manifest.is_dir() else manifest.parent, trust, progress)
    image = Image(program, core, package)
    with temporary_folder() as build:
        report = BinaryReport(str(elf), str(package.folder), core.name, "", "", program.flash_bytes, program.ram_bytes,
                              None, ())  # fmt: skip
        if package.private:
            report = _sensor(report, image, say)
            return replace(report, proofs=(*report.proofs, *selftest_proofs(image), *of_package))
        work = ImageWork(package, Path(build), effort or Effort(), seed, program)
        present = image.kernels
        absent = [package.names.functions[one] for one in package.kernels if one not in present]
        if not present:
            raise InputError(
                f"{elf} has none of the package's functions ({', '.join(absent)}); give the image that uses them, or "
                f"their addresses as --symbol {absent[0]}=0x8000124."
            )
        for one in present:
            check_certain(program, package.names.functions[one])
        results = [_step(say, work, core, one, place, len(present)) for place, one in enumerate(present)]
        proofs = [*_of_kernels(results), *table_proofs(image), *selftest_proofs(image), *of_package]
        report = replace(report, left_out=not_proved(package), absent=tuple(absent))
        return replace(report, proofs=tuple(proofs), kernels=tuple(results))


def verify_with(
    folder: Path,
    command: str,
    target: str | None = None,
    progress: Progress | None = None,
    effort: Effort | None = None,
    seed: int = 0,
    trust: bool = False,
) -> BinaryReport:
    """Prove a package as a compiler of yours builds it."""
    compiler = OwnCompiler(command)
    package, say, of_package = _open(folder, trust, progress)
    with temporary_folder() as name:
        build = Path(name)
        say("compile", 0, 1)
        program, core = link_package(package, compiler, build, target)
        report = BinaryReport(
            command, str(folder), core.name, compiler.version(), compiler.flags, program.flash_bytes,
            program.ram_bytes, None, (),
        )  # fmt: skip
        image = Image(program, core, package)
        if package.private:
            report = _sensor(report, image, say)
        else:
            for one in package.kernels:
                if (function := package.names.functions[one]) not in program.symbols:
                    raise InputError(
                        f"the compiler left no function {function} in the image, or not its name; take what strips "
                        "names, such as -s, out of --cc."
                    )
            report = replace(report, proofs=tuple(table_proofs(image)), left_out=not_proved(package))
        report = replace(report, proofs=(*report.proofs, *of_package))
        work = Work(package, build, effort or Effort(), seed, compiler)
        try:
            results = [_step(say, work, core, one, k, len(package.kernels)) for k, one in enumerate(package.kernels)]
        except FailedProofError as error:  # the self-test
            return replace(report, proofs=(*report.proofs, Proof("self-test", False, str(error))))
        more = [*_of_kernels(results), Proof("self-test", True, f"every vector of it on {core.name}")]
        return replace(report, proofs=(*report.proofs, *more), kernels=tuple(results))


def _open(folder: Path, trust: bool, progress: Progress | None) -> tuple[Package, Progress, list[Proof]]:
    """Open the package; return it, the progress function, and the proofs that do not depend on a build."""
    need_firmware_tools()
    package, say = open_package(folder, trust), progress or (lambda what, step, steps: None)
    say("the package's files", 0, 1)
    return package, say, package_proofs(package)


def _step(say: Progress, work: Work, core: Target, kernel: Kernel, place: int, steps: int) -> KernelResult:
    say(f"{kernel.name} on {core.name}", place, steps)
    return work.on_core(core, kernel)


def _sensor(report: BinaryReport, image: Image, say: Progress) -> BinaryReport:
    """Prove the whole sensor: its life, its calls, its path, its table."""
    program, package, prefix = image.program, image.package, image.package.prefix
    build = SensorBuild(image.target, program, firmware_in(package), prefix)
    report = replace(report, left_out=not_proved(package))
    for call in CALLED:
        name = f"{prefix}sensor_{call}"
        if name not in program.symbols:
            raise InputError(
                f"{report.image} has no function {name}: a linker or optimiser may have taken it away; keep it, or say "
                f"where it is with --symbol {name}=0x8000124."
            )
        check_certain(program, name)
    proofs = table_proofs(image)
    try:
        say("budget and identity", 0, 5)
        build, notes = as_built(build)
        say("a life beside the model", 1, 5)
        life = run_life(build, RELEASES)
        say("many packets", 2, 5)
        wrong = life.difference or packets_differ(build, PACKETS)
        told = f"tried {life.releases + PACKETS} packets, {life.resets} resets and {life.cuts} power cuts, "
        proofs.insert(0, Proof("bits", not wrong, wrong or f"{told}all as the model's"))
        report = replace(report, notes=notes, life=life, proofs=tuple(proofs))
        if life.difference:
            return report
        say("edges of the table", 3, 5)
        drawn = draw_proof(build, table_places(program, package))
        say("paths", 4, 5)
        calls = watch_calls(build, TRIALS)
    except FailedProofError as error:
        others = [proof for proof in proofs if proof.name != "bits"]
        return replace(report, proofs=(Proof("bits", False, str(error)), *others))
    left = leftovers(build, WIPES)
    wiped = Proof(
        "wiped", not left, left or f"no key, word, entropy or record is left in memory after {WIPES} releases"
    )
    proofs[1:1] = [drawn, *timing_proofs(calls, package), wiped]
    parts = {*calls.functions, *(read_tables(package).arrays if package.table_file else ())}
    own = sum(size for name, (_, size) in program.symbols.items() if name in parts)
    return replace(report, calls=calls, own_bytes=own or None, proofs=tuple(proofs))


def _of_kernels(results: list[KernelResult]) -> list[Proof]:
    wrong = [f"{one.kernel}: {one.differing_bits} bits differ" for one in results if one.differing_bits]
    count = sum(one.vectors for one in results)
    paths = describe_leaks(results)
    return [
        Proof(
            "kernels",
            not wrong,
            "; ".join(wrong) or f"{counted(len(results), 'kernel')}, {count} vectors, every bit the same",
        ),
        Proof("kernels' paths", not paths, "; ".join(paths) or "secrets change nothing but what is declared, as tried"),
    ]


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
    with temporary_folder() as copies:
        return firmware_of(options_of(package, Path(copies)))


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


def table_proofs(image: Image) -> list[Proof]:
    """Prove the table in the image by certifying it; compare the arrays of an encoder or a sketch beside it."""
    package = image.package
    if package.table_file is None or not any(kernel in image.kernels for kernel in read_tables(package).noise.users):
        return []
    known, found = read_tables(package), image.program
    wanted, beside = known.contents, {one.name for one in known.beside}
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


def table_places(program: Program, package: Package) -> list[int]:
    """Find where the noise table may lie: at its symbol, or wherever its bytes are in a file without one."""
    known = read_tables(package)
    name = known.noise.table.name
    if not known.array:
        return []
    content, found = known.contents[name], []
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
