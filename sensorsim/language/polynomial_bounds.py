"""Bound polynomials in lengths and loop counters from below: every proof about an index ends here.

A counter runs from one polynomial to another, a length between two numbers, perhaps no further than another length.
Where the polynomial is affine in a symbol its least value is at one of the symbol's two ends, so the symbol is replaced
by the end that its slope points away from, or by both, innermost counter first. What is not affine (a square, a shift
by a length) is tried at every value of the symbols that make it so, if these are few enough to try; otherwise nothing
is claimed.
"""

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

from sensorsim.language.polynomial import Opaque, Polynomial

MOST_TRIED = 1 << 16  # values that are tried one by one
MOST_BOUNDS = 3  # symbolic bounds of one kind that are kept of a value
MOST_TERMS = 8  # of a bound
MOST_SHIFTS = 2  # of one another, in a bound
UNKNOWN = -(1 << 80)  # a lower bound that proves nothing


class Least(NamedTuple):
    """A lower bound, and lengths at which it is met as far as they are known."""

    value: int
    at: dict[str, int]


class Range(NamedTuple):
    """The ends of a symbol, both included; any one of the polynomials in `last` is an upper end."""

    first: Polynomial
    last: tuple[Polynomial, ...]
    is_length: bool


class Bounds:
    """The symbols in sight, outermost first, and what is known of them."""

    def __init__(self) -> None:
        self.symbols: dict[str, Range] = {}
        self.known: dict[Polynomial, Least] = {}

    def length(self, name: str, lo: int, hi: int, at_most: str | None) -> None:
        last = [Polynomial.constant(hi)]
        if at_most is not None:
            last.insert(0, Polynomial.variable(at_most))
        self.symbols[name] = Range(Polynomial.constant(lo), tuple(last), True)
        self.known.clear()

    def counter(self, name: str, first: Polynomial, last: tuple[Polynomial, ...]) -> None:
        self.symbols[name] = Range(first, last, False)

    def longer(self, rounds: Polynomial) -> dict[str, Range]:
        """Return the lengths that must be longer than declared for the loop to have a round, with their ranges then."""
        found: dict[str, Range] = {}
        for key, slope in rounds.terms:
            own = self.symbols.get(key[0]) if len(key) == 1 and isinstance(key[0], str) else None
            if own is None or not own.is_length or not isinstance(slope, int) or slope <= 0:
                continue
            rest = rounds - Polynomial.variable(key[0]) * slope
            if key[0] in rest.names():
                continue
            least = -((self.highest(rest) - 1) // slope)  # slope · length + rest is at least 1
            if own.first.number is not None and least > own.first.number:
                found[str(key[0])] = own._replace(first=Polynomial.constant(least))
        return found

    def without(self, bound: Polynomial, name: str) -> Polynomial | None:
        """Return a polynomial that is never below this one and does not contain a counter; None if it is not affine."""
        if max((key.count(name) for key, _ in bound.terms), default=0) != 1 or name in _shifted(bound):
            return None
        slope = sum(int(value) for key, value in bound.terms if key == (name,))
        if any(name in key and key != (name,) for key, _ in bound.terms):
            return None
        ends = self.symbols[name]
        return bound.replace(name, ends.last[0] if slope > 0 else ends.first)

    def forget(self, name: str) -> None:
        del self.symbols[name]
        self.known = {key: value for key, value in self.known.items() if name not in key.names()}

    def least(self, wanted: Polynomial) -> Least:
        """Return a number that the polynomial is never below."""
        plain = wanted.number
        if plain is not None:
            return Least(int(plain), {})
        if wanted not in self.known:
            self.known[wanted] = self._least(wanted)
        return self.known[wanted]

    def lowest(self, wanted: Polynomial) -> int:
        return self.least(wanted).value

    def highest(self, wanted: Polynomial) -> int:
        return -self.least(-wanted).value

    def _least(self, wanted: Polynomial) -> Least:
        for symbol in wanted.symbols():
            if isinstance(symbol, Opaque):
                return self._with_shift(wanted, symbol)
        names = wanted.names()
        order = [name for name in reversed(self._by_depth()) if name in names]
        for name in order:
            if max(key.count(name) for key, _ in wanted.terms) == 1:
                return self._at_ends(wanted, name)
        return self._tried(wanted, sorted(names))

    def _by_depth(self) -> list[str]:
        """Sort the symbols: lengths that nothing else bounds, those with a limit, counters from the outermost."""
        return sorted(self.symbols, key=lambda name: (not self.symbols[name].is_length, len(self.symbols[name].last)))

    def _at_ends(self, wanted: Polynomial, name: str) -> Least:
        ends = self.symbols[name]
        slope = Polynomial.of({tuple(s for s in key if s != name): value for key, value in wanted.terms if name in key})
        if self.lowest(slope) >= 0:  # no need to look at the other end, where a loop may have no round at all
            return self._fixed(wanted, name, ends.first)
        low = self._fixed(wanted, name, ends.first) if self.highest(slope) > 0 else Least(-UNKNOWN, {})
        high = max((self._fixed(wanted, name, last) for last in ends.last), key=lambda least: least.value)
        return min(low, high, key=lambda least: least.value)

    def _fixed(self, wanted: Polynomial, name: str, end: Polynomial) -> Least:
        least = self.least(wanted.replace(name, end))
        number = end.number
        if self.symbols[name].is_length and number is not None and name not in least.at:
            return Least(least.value, {**least.at, name: int(number)})
        return least

    def _with_shift(self, wanted: Polynomial, symbol: Opaque) -> Least:
        """Bound a shift right by a number as a division that rounds down; try any other shift value by value."""
        places = symbol.right.number
        factor, rest = self._split(wanted, symbol)
        if symbol.operator == ">>" and isinstance(places, int) and 0 <= places < 64 and factor is not None:
            unit = 1 << places
            # c·floor(P/2^s) is at least c·P/2^s for c < 0, and at least c·(P - 2^s + 1)/2^s for c > 0
            inside = symbol.left if factor < 0 else symbol.left - (unit - 1)
            least = self.least(rest * unit + inside * factor)
            return Least(-(-least.value // unit), least.at)
        return self._tried(wanted, sorted(Polynomial.variable(symbol).names()))

    def _split(self, wanted: Polynomial, symbol: Opaque) -> tuple[int | None, Polynomial]:
        """Return the number that the symbol is multiplied by, or None, and all terms without the symbol."""
        factor: int | None = 0
        rest: dict[Any, Any] = {}
        for key, coefficient in wanted.terms:
            if symbol not in key:
                rest[key] = coefficient
            elif key == (symbol,) and factor == 0:
                factor = int(coefficient)
            else:
                factor = None
        return factor, Polynomial.of(rest)

    def _tried(self, wanted: Polynomial, names: list[str]) -> Least:
        """Try every value of these symbols, and return the least; UNKNOWN if there are too many."""
        if not names:  # a shift by a number that is no count: a way that a tighter bound would rule out
            return Least(UNKNOWN, {})
        ends = [(self.lowest(self.symbols[name].first), self._end(name)) for name in names]
        many = 1
        for lo, hi in ends:
            many *= max(0, hi - lo + 1)
        if many > MOST_TRIED:
            return Least(UNKNOWN, {})
        found = Least(-UNKNOWN, {})
        for values in itertools.product(*(range(lo, hi + 1) for lo, hi in ends)):
            at = dict(zip(names, values, strict=True))
            if not self._allowed(at):
                continue
            fixed = wanted
            for name, value in at.items():
                fixed = fixed.replace(name, Polynomial.constant(value))
            least = self.least(fixed)
            if least.value < found.value:
                lengths = {name: value for name, value in at.items() if self.symbols[name].is_length}
                found = Least(least.value, {**least.at, **lengths})
        return found if many else Least(UNKNOWN, {})

    def _end(self, name: str) -> int:
        return min(self.highest(last) for last in self.symbols[name].last)

    def _allowed(self, at: dict[str, int]) -> bool:
        """Return whether values respect the limits that their symbols set each other."""
        for name, value in at.items():
            ends = self.symbols[name]
            for end, sign in ((ends.first, 1), *((last, -1) for last in ends.last)):
                if end.names() <= at.keys() and sign * (value - end.value(at)) < 0:
                    return False
        return True


def _shifted(bound: Polynomial) -> set[str]:
    """Return the names inside the shifts and maxima of a polynomial."""
    inner = [symbol for symbol in bound.symbols() if isinstance(symbol, Opaque)]
    return {name for symbol in inner for name in Polynomial.variable(symbol).names()}


def useful_bounds(found: Iterable[Polynomial]) -> tuple[Polynomial, ...]:
    """Select the bounds of a value that are worth keeping: short ones, and few."""
    kept = dict.fromkeys(bound for bound in found if bound.number is None and _is_short(bound))
    return simplest(kept)


def simplest(bounds: Iterable[Polynomial]) -> tuple[Polynomial, ...]:
    """Select a few bounds of many: some plain ones, and some with shifts."""
    found = tuple(bounds)
    if len(found) <= MOST_BOUNDS:
        return found
    plain = [bound for bound in found if _depth(bound) == 0][:MOST_BOUNDS]
    return (*plain, *[bound for bound in found if _depth(bound) > 0][:MOST_BOUNDS])


def _is_short(bound: Polynomial) -> bool:
    """Return whether a bound is useful for an index: no long sum, no shift of a shift of a shift."""
    return len(bound.terms) <= MOST_TERMS and _depth(bound) <= MOST_SHIFTS


def _depth(bound: Polynomial) -> int:
    inside = [part.left for part in bound.symbols() if isinstance(part, Opaque)]
    return 1 + max(map(_depth, inside)) if inside else 0
