"""Write kernels as Python source, for the Numba backend and for the counter of operations.

Every name of a kernel gets the prefix `v_`, or `f` if it is a field of a record, so that none collides with the
helpers: `t_…` are types, `p_…` primitives, `k_…` kernels.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sensorsim.language import ir
from sensorsim.language.parse import LanguageError
from sensorsim.language.types import Kind, word

CASTS = ("i32", "u32", "i64")
Lines = list[str]


def variable(name: str) -> str:
    """Return the name in the source; a field of a record, as `sensor.key`, has a dot."""
    return "f" + name.replace(".", "_") if "." in name else "v_" + name


class Source:
    """Write nodes as source, and collect in `scope` what they refer to."""

    def __init__(self, compiled: Callable[[Any], Any], types: Mapping[str, Any]) -> None:
        self.compiled = compiled
        self.scope: dict[str, Any] = {f"t_{name}": kind for name, kind in types.items()}
        self.known: dict[Any, str] = {}

    def block(self, statements: Iterable[ir.Statement], indent: int) -> Lines:
        lines = [line for statement in statements for line in self.statement(statement, indent)]
        return lines or [f"{' ' * indent}pass"]

    def statement(self, node: ir.Statement, indent: int) -> Lines:
        pad = " " * indent
        match node:
            case ir.Let(name=name, value=value):
                return [f"{pad}{variable(name)} = {self.cast(node.type, value)}"]
            case ir.Store(value=value):
                return [f"{pad}{self.element(node)} = {self.expression(value)}"]
            case ir.For(counter=counter, first=first, last=last, body=body):
                from_zero = isinstance(first, ir.Const) and first.value == 0
                ends = ("" if from_zero else f"{self.cast('index', first)}, ") + self.cast("index", last)
                return [f"{pad}for {variable(counter)} in range({ends}):", *self.block(body, indent + 1)]
            case ir.If(test=test, then=then, otherwise=otherwise):
                lines = [f"{pad}if {self.expression(test)}:", *self.block(then, indent + 1)]
                return [*lines, f"{pad}else:", *self.block(otherwise, indent + 1)] if otherwise else lines
            case ir.Break():
                return [f"{pad}break"]
            case ir.Do(call=call):
                return [f"{pad}{self.expression(call)}"]
            case ir.Return(value=value):
                return [f"{pad}return {self.expression(value)}" if value is not None else f"{pad}return"]
        raise TypeError(node)

    def element(self, node: ir.Load | ir.Store) -> str:
        return f"{variable(node.array)}[t_place({self.expression(node.index)})]"

    def expression(self, node: ir.Node) -> str:
        match node:
            case ir.Const(value=value):
                return f"({value})" if value < 0 else str(value)
            case ir.Name(name=name):
                return variable(name)
            case ir.Whole(array=array):
                return variable(array)
            case ir.Load():
                return f"t_{node.type}({self.element(node)})"
            case ir.Index(operator=operator, operands=(one,)):
                return f"({operator}{self.cast('index', one)})"
            case ir.Index(operator=operator, operands=(left, right)):
                return f"({self.cast('index', left)} {operator} {self.cast('index', right)})"
            case ir.Apply(primitive=target, operands=below) if target.name in CASTS and not target.operations:
                return f"t_{target.name}({self.expression(below[0])})"
            case ir.Apply(primitive=target, operands=below):
                given = (self.word(kind, value) for kind, value in zip(target.operands, below, strict=True))
                return f"{self.named('p', target)}({', '.join(given)})"
            case ir.Call(kernel=called, arguments=below):
                passed = map(self.argument, called.parameters.values(), below)
                return f"{self.named('k', called)}({', '.join(passed)})"
            case ir.Ask(port=port, board=board, arguments=below, array=array):
                asked = [
                    variable(board),
                    *(self.cast(word(kind), value) for kind, value in zip(port.takes, below, strict=True)),
                ]
                part = [] if array is None else [f"{variable(array)}[{node.first}:{node.last}]"]
                return f"t_{node.type}({self.named('b', port)}({', '.join([*asked, *part])}))"
        raise TypeError(node)

    def argument(self, kind: Kind, value: ir.Expression | ir.Whole) -> str:
        """Write an argument of a kernel: numbers as words of its types, so that it is compiled for one set of types."""
        if isinstance(value, ir.Whole):
            return self.expression(value)
        return self.cast(word(kind), value)

    def word(self, kind: str, value: ir.Expression) -> str:
        """Write an operand: a number or an index becomes a word of the type that the primitive takes."""
        return self.cast(kind, value) if value.type in ("index", "const") else self.expression(value)

    def cast(self, kind: str, value: ir.Expression) -> str:
        text = self.expression(value)
        return text if value.type == kind else f"t_{kind}({text})"

    def named(self, prefix: str, target: Any) -> str:
        """Return the name under which the source calls a kernel or primitive."""
        if target not in self.known:
            self.known[target] = f"{prefix}{len(self.known)}_{target.name}"
            self.scope[self.known[target]] = self.compiled(target)
        return self.known[target]

    def function(self, name: str, lines: Lines) -> Any:
        """Return the plain Python function of this source."""
        try:
            exec(compile("\n".join(lines) + "\n", f"<{name}>", "exec"), self.scope)  # made of the kernel's own nodes
        except SyntaxError as error:  # more than 20 loops in each other, which only a kernel from data can have
            raise LanguageError(f"a kernel cannot be run: {error.msg}; nest its loops less deeply.") from None
        return self.scope[name]
