"""Interval rules that look further than one operation: masks, quotients, remainders and interpolation."""

from collections.abc import Callable, Iterable
from typing import Any

from sensorsim.language import intervals, ir
from sensorsim.language.intervals import Flag, Masked, Rule, Span, Value, as_word
from sensorsim.language.ranges.facts import Check


def special_rule(
    check: Check,
    rule: Rule | None,
    node: ir.Apply,
    values: list[Value],
    words: list[Any],
    value: Callable[[ir.Expression], Span],
) -> Value | None:
    """Return a closer result than a primitive's own rule gives, where the operands' origin allows one."""
    match values:
        case [Masked() as a, Masked() as b] if rule is intervals.or_:
            if a.mask.test is b.mask.test and a.mask.complemented != b.mask.complemented:
                # exactly one of the two is kept: a value where the test is negative, the other where it is not
                one, other = (check.refined(intervals.where(part)) for part in (a, b))
                return intervals.unsigned(check.join(one, other))
    if rule is intervals.mul and ir.same(*node.operands):
        return intervals.square(words[0])
    if rule is intervals.mul and (whole := _rounded_down(node)) is not None:
        most = value(whole)
        if most.lo >= 0 and words[1].lo >= 1:
            return Span(0, most.hi, above=most.uppers())
    if rule is intervals.either and isinstance(values[0], Flag) and values[0].holds is None:
        one, other = (check.learned(words[1], values[0].true), check.learned(words[2], values[0].false))
        return as_word(check.join(*(new if new.lo <= new.hi else old
                                         for new, old in ((one, words[1]), (other, words[2])))))  # fmt: skip
    if rule is intervals.larger:
        return _larger(check, *words)
    if rule is intervals.truncated:
        ratio = _quotient(check, *words)
        ratio.made = rule, tuple(words)
        return ratio
    if rule in (intervals.equal, intervals.unequal) and intervals.equal(*words).holds is None:
        same = intervals.equal(*words).true  # where one is at most the other, it is below it where they differ
        differ = tuple((large, small, 1) for large, small in (words, words[::-1])
                       if any(check.at_most(small, end) for end in large.floors()))  # fmt: skip
        return Flag(None, same, differ) if rule is intervals.equal else Flag(None, differ, same)
    if rule is intervals.multiply_add:
        total, *factors = words
        product = intervals.square(factors[0]) if factors[0].is_value(factors[1]) else intervals.mul(*factors)
        product.made = intervals.mul, tuple(factors)
        whole_sum = intervals.add(total, product)
        whole_sum.made = intervals.add, (total, product)
        return between(total, product) or whole_sum
    if rule is intervals.add and (blend := between(*words)) is not None:
        return blend
    if rule is intervals.sub and (divisor := _remainder(node)) is not None:
        by = value(divisor)
        if words[0].lo >= 0 and by.lo >= 1:
            return Span(0, min(words[0].hi, by.hi - 1), above=tuple(bound - 1 for bound in by.uppers()))
    match node.operands:  # a - min(a, …), which is not negative
        case (whole, ir.Apply(operands=parts) as less) if rule is intervals.sub and words[0].lo >= 0:
            if less.primitive.interval is intervals.smaller and any(ir.same(whole, part) for part in parts):
                return Span(0, words[0].hi, above=words[0].uppers())
    return None


def _larger(check: Check, a: Span, b: Span) -> Span:
    """Return max(a, b); below what both are below."""
    top = intervals.larger(a, b)
    return top.with_bounds(top.lo, top.hi, check.common(a, b), top.under)


def _quotient(check: Check, a: Span, b: Span) -> Span:
    """Return a / b; where a is within multiples of b, as a sum of b terms is, within their factors."""
    made, bounds = intervals.truncated(a, b), check.bounds
    if b.lo < 1 or b.exact is None or b.exact.number is not None:
        return made
    key, per = max(b.exact.terms, key=lambda term: len(term[0]))
    for ends, sign in ((a.uppers(), 1), (a.lowers(), -1)):
        for end in ends:
            times = next((int(value) for own, value in end.terms if own == key), 0)
            factor = -(-sign * times // int(per))  # sign · end is at most factor · b
            if bounds.lowest(b.exact * factor - end * sign) >= 0:
                made.lo, made.hi = (made.lo, min(made.hi, factor)) if sign > 0 else (max(made.lo, -factor), made.hi)
    return made


def between(one: Span, other: Span) -> Span | None:
    """Return the span of a sum that interpolates between two values, None where it is no such sum.

    a + ((b - a) · f >> k), with a rounding term below 2^k or a division in place of the shift: between a and b for a
    weight f of 0 … 2^k. a · (c - f) + b · f: between c · a and c · b for f of 0 … c. Intervals of the products do not
    show either.
    """
    for start, step in ((one, other), (other, one)):
        end = _end(start, step)
        match step.made:
            case (intervals.right, (Span(made=(intervals.sub, _)), _)) if end is not None:
                # (a + b) >> 1, of which more is known
                return intervals.right(intervals.add(start, end), intervals.number(1))
        if end is not None:
            return Span(min(start.lo, end.lo), max(start.hi, end.hi))
    for left, right in ((one, other), (other, one)):
        for a, rest in _factors(left):
            match rest.made:
                case (intervals.sub, (whole, taken)) if whole.lo == whole.hi and taken.lo >= 0 and taken.hi <= whole.lo:
                    for b, weight in _factors(right):
                        if weight.is_value(taken):
                            return Span(min(a.lo, b.lo) * whole.lo, max(a.hi, b.hi) * whole.lo)
    return None


def _end(start: Span, step: Span) -> Span | None:
    """Return the b where `start` is a and `step` is (b - a) · f >> k, or the same by a division."""
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


def _factors(product: Span) -> Iterable[tuple[Span, Span]]:
    """Return both orders of the two factors of a product."""
    match product.made:
        case (intervals.mul, (a, b)):
            return (a, b), (b, a)
    return ()


def _rounded_down(node: ir.Expression) -> ir.Expression | None:
    """Return the a where the node is (a / b) · b."""
    match node:
        case ir.Apply(primitive=times, operands=(ir.Apply(primitive=by, operands=(a, b)), factor)):
            fits = times.interval is intervals.mul and by.interval is intervals.truncated
            return a if fits and ir.same(b, factor) else None
    return None


def _remainder(node: ir.Apply) -> ir.Expression | None:
    """Return the b where the node is a - (a / b) · b, what is left of a division."""
    whole, product = node.operands
    a = _rounded_down(product)
    return product.operands[1] if isinstance(product, ir.Apply) and a is not None and ir.same(whole, a) else None
