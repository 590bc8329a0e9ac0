"""A mechanism counted three ways and priced: as the paper lists it, as its source reads, as it runs.

What is too large to run in a moment is read alone: the tests hold that both ways agree, to the last operation.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sensorsim.cost.ledger import printed
from sensorsim.cost.pricing import Pricing, Total
from sensorsim.cost.rows import Number
from sensorsim.language.polynomial import Polynomial
from sensorsim.mechanisms import Form

MOST_EXECUTED = 250_000  # operations of all kernels together, a third of a second; a screen is waited for


class Step(NamedTuple):
    """One step of the algorithm: its operations and what they cost."""

    operations: Mapping[str, int]
    cost: Total


class View(NamedTuple):
    """One way to count a mechanism: printed by the paper, derived from the source, or executed."""

    cost: Total
    formula: Polynomial | None
    steps: Mapping[str, Step]

    @property
    def total(self) -> Number:
        return self.cost.typical

    @property
    def operations(self) -> Counter[str]:
        """Those of all steps together."""
        return sum((Counter(step.operations) for step in self.steps.values()), Counter[str]())


class MechanismCost(NamedTuple):
    """A mechanism by every way of counting that there is for it."""

    mechanism: Form
    printed: View | None
    symbolic: View
    traced: View | None  # None: too large to be run
    random_bits: int  # secret bits that a record takes, 32 for each draw; the whole record has the making of them
    bits_sent: int  # on the air, for a record; the whole record has the sending

    @property
    def counted(self) -> View:
        """As it runs, or as its source reads where it was not run."""
        return self.symbolic if self.traced is None else self.traced

    def views(self) -> Iterator[tuple[str, View]]:
        for name in ("printed", "symbolic", "traced"):
            view = getattr(self, name)
            if view is not None:
                yield name, view


def operations_of(mechanisms: Iterable[Form], n: int, l: int) -> int:
    """How many operations they all would run at these sizes, by their sources."""
    return sum(times.at(n=n, l=l) for each in mechanisms for times in each.symbolic().values())


def cost_of(mechanism: Form, n: int, l: int, pricing: Pricing, run: bool = True) -> MechanismCost:
    """The mechanism at these sizes: as the paper lists it, as its source reads, and as it runs where it is to."""
    ledger = printed(mechanism.name)
    listed = _by_step(((entry.step, entry.operation), entry.times) for entry in ledger)
    derived = _by_step(mechanism.symbolic().items())
    return MechanismCost(
        mechanism,
        _view(listed, n, l, pricing) if ledger else None,
        _view(derived, n, l, pricing),
        _executed(mechanism, n, l, pricing) if run else None,
        mechanism.random_bits(n, l),
        mechanism.bits_sent(n),
    )


def _executed(mechanism: Form, n: int, l: int, pricing: Pricing) -> View:
    executed: dict[str, Counter[str]] = {}
    for (step, operation), count in mechanism.traced(n, l).items():
        executed.setdefault(step, Counter())[operation] += count
    steps = {step: Step(dict(counts), pricing.total(counts)) for step, counts in executed.items()}
    return View(pricing.total(sum(executed.values(), Counter())), None, steps)


def _by_step(counts: Any) -> dict[str, dict[str, Polynomial]]:
    steps: dict[str, dict[str, Polynomial]] = {}
    for (step, operation), count in counts:
        into = steps.setdefault(step, {})
        into[operation] = into.get(operation, Polynomial.constant(0)) + count
    return steps


def _view(steps: dict[str, dict[str, Polynomial]], n: int, l: int, pricing: Pricing) -> View:
    whole: dict[str, Polynomial] = {}
    for counts in steps.values():
        for operation, count in counts.items():
            whole[operation] = whole.get(operation, Polynomial.constant(0)) + count
    at = {step: {op: count.at(n=n, l=l) for op, count in counts.items()} for step, counts in steps.items()}
    return View(
        pricing.total({operation: count.at(n=n, l=l) for operation, count in whole.items()}),
        pricing.formula(whole),
        {step: Step(counts, pricing.total(counts)) for step, counts in at.items()},
    )
