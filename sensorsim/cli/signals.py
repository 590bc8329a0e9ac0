"""Ctrl-C and a signal to end, noted as they come: what they break off may look like any error when seen."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

NOTED = (signal.SIGINT, signal.SIGTERM)
AGAIN = 0.05  # seconds after which a signal that was lost is given again


class Noted:
    """The first signal that came, if one did."""

    signal: int | None = None
    again: Any = None  # who heard the clock before

    @property
    def code(self) -> int | None:
        """The exit code that belongs to it."""
        return None if self.signal is None else 128 + self.signal

    def __call__(self, number: int, _frame: Any) -> None:
        self.signal = self.signal or number
        raise KeyboardInterrupt

    def lost(self, unraisable: sys.UnraisableHookArgs) -> None:
        """What Python could not raise, in a compiler's callback or as an object ends: a signal comes once more."""
        if self.signal is None or not issubclass(unraisable.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)
            return
        before = signal.signal(signal.SIGALRM, self)
        self.again = before if self.again is None else self.again
        signal.setitimer(signal.ITIMER_REAL, AGAIN)


@contextlib.contextmanager
def noted() -> Iterator[Noted]:
    """Both break off what runs as Ctrl-C does, so that it can tidy up; where someone else hears them, they stay so."""
    heard = Noted()
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():  # no other may hear signals
        for number in NOTED:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, heard)
    hook = sys.unraisablehook
    if before and hook is sys.__unraisablehook__:
        sys.unraisablehook = heard.lost
    try:
        yield heard
    finally:
        sys.unraisablehook = hook
        if heard.again is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, heard.again)
        for number, handler in before.items():
            signal.signal(number, handler)
