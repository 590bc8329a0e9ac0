"""sensorsim: what privacy on a body-worn sensor costs, protects and delivers, and the C to ship it.

Importing the package imports nothing heavy: torch, numba, numpy, pandas and matplotlib are imported by the
function that needs them.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "__version__":  # looked up when asked for: reading package metadata takes longer than the rest of us
        from importlib.metadata import version

        return version("sensorsim")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
