"""What a noise table protects: proved in integers, with no floating point where the answer is yes or no.

Neighbours are any two records. A rows or stairs table has delta = 0 and the epsilon of its worst likelihood ratio,
exactly. A naive or quantile table has outputs that one input can give and another cannot; for it the certificate is the
delta that remains at the nominal epsilon, composed over the record by privacy-loss distributions.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from sensorsim.privacy.rational import exp_bounds, log_above

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

EVERY_PAIR = "every pair of records"
THE_ENDS = "every feature 0 against every feature 1"


@dataclass(frozen=True)
class Certificate:
    """Bounds that hold for the neighbours named; None stands for an unbounded loss."""

    ratio: Fraction | None  # largest likelihood ratio of one noisy number
    epsilon_release: Decimal | None  # its logarithm, rounded up
    epsilon_record: Decimal | None  # with delta = 0, over all that is released of a record, rounded up
    delta_release: Decimal  # of one number at its share of the nominal epsilon, rounded up
    delta_record: Decimal  # of a record at the nominal epsilon, an upper bound
    delta_record_below: Decimal  # and a lower bound: between them lies the discretisation error
    neighbours: str

    def holds(self, epsilon: Decimal, delta: Decimal = Decimal(0)) -> bool:
        """Is a record (epsilon, delta)-private? Every number here is a bound on the safe side."""
        pure = self.epsilon_record is not None and self.epsilon_record <= epsilon
        return self.neighbours == EVERY_PAIR and (pure or self.delta_record <= delta)


@lru_cache(maxsize=64)
def certify(table: "NoiseTable") -> Certificate:
    """Prove what a table protects, from its counts alone; once for each table."""
    return table.certify()


def pure_certificate(ratio: Fraction | None, epsilon: Decimal, release: int) -> Certificate:
    """The certificate of a largest likelihood ratio over all inputs and outputs of one value; None: it has no bound."""
    zero, one = Decimal(0), Decimal(1)
    if ratio is None:
        return Certificate(None, None, None, one, one, zero, EVERY_PAIR)
    within = ratio <= exp_bounds(Fraction(epsilon) / release)[0]
    of_one = log_above(ratio)
    record = of_one * release
    if within:  # the sum of rounded logarithms may pass the budget by its last digit where the exact one does not
        record = min(record, epsilon)
    met = zero if record <= epsilon else one  # a pure bound above the budget says nothing about delta there
    return Certificate(ratio, of_one, record, met, met, zero, EVERY_PAIR)
