"""Numba's reading of a kernel: `compiled` for its own callers, `outer` and `run` for Python's, `batch` for many."""

from sensorsim.language.run.one import INLINED, OUTER, RETURNS, compiled, outer, run

__all__ = ["INLINED", "OUTER", "RETURNS", "compiled", "outer", "run"]
