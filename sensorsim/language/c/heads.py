"""The heads of C functions: what stands before a body, and whether a function is short enough to be inline."""

from sensorsim.language import ir
from sensorsim.language.arguments import polynomial
from sensorsim.language.bounds import Bounds
from sensorsim.language.c.names import Names, spelled
from sensorsim.language.c.text import C_TYPES, WIDTH, comment
from sensorsim.language.kernel import Kernel
from sensorsim.language.types import Array, grouped


def signature(kernel: Kernel, names: Names, lead: str = "") -> str:
    """The function's head after `lead`, as `static`; one parameter per line where it would be too long."""
    return _head(kernel, names, f"{lead}{_result(kernel)} {names.functions[kernel]}")


def pointer(kernel: Kernel, names: Names, name: str) -> str:
    """A constant pointer to the function that the compiler must not see through."""
    return _head(kernel, names, f"static {_result(kernel)} (*const volatile {name})") + f" = {names.functions[kernel]};"


def apart(kernel: Kernel, names: Names) -> str:
    """Return the pointer that a kernel is called through where its stack must lie apart; nothing for others."""
    if not kernel.apart:
        return ""
    why = comment(["Called through this, so that no compiler merges its frame with that of its caller."])
    return f"\n{why}\n{pointer(kernel, names, names.called(kernel))}\n"


def _head(kernel: Kernel, names: Names, start: str) -> str:
    spelling = spelled(kernel, names.prefix)
    parameters = [
        _record(kernel, owner, names) if owner in kernel.records else _parameter(kernel, owner, spelling[owner], names)
        for owner in grouped(kernel.parameters)
    ]
    line = f"{start}({', '.join(parameters) or 'void'})"
    if len(line) <= WIDTH:
        return line
    return f"{start}(\n" + ",\n".join(f"    {parameter}" for parameter in parameters) + ")"


def _result(kernel: Kernel) -> str:
    return C_TYPES[kernel.result.storage] if kernel.result is not None else "void"


def _record(kernel: Kernel, owner: str, names: Names) -> str:
    const = "" if any(name.startswith(f"{owner}.") for name in kernel.written) else "const "
    return f"{const}{names.prefix}{kernel.records[owner].name} *{owner}"


def _parameter(kernel: Kernel, name: str, spelling: str, names: Names) -> str:
    kind = kernel.parameters[name]
    if isinstance(kind, Array):
        const = "" if name in kernel.written else "const "
        const += "volatile " if kernel.lasting else ""
        return f"{const}{space(kernel, name, names)}{C_TYPES[kind.storage]} {spelling}[]"
    return f"{C_TYPES[kind.storage]} {spelling}"


def space(kernel: Kernel, array: str, names: Names) -> str:
    return f"{names.prefix.upper()}FLASH " if (kernel, array) in names.in_flash else ""


def has_loop(kernel: Kernel) -> bool:
    """Whether something is done again and again; a loop of one round at most is none."""
    return any(isinstance(node, ir.For) and not _at_most_once(kernel, node) for node in kernel.nodes)


def _at_most_once(kernel: Kernel, node: ir.For) -> bool:
    for part in ir.walk(node.first, node.last):
        plain = isinstance(part, ir.Const | ir.Index) or (isinstance(part, ir.Name) and part.name in kernel.lengths)
        if not plain:
            return False
    bounds = Bounds()
    for name, kind in kernel.lengths.items():
        bounds.length(name, kind.lo, kind.hi, kind.at_most)
    return bounds.highest(polynomial(node.last) - polynomial(node.first)) <= 1
