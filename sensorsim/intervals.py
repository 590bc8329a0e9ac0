"""Intervals, and what each primitive does to them."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

WORD = 1 << 32
_origins = itertools.count()


@dataclass(frozen=True)
class Span:
    """All whole numbers from lo to hi. Spans of one `origin` differ by exactly the difference of their `offset`s."""

    lo: int
    hi: int
    origin: int = field(default_factory=lambda: next(_origins), compare=False)
    offset: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.lo} … {self.hi}"


@dataclass(frozen=True)
class Flag:
    """The result of a comparison: True, False, or None when it depends on the data."""

    holds: bool | None


@dataclass(frozen=True)
class Mask:
    """All ones where `test` is negative (or, complemented, where it is not), else zero."""

    test: Span
    complemented: bool = False


@dataclass(frozen=True)
class Masked:
    """A value where its mask is set, else zero."""

    value: Span
    mask: Mask


Value = Span | Flag | Mask | Masked | None


def join(*values: Span) -> Span:
    """The smallest span that holds all of these."""
    if all(span == values[0] and span.origin == values[0].origin for span in values):
        return values[0]
    return Span(min(span.lo for span in values), max(span.hi for span in values))


def join_environments(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """What holds after either of two ways; arrays are shared objects and need no joining."""
    joined = {**a, **b}
    for name in a.keys() & b.keys():
        if isinstance(a[name], Span):
            joined[name] = a[name] if a[name] == b[name] else join(a[name], b[name])
    return joined


def _corners(operation: Callable[[int, int], int]) -> Callable[[Span, Span], Span]:
    """The rule of an operation that is monotone in each operand: its extremes are at the corners."""

    def rule(a: Span, b: Span) -> Span:
        results = [operation(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
        return Span(min(results), max(results))

    return rule


def _add(a: Span, b: Span) -> Span:
    if b.lo == b.hi:
        return Span(a.lo + b.lo, a.hi + b.lo, a.origin, a.offset + b.lo)
    return Span(a.lo + b.lo, a.hi + b.hi)


def _sub(a: Span, b: Span) -> Span:
    return Span(a.lo - b.hi, a.hi - b.lo)


def _square(a: Span) -> Span:
    most = max(a.lo * a.lo, a.hi * a.hi)
    return Span(0 if a.lo <= 0 <= a.hi else min(a.lo * a.lo, a.hi * a.hi), most)


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _and(a: Value, b: Value) -> Value:
    for value, mask in ((a, b), (b, a)):
        if isinstance(mask, Mask):
            assert isinstance(value, Span)
            return Masked(value, mask)
    assert isinstance(a, Span) and isinstance(b, Span)
    # Where one side can be negative (a word read as unsigned) only the other side's size says anything.
    return Span(0, min(x.hi if x.lo >= 0 else WORD - 1 for x in (a, b)))


def _or(a: Value, b: Value) -> Value:
    if isinstance(a, Masked) and isinstance(b, Masked):
        if a.mask.test is b.mask.test and a.mask.complemented != b.mask.complemented:
            return join(_where(a), _where(b))
        raise TypeError("two values are combined under masks that are not each other's complement")
    assert isinstance(a, Span) and isinstance(b, Span)
    return Span(max(a.lo, b.lo), _all_ones(a, b))


def _where(masked: Masked) -> Span:
    """A masked value, narrowed by what its mask says about it."""
    value, test = masked.value, masked.mask.test
    if value.origin != test.origin:
        return value
    distance = value.offset - test.offset
    if masked.mask.complemented:  # test >= 0
        return Span(max(value.lo, distance), value.hi)
    return Span(value.lo, min(value.hi, distance - 1))


def _all_ones(a: Span, b: Span) -> int:
    return int((1 << max(a.hi.bit_length(), b.hi.bit_length())) - 1)


def _not(a: Value) -> Value:
    if isinstance(a, Mask):
        return Mask(a.test, not a.complemented)
    assert isinstance(a, Span)
    return Span(WORD - 1 - a.hi, WORD - 1 - a.lo)


def _at_least(a: Span, b: Span) -> Flag:
    return Flag(True if a.lo >= b.hi else False if a.hi < b.lo else None)


def _select(flag: Flag, a: Span, b: Span) -> Any:
    return join(a, b) if flag.holds is None else a if flag.holds else b


def _smaller(a: Span, b: Span) -> Span:
    return Span(min(a.lo, b.lo), min(a.hi, b.hi))


def _larger(a: Span, b: Span) -> Span:
    return Span(max(a.lo, b.lo), max(a.hi, b.hi))


def _same_word(a: Span) -> Span:
    return a


def _any_word(*_: Span) -> Span:
    return Span(0, WORD - 1)


# Primitives that take and give any word: casts, whose reader is checked instead, and bit operations on masks.
ANY = {"i32", "u32", "and_", "or_", "not_", "sign_mask"}

RULES: dict[str, Callable[..., Any]] = {
    "i32": _same_word,
    "u32": _same_word,
    "sign_mask": Mask,
    "add": _add,
    "addu": _add,
    "sub": _sub,
    "subu": _sub,
    "square": _square,
    "mul": _corners(lambda x, y: x * y),
    "mulu": _corners(lambda x, y: x * y),
    "div": _corners(_truncated),
    "divu": _corners(lambda x, y: x // y),
    "shl": _corners(lambda x, k: x << k),
    "shlu": _corners(lambda x, k: x << k),
    "asr": _corners(lambda x, k: x >> k),
    "shru": _corners(lambda x, k: x >> k),
    "and_": _and,
    "or_": _or,
    "not_": _not,
    "xor": lambda a, b: Span(0, _all_ones(a, b)),
    "rotlu": _any_word,
    "wrapping_addu": _any_word,
    "ge": _at_least,
    "geu": _at_least,
    "selectu": _select,
    "minu": _smaller,
    "maxu": _larger,
    "min_": _smaller,
    "max_": _larger,
    # index arithmetic, by the name of Python's operator
    "Add": _add,
    "Sub": _sub,
    "Mult": _corners(lambda x, y: x * y),
    "LShift": _corners(lambda x, k: x << k),
    "RShift": _corners(lambda x, k: x >> k),
}
