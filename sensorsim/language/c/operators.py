"""Choose the C form of each primitive and its helper functions, and the pointers to parts of arrays.

Where several values are read from one place on, such as the thresholds of a row, C gets a pointer to that place. From
table[first + 1] and table[first + k] a compiler may compute two addresses; from a pointer to table[first] it computes
one, and the rest is part of the load.
"""

import re
from collections.abc import Iterable, Sequence

from sensorsim.language import ir
from sensorsim.language.c.helpers import DEFINED
from sensorsim.language.kernel import Kernel
from sensorsim.language.parse import LanguageError
from sensorsim.language.primitive import Primitive
from sensorsim.language.primitives import addu, max_, maxu, min_, minu, selectu

CALL = re.compile(r"ss_\w+\((\{\d\}|\w+)(, (\{\d\}|\w+))*\)")  # its operands are arguments
BINARY = re.compile(r"\{0\} (\S+) \{1\}")  # one operator between two operands
CAST = re.compile(r"\(u?int32_t\)(\w+|)\([^()]*(\([^()]*\)[^()]*)*\)")
WORD = 2**31 - 1
EITHER_WAY = (min_, minu, max_, maxu)  # the order of their operands does not matter


def form_of(kernel: Kernel, node: ir.Apply, as_test: bool) -> str:
    """Return the C form for this place; LanguageError says what the primitive lacks."""
    target = node.primitive
    if as_test:
        return _checked(kernel, node, target.c_test, "c_test")
    near = re.sub(r"^(ss_\w+)\(", r"\1_near(", target.c)
    known = [name for text in target.helpers for name in DEFINED.findall(text)]
    if near.partition("(")[0] in known and near != target.c and _is_near(kernel, node):
        return _checked(kernel, node, near, "c")
    if target.c:
        return _checked(kernel, node, target.c, "c")
    what = "as a value (its c=)" if target.c_test else "(its c=)"
    raise _error(kernel, node, f"the primitive {target.name} ({target.at}) has no C form {what}")


def is_test(kernel: Kernel, node: ir.Expression) -> bool:
    """Return whether the condition of an `if` is written as a C comparison.

    Not one that the ranges decide, as x >= 0 of an unsigned x, not x >= x, and not one of ~x: compilers warn of all
    three, so the value of the comparison is asked for.
    """
    if not isinstance(node, ir.Apply) or not node.primitive.c_test:
        return False
    if any(isinstance(one, ir.Apply) and one.primitive.c.startswith("~") for one in node.operands):
        return False
    if len(node.operands) == 2 and ir.same(*map(_bare, node.operands)):
        return False
    spans = _spans(kernel, node)
    return spans is None or len(spans) != 2 or (spans[0][0] < spans[1][1] and spans[1][0] <= spans[0][1])


def _bare(node: ir.Expression) -> ir.Expression:
    """Return the operand without casts, which C may not show."""
    while isinstance(node, ir.Apply) and not node.primitive.operations and len(node.operands) == 1:
        node = node.operands[0]
    return node


def is_atom(form: str) -> bool:
    """Return whether an expression of this form needs no parentheses as an operand."""
    return CALL.fullmatch(form) is not None or CAST.fullmatch(form) is not None


def is_number(node: ir.Node) -> bool:
    """Return whether a node is a number, or a cast of one, such as u32(5)."""
    if isinstance(node, ir.Apply) and not node.primitive.operations:
        return is_number(node.operands[0])
    return isinstance(node, ir.Const)


def in_order(node: ir.Apply) -> tuple[ir.Expression, ...]:
    """Return the operands; of a minimum or maximum the fixed one last, since the C adds a difference to it."""
    if node.primitive in EITHER_WAY and (is_number(node.operands[0]) or isinstance(node.operands[0], ir.Index)):
        return node.operands[::-1]
    return node.operands


def zero_or_one(node: ir.Apply) -> bool | None:
    """Return True for a choice between 1 and 0, which is the condition itself, False for 0 and 1, else None."""
    if node.primitive is not selectu or not all(map(is_number, node.operands[1:])):
        return None
    values = [part.value for operand in node.operands[1:] for part in ir.walk(operand) if isinstance(part, ir.Const)]
    return values == [1, 0] if values in ([1, 0], [0, 1]) else None


def widened(form: str, operands: tuple[ir.Expression, ...]) -> set[int]:
    """Return the operands that are numbers and need a cast: C computes in `int`, which may have 16 bits.

    A shift has the type of its left operand; any other operator that of the wider one, so one number beside a word is
    harmless. Where a form has more than one operator, no number is left to chance.
    """
    numbers = {place for place, operand in enumerate(operands) if is_number(operand)}
    found = BINARY.fullmatch(form)
    if CALL.fullmatch(form):
        return set()
    if found and found[1] in ("<<", ">>"):
        return numbers & {0}
    if found:
        return {0} if numbers == {0, 1} else set()
    harmless = r"(_t\)|<< |>> |, )\{PLACE\}|\w\(\{PLACE\}[,)]"  # cast already, a count, an argument
    return {place for place in numbers if not re.search(harmless.replace("PLACE", str(place)), form)}


def helpers_of(kernels: Iterable[Kernel]) -> dict[str, str]:
    """Return the helper texts of all primitives of the kernels, in order, each with the functions that it defines."""
    found: dict[str, str] = {}
    owner: dict[str, tuple[str, Primitive]] = {}
    for kernel in kernels:
        for target in (node.primitive for node in kernel.nodes if isinstance(node, ir.Apply)):
            for text in target.helpers:
                for name in DEFINED.findall(text):
                    other, first = owner.setdefault(name, (text, target))
                    if other != text:
                        message = f"{name}() has another text than that of the primitive {first.name} ({first.at})"
                        raise LanguageError(f"{target.at}: the helper {message}; give it another name.")
                found[text] = " ".join(dict.fromkeys(DEFINED.findall(text)))
    return found


def _spans(kernel: Kernel, node: ir.Apply) -> tuple[tuple[int, int], ...] | None:
    """Return the proved intervals of the operands, or None if they depend on the callers of the kernel."""
    try:
        return kernel.prove().operands.get(node)
    except LanguageError:
        return None


def _is_near(kernel: Kernel, node: ir.Apply) -> bool:
    """Return whether both differences of the two operands are proved to fit a signed word."""
    spans = _spans(kernel, node)
    if spans is None or len(spans) != 2:
        return False
    (a, b), (c, d) = spans
    return b - c <= WORD and d - a <= WORD and b < 2 * WORD + 1


def _checked(kernel: Kernel, node: ir.Apply, form: str, field: str) -> str:
    target = node.primitive
    defined = {name for text in target.helpers for name in DEFINED.findall(text)}
    for name in re.findall(r"\bss_\w+", form):
        if name not in defined:
            what = f"{field}= of the primitive {target.name} ({target.at}) calls {name}, which no helper= of it defines"
            raise _error(kernel, node, what)
    try:
        form.format(*target.operands)
    except (IndexError, KeyError, ValueError):
        raise _error(
            kernel, node, f"{field}= of the primitive {target.name} ({target.at}) has braces for other operands"
        ) from None
    return form


def _error(kernel: Kernel, node: ir.Node, what: str) -> LanguageError:
    return LanguageError(f"{node.at}: in kernel {kernel.name}, {what}; give it one to write C.")


def parted(index: ir.Expression) -> tuple[str, ir.Expression | None]:
    """Split an index `name` or `name + rest` into name and rest; the name is empty for any other index."""
    match index:
        case ir.Name(name=name):
            return name, None
        case ir.Apply(primitive=primitive, operands=(ir.Name(name=name), rest)) if primitive is addu:
            return name, rest
    return "", None


def starts(kernel: Kernel) -> dict[str, list[str]]:
    """Return, by name of a value, the arrays of which a part is read that starts there.

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
                arrays = [load.array for load in loads if parted(load.index)[0] == node.name and parted(load.index)[1]]
                found[node.name] = [name for name in dict.fromkeys(arrays) if name not in kernel.written]
    return found


def _blocks(body: Sequence[ir.Statement]) -> list[Sequence[ir.Statement]]:
    blocks = [body]
    for node in body:
        match node:
            case ir.For(body=inner):
                blocks += _blocks(inner)
            case ir.If(then=then, otherwise=otherwise):
                blocks += [*_blocks(then), *_blocks(otherwise)]
    return blocks
