"""What a plan protects: epsilon of a record, of a person in a budget period, in a month, in a year.

Local: the sensor adds the noise, and nobody has to be trusted. Basic composition adds certified epsilons, with delta 0;
it holds whatever the server asks next after it has seen the answers. By privacy-loss distributions less is spent at a
small delta, for releases that are fixed in advance.

Days are any days: they may begin with any record, and so meet the end of one budget period and the start of another.
Days that are aligned begin with a budget period and may hold fewer releases.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sensorsim.plan import shuffled as of_shuffled
from sensorsim.plan.asked import given
from sensorsim.plan.lines import Line
from sensorsim.plan.shuffled import Shuffled
from sensorsim.terminal import counted

if TYPE_CHECKING:
    from sensorsim.device.schedule import Schedule
    from sensorsim.plan.solve import Settled

MONTH, YEAR = 30, 365
ADAPTIVE = "basic holds also for a server that asks adaptively"
ANY_START = "of a month, a year or other days: wherever they begin; aligned: where they begin with a budget period"
SCHEDULE = "sensorsim.device.schedule.Schedule"
HERE = "sensorsim.plan.protects"


@dataclass(frozen=True)
class Spent:
    """What the releases of some days add up to, for one person."""

    name: str
    days: int | None  # None: one record
    releases: int  # at most, wherever the days begin
    basic: float
    at_delta: float  # never more than basic
    aligned_releases: int  # at most, from the start of a budget period on
    aligned_basic: float
    aligned_at_delta: float


@dataclass(frozen=True)
class Protects:
    spent: tuple[Spent, ...]
    shuffled: Shuffled
    delta: float


def protects(settled: "Settled") -> Protects:
    from sensorsim.accounting.composition import of_releases

    asked, schedule = settled.asked, settled.schedule
    period = given(asked.budget_days)
    stretches = {"budget period": period, "month": MONTH, "year": YEAR}
    if asked.days not in stretches.values():
        stretches["whole run"] = asked.days

    @cache
    def counted(releases: int) -> tuple[int, float, float]:
        return releases, *of_releases(settled.table, releases, asked.delta)

    found = [Spent("record", None, *counted(1), *counted(1))]
    for name, days in stretches.items():
        most, aligned = most_anywhere(schedule, period, days), most_releases(schedule, period, days)
        found.append(Spent(name, days, *counted(most), *counted(aligned)))
    every = given(asked.every)
    most, aligned = most_anywhere(schedule, period, every), most_releases(schedule, period, every)
    return Protects(tuple(found), of_shuffled.shuffled(settled, most, aligned), asked.delta)


def most_releases(schedule: "Schedule", period: int, days: int) -> int:
    """At most so many within the days, which begin with a budget period."""
    return int(_from_start(schedule, schedule.slots // period * days))


def most_anywhere(schedule: "Schedule", period: int, days: int) -> int:
    """The same whichever record they begin with: `first` of them end a period."""
    import numpy as np

    records = schedule.slots // period * days
    first = np.arange(min(schedule.slots, records + 1))
    return int((_part(schedule, first) + _from_start(schedule, records - first)).max())


def _from_start(schedule: "Schedule", records: Any) -> Any:
    """The most in so many records of which the first begins a period."""
    whole, rest = records // schedule.slots, records % schedule.slots
    return whole * min(schedule.allowed, schedule.slots) + _part(schedule, rest)


def _part(schedule: "Schedule", records: Any) -> Any:
    """The most in so many records in a row of one period.

    Each stratum has one release, so k releases take k strata. Of these all but the two at the ends lie within the
    records, and k - 2 strata in a row have floor((k-2)·slots/allowed) slots at least, wherever the period is turned to;
    of the two at the ends a slot each is enough. So the most is the largest k, up to `allowed`, with
    floor((k-2)·slots/allowed) <= records - 2, which is ceil((records-1)·allowed/slots) + 1.
    """
    import numpy as np

    allowed = min(schedule.allowed, schedule.slots)
    most = -(-(records - 1) * allowed // schedule.slots) + 1
    return np.maximum(0, np.minimum(np.minimum(records, allowed), most))


def lines(settled: "Settled", found: Protects) -> list[Line]:
    """With the calls that say each again."""
    schedule = f"{SCHEDULE}({settled.schedule.slots}, {settled.schedule.allowed}), {settled.asked.budget_days}"
    made = []
    for one in found.spent:
        if one.days is None:
            how = "float(sensorsim.noise.certificate.certify(table).epsilon_record)"
            made.append(Line(f"epsilon of a {one.name}", one.basic, "epsilon, delta 0", how))
            continue
        any_start = one.releases, one.basic, one.at_delta
        aligned = one.aligned_releases, one.aligned_basic, one.aligned_at_delta
        for words, most, (releases, basic, at_delta) in (
            ("", f"{HERE}.most_anywhere", any_start),
            (", aligned", f"{HERE}.most_releases", aligned),
        ):
            of, within = f"of a person in a {one.name}{words}", f"in {counted(one.days, 'day')}"
            how = f"sensorsim.accounting.composition.of_releases(table, {releases}, {found.delta!r})"
            made.append(Line(f"releases {of}", releases, within, f"{most}({schedule}, {one.days})"))
            made.append(Line(f"epsilon {of}, basic", basic, "epsilon, delta 0", f"{how}[0]"))
            unit = f"epsilon at delta {found.delta:g}"
            made.append(Line(f"epsilon {of}, by distributions", at_delta, unit, f"{how}[1]"))
    return [*made, *of_shuffled.lines(found.shuffled, found.delta)]
