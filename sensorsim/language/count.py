"""Count the operations of a kernel by running it on real numbers.

A kernel becomes Python source once. Statements between two branches run together or not at all, so they are counted
together, before they run.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from sensorsim.language import ir
from sensorsim.language.parse import LanguageError
from sensorsim.language.primitive import Primitive
from sensorsim.language.python_source import CASTS, Lines, Source, variable

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

Counts = Counter[tuple[str, str]]  # (step, operation class): how often
Watch = Callable[[ir.Node, int], None]  # sees every value that is named, stored or returned

OWN_STEP = "loops and memory"  # what a kernel does outside the steps that have a name
PER_ITERATION = ("INDEX", "COMPARE", "BRANCH")  # a counted loop: increment, compare, branch back
LOOP_EXIT = ("COMPARE", "BRANCH")


def count(kernel: "Kernel", arguments: dict[str, Any], watch: Watch | None = None, most: float = math.inf) -> Counts:
    """Run the kernel on these arguments (lists for arrays, which it fills) and count; not more rounds than `most`."""
    run = _Run(watch, most)
    _code(kernel, watch is not None)(run, OWN_STEP, *(arguments[name] for name in kernel.parameters))
    found: Counts = Counter()
    for (step, piece), times in run.hits.items():
        for operation in piece.operations:
            found[step, operation] += times
    return found


def execute(kernel: "Kernel", *values: Any) -> int | None:
    """Run the kernel's nodes on these arguments, one for each parameter; return its result."""
    result: int | None = _code(kernel, False)(_Run(None, math.inf), OWN_STEP, *values)
    return result


def operations_of(node: ir.Node) -> tuple[str, ...]:
    """Return the operations of one node, without those of its parts."""
    match node:
        case ir.Load():
            return ("LOAD",)
        case ir.Store():
            return ("STORE",)
        case ir.Index():
            return ("INDEX",)
        case ir.Apply(primitive=primitive):
            return primitive.operations
    return ()


def _below(node: ir.Node) -> Iterable[str]:
    """Yield the operations of a node and its parts, in the order in which they run."""
    for part in ir.parts(node):
        yield from _below(part)
    yield from operations_of(node)


class _Piece:
    """Operations that run together."""

    def __init__(self, operations: Iterable[str]) -> None:
        self.operations = tuple(operations)


EACH_ROUND, AT_THE_END = _Piece(PER_ITERATION), _Piece(LOOP_EXIT)


class _Run:
    """How often each piece of code has run, in which step."""

    def __init__(self, watch: Watch | None, most: float) -> None:
        self.left = most  # rounds of loops
        self.watch = watch
        self.hits: Counter[tuple[str, _Piece]] = Counter()

    def round(self, step: str, node: ir.For) -> None:
        """Count a round of a loop."""
        self.hits[step, EACH_ROUND] += 1
        self.left -= 1
        if self.left < 0:
            raise LanguageError(f"{node.at}: `{ir.shown(node)}` runs too long to be counted; give smaller lengths.")

    def seen(self, node: ir.Node, value: Any) -> Any:
        """Show a value to who watches."""
        assert self.watch is not None
        self.watch(node, int(value))
        return value


class _Counting(Source):
    """Write a kernel as a function `code(run, step, parameters…)` that counts what it does in `run`."""

    def __init__(self, watched: bool) -> None:
        from sensorsim.language import primitives

        casts = {name: getattr(primitives, name).function for name in CASTS}
        super().__init__(lambda one: one.function if isinstance(one, Primitive) else _code(one, watched), casts)
        self.watched = watched
        self.scope |= {"inside": _inside, "ask": _ask, "at_the_end": AT_THE_END}

    def constant(self, value: Any) -> str:
        """Return the name of an object that the source refers to."""
        name = f"c{len(self.scope)}"
        self.scope[name] = value
        return name

    def block(self, statements: Iterable[ir.Statement], indent: int) -> Lines:
        pad, lines, together, operations = " " * indent, Lines(), Lines(), list[str]()
        for node in (*statements, None):
            match node:
                case ir.For(first=first, last=last):
                    operations += [*_below(first), *_below(last)]
                case ir.If(test=test):
                    operations += [*_below(test), "BRANCH"]
                case ir.Let() | ir.Store() | ir.Do() | ir.Return() | ir.Break():
                    operations += _below(node)
                    together += self.statement(node, indent)
                    continue
            if operations or together:
                lines += [f"{pad}run.hits[step, {self.constant(_Piece(operations))}] += 1", *together]
            together, operations = [], []
            if isinstance(node, ir.For):
                head, *body = self.statement(node, indent)
                lines += [head, f"{pad} run.round(step, {self.constant(node)})", *body]
                lines += [f"{pad}else:", f"{pad} run.hits[step, at_the_end] += 1"]
            elif node is not None:
                lines += self.statement(node, indent)
        return lines or [f"{pad}pass"]

    def shown(self, node: ir.Node, value: ir.Expression) -> str:
        text = self.expression(value)
        return f"run.seen({self.constant(node)}, {text})" if self.watched else text

    def statement(self, node: ir.Statement, indent: int) -> Lines:
        pad = " " * indent
        match node:
            case ir.Let(name=name, value=value):
                return [f"{pad}{variable(name)} = {self.shown(node, value)}"]
            case ir.Store(value=value):
                return [f"{pad}{self.element(node)} = {self.shown(node, value)}"]
            case ir.Return(value=value) if value is not None:
                return [f"{pad}return {self.shown(node, value)}"]
        return super().statement(node, indent)

    def element(self, node: ir.Load | ir.Store) -> str:
        array = variable(node.array)
        return f"{array}[inside({self.expression(node.index)}, {array}, {self.constant(node)})]"

    def expression(self, node: ir.Node) -> str:
        match node:
            case ir.Load():
                return self.element(node)
            case ir.Call(kernel=called, arguments=below):
                return f"{self.named('k', called)}({', '.join(['run', 'step', *map(self.expression, below)])})"
            case ir.Ask(board=board, arguments=below, array=array):
                cells = "None" if array is None else variable(array)
                given = [variable(board), self.constant(node), cells, *map(self.expression, below)]
                return f"ask({', '.join(given)})"
        return super().expression(node)

    def cast(self, kind: str, value: ir.Expression) -> str:
        return self.expression(value)


@cache
def _code(kernel: "Kernel", watched: bool) -> Callable[..., Any]:
    text = _Counting(watched)
    lines = [f"def kernel({', '.join(['run', 'step', *map(variable, kernel.parameters)])}):"]
    lines += [f" step = {kernel.step!r}"] if kernel.step is not None else []
    function: Callable[..., Any] = text.function("kernel", lines + text.block(kernel.body, 1))
    return function


def _ask(board: Any, node: ir.Ask, cells: list[int] | None, *given: int) -> int:
    """Ask the board. The board's own work is not counted: it is priced with the chip."""
    ask = getattr(board, node.port.name, None)
    if ask is None:  # no board: every port answers the least that it may, and writes nothing
        return node.port.result.lo
    if cells is None:
        return int(ask(*given))
    part = slice(node.first, node.last)
    bytes = cells[part]
    answer = int(ask(*given, bytes))
    cells[part] = bytes
    return answer


def _inside(place: int, array: list[int], node: ir.Load | ir.Store) -> int:
    if not 0 <= place < len(array):  # Python would count a negative one from the end, a machine does not
        raise LanguageError(
            f"{node.at}: `{ir.shown(node)}` has the index {place}, and there are {len(array)} elements."
        )
    return place
