"""Settle a deployment: choose its design, compute what it reaches, and solve for the number that was left open.

The design is how many releases a period has, of how many features, by which table.

For a mean over people the search ranks by the interval for the worst people. The variance of one value about their mean
is that of its noise plus that of their spread; a period has p = releases · features of them, each with a share budget/p
of the epsilon, and the interval goes with sqrt(variance(budget/p)/p). Whether a period has r releases of one feature or
one release of r does not change that: the search takes one feature, which costs a record less epsilon, until every
record is released. For a covariance it takes the spread of squares that `learn` assumes.

one bit   coth(share/2)²/4 about one half, for any people. For people whose records are 0 or 1 it is randomised
          response, from which every other release of that epsilon can be simulated (Kairouz, Oh and Viswanath 2015).
rows      less noise, sd², but people who differ by the whole range add 1/4. Better for the mean of the records that
          were received, for sketches and for models.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from functools import cached_property, partial
from itertools import count
from math import ceil, floor
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim.device.firmware import Firmware
from sensorsim.device.schedule import Schedule
from sensorsim.mechanisms.release import table_for as rows_for
from sensorsim.noise.baseline import best_known_sd, one_bit_sd
from sensorsim.noise.certificate import certify
from sensorsim.noise.noise_table import NoiseTable, certified, make_table
from sensorsim.noise.rows_design import GOALS
from sensorsim.planning.deployment import COVARIANCE, MEAN, MOST_DAYS, MOST_DEVICES, MOST_RECORDS, Asked, given, span
from sensorsim.planning.estimands import ESTIMANDS, ONE_BIT, Correlation, Estimate, NoneEnoughError, fewest, packets

DIGITS = 6  # of an epsilon that a budget is divided into
LARGEST_SHARE = 8.0  # finer tables are not made
THOUSANDTHS, MOST_EPSILON = 1000, 1000  # budgets are solved for in steps of 0.001
ALTERNATIVES = ("devices", "budget_epsilon", "every")  # that a refusal names


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
        """Return the variance of the mean of one device's values in a period."""
        return self.variance / (self.releases * self.k)


def choose_design(asked: Asked) -> Design:
    """Return the design with the narrowest predicted interval; of equal ones the fewest features, then releases."""
    estimand, budget = ESTIMANDS[asked.goal], asked.budget
    slots = given(asked.records_per_day) * given(asked.budget_days)
    found = []
    for form in estimand.forms:
        best = float("inf")
        for k in range(1, asked.n + 1 if estimand.per_feature else 2):
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
    share = min(share, LARGEST_SHARE)
    if form == ONE_BIT:
        return one_bit_sd(share) ** 2
    rows_sd = given(best_known_sd(share)) * next(factor for limit, factor in GOALS if share <= limit)
    return float(rows_sd**2 + spread)


def table_for(design: Design, n: int) -> NoiseTable:
    """Return the certified table of a design: a ready one, or one made for it. Takes seconds for some rows."""
    if design.form == ONE_BIT:
        return make_table("rows", design.epsilon, n, design.k, symbols=2)
    return certified(rows_for("rows", design.epsilon, n, design.k))


def best_releases(form: str, spread: float, budget: float, slots: int) -> int:
    """Return the number of values into which a budget is best divided, by the predicted variance of their mean.

    That variance falls, then rises, while the design's guarantee is the same, and jumps where a tighter guarantee
    begins. So search each stretch between two jumps, and take the best.
    """

    def mean_variance(count: int) -> float:
        return value_variance(form, budget / count, spread) / count

    def no_longer_falls(count: int) -> bool:
        return mean_variance(count + 1) >= mean_variance(count)

    starts = {1} if form == ONE_BIT else {1, *(max(1, math.ceil(budget / float(limit))) for limit, _ in GOALS)}
    firsts = sorted(start for start in starts if start <= slots)
    found = []
    for low, high in zip(firsts, [*(later - 1 for later in firsts[1:]), slots], strict=True):
        found.append(low + bisect_left(range(low, high), True, key=no_longer_falls))
    return min(found, key=mean_variance)


@dataclass(frozen=True)
class Settled:
    """A deployment with its real table, as the firmware runs it."""

    asked: Asked
    firmware: Firmware
    schedule: Schedule

    @property
    def table(self) -> NoiseTable:
        return self.firmware.table

    @property
    def estimand(self) -> Any:
        return ESTIMANDS[self.asked.goal]

    @property
    def packets(self) -> Fraction:
        """Return the expected packets of one estimate."""
        return _arriving(self.asked, self.schedule.allowed)

    @property
    def count_exact(self) -> Fraction:
        of_a_feature = Fraction(self.table.release, self.table.features)
        return self.packets * of_a_feature if self.estimand.per_feature else self.packets

    @property
    def count(self) -> int:
        """Return the values that one number is estimated from: of one feature, or for a covariance all packets."""
        return floor(self.count_exact)

    @cached_property
    def estimate(self) -> Estimate | Correlation:
        found: Estimate | Correlation = self.estimand.estimate(self.table, self.asked, self.count)
        return found

    @property
    def correlation(self) -> Correlation | None:
        """Return the prediction for a correlation with the best R; None where nothing arrives, or for other goals."""
        return self.estimate if isinstance(self.estimate, Correlation) else None

    @property
    def half(self) -> float:
        """Return half the width of the 95 % interval of a mean; about that of a correlation."""
        return self.estimate.half


def settle(asked: Asked) -> Settled:
    """Choose the design, make and certify its table, build the firmware; all but the accuracy must be given."""
    table = asked.noise if asked.noise is not None else table_for(choose_design(asked), asked.n)
    firmware = Firmware(table, budget_epsilon=asked.budget, budget_days=given(asked.budget_days))
    return Settled(asked, firmware, Schedule.of(firmware, given(asked.records_per_day)))


def solve(asked: Asked) -> Settled:
    """Settle the deployment with the open number filled in; InputError with alternatives where it is not accurate."""
    missing, estimand = asked.open, ESTIMANDS[asked.goal]
    estimand.check(asked)
    if missing == "accuracy":
        return settle(asked)
    wanted = given(asked.accuracy)
    try:
        found = settle(asked if missing is None else asked.with_(**{missing: _SEARCHES[missing](asked)}))
    except NoneEnoughError:
        named = {"records_per_day": "number of records a day", "budget_days": "length of the budget period"}
        tried = named.get(given(missing), f"epsilon up to {MOST_EPSILON}")
        best = asked.with_(**{given(missing): MOST_EPSILON if missing == "budget_epsilon" else 1})
        short = estimand.format_short(wanted)
        raise InputError(f"no {tried} reaches ±{short}{_alternatives(best)}") from None
    if found.half > wanted:
        reached, short = estimand.format_pair(found.half, wanted)
        about = "about " if asked.goal == COVARIANCE else ""
        devices = f"{given(found.asked.devices):,} devices reach {about}±{reached}"
        often = span(given(found.asked.every))
        raise InputError(f"{devices} {often}, not ±{short}{_alternatives(found.asked)}")
    return found


def _arriving(asked: Asked, allowed: int) -> Fraction:
    return packets(given(asked.devices), given(asked.every), given(asked.budget_days), allowed, asked.loss)


# ── searches: the least value, or the longest budget period, that reaches the accuracy ──


def _search_linear(asked: Asked, name: str) -> int:
    """Return how many devices, or days of packets, give as many values as the accuracy needs."""
    one = settle(asked.with_(**{name: 1}))
    least: int = ceil(one.estimand.count_for(one.table, one.asked) / one.count_exact)
    wanted = one.estimand.format_short(given(asked.accuracy))
    if name == "devices" and least > MOST_DEVICES:
        raise InputError(f"±{wanted} would take {least:,} devices; ask for less, or give a larger budget.")
    if name == "every" and least > asked.days:
        raise InputError(
            f"±{wanted} would take packets of {least:,} days and the fleet runs for {asked.days}; ask for a "
            "wider interval, or give more --days."
        )
    # a little more is needed where the interval is cut at an end of the range
    return next(value for value in count(least) if _holds(asked.with_(**{name: value})))


def _search_budget_epsilon(asked: Asked) -> Decimal:
    least = 1
    if asked.noise is not None:  # the cost of one release of this table, rounded up
        least = ceil(Fraction(given(certify(asked.noise).epsilon_record)) * THOUSANDTHS)

    def with_budget(thousandths: int) -> Asked:
        return asked.with_(budget_epsilon=Decimal(thousandths) / THOUSANDTHS)

    return with_budget(fewest(lambda i: _reaches(with_budget(i)), least, MOST_EPSILON * THOUSANDTHS)).budget


def _search_budget_days(asked: Asked) -> int:
    most = min(MOST_DAYS, int(MOST_RECORDS // given(asked.records_per_day)))
    return most + 1 - fewest(lambda below: _reaches(asked.with_(budget_days=most + 1 - below)), 1, most)


def _search_records_per_day(asked: Asked) -> int:
    most = int(MOST_RECORDS // given(asked.budget_days))
    return fewest(lambda records: _reaches(asked.with_(records_per_day=records)), 1, most)


_SEARCHES: dict[str, Callable[[Asked], Any]] = {
    "devices": partial(_search_linear, name="devices"),
    "every": partial(_search_linear, name="every"),
    "budget_epsilon": _search_budget_epsilon,
    "budget_days": _search_budget_days,
    "records_per_day": _search_records_per_day,
}


def _holds(asked: Asked) -> bool:
    return settle(asked).half <= float(given(asked.accuracy))


def _reaches(asked: Asked) -> bool:
    """Decide by the real table where that is quickly made; else by the guarantee of its design."""
    estimand = ESTIMANDS[asked.goal]
    if estimand.table_is_quick or asked.noise is not None:
        return _holds(asked)
    design = choose_design(asked)
    arrive = floor(_arriving(asked, design.releases))
    if arrive < 1:
        return False
    half: float = estimand.predict(estimand.design_noise(design, asked), asked, arrive, design.k)
    return half <= float(given(asked.accuracy))


def _alternatives(asked: Asked) -> str:
    """List the changes of one number that would reach the accuracy."""
    a_mean = "a mean" if asked.goal == MEAN else "packets"
    named = {"devices": "{:,} devices", "every": f"{a_mean} over {{:,}} days"}
    named["budget_epsilon"] = f"epsilon {{:g}} in {given(asked.budget_days)} day{'s' * (asked.budget_days != 1)}"
    found = []
    for name in ALTERNATIVES:
        try:
            found.append(named[name].format(_SEARCHES[name](asked.with_(**{name: None}))))
        except InputError:
            continue  # this number alone does not reach it
    return f": it takes {', or '.join(found)}." if found else "; ask for a wider interval."
