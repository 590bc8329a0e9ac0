"""sensorsim: what privacy on a body-worn sensor costs, protects and delivers, and the C to ship it.

Importing the package imports nothing heavy: torch, numba, numpy, pandas and matplotlib are imported by the
function that needs them.
"""

from importlib.metadata import version

__version__ = version("sensorsim")
