"""Shared by all tests."""

import importlib
import pkgutil

import pytest
import sensorsim.kernels
from sensorsim.kernels.language import KERNELS, Kernel

for module in pkgutil.iter_modules(sensorsim.kernels.__path__):
    importlib.import_module(f"sensorsim.kernels.{module.name}")

ALL_KERNELS = sorted((k for k in KERNELS.values() if k.path.parent.name == "kernels"), key=lambda kernel: kernel.name)


@pytest.fixture(params=ALL_KERNELS, ids=lambda kernel: kernel.name)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """Every kernel of the package, one after the other."""
    return request.param
