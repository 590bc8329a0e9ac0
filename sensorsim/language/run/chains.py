"""What a kernel's last loop carries from turn to turn, where several blocks of records can carry it side by side.

Every block starts from the same state, so the pointers of several blocks can move in the lanes of one vector. That
needs the carried values to follow from each other, from drawn words and from what all records share, and the state to
be nothing but those values: read from it before the loop, left in it behind.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sensorsim.language import ir
from sensorsim.language.run.passes import Passes

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel


@dataclass(frozen=True)
class Chains:
    """The first pass in two: `chain` for all lanes at once, then `rest` for each record."""

    cells: dict[str, tuple[str, int]]  # a carried name, and the element of the state that it is
    chain: tuple[ir.Let, ...]
    rest: tuple[ir.Let, ...]
    held: dict[str, str]  # names of the chain that come later, with their types
    once: tuple[ir.Do, ...]  # calls before the loop, for each record


def chains_of(
    kernel: "Kernel", passes: Passes, state: tuple[str, ...], drawn: tuple[str, ...], shared: frozenset[str]
) -> Chains | None:
    """The chains of a first pass, or None where lanes would not do."""
    if not drawn or not set(drawn) <= set(kernel.arrays) or not all(isinstance(node, ir.Let) for node in passes.first):
        return None
    first = [node for node in passes.first if isinstance(node, ir.Let)]
    cells = _cells(passes, state)
    carried = {node.name for node in first if "." not in node.name}
    if cells is None or not carried or set(cells) != carried or {array for array, _ in cells.values()} != set(state):
        return None
    chain = _needed(first, carried)
    rest = tuple(node for node in first if node not in chain)
    known = {node.name for node in chain} | carried | {passes.counter} | shared | {let.name for let in passes.fixed}
    if not all(_simple(part, known, drawn) for node in chain for part in ir.walk(node.value)):
        return None
    later = {part.name for part in ir.walk(*rest, *passes.second) if isinstance(part, ir.Name)}
    held = {node.name: node.type for node in chain if node.name in later | set(passes.kept)}
    own = {node.name for node in rest} | set(held) | {passes.counter} | shared | {let.name for let in passes.fixed}
    used = {part.name for part in ir.walk(*rest) if isinstance(part, ir.Name)}
    if carried & later or not used <= own or not all(kind in ("u32", "i32") for kind in held.values()):
        return None
    rows = set(kernel.arrays) - set(drawn) - shared
    if any(isinstance(part, ir.Load | ir.Whole) and part.array in rows for part in ir.walk(*rest)):
        return None
    calls = tuple(node for node in passes.front if isinstance(node, ir.Do))
    if any(isinstance(part, ir.Load | ir.Whole) and part.array in drawn for part in ir.walk(*calls, *passes.second)):
        return None
    return Chains(cells, chain, rest, held, calls)


def _cells(passes: Passes, state: tuple[str, ...]) -> dict[str, tuple[str, int]] | None:
    """The carried names and their elements, if front and tail do nothing else with the state."""
    taken: dict[str, tuple[str, int]] = {}
    left: dict[str, tuple[str, int]] = {}
    for node in passes.front:
        match node:
            case ir.Let(name=name, value=ir.Load(array=array, index=ir.Const(value=place))) if array in state:
                taken[name] = array, place
            case ir.Do(call=call) if not any(_touches(part, state) for part in ir.walk(call)):
                if any(isinstance(part, ir.Name) and part.name in taken for part in ir.walk(call)):
                    return None
            case _ if node not in passes.fixed:
                return None
    for node in passes.tail:
        match node:
            case ir.Store(array=array, index=ir.Const(value=place), value=ir.Name(name=name)) if array in state:
                left[name] = array, place
            case _:
                return None
    return taken if taken == left and len(set(taken.values())) == len(taken) else None


def _touches(node: ir.Node, arrays: tuple[str, ...]) -> bool:
    return isinstance(node, ir.Load | ir.Whole) and node.array in arrays


def _needed(first: list[ir.Let], carried: set[str]) -> tuple[ir.Let, ...]:
    """The carried names and all that they are computed from, in order."""
    definition = {node.name: node for node in first}
    wanted: set[str] = set()
    ahead = list(carried)
    while ahead:
        name = ahead.pop()
        if name in definition and name not in wanted:
            wanted.add(name)
            ahead += [part.name for part in ir.walk(definition[name].value) if isinstance(part, ir.Name)]
    return tuple(node for node in first if node.name in wanted)


def _simple(part: ir.Node, known: set[str], drawn: tuple[str, ...]) -> bool:
    """Whether a part of the chain is the same work for every lane, on words that the lanes have side by side."""
    if isinstance(part, ir.Name):
        return part.name in known
    if isinstance(part, ir.Load):
        return part.array in drawn
    return isinstance(part, ir.Const | ir.Index | ir.Apply)
