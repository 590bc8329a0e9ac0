"""What long work says while it runs: the step that it is at. Who wants to hear it, listens; by default nobody does.

with progress.step("compiling"):
    …
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str], None]
_listeners: list[Listener] = []
_steps: list[str] = []


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
def heard(listener: Listener) -> Iterator[None]:
    """Every step is told to the listener, and "" when there is none."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def _tell(text: str) -> None:
    for listener in tuple(_listeners):
        listener(text)
