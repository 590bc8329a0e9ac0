"""What long work says while it runs: the step that it is at. Who wants to hear it, listens; by default nobody does.

with progress.step("compiling"):
    …
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

Listener = Callable[[str], None]
_listeners: list[Listener] = []
_steps: list[str] = []
_hiding: list[object] = []


@contextmanager
def step(text: str) -> Iterator[None]:
    """The work inside is this step; steps may stand inside others."""
    _steps.append(text)
    _tell(text)
    try:
        yield
    finally:
        _steps.remove(text)
        _tell(_steps[-1] if _steps else "")


@contextmanager
def phases(first: str) -> Iterator[Listener]:
    """For work that says by a call what it begins: each text is the step until the next."""
    with ExitStack() as now:

        def begin(text: str) -> None:
            now.close()
            now.enter_context(step(text))

        begin(first)
        yield begin


def hide(who: object) -> None:
    """From here on `who` shows how far the work is, and listeners hear nothing, until `show`."""
    _hiding.append(who)
    _tell("")


def show(who: object) -> None:
    """It has ended."""
    if who in _hiding:
        _hiding.remove(who)
        _tell(_steps[-1] if _steps else "")


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Every step is told to the listener, and "" when there is none."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def _tell(text: str) -> None:
    text = "" if _hiding else text
    for listener in tuple(_listeners):
        listener(text)
