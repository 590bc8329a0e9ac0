"""Compile a kernel with Numba and run single calls, with the results of plain Python bit for bit.

Numba promotes int32 + int32 to int64; the casts of the primitives and those at every name bring the results back to 32
bits. The source that is compiled comes from the nodes of `ir`, so a kernel from a notebook compiles as one from a file.
"""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from types import CellType, FunctionType
from typing import Any

import numba
import numpy as np

from sensorsim._util.errors import InputError
from sensorsim.language import ir, primitives
from sensorsim.language.arguments import array_length, bounds, polynomial
from sensorsim.language.kernel import Kernel
from sensorsim.language.numba_backend.jit import jit
from sensorsim.language.primitive import Primitive
from sensorsim.language.python_source import CASTS, Source, variable
from sensorsim.language.types import STORAGE, Array, Below, Kind, Length, Port, Q, numpy_name, word

TYPES = {"u32": numba.uint32, "i32": numba.int32, "i64": numba.int64, "index": numba.int64, "flag": numba.boolean}
TYPES["place"] = numba.uint64  # unsigned: Numba then does not look whether a place counts from the end
RETURNS = "returns"
# error_model: division by zero is defined by the primitives, so Numba need not raise. _nrt: nothing is allocated.
INLINED: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False, "forceinline": True}
OUTER: dict[str, Any] = {"error_model": "numpy", "nogil": True, "_nrt": False}


@cache
def compiled(source: Kernel | Primitive | Port, board: Any = None) -> Callable[..., Any]:
    """Return a Numba function with the parameters of the kernel: numpy arrays in their storage types, whole numbers.

    A record is passed as its fields. `board` has a function for each port that the kernel asks. Numba compiles it as
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
        kernel_function(source, lambda one: compiled(one, None if isinstance(one, Primitive) else asked)), **INLINED
    )
    return function


def run(kernel: Kernel, values: Mapping[str, Any]) -> Any:
    """Call the kernel once, and return its result or a dict of the arrays that it writes, or both (key `returns`).

    A length that is not given is read from the arrays or typical; constant tables and arrays of zeros are filled in.
    Arrays that are given are not changed.
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
    """Return the kernel for callers in Python, with stored machine code; `compiled` is for callers in Numba."""
    function: Callable[..., Any] = jit(kernel_function(kernel, compiled), kept=True, **OUTER)
    return function


def _primitive(source: Primitive) -> Callable[..., Any]:
    """Return the primitive's function over machine words, its result a word of its type.

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
    """Return the function with `i32`, `u32` and `i64` as Numba's casts, and other primitives compiled."""
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


NUMPY = {name: np.dtype(numpy_name(name)) for name in STORAGE}
SPANS = {  # what an array of whole numbers can hold: where that is within a format, no value needs to be looked at
    (kind, size): (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1) if kind == "i" else (0, (1 << 8 * size) - 1)
    for kind in "iu"
    for size in (1, 2, 4, 8)
}


def dtype(kind: Kind) -> "np.dtype[Any]":
    """Return the numpy type of a parameter's storage."""
    return NUMPY[kind.storage]


def given(kernel: Kernel, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as numpy arrays, without those that are None."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        if name not in kernel.parameters:
            raise InputError(f"{kernel.name} has no parameter {name}; it has {', '.join(kernel.parameters)}.")
        if value is not None:
            try:
                made[name] = np.asarray(value)
            except ValueError as error:
                raise InputError(f"{name} of {kernel.name} has rows of several lengths; give rows alike.") from error
    return made


def lengths_of(
    kernel: Kernel, values: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return every length (as given, else from the arrays' sizes, else typical), and the size of every array."""
    known = tuple((name, whole(kernel, name, values[name])) for name in kernel.lengths if name in values)
    ends = tuple((name, shape[-1]) for name, shape in shapes.items() if shape)
    return _lengths_of(kernel, known, ends)


@lru_cache(maxsize=256)
def _lengths_of(
    kernel: Kernel, values: tuple[tuple[str, int], ...], ends: tuple[tuple[str, int], ...]
) -> tuple[dict[str, int], dict[str, int]]:
    known = dict(values)
    for _ in kernel.lengths:  # a size of two lengths is solved when the other one is known
        for name, end in ends:
            size = kernel.sizes[name]
            unknown = {node.name for node in ir.walk(size) if isinstance(node, ir.Name)} - set(known)
            if len(unknown) == 1:
                length = unknown.pop()
                found = _solved(kernel, size, length, known, end)
                if found is not None:
                    known[length] = found
    lengths = kernel.lengths_at(known)
    return lengths, {name: array_length(kernel, name, lengths) for name in kernel.arrays}


def _solved(kernel: Kernel, size: ir.Expression, length: str, given: Mapping[str, int], wanted: int) -> int | None:
    """Find the length that gives an array its size, by bisection: sizes are monotone; None if there is none."""
    kind, of = kernel.lengths[length], polynomial(size)
    lo, hi = kind.lo, kind.hi
    rising = of.value({**given, length: hi}) >= of.value({**given, length: lo})
    while lo < hi:
        middle = (lo + hi) // 2
        found = of.value({**given, length: middle})
        if found >= wanted if rising else found <= wanted:
            hi = middle
        else:
            lo = middle + 1
    return lo if of.value({**given, length: lo}) == wanted else None


def whole(kernel: Kernel, name: str, value: Any) -> int:
    made = np.asarray(value)
    if made.shape or made.dtype.kind not in "iu":
        raise InputError(f"{name} of {kernel.name} is no whole number; give one.")
    return int(made)


def scalar(kernel: Kernel, name: str, value: Any, lengths: Mapping[str, int]) -> Any:
    """Return a number of the declared format in its storage type."""
    return array(kernel, name, whole(kernel, name, value), (), lengths)[()]


def array(
    kernel: Kernel,
    name: str,
    value: Any,
    shape: tuple[int, ...],
    lengths: Mapping[str, int],
    copy: bool = False,
) -> Any:
    """Return values of the declared format as a contiguous array of its storage type; InputError for others."""
    kind = kernel.parameters[name]
    element = kind.element if isinstance(kind, Array) else kind
    assert isinstance(element, Q | Below)
    made = np.asarray(value)
    if made.shape != shape:
        raise InputError(f"{name} of {kernel.name} has the shape {_shape(made.shape)}; give {_shape(shape)}.")
    if made.dtype.kind not in "iu":
        raise InputError(f"{name} of {kernel.name} holds {made.dtype} values; give whole numbers, as {dtype(kind)}.")
    lo, hi = bounds(element, lengths)
    least, most = SPANS[made.dtype.kind, made.dtype.itemsize]
    if isinstance(kind, Array) and kind.written:  # what it holds is never read
        lo, hi = STORAGE[kind.storage]
    if made.size and (least < lo or most > hi):
        least, most = int(made.min()), int(made.max())
        if least < lo or most > hi:
            bad = least if least < lo else most
            raise InputError(
                f"{name} of {kernel.name} holds {bad}; its format allows {lo} … {hi}, so give such values."
            )
    if copy:
        return np.array(made, dtype(kind), order="C", copy=True)
    return np.ascontiguousarray(made, dtype(kind)).reshape(shape)


def _shape(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) if shape else "of one number"


def kernel_function(kernel: Kernel, compiled: Callable[[Any], Any]) -> Any:
    """Return a kernel as a plain function of machine words; scalars become words of their type on entry."""
    text = Source(compiled, TYPES)
    lines = [f"def kernel({', '.join(map(variable, kernel.parameters))}):"]
    lines += [entry(name, kind) for name, kind in kernel.parameters.items() if not isinstance(kind, Array)]
    result = word(kernel.result) if kernel.result is not None else None
    return text.function("kernel", lines + text.block(_returning(kernel.body, result), 1))


def entry(name: str, kind: Kind) -> str:
    return f" {variable(name)} = t_{word(kind)}({variable(name)})"


def _returning(body: tuple[ir.Statement, ...], result: str | None) -> tuple[ir.Statement, ...]:
    """Cast every result to the type of the kernel's, so that Numba sees one type on all paths."""
    if result is None:
        return body

    def cast(node: ir.Statement) -> ir.Statement:
        match node:
            case ir.Return(at=at, value=value) if value is not None:
                return ir.Return(at, "none", ir.Apply(at, result, getattr(primitives, result), (value,)))
            case ir.If(at=at, test=test, then=then, otherwise=otherwise):
                return ir.If(at, "none", test, tuple(map(cast, then)), tuple(map(cast, otherwise)))
            case ir.For(at=at, counter=counter, first=first, last=last, body=below):
                return ir.For(at, "none", counter, first, last, tuple(map(cast, below)))
        return node

    return tuple(map(cast, body))
