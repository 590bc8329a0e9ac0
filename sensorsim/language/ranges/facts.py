"""Facts of a range proof at one point of a kernel: values, written cells, and what holds after either of two paths."""

from typing import Any, NamedTuple

from sensorsim.language import intervals, ir
from sensorsim.language.intervals import Fact, Flag, Span, Value, as_word
from sensorsim.language.ir import Node, Place
from sensorsim.language.parse import LanguageError
from sensorsim.language.polynomial import Bounds, Polynomial, simplest
from sensorsim.language.types import Array, Below, Kind


class RangeError(LanguageError):
    """Something that cannot be proved; the message names file, line and interval."""

    def __init__(self, at: Place, what: str) -> None:
        super().__init__(f"{at}: {what}.")
        self.at = at


class Proof(NamedTuple):
    """A proof: the widest interval at each line, of the result, and of the operands of each operation."""

    kernel: str
    lines: dict[Place, tuple[int, int]]
    result: tuple[int, int] | None
    operands: dict[Node, tuple[tuple[int, int], ...]]


class Cells(NamedTuple):
    """An array: whose it is, what its elements are declared as, how long it is."""

    owner: str
    kind: Array
    element: Span
    size: Polynomial


class Facts(NamedTuple):
    """Runs of cells of an `out` array that are certainly written: the first place, and the one behind the last."""

    runs: tuple[tuple[Polynomial, Polynomial], ...]

    def and_also(self, *more: tuple[Polynomial, Polynomial]) -> "Facts":
        """Add runs; two runs that touch become one."""
        runs = list(dict.fromkeys((*self.runs, *more)))
        while True:
            touching = ((one, other) for one in runs for other in runs if other[0] == one[1] and other is not one)
            one, other = next(touching, (None, None))
            if one is None or other is None:
                return Facts(tuple(runs))
            runs = [*(run for run in runs if run is not one and run is not other), (one[0], other[1])]

    def both(self, other: "Facts") -> "Facts":
        """Keep what holds for either of the two."""
        return Facts(tuple(run for run in self.runs if run in other.runs))

    def without(self, counter: str) -> "Facts":
        """Keep the runs that do not contain this counter."""
        return Facts(tuple(run for run in self.runs if not any(counter in end.names() for end in run)))

    def swept(self, counter: str, first: Polynomial, last: Polynomial, bounds: Bounds) -> "Facts":
        """Return what the rounds from `first` to before `last` write, where each goes on from the one before."""
        found = []
        for start, end in self.runs:
            # without a round the run must come out empty: it does where each round's is equally long
            even = counter not in (end - start).names() and bounds.lowest(end - start) >= 0
            if counter not in start.names() or not (even or bounds.lowest(last - first) >= 0):
                continue
            after = Polynomial.variable(counter) + 1
            if start.replace(counter, after) == end:
                found.append((start.replace(counter, first), start.replace(counter, last)))
            elif end.replace(counter, after) == start:  # from behind: a round ends where the one before began
                found.append((end.replace(counter, last), end.replace(counter, first)))
        return Facts(tuple(found))

    def cover(self, at: Span, bounds: Bounds) -> bool:
        """Return whether the place lies in one of the runs."""
        low = at.exact if at.exact is not None else Polynomial.constant(at.lo)
        return any(
            bounds.lowest(low - start) >= 0 and any(bounds.lowest(end - 1 - high) >= 0 for high in at.limits())
            for start, end in self.runs
        )


Written = dict[str, Facts]  # by the name of the array


def common_writes(one: Written, other: Written) -> Written:
    """Return the cells that are written after either of two paths."""
    return {owner: facts.both(other[owner]) for owner, facts in one.items()}


class State(NamedTuple):
    """Facts at one point: of names, and which cells of `out` arrays are written."""

    names: dict[str, Value]
    written: Written

    def copy(self) -> "State":
        return State(dict(self.names), dict(self.written))


class Check:
    """One proof: the lengths in sight and what was seen so far."""

    def __init__(self) -> None:
        self.bounds = Bounds()
        self.lines: dict[Place, tuple[int, int]] = {}
        self.operands: dict[ir.Node, tuple[tuple[int, int], ...]] = {}
        self.fresh = 0
        self.lenient = False  # in the first round of a loop: what its other rounds have written is not known yet

    def symbol(self, name: str) -> Span:
        """Return a length or counter: itself, and the numbers between which it lies."""
        me = Polynomial.variable(name)
        return Span(self.bounds.lowest(me), self.bounds.highest(me), me)

    def declared(self, kind: Kind, names: dict[str, Any]) -> Span:
        """Return the whole range of a format."""
        if isinstance(kind, Below):
            limit = names[kind.limit]
            return Span(0, limit.hi - 1, above=() if limit.exact is None else (limit.exact - 1,))
        assert not isinstance(kind, Array)
        return Span(kind.lo, kind.hi)

    def join(self, a: Value, b: Value) -> Value:
        """Return what holds of either value."""
        if a is b:
            return a
        if isinstance(a, Flag) and isinstance(b, Flag):
            return Flag(a.holds if a == b else None)
        one, other = as_word(a), as_word(b)
        exact = one.exact if one.exact == other.exact else None
        above = self.common(one, other) if exact is None or (one.above and other.above) else ()
        under: tuple[Polynomial, ...] = ()
        if exact is None or (one.under and other.under):
            held = [p for p in one.lowers() if self.at_least(other, p)]
            under = simplest([*held, *(p for p in other.lowers() if p not in held and self.at_least(one, p))])
        drift = min(one.drift[0], other.drift[0]), max(one.drift[1], other.drift[1])
        start = one.start if one.start == other.start else None
        origin, moved = (one.origin, one.moved) if one.is_value(other) else (None, intervals.NOTHING)
        return Span(
            *(min(one.lo, other.lo), max(one.hi, other.hi), exact, above, origin, moved, start, drift), under=under
        )

    def common(self, a: Span, b: Span) -> tuple[Polynomial, ...]:
        """Return the upper bounds that hold of both."""
        held = [p for p in a.uppers() if self.at_most(b, p)]
        return simplest([*held, *(p for p in b.uppers() if p not in held and self.at_most(a, p))])

    def at_least(self, span: Span, limit: Polynomial) -> bool:
        """Return whether the value is proved not to be below the polynomial."""
        return any(self.bounds.lowest(known - limit) >= 0 for known in span.floors())

    def at_most(self, span: Span, limit: Polynomial) -> bool:
        """Return whether the value is proved not to exceed the polynomial."""
        return any(self.bounds.lowest(limit - known) >= 0 for known in span.limits())

    def joined(self, a: State | None, b: State | None) -> State | None:
        """Return what holds after either of two paths; a path that returned says nothing."""
        if a is None or b is None:
            return a or b
        names: dict[str, Any] = {}
        for name in a.names.keys() & b.names.keys():
            one, other = a.names[name], b.names[name]
            names[name] = one if isinstance(one, Cells) else self.join(one, other)
        return State(names, common_writes(a.written, b.written))

    def refined(self, span: Span) -> Span:
        """Narrow the interval by the polynomial bounds."""
        hi = min([span.hi, *map(self.bounds.highest, span.uppers())])
        lo = max([span.lo, *map(self.bounds.lowest, span.lowers())])
        if (lo, hi) == (span.lo, span.hi) or lo > hi:  # the latter on a path that is never taken
            return span
        return span.with_bounds(lo, hi, span.above, span.under)

    def learned(self, span: Span, facts: tuple[Fact, ...]) -> Span:
        """Narrow a value by what a comparison says about it, directly or about another one that it differs from."""
        if facts and span.view is not None and (view := self.learned(span.view, facts)).lo >= 0:
            return view
        for larger, smaller, far in facts:
            if span.origin == larger.origin:
                span = span.at_least(smaller, span.moved - larger.moved + far)
            if span.origin == smaller.origin:
                span = span.at_most(larger, smaller.moved - span.moved + far)
        return self.refined(span) if facts else span

    def note(self, at: Place, value: Value) -> None:
        if not isinstance(value, Flag):
            span = as_word(value)
            lo, hi = self.lines.get(at, (span.lo, span.hi))
            self.lines[at] = min(lo, span.lo), max(hi, span.hi)
