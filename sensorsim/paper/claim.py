"""Define a claim: a statement that is recomputed, its verdict, and the register of all of them.

A claim is one function. Its decorator gives the id, the place of the statement, and the statement with its printed
figures. The docstring is the `how` of the answer: how the figures are recomputed. The function gets the figures as they
are printed, and the Experiment if it has a parameter of that name; it returns the recomputed text and a verdict. No
figure of the paper occurs anywhere else.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sensorsim.paper.experiment import Experiment

HOLDS, ARITHMETIC, NOT, DEPENDS = "holds", "holds as arithmetic", "does not hold", "depends"
# A statement that holds as arithmetic follows from one that does not hold, so its mark is not that of HOLDS.
MARKS = {HOLDS: "✓", ARITHMETIC: "◐", NOT: "✗", DEPENDS: "~"}
VERDICTS = tuple(MARKS)
N, L, C, CONSTANT = 14, 7, 4.0, 2.5  # features, hidden units, clipping bound, stabilization constant of the paper
TRAINED = "20 runs as printed, at epsilon 0.1, 0.4, 1.6 and 6.4; within two standard errors counts as chance"


@dataclass(frozen=True)
class Claim:
    """A statement and the result of recomputing it."""

    id: str
    where: str
    printed: str
    computed: str
    verdict: str
    how: str


class Found(NamedTuple):
    """Return value of a claim's function."""

    computed: str
    verdict: str


class Statement(NamedTuple):
    """A printed statement with the function that recomputes it."""

    id: str
    where: str
    printed: str
    figures: tuple[str, ...]
    how: str
    full: bool  # it trains or compiles
    function: Callable[..., Found]

    def check(self, experiment: "Experiment | None") -> Claim:
        """Recompute the statement."""
        on_records = "experiment" in signature(self.function).parameters
        found = self.function(*([experiment] if on_records else []), *self.figures)
        if found.verdict not in VERDICTS:
            raise ValueError(f"{self.id}: {found.verdict!r} is not a verdict")
        return Claim(self.id, self.where, self.printed, found.computed, found.verdict, self.how)


STATEMENTS: dict[str, Statement] = {}
Function = Callable[..., Found]


def claim(id: str, where: str, printed: str, *figures: str, full: bool = False) -> Callable[[Function], Function]:
    """Register a claim. `figures` fill the places in `printed`; {trained} in the docstring stands for TRAINED."""

    def register(function: Function) -> Function:
        if id in STATEMENTS:
            raise ValueError(f"there are two claims {id}")
        how = " ".join((function.__doc__ or "").split()).format(trained=TRAINED)
        STATEMENTS[id] = Statement(id, where, printed.format(*figures), figures, how, full, function)
        return function

    return register


def agrees(value: Any, printed: str) -> bool:
    """Check whether a value rounds to the printed one, to as many decimals as are printed."""
    expected = Decimal(printed)
    return Decimal(repr(float(value))).quantize(expected, ROUND_HALF_UP) == expected


def verdict(holds: bool) -> str:
    """Return the verdict on a statement that is true or false."""
    return HOLDS if holds else NOT


def derived_verdict(follows: bool, premise_holds: bool) -> str:
    """Return the verdict on a result that follows, or not, from a premise that holds or not."""
    return verdict(follows) if premise_holds or not follows else ARITHMETIC


def verdict_over(cases: Iterable[bool]) -> str:
    """Return the verdict on a statement that was checked in several cases."""
    seen = set(cases)
    return DEPENDS if len(seen) > 1 else verdict(seen == {True})
