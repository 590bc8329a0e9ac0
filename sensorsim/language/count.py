"""Count the operations of a kernel by interpreting its nodes on real numbers.

A kernel is turned into closures once, one for each node. Statements between two branches run together or not at all,
so they are counted together.
"""

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sensorsim.language import ir
from sensorsim.language.parse import LanguageError

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

Counts = Counter[tuple[str, str]]  # (step, operation class): how often
Watch = Callable[[ir.Node, int], None]  # sees every value that is named, stored or returned
Names = dict[str, Any]  # what each name of a call means; "" is the run itself
Value = Callable[[Names], Any]

OWN_STEP = "loops and memory"  # what a kernel does outside the steps that have a name
PER_ITERATION = ("INDEX", "COMPARE", "BRANCH")  # a counted loop: increment, compare, branch back
LOOP_EXIT = ("COMPARE", "BRANCH")
INDEX: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<<": operator.lshift,
    ">>": operator.rshift,
}


def count(kernel: "Kernel", arguments: Names, watch: Watch | None = None, most: float = math.inf) -> Counts:
    """Run the kernel on these arguments (lists for arrays, which it fills) and count; not more rounds than `most`."""
    run = _Run(watch, most)
    run.kernel(kernel, arguments, OWN_STEP)
    found: Counts = Counter()
    for (step, piece), times in run.hits.items():
        for operation in piece.operations:
            found[step, operation] += times
    return found


def execute(kernel: "Kernel", *values: Any) -> int | None:
    """Run the kernel's nodes on these arguments, one for each parameter; return its result."""
    return _Run(None, math.inf).kernel(kernel, dict(zip(kernel.parameters, values, strict=True)), OWN_STEP)


class _Returned(Exception):  # noqa: N818 - no error: the way out of nested loops
    pass


class _Left(Exception):  # noqa: N818 - no error: the way out of a loop
    pass


class _Piece:
    """Operations that run together."""

    __slots__ = ("operations",)

    def __init__(self, operations: tuple[str, ...]) -> None:
        self.operations = operations


EACH_ROUND, AT_THE_END = _Piece(PER_ITERATION), _Piece(LOOP_EXIT)


class _Run:
    """How often each piece of code has run, in which step."""

    def __init__(self, watch: Watch | None, most: float) -> None:
        self.left = most  # rounds of loops
        self.watch = watch
        self.step = OWN_STEP
        self.hits: Counter[tuple[str, _Piece]] = Counter()

    def kernel(self, kernel: "Kernel", arguments: Names, step: str) -> int | None:
        before, self.step = self.step, kernel.step or step
        arguments[""] = self
        try:
            code: Value | None = kernel.__dict__.get("_counted_code")
            if code is None:
                code = kernel.__dict__["_counted_code"] = _block(kernel.body)
            code(arguments)
        except _Returned as returned:
            value: int | None = returned.args[0]
            return value
        finally:
            self.step = before
            del arguments[""]
        return None


def _block(body: tuple[ir.Statement, ...]) -> Value:
    """Return a closure that runs statements one after the other."""
    parts: list[Value] = []
    together: list[Value] = []
    operations: list[str] = []

    def run(names: Names) -> None:
        for part in parts:
            part(names)

    def close() -> None:
        if together or operations:
            parts.append(_together(tuple(together), tuple(operations)))
            together.clear()
            operations.clear()

    for node in body:
        match node:
            case ir.For():
                first, last = (_value(end, operations) for end in (node.first, node.last))
                close()
                parts.append(_loop(node, first, last))
            case ir.If():
                test = _value(node.test, operations)
                operations.append("BRANCH")
                close()
                parts.append(_branch(test, _block(node.then), _block(node.otherwise)))
            case _:
                together.append(_statement(node, operations))
    close()
    return parts[0] if len(parts) == 1 else run


def _together(statements: tuple[Value, ...], operations: tuple[str, ...]) -> Value:
    """Return a closure for statements that run all or not at all, counted at once."""
    piece = _Piece(operations)

    def run(names: Names) -> None:
        own = names[""]
        own.hits[own.step, piece] += 1
        for statement in statements:
            statement(names)

    return run


def _branch(test: Value, then: Value, otherwise: Value) -> Value:
    def run(names: Names) -> None:
        (then if test(names) else otherwise)(names)

    return run


def _loop(node: ir.For, first: Value, last: Value) -> Value:
    body, counter = _block(node.body), node.counter

    def run(names: Names) -> None:
        own = names[""]
        for i in range(first(names), last(names)):
            own.hits[own.step, EACH_ROUND] += 1
            own.left -= 1
            if own.left < 0:
                raise LanguageError(f"{node.at}: `{ir.shown(node)}` runs too long to be counted; give smaller lengths.")
            names[counter] = i
            try:
                body(names)
            except _Left:
                return
        own.hits[own.step, AT_THE_END] += 1

    return run


def _statement(node: ir.Statement, operations: list[str]) -> Value:
    match node:
        case ir.Let():
            return _let(node, _value(node.value, operations))
        case ir.Store():
            return _store(node, _value(node.value, operations), _value(node.index, operations), operations)
        case ir.Do():
            return _value(node.call, operations)
        case ir.Return():
            return _return(node, None if node.value is None else _value(node.value, operations))
        case ir.Break():
            return _leave
    raise AssertionError(node)


def _leave(names: Names) -> None:
    raise _Left


def _let(node: ir.Let, value: Value) -> Value:
    name = node.name

    def run(names: Names) -> None:
        names[name] = found = value(names)
        if names[""].watch is not None:
            names[""].watch(node, int(found))

    return run


def _store(node: ir.Store, value: Value, index: Value, operations: list[str]) -> Value:
    operations.append("STORE")
    array = node.array

    def run(names: Names) -> None:
        found = value(names)
        if names[""].watch is not None:
            names[""].watch(node, int(found))
        places = names[array]
        places[_inside(index(names), places, node)] = found

    return run


def _return(node: ir.Return, value: Value | None) -> Value:
    def run(names: Names) -> None:
        if value is None:
            raise _Returned(None)
        found = value(names)
        if names[""].watch is not None:
            names[""].watch(node, int(found))
        raise _Returned(found)

    return run


def _value(node: ir.Node, operations: list[str]) -> Value:
    """Return an expression as a closure, and add its cost to `operations`."""
    match node:
        case ir.Const(value=number):
            return lambda names: number
        case ir.Name(name=name) | ir.Whole(array=name):
            return operator.itemgetter(name)
        case ir.Load(array=array):
            return _load(node, array, _value(node.index, operations), operations)
        case ir.Index():
            return _index(node, operations)
        case ir.Apply():
            below = tuple(_value(operand, operations) for operand in node.operands)
            operations.extend(node.primitive.operations)
            return _applied(node.primitive.function, below)
        case ir.Call():
            return _call(node, tuple(_value(argument, operations) for argument in node.arguments))
        case ir.Ask():
            return _ask(node, tuple(_value(argument, operations) for argument in node.arguments))
    raise AssertionError(node)


def _load(node: ir.Node, array: str, index: Value, operations: list[str]) -> Value:
    operations.append("LOAD")

    def run(names: Names) -> Any:
        places = names[array]
        return places[_inside(index(names), places, node)]

    return run


def _index(node: ir.Index, operations: list[str]) -> Value:
    below = [_value(operand, operations) for operand in node.operands]
    operations.append("INDEX")
    if len(below) == 1:
        return lambda names: -int(below[0](names))
    function, (a, b) = INDEX[node.operator], below
    return lambda names: function(int(a(names)), int(b(names)))


def _applied(function: Callable[..., Any], below: tuple[Value, ...]) -> Value:
    if len(below) == 1:
        (one,) = below
        return lambda names: function(one(names))
    if len(below) == 2:
        a, b = below
        return lambda names: function(a(names), b(names))
    return lambda names: function(*[value(names) for value in below])


def _call(node: ir.Call, below: tuple[Value, ...]) -> Value:
    kernel = node.kernel
    parameters: Iterable[str] = tuple(kernel.parameters)

    def run(names: Names) -> Any:
        given = {name: value(names) for name, value in zip(parameters, below, strict=True)}
        own = names[""]
        return own.kernel(kernel, given, own.step)

    return run


def _ask(node: ir.Ask, below: tuple[Value, ...]) -> Value:
    """Return a closure that asks the board. The board's own work is not counted: it is priced with the chip."""
    array, part = node.array, slice(node.first, node.last)

    def run(names: Names) -> int:
        given = [value(names) for value in below]
        ask = getattr(names[node.board], node.port.name, None)
        if ask is None:  # no board: every port answers the least that it may, and writes nothing
            return node.port.result.lo
        if array is None:
            return int(ask(*given))
        bytes = names[array][part]
        answer = int(ask(*given, bytes))
        names[array][part] = bytes
        return answer

    return run


def _inside(place: int, array: list[int], node: ir.Node) -> int:
    if not 0 <= place < len(array):  # Python would count a negative one from the end, a machine does not
        raise LanguageError(
            f"{node.at}: `{ir.shown(node)}` has the index {place}, and there are {len(array)} elements."
        )
    return place
