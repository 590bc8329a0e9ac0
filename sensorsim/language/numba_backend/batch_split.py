"""Split the last loop of a kernel so that a batch of records vectorises, where that gives the same results.

The first part loads entries from tables at random places. The second part is arithmetic on arrays at the counter alone:
it runs over all records of a block as if they were one long record, so it vectorises for records of any length. Values
that the second part needs from the first go through scratch arrays.

`split_loop` returns None unless it is certain that nothing changes; the kernel then runs record by record.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from sensorsim.language import ir
from sensorsim.language.arguments import polynomial
from sensorsim.language.numba_backend.python_source import Inliner
from sensorsim.language.polynomial import Polynomial

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

Step = ir.Let | ir.Store


class Roles(NamedTuple):
    """How each parameter of a kernel is given to a batch."""

    rows: frozenset[str]  # one for each record
    shared: frozenset[str]
    state: tuple[str, ...]
    drawn: tuple[str, ...]
    scratch: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """The parts of a loop; the counter of both runs over a whole block."""

    fixed: tuple[ir.Let, ...]  # statements before the loop, equal for all records
    counter: str
    last: ir.Expression
    first: tuple[ir.Let, ...]
    kept: dict[str, str]  # names that go through scratch arrays to the second part, with their storage types
    second: tuple[Step, ...]


class RefusedError(Exception):
    """The loop cannot be split."""


@cache
def split_loop(kernel: "Kernel", roles: Roles) -> Split | None:
    """Return the parts of the kernel's last loop, or None."""
    try:
        return _Splitter(kernel, roles).split()
    except RefusedError:
        return None


def _require(condition: bool) -> None:
    if not condition:
        raise RefusedError


class _Splitter:
    def __init__(self, kernel: "Kernel", roles: Roles) -> None:
        self.kernel, self.roles, self.inliner = kernel, roles, Inliner()
        self.rows = {name for name in (*roles.rows, *roles.drawn) if name in kernel.arrays}
        loops = [place for place, node in enumerate(kernel.body) if isinstance(node, ir.For)]
        _require(bool(loops) and not any(isinstance(node, ir.Return) for node in kernel.nodes))
        loop = kernel.body[loops[-1]]
        assert isinstance(loop, ir.For)
        self.loop, self.front, self.tail = loop, kernel.body[: loops[-1]], kernel.body[loops[-1] + 1 :]
        starts_at_zero = isinstance(loop.first, ir.Const) and loop.first.value == 0
        _require(starts_at_zero and _only(loop.last, kernel.lengths))
        self.last = polynomial(loop.last)
        lets = [node.name for node in kernel.nodes if isinstance(node, ir.Let)]
        self.changed = set(lets)
        self.once_given = {name for name in lets if lets.count(name) == 1} - set(kernel.parameters)
        self.gathers: set[str] = set()  # names of loads at random places
        self.random = False

    def split(self) -> Split:
        steps = self.gathered(self.single(self.inliner.body(self.loop.body)))
        self.fixed = self.fixed_lets()
        self.definition = {node.name: node for node in steps if isinstance(node, ir.Let)}
        first = self.needed(self.gathers)
        second, kept = self.rest(steps, first)
        _require(any(isinstance(node, ir.Apply) for node in ir.walk(*second)))
        _require(not first or self.random)  # else it vectorises as it is
        lets = tuple(node for node in self.definition.values() if node.name in first)
        _require(not self.tail and all(node in self.fixed.values() for node in self.front))
        own = {*self.definition, *self.fixed, self.loop.counter}
        for node in lets:  # it may run over a whole block: it only picks from what all records share
            _require(self.counts_in_places_only(node))
            for part in ir.walk(node):
                if isinstance(part, ir.Load | ir.Whole):
                    joined = isinstance(part, ir.Load) and self.at_counter(part)
                    _require(joined or part.array in self.roles.shared)
            _require(all(name in own or self.is_shared(name) for name in _read(node)))
        return Split(tuple(self.fixed.values()), self.loop.counter, self.loop.last, lets, kept, second)

    # each name gets one value

    def single(self, body: tuple[ir.Statement, ...]) -> list[Step]:
        """Give every name one value in a turn, none of which goes on to the next."""
        _require(all(isinstance(node, Step) for node in body))
        before = set(self.kernel.parameters) | {node.name for node in ir.walk(*self.front) if isinstance(node, ir.Let)}
        made: list[Step] = []
        now: dict[str, ir.Expression] = {}
        for node in body:
            if isinstance(node, ir.Store):
                value, index = self.renamed(node.value, now), self.renamed(node.index, now)
                made.append(ir.Store(node.at, "none", node.array, index, value))
            elif isinstance(node, ir.Let):
                _require(node.name not in before)
                target = self.inliner.fresh(node.name)
                made.append(ir.Let(node.at, node.type, target, self.renamed(node.value, now)))
                now[node.name] = ir.Name(node.at, node.type, target)
        return made

    def renamed(self, node: ir.Expression, now: dict[str, ir.Expression]) -> ir.Expression:
        left: list[ir.Statement] = []
        made = self.inliner.expression(node, now, {}, left)
        _require(not left)
        return made

    # loads at random places

    def gathered(self, steps: list[Step]) -> list[Step]:
        """Turn loads that are not at the counter into statements of their own."""
        made: list[Step] = []
        for node in steps:
            if isinstance(node, ir.Let):
                made.append(ir.Let(node.at, node.type, node.name, self.lifted(node.value, made)))
            else:
                value, index = self.lifted(node.value, made), self.lifted(node.index, made)
                made.append(ir.Store(node.at, "none", node.array, index, value))
                _require(self.may_store(node))
        return made

    def lifted(self, node: ir.Expression, made: list[Step]) -> ir.Expression:
        match node:
            case ir.Load(index=index):
                _require(node.array not in self.kernel.written)
                if self.at_counter(node):
                    return node
                self.random |= not _only(index, {self.loop.counter, *self.kernel.lengths})
                return self.gather(ir.Load(node.at, node.type, node.array, self.lifted(index, made)), made)
            case ir.Index(operands=below):
                return ir.Index(node.at, "index", node.operator, tuple(self.lifted(part, made) for part in below))
            case ir.Apply(operands=below):
                given = tuple(self.lifted(part, made) for part in below)
                return ir.Apply(node.at, node.type, node.primitive, given)
            case ir.Call(arguments=passed):
                _require(not node.kernel.written)
                arguments = tuple(part if isinstance(part, ir.Whole) else self.lifted(part, made) for part in passed)
                left = ir.Call(node.at, node.type, node.kernel, arguments)
                if not any(isinstance(part, ir.Whole) for part in passed):
                    return left
                self.random = True
                return self.gather(left, made)
        return node

    def gather(self, value: ir.Expression, made: list[Step]) -> ir.Name:
        let = ir.Let(value.at, value.type, self.inliner.fresh("read"), value)
        made.append(let)
        self.gathers.add(let.name)
        return ir.Name(value.at, value.type, let.name)

    def at_counter(self, node: ir.Load | ir.Store) -> bool:
        """Return whether the element is a·i + b of an array of a·n: then the rows of a block are one long row."""
        if node.array not in self.rows or not _only(node.index, {self.loop.counter}):
            return False
        place, counter = polynomial(node.index), self.loop.counter
        base, one = (place.replace(counter, Polynomial.constant(at)).number for at in (0, 1))
        if base is None or one is None or one <= base:
            return False
        step = int(one - base)
        straight = (place - Polynomial.variable(counter) * step).number == base
        return straight and (polynomial(self.kernel.sizes[node.array]) - self.last * step).number == 0

    def may_store(self, node: ir.Store) -> bool:
        """Return whether the array is stored to in this loop alone, and read nowhere."""
        outside = [part for part in ir.walk(*self.front, *self.tail) if isinstance(part, ir.Load | ir.Store | ir.Whole)]
        inside = [part for part in ir.walk(self.loop) if isinstance(part, ir.Load | ir.Whole)]
        return self.at_counter(node) and all(part.array != node.array for part in [*outside, *inside])

    # the parts

    def fixed_lets(self) -> dict[str, ir.Let]:
        """Return the statements before the loop that give the same for every record."""
        made: dict[str, ir.Let] = {}
        for node in self.front:
            if not isinstance(node, ir.Let) or node.name not in self.once_given or _arrays(node):
                continue
            if all(name in made or self.is_shared(name) for name in _read(node)):
                made[node.name] = node
        return made

    def is_shared(self, name: str) -> bool:
        return name in self.roles.shared and name not in self.changed

    def needed(self, names: set[str]) -> set[str]:
        """Return the names and all that they are computed from in a turn."""
        found: set[str] = set()
        ahead = list(names)
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead += _read(self.definition[name]) & self.definition.keys()
        return found

    def rest(self, steps: list[Step], first: set[str]) -> tuple[tuple[Step, ...], dict[str, str]]:
        """Return the second part: the stores and what they need; a mere copy of an element is read again."""
        kept: dict[str, str] = {}
        wanted: set[int] = set()
        ahead = [node for node in steps if isinstance(node, ir.Store)]
        while ahead:
            node: Step = ahead.pop()
            wanted.add(id(node))
            for name in sorted(_read(node)):
                let = self.definition.get(name)
                if let is None:
                    counts = name == self.loop.counter and self.counts_in_places_only(node)
                    _require(counts or name in self.fixed or self.is_shared(name))
                elif name in first and not (isinstance(let.value, ir.Load) and self.at_counter(let.value)):
                    kept[name] = self.storage(let)
                elif id(let) not in wanted:
                    ahead.append(let)  # type: ignore[arg-type]
        return tuple(node for node in steps if id(node) in wanted), kept

    def storage(self, let: ir.Let) -> str:
        if isinstance(let.value, ir.Load):
            return self.kernel.arrays[let.value.array].storage
        _require(let.type in ("u32", "i32"))
        return let.type

    def counts_in_places_only(self, node: ir.Node) -> bool:
        """Return whether the counter stands nowhere but in the places of elements that a block may join."""
        if isinstance(node, ir.Name):
            return node.name != self.loop.counter
        joined = isinstance(node, ir.Load | ir.Store) and self.at_counter(node)
        below = [node.value] if joined and isinstance(node, ir.Store) else [] if joined else ir.parts(node)
        return all(self.counts_in_places_only(part) for part in below)


def _only(node: ir.Expression, names: Iterable[str]) -> bool:
    """Return whether an expression has numbers, index arithmetic and these names alone."""
    known = set(names)
    return all(
        isinstance(part, ir.Const | ir.Index) or (isinstance(part, ir.Name) and part.name in known)
        for part in ir.walk(node)
    )


def _read(*nodes: ir.Node) -> set[str]:
    return {part.name for part in ir.walk(*nodes) if isinstance(part, ir.Name)}


def _arrays(node: ir.Node) -> set[str]:
    return {part.array for part in ir.walk(node) if isinstance(part, ir.Load | ir.Whole)}
