"""How a sensor runs its kernels: as machine code, or as the plain Python that they are, bit for bit the same.

Plain Python is for the few releases of a test whose answers are wanted at once: to compile takes seconds, each first
time, and a release in plain Python milliseconds.
"""

from collections.abc import Callable
from typing import Any

from sensorsim.language.kernel import Kernel

Runs = Callable[[Kernel], Callable[..., Any]]  # a kernel as a function of numpy arrays and numbers


def compiled(kernel: Kernel) -> Callable[..., Any]:
    """By Numba, once for this process and those after it."""
    from sensorsim.language.run import outer

    return outer(kernel)


def plain(kernel: Kernel) -> Callable[..., Any]:
    """The kernel's own function, over lists: a numpy number would keep its own width, and warn where a word wraps."""
    written = [name in kernel.written for name in kernel.parameters]

    def call(*given: Any) -> Any:
        values = [one.tolist() if hasattr(one, "tolist") else one for one in given]
        result = kernel(*values)
        for array, value, changed in zip(given, values, written, strict=True):
            if changed:
                array[:] = value
        return result

    return call
