"""Data: processor tables, the paper's printed operation list, noise tables, trained encoders."""

from pathlib import Path


def folder() -> Path:
    """The folder that holds the data files, in a checkout and in an installed package alike."""
    return Path(__file__).parent
