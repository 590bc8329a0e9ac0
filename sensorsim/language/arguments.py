"""Arguments for a kernel, made from its declared formats: for counting, for tests, for golden vectors."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sensorsim.language import ir
from sensorsim.language.polynomial import OPERATORS, Polynomial
from sensorsim.language.types import Array, Below, Length, Q

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel


def arguments(kernel: "Kernel", lengths: Mapping[str, int], value: Callable[[str, int, int], int]) -> dict[str, Any]:
    """Make an argument for each parameter; `value(name, lo, hi)` chooses every number. Arrays are lists."""
    made: dict[str, Any] = {}
    for name, kind in kernel.parameters.items():
        if isinstance(kind, Length):
            made[name] = lengths[name]
        elif isinstance(kind, Array):
            lo, hi = bounds(kind.element, lengths)
            size = array_length(kernel, name, lengths)
            fill = (0 if kind.written else value(name, lo, hi) for _ in range(size))
            made[name] = list(kind.contents[:size] if kind.contents else fill)
        else:
            made[name] = value(name, *bounds(kind, lengths))
    return made


def bounds(kind: Q | Below, lengths: Mapping[str, int]) -> tuple[int, int]:
    """The smallest and the largest value of a scalar parameter or an array element."""
    return (0, lengths[kind.limit] - 1) if isinstance(kind, Below) else (kind.lo, kind.hi)


def array_length(kernel: "Kernel", name: str, lengths: Mapping[str, int]) -> int:
    """The number of elements of an array parameter."""
    return polynomial(kernel.sizes[name]).value(lengths)


def polynomial(size: ir.Expression) -> Polynomial:
    """A declared length such as `2 * n` as a polynomial."""
    match size:
        case ir.Const(value=value):
            return Polynomial.constant(value)
        case ir.Name(name=name):
            return Polynomial.variable(name)
        case ir.Index(operands=(one,)):
            return -polynomial(one)
        case ir.Index(operator=operator, operands=(left, right)):
            return OPERATORS[operator](polynomial(left), polynomial(right))
    raise TypeError(size)


def lengths_to_check(kernel: "Kernel") -> list[dict[str, int]]:
    """The lengths that every check runs at: all short, all odd, and each in turn long with the others typical."""
    kinds = kernel.lengths
    chosen = [{name: kind.tests[min(place, len(kind.tests) - 1)] for name, kind in kinds.items()} for place in (0, 1)]
    typical = {name: kind.typical for name, kind in kinds.items()}
    chosen += [{**typical, name: kind.tests[-1]} for name, kind in kinds.items()]
    for lengths in chosen:
        for name, kind in kinds.items():
            if kind.at_most is not None:
                lengths[kind.at_most] = max(lengths[kind.at_most], kind.lo)
                lengths[name] = min(lengths[name], lengths[kind.at_most])
    return [lengths for place, lengths in enumerate(chosen) if lengths not in chosen[:place]]
