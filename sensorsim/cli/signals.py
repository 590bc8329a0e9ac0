"""Ctrl-C and a signal to end, noted as they come: what they break off may look like any error when seen."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

NOTED = (signal.SIGINT, signal.SIGTERM)


class Noted:
    """The first signal that came, if one did."""

    signal: int | None = None

    @property
    def code(self) -> int | None:
        """The exit code that belongs to it."""
        return None if self.signal is None else 128 + self.signal

    def __call__(self, number: int, _frame: Any) -> None:
        self.signal = self.signal or number
        raise KeyboardInterrupt


@contextlib.contextmanager
def noted() -> Iterator[Noted]:
    """Both break off what runs as Ctrl-C does, so that it can tidy up; where someone else hears them, they stay so."""
    heard = Noted()
    before = {}
    if threading.current_thread() is threading.main_thread():  # no other may hear signals
        for number in NOTED:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, heard)
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
