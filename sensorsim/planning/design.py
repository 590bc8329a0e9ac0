"""Choose the design of a plan: how many releases a period, of how many features, by which table.

For a mean over people the search ranks by the interval for the worst people. The variance of one value about their mean
is that of its noise plus that of their spread; a period has p = releases · features of them, each with a share budget/p
of the epsilon, and the interval goes with sqrt(variance(budget/p)/p). Up to a share of about 3 one value is best (time
sampling: one cell of all slots and features, with the whole budget on it); beyond, more of them, each with about 2.2.
For a covariance the search takes the spread of squares that `learn` assumes.

one bit   coth(share/2)²/4 about one half, for any people. Nothing private does better for people whose records are 0 or
          1: there it is randomised response, from which every other release of the same epsilon can be simulated
          (Kairouz, Oh and Viswanath 2015).
rows      less noise, sd², but then people who differ by the whole range add 1/4. Better for the mean of the records
          that were received, for sketches and for models; for a mean over people the worst case counts.

Whether a period has r releases of one feature or one release of r does not change the interval. The search takes one
feature, which costs a record less epsilon, until every record is released.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from typing import TYPE_CHECKING

from sensorsim.planning.deployment import Asked, given
from sensorsim.planning.estimands import ESTIMANDS, ONE_BIT

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

DIGITS = 6  # of an epsilon that a budget is divided into
LARGEST_SHARE = 8.0  # finer tables are not made


@dataclass(frozen=True)
class Design:
    """`releases` records of a period, `k` features of each, by a table of this form for this epsilon."""

    releases: int
    k: int
    epsilon: Decimal
    form: str
    variance: float  # of one value, predicted

    @property
    def mean_variance(self) -> float:
        """Variance of the mean of one device's values in a period."""
        return self.variance / (self.releases * self.k)


def choose_design(asked: Asked) -> Design:
    """Return the design with the narrowest predicted interval; of equal ones the fewest features, then releases."""
    estimand, budget = ESTIMANDS[asked.goal], asked.budget
    slots = given(asked.records_per_day) * given(asked.budget_days)
    found = []
    for form in estimand.forms:
        best = float("inf")
        for k in range(1, estimand.most_released(asked.n) + 1):
            releases = best_releases(form, estimand.spread, float(budget) / k, slots)
            variance = value_variance(form, float(budget) / (k * releases), estimand.spread)
            found.append(Design(releases, k, divide_budget(budget, releases), form, variance))
            if releases < slots or found[-1].mean_variance > best:
                break  # more features would only replace releases, or cost epsilon
            best = found[-1].mean_variance
    return min(found, key=lambda one: (one.mean_variance, one.k, one.releases))


def divide_budget(budget: Decimal, releases: int) -> Decimal:
    """Return the epsilon of one release, rounded down."""
    if releases == 1:
        return budget
    return Context(prec=DIGITS, rounding=ROUND_DOWN).divide(budget, Decimal(releases))


def value_variance(form: str, share: float, spread: float) -> float:
    """Return the largest variance about the mean of one value with this epsilon, including `spread` for rows.

    For rows it is the design's guarantee, so that no table that is made later has more.
    """
    from sensorsim.noise.baseline import best_known_sd, one_bit_sd
    from sensorsim.noise.rows_design import GOALS

    share = min(share, LARGEST_SHARE)
    if form == ONE_BIT:
        return one_bit_sd(share) ** 2
    rows_sd = given(best_known_sd(share)) * next(factor for limit, factor in GOALS if share <= limit)
    return float(rows_sd**2 + spread)


def table_for(design: Design, n: int) -> "NoiseTable":
    """Return the certified table of a design: a ready one, or one made for it. Takes seconds for some rows."""
    from sensorsim.mechanisms.release import table_for as rows_for
    from sensorsim.noise.noise_table import certified, make_table

    if design.form == ONE_BIT:
        return make_table("rows", design.epsilon, n, design.k, symbols=2)
    return certified(rows_for("rows", design.epsilon, n, design.k))


def best_releases(form: str, spread: float, budget: float, slots: int) -> int:
    """Return the number of values into which a budget is best divided, by the predicted variance of their mean.

    That variance falls, then rises, while the design's guarantee is the same, and jumps where a tighter guarantee
    begins. So search each stretch between two jumps, and take the best.
    """
    from sensorsim.noise.rows_design import GOALS

    def mean_variance(count: int) -> float:
        return value_variance(form, budget / count, spread) / count

    starts = {1} if form == ONE_BIT else {1, *(max(1, math.ceil(budget / float(limit))) for limit, _ in GOALS)}
    firsts = sorted(start for start in starts if start <= slots)
    lasts = [*(later - 1 for later in firsts[1:]), slots]
    return min((_lowest(mean_variance, *ends) for ends in zip(firsts, lasts, strict=True)), key=mean_variance)


def _lowest(height: Callable[[int], float], low: int, high: int) -> int:
    """Return where a function of low … high that falls and then rises is lowest."""
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if height(middle + 1) < height(middle) else (low, middle)
    return low
