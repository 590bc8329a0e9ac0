"""Numba's form of a function: machine code that allocates nothing and holds no lock of Python's."""

from collections.abc import Callable
from typing import Any

from sensorsim.language.numba_backend import OUTER
from sensorsim.language.numba_backend.jit import jit


def fast(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, compiled on its first call."""
    return jit(function, **OUTER)


def fast_and_kept(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for one that Python calls, with all that it calls; later processes need not compile it."""
    return jit(function, kept=True, **OUTER)
