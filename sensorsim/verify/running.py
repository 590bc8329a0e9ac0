"""Schedule the steps of a verification over worker processes.

The files are compared first: C of the package runs on this machine only if they are as export writes them. Until that
is known, and if they differ, it runs on emulated cores alone. It never runs in the process that asks, which compares
the files and makes the report; nor does that process load the copies of kernels in a package.
"""

import os
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any

from sensorsim._util import progress
from sensorsim._util.interrupts import delay_interrupts
from sensorsim.errors import FailedProofError, InputError
from sensorsim.export.origins import FOLDER
from sensorsim.verify.anew import compared
from sensorsim.verify.steps import Contents, Setup, Step, Steps, groups
from sensorsim.verify.worker import Worker

Progress = Callable[[str, int, int], None]  # what is done, step, of how many

HERE = os.name == "posix"  # elsewhere no process of its own can be started
NOT_RUN = "not run: the files differ"


class Run:
    """Run the steps in `jobs` processes; with 0 jobs, run those that execute nothing on the host in this process."""

    def __init__(self, setup: Setup, progress: Progress | None, jobs: int) -> None:
        self.setup, self.progress = setup, progress
        self.found: dict[Step, Any] = {}  # an answer, or the error in its place
        self.changed, self.stopped = threading.Condition(), threading.Event()
        self.workers = [Worker(setup, f"worker{number}") for number in range(max(1, jobs))] if HERE else []
        self.shared = bool(jobs) and HERE
        # Load copies of kernels here only if the caller made the package of them.
        self.copies = False
        with suppress(OSError):  # no valid path; reading the package reports it
            self.copies = HERE and setup.made is None and (setup.folder / FOLDER).exists()
        self.own: Steps | None = None
        self.waiting: list[list[Step]] = []
        self.groups: list[list[Step]] = []

    def all(self) -> Contents:
        """Run all steps, and return the contents of the package."""
        try:
            opener: Steps | Worker = self.workers[0] if self.copies else self._own()
            contents: Contents = opener.do(Step("contents", "the manifest"))
            self.groups = groups(contents, self.setup)
            self.waiting = [list(group) for group in self.groups]
            if self.shared:
                self._in_processes()
            else:
                self._serve(None)
            return contents
        finally:
            self.stopped.set()
            for worker in self.workers:
                worker.end()

    def of(self, what: str) -> list[Step]:
        """Return the steps of one kind, ordered as the targets were given."""
        steps = [step for group in self.groups for step in group if step.what == what]
        targets = self.setup.targets
        return sorted(steps, key=lambda step: (step.kernel, step.target in targets and targets.index(step.target)))

    @property
    def whole(self) -> bool:
        """Return whether every file is known to be as export writes it."""
        return self.found.get(self.of("anew")[0]) == []

    @property
    def altered(self) -> bool:
        """Return whether the package is known to differ from what export writes: then errors are its own fault."""
        answer = self.found.get(self.of("anew")[0])
        return isinstance(answer, FailedProofError) or (isinstance(answer, list) and bool(answer))

    def _own(self) -> Steps:
        self.own = self.own or Steps(self.setup, "here")
        return self.own

    def _in_processes(self) -> None:
        threads = [threading.Thread(target=self._serve, args=(worker,), daemon=True) for worker in self.workers]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):  # with a timeout, so that Ctrl-C works
            for thread in threads:
                thread.join(0.2)

    def _serve(self, worker: Worker | None) -> None:
        try:
            while group := self._taken():
                for step in group:
                    self._step(step, worker or self._doer(step))
        except BaseException:
            self.stopped.set()  # wake the other threads
            raise

    def _taken(self) -> list[Step]:
        """Wait for a group whose first steps can begin, and return these; return none when all are taken."""
        with self.changed:
            while self.waiting and not self.stopped.is_set():
                for group in self.waiting:
                    ready = next((k for k, step in enumerate(group) if not self._ready(step)), len(group))
                    if ready:
                        taken, group[:ready] = group[:ready], []
                        self.waiting = [rest for rest in self.waiting if rest]
                        return taken
                self.changed.wait(0.2)
        return []

    def _ready(self, step: Step) -> bool:
        """Return whether a step can begin: host code waits for the files, kernels wait for the self-tests."""
        needs = self.of("anew") if step.on_host else []
        if step.what in ("bits", "ubsan"):
            tests = self.of("selftest")
            cores = [test for test in tests if not test.on_host] or tests
            needs += [test for test in tests if test.target == step.target] if step.target else cores
        return all(need in self.found for need in needs)

    def _doer(self, step: Step) -> "Steps | Worker":
        """Choose the process of a step if there are no shared workers."""
        safe = self.whole and not step.on_host and step.what not in ("anew", "selftest")  # those two can be killed
        return self._own() if not self.workers or (safe and not self.copies) else self.workers[0]

    def _step(self, step: Step, doer: "Steps | Worker") -> None:
        if self.stopped.is_set():
            return
        if self.progress:
            with self.changed:
                self.progress(step.about, len(self.found), sum(map(len, self.groups)))
        with progress.step(step.about):  # shown if stderr is no terminal, which has no bar
            answer = self._answer(step, doer)
        with self.changed:
            self.found[step] = answer
            self.changed.notify_all()

    def _answer(self, step: Step, doer: "Steps | Worker") -> Any:
        if step.what in ("bits", "ubsan") and self._fails_selftest(step.target):
            return None
        if step.on_host and not self.whole:
            if step.what != "table":
                return FailedProofError(NOT_RUN)
            step = Step("table", step.about)  # read from the code for the cores alone
        try:
            with delay_interrupts() if doer is self.own else nullcontext():
                answer = doer.do(step)
            return self._differences(answer) if step.what == "anew" else answer
        except InputError as error:
            return error
        except Exception as error:
            if doer is self.own and not self.altered:
                raise  # a fault of sensorsim, not of the package
            return error if isinstance(error, RuntimeError) else RuntimeError(f"{step.about}: {error!r}")

    def _differences(self, made: Any) -> list[str]:
        """Compare the files with those that export makes; return the reasons if it makes none."""
        return compared(self.setup.folder, made) if isinstance(made, dict) else [str(reason) for reason in made]

    def _fails_selftest(self, target: str) -> bool:
        """Return whether the self-test of the target failed, or any self-test if there is no target."""
        tests = [(step, answer) for step, answer in self.found.items() if step.what == "selftest"]
        return any(failed(answer) for step, answer in tests if target in ("", step.target))


def failed(answer: Any) -> bool:
    """Return whether a step ran and its proof failed."""
    return isinstance(answer, Exception) and str(answer) != NOT_RUN
