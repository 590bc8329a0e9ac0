"""The steps of a verification in a process of their own.

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
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from sensorsim._util.files import FULL, name_temporary, no_room
from sensorsim.errors import FailedProofError, InputError
from sensorsim.machine import tools
from sensorsim.verify.steps import SELFTEST_SECONDS, Setup, Step, Steps

SECONDS = 1200  # that one step may take
ANSWERS = {
    "builtins": {"RuntimeError"},
    "sensorsim.errors": {"InputError", "FailedProofError"},
    "sensorsim.machine.counting": {"Spread"},
    "sensorsim.verify.proof": {"Proof"},
    "sensorsim.verify.result": {"KernelResult"},
    "sensorsim.verify.steps": {"Contents"},
    "sensorsim.verify.watched": {"TimedOperation"},
}


class Worker:
    """Steps in a process of their own; it is started when the first is asked for, and again after it was lost."""

    def __init__(self, setup: Setup, name: str) -> None:
        self.setup, self.name, self.started = setup, name, 0
        self.process: subprocess.Popen[bytes] | None = None

    def do(self, step: Step) -> Any:
        """What the step gives, or its error."""
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
        command = [sys.executable, "-m", "sensorsim.verify.worker", str(theirs.fileno())]
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
    """Reads an answer, and nothing that is none."""

    def find_class(self, module: str, name: str) -> Any:
        if name not in ANSWERS.get(module, ()):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of one")
        return super().find_class(module, name)


def serve(connection: Connection) -> None:
    """The other side: do what comes until nobody is there any more."""
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


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
