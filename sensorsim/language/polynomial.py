"""Polynomials with exact coefficients, for symbolic counts, array lengths and indices, and lower bounds of them.

A symbol is a name (a length, a loop counter), or an `Opaque` shift or maximum of two polynomials. That is no polynomial
itself, and is treated as if it were a name.

Every proof about an index ends in a bound. A counter runs from one polynomial to another, a length between two numbers,
perhaps no further than another length. Where the polynomial is affine in a symbol its least value is at one of the
symbol's two ends, so the symbol is replaced by the end that its slope points away from, or by both, innermost counter
first. What is not affine (a square, a shift by a length) is tried at every value of the symbols that make it so, if
these are few enough to try; otherwise nothing is claimed.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction

    Coefficient = int | Fraction

MOST_TRIED = 1 << 16  # values that are tried one by one
MOST_BOUNDS = 3  # symbolic bounds of one kind that are kept of a value
MOST_TERMS = 8  # of a bound
MOST_SHIFTS = 2  # of one another, in a bound
UNKNOWN = -(1 << 80)  # a lower bound that proves nothing


class Opaque(NamedTuple):
    """`left << right`, `left >> right` (rounded down) or the larger of the two."""

    operator: str
    left: "Polynomial"
    right: "Polynomial"

    def __str__(self) -> str:
        if self.operator == "max":
            return f"max({self.left._sum()}, {self.right._sum()})"
        return f"({self.left._sum()} {self.operator} {self.right._sum()})"

    def at(self, values: Mapping[str, int]) -> int:
        left, right = self.left.value(values), self.right.value(values)
        if self.operator == "max":
            return max(left, right)
        return left << right if self.operator == "<<" else left >> right


Symbol = str | Opaque
Monomial = tuple[Symbol, ...]  # the symbols that are multiplied, sorted: () is 1, ("l", "n") is n·l


class Polynomial(NamedTuple):
    """A sum of coefficient · monomial. Zero coefficients are not stored, so equal polynomials compare equal."""

    terms: tuple[tuple[Monomial, "Coefficient"], ...]

    @staticmethod
    def of(terms: Mapping[Monomial, "Coefficient"]) -> "Polynomial":
        kept = [(key, value) for key, value in terms.items() if value]
        return Polynomial(tuple(sorted(kept, key=lambda term: _key(term[0]))) if len(kept) > 1 else tuple(kept))

    @staticmethod
    def constant(value: "Coefficient") -> "Polynomial":
        return Polynomial((((), value),)) if value else Polynomial(())

    @staticmethod
    def variable(name: Symbol) -> "Polynomial":
        return Polynomial((((name,), 1),))

    def __add__(self, other: "Polynomial | int") -> "Polynomial":  # type: ignore[override]
        total: dict[Monomial, Coefficient] = dict(self.terms)
        for key, value in _polynomial(other).terms:
            total[key] = total.get(key, 0) + value
        return Polynomial.of(total)

    def __sub__(self, other: "Polynomial | int") -> "Polynomial":
        return self + _polynomial(other) * -1

    def __neg__(self) -> "Polynomial":
        return self * -1

    def __mul__(self, other: "Polynomial | int") -> "Polynomial":  # type: ignore[override]
        if isinstance(other, int):
            return Polynomial(tuple((key, value * other) for key, value in self.terms)) if other else Polynomial(())
        product: dict[Monomial, Coefficient] = {}
        for left, a in self.terms:
            for right, b in _polynomial(other).terms:
                key = tuple(sorted(left + right, key=str)) if left and right else left + right
                product[key] = product.get(key, 0) + a * b
        return Polynomial.of(product)

    def __radd__(self, other: int) -> "Polynomial":
        return self + other

    def __rmul__(self, other: int) -> "Polynomial":  # type: ignore[override]
        return self * other

    @property
    def number(self) -> "Coefficient | None":
        """Return the value if the polynomial is a plain number, else None."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () and len(self.terms) == 1 else None

    def symbols(self) -> set[Symbol]:
        return {symbol for key, _ in self.terms for symbol in key}

    def names(self) -> set[str]:
        """Return every name, those inside a shift too."""
        found: set[str] = set()
        for symbol in self.symbols():
            found |= symbol.left.names() | symbol.right.names() if isinstance(symbol, Opaque) else {symbol}
        return found

    def at(self, **values: int) -> int:
        """Return the value at n=…, l=…."""
        return self.value(values)

    def value(self, values: Mapping[str, int]) -> int:
        total: Coefficient = 0
        for key, coefficient in self.terms:
            for symbol in key:
                coefficient *= symbol.at(values) if isinstance(symbol, Opaque) else values[symbol]
            total += coefficient
        return int(total)

    def replace(self, name: str, by: "Polynomial") -> "Polynomial":
        """Replace a name by a polynomial."""
        total = Polynomial(())
        kept: dict[Monomial, Coefficient] = {}
        for key, coefficient in self.terms:
            if not any(symbol == name or isinstance(symbol, Opaque) for symbol in key):
                kept[key] = coefficient
                continue
            term = Polynomial.constant(coefficient)
            for symbol in key:
                if isinstance(symbol, Opaque):
                    term = term * shift(symbol.operator, symbol.left.replace(name, by), symbol.right.replace(name, by))
                else:
                    term = term * (by if symbol == name else Polynomial.variable(symbol))
            total = total + term
        return total + Polynomial.of(kept) if kept else total

    def __str__(self) -> str:
        """Format as `80n + 283`; a common factor n of all terms is taken out, as in `(19 + l)·n`."""
        keys = [key for key, _ in self.terms]
        if len(keys) > 1 and all("n" in key for key in keys):
            places = [key.index("n") for key in keys]
            rest = Polynomial.of(
                {key[:at] + key[at + 1 :]: value for (key, value), at in zip(self.terms, places, strict=True)}
            )
            return f"({rest._sum(constants_first=True)})·n"
        return self._sum()

    def _sum(self, constants_first: bool = False) -> str:
        def order(term: tuple[Monomial, Any]) -> tuple[int, list[str]]:
            return len(term[0]) if constants_first else -len(term[0]), [str(symbol) for symbol in term[0]]

        text = ""
        for key, value in sorted(self.terms, key=order):
            sign = "-" if value < 0 else "+" if text else ""
            size = abs(value)
            body = "·".join(str(symbol) for symbol in reversed(key))
            number = "" if body and size == 1 else str(size)
            number += "·" if number and not number.isdecimal() and body else ""
            text += f" {sign} {number}{body}" if text else f"{sign}{number}{body}"
        return text or "0"


def shift(operator: str, left: Polynomial, right: Polynomial) -> Polynomial:
    """Return left << right, left >> right or the larger: a number or a product if possible, else a symbol."""
    a, k = left.number, right.number
    if operator == "max":
        if a is not None and k is not None:
            return Polynomial.constant(max(a, k))
    elif isinstance(k, int) and 0 <= k < 64:
        if operator == "<<":
            return left * (1 << k)
        if k == 0:
            return left
        if isinstance(a, int):
            return Polynomial.constant(a >> k)
    return Polynomial.variable(Opaque(operator, left, right))


def summed(each: Polynomial, counter: str, first: Polynomial, last: Polynomial) -> Polynomial:
    """Sum `each` over counter = first … last-1."""
    total = Polynomial(())
    by_power: dict[int, dict[Monomial, Any]] = {}
    for key, coefficient in each.terms:
        if any(isinstance(symbol, Opaque) and counter in Polynomial.variable(symbol).names() for symbol in key):
            raise ValueError(f"{each} summed over {counter} is no polynomial")
        rest = tuple(symbol for symbol in key if symbol != counter)
        by_power.setdefault(key.count(counter), {})[rest] = coefficient
    for power, terms in by_power.items():
        total = total + Polynomial.of(terms) * (_power_sum(power, last) - _power_sum(power, first))
    return Polynomial.of({key: int(value) if value == int(value) else value for key, value in total.terms})


def _power_sum(power: int, end: Polynomial) -> Polynomial:
    """Sum 0^p + 1^p + … + (end-1)^p by Pascal's identity: (p+1)·S_p = end^(p+1) - sum of C(p+1, j)·S_j over j < p."""
    if power == 0:
        return end
    from fractions import Fraction  # only triangular loops need it
    from math import comb

    whole = Polynomial.constant(1)
    for _ in range(power + 1):
        whole = whole * end
    for j in range(power):
        whole = whole - _power_sum(j, end) * comb(power + 1, j)
    return whole * Polynomial.constant(Fraction(1, power + 1))


def parse(text: str) -> Polynomial:
    """Read `2*n`, `n - 1`, `n*l`: sums and products of n, l and whole numbers."""
    total = Polynomial.constant(0)
    for term in text.replace("-", "+-").split("+"):
        if not term.strip():
            continue
        product = Polynomial.constant(1)
        for factor in term.split("*"):
            factor = factor.strip()
            if factor.startswith("-"):
                product, factor = product * -1, factor[1:].strip()
            product = product * (int(factor) if factor.isdigit() else Polynomial.variable(factor))
        total = total + product
    return total


OPERATORS: dict[str, Callable[[Polynomial, Polynomial], Polynomial]] = {
    "+": Polynomial.__add__,
    "-": Polynomial.__sub__,
    "*": Polynomial.__mul__,
    "<<": lambda a, b: shift("<<", a, b),
    ">>": lambda a, b: shift(">>", a, b),
}


def _polynomial(value: "Polynomial | int") -> Polynomial:
    return value if isinstance(value, Polynomial) else Polynomial.constant(value)


@lru_cache(maxsize=4096)
def _key(monomial: Monomial) -> tuple[str, ...]:
    return tuple(map(str, monomial))


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
        other = () if at_most is None else (Polynomial.variable(at_most),)
        self.symbols[name] = Range(Polynomial.constant(lo), (*other, Polynomial.constant(hi)), True)
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
        shifted = [symbol for symbol in bound.symbols() if isinstance(symbol, Opaque)]
        inside = any(name in Polynomial.variable(symbol).names() for symbol in shifted)
        if inside or name not in bound.names() or any(name in key and key != (name,) for key, _ in bound.terms):
            return None
        slope = sum(int(value) for key, value in bound.terms if key == (name,))
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
        # lengths that nothing else bounds, those with a limit, counters from the outermost
        depth = sorted(self.symbols, key=lambda name: (not self.symbols[name].is_length, len(self.symbols[name].last)))
        for name in reversed(depth):
            if name in names and max(key.count(name) for key, _ in wanted.terms) == 1:
                return self._at_ends(wanted, name)
        return self._tried(wanted, sorted(names))

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
        factors = [value if key == (symbol,) else None for key, value in wanted.terms if symbol in key]
        factor = int(factors[0]) if len(factors) == 1 and factors[0] is not None else None
        rest = Polynomial.of({key: value for key, value in wanted.terms if symbol not in key})
        if symbol.operator == ">>" and isinstance(places, int) and 0 <= places < 64 and factor is not None:
            unit = 1 << places
            # c·floor(P/2^s) is at least c·P/2^s for c < 0, and at least c·(P - 2^s + 1)/2^s for c > 0
            inside = symbol.left if factor < 0 else symbol.left - (unit - 1)
            least = self.least(rest * unit + inside * factor)
            return Least(-(-least.value // unit), least.at)
        return self._tried(wanted, sorted(Polynomial.variable(symbol).names()))

    def _tried(self, wanted: Polynomial, names: list[str]) -> Least:
        """Try every value of these symbols, and return the least; UNKNOWN if there are too many."""
        if not names:  # a shift by a number that is no count: a way that a tighter bound would rule out
            return Least(UNKNOWN, {})
        ends = [
            (self.lowest(ends.first), min(map(self.highest, ends.last)))
            for ends in (self.symbols[name] for name in names)
        ]
        many = math.prod(max(0, hi - lo + 1) for lo, hi in ends)
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

    def _allowed(self, at: dict[str, int]) -> bool:
        """Return whether values respect the limits that their symbols set each other."""
        for name, value in at.items():
            ends = self.symbols[name]
            for end, sign in ((ends.first, 1), *((last, -1) for last in ends.last)):
                if end.names() <= at.keys() and sign * (value - end.value(at)) < 0:
                    return False
        return True


def useful_bounds(found: Iterable[Polynomial]) -> tuple[Polynomial, ...]:
    """Select the bounds of a value that are worth keeping: short ones, and few."""
    return simplest(
        dict.fromkeys(
            bound
            for bound in found
            if bound.number is None and len(bound.terms) <= MOST_TERMS and _depth(bound) <= MOST_SHIFTS
        )
    )


def simplest(bounds: Iterable[Polynomial]) -> tuple[Polynomial, ...]:
    """Select a few bounds of many: some plain ones, and some with shifts."""
    found = tuple(bounds)
    if len(found) <= MOST_BOUNDS:
        return found
    plain = [bound for bound in found if _depth(bound) == 0][:MOST_BOUNDS]
    return (*plain, *[bound for bound in found if _depth(bound) > 0][:MOST_BOUNDS])


def _depth(bound: Polynomial) -> int:
    inside = [part.left for part in bound.symbols() if isinstance(part, Opaque)]
    return 1 + max(map(_depth, inside)) if inside else 0
