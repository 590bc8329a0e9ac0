"""What one proof has seen so far, and how what is known of two ways is put together."""

from typing import Any

from sensorsim.language import ir
from sensorsim.language.intervals import Fact, Flag, Span, Value, as_word
from sensorsim.language.ir import Place
from sensorsim.language.polynomial import Polynomial
from sensorsim.language.polynomial_bounds import Bounds, simplest
from sensorsim.language.ranges.states import Cells, State
from sensorsim.language.types import Array, Below, Kind


class Check:
    """One proof: the lengths in sight and what was seen so far."""

    def __init__(self) -> None:
        self.bounds = Bounds()
        self.lines: dict[Place, tuple[int, int]] = {}
        self.operands: dict[ir.Node, tuple[tuple[int, int], ...]] = {}
        self.fresh = 0
        self.lenient = False  # in the first round of a loop: what its other rounds have written is not known yet

    def symbol(self, name: str) -> Span:
        """A length or counter: itself, and the numbers between which it lies."""
        me = Polynomial.variable(name)
        return Span(self.bounds.lowest(me), self.bounds.highest(me), me)

    def declared(self, kind: Kind, names: dict[str, Any]) -> Span:
        """The whole range of a format."""
        if isinstance(kind, Below):
            limit = names[kind.limit]
            return Span(0, limit.hi - 1, above=() if limit.exact is None else (limit.exact - 1,))
        assert not isinstance(kind, Array)
        return Span(kind.lo, kind.hi)

    def join(self, a: Value, b: Value) -> Value:
        """What holds of either."""
        if a is b:
            return a
        if isinstance(a, Flag) and isinstance(b, Flag):
            return Flag(a.holds if a == b else None)
        one, other = as_word(a), as_word(b)
        exact = one.exact if one.exact == other.exact else None
        above = self.common(one, other) if exact is None or (one.above and other.above) else ()
        under = self.common_under(one, other) if exact is None or (one.under and other.under) else ()
        drift = min(one.drift[0], other.drift[0]), max(one.drift[1], other.drift[1])
        start = one.start if one.start == other.start else None
        lo, hi = min(one.lo, other.lo), max(one.hi, other.hi)
        if one.origin == other.origin and one.moved == other.moved:
            return Span(lo, hi, exact, above, one.origin, one.moved, start, drift, under=under)
        return Span(lo, hi, exact, above, start=start, drift=drift, under=under)

    def common(self, a: Span, b: Span) -> tuple[Polynomial, ...]:
        """The upper bounds that hold of both."""
        held = [p for p in a.uppers() if self.at_most(b, p)]
        held += [p for p in b.uppers() if p not in held and self.at_most(a, p)]
        return simplest(held)

    def common_under(self, a: Span, b: Span) -> tuple[Polynomial, ...]:
        """The lower bounds that hold of both."""
        held = [p for p in a.lowers() if self.at_least(b, p)]
        held += [p for p in b.lowers() if p not in held and self.at_least(a, p)]
        return simplest(held)

    def at_least(self, span: Span, limit: Polynomial) -> bool:
        """Whether the value is proved not to be below the polynomial."""
        return any(self.bounds.lowest(known - limit) >= 0 for known in span.floors())

    def at_most(self, span: Span, limit: Polynomial) -> bool:
        """Whether the value is proved not to exceed the polynomial."""
        return any(self.bounds.lowest(limit - known) >= 0 for known in span.limits())

    def joined(self, a: State | None, b: State | None) -> State | None:
        """What holds after either of two ways; a way that returned says nothing."""
        if a is None or b is None:
            return a or b
        names: dict[str, Any] = {}
        for name in a.names.keys() & b.names.keys():
            one, other = a.names[name], b.names[name]
            names[name] = one if isinstance(one, Cells) else self.join(one, other)
        return State(names, {key: a.written[key].both(b.written[key]) for key in a.written})

    def refined(self, span: Span) -> Span:
        """The interval narrowed by what the polynomials say."""
        hi, lo = span.hi, span.lo
        for bound in span.uppers():
            hi = min(hi, self.bounds.highest(bound))
        for bound in span.lowers():
            lo = max(lo, self.bounds.lowest(bound))
        if (lo, hi) == (span.lo, span.hi) or lo > hi:  # the latter on a path that is never taken
            return span
        return span.with_bounds(lo, hi, span.above, span.under)

    def learned(self, span: Span, facts: tuple[Fact, ...]) -> Span:
        """The value with what a comparison says about it, directly or about another one that it differs from."""
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
