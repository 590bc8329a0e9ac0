"""Time benchmarks one after the other, in one process, whatever -n says."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Take back -n before pytest-xdist reads it: with workers side by side, pytest-benchmark measures nothing."""
    given = config.option
    if getattr(given, "numprocesses", None) or getattr(given, "dist", "no") != "no":
        given.numprocesses = 0  # pytest-xdist then forgets --dist and --tx too
        print("Benchmarks run one after the other, in one process: -n is left out.")
