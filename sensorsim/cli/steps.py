"""What a command is at, on stderr, once it has been at work for two seconds; on a terminal the line is gone at the end.

Here is the one listener of `sensorsim.progress`. A bar (`sensorsim.cli.output.bar`) says the same and more, so that
nothing is shown beside one.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock, Timer

import click

from sensorsim import progress

SECONDS_OF_SILENCE = 2.0
CLEAR = "\r\x1b[K"


class Steps:
    """Hears every step; what is shown is shown once."""

    def __init__(self) -> None:
        self.lock = RLock()  # the clock rings in a thread of its own
        self.timer: Timer | None = None
        self.now, self.worked, self.since = "", 0.0, 0.0
        self.told: set[str] = set()
        self.line = False  # whether one stands on the terminal

    def __call__(self, text: str) -> None:
        with self.lock:
            self._stop()
            self.now = text
            if text:
                self.since = time.monotonic()
                self.timer = Timer(max(0.0, SECONDS_OF_SILENCE - self.worked), self._show, [text])
                self.timer.daemon = True
                try:
                    self.timer.start()
                except RuntimeError:  # no thread can be started here: what comes late is shown as it begins
                    if self.worked >= SECONDS_OF_SILENCE:
                        self._show(text)
            else:
                self.clear()

    def _stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.worked += time.monotonic() - self.since
            self.timer = None

    def _show(self, text: str) -> None:
        with self.lock, suppress(OSError, ValueError):  # stderr may be closed
            if text != self.now:
                return
            if sys.stderr.isatty():
                click.echo(f"{CLEAR}{text} …", err=True, nl=False)
                self.line = True
            elif text not in self.told:
                self.told.add(text)
                click.echo(f"{text} …", err=True)

    def clear(self) -> None:
        """Take the line away before anything else is written."""
        if self.line:
            self.line = False
            with suppress(OSError, ValueError):
                click.echo(CLEAR, err=True, nl=False)

    def end(self) -> None:
        with self.lock:
            self._stop()
            self.now = ""
            self.clear()


@contextmanager
def shown() -> Iterator[None]:
    """The steps of what runs inside are shown."""
    steps = Steps()
    with progress.heard(steps):
        try:
            yield
        finally:
            steps.end()
