"""Numba's reading of a kernel: `compiled` and `run` for one call, `batch` for many records with a generator."""

from sensorsim.language.run.one import INLINED, OUTER, RETURNS, compiled, run

__all__ = ["INLINED", "OUTER", "RETURNS", "compiled", "run"]
