"""Counting by reading: walk a kernel's source, turn loops into polynomials in n and l.

Shares no code with `trace` but the two rules of what a loop costs; the two must agree for every n and l.
"""

import ast
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from sensorsim.cost.polynomial import Polynomial
from sensorsim.cost.trace import LOOP_EXIT, OWN_STEP, PER_ITERATION
from sensorsim.kernels.formats import Length
from sensorsim.kernels.language import Kernel, Primitive

SymbolicCounts = dict[tuple[str, str], Polynomial]  # (step, operation class): how often
NOTHING: Mapping[str, int] = MappingProxyType({})
OPERATORS: dict[type[ast.operator], Callable[[Polynomial, Polynomial], Polynomial]] = {
    ast.Add: Polynomial.__add__,
    ast.Sub: Polynomial.__sub__,
    ast.Mult: Polynomial.__mul__,
}


def symbolic(kernel: Kernel, otherwise: bool = False, fixed: Mapping[str, int] = NOTHING) -> SymbolicCounts:
    """Counts of one call of the kernel as polynomials in its lengths n and l; other lengths may be `fixed`.

    Where the kernel branches on data, `otherwise` says which way to count: the `if` part, or the `else` part.
    """
    walk = _Walk(otherwise)
    names = [name for name, kind in kernel.parameters.items() if isinstance(kind, Length)]
    lengths = {name: Polynomial.constant(fixed[name]) if name in fixed else Polynomial.variable(name) for name in names}
    walk.kernel(kernel, lengths, OWN_STEP, Polynomial.constant(1))
    return {key: value for key, value in walk.counts.items() if value.terms}


class _Walk:
    def __init__(self, otherwise: bool) -> None:
        self.counts: SymbolicCounts = {}
        self.otherwise = otherwise

    def kernel(self, kernel: Kernel, lengths: Mapping[str, Polynomial], step: str, times: Polynomial) -> None:
        _Body(self, kernel, lengths, kernel.step or step).block(kernel.tree.body, times)

    def count(self, step: str, operations: tuple[str, ...], times: Polynomial) -> None:
        for operation in operations:
            self.counts[step, operation] = self.counts.get((step, operation), Polynomial.constant(0)) + times


class _Body:
    """One kernel's body, walked with the values of its lengths and the number of times that it runs."""

    def __init__(self, walk: _Walk, kernel: Kernel, lengths: Mapping[str, Polynomial], step: str) -> None:
        self.walk, self.source, self.step = walk, kernel, step
        self.index: dict[str, Polynomial | None] = dict(lengths)  # names that hold lengths and loop counters

    def block(self, statements: list[ast.stmt], times: Polynomial) -> None:
        for statement in statements:
            self.statement(statement, times)

    def count(self, times: Polynomial, *operations: str) -> None:
        self.walk.count(self.step, operations, times)

    def statement(self, node: ast.stmt, times: Polynomial) -> None:
        match node:
            case ast.Expr(value=ast.Constant()):
                pass  # the docstring
            case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
                self.expression(value, times)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if isinstance(value, ast.BinOp):  # only index arithmetic uses operators
                    self.index[name] = None
                self.expression(value, times)
            case ast.Assign(targets=[ast.Subscript(slice=place)], value=value):
                self.expression(value, times)
                self.expression(place, times)
                self.count(times, "STORE")
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds)):
                for bound in bounds:
                    self.expression(bound, times)
                first, last = ([Polynomial.constant(0)] if len(bounds) == 1 else []) + [self.length(b) for b in bounds]
                self.index[name] = None
                rounds = times * (last - first)
                self.count(rounds, *PER_ITERATION)
                self.count(times, *LOOP_EXIT)
                self.block(node.body, rounds)
            case ast.If(test=test):
                self.expression(test, times)
                self.count(times, "BRANCH")
                self.block(node.orelse if self.walk.otherwise else node.body, times)
            case _:
                raise self.unknown(node)

    def expression(self, node: ast.expr, times: Polynomial) -> None:
        match node:
            case ast.Constant() | ast.Name():
                pass
            case ast.Subscript(value=ast.Name(), slice=place):
                self.expression(place, times)
                self.count(times, "LOAD")
            case ast.BinOp(left=left, right=right):
                self.needs_index(left, right)
                self.expression(left, times)
                self.expression(right, times)
                self.count(times, "INDEX")
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name() as operand):
                self.needs_index(operand)
                self.count(times, "INDEX")
            case ast.Call(func=ast.Name(id=name), args=values):
                for value in values:
                    self.expression(value, times)
                self.call(self.source.resolve(name), values, times, node)
            case _:
                raise self.unknown(node)

    def call(self, target: Any, values: list[ast.expr], times: Polynomial, node: ast.AST) -> None:
        if isinstance(target, Primitive):
            self.count(times, *target.operations)
        elif isinstance(target, Kernel):
            kinds = zip(target.parameters.items(), values, strict=True)
            lengths = {name: self.length(value) for (name, kind), value in kinds if isinstance(kind, Length)}
            self.walk.kernel(target, lengths, self.step, times)
        else:
            raise self.unknown(node)

    def length(self, node: ast.expr) -> Polynomial:
        """A loop bound or length argument as a polynomial."""
        match node:
            case ast.Constant(value=int(value)):
                return Polynomial.constant(value)
            case ast.Name(id=name) if isinstance(self.index.get(name), Polynomial):
                return self.index[name]  # type: ignore[return-value]
            case ast.Name(id=name) if isinstance(self.source.function.__globals__.get(name), int):
                return Polynomial.constant(self.source.resolve(name))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](self.length(left), self.length(right))
        raise self.unknown(node)

    def needs_index(self, *operands: ast.expr) -> None:
        """Operators are for lengths and loop counters; a value that is added without a primitive would cost nothing."""
        for operand in operands:
            if isinstance(operand, ast.Name) and operand.id not in self.index:
                raise self.unknown(operand)

    def unknown(self, node: ast.AST) -> Exception:
        line = getattr(node, "lineno", self.source.tree.lineno)
        return SyntaxError(f"{self.source.path.name}:{line}: a kernel cannot use `{ast.unparse(node)}` here")
