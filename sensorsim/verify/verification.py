"""Verify a package: every file as export writes it, the table certified from the compiled bytes, every draw counted,
the self-test and every bit on every target, and what the code executes there."""

import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorsim.errors import FailedProofError, InputError
from sensorsim.export.manifest import Package, open_package
from sensorsim.machine.targets import HOST, SHOWN_FLAGS, compilers, targets_named
from sensorsim.verify.anew import check_tools
from sensorsim.verify.bits import Effort
from sensorsim.verify.proof import Proof
from sensorsim.verify.result import KernelResult
from sensorsim.verify.steps import Setup, Step, Steps
from sensorsim.verify.worker import HERE, Worker

Progress = Callable[[str, int, int], None]  # what is done, step, of how many
Doer = Steps | Worker
NAMED = 8  # files that the proof of the files names
NOT_DRAWN = "every draw: it runs on this machine, and host is not among the targets, or there is no certified release"


@dataclass(frozen=True)
class Verification:
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

    `jobs` processes share the work; 0: all of it in this one, but for the self-tests, which can be ended. `made` are
    the files as export makes them, where they are known. FailedProofError where the package's hashes do not hold; all
    else that does not hold is in the report. InputError where the question is wrong.
    """
    names = targets_named(targets)
    package = open_package(folder, trust)
    check_tools(package)
    with tempfile.TemporaryDirectory() as build:
        setup = Setup(folder, Path(build), tuple(names), effort or Effort(), seed, trust, made)
        run = _Run(package, setup, progress, jobs if HERE else 0)
        run.all()
        return run.report()


class _Run:
    """All steps of a verification, and what came of them."""

    def __init__(self, package: Package, setup: Setup, progress: Progress | None, jobs: int) -> None:
        self.package, self.setup, self.progress, self.jobs = package, setup, progress, jobs
        self.found: dict[Step, Any] = {}  # an answer, or the error in its place
        self.lock, self.tested, self.stopped = threading.Lock(), threading.Event(), threading.Event()
        self.waiting = _groups(package, setup)
        self.steps = sum(map(len, self.waiting))
        self.workers: list[Worker] = []

    def all(self) -> None:
        try:
            if self.jobs:
                self._in_processes()
            else:
                self._here()
        finally:
            self.stopped.set()
            for worker in self.workers:
                worker.end()

    def _here(self) -> None:
        own = Steps(self.setup, "here")
        apart = Worker(self.setup, "apart") if HERE else None
        self.workers = [apart] if apart else []
        while self.waiting:
            group = self.waiting.pop(0)
            self._group(group, apart if apart and group[0].what == "selftest" else own)

    def _in_processes(self) -> None:
        self.workers = [Worker(self.setup, f"worker{number}") for number in range(self.jobs)]
        threads = [threading.Thread(target=self._serve, args=(worker,), daemon=True) for worker in self.workers]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):  # so that Ctrl-C is heard
            for thread in threads:
                thread.join(0.2)

    def _serve(self, worker: Worker) -> None:
        while not self.stopped.is_set():
            with self.lock:
                if not self.waiting:
                    return
                group = self.waiting.pop(0)
            if group[0].what == "bits":
                self.tested.wait()  # what loops for ever is found by a self-test, which is ended
            self._group(group, worker)

    def _group(self, group: Sequence[Step], doer: Doer) -> None:
        for step in group:
            if self.stopped.is_set():
                return
            if self.progress:
                with self.lock:
                    self.progress(step.about, len(self.found), self.steps)
            answer = self._answer(step, doer)
            with self.lock:
                self.found[step] = answer
        if group[0].what == "selftest":
            self.tested.set()

    def _answer(self, step: Step, doer: Doer) -> Any:
        if step.what in ("bits", "ubsan") and self._fails_selftest(step.target):
            return None
        try:
            return doer.do(step)
        except InputError as error:
            return error
        except Exception as error:
            if isinstance(doer, Steps) and not self._altered():
                raise  # a mistake of ours, not of the package
            return error if isinstance(error, RuntimeError) else RuntimeError(f"{step.about}: {error!r}")

    def _fails_selftest(self, target: str) -> bool:
        """Whether the target's self-test failed; for a step without a target, any of them."""
        tests = [(step, answer) for step, answer in self.found.items() if step.what == "selftest"]
        return any(isinstance(answer, Exception) for step, answer in tests if target in ("", step.target))

    def _altered(self) -> bool:
        """Whether the package is not what export writes: then whatever goes wrong with it is its own fault."""
        answer = self.found.get(self._of("anew")[0])
        return isinstance(answer, FailedProofError) or (isinstance(answer, list) and bool(answer))

    def report(self) -> Verification:
        """Everything in the order of the question; raises what is no fault of the package."""
        altered = self._altered()
        for step, answer in self.found.items():
            proof = isinstance(answer, FailedProofError) or (altered and step.what != "anew")
            if isinstance(answer, Exception) and not proof:
                raise answer
        bits = [(step, self.found.get(step)) for step in self._of("bits")]
        results = tuple(answer for _, answer in bits if isinstance(answer, KernelResult))
        gcc, vectors = self.found[self._of("gcc")[0]], [self.found[step] for step in self._of("ubsan")]
        count = sum(number for number in vectors if isinstance(number, int))
        return Verification(
            str(self.setup.folder),
            compilers(self.setup.targets),
            SHOWN_FLAGS,
            gcc if isinstance(gcc, str) else None,
            count,
            results,
            tuple(self._proofs(results, count)),
            () if self._of("draw") else (NOT_DRAWN,),
        )

    def _proofs(self, results: Sequence[KernelResult], ubsan_vectors: int) -> Iterator[Proof]:
        yield self._files()
        for step in self._of("table") + self._of("draw"):
            answer, name = self.found[step], "table" if step.what == "table" else "every draw"
            yield from [Proof(name, False, str(answer))] if isinstance(answer, Exception) else answer
        targets = self.setup.targets
        tests = self._errors("selftest")
        yield Proof("self-test", not tests, "; ".join(tests) or f"on {', '.join(targets)}")
        wrong = self._errors("bits")
        wrong += [f"{r.differing_bits} bits of {r.kernel} differ on {r.target}" for r in results if r.differing_bits]
        if tests and not wrong:
            wrong = ["not compared where the self-test fails"]
        told = f"{sum(r.vectors for r in results)} vectors, {len(self.package.kernels)} kernels, {len(targets)} targets"
        yield Proof("bits", not wrong, "; ".join(wrong) or f"every bit is the same: {told}")
        yield from _paths(results)
        stops = self._errors("ubsan") + self._errors("gcc")
        if tests and not stops:
            stops = ["not run, because the self-test fails"]
        yield Proof(
            "UBSan", not stops, "; ".join(stops) or f"no undefined behaviour in {ubsan_vectors} vectors (trapping)"
        )

    def _files(self) -> Proof:
        answer = self.found[self._of("anew")[0]]
        if isinstance(answer, Exception):
            return Proof("files", False, str(answer))
        more = f" and {len(answer) - NAMED} more" if len(answer) > NAMED else ""
        whole = f"{len(self.package.manifest['files']) + 1} files, each byte as export writes it anew from the manifest"
        return Proof("files", not answer, "; ".join(answer[:NAMED]) + more or whole)

    def _of(self, what: str) -> list[Step]:
        return [step for group in _groups(self.package, self.setup) for step in group if step.what == what]

    def _errors(self, what: str) -> list[str]:
        found = [self.found.get(step) for step in self._of(what)]
        return list(dict.fromkeys(str(answer).rstrip(".") for answer in found if isinstance(answer, Exception)))


def _paths(results: Sequence[KernelResult]) -> Iterator[Proof]:
    """What the secrecy proof says that secrets never change, and the code as it ran."""
    proved = [result for result in results if result.proved_same_path]
    if not proved:
        return
    wrong = [f"{r.kernel} on {r.target}: {name} is proved and not so" for r in proved for name in r.contradicted]
    kernels = len({result.kernel for result in proved})
    yield Proof("path", not wrong, "; ".join(wrong) or f"secrets change no instruction of {kernels} kernels, as proved")


def _groups(package: Package, setup: Setup) -> list[list[Step]]:
    """The steps, in groups that one process does one after the other. Self-tests come before the kernels."""
    tests = [Step("selftest", f"self-test on {target}", target) for target in setup.targets]
    head = [
        [Step("anew", "the files, written anew")],
        tests,
        [Step("table", "the table in the code")],
        [Step("gcc", "warnings of gcc")],
    ]
    if HOST in setup.targets and package.table_file:
        head.append([Step("draw", "every draw")])
    for place, kernel in enumerate(package.kernels):
        steps = [Step("bits", f"{kernel.name} on {target}", target, place) for target in setup.targets]
        head.append([*steps, Step("ubsan", f"undefined behaviour in {kernel.name}", "", place)])
    return head
