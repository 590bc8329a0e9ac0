"""Where the last loop of a kernel reads and writes: what decides whether the rows of many records can be joined."""

from typing import TYPE_CHECKING

from sensorsim.language import ir
from sensorsim.language.arguments import polynomial
from sensorsim.language.polynomial import Polynomial

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel


class RefusedError(Exception):
    """The loop cannot be taken apart."""


class LastLoop:
    """A kernel's last loop, what stands before and behind it, and questions about the elements that it touches."""

    def __init__(self, kernel: "Kernel", rows: frozenset[str]) -> None:
        self.kernel, self.rows = kernel, rows
        body = kernel.body
        loops = [place for place, node in enumerate(body) if isinstance(node, ir.For)]
        if not loops or any(isinstance(node, ir.Return) for node in kernel.nodes):
            raise RefusedError
        loop = body[loops[-1]]
        assert isinstance(loop, ir.For)
        self.loop, self.front, self.tail = loop, body[: loops[-1]], body[loops[-1] + 1 :]
        if not (isinstance(loop.first, ir.Const) and loop.first.value == 0 and self.only_lengths(loop.last)):
            raise RefusedError
        self.last = polynomial(loop.last)

    def only_lengths(self, node: ir.Expression) -> bool:
        return all(
            isinstance(part, ir.Const | ir.Index) or (isinstance(part, ir.Name) and part.name in self.kernel.lengths)
            for part in ir.walk(node)
        )

    def at_counter(self, node: ir.Load | ir.Store) -> bool:
        """Whether the element is a·i + b of an array of a·n: then the rows of a block are one long row."""
        if node.array not in self.rows or not self.only_counter(node.index):
            return False
        place, counter = polynomial(node.index), self.loop.counter
        base, one = (place.replace(counter, Polynomial.constant(at)).number for at in (0, 1))
        if base is None or one is None or one <= base:
            return False
        step = int(one - base)
        straight = (place - Polynomial.variable(counter) * step).number == base
        return straight and (polynomial(self.kernel.sizes[node.array]) - self.last * step).number == 0

    def steady(self, node: ir.Expression) -> bool:
        own = {self.loop.counter, *self.kernel.lengths}
        kinds = ir.Const | ir.Index
        return all(
            isinstance(part, kinds) or (isinstance(part, ir.Name) and part.name in own) for part in ir.walk(node)
        )

    def only_counter(self, node: ir.Expression) -> bool:
        kinds = ir.Const | ir.Index
        return all(
            isinstance(part, kinds) or (isinstance(part, ir.Name) and part.name == self.loop.counter)
            for part in ir.walk(node)
        )

    def second_may_store(self, node: ir.Store) -> bool:
        """The array is stored to in this loop alone, and read nowhere."""
        outside = [*ir.walk(*self.front), *ir.walk(*self.tail)]
        touched = [part for part in outside if isinstance(part, ir.Load | ir.Store | ir.Whole)]
        inside = [part for part in ir.walk(self.loop) if isinstance(part, ir.Load | ir.Whole)]
        return self.at_counter(node) and all(part.array != node.array for part in [*touched, *inside])

    def again(self, load: ir.Load) -> bool:
        return self.at_counter(load) and load.array not in self.kernel.written

    def counts_in_places_only(self, node: ir.Node) -> bool:
        """Whether the counter stands nowhere but in the places of elements that a block may join."""
        if isinstance(node, ir.Name):
            return node.name != self.loop.counter
        joined = isinstance(node, ir.Load | ir.Store) and self.at_counter(node)
        below = [node.value] if joined and isinstance(node, ir.Store) else [] if joined else ir.parts(node)
        return all(self.counts_in_places_only(part) for part in below)
