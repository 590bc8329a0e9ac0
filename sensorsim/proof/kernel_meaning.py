"""Execute a kernel's nodes on bit vectors: what the kernel means for every input at once.

Lengths are known numbers, so loops run round by round. A branch on a value that is not known is decided by the solver
under the conditions of the path; where both ways are possible, the path says which one is taken.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from bitwuzla import Kind

from sensorsim.language import ir
from sensorsim.language.kernel import reachable
from sensorsim.language.types import Array, Length
from sensorsim.proof import bitvectors as bv
from sensorsim.proof.bitvectors import Bits, Solver, known, manager
from sensorsim.proof.memory_model import Event, FindingError, UndecidedError

if TYPE_CHECKING:
    from sensorsim.language.kernel import Kernel

WORD = 32
MOST_ENDS = 64  # of a kernel that is executed on all of its paths
LEAST, MOST = -(1 << 31), (1 << 31) - 1


def _clamp(wide: Bits) -> Bits:
    """Saturate a signed value to a signed word."""
    low, high = known(LEAST, wide.width), known(MOST, wide.width)
    below, above = bv.compare(Kind.BV_SLT, wide, low), bv.compare(Kind.BV_SLT, high, wide)
    return bv.extract(bv.select(below, low, bv.select(above, high, wide)), WORD - 1, 0)


def _wide(operation: Callable[[Bits, Bits], Bits]) -> Callable[[Bits, Bits], Bits]:
    return lambda a, b: _clamp(operation(bv.sign_extend(a, 34), bv.sign_extend(b, 34)))


def _divide(kind: Any) -> Callable[[Bits, Bits], Bits]:
    return lambda a, b: bv.select(bv.equal(b, known(0, WORD)), known(0, WORD), bv.binary(kind, a, b))


def _long_product(a: Bits, b: Bits) -> Bits:
    return bv.multiply(bv.sign_extend(a, 64), bv.sign_extend(b, 64))


def _rotate(a: Bits, k: Bits) -> Bits:
    left = bv.shift(Kind.BV_SHL, a, k)
    return bv.disjunction(left, bv.shift(Kind.BV_SHR, a, bv.sub(known(WORD, WORD), k)))


def _compare(kind: Any, turned: bool = False, negated: bool = False) -> Callable[[Bits, Bits], Bits]:
    def apply(a: Bits, b: Bits) -> Bits:
        found = bv.compare(kind, b, a) if turned else bv.compare(kind, a, b)
        return bv.exclusive(found, known(1, 1)) if negated else found

    return apply


def _smaller(kind: Any, larger: bool = False) -> Callable[[Bits, Bits], Bits]:
    return lambda a, b: bv.select(bv.compare(kind, b, a) if larger else bv.compare(kind, a, b), a, b)


# What each primitive means on bit vectors.
MEANINGS: dict[str, Callable[..., Bits]] = {
    "i32": lambda a: a,
    "u32": lambda a: a,
    "i64": lambda a: bv.sign_extend(a, 64),
    **dict.fromkeys(("add", "addu", "wrapping_addu", "add64"), bv.add),
    **dict.fromkeys(("sub", "subu", "wrapping_subu", "sub64"), bv.sub),
    **dict.fromkeys(("mul", "mulu", "wrapping_mulu"), bv.multiply),
    "div": _divide(Kind.BV_SDIV),
    "divu": _divide(Kind.BV_UDIV),
    **dict.fromkeys(("shl", "shlu", "wrapping_shlu"), lambda a, k: bv.shift(Kind.BV_SHL, a, k)),
    **dict.fromkeys(("asr", "asr64"), lambda a, k: bv.shift(Kind.BV_ASHR, a, k)),
    "shru": lambda a, k: bv.shift(Kind.BV_SHR, a, k),
    "sign_mask": lambda a: bv.shift(Kind.BV_ASHR, a, known(31, WORD)),
    "and_": bv.conjunction,
    "or_": bv.disjunction,
    "xor": bv.exclusive,
    "not_": bv.invert,
    "ge": _compare(Kind.BV_SLE, turned=True),
    "geu": _compare(Kind.BV_ULE, turned=True),
    "lt": _compare(Kind.BV_SLT),
    "ltu": _compare(Kind.BV_ULT),
    **dict.fromkeys(("eq", "equ"), bv.equal),
    **dict.fromkeys(("ne", "neu"), _compare(Kind.EQUAL, negated=True)),
    **dict.fromkeys(("select", "selectu"), bv.select),
    "minu": _smaller(Kind.BV_ULT),
    "maxu": _smaller(Kind.BV_ULT, larger=True),
    "min_": _smaller(Kind.BV_SLT),
    "max_": _smaller(Kind.BV_SLT, larger=True),
    "rotlu": _rotate,
    "saturating_add": _wide(bv.add),
    "saturating_sub": _wide(bv.sub),
    "saturating_addu": lambda a, b: bv.select(bv.compare(Kind.BV_UADD_OVERFLOW, a, b), known(-1, WORD), bv.add(a, b)),
    "saturating_subu": lambda a, b: bv.select(bv.compare(Kind.BV_ULT, a, b), known(0, WORD), bv.sub(a, b)),
    "mul64": _long_product,
    "mac": lambda total, a, b: bv.add(total, _long_product(a, b)),
    "narrow": lambda a, k: _clamp(bv.shift(Kind.BV_ASHR, a, k)),
}


class Table(NamedTuple):
    """A table that is only read: at an unknown index its entry is that of an unknown function."""

    entries: list[Bits]
    unknown: Callable[[Bits], Bits]


Value = Bits | int | list[Bits] | Table  # a scalar, a length, an array, a constant table


class _Return(Exception):  # noqa: N818 - the way out of nested loops
    pass


class _Break(Exception):  # noqa: N818 - the way out of a loop
    pass


class Outside(Protocol):
    """What a kernel does not compute itself: the board's ports, and kernels that are proved by themselves."""

    def ask(self, meaning: Meaning, node: ir.Ask, given: list[Bits], array: Value | None) -> Bits: ...

    def replaces(self, kernel: Kernel) -> bool: ...

    def call(self, meaning: Meaning, kernel: Kernel, values: dict[str, Value]) -> Bits | None: ...


class Meaning:
    """Execution of a kernel along one path. `decisions` are the branches taken so far; more are added to it."""

    def __init__(
        self, solver: Solver, path: list[Any], decisions: list[bool] | None = None, outside: Outside | None = None
    ) -> None:
        self.solver, self.path, self.outside = solver, path, outside
        self.events: list[Event] = []
        self.decisions = [] if decisions is None else decisions
        self.taken = 0
        self.open: list[list[bool]] = []  # decisions of paths that are still to be followed
        self.seen: dict[Any, Bits] = {}  # every value of 32 bits, by its term
        self.known: dict[Any, tuple[Bits | None, dict[str, list[Bits]]]] = {}  # what kernels made of these values
        self.both = False  # whether it goes both ways without asking the solver

    def call(self, kernel: Kernel, values: dict[str, Value]) -> Bits | None:
        """Execute the kernel; arrays are written in place."""
        if self.outside is not None and self.outside.replaces(kernel):
            return self.outside.call(self, kernel, values)
        if self.outside is not None and not kernel.asks and not any(map(self.outside.replaces, reachable([kernel]))):
            return self.whole(kernel, values)
        return self.run(kernel, values)

    def whole(self, kernel: Kernel, values: dict[str, Value]) -> Bits | None:
        """Execute a kernel that asks nobody on all of its paths, and choose between their results."""
        key = kernel, tuple(map(_key, values.values()))
        if key not in self.known:
            self.known[key] = self._whole(kernel, values)
        result, made = self.known[key]
        for name, cells in made.items():
            target = values[name]
            assert isinstance(target, list)
            target[:] = cells
        return result

    def _whole(self, kernel: Kernel, values: dict[str, Value]) -> tuple[Bits | None, dict[str, list[Bits]]]:
        waiting: list[list[bool]] = [[]]
        ends: list[tuple[Bits, Bits | None, dict[str, Value]]] = []
        while waiting:
            each = Meaning(self.solver, [], waiting.pop(), self.outside)
            each.seen, each.known, each.both = self.seen, self.known, True
            own = {name: list(value) if isinstance(value, list) else value for name, value in values.items()}
            result = each.run(kernel, own)
            condition = known(1, 1)
            for one in each.path:
                condition = bv.conjunction(condition, one)
            ends.append((condition, result, own))
            waiting += each.open
            if len(ends) + len(waiting) > MOST_ENDS:
                raise UndecidedError(f"{kernel.name} has more than {MOST_ENDS} paths")
        _, result, made = ends[0]
        for condition, other, theirs in ends[1:]:
            condition = self.noted(condition)
            if result is not None and other is not None:
                result = self.noted(bv.select(condition, other, result))
            for name in kernel.written:
                mine, cells = made[name], theirs[name]
                if isinstance(mine, list) and isinstance(cells, list):
                    made[name] = [self.noted(bv.select(condition, b, a)) for a, b in zip(mine, cells, strict=True)]
        return result, {name: list(cells) for name in kernel.written if isinstance(cells := made[name], list)}

    def noted(self, value: Bits) -> Bits:
        """Return a value under a name, and remember it as one that the code may compute too."""
        if value.number is None:
            value = bv.named(value)
            if value.width in (1, WORD):
                self.seen.setdefault(value.term, value)
        return value

    def run(self, kernel: Kernel, values: dict[str, Value]) -> Bits | None:
        names: dict[str, Value] = dict(values)
        try:
            self.block(kernel.body, names)
        except _Return as end:
            return cast("Bits | None", end.args[0])
        return None

    def block(self, body: Sequence[ir.Statement], names: dict[str, Value]) -> None:
        for node in body:
            self.statement(node, names)

    def statement(self, node: ir.Statement, names: dict[str, Value]) -> None:
        match node:
            case ir.Let(name=name, value=value):
                made = self.value(value, names)
                names[name] = made if node.type == "index" else self.typed(made, node.type)
            case ir.Store(array=array, index=index, value=value):
                self.store(names[array], self.value(index, names), self.bits(value, names))
            case ir.For(counter=counter, body=body):
                ends = [self.value(end, names) for end in (node.first, node.last)]
                rounds = [end if isinstance(end, int) else end.number for end in ends]
                if rounds[0] is None or rounds[1] is None:
                    raise FindingError(f"{node.at}: the rounds of this loop depend on an unknown value")
                with suppress(_Break):
                    for names[counter] in range(rounds[0], rounds[1]):
                        self.block(body, names)
            case ir.If(test=test, then=then, otherwise=otherwise):
                self.block(then if self.decide(self.bits(test, names)) else otherwise, names)
            case ir.Do(call=call):
                self.value(call, names)
            case ir.Return(value=value):
                raise _Return(None if value is None else self.bits(value, names))
            case ir.Break():
                raise _Break
            case _:
                raise TypeError(node)

    def decide(self, test: Bits) -> bool:
        """Return which way a branch goes on this path."""
        if test.number is not None:
            return bool(test.number)
        if test.width > 1:
            test = self.noted(bv.invert(bv.equal(test, known(0, test.width))))
        condition = {True: test, False: bv.invert(test)}
        if self.taken == len(self.decisions):
            can = {way: self.both or not self.solver.excludes(self.path, condition[way]) for way in (True, False)}
            if can[True] == can[False]:
                self.open.append([*self.decisions, False])
            self.decisions.append(can[True] or can[True] == can[False])
        way = self.decisions[self.taken]
        self.taken += 1
        self.path.append(condition[way])
        return way

    # values

    def bits(self, node: ir.Expression, names: dict[str, Value]) -> Bits:
        return self.typed(self.value(node, names), node.type)

    @staticmethod
    def typed(value: Any, kind: str) -> Bits:
        """Return a number as bits of the width of its type."""
        if isinstance(value, int):
            return known(value, 64 if kind == "i64" else WORD)
        assert isinstance(value, Bits)
        return bv.sign_extend(value, 64) if kind == "i64" and value.width == WORD else value

    def value(self, node: ir.Expression, names: dict[str, Value]) -> Any:
        match node:
            case ir.Const(value=number):
                return number
            case ir.Name(name=name):
                return names[name]
            case ir.Load(array=array, index=index):
                return self.load(names[array], self.value(index, names), node.type)
            case ir.Index(operator=operator, operands=operands):
                return _index(operator, [self.value(one, names) for one in operands])
            case ir.Apply(primitive=primitive, operands=operands):
                given = [self.typed(self.value(one, names), kind)
                         for one, kind in zip(operands, primitive.operands, strict=True)]  # fmt: skip
                meaning = MEANINGS.get(primitive.name)
                if meaning is None:
                    raise FindingError(f"{node.at}: the primitive {primitive.name} has no meaning on bit vectors")
                return self.noted(meaning(*given))
            case ir.Ask(array=array):
                if self.outside is None:
                    raise FindingError(f"{node.at}: asks a board, and there is none")
                given = [self.bits(one, names) for one in node.arguments]
                return self.outside.ask(self, node, given, None if array is None else names[array])
            case ir.Call(kernel=called, arguments=arguments):
                passed: dict[str, Value] = {}
                for (name, kind), argument in zip(called.parameters.items(), arguments, strict=True):
                    if isinstance(argument, ir.Whole):
                        passed[name] = names[argument.array]
                    else:
                        passed[name] = (self.value if isinstance(kind, Length) else self.bits)(argument, names)
                return self.call(called, passed)
        raise TypeError(node)

    def load(self, array: Value, index: Any, kind: str) -> Bits:
        at = known(index, WORD) if isinstance(index, int) else index
        if isinstance(array, Table):
            found = array.unknown(at) if at.number is None else array.entries[at.number]
        else:
            found = bv.read_choice(cast("list[Bits]", array), at)
        return self.noted(bv.sign_extend(found, WORD) if kind == "i32" else bv.zero_extend(found, WORD))

    def store(self, array: Value, index: Any, value: Bits) -> None:
        assert isinstance(array, list)
        narrow = bv.extract(value, array[0].width - 1, 0)
        number = index if isinstance(index, int) else index.number
        if number is not None:
            array[number] = narrow
        else:
            array[:] = [bv.select(bv.equal(index, known(k, index.width)), narrow, cell) for k, cell in enumerate(array)]


def _key(value: Value) -> Any:
    """Return what makes a value equal to another one."""
    if isinstance(value, Bits):
        return value.width, value.secrets, value.term if value.number is None else value.number
    return tuple(map(_key, value)) if isinstance(value, list) else value


def _index(operator: str, values: list[Any]) -> Any:
    """Apply an operator to lengths and counters, which are known numbers."""
    if any(isinstance(value, Bits) and value.number is None for value in values):
        words = [known(value, WORD) if isinstance(value, int) else value for value in values]
        kinds = {"+": Kind.BV_ADD, "-": Kind.BV_SUB, "*": Kind.BV_MUL, "<<": Kind.BV_SHL, ">>": Kind.BV_ASHR}
        if len(words) == 1:
            return bv.sub(known(0, WORD), words[0])
        return bv.binary(kinds[operator], *words)
    numbers = [value if isinstance(value, int) else bv.signed(value.number or 0, WORD) for value in values]
    apply = {"+": op.add, "-": op.sub, "*": op.mul, "<<": op.lshift, ">>": op.rshift}[operator]
    return -numbers[0] if len(numbers) == 1 else apply(*numbers)


def input_values(kernel: Kernel, lengths: dict[str, int]) -> tuple[dict[str, Value], list[Any]]:
    """Return unknown inputs of a kernel and the conditions that their formats promise; secrets count by parameter."""
    from sensorsim.language.arguments import array_length, bounds
    from sensorsim.language.types import Below, Q

    values: dict[str, Value] = {}
    promised: list[Any] = []

    def promise(value: Bits, element: Q | Below) -> None:
        width, conditions = value.width, []
        if isinstance(element, Below):
            conditions = [(Kind.BV_ULT, value, known(lengths[element.limit], width))]
        else:
            negative = element.storage[0] == "i"
            least, most = (-(1 << width - 1), (1 << width - 1) - 1) if negative else (0, (1 << width) - 1)
            order = Kind.BV_SLE if negative else Kind.BV_ULE
            if element.lo > least:
                conditions.append((order, known(element.lo, width), value))
            if element.hi < most:
                conditions.append((order, value, known(element.hi, width)))
        promised.extend(bv.truth(bv.compare(*condition)) for condition in conditions)

    for number, (name, kind) in enumerate(kernel.parameters.items()):
        if isinstance(kind, Length):
            values[name] = lengths[name]
            continue
        width = int(kind.storage[1:])
        if isinstance(kind, Array):
            if kind.contents is not None:
                values[name] = [known(entry, width) for entry in kind.contents]
                continue
            element, names = kind.element, [f"{name}_{i}" for i in range(array_length(kernel, name, lengths))]
        else:
            element, names = kind, [name]
        secrets, ends = 1 << number if element.secret else 0, bounds(element, lengths)
        cells = [bv.unknown(one, width, secrets, *ends) for one in names]
        if not isinstance(kind, Array) or not kind.written:
            for cell in cells:
                promise(cell, element)
        if getattr(element, "once", False) and len(cells) > 1:
            promised.append(manager.mk_term(Kind.DISTINCT, [cell.term for cell in cells]))
        extend = bv.sign_extend if kind.storage[0] == "i" else bv.zero_extend
        values[name] = cells if isinstance(kind, Array) else extend(cells[0], WORD)
    return values, promised
