"""Polynomials in n and l with whole coefficients: what a symbolic count is made of."""

from collections.abc import Mapping
from dataclasses import dataclass

Monomial = tuple[str, ...]  # the variables that are multiplied, sorted: () is 1, ("l", "n") is n·l


@dataclass(frozen=True)
class Polynomial:
    """A sum of coefficient · monomial. Zero coefficients are not stored, so equal polynomials compare equal."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> "Polynomial":
        return Polynomial(tuple(sorted((key, value) for key, value in terms.items() if value)))

    @staticmethod
    def constant(value: int) -> "Polynomial":
        return Polynomial.of({(): value})

    @staticmethod
    def variable(name: str) -> "Polynomial":
        return Polynomial.of({(name,): 1})

    def __add__(self, other: "Polynomial | int") -> "Polynomial":
        total = dict(self.terms)
        for key, value in _polynomial(other).terms:
            total[key] = total.get(key, 0) + value
        return Polynomial.of(total)

    def __sub__(self, other: "Polynomial | int") -> "Polynomial":
        return self + _polynomial(other) * -1

    def __mul__(self, other: "Polynomial | int") -> "Polynomial":
        product: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _polynomial(other).terms:
                key = tuple(sorted(left + right))
                product[key] = product.get(key, 0) + a * b
        return Polynomial.of(product)

    __radd__ = __add__
    __rmul__ = __mul__

    def at(self, **values: int) -> int:
        """The value at n=…, l=…."""
        total = 0
        for key, coefficient in self.terms:
            for name in key:
                coefficient *= values[name]
            total += coefficient
        return total

    def __str__(self) -> str:
        """`80n + 283`; a common factor n is taken out where that leaves a sum, as in `(19 + l)·n`."""
        keys = [key for key, _ in self.terms]
        if len(keys) > 1 and all("n" in key for key in keys):
            rest = Polynomial.of({_without(key, "n"): value for key, value in self.terms})
            return f"({rest._sum(constants_first=True)})·n"
        return self._sum()

    def _sum(self, constants_first: bool = False) -> str:
        ordered = sorted(self.terms, key=lambda term: (len(term[0]) if constants_first else -len(term[0]), term[0]))
        text = ""
        for key, value in ordered:
            sign = "-" if value < 0 else "+" if text else ""
            size = abs(value)
            body = "·".join(reversed(key))
            number = "" if body and size == 1 else str(size)
            text += f" {sign} {number}{body}" if text else f"{sign}{number}{body}"
        return text or "0"


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


def _polynomial(value: "Polynomial | int") -> Polynomial:
    return value if isinstance(value, Polynomial) else Polynomial.constant(value)


def _without(key: Monomial, name: str) -> Monomial:
    place = key.index(name)
    return key[:place] + key[place + 1 :]
