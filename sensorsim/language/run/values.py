"""What is given to a kernel, checked once against its declared formats and brought to their storage types."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from sensorsim.errors import InputError
from sensorsim.language import ir
from sensorsim.language.arguments import array_length, bounds, polynomial
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import STORAGE, Array, Below, Kind, Q, numpy_name

NUMPY = {name: np.dtype(numpy_name(name)) for name in STORAGE}
SPANS = {  # what an array of whole numbers can hold: where that is within a format, no value needs to be looked at
    (kind, size): (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1) if kind == "i" else (0, (1 << 8 * size) - 1)
    for kind in "iu"
    for size in (1, 2, 4, 8)
}


def dtype(kind: Kind) -> "np.dtype[Any]":
    """The numpy type of a parameter's storage."""
    return NUMPY[kind.storage]


def given(kernel: Kernel, values: Mapping[str, Any]) -> dict[str, Any]:
    """What is given, as numpy arrays; None is as if it were not there."""
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
    """Every length (the one given, or what the arrays' sizes say, or the typical one), and the size of every array."""
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
    """The value of a length at which an array is as long as the one given: by halving, since sizes are monotone."""
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
    """One number of the declared format, in its storage type."""
    return array(kernel, name, whole(kernel, name, value), (), lengths)[()]


def array(
    kernel: Kernel,
    name: str,
    value: Any,
    shape: tuple[int, ...],
    lengths: Mapping[str, int],
    copy: bool = False,
) -> Any:
    """Values of the declared format in its storage type, contiguous; InputError for anything else."""
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
