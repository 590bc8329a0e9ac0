"""Run the steps of a verification in the order that is safe, here or in processes of their own.

The files come first: C of the package runs on this machine only where they are as export writes them. Until that is
known, and where they are not, it runs on emulated cores alone. It never runs in the process that asks, which compares
the files and makes the report; nor does Python of a package that the user trusts.

What a process runs may be anyone's C, so it can be ended with all that it started. It is started anew with
`python -m`, not forked and not by multiprocessing, so that a script or notebook that asks for a verification is not run
a second time. What it answers is read as data of few kinds: C that writes answers itself reaches nothing by them.
"""

import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from sensorsim._util import progress
from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import FULL, name_temporary, no_room
from sensorsim._util.interrupts import delay_interrupts
from sensorsim.machine import tools
from sensorsim.verification.kernel_timing import KernelResult
from sensorsim.verification.package_checks import compare_files
from sensorsim.verification.verification import (
    BY_NAME,
    CONTENTS,
    NOT_RUN,
    Contents,
    Progress,
    Setup,
    Step,
    Workspace,
    groups,
)

HERE = os.name == "posix"  # elsewhere no process of its own can be started
ANSWERS = {
    "builtins": {"RuntimeError"},
    "sensorsim._util.errors": {"InputError", "FailedProofError"},
    "sensorsim.machine.counting": {"Spread"},
    "sensorsim.verification.kernel_timing": {"Proof", "KernelResult", "TimedOperation"},
    "sensorsim.verification.verification": {"Contents"},
}


class Worker:
    """Steps in a process of their own; it is started when the first is asked for, and again after it was lost."""

    def __init__(self, setup: Setup, name: str) -> None:
        self.setup, self.name, self.started = setup, name, 0
        self.process: subprocess.Popen[bytes] | None = None

    def do(self, step: Step) -> Any:
        """Return the answer of the step, or raise its error."""
        if self.process is None:
            self._start()
        limit = BY_NAME[step.check].seconds if step.check in BY_NAME else BY_NAME["files"].seconds
        try:
            self.ours.send(step)
            if not self.ours.poll(limit):
                self.end()
                raise FailedProofError(f"{step.about}: no answer in {limit} s.")
            data = self.ours.recv_bytes()
        except (EOFError, OSError):
            code = self.process.wait() if self.process else 0
            self.end()
            where = " on host" if step.on_host else ""
            if code == -signal.SIGPROF:
                raise FailedProofError(f"{step.about}: the code does not end{where}.") from None
            raise FailedProofError(
                f"{step.about}: the code ended the process that ran it{where} (exit {code})."
            ) from None
        try:
            passed, answer = _Answer(io.BytesIO(data)).load()
        except Exception as error:  # whatever the bytes do
            self.end()
            raise FailedProofError(f"{step.about}: what its process answers is no answer ({error}).") from None
        if not passed:
            raise answer if isinstance(answer, Exception) else RuntimeError(f"{step.about}: no error was named")
        return answer

    def end(self) -> None:
        """End the process and everything that it started."""
        process, self.process = self.process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its own group: compilers too
        process.wait()
        self.ours.close()

    def _start(self) -> None:
        self.started += 1
        self.ours, theirs = Pipe()
        temporary = self.setup.build / f"{self.name}-{self.started}-temporary"  # goes with the folder it is in
        temporary.mkdir()
        path = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sensorsim.verification.step_runner", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env={**os.environ, **tools.environment(), "PYTHONPATH": path, "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the report is written by the process that asks, and by no other
        )
        theirs.close()
        self.ours.send((self.setup, f"{self.name}-{self.started}", os.getpid()))


class _Answer(pickle.Unpickler):
    """Unpickles an answer, and refuses every class that is no part of one."""

    def find_class(self, module: str, name: str) -> Any:
        if name not in ANSWERS.get(module, ()):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of one")
        return super().find_class(module, name)


def serve(connection: Connection) -> None:
    """Do the steps that the other process sends, until it is gone."""
    setup, name, parent = connection.recv()
    tools.stay_in_group()
    name_temporary(setup.build.parent)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    space: Workspace | None = None
    while True:
        try:
            step = connection.recv()
        except EOFError:
            return
        try:
            space = space or Workspace(setup, name)
            answer: tuple[bool, Any] = (True, space.do(step))
        except InputError as error:
            answer = (False, (FailedProofError if isinstance(error, FailedProofError) else InputError)(str(error)))
        except Exception as error:  # the other side knows whether the package was altered
            if isinstance(error, OSError) and error.errno in FULL:
                answer = (False, InputError(str(no_room(error))))
            else:
                said = f"{error!r}" if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
                answer = (False, RuntimeError(f"{step.about}: {said}"))
        connection.send(answer)


def _end_with(parent: int) -> None:
    """End this process and what it started when the one that asked is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


class Run:
    """A run of all steps by `jobs` processes; with 0, steps that run nothing on the host are done here."""

    def __init__(self, setup: Setup, progress: Progress | None, jobs: int) -> None:
        self.setup, self.progress = setup, progress
        self.found: dict[Step, Any] = {}  # an answer, or the error in its place
        self.changed, self.stopped = threading.Condition(), threading.Event()
        self.workers = [Worker(setup, f"worker{number}") for number in range(max(1, jobs))] if HERE else []
        self.shared = bool(jobs) and HERE
        # Python of a trusted package runs here only where it ran before: the caller made the package of it.
        self.runs_python = HERE and setup.trust and setup.made is None
        self.own: Workspace | None = None
        self.waiting: list[list[Step]] = []
        self.groups: list[list[Step]] = []

    def all(self) -> None:
        """Do everything."""
        try:
            opener: Workspace | Worker = self.workers[0] if self.runs_python else self._own()
            self.contents: Contents = opener.do(Step(CONTENTS, "the manifest"))
            self.groups = groups(self.contents, self.setup)
            self.waiting = [list(group) for group in self.groups]
            if not self.shared:
                self._serve(None)
                return
            threads = [threading.Thread(target=self._serve, args=(worker,), daemon=True) for worker in self.workers]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):  # so that Ctrl-C is heard
                for thread in threads:
                    thread.join(0.2)
        finally:
            self.stopped.set()
            for worker in self.workers:
                worker.end()

    def of(self, check: str) -> list[Step]:
        """Return the steps of a check, in the order of the kernels and targets that were given."""
        steps = [step for group in self.groups for step in group if step.check == check]
        targets = self.setup.targets
        return sorted(steps, key=lambda step: (step.kernel, step.target in targets and targets.index(step.target)))

    def answers(self, check: str) -> list[Any]:
        """Return the answers of a check in the same order."""
        return [self.found.get(step) for step in self.of(check)]

    def errors(self, check: str) -> list[str]:
        """Return the failures of a check in words, each once."""
        return list(dict.fromkeys(str(answer).rstrip(".") for answer in self.answers(check) if is_failure(answer)))

    @property
    def results(self) -> tuple[KernelResult, ...]:
        return tuple(answer for answer in self.answers("bits") if isinstance(answer, KernelResult))

    @property
    def ubsan_vectors(self) -> int:
        return sum(number for number in self.answers("UBSan") if isinstance(number, int))

    @property
    def tested_targets(self) -> list[str]:
        """Return the targets on which the self-test ran."""
        return [step.target for step in self.of("self-test") if str(self.found.get(step)) != NOT_RUN]

    @property
    def whole(self) -> bool:
        """Return whether every file is known to be as export writes it."""
        return self.answers("files") == [[]]

    @property
    def altered(self) -> bool:
        """Return whether the package is not what export writes: then whatever goes wrong is its own fault."""
        (answer,) = self.answers("files")
        return isinstance(answer, FailedProofError) or (isinstance(answer, list) and bool(answer))

    def _own(self) -> Workspace:
        self.own = self.own or Workspace(self.setup, "here")
        return self.own

    def _serve(self, worker: Worker | None) -> None:
        try:
            while group := self._take_steps():
                for step in group:
                    if not self.stopped.is_set():
                        self._step(step, worker or self._doer(step))
        except BaseException:
            self.stopped.set()  # wakes waiting threads on failure
            raise

    def _take_steps(self) -> list[Step]:
        """Take the first steps of a group that can begin; wait where none can; return none where all are taken."""
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
        """Return whether a step may begin: host code waits for the files, each check for those that it needs."""
        needs = self.of("files") if step.on_host else []
        for name in BY_NAME[step.check].needs:
            others = self.of(name)
            cores = [other for other in others if not other.on_host] or others
            needs += [other for other in others if other.target == step.target] if step.target else cores
        return all(need in self.found for need in needs)

    def _doer(self, step: Step) -> Workspace | Worker:
        """Choose who does a step where nothing is shared."""
        safe = self.whole and not step.on_host and step.check not in ("files", "self-test")  # those two can be ended
        return self._own() if not self.workers or (safe and not self.runs_python) else self.workers[0]

    def _step(self, step: Step, doer: Workspace | Worker) -> None:
        if self.progress:
            with self.changed:
                self.progress(step.about, len(self.found), sum(map(len, self.groups)))
        with progress.step(step.about):  # for a stderr that is no terminal, where no bar is seen
            answer = self._answer(step, doer)
        with self.changed:
            self.found[step] = answer
            self.changed.notify_all()

    def _answer(self, step: Step, doer: Workspace | Worker) -> Any:
        needs = BY_NAME[step.check].needs
        if any(
            is_failure(answer) and step.target in ("", other.target)
            for other, answer in self.found.items()
            if other.check in needs
        ):
            return None
        if step.on_host and not self.whole:
            if step.check != "table":
                return FailedProofError(NOT_RUN)
            step = Step("table", step.about)  # it is read from the code for the cores alone
        try:
            with delay_interrupts() if doer is self.own else nullcontext():
                answer = doer.do(step)
        except InputError as error:
            return error
        except Exception as error:
            if doer is self.own and not self.altered:
                raise  # a mistake of ours, not of the package
            return error if isinstance(error, RuntimeError) else RuntimeError(f"{step.about}: {error!r}")
        if step.check != "files":
            return answer
        return compare_files(self.setup.folder, answer) if isinstance(answer, dict) else [str(why) for why in answer]


def is_failure(answer: Any) -> bool:
    """Return whether a step ran and what it proves does not hold."""
    return isinstance(answer, Exception) and str(answer) != NOT_RUN


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
