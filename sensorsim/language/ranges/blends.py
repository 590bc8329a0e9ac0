"""Interpolation: a weighted mean of two values lies between them, which intervals of the products do not show."""

from sensorsim.language import intervals
from sensorsim.language.intervals import Span


def between(one: Span, other: Span) -> Span | None:
    """Return the span of a sum that interpolates between two values, None where it is no such sum.

    a + ((b - a) · f >> k), with a rounding term below 2^k or a division in place of the shift: between a and b for a
    weight f of 0 … 2^k. a · (c - f) + b · f: between c · a and c · b for f of 0 … c.
    """
    for start, step in ((one, other), (other, one)):
        end = _end(start, step)
        if end is not None and _halved(step):  # (a + b) >> 1, of which more is known
            return intervals.right(intervals.add(start, end), intervals.number(1))
        if end is not None:
            return Span(min(start.lo, end.lo), max(start.hi, end.hi))
    for left, right in ((one, other), (other, one)):
        weighed = _weighed(left, right)
        if weighed is not None:
            return weighed
    return None


def _end(start: Span, step: Span) -> Span | None:
    """The b where `start` is a and `step` is (b - a) · f >> k, or the same by a division."""
    match step.made:
        case (intervals.right, (product, count)) if count.lo == count.hi and 0 <= count.lo < 64:
            unit = 1 << count.lo
            if product.made is not None and product.made[0] is intervals.add:
                product, rounding = product.made[1]
                if not 0 <= rounding.lo <= rounding.hi < unit:
                    return None
        case (intervals.truncated, (product, divisor)) if divisor.lo == divisor.hi >= 1:
            unit = divisor.lo
        case _:
            return None
    if unit == 2 and product.made is not None and product.made[0] is intervals.sub:
        end, begin = product.made[1]
        return end if begin.is_value(start) else None
    for difference, weight in _factors(product):
        match difference.made:
            case (intervals.sub, (end, begin)) if begin.is_value(start) and weight.lo >= 0 and weight.hi <= unit:
                return end
    return None


def _halved(step: Span) -> bool:
    """Whether the step is (b - a) >> 1 and no product."""
    match step.made:
        case (intervals.right, (difference, _)):
            return difference.made is not None and difference.made[0] is intervals.sub
    return False


def _weighed(left: Span, right: Span) -> Span | None:
    """The sum a · (c - f) + b · f."""
    for a, rest in _factors(left):
        match rest.made:
            case (intervals.sub, (whole, taken)) if whole.lo == whole.hi and taken.lo >= 0 and taken.hi <= whole.lo:
                for b, weight in _factors(right):
                    if weight.is_value(taken):
                        return Span(min(a.lo, b.lo) * whole.lo, max(a.hi, b.hi) * whole.lo)
    return None


def _factors(product: Span) -> tuple[tuple[Span, Span], ...]:
    """Both orders of the two factors of a product."""
    match product.made:
        case (intervals.mul, (a, b)):
            return (a, b), (b, a)
    return ()
