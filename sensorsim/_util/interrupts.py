"""Record Ctrl-C and SIGTERM as they arrive: what they interrupt may fail with any other error."""

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

RECORDED = (signal.SIGINT, signal.SIGTERM)
SECONDS_TO_REPEAT = 0.05  # until a signal that was lost is raised again


class SignalRecord:
    """Raise KeyboardInterrupt on a signal, and remember the first one."""

    signal: int | None = None
    timer: threading.Timer | None = None

    @property
    def code(self) -> int | None:
        """Return the exit code for the signal."""
        return None if self.signal is None else 128 + self.signal

    def __call__(self, number: int, _frame: Any) -> None:
        self.signal = self.signal or number
        raise KeyboardInterrupt

    def repeat(self, unraisable: "sys.UnraisableHookArgs") -> None:
        """Raise a KeyboardInterrupt again that Python lost in a callback of C or in a destructor."""
        if self.signal is None or not issubclass(unraisable.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)
            return
        self.timer = threading.Timer(SECONDS_TO_REPEAT, _thread.interrupt_main, [self.signal])
        self.timer.daemon = True
        self.timer.start()


@contextmanager
def record_signals() -> Iterator[SignalRecord]:
    """Let both signals interrupt the work inside as Ctrl-C does; handlers of others stay in place."""
    record = SignalRecord()
    before: dict[signal.Signals, Any] = {}
    hook = sys.unraisablehook
    if threading.current_thread() is threading.main_thread():  # no other thread can set handlers
        defaults = (signal.SIG_DFL, signal.default_int_handler)
        replaced = [number for number in RECORDED if signal.getsignal(number) in defaults]
        before = {number: signal.signal(number, record) for number in replaced}
        sys.unraisablehook = record.repeat
    try:
        yield record
    finally:
        sys.unraisablehook = hook
        if record.timer is not None:
            record.timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def delay_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back until the work inside is done: a callback of C would lose it, or end the process."""
    seen: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, lambda number, _: seen.append(number)) if is_main else None
    try:
        yield
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)
        if seen:
            raise KeyboardInterrupt
