"""Settle a deployment: compute what it reaches, and the one number that was left open."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import count
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.planning.deployment import COVARIANCE, MEAN, MOST_DAYS, MOST_DEVICES, MOST_RECORDS, Asked, given, span
from sensorsim.planning.design import choose_design, table_for
from sensorsim.planning.estimands import ESTIMANDS, Correlation, Estimand, Estimate, NoneEnoughError, fewest, packets

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware
    from sensorsim.device.schedule import Schedule
    from sensorsim.noise.noise_table import NoiseTable

THOUSANDTHS, MOST_EPSILON = 1000, 1000  # budgets are solved for in steps of 0.001
ALTERNATIVES = ("devices", "budget_epsilon", "every")  # that a refusal names


@dataclass(frozen=True)
class Settled:
    """A deployment with its real table, as the firmware runs it."""

    asked: Asked
    firmware: "Firmware"
    schedule: "Schedule"

    @property
    def table(self) -> "NoiseTable":
        return self.firmware.table

    @property
    def estimand(self) -> Estimand:
        return ESTIMANDS[self.asked.goal]

    @property
    def packets(self) -> Fraction:
        """Expected packets of one estimate."""
        return _arriving(self.asked, self.schedule.allowed)

    @property
    def count_exact(self) -> Fraction:
        return self.packets * self.estimand.share(self.table)

    @property
    def count(self) -> int:
        """Values that one number is estimated from: those of one feature, or for a covariance all packets."""
        return floor(self.count_exact)

    @cached_property
    def estimate(self) -> Estimate | Correlation:
        return self.estimand.estimate(self.table, self.asked, self.count)

    @property
    def correlation(self) -> Correlation | None:
        """Prediction for a correlation with the best R; None where nothing arrives, or for other goals."""
        return self.estimate if isinstance(self.estimate, Correlation) else None

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval of a mean; about that of a correlation."""
        return self.estimate.half

    @property
    def sd(self) -> float | None:
        """Standard error of the estimate; None where nothing arrives."""
        return self.estimate.sd


def settle(asked: Asked) -> Settled:
    """Choose the design, make and certify its table, build the firmware; all but the accuracy must be given."""
    from sensorsim.device.firmware import Firmware
    from sensorsim.device.schedule import Schedule

    table = asked.noise if asked.noise is not None else table_for(choose_design(asked), asked.n)
    firmware = Firmware(table, budget_epsilon=asked.budget, budget_days=given(asked.budget_days))
    return Settled(asked, firmware, Schedule.of(firmware, given(asked.records_per_day)))


def solve(asked: Asked) -> Settled:
    """Settle the deployment with the open number filled in; InputError with alternatives where it is not accurate."""
    missing = asked.open
    ESTIMANDS[asked.goal].check(asked)
    if missing == "accuracy":
        return settle(asked)
    try:
        found = settle(asked if missing is None else asked.with_(**{missing: _SEARCHES[missing](asked)}))
    except NoneEnoughError:
        raise InputError(_none_reaches(asked)) from None
    if found.half > given(asked.accuracy):
        raise InputError(_not_reached(found))
    return found


def _arriving(asked: Asked, allowed: int) -> Fraction:
    return packets(given(asked.devices), given(asked.every), given(asked.budget_days), allowed, asked.loss)


# ── searches: the least value, or the longest budget period, that reaches the accuracy ──


def _search_devices(asked: Asked) -> int:
    found = _linear_need(asked, "devices")
    if found > MOST_DEVICES:
        raise InputError(f"±{_wanted(asked)} would take {found:,} devices; ask for less, or give a larger budget.")
    return _first_enough(asked, "devices", found)


def _search_every(asked: Asked) -> int:
    found = _linear_need(asked, "every")
    if found > asked.days:
        raise InputError(
            f"±{_wanted(asked)} would take packets of {found:,} days and the fleet runs for {asked.days}; ask for a "
            "wider interval, or give more --days."
        )
    return _first_enough(asked, "every", found)


def _linear_need(asked: Asked, name: str) -> int:
    """Return how many devices, or days, give as many values as the accuracy needs."""
    one = settle(asked.with_(**{name: 1}))
    return ceil(one.estimand.count_for(one.table, one.asked) / one.count_exact)


def _first_enough(asked: Asked, name: str, least: int) -> int:
    """Return `least`, or a little more where the interval is cut at an end of the range."""
    return next(value for value in count(least) if _holds(asked.with_(**{name: value})))


def _search_budget_epsilon(asked: Asked) -> Decimal:
    least = 1
    if asked.noise is not None:  # the cost of one release of this table, rounded up
        from sensorsim.noise.certificate import certify

        least = ceil(Fraction(given(certify(asked.noise).epsilon_record)) * THOUSANDTHS)

    def of(thousandths: int) -> Asked:
        return asked.with_(budget_epsilon=Decimal(thousandths) / THOUSANDTHS)

    most = MOST_EPSILON * THOUSANDTHS
    return of(fewest(lambda i: _reaches(of(i)), least, most)).budget


def _search_budget_days(asked: Asked) -> int:
    most = min(MOST_DAYS, int(MOST_RECORDS // given(asked.records_per_day)))
    return most + 1 - fewest(lambda below: _reaches(asked.with_(budget_days=most + 1 - below)), 1, most)


def _search_records_per_day(asked: Asked) -> int:
    most = int(MOST_RECORDS // given(asked.budget_days))
    return fewest(lambda records: _reaches(asked.with_(records_per_day=records)), 1, most)


_SEARCHES: dict[str, Callable[[Asked], Any]] = {
    "devices": _search_devices,
    "every": _search_every,
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
    half = estimand.predict(estimand.design_noise(design, asked), asked, arrive, design.k)
    return half <= float(given(asked.accuracy))


# ── refusals ──


def _none_reaches(asked: Asked) -> str:
    missing = given(asked.open)
    named = {"records_per_day": "number of records a day", "budget_days": "length of the budget period"}
    tried = named.get(missing, f"epsilon up to {MOST_EPSILON}")
    best = asked.with_(**{missing: MOST_EPSILON if missing == "budget_epsilon" else 1})
    return f"no {tried} reaches ±{_wanted(asked)}{_alternatives(best)}"


def _not_reached(found: Settled) -> str:
    asked = found.asked
    reached, wanted = found.estimand.format_pair(found.half, given(asked.accuracy))
    about = "about " if asked.goal == COVARIANCE else ""
    devices = f"{given(asked.devices):,} devices reach {about}±{reached}"
    return f"{devices} {span(given(asked.every))}, not ±{wanted}{_alternatives(asked)}"


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


def _wanted(asked: Asked) -> str:
    return ESTIMANDS[asked.goal].format_short(given(asked.accuracy))
