"""Polynomials with exact coefficients, for symbolic counts, array lengths and indices.

A symbol is a name (a length, a loop counter), or an `Opaque` shift or maximum of two polynomials. That is no polynomial
itself, and is treated as if it were a name.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction

    Coefficient = int | Fraction


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
        return Polynomial(tuple(sorted(kept, key=_order)) if len(kept) > 1 else tuple(kept))

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
            rest = Polynomial.of({_without(key, "n"): value for key, value in self.terms})
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
        return Polynomial.constant(max(a, k)) if a is not None and k is not None else _opaque(operator, left, right)
    if isinstance(k, int) and 0 <= k < 64:
        if operator == "<<":
            return left * (1 << k)
        if k == 0:
            return left
        if isinstance(a, int):
            return Polynomial.constant(a >> k)
    return _opaque(operator, left, right)


def _opaque(operator: str, left: Polynomial, right: Polynomial) -> Polynomial:
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
    return Polynomial.of({key: _plain(value) for key, value in total.terms})


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


def _plain(value: Any) -> Any:
    return int(value) if value == int(value) else value


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


def _order(term: tuple[Monomial, Any]) -> tuple[str, ...]:
    return _key(term[0])


def _without(key: Monomial, name: str) -> Monomial:
    place = key.index(name)
    return key[:place] + key[place + 1 :]
