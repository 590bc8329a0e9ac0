"""Numba's form of a function: machine code that allocates nothing and holds no lock of Python's."""

from collections.abc import Callable
from typing import Any

import numba

from sensorsim.language.run.one import OUTER


def fast(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, compiled on its first call."""
    compiled: Callable[..., Any] = numba.njit(**OUTER)(function)
    return compiled
