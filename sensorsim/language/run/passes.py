"""A kernel's last loop in two passes over a whole block of records, where that gives the same results.

The first pass does, record by record, what must be done in order or reads at random: values carried from one turn to
the next, entries picked from tables, state. The second is arithmetic on arrays that are touched at the counter alone;
it runs over all features of all records of the block as if they were one long record, and so vectorises whatever the
length of a record. Values that the second needs of the first go through scratch arrays.

`two_passes` gives None wherever it is not certain that nothing changes; the kernel then runs record by record.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sensorsim.language import ir
from sensorsim.language.run.inline import Inliner
from sensorsim.language.run.places import LastLoop, RefusedError

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

SIMPLE = ir.Let | ir.Store


@dataclass(frozen=True)
class Passes:
    """The statements of the two passes. In the second, and in the first if `flat`, the counter runs over a block."""

    front: tuple[ir.Statement, ...]
    fixed: tuple[ir.Let, ...]  # of the front: the same for every record, and needed by the second pass
    counter: str
    last: ir.Expression
    first: tuple[ir.Statement, ...]
    second: tuple[ir.Statement, ...]
    kept: dict[str, str]  # the names that go through scratch arrays, with their storage
    tail: tuple[ir.Statement, ...]
    flat: bool  # the first pass has no order to keep either


def two_passes(kernel: "Kernel", rows: frozenset[str], shared: frozenset[str]) -> Passes | None:
    """The passes; `rows` are the arrays with one row for each record, `shared` the names all records have in common."""
    try:
        return _Splitter(kernel, rows, shared).split()
    except RefusedError:
        return None


class _Splitter(LastLoop):
    def __init__(self, kernel: "Kernel", rows: frozenset[str], shared: frozenset[str]) -> None:
        super().__init__(kernel, rows)
        self.shared, self.inliner = shared, Inliner()
        self.seeds: set[int] = set()  # statements of the first pass, by identity
        self.random = False  # whether elements are read at places that do not follow from the counter

    def split(self) -> Passes:
        steps = self.gathered(self.single(self.inliner.body(self.loop.body)))
        self.fixed = self.fixed_lets()
        definition = {node.name: node for node in steps if isinstance(node, ir.Let)}
        first = self.needed(steps, definition)
        second, kept = self.rest(steps, first, definition)
        if not any(isinstance(node, ir.Apply) for node in ir.walk(*second)):
            raise RefusedError
        passes = tuple(node for node in steps if id(node) in first)
        if passes and not self.random and not self.carried:  # it vectorises as it stands
            raise RefusedError
        return Passes(
            self.front, tuple(self.fixed.values()), self.loop.counter, self.loop.last, passes, second, kept, self.tail,
            flat=self.orderless(passes, definition),
        )  # fmt: skip

    # names with one value each

    def single(self, body: tuple[ir.Statement, ...]) -> list[SIMPLE]:
        """Every name gets one value in a turn; what the loop carries is taken up at its start and left at its end."""
        if not all(isinstance(node, SIMPLE) for node in body):
            raise RefusedError
        before = set(self.kernel.parameters) | {node.name for node in ir.walk(*self.front) if isinstance(node, ir.Let)}
        carried = [node for node in body if isinstance(node, ir.Let) and node.name in before]
        made: list[SIMPLE] = []
        now: dict[str, ir.Expression] = {}
        for name, let in {node.name: node for node in carried}.items():
            now[name] = ir.Name(let.at, let.type, self.inliner.fresh(name))
            made.append(ir.Let(let.at, let.type, _named(now[name]), ir.Name(let.at, let.type, name)))
        for node in body:
            if isinstance(node, ir.Store):
                value, index = self.renamed(node.value, now), self.renamed(node.index, now)
                made.append(ir.Store(node.at, "none", node.array, index, value))
            elif isinstance(node, ir.Let):
                value, target = self.renamed(node.value, now), self.inliner.fresh(node.name)
                made.append(ir.Let(node.at, node.type, target, value))
                now[node.name] = ir.Name(node.at, node.type, target)
        for name, let in {node.name: node for node in carried}.items():
            made.append(ir.Let(let.at, let.type, name, now[name]))
            self.seeds.add(id(made[-1]))
        self.carried = {node.name for node in carried}
        return made

    def renamed(self, node: ir.Expression, now: dict[str, ir.Expression]) -> ir.Expression:
        left: list[ir.Statement] = []
        made = self.inliner.expression(node, now, {}, left)
        if left:
            raise RefusedError
        return made

    # what is read at random

    def gathered(self, steps: list[SIMPLE]) -> list[SIMPLE]:
        """Loads that are not at the counter, as statements of their own, which the first pass does."""
        made: list[SIMPLE] = []
        for node in steps:
            if isinstance(node, ir.Let):
                step: SIMPLE = ir.Let(node.at, node.type, node.name, self.lifted(node.value, made))
            else:
                value, index = self.lifted(node.value, made), self.lifted(node.index, made)
                step = ir.Store(node.at, "none", node.array, index, value)
                if not self.second_may_store(step):
                    self.seeds.add(id(step))
            if id(node) in self.seeds:
                self.seeds.add(id(step))
            made.append(step)
        self.alive = made  # identities stay valid as long as the nodes do
        return made

    def lifted(self, node: ir.Expression, made: list[SIMPLE]) -> ir.Expression:
        match node:
            case ir.Load(index=index):
                if self.at_counter(node) and node.array not in self.kernel.written:
                    return node
                self.random |= not self.steady(index) or node.array in self.kernel.written
                return self.step(ir.Load(node.at, node.type, node.array, self.lifted(index, made)), made)
            case ir.Index(operands=below):
                return ir.Index(node.at, "index", node.operator, tuple(self.lifted(part, made) for part in below))
            case ir.Apply(operands=below):
                given = tuple(self.lifted(part, made) for part in below)
                return ir.Apply(node.at, node.type, node.primitive, given)
            case ir.Call(arguments=passed):
                if node.kernel.written:
                    raise RefusedError
                arguments = tuple(part if isinstance(part, ir.Whole) else self.lifted(part, made) for part in passed)
                left = ir.Call(node.at, node.type, node.kernel, arguments)
                if not any(isinstance(part, ir.Whole) for part in passed):
                    return left
                self.random = True
                return self.step(left, made)
        return node

    def step(self, value: ir.Expression, made: list[SIMPLE]) -> ir.Name:
        let = ir.Let(value.at, value.type, self.inliner.fresh("read"), value)
        made.append(let)
        self.seeds.add(id(let))
        return ir.Name(value.at, value.type, let.name)

    # the two passes

    def fixed_lets(self) -> dict[str, ir.Let]:
        """Statements before the loop that give the same for every record."""
        lets = [node for node in self.kernel.nodes if isinstance(node, ir.Let)]
        made: dict[str, ir.Let] = {}
        for node in self.front:
            if isinstance(node, ir.Let) and node.name not in self.carried and node.name not in self.kernel.parameters:
                once = sum(let.name == node.name for let in lets) == 1
                if once and all(self.is_fixed(part, made) for part in ir.walk(node.value)):
                    made[node.name] = node
        return made

    def is_fixed(self, part: ir.Node, fixed: dict[str, ir.Let]) -> bool:
        if isinstance(part, ir.Name):
            changed = any(isinstance(node, ir.Let) and node.name == part.name for node in self.kernel.nodes)
            return part.name in fixed or (part.name in self.shared and not changed)
        return not isinstance(part, ir.Load | ir.Whole)

    def needed(self, steps: list[SIMPLE], definition: dict[str, ir.Let]) -> set[int]:
        """The first pass: what must be there, and all that it is computed from."""
        first: set[int] = set()
        ahead = [node for node in steps if id(node) in self.seeds]
        while ahead:
            node = ahead.pop()
            if id(node) not in first:
                first.add(id(node))
                ahead += [definition[name] for name in _read(node) if name in definition and name not in self.carried]
        return first

    def rest(
        self, steps: list[SIMPLE], first: set[int], definition: dict[str, ir.Let]
    ) -> tuple[tuple[ir.Statement, ...], dict[str, str]]:
        """The second pass: the other stores and what they need; a mere copy of an element is read again."""
        kept: dict[str, str] = {}
        wanted: set[int] = set()
        ahead: list[SIMPLE] = [node for node in steps if isinstance(node, ir.Store) and id(node) not in first]
        while ahead:
            node = ahead.pop()
            wanted.add(id(node))
            for name in _read(node):
                let = definition.get(name) if name not in self.carried else None
                if let is None:
                    counts = name == self.loop.counter and self.counts_in_places_only(node)
                    if not counts and name not in self.fixed and not self.is_fixed(ir.Name(node.at, "index", name), {}):
                        raise RefusedError
                elif id(let) in first and not (isinstance(let.value, ir.Load) and self.again(let.value)):
                    kept[name] = self.storage(let)
                elif id(let) not in wanted:
                    ahead.append(let)
        return tuple(node for node in steps if id(node) in wanted), kept

    def storage(self, let: ir.Let) -> str:
        if isinstance(let.value, ir.Load):
            return self.kernel.arrays[let.value.array].storage
        if let.type not in ("u32", "i32"):
            raise RefusedError
        return let.type

    def orderless(self, first: tuple[SIMPLE, ...], definition: dict[str, ir.Let]) -> bool:
        """Whether the first pass may run over the whole block too: only picks from what all records share."""
        if self.tail or self.carried or any(node not in self.fixed.values() for node in self.front):
            return False
        for node in first:
            if isinstance(node, ir.Store) or not self.counts_in_places_only(node):
                return False
            for part in ir.walk(node):
                if isinstance(part, ir.Load | ir.Whole):
                    joined = isinstance(part, ir.Load) and self.again(part)
                    if not joined and part.array not in self.shared:
                        return False
                name = part.name if isinstance(part, ir.Name) else self.loop.counter
                own = name in definition or name in self.fixed or name == self.loop.counter
                if not own and not self.is_fixed(part, {}):
                    return False
        return True


def _read(node: ir.Node) -> Iterable[str]:
    return [part.name for part in ir.walk(node) if isinstance(part, ir.Name)]


def _named(node: ir.Expression) -> str:
    assert isinstance(node, ir.Name)
    return node.name
