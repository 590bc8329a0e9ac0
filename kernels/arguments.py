"""Arguments for a kernel, made from its declared formats: for counting, for tests, for golden vectors."""

from collections.abc import Callable, Mapping
from typing import Any

from sensorsim.kernels.formats import Array, Below, Length, Q
from sensorsim.kernels.language import Kernel


def lengths_of(kernel: Kernel, given: Mapping[str, int]) -> dict[str, int]:
    """Every length parameter of the kernel with its value: the one given, or the smallest allowed."""
    return {name: given.get(name, kind.lo) for name, kind in kernel.parameters.items() if isinstance(kind, Length)}


def arguments(kernel: Kernel, lengths: Mapping[str, int], value: Callable[[str, int, int], int]) -> dict[str, Any]:
    """One argument for each parameter; `value(name, lo, hi)` chooses every number. Arrays are lists."""
    known = lengths_of(kernel, lengths)
    made: dict[str, Any] = {}
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Length):
            made[name] = known[name]
        elif isinstance(kind, Array):
            size = array_length(kind, known)
            lo, hi = bounds(kind.element, known)
            filled = kind.contents or (0 if kind.written else value(name, lo, hi) for _ in range(size))
            made[name] = list(filled)
        else:
            made[name] = value(name, *bounds(kind, known))
    return made


def bounds(kind: Q | Below, lengths: Mapping[str, int]) -> tuple[int, int]:
    """The smallest and the largest value of a scalar parameter or an array element."""
    return (0, lengths[kind.limit] - 1) if isinstance(kind, Below) else (kind.lo, kind.hi)


def array_length(kind: Array, lengths: Mapping[str, int]) -> int:
    """The number of elements, from the declared expression such as `2 * n`."""
    return int(eval(kind.length, {"__builtins__": {}}, dict(lengths)))  # the text is ours: a declaration in kernels/
