"""The design of a plan: how many releases a period, of how many features, by which table.

For a mean over people the search ranks by the interval at the worst people. One value has a variance
about their mean that is that of its noise and that of their spread together; a period has p = releases · features of
them, each with a share budget/p of the epsilon, and the interval goes with sqrt(variance(budget/p)/p). Up to a share of
about 3 one value is best (time sampling: one cell of all slots and features, with the whole budget on it); from there
on more of them, each with about 2.2. For a covariance the search takes squares to differ by what `learn` assumes.

one bit   coth(share/2)²/4 about one half, for whatever people there are. Nothing private does better for people whose
          records are 0 or 1: there it is randomised response, from which every other release of the same epsilon can be
          simulated (Kairouz, Oh and Viswanath 2015).
rows      less noise, sd², but then people who differ by the whole range add 1/4. Better for the mean of the records
          that were received, for sketches and for models; for a mean over people the worst case is what counts.

Whether a period has r releases of one feature or one release of r is the same for the interval. One feature is taken,
as a record then costs less epsilon, until every record is released.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from typing import TYPE_CHECKING

from sensorsim.plan.asked import MEAN, Asked

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

ONE_BIT, ROWS = "one bit", "rows"
FORMS = {MEAN: (ONE_BIT, ROWS)}  # of other goals: rows
SPREAD = {MEAN: 0.25}  # largest variance of x in 0 … 1; of a square that is sketched: that of `learn`
DIGITS = 6  # of an epsilon that a budget is divided to


@dataclass(frozen=True)
class Design:
    """`releases` records of a period, `k` features of each, by a table of this form for this epsilon."""

    releases: int
    k: int
    epsilon: Decimal
    form: str
    variance: float  # of one value, as foretold

    @property
    def of_mean(self) -> float:
        """That of the mean of one device's values in a period."""
        return self.variance / (self.releases * self.k)


def choose(asked: Asked) -> Design:
    """The design with the narrowest interval foretold; of equal ones the fewest features, then releases."""
    assert asked.records_per_day is not None and asked.budget_days is not None
    slots, budget = asked.records_per_day * asked.budget_days, asked.budget
    found = []
    for form in FORMS.get(asked.goal, (ROWS,)):
        best = float("inf")
        for k in range(1, asked.n + 1 if asked.goal == MEAN else 2):
            releases = _best_releases(form, asked.goal, float(budget) / k, slots)
            variance = value_variance(form, float(budget) / (k * releases), asked.goal)
            found.append(Design(releases, k, divided(budget, releases), form, variance))
            if releases < slots or found[-1].of_mean > best:
                break  # more features would only take the place of releases, or of epsilon
            best = found[-1].of_mean
    return min(found, key=lambda one: (one.of_mean, one.k, one.releases))


def divided(budget: Decimal, releases: int) -> Decimal:
    """The epsilon of one release: never more than its part of the budget."""
    if releases == 1:
        return budget
    return Context(prec=DIGITS, rounding=ROUND_DOWN).divide(budget, Decimal(releases))


def value_variance(form: str, share: float, goal: str = MEAN) -> float:
    """Largest variance about the mean of one value with this epsilon: noise, and what people or squares differ by.

    Of rows that of the design's promise, so that no table that is made later has more.
    """
    from sensorsim.noise.baseline import one_bit_sd

    from_8 = min(share, 8.0)  # finer tables are not made
    if form == ONE_BIT:
        return one_bit_sd(from_8) ** 2
    return _rows_sd(from_8) ** 2 + _spread(goal)


def noise_of(design: Design, goal: str) -> float:
    """That of its noise alone, of rows."""
    return design.variance - _spread(goal)


def table_for(design: Design, n: int) -> "NoiseTable":
    """The table of a design, certified: the one that ships, or one made for it. Seconds for some rows."""
    from sensorsim.mechanisms.release import table_for as rows_for
    from sensorsim.noise.noise_table import certified, make_table

    if design.form == ONE_BIT:
        return make_table("rows", design.epsilon, n, design.k, symbols=2)
    return certified(rows_for("rows", design.epsilon, n, design.k))


def _rows_sd(share: float) -> float:
    from sensorsim.noise.baseline import best_known_sd
    from sensorsim.noise.rows_design import GOALS

    best = best_known_sd(share)
    assert best is not None
    return best * next(factor for limit, factor in GOALS if share <= limit)


def _spread(goal: str) -> float:
    if goal in SPREAD:
        return SPREAD[goal]
    from sensorsim.hospital.learn import SQUARES_SPREAD

    return SQUARES_SPREAD


def _best_releases(form: str, goal: str, budget: float, slots: int) -> int:
    """How many values a budget is best divided to, by the foretold variance of their mean.

    That falls, then rises, while the promise of the design stays the same; where a closer promise begins, it jumps. So
    each stretch between two such shares is searched, and the best of them taken.
    """

    def of_mean(count: int) -> float:
        return value_variance(form, budget / count, goal) / count

    return min((_lowest(of_mean, *ends) for ends in _stretches(form, budget, slots)), key=of_mean)


def _stretches(form: str, budget: float, slots: int) -> list[tuple[int, int]]:
    """First and last count of each."""
    from sensorsim.noise.rows_design import GOALS

    starts = {1} if form == ONE_BIT else {1, *(max(1, math.ceil(budget / float(limit))) for limit, _ in GOALS)}
    firsts = sorted(start for start in starts if start <= slots)
    return list(zip(firsts, [*(later - 1 for later in firsts[1:]), slots], strict=True))


def _lowest(height: Callable[[int], float], low: int, high: int) -> int:
    """Where it is lowest of low … high, if it falls and then rises."""
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if height(middle + 1) < height(middle) else (low, middle)
    return low
