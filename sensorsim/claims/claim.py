"""A claim: a statement that can be recomputed, and the register of them all.

A claim is one small function. The decorator says its id, where the statement stands, what is printed there and how it
is recomputed; the function gets the printed figures, computes, and returns what it found with a verdict that follows
from the comparison. No figure of the paper stands anywhere else.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

HOLDS, ARITHMETIC, NOT, DEPENDS = "holds", "holds as arithmetic", "does not hold", "depends"
VERDICTS = (HOLDS, ARITHMETIC, NOT, DEPENDS)
# One mark for each: what holds as arithmetic rests on something that does not hold, so it is not marked as holding.
MARKS = {HOLDS: "✓", ARITHMETIC: "◐", NOT: "✗", DEPENDS: "~"}
QUICK, DATA, FULL = "quick", "data", "full"  # needs nothing, records, or training; the last only when asked for
OURS = "This project: "  # how the place of our own statements begins


@dataclass(frozen=True)
class Claim:
    """A statement, and what came of recomputing it just now."""

    id: str
    where: str
    printed: str
    computed: str
    verdict: str
    how: str


class Found(NamedTuple):
    """What a claim's function gives back."""

    computed: str
    verdict: str


class Statement(NamedTuple):
    """What is printed and where, with the function that recomputes it."""

    id: str
    where: str
    printed: str
    figures: tuple[str, ...]
    how: str
    needs: str
    function: Callable[..., Found]

    def check(self, setting: Any) -> Claim:
        """Recompute it. `setting` has the records, and trains on them."""
        given = self.figures if self.needs == QUICK else (setting, *self.figures)
        found = self.function(*given)
        if found.verdict not in VERDICTS:
            raise ValueError(f"{self.id}: {found.verdict!r} is no verdict")
        return Claim(self.id, self.where, self.printed, found.computed, found.verdict, self.how)


STATEMENTS: dict[str, Statement] = {}


def claim(
    id: str, where: str, printed: str, *figures: str, how: str, needs: str = QUICK
) -> Callable[[Callable[..., Found]], Callable[..., Found]]:
    """Register a claim. `figures` stand in the places of `printed`, and the function gets them, as they are printed."""

    def register(function: Callable[..., Found]) -> Callable[..., Found]:
        if id in STATEMENTS:
            raise ValueError(f"there are two claims {id}")
        STATEMENTS[id] = Statement(id, where, printed.format(*figures), figures, how, needs, function)
        return function

    return register


def agrees(value: Any, printed: str) -> bool:
    """Whether a value is the printed one, to as many decimals as are printed."""
    wanted = Decimal(printed)
    return Decimal(repr(float(value))).quantize(wanted, ROUND_HALF_UP) == wanted


def whether(yes: bool) -> str:
    """Of a statement that is true or not."""
    return HOLDS if yes else NOT


def as_arithmetic(follows: bool, stands: bool) -> str:
    """Of a result: it follows from what is printed before it, and that stands or does not."""
    if not follows:
        return NOT
    return HOLDS if stands else ARITHMETIC


def across(cases: Iterable[bool]) -> str:
    """Of a statement that is looked at in several cases."""
    seen = set(cases)
    return DEPENDS if len(seen) > 1 else whether(seen == {True})
