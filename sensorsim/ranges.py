"""The range check: run a kernel on intervals and prove that no intermediate leaves its type.

Every parameter starts with the whole range of its declared format. Lengths are taken at their smallest and largest
value: bounds are linear in each of them, so the ends decide. A loop is run until its intervals no longer grow or its
rounds are over, and its result holds for any smaller number of rounds too.

Two things an interval alone cannot see are followed explicitly: that two values differ by a constant (a pointer before
and after the size is taken off), and that a masked value counts only where its mask is set. A kernel may name a
parameter to `split`: a word is then taken one bit length at a time, an index one value at a time.
"""

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sensorsim.intervals import ANY, RULES, Flag, Span, Value, join, join_environments
from sensorsim.kernels.arguments import array_length
from sensorsim.kernels.formats import STORAGE, Array, Below, Length, Q
from sensorsim.kernels.language import Kernel, Primitive

UNROLL = 64  # loops of a known, small number of rounds run round by round


class RangeError(ArithmeticError):
    """An intermediate value can leave its type; the message names file, line and interval."""


@dataclass
class Cells:
    """An array: one interval for all its elements (None: nothing written yet), and the entries of a known table."""

    element: Span | None
    length: int
    kind: Array
    lo: int
    hi: int


@dataclass
class Report:
    """What was proved: for each line of each kernel, the widest interval assigned or returned there."""

    kernel: str
    intervals: dict[tuple[str, int], Span] = field(default_factory=dict)


def check_ranges(kernel: Kernel) -> Report:
    """Prove the kernel for all inputs within its declared formats, or raise RangeError."""
    report = Report(kernel.name)
    for lengths in _corners(kernel):
        environment: dict[str, Any] = {}
        for name, kind in kernel.parameters.items():
            if isinstance(kind, Length):
                environment[name] = Span(lengths[name], lengths[name])
            elif isinstance(kind, Array):
                lo, hi = _bounds(kind.element, lengths)
                element = None if kind.written else Span(lo, hi)
                environment[name] = Cells(element, array_length(kind, lengths), kind, lo, hi)
            else:
                environment[name] = Span(*_bounds(kind, lengths))
        _call(kernel, environment, report)
    return report


def _corners(kernel: Kernel) -> Iterator[dict[str, int]]:
    """The lengths to try: both ends of each; one that never exceeds another ends there."""
    lengths = {name: kind for name, kind in kernel.parameters.items() if isinstance(kind, Length)}
    values = [sorted({kind.lo, kind.hi}) for kind in lengths.values()]
    for combination in itertools.product(*values):
        chosen = dict(zip(lengths, combination, strict=True))
        for name, kind in lengths.items():
            if kind.at_most in chosen:
                chosen[name] = min(chosen[name], chosen[kind.at_most])
        yield chosen


def _bounds(kind: Q | Below, lengths: dict[str, int]) -> tuple[int, int]:
    return (0, lengths[kind.limit] - 1) if isinstance(kind, Below) else (kind.lo, kind.hi)


def _call(kernel: Kernel, environment: dict[str, Any], report: Report) -> Value:
    """Run the kernel once, or once for each part of the parameter it splits, and join what it returns."""
    if kernel.split is None:
        return _Run(kernel, environment, report).result()
    results = [
        _Run(kernel, {**environment, kernel.split: part}, report).result()
        for part in _parts(environment[kernel.split], kernel.parameters[kernel.split])
    ]
    spans = [result for result in results if isinstance(result, Span)]
    return join(*spans) if spans else None


def _parts(span: Span, kind: Q | Below) -> Iterator[Span]:
    if isinstance(kind, Below):
        yield from (Span(value, value) for value in range(span.lo, span.hi + 1))
        return
    for bits in range(33):
        lo, hi = (0, 0) if bits == 0 else (1 << (bits - 1), (1 << bits) - 1)
        if span.lo <= hi and lo <= span.hi:
            yield Span(max(lo, span.lo), min(hi, span.hi))


class _Run:
    """One kernel's body over one environment of intervals."""

    def __init__(self, kernel: Kernel, environment: dict[str, Any], report: Report) -> None:
        self.kernel, self.environment, self.report = kernel, environment, report
        self.returned: Value = None

    def result(self) -> Value:
        self.block(self.kernel.tree.body)
        return self.returned

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=value):
                self.value(value)
            case ast.Return(value=value):
                assert value is not None
                self.returned = self.note(node, self.within(node, self.value(value), self.kernel.result))
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.environment[name] = self.note(node, self.value(value))
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=place)], value=value):
                stored = self.note(node, self.value(value))
                cells = self.cells(node, name, place)
                if not (isinstance(stored, Span) and cells.lo <= stored.lo and stored.hi <= cells.hi):
                    raise self.error(node, f"{stored} is stored where {cells.lo} … {cells.hi} is declared")
                cells.element = stored if cells.element is None else join(cells.element, stored)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=bounds)):
                ends = [self.value(bound) for bound in bounds]
                first, last = ([Span(0, 0)] if len(ends) == 1 else []) + ends
                self.loop(node, name, first, last)
            case ast.If(test=test):
                self.branch(node, self.value(test))
            case _:
                raise self.error(node, f"cannot follow `{ast.unparse(node)}`")

    def loop(self, node: ast.For, name: str, first: Span, last: Span) -> None:
        rounds = last.hi - first.lo
        if rounds <= UNROLL and isinstance(node.iter, ast.Call) and not self.names_length(node.iter):
            for i in range(first.lo, last.hi):
                self.environment[name] = Span(i, i)
                self.block(node.body)
            return
        if rounds <= 0:
            return
        for _ in range(rounds):
            before = dict(self.environment)
            written = {key: cells.element for key, cells in before.items() if isinstance(cells, Cells)}
            self.environment[name] = Span(first.lo, last.hi - 1)
            self.block(node.body)
            self.environment = join_environments(before, self.environment)
            now = {key: cells.element for key, cells in self.environment.items() if isinstance(cells, Cells)}
            if now == written and all(self.environment[key] == value for key, value in before.items()):
                return

    def names_length(self, call: ast.Call) -> bool:
        """Whether the number of rounds is one of the kernel's lengths, so that smaller ones must hold as well."""
        names = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
        return bool(names & set(self.kernel.parameters))

    def branch(self, node: ast.If, flag: Value) -> None:
        assert isinstance(flag, Flag)
        if flag.holds is not None:
            self.block(node.body if flag.holds else node.orelse)
            return
        before = dict(self.environment)
        self.block(node.body)
        taken, self.environment = self.environment, before
        self.block(node.orelse)
        self.environment = join_environments(taken, self.environment)

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int(value)):
                return Span(value, value)
            case ast.Name(id=name):
                if name in self.environment:
                    return self.environment[name]
                return Span(self.kernel.resolve(name), self.kernel.resolve(name))
            case ast.Subscript(value=ast.Name(id=name), slice=place):
                return self.load(node, name, place)
            case ast.UnaryOp(operand=operand):
                negated = self.value(operand)
                return self.index(node, Span(-negated.hi, -negated.lo))
            case ast.BinOp(left=left, op=op, right=right):
                return self.index(node, RULES[type(op).__name__](self.value(left), self.value(right)))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self.call(node, self.kernel.resolve(name), arguments)
        raise self.error(node, f"cannot follow `{ast.unparse(node)}`")

    def call(self, node: ast.Call, target: Any, arguments: list[ast.expr]) -> Any:
        values = [self.value(argument) for argument in arguments]
        if isinstance(target, Kernel):
            environment = dict(zip(target.parameters, values, strict=True))
            for name, kind in target.parameters.items():
                self.within(node, environment[name], kind, environment)
            return _call(target, environment, self.report)
        return self.primitive(node, target, values, same=len(arguments) == 2 and _same(*arguments))

    def primitive(self, node: ast.Call, target: Primitive, values: list[Any], same: bool) -> Any:
        rule = RULES["square"] if same and target.name in ("mul", "mulu") else RULES[target.name]
        if target.name not in ANY:
            for value, kind in zip(values, target.operands, strict=True):
                if isinstance(value, Span) and not _fits(value, kind):
                    raise self.error(node, f"`{target.name}` reads {value}, which is not all {kind}")
        if target.name in ("div", "divu") and values[1].lo <= 0 <= values[1].hi:
            raise self.error(node, f"`{target.name}` may divide by zero: the divisor is {values[1]}")
        result = rule(*values[:1]) if rule is RULES["square"] else rule(*values)
        if isinstance(result, Span) and target.name not in ANY and not _fits(result, target.result):
            raise self.error(node, f"`{ast.unparse(node)}` can be {result}, outside {target.result}")
        return result

    def load(self, node: ast.expr, name: str, place: ast.expr) -> Span:
        cells = self.cells(node, name, place)
        contents = cells.kind.contents
        if contents:
            at = self.value(place)
            part = contents[at.lo : at.hi + 1]
            return Span(min(part), max(part))
        if cells.element is None:
            raise self.error(node, f"{name} is read before it is written")
        return cells.element

    def cells(self, node: ast.AST, name: str, place: ast.expr) -> Cells:
        """The array, after a check that the index is inside it."""
        cells, at = self.environment[name], self.value(place)
        assert isinstance(cells, Cells)
        if not (isinstance(at, Span) and at.lo >= 0 and at.hi < cells.length):
            raise self.error(node, f"the index of {name} can be {at}, the length is {cells.length}")
        return cells

    def index(self, node: ast.expr, span: Span) -> Span:
        if not _fits(span, "i32"):
            raise self.error(node, f"`{ast.unparse(node)}` can be {span}, outside i32")
        return span

    def within(self, node: ast.AST, value: Any, kind: Any, environment: dict[str, Any] | None = None) -> Any:
        """The value, after a check that it lies in the declared format."""
        if isinstance(value, Cells) or kind is None:
            return value
        if isinstance(kind, Below):
            limit = (environment or self.environment)[kind.limit]
            lo, hi = 0, limit.lo - 1
        else:
            lo, hi = kind.lo, kind.hi
        if not (isinstance(value, Span) and lo <= value.lo and value.hi <= hi) and (lo, hi) != STORAGE["u32"]:
            raise self.error(node, f"{value} is passed or returned where {lo} … {hi} is declared")
        return value

    def note(self, node: ast.stmt, value: Any) -> Any:
        if isinstance(value, Span):
            key = (self.kernel.path.name, node.lineno)
            seen = self.report.intervals.get(key)
            self.report.intervals[key] = value if seen is None else join(seen, value)
        return value

    def error(self, node: ast.AST, what: str) -> RangeError:
        line = getattr(node, "lineno", self.kernel.tree.lineno)
        return RangeError(f"{self.kernel.path.name}:{line}: in {self.kernel.name}, {what}")


def _fits(span: Span, kind: str) -> bool:
    least, most = STORAGE[kind]
    return bool(least <= span.lo and span.hi <= most)


def _same(a: ast.expr, b: ast.expr) -> bool:
    return ast.dump(a) == ast.dump(b)
