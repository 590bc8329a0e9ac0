"""Shared by all tests."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sensorsim.language.kernel import Kernel
from sensorsim.language.load import shipped
from sensorsim.machine import tools

ALL_KERNELS = sorted(shipped().values(), key=lambda kernel: kernel.name)


def pytest_configure(config: pytest.Config) -> None:
    """Store compiled kernels for this session and its processes, apart from the user's cache.

    The compiler uses its own cache as always: to build that anew takes some ten seconds a core.
    """
    if not hasattr(config, "workerinput"):
        os.environ.update(tools.environment())
        os.environ["SENSORSIM_CACHE"] = tempfile.mkdtemp(prefix="sensorsim-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["SENSORSIM_CACHE"], ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file on one worker, unless --dist says otherwise, so that they share fixtures."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture(params=ALL_KERNELS, ids=lambda kernel: kernel.name)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """Return every kernel of the package in turn."""
    return request.param


# Kernels that others call, variants of one kernel, and those of the device are compiled in slow tests alone.
DEVICE = ("generator", "health", "journal", "packet")
DEEPER = {part for kernel in ALL_KERNELS for part in kernel.called}
DEEPER |= {one for one in ALL_KERNELS for other in ALL_KERNELS if one.name.startswith(f"{other.name}_")}
DEEPER |= {one for one in ALL_KERNELS if Path(one.at.file).stem in DEVICE}


@pytest.fixture(
    params=[
        pytest.param(k, marks=[pytest.mark.slow] if k in DEEPER else [], id=k.name)
        for k in ALL_KERNELS
        if not k.records  # test_records has one of each, and test_device and test_sensor_c those of the sensor
    ],
)
def compiled_kernel(request: pytest.FixtureRequest) -> Kernel:
    """Return every kernel, for tests that compile it."""
    return request.param


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a CSV and returns its path."""

    def write(content, name="mine.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write
