"""Which array parameters are constant tables, and so may lie in flash.

On a core with a memory of its own for programs (AVR) a pointer into flash is another type than one into RAM. So all
parameters that are passed on to each other are of one kind, and what the first of them gets decides: a table that the
kernel declares, one that the package binds, or else an array of the caller's.
"""

from collections.abc import Iterable, Iterator, Sequence

from sensorsim.errors import InputError
from sensorsim.language import ir
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array

Parameter = tuple[Kernel, str]


def flash_parameters(kernels: Sequence[Kernel], bound: Iterable[Parameter]) -> frozenset[Parameter]:
    """The parameters that take constant tables; `bound` are those that the package binds to one.

    InputError where a parameter would get a bound table from one caller and an array from another, or is written.
    """
    wanted = frozenset(bound)
    for kernel, name in wanted:
        if kernel not in kernels or name not in kernel.arrays:
            raise InputError(f"{kernel.name} has no array {name} in this package; bind a table that one of them takes.")
    passed = [pair for kernel in kernels for pair in _passed(kernel)]
    fed = {receiver for _, receiver in passed}
    found: set[Parameter] = set()
    for group in _groups(kernels, passed):
        firsts = [one for one in group if one not in fed]
        if not wanted.isdisjoint(group):
            _check(group, firsts, wanted)
        if all(one in wanted or _declared(one) for one in firsts):
            found |= group
    return frozenset(found)


def _passed(kernel: Kernel) -> Iterator[tuple[Parameter, Parameter]]:
    """Every array that the kernel passes on: whose parameter it is, and whose it becomes."""
    for node in kernel.nodes:
        if isinstance(node, ir.Call):
            for name, value in zip(node.kernel.parameters, node.arguments, strict=True):
                if isinstance(value, ir.Whole):
                    yield (kernel, value.array), (node.kernel, name)


def _groups(kernels: Sequence[Kernel], passed: Sequence[tuple[Parameter, Parameter]]) -> list[set[Parameter]]:
    """The array parameters, those together that are passed on to each other."""
    group = {(kernel, name): {(kernel, name)} for kernel in kernels for name in kernel.arrays}
    for one, other in passed:
        if group[one] is not group[other]:
            group[one] |= group[other]
            for member in group[other]:
                group[member] = group[one]
    return list({id(members): members for members in group.values()}.values())


def _declared(parameter: Parameter) -> bool:
    kernel, name = parameter
    kind = kernel.parameters[name]
    return isinstance(kind, Array) and kind.contents is not None


def _check(group: Iterable[Parameter], firsts: Iterable[Parameter], wanted: frozenset[Parameter]) -> None:
    for kernel, name in group:
        if name in kernel.written:
            raise InputError(
                f"{kernel.name} writes {name}, which is bound to a constant table; bind only what is read."
            )
    for kernel, name in firsts:
        if (kernel, name) not in wanted and not _declared((kernel, name)):
            other = min(f"{one.name}'s {parameter}" for one, parameter in wanted if (one, parameter) in group)
            raise InputError(
                f"{kernel.name} passes {name} to a kernel that also gets {other}, a constant table; bind both or "
                "neither, or export the kernels in two packages."
            )
