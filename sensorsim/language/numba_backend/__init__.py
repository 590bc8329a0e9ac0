"""The Numba backend: `compiled` for callers in Numba, `outer` and `run` for Python, `batch` for many records."""

from sensorsim.language.numba_backend.compile import INLINED, OUTER, RETURNS, compiled, outer, run

__all__ = ["INLINED", "OUTER", "RETURNS", "compiled", "outer", "run"]
