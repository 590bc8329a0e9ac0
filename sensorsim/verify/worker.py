"""Run the steps of a verification in a process of their own.

The C under test may do anything, so its process can be killed with everything it started. It is started with
`python -m`, not forked and not by multiprocessing, which would run the caller's script a second time. Its answers are
unpickled from few known types: C that writes an answer itself cannot make this process run code.
"""

import io
import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from sensorsim._util.files import FULL, name_temporary, no_room
from sensorsim._util.pool import end_with_parent
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
    """A process that runs steps; it is started for the first one, and again after it was lost."""

    def __init__(self, setup: Setup, name: str) -> None:
        self.setup, self.name, self.started = setup, name, 0
        self.process: subprocess.Popen[bytes] | None = None

    def do(self, step: Step) -> Any:
        """Return the answer of a step, or raise its error; a lost process is a failed proof."""
        if self.process is None:
            self._start()
        limit = SELFTEST_SECONDS + 30 if step.what == "selftest" else SECONDS  # some seconds to compile it
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
            ended = f"the code ended the process that ran it{where} (exit {code})"
            why = f"the code does not end{where}" if code == -signal.SIGPROF else ended
            raise FailedProofError(f"{step.about}: {why}.") from None
        try:
            passed, answer = _Answer(io.BytesIO(data)).load()
        except Exception as error:  # the bytes may be anything
            self.end()
            raise FailedProofError(f"{step.about}: what its process answers is no answer ({error}).") from None
        if not passed:
            raise answer if isinstance(answer, Exception) else RuntimeError(f"{step.about}: no error was named")
        return answer

    def end(self) -> None:
        """Kill the process and everything it started."""
        process, self.process = self.process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the group of its session: compilers too
        process.wait()
        self.ours.close()

    def _start(self) -> None:
        self.started += 1
        self.ours, theirs = Pipe()
        temporary = self.setup.build / f"{self.name}-{self.started}-temporary"
        temporary.mkdir()
        path = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sensorsim.verify.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env={**os.environ, **tools.environment(), "PYTHONPATH": path, "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # only the process that asks writes the report
        )
        theirs.close()
        self.ours.send((self.setup, f"{self.name}-{self.started}", os.getpid()))


class _Answer(pickle.Unpickler):
    """Unpickle an answer, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if name not in ANSWERS.get(module, ()):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of one")
        return super().find_class(module, name)


def serve(connection: Connection) -> None:
    """Answer steps in the worker process until the other side is closed."""
    setup, name, parent = connection.recv()
    tools.stay_in_group()
    name_temporary(setup.build.parent)
    end_with_parent(parent, lambda: os.killpg(0, signal.SIGKILL))
    steps: Steps | None = None
    with suppress(EOFError):
        while step := connection.recv():
            try:
                steps = steps or Steps(setup, name)
                answer: tuple[bool, Any] = True, steps.do(step)
            except Exception as error:
                answer = False, _plain_error(error, step)
            connection.send(answer)


def _plain_error(error: Exception, step: Step) -> Exception:
    """Return an error of the types in ANSWERS; the other side knows whether the package was altered."""
    if isinstance(error, OSError):
        full = error.errno in FULL
        return InputError(str(no_room(error))) if full else RuntimeError(f"{step.about}: {error!r}")
    if isinstance(error, InputError):
        return (FailedProofError if isinstance(error, FailedProofError) else InputError)(str(error))
    return RuntimeError(f"{step.about}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
