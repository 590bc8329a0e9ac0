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
    """What is compiled is kept for this session, and shared by its processes; the user's own store is not touched.

    The compiler keeps its parts where it always does: to build them anew takes it some ten seconds a core.
    """
    if not hasattr(config, "workerinput"):
        os.environ.update(tools.environment())
        os.environ["SENSORSIM_CACHE"] = tempfile.mkdtemp(prefix="sensorsim-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ["SENSORSIM_CACHE"], ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file on one worker, unless --dist says otherwise: what they share is then made once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


@pytest.fixture(params=ALL_KERNELS, ids=lambda kernel: kernel.name)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """Every kernel of the package, one after the other."""
    return request.param


PARTS = {part for kernel in ALL_KERNELS for part in kernel.called}
VARIANTS = {one for one in ALL_KERNELS for other in ALL_KERNELS if one.name.startswith(f"{other.name}_")}

DEVICE = {one for one in ALL_KERNELS if Path(one.at.file).stem in ("generator", "health", "journal", "packet")}
DEEPER = PARTS | VARIANTS | DEVICE


@pytest.fixture(
    params=[
        pytest.param(k, marks=[pytest.mark.slow] if k in DEEPER else [], id=k.name)
        for k in ALL_KERNELS
        if not k.records  # test_records has one of each, and test_device and test_sensor_c those of the sensor
    ],
)
def compiled_kernel(request: pytest.FixtureRequest) -> Kernel:
    """Every kernel, for tests that compile it. When slow also those that others call, which are compiled with them, and
    variants of one kernel, as sampled_rows_bit is of sampled_rows, and those of the device, which test_device runs."""
    return request.param


@pytest.fixture
def written(tmp_path):
    """A function that writes a CSV and gives its path."""

    def write(content, name="mine.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write
