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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from sensorsim._util import progress
from sensorsim._util.errors import FailedProofError, InputError
from sensorsim._util.files import FULL, name_temporary, no_room
from sensorsim.machine import tools
from sensorsim.verification.reproduce import compare_files
from sensorsim.verification.verification_steps import SELFTEST_SECONDS, Contents, Setup, Step, Steps, groups

SECONDS = 1200  # that one step may take
ANSWERS = {
    "builtins": {"RuntimeError"},
    "sensorsim._util.errors": {"InputError", "FailedProofError"},
    "sensorsim.machine.counting": {"Spread"},
    "sensorsim.verification.findings": {"Proof", "KernelResult"},
    "sensorsim.verification.verification_steps": {"Contents"},
    "sensorsim.verification.kernel_timing": {"TimedOperation"},
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
        limit = SELFTEST_SECONDS + 30 if step.what == "selftest" else SECONDS  # to compile it takes some seconds
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
        command = [sys.executable, "-m", "sensorsim.verification.step_runner", str(theirs.fileno())]
        temporary = self.setup.build / f"{self.name}-{self.started}-temporary"  # goes with the folder it is in
        temporary.mkdir()
        environment = {
            **os.environ,
            **tools.environment(),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TMPDIR": str(temporary),
        }
        self.process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env=environment,
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
    steps: Steps | None = None
    while True:
        try:
            step = connection.recv()
        except EOFError:
            return
        try:
            steps = steps or Steps(setup, name)
            answer: tuple[bool, Any] = (True, steps.do(step))
        except OSError as error:
            full = error.errno in FULL
            told = InputError(str(no_room(error))) if full else RuntimeError(f"{step.about}: {error!r}")
            answer = (False, told)
        except InputError as error:
            answer = (False, (FailedProofError if isinstance(error, FailedProofError) else InputError)(str(error)))
        except Exception as error:  # named by the other side, which knows whether the package was altered
            answer = (False, RuntimeError(f"{step.about}: {type(error).__name__}: {error}"))
        connection.send(answer)


def _end_with(parent: int) -> None:
    """End this process and what it started when the one that asked is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


Progress = Callable[[str, int, int], None]  # what is done, step, of how many

HERE = os.name == "posix"  # elsewhere no process of its own can be started
NOT_RUN = "not run: the files differ"


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
        self.own: Steps | None = None
        self.waiting: list[list[Step]] = []
        self.groups: list[list[Step]] = []

    def all(self) -> Contents:
        """Do everything; what the package holds."""
        try:
            opener: Steps | Worker = self.workers[0] if self.runs_python else self._own()
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
        """Return the steps of one sort, in the order of the question."""
        steps = [step for group in self.groups for step in group if step.what == what]
        targets = self.setup.targets
        return sorted(steps, key=lambda step: (step.kernel, step.target in targets and targets.index(step.target)))

    @property
    def whole(self) -> bool:
        """Return whether every file is known to be as export writes it."""
        return self.found.get(self.of("anew")[0]) == []

    @property
    def altered(self) -> bool:
        """Return whether the package is not what export writes: then whatever goes wrong is its own fault."""
        answer = self.found.get(self.of("anew")[0])
        return isinstance(answer, FailedProofError) or (isinstance(answer, list) and bool(answer))

    def _own(self) -> Steps:
        self.own = self.own or Steps(self.setup, "here")
        return self.own

    def _in_processes(self) -> None:
        threads = [threading.Thread(target=self._serve, args=(worker,), daemon=True) for worker in self.workers]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):  # so that Ctrl-C is heard
            for thread in threads:
                thread.join(0.2)

    def _serve(self, worker: Worker | None) -> None:
        try:
            while group := self._take_steps():
                for step in group:
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
        """Return whether a step may begin: host code waits for the files, kernels for the self-tests."""
        needs = self.of("anew") if step.on_host else []
        if step.what in ("bits", "ubsan"):
            tests = self.of("selftest")
            cores = [test for test in tests if not test.on_host] or tests
            needs += [test for test in tests if test.target == step.target] if step.target else cores
        return all(need in self.found for need in needs)

    def _doer(self, step: Step) -> "Steps | Worker":
        """Choose who does a step where nothing is shared."""
        safe = self.whole and not step.on_host and step.what not in ("anew", "selftest")  # those two can be ended
        return self._own() if not self.workers or (safe and not self.runs_python) else self.workers[0]

    def _step(self, step: Step, doer: "Steps | Worker") -> None:
        if self.stopped.is_set():
            return
        if self.progress:
            with self.changed:
                self.progress(step.about, len(self.found), sum(map(len, self.groups)))
        with progress.step(step.about):  # for a stderr that is no terminal, where no bar is seen
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
            step = Step("table", step.about)  # it is read from the code for the cores alone
        try:
            with _delay_interrupt() if doer is self.own else nullcontext():
                answer = doer.do(step)
            return self._differences(answer) if step.what == "anew" else answer
        except InputError as error:
            return error
        except Exception as error:
            if doer is self.own and not self.altered:
                raise  # a mistake of ours, not of the package
            return error if isinstance(error, RuntimeError) else RuntimeError(f"{step.about}: {error!r}")

    def _differences(self, made: Any) -> list[str]:
        """Compare the package's files with those that export makes; say why it makes none, if so."""
        return compare_files(self.setup.folder, made) if isinstance(made, dict) else [str(reason) for reason in made]

    def _fails_selftest(self, target: str) -> bool:
        """Return whether the target's self-test failed; for a step without a target, any of them that ran."""
        tests = [(step, answer) for step, answer in self.found.items() if step.what == "selftest"]
        return any(is_failure(answer) for step, answer in tests if target in ("", step.target))


@contextmanager
def _delay_interrupt() -> Iterator[None]:
    """Delay Ctrl-C until a step is done: raised inside a callback of the emulator it is lost, or ends the process."""
    seen: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, lambda number, _: seen.append(number)) if main else None
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
        if seen:
            raise KeyboardInterrupt


def is_failure(answer: Any) -> bool:
    """Return whether a step ran and what it proves does not hold."""
    return isinstance(answer, Exception) and str(answer) != NOT_RUN


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
