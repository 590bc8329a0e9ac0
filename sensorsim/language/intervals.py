"""Intervals: what the range check knows about a value, and the rule of each primitive for them.

A `Span` is an interval, and what an interval alone cannot say: that a value is a given polynomial in lengths and loop
counters, that it is at most or at least one, by how much it differs from another value (a pointer before and after the
size of its table was taken off), that it is at least another value, and how it was computed.

A rule takes the operands' spans and gives the result's; one written for a primitive of your own needs `lo` and `hi`
only: `lambda a: Span(0, a.hi)`.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

from sensorsim.language.polynomial import Polynomial, shift, useful_bounds

WORD = 1 << 32
NOTHING = Polynomial(())
_origins = itertools.count()


class Span:
    """All whole numbers from lo to hi.

    `exact` is the polynomial that the value is, `above` polynomials that it does not exceed, `under` polynomials that
    it is not below. Values of one `origin` differ by the difference of their `moved`. A value with a `start` is that of
    a name at the start of a loop's round, plus something in `drift`. `view` is the signed word that an unsigned word
    was read from. `over` are values that it is not below: their `origin` and `moved`. `made` is the rule and the
    operands that it comes of.
    """

    __slots__ = ("above", "drift", "exact", "hi", "lo", "made", "moved", "origin", "over", "start", "under", "view")

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
        under: tuple[Polynomial, ...] = (),
    ) -> None:
        self.lo, self.hi, self.exact, self.above, self.under = lo, hi, exact, above, under
        self.origin = next(_origins) if origin is None else origin
        self.moved, self.start, self.drift, self.view = moved, start, drift, view
        self.over: tuple[tuple[int, Polynomial], ...] = ()
        self.made: tuple[Rule, tuple[Span, ...]] | None = None

    def __str__(self) -> str:
        return str(self.lo) if self.lo == self.hi else f"{self.lo} … {self.hi}"

    def uppers(self) -> tuple[Polynomial, ...]:
        """Return the polynomials that the value does not exceed, without the number `hi`."""
        return (self.exact, *self.above) if self.exact is not None else self.above

    def limits(self) -> tuple[Polynomial, ...]:
        """Return the upper bounds with `hi`."""
        return (*self.uppers(), Polynomial.constant(self.hi))

    def lowers(self) -> tuple[Polynomial, ...]:
        """Return the polynomials that the value is not below, without the number `lo`."""
        return (self.exact, *self.under) if self.exact is not None else self.under

    def floors(self) -> tuple[Polynomial, ...]:
        """Return the lower bounds with `lo`."""
        return (*self.lowers(), Polynomial.constant(self.lo))

    def known(self) -> tuple[object, ...]:
        """Return what two spans must share to say the same."""
        return self.lo, self.hi, self.exact, self.above, self.under

    def restarted(self) -> "Span":
        """Return the same value, marked to measure how far a round of a loop moves it."""
        again = self.with_bounds(self.lo, self.hi, self.above, self.under)
        again.start, again.drift = next(_origins), (0, 0)
        return again

    def narrowed(self, lo: int, hi: int) -> "Span":
        """Return the same value, known to be between these two as well."""
        return self.with_bounds(max(self.lo, lo), min(self.hi, hi), self.above, self.under)

    def with_bounds(self, lo: int, hi: int, above: tuple[Polynomial, ...], under: tuple[Polynomial, ...]) -> "Span":
        """Return the same value with other bounds."""
        again = Span(lo, hi, self.exact, above, self.origin, self.moved, self.start, self.drift, self.view, under)
        again.over, again.made = self.over, self.made
        return again

    def is_value(self, other: "Span") -> bool:
        """Return whether both are one value."""
        return self.origin == other.origin and self.moved == other.moved

    def at_least(self, other: "Span", far: Polynomial) -> "Span":
        """Return the same value, known to be at least `other` plus `far`."""
        under = useful_bounds((*(bound + far for bound in other.floors()), *self.under))
        apart = far.number
        again = self.with_bounds(
            max(self.lo, other.lo + apart) if isinstance(apart, int) else self.lo, self.hi, self.above, under
        )
        again.over = (*self.over, (other.origin, other.moved + far))
        return again

    def at_most(self, other: "Span", far: Polynomial) -> "Span":
        """Return the same value, known to be at most `other` minus `far`."""
        above = useful_bounds((*(bound - far for bound in other.limits()), *self.above))
        apart = far.number
        hi = min(self.hi, other.hi - apart) if isinstance(apart, int) else self.hi
        return self.with_bounds(self.lo, hi, above, self.under)


Fact = tuple[Span, Span, int]  # the first is at least the second plus the number


class Flag(NamedTuple):
    """The result of a comparison: True, False, or None when it depends on the data; what it says either way."""

    holds: bool | None
    true: tuple[Fact, ...] = ()
    false: tuple[Fact, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flag) and self.holds == other.holds

    def __hash__(self) -> int:
        return hash(self.holds)


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
    """Return the span of one number."""
    return Span(value, value, Polynomial.constant(value))


def as_word(value: Value) -> Span:
    """Return a mask or a masked value as a plain word."""
    if isinstance(value, Masked):
        hi = value.value.hi if value.value.lo >= 0 else WORD - 1
        return Span(0, hi, above=value.value.uppers() if value.value.lo >= 0 else ())
    return value if isinstance(value, Span) else Span(0, WORD - 1)


def corners(operation: Callable[[int, int], int]) -> Rule:
    """Return the rule of an operation that is monotone in each operand: its extremes are at the corners."""

    def rule(a: Span, b: Span) -> Span:
        results = [operation(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        return Span(min(results), max(results))

    return rule


def _ends(span: Span, limits: tuple[Polynomial, ...]) -> tuple[Polynomial, ...]:
    """Return the limits, without the number if the exact polynomial is known."""
    return limits if span.exact is None else limits[:-1]


def add(a: Span, b: Span) -> Span:
    """a + b."""
    if b.exact is None and a.exact is not None and a.exact.number is not None:
        a, b = b, a
    exact = a.exact + b.exact if a.exact is not None and b.exact is not None else None
    above: tuple[Polynomial, ...] = ()
    under: tuple[Polynomial, ...] = ()
    if a.above or b.above or (exact is None and (a.exact or b.exact)):
        above = useful_bounds(p + q for p in _ends(a, a.limits()) for q in _ends(b, b.limits()))
    if a.under or b.under or (exact is None and (a.exact or b.exact)):
        under = useful_bounds(p + q for p in _ends(a, a.floors()) for q in _ends(b, b.floors()))
    origin, moved = (a.origin, a.moved + b.exact) if b.exact is not None else (None, NOTHING)
    if a.start is None and b.start is not None:
        a, b = b, a
    drift = a.drift[0] + b.lo, a.drift[1] + b.hi
    return Span(a.lo + b.lo, a.hi + b.hi, exact, above, origin, moved, a.start, drift, under=under)


def negated(a: Span) -> Span:
    """-a."""
    above, under = tuple(-bound for bound in a.under), tuple(-bound for bound in a.above)
    return Span(-a.hi, -a.lo, -a.exact if a.exact is not None else None, above, under=under)


def sub(a: Span, b: Span) -> Span:
    """a - b."""
    made = add(a, negated(b))
    for one, other, sign in ((a, b, 1), (b, a, -1)):
        for origin, moved in one.over:
            apart = (moved - other.moved).number if origin == other.origin else None
            if isinstance(apart, int):  # one - other is at least that
                lo, hi = (max(made.lo, apart), made.hi) if sign > 0 else (made.lo, min(made.hi, -apart))
                made.lo, made.hi = (lo, hi) if lo <= hi else (made.lo, made.hi)  # else the path is never taken
    return made


def mul(a: Span, b: Span) -> Span:
    """a · b."""
    span = corners(lambda x, y: x * y)(a, b)
    assert isinstance(span, Span)
    exact = a.exact * b.exact if a.exact is not None and b.exact is not None else None
    above: tuple[Polynomial, ...] = ()
    for one, factor in ((a, b.exact), (b, a.exact)):
        if exact is None and factor is not None and isinstance(factor.number, int):
            return scaled(one, factor.number, span)
    if exact is None and a.lo >= 0 and b.lo >= 0 and (a.uppers() or b.uppers()):
        above = useful_bounds(p * q for p in a.limits() for q in b.limits())
    return Span(span.lo, span.hi, exact, above)


def scaled(a: Span, factor: int, span: Span) -> Span:
    """a times a number, which is proved to be in `span`."""
    above, under = (useful_bounds(bound * factor for bound in bounds) for bounds in (a.uppers(), a.lowers()))
    if factor < 0:
        above, under = under, above
    return Span(span.lo, span.hi, None, above, under=under)


def multiply_add(total: Span, a: Span, b: Span) -> Span:
    """total + a · b."""
    return add(total, mul(a, b))


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
    if exact is None and k.lo == k.hi:
        return scaled(a, 1 << _count(k).lo, span)
    return Span(span.lo, span.hi, exact)


def right(a: Span, k: Span) -> Span:
    """a >> k rounded down, for counts that are proved to be in 0 … 31."""
    span = corners(lambda x, y: x >> y)(a, _count(k))
    assert isinstance(span, Span)
    if k.exact is None:
        return Span(span.lo, span.hi)
    if a.exact is not None:
        return Span(span.lo, span.hi, shift(">>", a.exact, k.exact))
    above = useful_bounds(shift(">>", p, k.exact) for p in a.limits())
    under = useful_bounds(shift(">>", p, k.exact) for p in a.floors()) if k.exact.number is not None else ()
    return Span(span.lo, span.hi, above=above, under=under)


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
    return Span(0, min(one.hi, other.hi), above=useful_bounds((*one.uppers(), *other.uppers())))


def where(masked: Masked) -> Span:
    """Return a masked value where its mask is set, narrowed by what the mask says about it."""
    value, test = masked.value, masked.mask.test
    if value.origin != test.origin:
        return value
    distance = value.moved - test.moved
    far = distance.number
    if masked.mask.complemented:  # test >= 0
        return value if not isinstance(far, int) else value.narrowed(far, value.hi)
    above = useful_bounds((distance - 1, *value.above))
    hi = value.hi if not isinstance(far, int) else min(value.hi, far - 1)
    return value.with_bounds(value.lo, hi, above, value.under)


def _all_ones(a: Span, b: Span) -> int:
    return (1 << max(a.hi.bit_length(), b.hi.bit_length())) - 1


def or_(a: Value, b: Value) -> Span:
    """a | b. The range check itself joins two values under complementary masks."""
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
    return Flag(True if a.lo >= b.hi else False if a.hi < b.lo else None, ((a, b, 0),), ((b, a, 1),))


def equal(a: Span, b: Span) -> Flag:
    """a == b."""
    apart = a.hi < b.lo or b.hi < a.lo
    return Flag(False if apart else True if a.lo == a.hi == b.lo == b.hi else None, ((a, b, 0), (b, a, 0)))


def _inverse(rule: Callable[[Span, Span], Flag]) -> Callable[[Span, Span], Flag]:
    def inverse(a: Span, b: Span) -> Flag:
        found = rule(a, b)
        return Flag(None if found.holds is None else not found.holds, found.false, found.true)

    return inverse


less, unequal = _inverse(at_least), _inverse(equal)


def smaller(a: Span, b: Span) -> Span:
    """min(a, b)."""
    return Span(min(a.lo, b.lo), min(a.hi, b.hi), above=useful_bounds((*a.uppers(), *b.uppers())))


def larger(a: Span, b: Span) -> Span:
    """max(a, b)."""
    return Span(max(a.lo, b.lo), max(a.hi, b.hi), under=useful_bounds((*a.lowers(), *b.lowers())))


def signed(a: Value) -> Span:
    """Read a word as signed."""
    span = as_word(a)
    half = WORD >> 1
    if span.view is not None:
        return span.view
    if span.hi < half:
        return span
    return Span(span.lo - WORD, span.hi - WORD) if span.lo >= half else Span(-half, half - 1)


def unsigned(a: Value) -> Span:
    """Read a word as unsigned; the signed value is remembered."""
    span = as_word(a)
    if span.lo >= 0:
        return span
    if span.hi < 0:
        return Span(span.lo + WORD, span.hi + WORD, view=span)
    return Span(0, WORD - 1, view=span)


def same(a: Span) -> Span:
    """Return the value itself."""
    return a


def saturated(a: Span, lo: int, hi: int) -> Span:
    """Clamp a value to lo … hi."""
    if lo <= a.lo and a.hi <= hi:
        return a
    above, under = a.uppers() if a.lo >= lo else (), a.lowers() if a.hi <= hi else ()
    return Span(min(max(a.lo, lo), hi), max(min(a.hi, hi), lo), above=above, under=under)


def _saturating(rule: Callable[[Span, Span], Span], lo: int, hi: int) -> Callable[[Span, Span], Span]:
    return lambda a, b: saturated(rule(a, b), lo, hi)


SIGNED, UNSIGNED = (-(WORD >> 1), (WORD >> 1) - 1), (0, WORD - 1)
saturating_add, saturating_sub = _saturating(add, *SIGNED), _saturating(sub, *SIGNED)
saturating_addu, saturating_subu = _saturating(add, *UNSIGNED), _saturating(sub, *UNSIGNED)
narrow = _saturating(right, *SIGNED)


def _wrapped(exact: Span) -> Span:
    """Reduce a number modulo 2^32; if it fits a signed word, that is remembered."""
    if exact.lo >= 0:
        return exact if exact.hi < WORD else Span(0, WORD - 1)
    return unsigned(exact) if exact.lo >= -(WORD >> 1) and exact.hi < WORD >> 1 else Span(0, WORD - 1)


def wrapping_add(a: Span, b: Span) -> Span:
    """a + b modulo 2^32."""
    return _wrapped(add(a, b))


def wrapping_sub(a: Span, b: Span) -> Span:
    """a - b modulo 2^32."""
    return _wrapped(sub(a, b))


def any_word(*_: Value) -> Span:
    """Return any word: nothing is known about the result."""
    return Span(0, WORD - 1)


def either(flag: Flag, a: Value, b: Value) -> Span:
    """a where the flag holds, else b."""
    one, other = as_word(a), as_word(b)
    if flag.holds is not None:
        return one if flag.holds else other
    return Span(min(one.lo, other.lo), max(one.hi, other.hi))
