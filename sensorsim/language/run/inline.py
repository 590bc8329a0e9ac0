"""Calls written out: the same statements without the calls of kernels that have no loop and no branch."""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING

from sensorsim.language import ir
from sensorsim.language.types import Array, word

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

Meaning = Mapping[str, ir.Expression]


class Inliner:
    """Writes out calls. Names that it makes up are `number.name`, which no kernel can have."""

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
                    self.written_out(call, names, arrays, made)
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
                result = self.written_out(node, names, arrays, made)
                assert result is not None
                return result
        return node

    def call(self, node: ir.Call, names: Meaning, arrays: Mapping[str, str], made: list[ir.Statement]) -> ir.Call:
        """A call that stays one."""
        given = tuple(
            ir.Whole(value.at, "array", arrays.get(value.array, value.array))
            if isinstance(value, ir.Whole)
            else self.expression(value, names, arrays, made)
            for value in node.arguments
        )
        return ir.Call(node.at, node.type, node.kernel, given)

    def written_out(
        self, node: ir.Call, names: Meaning, arrays: Mapping[str, str], made: list[ir.Statement]
    ) -> ir.Expression | None:
        """The statements of a call, and its result."""
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
    """Whether a kernel is one statement after the other, with a `return` at the end if at all."""
    return all(isinstance(node, ir.Let | ir.Store | ir.Do) for node in kernel.body[:-1]) and isinstance(
        kernel.body[-1], ir.Let | ir.Store | ir.Do | ir.Return
    )
