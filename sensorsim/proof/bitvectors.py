"""Bit vectors of a fixed width: a known number, or a solver's term, and the secrets that it may depend on.

Operations on known numbers are computed at once, so that only what depends on an unknown input becomes a term. A value
carries the set of secrets that occur in it, as the bits of a number: what is computed from a secret is secret. It also
carries what it is for a few sample inputs: values that differ there differ, and those that agree are worth a question.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from random import Random
from typing import Any

from bitwuzla import Bitwuzla, Kind, Option, Options, Result, TermManager

SAMPLES = 16
manager = TermManager()


@cache
def sort_of(width: int) -> Any:
    """Return the solver's sort of this width."""
    return manager.mk_bv_sort(width)


class Bits:
    """A value of `width` bits. `number` is None where it is not known; `secrets` is 0 where it is public."""

    __slots__ = ("_term", "narrow", "number", "samples", "secrets", "width")

    def __init__(
        self, width: int, number: int | None, term: Any = None, secrets: int = 0, samples: tuple[int, ...] = ()
    ) -> None:
        self.width, self.number, self._term, self.secrets = width, number, term, secrets
        self.samples = samples if number is None else (number,) * SAMPLES
        self.narrow: Bits | None = None  # what it is a zero extension of

    @property
    def term(self) -> Any:
        if self._term is None:
            assert self.number is not None
            self._term = manager.mk_bv_value(sort_of(self.width), self.number)
        return self._term

    def __repr__(self) -> str:
        return f"<{self.width}: {self._term if self.number is None else self.number}>"


def known(number: int, width: int) -> Bits:
    """Return a known number, modulo 2^width."""
    return Bits(width, number & ((1 << width) - 1))


def unknown(
    name: str,
    width: int,
    secrets: int = 0,
    least: int = 0,
    most: int | None = None,
    samples: Sequence[int] = (),
) -> Bits:
    """Return a fresh unknown value; its samples are the given ones, or random within `least` and `most`, as signed
    numbers where negative."""
    if samples:
        return Bits(width, None, manager.mk_const(sort_of(width), name), secrets, tuple(samples))
    most = (1 << width) - 1 if most is None else most
    random = Random(f"{name} {width}")
    samples = tuple(random.randint(least, most) & ((1 << width) - 1) for _ in range(SAMPLES))
    return Bits(width, None, manager.mk_const(sort_of(width), name), secrets, samples)


def signed(number: int, width: int) -> int:
    """Return the number that these bits are in two's complement."""
    return number - (1 << width) if number >> (width - 1) else number


_FOLD: dict[Any, Callable[[int, int, int], int]] = {
    Kind.BV_ADD: lambda a, b, w: a + b,
    Kind.BV_SUB: lambda a, b, w: a - b,
    Kind.BV_MUL: lambda a, b, w: a * b,
    Kind.BV_AND: lambda a, b, w: a & b,
    Kind.BV_OR: lambda a, b, w: a | b,
    Kind.BV_XOR: lambda a, b, w: a ^ b,
    Kind.BV_SHL: lambda a, b, w: a << b if b < w else 0,
    Kind.BV_SHR: lambda a, b, w: a >> b if b < w else 0,
    Kind.BV_ASHR: lambda a, b, w: signed(a, w) >> min(b, w - 1),
    Kind.BV_UDIV: lambda a, b, w: a // b if b else (1 << w) - 1,
    Kind.BV_UREM: lambda a, b, w: a % b if b else a,
    Kind.BV_SDIV: lambda a, b, w: _quotient(signed(a, w), signed(b, w)),
    Kind.BV_SREM: lambda a, b, w: _remainder(signed(a, w), signed(b, w)),
}
_SAME_WITH_ZERO = {Kind.BV_ADD, Kind.BV_SUB, Kind.BV_OR, Kind.BV_XOR, Kind.BV_SHL, Kind.BV_SHR, Kind.BV_ASHR}
_COMMUTES = {Kind.BV_ADD, Kind.BV_OR, Kind.BV_XOR}


def _quotient(a: int, b: int) -> int:
    if b == 0:
        return 1 if a < 0 else -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    return a if b == 0 else (abs(a) % abs(b)) * (-1 if a < 0 else 1)


def binary(kind: Any, a: Bits, b: Bits) -> Bits:
    """Apply an operation of two operands of one width."""
    x, y, width = a.number, b.number, a.width
    if x is not None and y is not None:
        return Bits(width, _FOLD[kind](x, y, width) & ((1 << width) - 1), None, a.secrets | b.secrets)
    fold, ones, products = _FOLD[kind], (1 << width) - 1, (Kind.BV_AND, Kind.BV_MUL)
    if (y == 0 and kind in _SAME_WITH_ZERO) or (x == 0 and kind in products) or (y == ones and kind is Kind.BV_AND):
        return a
    if (x == 0 and kind in _COMMUTES) or (y == 0 and kind in products) or (x == ones and kind is Kind.BV_AND):
        return b
    samples = tuple(fold(one, other, width) & ones for one, other in zip(a.samples, b.samples, strict=True))
    return Bits(width, None, manager.mk_term(kind, [a.term, b.term]), a.secrets | b.secrets, samples)


def _operation(kind: Any) -> Callable[[Bits, Bits], Bits]:
    return lambda a, b: binary(kind, a, b)


add, sub, multiply = (_operation(kind) for kind in (Kind.BV_ADD, Kind.BV_SUB, Kind.BV_MUL))
conjunction, disjunction, exclusive = (_operation(kind) for kind in (Kind.BV_AND, Kind.BV_OR, Kind.BV_XOR))


def shift(kind: Any, a: Bits, count: Bits) -> Bits:
    """Shift by a count of any width; a count of the width or more shifts everything out."""
    if count.number is not None:
        count = known(min(count.number, (1 << a.width) - 1), a.width)
    elif count.width < a.width:
        count = zero_extend(count, a.width)
    elif count.width > a.width:
        high = extract(count, count.width - 1, a.width)
        low = extract(count, a.width - 1, 0)
        count = select(equal(high, known(0, high.width)), low, known(-1, a.width))
    return binary(kind, a, count)


def invert(a: Bits) -> Bits:
    if a.number is None and a.term.kind() == Kind.BV_NOT:
        samples = tuple(one ^ (1 << a.width) - 1 for one in a.samples)
        return Bits(a.width, None, a.term[0], a.secrets, samples)
    if a.number is None:
        samples = tuple(one ^ (1 << a.width) - 1 for one in a.samples)
        return Bits(a.width, None, manager.mk_term(Kind.BV_NOT, [a.term]), a.secrets, samples)
    return exclusive(a, known(-1, a.width))


_COMPARE: dict[Any, Callable[[int, int, int], bool]] = {
    Kind.EQUAL: lambda a, b, w: a == b,
    Kind.BV_ULT: lambda a, b, w: a < b,
    Kind.BV_ULE: lambda a, b, w: a <= b,
    Kind.BV_SLT: lambda a, b, w: signed(a, w) < signed(b, w),
    Kind.BV_SLE: lambda a, b, w: signed(a, w) <= signed(b, w),
    Kind.BV_UADD_OVERFLOW: lambda a, b, w: a + b >= 1 << w,
    Kind.BV_SADD_OVERFLOW: lambda a, b, w: not -(1 << w - 1) <= signed(a, w) + signed(b, w) < 1 << w - 1,
    Kind.BV_SSUB_OVERFLOW: lambda a, b, w: not -(1 << w - 1) <= signed(a, w) - signed(b, w) < 1 << w - 1,
}


def compare(kind: Any, a: Bits, b: Bits) -> Bits:
    """Return one bit: whether the relation holds."""
    if a.number is not None and b.number is not None:
        return Bits(1, int(_COMPARE[kind](a.number, b.number, a.width)), None, a.secrets | b.secrets)
    if kind is Kind.BV_ULT and b.number == 0:
        return known(0, 1)
    if kind is Kind.BV_ULE and a.number == 0:
        return known(1, 1)
    holds, width = _COMPARE[kind], a.width
    samples = tuple(int(holds(one, other, width)) for one, other in zip(a.samples, b.samples, strict=True))
    term = manager.mk_term(kind, [a.term, b.term])
    chosen = manager.mk_term(Kind.ITE, [term, known(1, 1).term, known(0, 1).term])
    return Bits(1, None, chosen, a.secrets | b.secrets, samples)


def equal(a: Bits, b: Bits) -> Bits:
    if a.narrow is not None and b.number is not None and a.narrow.width == 1 and b.number < 2:
        return a.narrow if b.number else invert(a.narrow)
    return known(1, 1) if a is b else compare(Kind.EQUAL, a, b)


def truth(a: Bits) -> Any:
    """Return the solver's truth value of one bit, or of a value that is not zero."""
    if a.number is not None:
        return manager.mk_true() if a.number else manager.mk_false()
    if a.width == 1:
        term = a.term
        if term.kind() == Kind.ITE and term[1].is_bv_value_one() and term[2].is_bv_value_zero():
            return term[0]
        return manager.mk_term(Kind.EQUAL, [term, known(1, 1).term])
    return manager.mk_term(Kind.DISTINCT, [a.term, known(0, a.width).term])


def select(condition: Bits, a: Bits, b: Bits) -> Bits:
    """Return a where the condition is not zero, else b."""
    if condition.number is not None:
        return a if condition.number else b
    if a is b or (a.number is not None and a.number == b.number):
        return a
    secrets = condition.secrets | a.secrets | b.secrets
    samples = tuple(
        one if chosen else other for chosen, one, other in zip(condition.samples, a.samples, b.samples, strict=True)
    )
    return Bits(a.width, None, manager.mk_term(Kind.ITE, [truth(condition), a.term, b.term]), secrets, samples)


def extract(a: Bits, high: int, low: int) -> Bits:
    """Return the bits from `low` to `high`, both included."""
    if low == 0 and high == a.width - 1:
        return a
    width = high - low + 1
    if a.narrow is not None and low == 0:
        return extract(a.narrow, high, 0) if width <= a.narrow.width else zero_extend(a.narrow, width)
    if a.number is not None:
        return Bits(width, (a.number >> low) & ((1 << width) - 1), None, a.secrets)
    samples = tuple((one >> low) & ((1 << width) - 1) for one in a.samples)
    return Bits(width, None, manager.mk_term(Kind.BV_EXTRACT, [a.term], [high, low]), a.secrets, samples)


def zero_extend(a: Bits, width: int) -> Bits:
    if width == a.width:
        return a
    if a.number is not None:
        return Bits(width, a.number, None, a.secrets)
    made = Bits(width, None, manager.mk_term(Kind.BV_ZERO_EXTEND, [a.term], [width - a.width]), a.secrets, a.samples)
    made.narrow = a.narrow or a
    return made


def sign_extend(a: Bits, width: int) -> Bits:
    if width == a.width:
        return a
    if a.number is not None:
        return Bits(width, signed(a.number, a.width) & ((1 << width) - 1), None, a.secrets)
    samples = tuple(signed(one, a.width) & ((1 << width) - 1) for one in a.samples)
    return Bits(width, None, manager.mk_term(Kind.BV_SIGN_EXTEND, [a.term], [width - a.width]), a.secrets, samples)


def join(parts: Sequence[Bits]) -> Bits:
    """Concatenate, the highest part first."""
    if len(parts) == 1:
        return parts[0]
    secrets, width, samples = 0, 0, [0] * SAMPLES
    for part in parts:
        secrets, width = secrets | part.secrets, width + part.width
        samples = [whole << part.width | one for whole, one in zip(samples, part.samples, strict=True)]
    if all(part.number is not None for part in parts):
        return Bits(width, samples[0], None, secrets)
    return Bits(width, None, manager.mk_term(Kind.BV_CONCAT, [part.term for part in parts]), secrets, tuple(samples))


def read_choice(entries: Sequence[Bits], index: Bits) -> Bits:
    """Return entries[index] as a balanced choice; an index past the end gives the last entry."""
    if index.number is not None:
        return entries[min(index.number, len(entries) - 1)]
    level, bit = list(entries), 0
    while len(level) > 1:
        chosen = extract(index, bit, bit)
        pairs = [(level[i], level[min(i + 1, len(level) - 1)]) for i in range(0, len(level), 2)]
        level, bit = [select(chosen, upper, lower) for lower, upper in pairs], bit + 1
    made = level[0]
    return Bits(made.width, made.number, made._term, made.secrets | index.secrets, made.samples)


_named: dict[tuple[Any, int], Bits] = {}
_definitions: dict[Any, Any] = {}  # for each name, the term that it stands for
_inside: dict[Any, frozenset[Any]] = {}  # for each term, the names that it has in it


def named(value: Bits) -> Bits:
    """Return a value under a name of its own. The solver is told what a name stands for only where it has to know, so
    that a question about the end of a long computation need not go back to its beginning."""
    if value.number is not None or value.term.is_const():
        return value
    key = value.term, value.secrets
    if key not in _named:
        term = manager.mk_const(sort_of(value.width), f"v{len(_definitions)}")
        _definitions[term] = value.term
        _named[key] = Bits(value.width, None, term, value.secrets, value.samples)
    return _named[key]


def meaning(value: Bits) -> Any:
    """Return the term that a value stands for, where it is a name."""
    return _definitions.get(value.term, value.term)


@atexit.register
def _forget() -> None:
    """Let go of all terms before their manager goes."""
    for one in (_named, _definitions, _inside):
        one.clear()


def names_in(term: Any) -> set[Any]:
    """Return the names that a term has in it, without those of their definitions."""
    return {one for one in leaves(term) if one in _definitions}


def leaves(term: Any) -> frozenset[Any]:
    """Return the names and unknown inputs that a term has in it."""
    waiting = [term]
    while waiting:
        top = waiting[-1]
        if top in _inside:
            waiting.pop()
            continue
        if top.is_const():
            _inside[top] = frozenset([top])
            continue
        below = [one for one in top.children() if one not in _inside]
        if below:
            waiting += below
        else:
            _inside[top] = frozenset().union(*(_inside[one] for one in top.children()))
    return _inside[term]


ALL = 1 << 30
DEPTHS = (0, 1, 2, 4, ALL)  # of definitions, one after the other until the question is decided
NEAR = (0, 1, 3)  # where "it may be" is an answer too


class Solver:
    """Questions to the solver, each with a time limit."""

    def __init__(self, seconds: float = 60.0) -> None:
        self.seconds = seconds
        self.asked = 0

    def check(
        self, terms: Iterable[Any], seconds: float | None = None, path: Iterable[Any] = (), depths: Any = DEPTHS
    ) -> tuple[bool | None, Any]:
        """Return whether the terms can all hold (None where it was not decided) and the solver that knows how.

        Definitions are added step by step: terms that contradict each other without them do so with them. Conditions
        of the path are added when two steps of the definitions were not enough.
        """
        options = Options()
        options.set(Option.PRODUCE_MODELS, True)
        options.set(Option.TIME_LIMIT_PER, int(1000 * (seconds or self.seconds)))
        solver = Bitwuzla(manager, options)
        wanted = [truth(term) if isinstance(term, Bits) else term for term in terms]
        given = [truth(term) if isinstance(term, Bits) else term for term in path]
        known_names: set[Any] = set()
        frontier: set[Any] = set()
        for term in wanted:
            solver.assert_formula(term)
            frontier |= names_in(term)
        at, found = 0, Result.UNKNOWN
        for depth in depths:
            while at < depth and (frontier or given):
                if at >= 2 or not frontier:
                    for term in given:
                        solver.assert_formula(term)
                        frontier |= names_in(term)
                    given = []
                known_names |= frontier
                fresh: set[Any] = set()
                for one in frontier:
                    definition = _definitions[one]
                    solver.assert_formula(manager.mk_term(Kind.EQUAL, [one, definition]))
                    fresh |= names_in(definition)
                frontier = fresh - known_names
                at += 1
            self.asked += 1
            found = solver.check_sat()
            if found == Result.UNSAT:
                return False, solver
            if not frontier and not given:
                break
        if found == Result.UNKNOWN or frontier or given:
            return None, solver
        return True, solver

    def holds(self, condition: Any, given: Iterable[Any]) -> bool:
        """Return whether the condition follows from what is given; False where it is not decided."""
        condition = truth(condition) if isinstance(condition, Bits) else condition
        return self.check([manager.mk_term(Kind.NOT, [condition])], path=given)[0] is False

    def excludes(self, path: Iterable[Any], term: Any) -> bool:
        """Return whether a condition cannot hold on a path, as far as is seen without going far back."""
        return self.check([term, *path], depths=NEAR)[0] is False


def value_in(solver: Any, value: Bits) -> int:
    """Return the number that a value has in the solver's model."""
    if value.number is not None:
        return value.number
    return int(solver.get_value(value.term).value(2), 2)
