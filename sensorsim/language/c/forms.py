"""The C form of a primitive: which of its texts stands where, and the helper functions that go with it."""

import re
from collections.abc import Iterable

from sensorsim.language import ir
from sensorsim.language.kernel import Kernel
from sensorsim.language.parse import LanguageError
from sensorsim.language.primitive import Primitive
from sensorsim.language.primitives import max_, maxu, min_, minu, selectu

CALL = re.compile(r"ss_\w+\((\{\d\}|\w+)(, (\{\d\}|\w+))*\)")  # its operands are arguments
BINARY = re.compile(r"\{0\} (\S+) \{1\}")  # one operator between two operands
CAST = re.compile(r"\(u?int32_t\)(\w+|)\([^()]*(\([^()]*\)[^()]*)*\)")
DEFINED = re.compile(r"^(?:static [\w ]+?\b|#define )(ss_\w+)\(", re.MULTILINE)
WORD = 2**31 - 1
EITHER_WAY = (min_, minu, max_, maxu)  # the order of their operands does not matter


def form_of(kernel: Kernel, node: ir.Apply, as_test: bool) -> str:
    """The text for this place; LanguageError says what the primitive lacks."""
    target = node.primitive
    if as_test:
        return _checked(kernel, node, target.c_test, "c_test")
    near = target.c_near or _near_helper(target)
    if near and _is_near(kernel, node):
        return _checked(kernel, node, near, "c_near")
    if target.c:
        return _checked(kernel, node, target.c, "c")
    what = "as a value (its c=)" if target.c_test else "(its c=)"
    raise _error(kernel, node, f"the primitive {target.name} ({target.at}) has no C form {what}")


def is_test(kernel: Kernel, node: ir.Expression) -> bool:
    """Whether the condition of an `if` is written as a C comparison.

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
    """The operand without casts, which C may not show."""
    while isinstance(node, ir.Apply) and not node.primitive.operations and len(node.operands) == 1:
        node = node.operands[0]
    return node


def is_atom(form: str) -> bool:
    """Whether a text that comes of the form needs no parentheses as an operand."""
    return CALL.fullmatch(form) is not None or CAST.fullmatch(form) is not None


def is_number(node: ir.Node) -> bool:
    """A number, or one whose sign is given, as u32(5)."""
    if isinstance(node, ir.Apply) and not node.primitive.operations:
        return is_number(node.operands[0])
    return isinstance(node, ir.Const)


def in_order(node: ir.Apply) -> tuple[ir.Expression, ...]:
    """The operands; of a minimum or maximum the fixed one last, to which the C adds what the other falls short by."""
    if node.primitive in EITHER_WAY and _is_fixed(node.operands[0]):
        return node.operands[::-1]
    return node.operands


def _is_fixed(node: ir.Node) -> bool:
    return is_number(node) or isinstance(node, ir.Index)


def zero_or_one(node: ir.Apply) -> bool | None:
    """Whether a choice is between 1 and 0 (then it is the condition itself), or 0 and 1; None if neither."""
    if node.primitive is not selectu or not all(map(is_number, node.operands[1:])):
        return None
    values = [part.value for operand in node.operands[1:] for part in ir.walk(operand) if isinstance(part, ir.Const)]
    return values == [1, 0] if values in ([1, 0], [0, 1]) else None


def widened(form: str, operands: tuple[ir.Expression, ...]) -> set[int]:
    """The operands that are numbers and need a cast, because C would compute with them in `int`, which may be short.

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
    """The helper texts of all primitives that the kernels use, in order, each with the functions that it defines."""
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
    """What is proved of the operands, or None for a kernel that holds only for what its callers pass."""
    try:
        return kernel.prove().operands.get(node)
    except LanguageError:
        return None


def _near_helper(target: Primitive) -> str:
    """The form of a helper ss_f_near beside ss_f; empty where there is none."""
    form = re.sub(r"^(ss_\w+)\(", r"\1_near(", target.c)
    return form if any(form.startswith(f"{name}(") for text in target.helpers for name in DEFINED.findall(text)) else ""


def _is_near(kernel: Kernel, node: ir.Apply) -> bool:
    """Whether the difference of two operands is proved to fit a signed word, whichever is taken from which."""
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
