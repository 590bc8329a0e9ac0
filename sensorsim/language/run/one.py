"""Numba's reading of a kernel: machine code with the results of plain Python, bit for bit.

Numba promotes int32 + int32 to int64; the casts of the primitives and those at every name bring the results back to 32
bits. The text that is compiled comes from the nodes of `ir`, so a kernel from a notebook compiles as one from a file.
"""

from collections.abc import Callable, Mapping
from functools import cache
from types import CellType, FunctionType
from typing import Any

import numba
import numpy as np

from sensorsim.errors import InputError
from sensorsim.language import primitives
from sensorsim.language.kernel import Kernel
from sensorsim.language.primitive import Primitive
from sensorsim.language.run.jit import jit
from sensorsim.language.run.text import CASTS, TYPES, kernel_text
from sensorsim.language.run.values import array, dtype, given, lengths_of, scalar
from sensorsim.language.types import Length, Port

RETURNS = "returns"
# error_model: division by zero is defined by the primitives, so Numba need not raise. _nrt: nothing is allocated.
INLINED: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False, "forceinline": True}
OUTER: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}


@cache
def compiled(source: Kernel | Primitive | Port, board: Any = None) -> Callable[..., Any]:
    """A Numba function with the parameters of the kernel: numpy arrays in their storage types, whole numbers.

    A record is passed as its fields. `board` has a function for each port that the kernel asks: what Numba compiles as
    f(the field of the record that stands for the board, arguments…, bytes).
    """
    if isinstance(source, Primitive):
        return _primitive(source)
    if isinstance(source, Port):
        if board is None:
            raise InputError(f"the port {source.name} has no function here; give compiled(kernel, board) one.")
        function: Callable[..., Any] = getattr(board, source.name)
        return function
    asked = board if source.asks else None
    function = jit(
        kernel_text(source, lambda one: compiled(one, None if isinstance(one, Primitive) else asked)), **INLINED
    )
    return function


def run(kernel: Kernel, values: Mapping[str, Any]) -> Any:
    """One call. What is left out: lengths are read from the arrays or typical, constant tables and zeros filled in.

    The result is what the kernel returns, or a dict of the arrays that it writes (with the key `returns` where it does
    both). Arrays that are given stay as they were.
    """
    values = given(kernel, values)
    shapes = {name: values[name].shape for name in kernel.arrays if name in values}
    lengths, sizes = lengths_of(kernel, values, shapes)
    made: dict[str, Any] = {}
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Length):
            made[name] = lengths[name]
        elif name in kernel.arrays:
            made[name] = _array_for(kernel, name, values, lengths, sizes[name])
        elif name in values:
            made[name] = scalar(kernel, name, values[name], lengths)
        else:
            raise InputError(f"{kernel.name} needs {name}; give it a number.")
    result = outer(kernel)(*made.values())
    written = {name: made[name] for name in kernel.parameters if name in kernel.written}
    if kernel.result is None:
        return written
    value = int(result)
    return {**written, RETURNS: value} if written else value


def _array_for(kernel: Kernel, name: str, values: Mapping[str, Any], lengths: Mapping[str, int], size: int) -> Any:
    kind = kernel.arrays[name]
    if name in values:
        return array(kernel, name, values[name], (size,), lengths, copy=name in kernel.written)
    if kind.contents is not None:
        return array(kernel, name, kind.contents[:size], (size,), lengths)
    if kind.written:
        return np.zeros(size, dtype(kind))
    raise InputError(f"{kernel.name} needs the array {name} of {kind.length} values; give it.")


@cache
def outer(kernel: Kernel) -> Callable[..., Any]:
    """The kernel as Python calls it, kept for later processes; the inlined form is for callers that Numba compiles."""
    function: Callable[..., Any] = jit(kernel_text(kernel, compiled), kept=True, **OUTER)
    return function


def _primitive(source: Primitive) -> Callable[..., Any]:
    """The primitive's own function over machine words, its result a word of its type.

    A primitive that does not ship gets its operands as 64-bit signed numbers, so that a difference of unsigned words or
    a comparison with a negative number is what it is in plain Python; those that ship are tested as they stand.
    """
    own = source.at.file == primitives.__file__
    inner = jit(_rebound(source.function), **INLINED)
    names = [f"a{k}" for k in range(len(source.operands))]
    wide = [not own and kind != "flag" for kind in source.operands]
    passed = [f"wide({name})" if widened else name for name, widened in zip(names, wide, strict=True)]
    scope: dict[str, Any] = {"inner": inner, "wide": numba.int64, "cast": TYPES[source.result]}
    exec(f"def primitive({', '.join(names)}):\n return cast(inner({', '.join(passed)}))\n", scope)
    function: Any = jit(scope["primitive"], **INLINED)
    if not own:
        try:
            function.compile(tuple(TYPES[kind] for kind in source.operands))
        except Exception as error:
            raise InputError(
                f"{source.at}: Numba cannot compile the primitive {source.name} ({_first_line(error)}); write it with "
                "whole numbers, `if`, Python's operators, and i32(…) or u32(…)."
            ) from error
    compiled_function: Callable[..., Any] = function
    return compiled_function


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("Failed in")), type(error).__name__).rstrip(".")


def _rebound(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with `i32`, `u32` and `i64` as Numba's casts, and other primitives compiled."""
    assert isinstance(function, FunctionType)

    def meaning(value: Any) -> Any:
        if not isinstance(value, Primitive):
            return value
        cast = value.name in CASTS and not value.operations
        return TYPES[value.name] if cast else compiled(value)

    names = {name: meaning(value) for name, value in function.__globals__.items() if name in function.__code__.co_names}
    cells = tuple(CellType(meaning(cell.cell_contents)) for cell in function.__closure__ or ())
    names["__builtins__"] = __builtins__
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells or None)
