"""Numba's reading of a kernel: the same code over 32-bit machine integers, compiled on its first call."""

from collections.abc import Callable
from functools import cache
from typing import Any

from sensorsim.kernels.language import Kernel, Primitive, rebind


@cache
def compiled(source: Kernel | Primitive) -> Callable[..., Any]:
    """The kernel as a Numba function; arrays are numpy arrays in the storage types of the declared formats.

    Numba promotes int32 + int32 to int64. The primitives' own casts bring every result back to 32 bits, so both run the
    same arithmetic as plain Python.
    """
    import numba

    casts = {"i32": numba.int32, "u32": numba.uint32}

    def replace(name: str, value: Any) -> Any:
        if isinstance(value, Primitive) and value.name in casts:
            return casts[value.name]
        return compiled(value) if isinstance(value, Kernel | Primitive) else value

    # error_model: division by zero is defined by the primitives, so Numba need not raise
    function: Callable[..., Any] = numba.njit(error_model="numpy", nogil=True, _nrt=False, forceinline=True)(
        rebind(source.function, replace)
    )
    return function
