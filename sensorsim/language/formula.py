"""Count the operations of a kernel without running it: loops become polynomials in the lengths.

It shares no code with `count` but the two rules for the cost of a loop; both must agree for every length.
"""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sensorsim.language import ir
from sensorsim.language.count import LOOP_EXIT, OWN_STEP, PER_ITERATION, operations_of
from sensorsim.language.parse import LanguageError
from sensorsim.language.polynomial import OPERATORS, Opaque, Polynomial, summed
from sensorsim.language.types import Below, Q

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

Formula = dict[tuple[str, str], Polynomial]  # (step, operation class): how often
Tally = dict[tuple[str, str], Any]  # the same on the way, plain numbers where they will do
NOTHING: Mapping[str, int] = MappingProxyType({})
ZERO = Polynomial.constant(0)


def formula(kernel: "Kernel", otherwise: bool = False, fixed: Mapping[str, int] = NOTHING) -> Formula:
    """Return the counts of one call as polynomials in the lengths of the kernel; some lengths may be `fixed`.

    `otherwise` counts the `else` part of every branch in place of the `if` part. A loop to a value that is a parameter
    counts in that parameter.
    """
    known = {name: kind.lo for name, kind in kernel.lengths.items() if kind.lo == kind.hi} | dict(fixed)
    names: dict[str, Polynomial | None] = {
        name: Polynomial.constant(known[name]) if name in known else Polynomial.variable(name)
        for name in kernel.lengths
    }
    assigned = {node.name for node in kernel.nodes if isinstance(node, ir.Let)}
    for name in kernel.parameters:
        if name not in names and name not in kernel.arrays and name not in assigned:
            names[name] = Polynomial.variable(name)
    counts, _ = _Body(kernel, names, kernel.step or OWN_STEP, otherwise, kernel, []).block(kernel.body)
    whole = {key: value + ZERO for key, value in counts.items()}
    return {key: value for key, value in whole.items() if value.terms}


class _Body:
    """One kernel's body, read with the polynomials of its lengths."""

    def __init__(
        self,
        kernel: "Kernel",
        names: dict[str, Polynomial | None],
        step: str,
        otherwise: bool,
        entry: "Kernel",
        counters: list[Any],
    ) -> None:
        self.kernel, self.names, self.step = kernel, names, step
        self.otherwise, self.entry = otherwise, entry
        self.counters = counters

    def block(self, body: tuple[ir.Statement, ...]) -> tuple[Tally, ir.Statement | None]:
        """Return the counts of these statements, and the return or break that ends them on the counted path."""
        total: Tally = {}
        for node in body:
            counts, returned = self.statement(node)
            total = self.together(total, counts)
            if returned:
                return total, returned
        return total, None

    def statement(self, node: ir.Statement) -> tuple[Tally, ir.Statement | None]:
        match node:
            case ir.Let(name=name, value=value):
                counts = self.expression(value)
                self.names[name] = self.length(value) if node.type == "index" else None
                return counts, None
            case ir.Store(index=index, value=value):
                return self.together(self.expression(value), self.expression(index), self.one("STORE")), None
            case ir.Do(call=call):
                return self.expression(call), None
            case ir.Break():
                return {}, node
            case ir.Return(value=value):
                return (self.expression(value) if value is not None else {}), node
            case ir.If(test=test, then=then, otherwise=otherwise):
                counts, returned = self.block(otherwise if self.otherwise else then)
                return self.together(self.expression(test), self.one("BRANCH"), counts), returned
            case ir.For():
                return self.loop(node)
        raise TypeError(node)

    def loop(self, node: ir.For) -> tuple[Tally, ir.Statement | None]:
        ends = self.together(self.expression(node.first), self.expression(node.last))
        first, last = self.length(node.first), self.length(node.last)
        if first is None or last is None:
            raise self.error(node, f"the number of rounds of `{ir.shown(node)}` is no polynomial in the lengths")
        least = self.fewest(last - first)
        counter = f"{node.counter}#{id(node)}"
        self.counters.append((counter, first, last - 1))
        changed = [part.name for part in ir.walk(*node.body) if isinstance(part, ir.Let)]
        self.names |= dict.fromkeys(changed)  # what one round leaves to the next is not followed
        self.names[node.counter] = Polynomial.variable(counter)
        body, returned = self.block(node.body)
        self.names |= dict.fromkeys(changed)
        self.counters.pop()
        each = self.together(self.one(*PER_ITERATION), body)
        if returned:  # the first round is the last, if there is one
            if least < 1:
                raise self.error(node, f"`{ir.shown(node)}` may end in its first round or have none")
            once = {key: self.first_round(node, times, counter, first) for key, times in each.items()}
            return self.together(ends, once), returned if isinstance(returned, ir.Return) else None
        total = self.together(ends, self.one(*LOOP_EXIT))
        for key, times in each.items():
            total[key] = self.rounds(node, times, counter, first, last, least) + total.get(key, 0)
        return total, None

    def first_round(self, node: ir.For, times: Any, counter: str, first: Polynomial) -> Any:
        """Return a round's count in the first round."""
        if isinstance(times, int) or counter not in times.names():
            return times
        if any(isinstance(symbol, Opaque) for symbol in times.symbols()):
            raise self.error(node, f"the first round of `{ir.shown(node)}` is no polynomial")
        return times.replace(counter, first)

    def rounds(
        self, node: ir.For, times: Any, counter: str, first: Polynomial, last: Polynomial, least: int
    ) -> Polynomial:
        """Sum a round's count over all rounds, of which there may be none."""
        if isinstance(times, int) or counter not in times.names():
            many = last - first if least >= 0 else Polynomial.variable(Opaque("max", last - first, ZERO))
            total: Polynomial = many * times
            return total
        try:
            if least >= 0:
                return summed(times, counter, first, last)
        except ValueError:
            pass
        raise self.error(node, f"`{ir.shown(node)}` does not sum up to a polynomial")

    def fewest(self, rounds: Polynomial) -> int:
        """Return a lower bound of a loop's rounds for any lengths; negative if it may have none."""
        lengths = self.entry.lengths
        if rounds.symbols() <= lengths.keys() and all(value > 0 for key, value in rounds.terms if key):
            return rounds.value({name: lengths[name].lo for name in rounds.names()})  # the usual case: grows with each
        from sensorsim.language.polynomial import Bounds

        bounds = Bounds()
        for name, kind in self.entry.lengths.items():
            bounds.length(name, kind.lo, kind.hi, kind.at_most)
        for name, value in self.entry.parameters.items():  # a loop may run to a value
            if isinstance(value, Q | Below):
                lo, hi = (value.lo, value.hi) if isinstance(value, Q) else (0, lengths[value.limit].hi - 1)
                bounds.length(name, lo, hi, None)
        for counter, first, last in self.counters:
            bounds.counter(counter, first, (last,))
        if rounds.names() <= bounds.symbols.keys():
            return bounds.lowest(rounds)
        return 0 if all(value >= 0 for _, value in rounds.terms) else -1  # in a parameter that is no length

    def expression(self, node: ir.Node) -> Tally:
        counts = self.together(*(self.expression(part) for part in ir.parts(node)))
        match node:
            case ir.Load() | ir.Index() | ir.Apply():
                return self.together(counts, self.one(*operations_of(node)))
            case ir.Call(kernel=called, arguments=arguments):
                names: dict[str, Polynomial | None] = {}
                for (name, _), argument in zip(called.parameters.items(), arguments, strict=True):
                    names[name] = None if isinstance(argument, ir.Whole) else self.length(argument)
                inner = _Body(called, names, called.step or self.step, self.otherwise, self.entry, self.counters)
                return self.together(counts, inner.block(called.body)[0])
        return counts

    def length(self, node: ir.Node) -> Polynomial | None:
        """Return an index expression as a polynomial, or None."""
        match node:
            case ir.Const(value=value):
                return Polynomial.constant(value)
            case ir.Name(name=name):
                return self.names.get(name)
            case ir.Index(operator=operator, operands=operands):
                below = [self.length(operand) for operand in operands]
                if any(part is None for part in below):
                    return None
                known: list[Any] = below
                return -known[0] if len(known) == 1 else OPERATORS[operator](*known)
        return None

    def one(self, *operations: str) -> Tally:
        return Counter((self.step, operation) for operation in operations)

    def together(self, *parts: Tally) -> Tally:
        total: Tally = {}
        for part in parts:
            for key, value in part.items():
                total[key] = total[key] + value if key in total else value
        return total

    def error(self, node: ir.Node, what: str) -> LanguageError:
        return LanguageError(f"{node.at}: kernel {self.kernel.name} has no formula: {what}.")
