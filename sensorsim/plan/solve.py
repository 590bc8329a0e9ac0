"""What a deployment reaches, and the one number that was left open. Every search is over something that only helps."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import count
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.plan.asked import COVARIANCE, MEAN, MOST_DAYS, MOST_DEVICES, MOST_RECORDS, Asked, given
from sensorsim.plan.choose import choose, noise_of, table_for
from sensorsim.plan.correlation import (
    Correlation,
    check_features,
    check_reachable,
    correlation,
    correlation_count,
    foretold_correlation,
)
from sensorsim.plan.reached import NoneEnoughError, fewest, mean_count, mean_half, packets, value_sd
from sensorsim.plan.words import bare, missed, span

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware
    from sensorsim.device.schedule import Schedule
    from sensorsim.noise.noise_table import NoiseTable

THOUSANDTHS, MOST_EPSILON = 1000, 1000  # budgets are solved for in steps of 0.001
WAYS = ("devices", "budget_epsilon", "every")  # that a refusal names


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
    def packets(self) -> Fraction:
        """Expected, of one estimate."""
        asked = self.asked
        days = given(asked.budget_days)
        return packets(given(asked.devices), given(asked.every), days, self.schedule.allowed, asked.loss)

    @property
    def count(self) -> int:
        """What one number is estimated from: values of one feature, or for a covariance all packets."""
        share = Fraction(self.table.release, self.table.features) if self.asked.goal == MEAN else 1
        return floor(self.packets * share)

    @property
    def correlation(self) -> Correlation | None:
        """What is known of one, with the best R of the sketch; None where nothing arrives, or else is asked for."""
        if self.asked.goal != COVARIANCE or not self.count:
            return None
        return correlation(self.table, self.asked.n, self.count)

    @property
    def half(self) -> float:
        """Half the width of the 95 % interval of a mean; about that of a correlation."""
        if self.asked.goal == MEAN:
            return mean_half(self.table, self.count, self.asked.expect)
        return self.correlation.half if self.correlation else 1.0

    @property
    def sd(self) -> float | None:
        """Standard error of the estimate; None where nothing arrives."""
        if not self.count:
            return None
        if self.asked.goal == MEAN:
            return float(value_sd(self.table, self.asked.expect) / self.count**0.5)
        return self.correlation.sd if self.correlation else None

    @property
    def needed(self) -> int:
        """`count` for the accuracy that is asked for."""
        half = given(self.asked.accuracy)
        if self.asked.goal == MEAN:
            return mean_count(self.table, half, self.asked.expect)
        return correlation_count(self.table, self.asked.n, half)


def settle(asked: Asked) -> Settled:
    """With everything but the accuracy given: choose the design, make and prove its table, build the firmware."""
    from sensorsim.device.firmware import Firmware
    from sensorsim.device.schedule import Schedule

    table = asked.noise if asked.noise is not None else table_for(choose(asked), asked.n)
    firmware = Firmware(table, budget_epsilon=asked.budget, budget_days=given(asked.budget_days))
    return Settled(asked, firmware, Schedule.of(firmware, given(asked.records_per_day)))


def solved(asked: Asked) -> Settled:
    """The deployment with what was open filled in; InputError with ways out where it does not reach the accuracy."""
    missing = asked.open
    if asked.goal == COVARIANCE:
        check_features(asked.n)
    if missing == "accuracy":
        return settle(asked)
    if asked.goal == COVARIANCE:
        check_reachable(asked.n, given(asked.accuracy))
    try:
        found = settle(asked if missing is None else asked.with_(**{missing: value_for(asked, missing)}))
    except NoneEnoughError:
        raise InputError(_none_reaches(asked)) from None
    if found.half > given(asked.accuracy):
        raise InputError(_not_reached(found))
    return found


def value_for(asked: Asked, missing: str) -> Any:
    """The least of it, or the longest budget period, that reaches the accuracy; NoneEnoughError where none does."""
    return _SEARCHES[missing](asked)


def _devices(asked: Asked) -> int:
    one = settle(asked.with_(devices=1))
    found = ceil(one.needed / _per_unit(one))
    if found > MOST_DEVICES:
        raise InputError(f"±{_percent(asked)} would take {found:,} devices; ask for less, or give a larger budget.")
    return _first_enough(asked, "devices", found)


def _every(asked: Asked) -> int:
    one = settle(asked.with_(every=1))
    found = ceil(one.needed / _per_unit(one))
    if found > asked.days:
        raise InputError(
            f"±{_percent(asked)} would take packets of {found:,} days and the fleet runs for {asked.days}; ask for a "
            "wider interval, or give more --days."
        )
    return _first_enough(asked, "every", found)


def _first_enough(asked: Asked, name: str, least: int) -> int:
    """`least`, but where an interval begins to be cut at an end of the range: there a little more may be needed."""
    return next(value for value in count(least) if _holds(asked.with_(**{name: value})))


def _holds(asked: Asked) -> bool:
    return settle(asked).half <= float(given(asked.accuracy))


def _per_unit(one: Settled) -> Fraction:
    """What one device, or one day, adds to the count."""
    return one.packets * (Fraction(one.table.release, one.table.features) if one.asked.goal == MEAN else 1)


def _budget_epsilon(asked: Asked) -> Decimal:
    if asked.noise is None:
        least = 1
    else:  # what one release of this table costs, rounded up
        from sensorsim.noise.certificate import certify

        least = ceil(Fraction(given(certify(asked.noise).epsilon_record)) * THOUSANDTHS)

    def of(thousandths: int) -> Asked:
        return asked.with_(budget_epsilon=Decimal(thousandths) / THOUSANDTHS)

    most = MOST_EPSILON * THOUSANDTHS
    return of(fewest(lambda i: _reaches(of(i)), least, most)).budget


def _budget_days(asked: Asked) -> int:
    """The longest period: it is searched for from its far end."""
    most = min(MOST_DAYS, int(MOST_RECORDS // given(asked.records_per_day)))

    def of(below: int) -> Asked:
        return asked.with_(budget_days=most + 1 - below)

    return most + 1 - fewest(lambda i: _reaches(of(i)), 1, most)


def _records_per_day(asked: Asked) -> int:
    most = int(MOST_RECORDS // given(asked.budget_days))

    def of(records: int) -> Asked:
        return asked.with_(records_per_day=records)

    return fewest(lambda i: _reaches(of(i)), 1, most)


_SEARCHES: dict[str, Callable[[Asked], Any]] = {
    "devices": _devices,
    "every": _every,
    "budget_epsilon": _budget_epsilon,
    "budget_days": _budget_days,
    "records_per_day": _records_per_day,
}


def _reaches(asked: Asked) -> bool:
    """By the real table where that is made at once; else by what its design promises."""
    if asked.goal == MEAN or asked.noise is not None:
        return _holds(asked)
    design = choose(asked)
    arrive = packets(given(asked.devices), given(asked.every), given(asked.budget_days), design.releases, asked.loss)
    if arrive < 1:
        return False
    found = foretold_correlation(noise_of(design, asked.goal), asked.n, floor(arrive))
    return found.half <= float(given(asked.accuracy))


def _none_reaches(asked: Asked) -> str:
    missing = given(asked.open)
    named = {"records_per_day": "number of records a day", "budget_days": "length of the budget period"}
    told = named.get(missing, f"epsilon up to {MOST_EPSILON}")
    best = asked.with_(**{missing: MOST_EPSILON if missing == "budget_epsilon" else 1})
    return f"no {told} reaches ±{_percent(asked)}{_ways(best)}"


def _not_reached(found: Settled) -> str:
    asked = found.asked
    reached, wanted = missed(found.half, given(asked.accuracy), asked.goal)
    about = "about " if asked.goal == COVARIANCE else ""
    devices = f"{given(asked.devices):,} devices reach {about}±{reached}"
    return f"{devices} {span(given(asked.every))}, not ±{wanted}{_ways(asked)}"


def _ways(asked: Asked) -> str:
    """How the accuracy would be reached, each alone."""
    a_mean = "a mean" if asked.goal == MEAN else "packets"
    named = {"devices": "{:,} devices", "every": f"{a_mean} over {{:,}} days"}
    named["budget_epsilon"] = f"epsilon {{:g}} in {given(asked.budget_days)} day{'s' * (asked.budget_days != 1)}"
    told = []
    for name in WAYS:
        try:
            told.append(named[name].format(value_for(asked.with_(**{name: None}), name)))
        except InputError:
            continue  # not in this way
    return f": it takes {', or '.join(told)}." if told else "; ask for a wider interval."


def _percent(asked: Asked) -> str:
    return bare(given(asked.accuracy), asked.goal)
