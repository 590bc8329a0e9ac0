"""Intervals: what the range check knows of a value, and what each primitive makes of it.

A `Span` is an interval, and three things an interval alone cannot say: that a value is a given polynomial in lengths
and loop counters, that it is at most one, and by how much it differs from another value (a pointer before and after the
size of its table was taken off).

A rule takes the operands' spans and gives the result's; one written for a primitive of your own needs `lo` and `hi`
only: `lambda a: Span(0, a.hi)`.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from sensorsim.language.polynomial import Polynomial, shift

WORD = 1 << 32
NOTHING = Polynomial(())
MOST_BOUNDS = 3  # symbolic upper bounds that are kept of a value
_origins = itertools.count()


class Span:
    """All whole numbers from lo to hi.

    `exact` is the polynomial that the value is, `above` polynomials that it does not exceed. Values of one `origin`
    differ by the difference of their `moved`. A value with a `start` is that of a name at the start of a loop's round,
    plus something in `drift`. `view` is the signed word that an unsigned word was read from.
    """

    __slots__ = ("above", "drift", "exact", "hi", "lo", "moved", "origin", "start", "view")

    def __init__(
        self,
        lo: int,
        hi: int,
        exact: Polynomial | None = None,
        above: tuple[Polynomial, ...] = (),
        origin: int | None = None,
        moved: Polynomial = NOTHING,
        start: int | None = None,
        drift: tuple[int, int] = (0, 0),
        view: "Span | None" = None,
    ) -> None:
        self.lo, self.hi, self.exact, self.above = lo, hi, exact, above
        self.origin = next(_origins) if origin is None else origin
        self.moved, self.start, self.drift, self.view = moved, start, drift, view

    def __str__(self) -> str:
        return str(self.lo) if self.lo == self.hi else f"{self.lo} … {self.hi}"

    def uppers(self) -> tuple[Polynomial, ...]:
        """Polynomials that the value does not exceed; a plain number is not among them, `hi` says that."""
        return (self.exact, *self.above) if self.exact is not None else self.above

    def limits(self) -> tuple[Polynomial, ...]:
        """The same with `hi`."""
        return (*self.uppers(), Polynomial.constant(self.hi))

    def known(self) -> tuple[object, ...]:
        """All that two spans must share to say the same."""
        return self.lo, self.hi, self.exact, self.above

    def restarted(self) -> "Span":
        """The same value, marked to see how far a round of a loop moves it."""
        return Span(self.lo, self.hi, self.exact, self.above, self.origin, self.moved, next(_origins), view=self.view)

    def narrowed(self, lo: int, hi: int) -> "Span":
        """The same value, known to lie between these two as well."""
        return self.with_bounds(max(self.lo, lo), min(self.hi, hi), self.above)

    def with_bounds(self, lo: int, hi: int, above: tuple[Polynomial, ...]) -> "Span":
        """The same value with other bounds."""
        return Span(lo, hi, self.exact, above, self.origin, self.moved, self.start, self.drift, self.view)


class Flag(NamedTuple):
    """The result of a comparison: True, False, or None when it depends on the data."""

    holds: bool | None


class Mask(NamedTuple):
    """All ones where `test` is negative (or, complemented, where it is not), else zero."""

    test: Span
    complemented: bool = False


class Masked(NamedTuple):
    """A value where its mask is set, else zero."""

    value: Span
    mask: Mask


Value = Span | Flag | Mask | Masked
Rule = Callable[..., Value]


def number(value: int) -> Span:
    """Exactly this number."""
    return Span(value, value, Polynomial.constant(value))


def as_word(value: Value) -> Span:
    """What is left of a mask or a masked value where nobody asks for the mask: some word."""
    if isinstance(value, Masked):
        hi = value.value.hi if value.value.lo >= 0 else WORD - 1
        return Span(0, hi, above=value.value.uppers() if value.value.lo >= 0 else ())
    return value if isinstance(value, Span) else Span(0, WORD - 1)


def corners(operation: Callable[[int, int], int]) -> Rule:
    """The rule of an operation that is monotone in each operand: its extremes are at the corners."""

    def rule(a: Span, b: Span) -> Span:
        results = [operation(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        return Span(min(results), max(results))

    return rule


def _bounds(found: Iterable[Polynomial]) -> tuple[Polynomial, ...]:
    kept = dict.fromkeys(bound for bound in found if bound.number is None)
    return tuple(kept)[:MOST_BOUNDS]


def add(a: Span, b: Span) -> Span:
    """a + b."""
    if b.exact is None and a.exact is not None and a.exact.number is not None:
        a, b = b, a
    exact = a.exact + b.exact if a.exact is not None and b.exact is not None else None
    above: tuple[Polynomial, ...] = ()
    if exact is None and (a.above or b.above or a.exact or b.exact):
        above = _bounds(p + q for p in a.limits() for q in b.limits())
    origin, moved = (a.origin, a.moved + b.exact) if b.exact is not None else (None, NOTHING)
    if a.start is None and b.start is not None:
        a, b = b, a
    drift = a.drift[0] + b.lo, a.drift[1] + b.hi
    return Span(a.lo + b.lo, a.hi + b.hi, exact, above, origin, moved, a.start, drift)


def negated(a: Span) -> Span:
    """-a."""
    return Span(-a.hi, -a.lo, -a.exact if a.exact is not None else None)


def sub(a: Span, b: Span) -> Span:
    """a - b."""
    return add(a, negated(b))


def mul(a: Span, b: Span) -> Span:
    """a · b."""
    span = corners(lambda x, y: x * y)(a, b)
    assert isinstance(span, Span)
    exact = a.exact * b.exact if a.exact is not None and b.exact is not None else None
    above: tuple[Polynomial, ...] = ()
    if exact is None and a.lo >= 0 and b.lo >= 0 and (a.uppers() or b.uppers()):
        above = _bounds(p * q for p in a.limits() for q in b.limits())
    return Span(span.lo, span.hi, exact, above)


def square(a: Span) -> Span:
    """a · a."""
    ends = a.lo * a.lo, a.hi * a.hi
    exact = a.exact * a.exact if a.exact is not None else None
    return Span(0 if a.lo <= 0 <= a.hi else min(ends), max(ends), exact)


def left(a: Span, k: Span) -> Span:
    """a << k, for counts that are proved to be in 0 … 31."""
    span = corners(lambda x, y: x << y)(a, _count(k))
    assert isinstance(span, Span)
    exact = shift("<<", a.exact, k.exact) if a.exact is not None and k.exact is not None else None
    return Span(span.lo, span.hi, exact)


def right(a: Span, k: Span) -> Span:
    """a >> k rounded down, for counts that are proved to be in 0 … 31."""
    span = corners(lambda x, y: x >> y)(a, _count(k))
    assert isinstance(span, Span)
    if k.exact is None:
        return Span(span.lo, span.hi)
    if a.exact is not None:
        return Span(span.lo, span.hi, shift(">>", a.exact, k.exact))
    return Span(span.lo, span.hi, above=_bounds(shift(">>", p, k.exact) for p in a.limits()))


def _count(k: Span) -> Span:
    return Span(min(max(k.lo, 0), 63), min(max(k.hi, 0), 63))  # what is outside is refused by `needs`


def truncated(a: Span, b: Span) -> Span:
    """a / b rounded toward zero, b never 0."""

    def quotient(x: int, y: int) -> int:
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)

    # The quotient is monotone on each side of b = 0 only, and b = -1 and b = 1 are its largest there.
    sides = [(b.lo, min(b.hi, -1)), (max(b.lo, 1), b.hi)]
    ends = [y for lo, hi in sides if lo <= hi for y in (lo, hi)]
    results = [quotient(x, y) for x in (a.lo, a.hi) for y in ends]
    if a.lo <= 0 <= a.hi:
        results.append(0)
    return Span(min(results), max(results), above=a.uppers() if a.lo >= 0 and b.lo >= 1 else ())


def and_(a: Value, b: Value) -> Value:
    """a & b; a value under a mask is remembered as such."""
    for value, mask in ((a, b), (b, a)):
        if isinstance(mask, Mask) and isinstance(value, Span):
            return Masked(value.view or value, mask)
    one, other = as_word(a), as_word(b)
    return Span(0, min(one.hi, other.hi), above=_bounds((*one.uppers(), *other.uppers())))


def where(masked: Masked) -> Span:
    """A masked value where its mask is set, narrowed by what that says about it."""
    value, test = masked.value, masked.mask.test
    if value.origin != test.origin:
        return value
    distance = value.moved - test.moved
    far = distance.number
    if masked.mask.complemented:  # test >= 0
        return value if not isinstance(far, int) else value.narrowed(far, value.hi)
    above = _bounds((distance - 1, *value.above))
    hi = value.hi if not isinstance(far, int) else min(value.hi, far - 1)
    return value.with_bounds(value.lo, hi, above)


def _all_ones(a: Span, b: Span) -> int:
    return (1 << max(a.hi.bit_length(), b.hi.bit_length())) - 1


def or_(a: Value, b: Value) -> Span:
    """a | b. Two values under complementary masks do not come here: the range check joins them."""
    one, other = as_word(a), as_word(b)
    return Span(max(one.lo, other.lo), _all_ones(one, other))


def xor(a: Value, b: Value) -> Span:
    """a ^ b."""
    return Span(0, _all_ones(as_word(a), as_word(b)))


def not_(a: Value) -> Value:
    """~a."""
    if isinstance(a, Mask):
        return Mask(a.test, not a.complemented)
    word = as_word(a)
    return Span(WORD - 1 - word.hi, WORD - 1 - word.lo)


def at_least(a: Span, b: Span) -> Flag:
    """a >= b."""
    return Flag(True if a.lo >= b.hi else False if a.hi < b.lo else None)


def smaller(a: Span, b: Span) -> Span:
    """min(a, b)."""
    return Span(min(a.lo, b.lo), min(a.hi, b.hi), above=_bounds((*a.uppers(), *b.uppers())))


def larger(a: Span, b: Span) -> Span:
    """max(a, b)."""
    return Span(max(a.lo, b.lo), max(a.hi, b.hi))


def signed(a: Value) -> Span:
    """A word read as signed."""
    span = as_word(a)
    half = WORD >> 1
    if span.view is not None:
        return span.view
    if span.hi < half:
        return span
    return Span(span.lo - WORD, span.hi - WORD) if span.lo >= half else Span(-half, half - 1)


def unsigned(a: Value) -> Span:
    """A word read as unsigned; what it was before is remembered."""
    span = as_word(a)
    if span.lo >= 0:
        return span
    if span.hi < 0:
        return Span(span.lo + WORD, span.hi + WORD, view=span)
    return Span(0, WORD - 1, view=span)


def any_word(*_: Value) -> Span:
    """Nothing is known of the result."""
    return Span(0, WORD - 1)


def either(flag: Flag, a: Value, b: Value) -> Span:
    """a where the flag holds, else b."""
    one, other = as_word(a), as_word(b)
    if flag.holds is not None:
        return one if flag.holds else other
    return Span(min(one.lo, other.lo), max(one.hi, other.hi))
