"""Verify a package: every file as export writes it, the table certified from the compiled bytes, every draw counted,
the self-test and every bit on every target, and what the code executes there.

`CHECKS` lists all checks in the order of a report. A check runs in steps, each of which can run in a process of its
own: picklable in, picklable out. To add one, write a function that answers a step and one that makes proofs of the
answers, and add an entry.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import FailedProofError
from sensorsim._util.files import temporary_folder
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import counted
from sensorsim.codegen.kernels_package import make_package
from sensorsim.codegen.manifest import Package, open_package
from sensorsim.codegen.package_options import Load, Options
from sensorsim.codegen.write import files_in
from sensorsim.language.secrecy import unproved
from sensorsim.machine.targets import (
    CORES,
    HOST,
    SHOWN_FLAGS,
    TARGETS,
    check_targets,
    check_with_gcc,
    compile_host,
    name_compilers,
)
from sensorsim.verification.bits import Effort, Work
from sensorsim.verification.kernel_timing import SCHEMA_VERSION, KernelResult, Proof, describe_leaks, proof_facts
from sensorsim.verification.package_checks import check_tools, differences, table_proofs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.verification.step_runner import Run

Progress = Callable[[str, int, int], None]  # what is done, step, of how many
SECONDS, SELFTEST_SECONDS = 1200, 60  # that one step, and a self-test, may take
NAMED = 8  # files that the proof of the files names
NOT_RUN = "not run: the files differ"
NOT_DRAWN = "every draw: it runs on this machine, and host is not among the targets"
NO_TABLE = "every draw: the package has no certified table"
CONTENTS = "contents"  # the step that opens the package
CALL_SELFTEST = "import ctypes, sys; print(getattr(ctypes.CDLL(sys.argv[1]), sys.argv[2])())"


@dataclass(frozen=True)
class Setup:
    """The settings that all steps of one verification share."""

    folder: Path
    build: Path
    targets: tuple[str, ...]
    effort: Effort
    seed: int
    trust: bool
    made: Mapping[str, str] | None = None  # the files as export makes them, where they are known already


@dataclass(frozen=True)
class Step:
    """One step of a check; a kernel is given by its index in the package."""

    check: str
    about: str  # for the progress bar and for messages
    target: str = ""
    kernel: int = 0

    @property
    def on_host(self) -> bool:
        """Return whether C of the package runs on this machine, or is loaded, which can run it as well."""
        return self.target == HOST


@dataclass(frozen=True)
class Contents:
    """A summary of a package, for a process that loads nothing of it."""

    kernels: tuple[str, ...]
    table: bool
    unproved: tuple[str, ...] = ()  # of their secrecy


class Workspace:
    """Does steps one after the other, in a folder of its own; what was built or made once serves the later ones."""

    def __init__(self, setup: Setup, name: str) -> None:
        self.setup = setup
        self.build = setup.build / name
        self.build.mkdir()
        self.package = open_package(setup.folder, setup.trust)
        self.work = Work(self.package, self.build, setup.effort, setup.seed)

    def do(self, step: Step) -> Any:
        """Return the answer of a step."""
        if step.check != CONTENTS:
            return BY_NAME[step.check].run(self, step)
        check_tools(self.package)
        kernels = self.package.kernels
        verdicts = {kernel.name: kernel.secrecy().verdict for kernel in kernels}
        names = tuple(kernel.name for kernel in kernels)
        return Contents(names, self.package.table_file is not None, tuple(unproved(verdicts)))


@dataclass(frozen=True)
class Check:
    """A check: its name, what it needs, how a step of it runs, and the proofs that follow from all of its answers.

    An answer is a value, or the exception in its place; None where a check that it needs has failed.
    """

    name: str
    about: str  # of a step, with {kernel} and {target}
    run: Callable[[Workspace, Step], Any]
    conclude: Callable[["Run"], Iterator[Proof]]
    each: tuple[str, ...] = ()  # a step for each kernel, for each target, or for each of both
    needs: tuple[str, ...] = ()  # checks that must have passed on the same target; C runs on the host after the files
    host_only: bool = False
    seconds: int = SECONDS


def make_files(space: Workspace, step: Step) -> Any:
    """Return the files as export makes them, or a list that says why it makes none."""
    if space.setup.made is not None:
        return dict(space.setup.made)
    made: dict[str, str] = {}

    def make(options: Options, load: Load, as_data: bool) -> Mapping[str, str]:
        made.update(make_package(options, load, as_data))
        return made

    refused = differences(space.package, make, space.build)
    return made or refused


def conclude_files(run: "Run") -> Iterator[Proof]:
    """Prove that every file is as export writes it; the answer is a list of differences."""
    (answer,) = run.answers("files")
    if isinstance(answer, Exception):
        yield Proof("files", False, str(answer))
        return
    more = f" and {len(answer) - NAMED} more" if len(answer) > NAMED else ""
    whole = f"{len(list(files_in(run.setup.folder)))} files, each byte as export writes it anew from the manifest"
    yield Proof("files", not answer, "; ".join(answer[:NAMED]) + more or whole)


def check_table(space: Workspace, step: Step) -> Any:
    """Certify the table in the code of every target."""
    others = [name for name in space.setup.targets if name in TARGETS or (name == HOST and step.on_host)]
    return table_proofs(space.package, others or [next(iter(TARGETS))], space.build)


def check_draws(space: Workspace, step: Step) -> Any:
    """Count every draw of the compiled release."""
    from sensorsim.verification.every_draw import draw_proof

    return draw_proof(space.package, space.build, space.setup.seed)


def conclude_proofs(name: str) -> Callable[["Run"], Iterator[Proof]]:
    """Conclude a check whose one step answers with proofs."""

    def conclude(run: "Run") -> Iterator[Proof]:
        for answer in run.answers(name):
            yield from [Proof(name, False, str(answer))] if isinstance(answer, Exception) else answer

    return conclude


def check_selftest(space: Workspace, step: Step) -> None:
    """Run the package's self-test."""
    if step.on_host:
        space.work.check_selftest(HOST, selftest_on_host(space.package, space.build))
    else:
        space.work.selftest_on(CORES[step.target])


def selftest_on_host(package: Package, build: Path) -> int:
    """Run the self-test on this machine in a process that can be ended; return its answer."""
    name = f"{package.prefix}selftest"
    library = compile_host([*package.sources, *package.selftest], package.include, build / "selftest-host.so")
    command = [sys.executable, "-c", CALL_SELFTEST, str(library), name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SELFTEST_SECONDS)
    except subprocess.TimeoutExpired:
        raise FailedProofError(f"the self-test gives no answer on {HOST} in {SELFTEST_SECONDS} s.") from None
    if done.returncode or not done.stdout.strip().lstrip("-").isdigit():
        raise FailedProofError(f"the self-test ends the process on {HOST} (exit {done.returncode}).")
    return int(done.stdout) & 0xFFFFFFFF


def conclude_selftest(run: "Run") -> Iterator[Proof]:
    """Prove that the self-test passes on every target on which it ran."""
    wrong, targets = run.errors("self-test"), run.tested_targets
    if targets:
        yield Proof("self-test", not wrong, "; ".join(wrong) or f"on {', '.join(targets)}")


def check_bits(space: Workspace, step: Step) -> KernelResult:
    """Compare one kernel's bits on one target, and count and watch what it executes."""
    kernel = space.package.kernels[step.kernel]
    if step.on_host:
        return space.work.on_host(kernel)
    (space.build / f"selftest-{step.target}.elf").touch()  # it has run already, maybe in another process
    return space.work.on_core(CORES[step.target], kernel)


def conclude_bits(run: "Run") -> Iterator[Proof]:
    """Prove that all bits agree, that the source leaks no secret, and that secrets change no path."""
    results, targets = run.results, run.tested_targets
    wrong = run.errors("bits")
    wrong += [f"{r.differing_bits} bits of {r.kernel} differ on {r.target}" for r in results if r.differing_bits]
    if run.errors("self-test") and not wrong:
        wrong = ["not compared where the self-test fails"]
    kernels = counted(len(run.contents.kernels), "kernel")
    said = f"{sum(result.vectors for result in results)} vectors, {kernels}, {counted(len(targets), 'target')}"
    if targets:
        yield Proof("bits", not wrong, "; ".join(wrong) or f"every bit is the same: {said}")
    if run.contents.unproved:
        yield Proof("secrecy", False, "; ".join(run.contents.unproved))
    yield from paths(results)


def paths(results: Sequence[KernelResult]) -> Iterator[Proof]:
    """Prove that secrets change no path, address or time that is not declared, in the code as it ran."""
    watched = [result for result in results if result.secrets and result.sequences is not None]
    if not watched:
        return
    tried = {result.kernel for result in watched if not result.proved_same_path}
    proved = {result.kernel for result in watched} - tried
    said = [f"secrets change no instruction of {counted(len(proved), 'kernel')}, as proved"] if proved else []
    said += [f"of {counted(len(tried), 'kernel')} they change nothing but what is declared, as tried"] if tried else []
    wrong = describe_leaks(watched)
    yield Proof("path", not wrong, "; ".join(wrong or said))


def check_undefined_behaviour(space: Workspace, step: Step) -> int:
    """Run one kernel on a build that traps on undefined behaviour; return the number of vectors."""
    return space.work.without_undefined_behaviour(space.package.kernels[step.kernel])


def conclude_undefined_behaviour(run: "Run") -> Iterator[Proof]:
    """Prove that no kernel has undefined behaviour, and that gcc has no warning."""
    answers, stops = run.answers("UBSan"), run.errors("UBSan") + run.errors("gcc")
    if any(answer is None for answer in answers) and not stops:
        stops = ["not run, because the self-test fails"]
    yield Proof(
        "UBSan", not stops, "; ".join(stops) or f"no undefined behaviour in {run.ubsan_vectors} vectors (trapping)"
    )


def check_gcc(space: Workspace, step: Step) -> str | None:
    """Compile everything with gcc, warnings as errors; return its version, None where there is no gcc."""
    package = space.package
    checked = [*package.sources, *package.kernel_sources(space.build), *package.selftest]
    return check_with_gcc(list(dict.fromkeys(checked)), package.include)


def conclude_nothing(run: "Run") -> Iterator[Proof]:
    """Conclude a check that is a part of another's proof."""
    yield from ()


CHECKS = (
    Check("files", "the files, written anew", make_files, conclude_files),
    Check("table", "the table in the code", check_table, conclude_proofs("table")),
    Check("every draw", "every draw", check_draws, conclude_proofs("every draw"), host_only=True),
    Check(
        *("self-test", "self-test on {target}", check_selftest, conclude_selftest, ("target",)),
        seconds=SELFTEST_SECONDS + 30,  # to compile it takes some seconds
    ),
    Check("bits", "{kernel} on {target}", check_bits, conclude_bits, ("kernel", "target"), ("self-test",)),
    Check(
        *("UBSan", "undefined behaviour in {kernel}", check_undefined_behaviour, conclude_undefined_behaviour),
        *(("kernel",), ("self-test",)),
    ),
    Check("gcc", "warnings of gcc", check_gcc, conclude_nothing),
)
BY_NAME = {check.name: check for check in CHECKS}


def groups(contents: Contents, setup: Setup) -> list[list[Step]]:
    """Return the steps in groups; one process does a group in order, as far as its steps can begin.

    Those on the host come late in their group: they wait until the files are known to be as export writes them.
    """
    made: dict[tuple[str, ...], list[Step]] = {}
    for check in CHECKS:
        targets: Sequence[str] = setup.targets if "target" in check.each else [""]
        if check.host_only:
            targets = [HOST] if HOST in setup.targets and contents.table else []
        if check.name == "table" and HOST in setup.targets:
            targets = [HOST]
        for place, kernel in enumerate(contents.kernels if "kernel" in check.each else [""]):
            for target in targets:
                step = Step(check.name, check.about.format(kernel=kernel, target=target), target, place)
                own = ("kernel", kernel, str(place)) if kernel else (check.name, "host" if step.on_host else "")
                made.setdefault(own, []).append(step)
    return [sorted(steps, key=lambda step: step.on_host) for steps in made.values()]


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """The whole report: what was proved, and every kernel on every target."""

    folder: str
    compiler: str
    flags: str
    gcc: str | None
    ubsan_vectors: int
    results: tuple[KernelResult, ...]
    proofs: tuple[Proof, ...] = ()
    left_out: tuple[str, ...] = ()  # what was not proved, and why

    @property
    def passed(self) -> bool:
        return all(result.passed for result in self.results) and all(proof.passed for proof in self.proofs)

    def proof(self, name: str) -> Proof:
        return next(proof for proof in self.proofs if proof.name == name)

    def title(self) -> str:
        return f"{self.folder}: {'every proof holds' if self.passed else 'FAILED'}"

    def facts(self) -> dict[str, str]:
        return proof_facts(self.proofs, self.left_out)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "folder": self.folder,
            "passed": self.passed,
            "proofs": [asdict(proof) for proof in self.proofs],
            "left_out": list(self.left_out),
            "compiler": self.compiler,
            "flags": self.flags,
            "gcc": self.gcc,
            "ubsan_vectors": self.ubsan_vectors,
            "results": [result.to_dict() for result in self.results],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each kernel on each target."""
        return [result.row() for result in self.results]

    def figure(self) -> "Figure":
        """Draw the instructions of one call of each kernel on each core."""
        counted = {f"{one.kernel}, {one.target}": one.instructions for one in self.results if one.instructions}
        values: dict[str, float | None] = {name: counts.mean for name, counts in counted.items()}
        axis = "instructions of one call, mean over the inputs it was run on"
        return bars(self.title(), values, axis if values else "no core was emulated, so no instruction was counted")


def verify(
    folder: Path,
    targets: Sequence[str],
    effort: Effort | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    trust: bool = False,
    jobs: int = 0,
    made: Mapping[str, str] | None = None,
) -> Verification:
    """Verify the package on the targets.

    `jobs` processes share the work; 0: one step after the other, in this one all that neither runs C of the package on
    this machine nor loads copies of kernels that it carries. `made` are the files as export makes them, where they are
    known. FailedProofError where the package's hashes do not hold; all else that does not hold is in the report.
    InputError where the question is wrong.
    """
    from sensorsim.verification.step_runner import Run

    names = check_targets(targets)
    with temporary_folder() as build:
        setup = Setup(folder, Path(build), tuple(names), effort or Effort(), seed, trust, made)
        run = Run(setup, progress, jobs)
        run.all()
        for step, answer in run.found.items():
            failed = isinstance(answer, FailedProofError) or (run.altered and step.check != "files")
            if isinstance(answer, Exception) and not failed:
                raise answer  # no fault of the package
        left_out = []
        if not run.of("every draw"):
            left_out.append(NOT_DRAWN if run.contents.table else NO_TABLE)
        kinds = [name for name in ("self-test", "bits", "every draw") if NOT_RUN in map(str, run.answers(name))]
        if kinds:
            kinds += ["the table in the code"] if run.contents.table else []
            left_out.append(f"{', '.join(kinds)}, on {HOST}: {NOT_RUN}")
        (gcc,) = run.answers("gcc")
        return Verification(
            str(folder),
            name_compilers(setup.targets),
            SHOWN_FLAGS,
            gcc if isinstance(gcc, str) else None,
            run.ubsan_vectors,
            run.results,
            tuple(proof for check in CHECKS for proof in check.conclude(run)),
            tuple(left_out),
        )
