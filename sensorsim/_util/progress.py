"""Report the current step of long work on stderr.

with progress.step("compiling"):
    …

Nothing is shown unless the caller runs inside `shown()`, and then only after two seconds of work. On a terminal the
line disappears at the end. While a progress bar is visible it hides the steps.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import RLock, Timer

from sensorsim._util.terminal import columns, fold

SECONDS_OF_SILENCE = 2.0
CLEAR = "\r\x1b[K"
_displays: list[Callable[[str], None]] = []
_steps: list[str] = []
_hiding: list[object] = []


@contextmanager
def step(text: str) -> Iterator[None]:
    """Name the work inside; steps may be nested."""
    _steps.append(text)
    _update(text)
    try:
        yield
    finally:
        _steps.remove(text)
        _update(_steps[-1] if _steps else "")


@contextmanager
def phases(first: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that begins the next step, for work that reports its steps by a call."""
    with ExitStack() as now:

        def begin(text: str) -> None:
            now.close()
            now.enter_context(step(text))

        begin(first)
        yield begin


def is_shown() -> bool:
    """Return whether a program shows progress on stderr, which Python code does not ask for."""
    return bool(_displays)


def note(text: str) -> None:
    """Write a sentence to stderr, in lines that the terminal has room for; only where steps are shown."""
    if is_shown():
        _write("\n".join([*fold(text, columns()), ""]))


def hide(who: object) -> None:
    """Hide steps until `show(who)`, because `who` shows the progress."""
    _hiding.append(who)
    _update("")


def show(who: object) -> None:
    """Show steps again that `hide(who)` hid."""
    if who in _hiding:
        _hiding.remove(who)
        _update(_steps[-1] if _steps else "")


@contextmanager
def shown(display: Callable[[str], None] | None = None) -> Iterator[None]:
    """Show the steps of the work inside on stderr, or pass them to `display`; "" means that there is none."""
    display = display or StepDisplay()
    _displays.append(display)
    try:
        yield
    finally:
        _displays.remove(display)
        display("")


def _update(text: str) -> None:
    for display in tuple(_displays):
        display("" if _hiding else text)


class StepDisplay:
    """One line on stderr with the current step; each text is written once to what is no terminal."""

    def __init__(self) -> None:
        self.lock = RLock()  # the timer runs in a thread of its own
        self.timer: Timer | None = None
        self.current, self.worked, self.since = "", 0.0, 0.0
        self.written: set[str] = set()
        self.has_line = False

    def __call__(self, text: str) -> None:
        """Set the current step, which is shown when all steps together took long enough."""
        with self.lock:
            if self.timer is not None:
                self.timer.cancel()
                self.worked += time.monotonic() - self.since
                self.timer = None
            self.current, self.since = text, time.monotonic()
            if text:
                self.timer = Timer(max(0.0, SECONDS_OF_SILENCE - self.worked), self._show, [text])
                self.timer.daemon = True
                with suppress(RuntimeError):  # no thread can be started: nothing is shown
                    self.timer.start()
            elif self.has_line:
                self.has_line = False
                _write(CLEAR)

    def _show(self, text: str) -> None:
        with self.lock:
            if text == self.current and sys.stderr.isatty():
                self.has_line = True
                _write(f"{CLEAR}{text} …")
            elif text == self.current and text not in self.written:
                self.written.add(text)
                _write(f"{text} …\n")


def _write(text: str) -> None:
    with suppress(OSError, ValueError):  # stderr may be closed
        sys.stderr.write(text)
        sys.stderr.flush()
