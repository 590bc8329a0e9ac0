"""Counting by running: the kernel's nodes carried out one after the other on real numbers, each counted as it runs."""

import math
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sensorsim.language import ir
from sensorsim.language.parse import LanguageError

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
    run.kernel(kernel, arguments, OWN_STEP)
    return run.counts


class _Returned(Exception):  # noqa: N818 - no error: the way out of nested loops
    pass


class _Run:
    def __init__(self, watch: Watch | None, most: float) -> None:
        self.left = most  # rounds of loops
        self.counts: Counts = Counter()
        self.watch = watch
        self.values: dict[type[ir.Node], Callable[[Any, dict[str, Any]], Any]] = {
            ir.Const: lambda node, names: node.value,
            ir.Name: lambda node, names: names[node.name],
            ir.Load: self.load,
            ir.Index: self.index,
            ir.Apply: self.apply,
            ir.Call: self.call,
            ir.Whole: lambda node, names: names[node.array],
        }

    def kernel(self, kernel: "Kernel", arguments: dict[str, Any], step: str) -> int | None:
        before = getattr(self, "step", step)
        self.step = kernel.step or step
        try:
            self.block(kernel.body, arguments)
        except _Returned as returned:
            value: int | None = returned.args[0]
            return value
        finally:
            self.step = before
        return None

    def counted(self, *operations: str) -> None:
        for operation in operations:
            self.counts[self.step, operation] += 1

    def block(self, body: tuple[ir.Statement, ...], names: dict[str, Any]) -> None:
        for node in body:
            match node:
                case ir.Let(name=name, value=value):
                    names[name] = self.seen(node, self.value(value, names))
                case ir.Store(array=array, index=index, value=value):
                    found = self.seen(node, self.value(value, names))
                    place = self.value(index, names)
                    self.counted("STORE")
                    names[array][_inside(place, names[array], node)] = found
                case ir.Do(call=call):
                    self.call(call, names)
                case ir.For():
                    self.loop(node, names)
                case ir.If(test=test, then=then, otherwise=otherwise):
                    holds = self.value(test, names)
                    self.counted("BRANCH")
                    self.block(then if holds else otherwise, names)
                case ir.Return(value=value):
                    raise _Returned(None if value is None else self.seen(node, self.value(value, names)))

    def loop(self, node: ir.For, names: dict[str, Any]) -> None:
        first, last = self.value(node.first, names), self.value(node.last, names)
        for i in range(first, last):
            self.counted(*PER_ITERATION)
            self.left -= 1
            if self.left < 0:
                raise LanguageError(f"{node.at}: `{ir.shown(node)}` runs too long to be counted; give smaller lengths.")
            names[node.counter] = i
            self.block(node.body, names)
        self.counted(*LOOP_EXIT)

    def seen(self, node: ir.Node, value: Any) -> Any:
        if self.watch is not None:
            self.watch(node, int(value))
        return value

    def value(self, node: ir.Node, names: dict[str, Any]) -> Any:
        return self.values[type(node)](node, names)

    def load(self, node: ir.Load, names: dict[str, Any]) -> Any:
        place = self.value(node.index, names)
        self.counted("LOAD")
        return names[node.array][_inside(place, names[node.array], node)]

    def index(self, node: ir.Index, names: dict[str, Any]) -> int:
        below = [self.value(operand, names) for operand in node.operands]
        self.counted("INDEX")
        if len(below) == 1:
            return -int(below[0])
        a, b = map(int, below)
        match node.operator:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "<<":
                return a << b
        return a >> b

    def apply(self, node: ir.Apply, names: dict[str, Any]) -> Any:
        below = [self.value(operand, names) for operand in node.operands]
        self.counted(*node.primitive.operations)
        return node.primitive.function(*below)

    def call(self, node: ir.Call, names: dict[str, Any]) -> Any:
        below = [self.value(argument, names) for argument in node.arguments]
        return self.kernel(node.kernel, dict(zip(node.kernel.parameters, below, strict=True)), self.step)


def _inside(place: int, array: list[int], node: ir.Node) -> int:
    if not 0 <= place < len(array):  # Python would count a negative one from the end, a machine does not
        raise LanguageError(
            f"{node.at}: `{ir.shown(node)}` has the index {place}, and there are {len(array)} elements."
        )
    return place
