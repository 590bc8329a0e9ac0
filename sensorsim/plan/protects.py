"""What a plan protects: epsilon of a record, of a person in a budget period, in a month, in a year.

Local: the sensor adds the noise, and nobody has to be trusted. Basic composition adds certified epsilons, with delta 0;
it holds whatever the server asks next after it has seen the answers. By privacy-loss distributions less is spent at a
small delta, for releases that are fixed in advance.

A stretch of days begins with a budget period unless said otherwise. One that begins anywhere may meet the releases of
one period more: the end of the first and the start of the last.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sensorsim.plan.asked import given
from sensorsim.plan.lines import Line

if TYPE_CHECKING:
    from sensorsim.device.schedule import Schedule
    from sensorsim.plan.solve import Settled

MONTH, YEAR = 30, 365
ADAPTIVE = "basic holds also for a server that asks adaptively"
WITHOUT_IDENTITY = "if packets reach the analyst without identity, one of each person, in an order that says nothing"


@dataclass(frozen=True)
class Spent:
    """What the releases of some days add up to, for one person."""

    name: str
    days: int | None  # None: one record
    releases: int  # at most, from the start of a budget period on
    releases_anywhere: int  # at most, wherever the days begin
    basic: float
    at_delta: float  # never more than basic


@dataclass(frozen=True)
class Shuffled:
    """The epsilon of one packet among those of one estimate; None where a person has several in it.

    Days that begin within a budget period are meant: an estimate over the end of one may hold two of a person.
    """

    epsilon: float | None
    packets: int
    of_a_person: int  # packets at most


@dataclass(frozen=True)
class Protects:
    spent: tuple[Spent, ...]
    shuffled: Shuffled
    delta: float


def protects(settled: "Settled") -> Protects:
    from sensorsim.privacy.spending import of_releases

    asked, schedule = settled.asked, settled.schedule
    period = given(asked.budget_days)
    stretches = {"budget period": period, "month": MONTH, "year": YEAR}
    if asked.days not in stretches.values():
        stretches["whole run"] = asked.days
    found = [Spent("record", None, 1, 1, *of_releases(settled.table, 1, asked.delta))]
    for name, days in stretches.items():
        most, anywhere = most_releases(schedule, period, days), most_anywhere(schedule, period, days)
        found.append(Spent(name, days, most, anywhere, *of_releases(settled.table, most, asked.delta)))
    return Protects(tuple(found), _shuffled(settled), asked.delta)


def most_releases(schedule: "Schedule", period: int, days: int) -> int:
    """At most so many within the days, which begin with a budget period."""
    whole, rest = divmod(days, period)
    return whole * schedule.allowed + _part(schedule, period, rest)


def most_anywhere(schedule: "Schedule", period: int, days: int) -> int:
    """The same wherever they begin: `first` of them end a period."""
    return max(
        _part(schedule, period, first) + most_releases(schedule, period, days - first)
        for first in range(min(period, days + 1))
    )


def _part(schedule: "Schedule", period: int, days: int) -> int:
    """At most so many in some days of one period: they lie as evenly as they can, so a share of the slots has that
    share of the releases, rounded up."""
    slots = schedule.slots // period * days
    return min(slots, -(-slots * schedule.allowed // schedule.slots))


def _shuffled(settled: "Settled") -> Shuffled:
    from sensorsim.privacy.certificate import certify
    from sensorsim.privacy.shuffle import shuffled_epsilon

    asked, count = settled.asked, int(settled.packets)
    most = most_releases(settled.schedule, given(asked.budget_days), given(asked.every))
    if most > 1 or count < 1:
        return Shuffled(None, count, most)
    own = float(given(certify(settled.table).epsilon_record))
    return Shuffled(shuffled_epsilon(own, count, asked.delta), count, most)


def lines(settled: "Settled", found: Protects) -> list[Line]:
    """With the calls that say each again."""
    table_proof = "sensorsim.privacy.certificate.certify(table).epsilon_record"
    made = []
    for one in found.spent:
        name = f"epsilon of a {one.name}" if one.days is None else f"epsilon of a person in a {one.name}"
        how = f"sensorsim.privacy.spending.of_releases(table, {one.releases}, {found.delta!r})"
        if one.days is None:
            made.append(Line(name, one.basic, "epsilon, delta 0", f"float({table_proof})"))
            continue
        slots = f"{SCHEDULE}({settled.schedule.slots}, {settled.schedule.allowed}), {settled.asked.budget_days}"
        at = f"{slots}, {one.days})"
        releases = f"releases of a person in a {one.name}"
        made.append(Line(releases, one.releases, f"in {one.days} days", f"sensorsim.plan.protects.most_releases({at}"))
        anywhere = f"{releases}, begun on any day"
        how_anywhere = f"sensorsim.plan.protects.most_anywhere({at}"
        made.append(Line(anywhere, one.releases_anywhere, f"in {one.days} days", how_anywhere))
        made.append(Line(f"{name}, basic", one.basic, "epsilon, delta 0", f"{how}[0]"))
        made.append(Line(f"{name}, by distributions", one.at_delta, f"epsilon at delta {found.delta:g}", f"{how}[1]"))
    if found.shuffled.epsilon is not None:
        how = f"sensorsim.privacy.shuffle.shuffled_epsilon(float({table_proof}), {found.shuffled.packets}, "
        unit = f"epsilon at delta {found.delta:g}, {WITHOUT_IDENTITY}"
        made.append(Line("epsilon of a packet, shuffled", found.shuffled.epsilon, unit, f"{how}{found.delta!r})"))
    return made


SCHEDULE = "sensorsim.device.schedule.Schedule"
