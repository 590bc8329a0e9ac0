"""Shared by all tests."""

import pytest

from sensorsim.language.kernel import Kernel
from sensorsim.language.load import shipped

ALL_KERNELS = sorted(shipped().values(), key=lambda kernel: kernel.name)


@pytest.fixture(params=ALL_KERNELS, ids=lambda kernel: kernel.name)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """Every kernel of the package, one after the other."""
    return request.param
