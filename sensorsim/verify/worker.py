"""A process that does steps for another. What it runs may be anyone's C, so it can be ended with all that it started.

The process is started anew with `python -m`, not forked and not by multiprocessing, so that a script or notebook that
asks for a verification is not run a second time.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from sensorsim.errors import FailedProofError, InputError
from sensorsim.verify.steps import SELFTEST_SECONDS, Setup, Step, Steps

SECONDS = 1200  # that one step may take
HERE = os.name == "posix"  # elsewhere no such process can be started


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
            passed, answer = self.ours.recv()
        except (EOFError, OSError):
            code = self.process.wait() if self.process else 0
            self.end()
            raise FailedProofError(f"{step.about}: the code ended the process that ran it (exit {code}).") from None
        if not passed:
            raise answer
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
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self.process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], start_new_session=True, env=environment, stdin=subprocess.DEVNULL
        )
        theirs.close()
        self.ours.send((self.setup, f"{self.name}-{self.started}", os.getpid()))


def serve(connection: Connection) -> None:
    """The other side: do what comes until nobody is there any more."""
    setup, name, parent = connection.recv()
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
        except InputError as error:
            answer = (False, error)
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
