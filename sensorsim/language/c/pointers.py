"""Parts of arrays: where several values are read from one place on, as the thresholds of a row, C names that place.

A compiler that is given table[first + 1] and table[first + k] may work out two addresses; of a pointer to table[first]
it makes one, and the rest is part of the load.
"""

from collections.abc import Sequence

from sensorsim.language import ir
from sensorsim.language.kernel import Kernel
from sensorsim.language.primitives import addu


def parted(index: ir.Expression) -> tuple[str, ir.Expression | None]:
    """An index that is a name, or a name plus something: the name and the rest; an empty name for any other."""
    match index:
        case ir.Name(name=name):
            return name, None
        case ir.Apply(primitive=primitive, operands=(ir.Name(name=name), rest)) if primitive is addu:
            return name, rest
    return "", None


def starts(kernel: Kernel) -> dict[str, list[str]]:
    """By name of a value: the arrays of which a part is read that starts there.

    The value must be given once, and a value of the part be read whatever happens, so that it begins in the array. An
    array that the kernel writes is left as it is.
    """
    lets = [node.name for node in kernel.nodes if isinstance(node, ir.Let)]
    found: dict[str, list[str]] = {}
    for block in _blocks(kernel.body):
        for place, node in enumerate(block):
            if isinstance(node, ir.Let) and lets.count(node.name) == 1 and node.name not in kernel.parameters:
                straight = [one for one in block[place + 1 :] if not isinstance(one, ir.For | ir.If)]
                loads = [part for part in ir.walk(*straight) if isinstance(part, ir.Load)]
                arrays = [load.array for load in loads if parted(load.index)[0] == node.name and _apart(load)]
                found[node.name] = [name for name in dict.fromkeys(arrays) if name not in kernel.written]
    return found


def _apart(load: ir.Load) -> bool:
    return parted(load.index)[1] is not None


def _blocks(body: Sequence[ir.Statement]) -> list[Sequence[ir.Statement]]:
    blocks = [body]
    for node in body:
        match node:
            case ir.For(body=inner):
                blocks += _blocks(inner)
            case ir.If(then=then, otherwise=otherwise):
                blocks += [*_blocks(then), *_blocks(otherwise)]
    return blocks
