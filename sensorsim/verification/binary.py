"""Your compiler, your binary: a package proved as your own build has it.

`verify_with` compiles the package with a command line of yours; `verify_elf` takes the linked image that you flash. A
sensor is put through a life beside the firmware model; of single kernels every one that is there is run on vectors.
What the image executes is counted and priced as it stands in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import read_bounded, temporary_folder
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import counted
from sensorsim.codegen.manifest import Package, open_package
from sensorsim.language.kernel import Kernel
from sensorsim.machine.compilers import OwnCompiler
from sensorsim.machine.elf import MOST_BYTES, identify_core, read_elf
from sensorsim.machine.targets import Target, need_firmware_tools
from sensorsim.verification.bits import Effort, KernelResult, Work
from sensorsim.verification.findings import SCHEMA_VERSION, Proof, proof_facts
from sensorsim.verification.image import (
    STATEMENTS,
    Image,
    ImageWork,
    check_certain,
    firmware_in,
    link_package,
    not_proved,
    package_proofs,
    selftest_proofs,
    table_contents,
    table_places,
    table_proofs,
    with_symbols,
)
from sensorsim.verification.kernel_timing import describe_leaks
from sensorsim.verification.sensor_draws import draw_proof, packets_differ
from sensorsim.verification.sensor_life import Life, SensorBuild, as_built, run_life
from sensorsim.verification.sensor_timing import CallResult, Calls, timing_proofs, watch_calls
from sensorsim.verification.wiped import leftovers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Progress = Callable[[str, int, int], None]  # what is done, step, of how many
RELEASES, TRIALS, WIPES = 300, 60, 8
PACKETS = 10_000  # one after the other, beside those of a life
CALLED = ("open", "release")  # the functions of a sensor without which there is nothing to prove


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
    n, price = one.instructions, one.price
    return {
        "function": name,
        "target": target,
        "instructions_min": n.min if n else None,
        "instructions_mean": n.mean if n else None,
        "instructions_max": n.max if n else None,
        "cost_mean": price.mean if price else None,
        "cost_max": price.max if price else None,
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
        proofs = [*_of_kernels(results), *(proof for prove in STATEMENTS for proof in prove(image)), *of_package]
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
    parts = {*calls.functions, *table_contents(package)}
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
