"""Run the kernels of a sensor: as machine code, or as the plain Python that they are, bit for bit the same.

Plain Python is for the few releases of a test whose answers are wanted at once: to compile takes seconds, each first
time, and a release in plain Python milliseconds.
"""

from collections.abc import Callable
from functools import cache
from types import CellType, FunctionType, SimpleNamespace
from typing import Any

from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Struct, numpy_name

Runs = Callable[[Kernel], Callable[..., Any]]  # a kernel as a function of numpy arrays and numbers


def compiled(kernel: Kernel) -> Callable[..., Any]:
    """Return the kernel as Numba compiles it, once for this process and those after it."""
    from sensorsim.language.numba_backend import outer

    return outer(kernel)


def plain(kernel: Kernel) -> Callable[..., Any]:
    """Return the kernel's own function, over lists: a numpy number would warn where a word wraps."""
    written = [name in kernel.written for name in kernel.parameters]

    def call(*given: Any) -> Any:
        values = [one.tolist() if hasattr(one, "tolist") else one for one in given]
        result = kernel(*values)
        for array, value, changed in zip(given, values, written, strict=True):
            if changed:
                array[:] = value
        return result

    return call


class Cells:
    """A numpy array whose elements are Python's numbers, as the kernels' own functions want them."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, place: int | slice) -> Any:
        return Cells(self.array[place]) if isinstance(place, slice) else int(self.array[place])

    def __setitem__(self, place: int | slice, value: Any) -> None:
        self.array[place] = value


def new_record(record: Struct, **boards: Any) -> SimpleNamespace:
    """Return a record of zeros, as a kernel's own function takes it, with these boards."""
    import numpy as np

    made = SimpleNamespace(**boards)
    for name, kind in record.fields.items():
        if kind.cell:
            setattr(made, name, 0)
        elif not kind.ports:
            setattr(made, name, Cells(np.zeros(int(kind.length), numpy_name(kind.storage))))
    return made


@cache
def hosted(kernel: Kernel, runs: Runs) -> Callable[..., Any]:
    """Return the function of a kernel that takes records: Python itself, over other kernels as `runs` runs them.

    Python asks the board, and does the few steps between; the arithmetic is that of the kernels below.
    """
    function = kernel.declared
    assert isinstance(function, FunctionType)

    def over_arrays(run: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            result = run(*(one.array if isinstance(one, Cells) else one for one in given))
            return result if result is None else int(result)

        return call

    used = dict(kernel.read.used)
    for name, value in used.items():
        if isinstance(value, Kernel):
            used[name] = hosted(value, runs) if value.records else over_arrays(runs(value))
    cells = tuple(CellType(used.get(name)) for name in function.__code__.co_freevars)
    scope = {**used, "__builtins__": __builtins__}
    return FunctionType(function.__code__, scope, function.__name__, None, cells or None)
