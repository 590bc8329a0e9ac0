"""Write kernels as Python source that Numba compiles.

Every name of a kernel gets a prefix (`v_`, or `f` and a number for names that a transformation made), so that none
collides with the helpers: `t_…` are Numba's types, `p_…` primitives, `k_…` kernels.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import numba

from sensorsim.language import ir
from sensorsim.language.types import Array, Kind, word

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

TYPES = {"u32": numba.uint32, "i32": numba.int32, "i64": numba.int64, "index": numba.int64, "flag": numba.boolean}
CASTS = ("i32", "u32", "i64")
Lines = list[str]


def variable(name: str) -> str:
    """Return the name in the source. Names that a transformation made are written `number.name`."""
    return "f" + name.replace(".", "_") if "." in name else "v_" + name


class Source:
    """Write nodes as source, and collect in `scope` what they refer to."""

    def __init__(self, compiled: Callable[[Any], Any]) -> None:
        self.compiled = compiled
        self.scope: dict[str, Any] = {f"t_{name}": kind for name, kind in TYPES.items()}
        self.scope["t_place"] = numba.uint64  # unsigned: Numba then does not look whether a place counts from the end
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
        exec(compile("\n".join(lines) + "\n", f"<{name}>", "exec"), self.scope)  # made of the kernel's own nodes
        return self.scope[name]


def kernel_function(kernel: "Kernel", compiled: Callable[[Any], Any]) -> Any:
    """Return a kernel as a plain function of machine words; scalars become words of their type on entry."""
    text = Source(compiled)
    lines = [f"def kernel({', '.join(map(variable, kernel.parameters))}):"]
    lines += [entry(name, kind) for name, kind in kernel.parameters.items() if not isinstance(kind, Array)]
    result = word(kernel.result) if kernel.result is not None else None
    return text.function("kernel", lines + text.block(_returning(kernel.body, result), 1))


def entry(name: str, kind: Kind) -> str:
    return f" {variable(name)} = t_{word(kind)}({variable(name)})"


def _returning(body: tuple[ir.Statement, ...], result: str | None) -> tuple[ir.Statement, ...]:
    """Cast every result to the type of the kernel's, so that Numba sees one type on all paths."""
    if result is None:
        return body

    def cast(node: ir.Statement) -> ir.Statement:
        match node:
            case ir.Return(at=at, value=value) if value is not None:
                from sensorsim.language import primitives

                return ir.Return(at, "none", ir.Apply(at, result, getattr(primitives, result), (value,)))
            case ir.If(at=at, test=test, then=then, otherwise=otherwise):
                return ir.If(at, "none", test, tuple(map(cast, then)), tuple(map(cast, otherwise)))
            case ir.For(at=at, counter=counter, first=first, last=last, body=below):
                return ir.For(at, "none", counter, first, last, tuple(map(cast, below)))
        return node

    return tuple(map(cast, body))


Meaning = Mapping[str, ir.Expression]


class Inliner:
    """Inline calls of kernels without loop and branch. New names are `number.name`, which no kernel can have."""

    def __init__(self) -> None:
        self.numbers = count(1)

    def fresh(self, name: str) -> str:
        return f"{next(self.numbers)}.{name.rpartition('.')[2]}"

    def body(self, statements: Iterable[ir.Statement]) -> tuple[ir.Statement, ...]:
        return tuple(self.block(statements, {}, {}))

    def block(
        self, statements: Iterable[ir.Statement], names: Meaning, arrays: Mapping[str, str]
    ) -> list[ir.Statement]:
        made: list[ir.Statement] = []
        now = dict(names)  # a callee's own names become fresh ones where they get their value
        for node in statements:
            self.statement(node, now, arrays, made)
        return made

    def statement(
        self, node: ir.Statement, names: dict[str, ir.Expression], arrays: Mapping[str, str], made: list[ir.Statement]
    ) -> None:
        def expression(value: ir.Expression) -> ir.Expression:
            return self.expression(value, names, arrays, made)

        match node:
            case ir.Let(at=at, name=name, value=value):
                given = expression(value)
                known = names.get(name)
                target = known.name if isinstance(known, ir.Name) else name
                made.append(ir.Let(at, node.type, target, given))
            case ir.Store(at=at, array=array, index=index, value=value):
                stored = expression(value)
                made.append(ir.Store(at, "none", arrays.get(array, array), expression(index), stored))
            case ir.For(at=at, counter=counter, first=first, last=last, body=body):
                ends = expression(first), expression(last)
                made.append(ir.For(at, "none", counter, *ends, tuple(self.block(body, names, arrays))))
            case ir.If(at=at, test=test, then=then, otherwise=otherwise):
                ways = tuple(self.block(then, names, arrays)), tuple(self.block(otherwise, names, arrays))
                made.append(ir.If(at, "none", expression(test), *ways))
            case ir.Do(at=at, call=ir.Call() as call):
                if straight(call.kernel):
                    self.inlined(call, names, arrays, made)
                else:
                    left = self.call(call, names, arrays, made)
                    made.append(ir.Do(at, "none", left))
            case ir.Break():
                made.append(node)
            case ir.Return(at=at, value=value):
                made.append(ir.Return(at, "none", expression(value) if value is not None else None))

    def expression(
        self, node: ir.Expression, names: Meaning, arrays: Mapping[str, str], made: list[ir.Statement]
    ) -> ir.Expression:
        def below(values: Iterable[ir.Expression]) -> tuple[ir.Expression, ...]:
            return tuple(self.expression(value, names, arrays, made) for value in values)

        match node:
            case ir.Name(name=name):
                return names.get(name, node)
            case ir.Load(at=at, array=array, index=index):
                return ir.Load(at, node.type, arrays.get(array, array), *below([index]))
            case ir.Index(at=at, operator=operator, operands=operands):
                return ir.Index(at, "index", operator, below(operands))
            case ir.Apply(at=at, primitive=target, operands=operands):
                return ir.Apply(at, node.type, target, below(operands))
            case ir.Call(kernel=called):
                if not straight(called) or called.written:
                    return self.call(node, names, arrays, made)
                result = self.inlined(node, names, arrays, made)
                assert result is not None
                return result
        return node

    def call(self, node: ir.Call, names: Meaning, arrays: Mapping[str, str], made: list[ir.Statement]) -> ir.Call:
        """Return a call that stays a call, with its arguments renamed."""
        given = tuple(
            ir.Whole(value.at, "array", arrays.get(value.array, value.array))
            if isinstance(value, ir.Whole)
            else self.expression(value, names, arrays, made)
            for value in node.arguments
        )
        return ir.Call(node.at, node.type, node.kernel, given)

    def inlined(
        self, node: ir.Call, names: Meaning, arrays: Mapping[str, str], made: list[ir.Statement]
    ) -> ir.Expression | None:
        """Append the statements of a call, and return its result."""
        called, inner, inner_arrays = node.kernel, dict[str, ir.Expression](), dict[str, str]()
        own = [each for each in called.nodes if isinstance(each, ir.Let)]
        for (name, kind), value in zip(called.parameters.items(), node.arguments, strict=True):
            if isinstance(value, ir.Whole) or isinstance(kind, Array):
                assert isinstance(value, ir.Whole)
                inner_arrays[name] = arrays.get(value.array, value.array)
                continue
            given, kept = self.expression(value, names, arrays, made), name not in {let.name for let in own}
            if kept and (isinstance(given, ir.Const) or (isinstance(given, ir.Name) and given.type == word(kind))):
                inner[name] = given
                continue
            target = self.fresh(name)
            made.append(ir.Let(node.at, word(kind), target, given))
            inner[name] = ir.Name(node.at, word(kind), target)
        for let in own:
            inner.setdefault(let.name, ir.Name(let.at, let.type, self.fresh(let.name)))
        *steps, last = called.body
        if not isinstance(last, ir.Return):
            made += self.block(called.body, inner, inner_arrays)
            return None
        made += self.block(steps, inner, inner_arrays)
        return self.expression(last.value, inner, inner_arrays, made) if last.value is not None else None


def straight(kernel: "Kernel") -> bool:
    """Return whether a kernel has no loop, no branch, and a `return` at its end only."""
    return all(isinstance(node, ir.Let | ir.Store | ir.Do) for node in kernel.body[:-1]) and isinstance(
        kernel.body[-1], ir.Let | ir.Store | ir.Do | ir.Return
    )
