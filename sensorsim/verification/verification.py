"""Verify a package: every file as export writes it, the table certified from the compiled bytes, every draw counted,
the self-test and every bit on every target, and what the code executes there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import FailedProofError
from sensorsim._util.files import temporary_folder
from sensorsim._util.results import Result, bars
from sensorsim._util.terminal import counted
from sensorsim.codegen.manifest import files_in
from sensorsim.machine.targets import HOST, SHOWN_FLAGS, check_targets, name_compilers
from sensorsim.verification.bits import Effort
from sensorsim.verification.findings import KernelResult, Proof, kernel_row, proof_facts, verification_data
from sensorsim.verification.kernel_timing import describe_leaks
from sensorsim.verification.step_runner import NOT_RUN, Progress, Run, is_failure
from sensorsim.verification.verification_steps import Contents, Setup, Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SORTS = {"selftest": "self-test", "bits": "bits", "draw": "every draw"}
NAMED = 8  # files that the proof of the files names
NOT_DRAWN = "every draw: it runs on this machine, and host is not among the targets"
NO_TABLE = "every draw: the package has no certified table"


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
        return verification_data(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each kernel on each target."""
        return [kernel_row(result) for result in self.results]

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
    names = check_targets(targets)
    with temporary_folder() as build:
        setup = Setup(folder, Path(build), tuple(names), effort or Effort(), seed, trust, made)
        run = Run(setup, progress, jobs)
        return _Report(setup, run, run.all()).whole()


class _Report:
    """Collects the answers of the steps into a report, in the order of the question."""

    def __init__(self, setup: Setup, run: Run, contents: Contents) -> None:
        self.setup, self.run, self.found, self.contents = setup, run, run.found, contents

    def whole(self) -> Verification:
        """Return the report; raise what is no fault of the package."""
        altered = self.run.altered
        for step, answer in self.found.items():
            proof = isinstance(answer, FailedProofError) or (altered and step.what != "anew")
            if isinstance(answer, Exception) and not proof:
                raise answer
        bits = [(step, self.found.get(step)) for step in self.run.of("bits")]
        results = tuple(answer for _, answer in bits if isinstance(answer, KernelResult))
        gcc, vectors = self.found[self.run.of("gcc")[0]], [self.found[step] for step in self.run.of("ubsan")]
        count = sum(number for number in vectors if isinstance(number, int))
        return Verification(
            str(self.setup.folder),
            name_compilers(self.setup.targets),
            SHOWN_FLAGS,
            gcc if isinstance(gcc, str) else None,
            count,
            results,
            tuple(self._proofs(results, count)),
            tuple(self._left_out()),
        )

    def _proofs(self, results: Sequence[KernelResult], ubsan_vectors: int) -> Iterator[Proof]:
        yield self._files()
        for step in self.run.of("table") + self.run.of("draw"):
            answer, name = self.found[step], "table" if step.what == "table" else "every draw"
            yield from [Proof(name, False, str(answer))] if isinstance(answer, Exception) else answer
        targets = [step.target for step in self.run.of("selftest") if not self._not_run(step)]
        tests = self._errors("selftest")
        if targets:
            yield Proof("self-test", not tests, "; ".join(tests) or f"on {', '.join(targets)}")
        wrong = self._errors("bits")
        wrong += [f"{r.differing_bits} bits of {r.kernel} differ on {r.target}" for r in results if r.differing_bits]
        if tests and not wrong:
            wrong = ["not compared where the self-test fails"]
        count, kernels = sum(result.vectors for result in results), len(self.contents.kernels)
        told = f"{count} vectors, {counted(kernels, 'kernel')}, {counted(len(targets), 'target')}"
        if targets:
            yield Proof("bits", not wrong, "; ".join(wrong) or f"every bit is the same: {told}")
        if unproved := self.contents.unproved:
            yield Proof("secrecy", False, "; ".join(unproved))
        yield from paths(results)
        stops = self._errors("ubsan") + self._errors("gcc")
        if any(self.found[step] is None for step in self.run.of("ubsan")) and not stops:
            stops = ["not run, because the self-test fails"]
        yield Proof(
            "UBSan", not stops, "; ".join(stops) or f"no undefined behaviour in {ubsan_vectors} vectors (trapping)"
        )

    def _files(self) -> Proof:
        answer = self.found[self.run.of("anew")[0]]
        if isinstance(answer, Exception):
            return Proof("files", False, str(answer))
        more = f" and {len(answer) - NAMED} more" if len(answer) > NAMED else ""
        count = len(list(files_in(self.setup.folder)))
        whole = f"{count} files, each byte as export writes it anew from the manifest"
        return Proof("files", not answer, "; ".join(answer[:NAMED]) + more or whole)

    def _left_out(self) -> Iterator[str]:
        """Yield what was not proved, and why."""
        if not self.run.of("draw"):
            yield NOT_DRAWN if self.contents.table else NO_TABLE
        names = [name for what, name in SORTS.items() if any(map(self._not_run, self.run.of(what)))]
        if names:
            names += ["the table in the code"] if self.contents.table else []
            yield f"{', '.join(names)}, on {HOST}: {NOT_RUN}"

    def _not_run(self, step: Step) -> bool:
        return str(self.found.get(step)) == NOT_RUN

    def _errors(self, what: str) -> list[str]:
        found = [self.found.get(step) for step in self.run.of(what)]
        return list(dict.fromkeys(str(answer).rstrip(".") for answer in found if is_failure(answer)))


def paths(results: Sequence[KernelResult]) -> Iterator[Proof]:
    """Tell whether secrets change a path, an address or a time that is not declared, in the code as it ran."""
    watched = [result for result in results if result.secrets and result.sequences is not None]
    if not watched:
        return
    tried = {result.kernel for result in watched if not result.proved_same_path}
    proved = {result.kernel for result in watched} - tried
    told = [f"secrets change no instruction of {counted(len(proved), 'kernel')}, as proved"] if proved else []
    told += [f"of {counted(len(tried), 'kernel')} they change nothing but what is declared, as tried"] if tried else []
    wrong = describe_leaks(watched)
    yield Proof("path", not wrong, "; ".join(wrong or told))
