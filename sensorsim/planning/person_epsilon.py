"""Compute what a plan protects: epsilon of a record and of a person in a budget period, a month, a year; shuffled too.

Local: the sensor adds the noise, and nobody has to be trusted. Basic composition adds certified epsilons, with delta 0;
it holds also for a server that asks adaptively. By privacy-loss distributions less is spent at a small delta, for
releases that are fixed in advance. A span of days may begin with any record, and so contain the end of one budget
period and the start of another; an aligned span begins with a period and may contain fewer releases.

Shuffled: the epsilon of a person among the packets of one estimate. It assumes that packets reach the analyst without
identity, in a random order, and that losses are independent of the person. It takes as many packets as almost every
estimate has: those expected less four standard deviations of a Poisson distribution.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from sensorsim._util.errors import InputError
from sensorsim._util.terminal import counted
from sensorsim.accounting.amplification import MOST_PACKETS, shuffled_delta, shuffled_epsilon
from sensorsim.accounting.composition import of_releases
from sensorsim.device.schedule import Schedule
from sensorsim.noise.certificate import certify
from sensorsim.planning.deployment import Line, given
from sensorsim.planning.solve import Settled

MONTH, YEAR = 30, 365
FEWER = 4  # standard deviations
MOST_TOGETHER = 4  # packets of a person for group privacy
NEAR = 1e-6  # to which epsilon is solved, relative to that of a packet; rounded up
ADAPTIVE = "basic holds also for a server that asks adaptively"
ANY_START = "of a month, a year or other days: wherever they begin; aligned: where they begin with a budget period"
WITHOUT_IDENTITY = (
    "if packets reach the analyst without identity, in an order that says nothing, and are lost by chance alone"
)
CERTIFIED = "sensorsim.noise.certificate.certify(table).epsilon_record"


@dataclass(frozen=True)
class Spent:
    """Privacy budget of one person's releases in a span of days."""

    name: str
    days: int | None  # None: one record
    releases: int  # at most, wherever the days begin
    basic: float
    at_delta: float  # never more than basic
    aligned_releases: int  # at most, from the start of a budget period on
    aligned_basic: float
    aligned_at_delta: float


@dataclass(frozen=True)
class Shuffled:
    """Epsilon by shuffling; None where a person has too many packets in an estimate, or where none arrives."""

    packets: int  # that almost every estimate has
    of_a_person: int  # at most, wherever the days begin
    epsilon: float | None
    aligned_of_a_person: int  # at most, from the start of a budget period on
    aligned_epsilon: float | None


@dataclass(frozen=True)
class Protects:
    """Everything that a plan protects."""

    spent: tuple[Spent, ...]
    shuffled: Shuffled
    delta: float


def protects(settled: Settled) -> Protects:
    """Compute the local and the shuffled epsilons of a deployment."""
    asked, schedule = settled.asked, settled.schedule
    period = given(asked.budget_days)
    spans = {"budget period": period, "month": MONTH, "year": YEAR}
    if asked.days not in spans.values():
        spans["whole run"] = asked.days

    @cache
    def epsilons(releases: int) -> tuple[int, float, float]:
        return releases, *of_releases(settled.table, releases, asked.delta)

    def most(days: int) -> tuple[int, int]:
        return most_anywhere(schedule, period, days), most_releases(schedule, period, days)

    found = [Spent("record", None, *epsilons(1), *epsilons(1))]
    for name, days in spans.items():
        anywhere, aligned = most(days)
        found.append(Spent(name, days, *epsilons(anywhere), *epsilons(aligned)))
    count, own = fewest_packets(settled.packets), float(given(certify(settled.table).epsilon_record))
    shuffled: list[Any] = [count]
    for of_a_person in most(given(asked.every)):
        known = count and 1 <= of_a_person <= MOST_TOGETHER
        shuffled += [of_a_person, group_epsilon(own, count, asked.delta, of_a_person) if known else None]
    return Protects(tuple(found), Shuffled(*shuffled), asked.delta)


def most_releases(schedule: Schedule, period: int, days: int) -> int:
    """Return the most releases within days that begin with a budget period."""
    return int(_from_start(schedule, schedule.slots // period * days))


def most_anywhere(schedule: Schedule, period: int, days: int) -> int:
    """Return the most releases within days that begin with any record; `first` records of them end a period."""
    records = schedule.slots // period * days
    first = np.arange(min(schedule.slots, records + 1))
    return int((_within_period(schedule, first) + _from_start(schedule, records - first)).max())


def _from_start(schedule: Schedule, records: Any) -> Any:
    """Return the most releases in `records` records of which the first begins a period."""
    whole, rest = records // schedule.slots, records % schedule.slots
    return whole * min(schedule.allowed, schedule.slots) + _within_period(schedule, rest)


def _within_period(schedule: Schedule, records: Any) -> Any:
    """Return the most releases in `records` consecutive records of one period.

    Each stratum has one release, so k releases take k strata. All but the two at the ends are within the records, and
    k - 2 consecutive strata have at least floor((k-2)·slots/allowed) slots for any rotation of the period; of the two
    at the ends a slot each is enough. So the most is the largest k, up to `allowed`, with
    floor((k-2)·slots/allowed) <= records - 2, which is ceil((records-1)·allowed/slots) + 1.
    """
    allowed = min(schedule.allowed, schedule.slots)
    most = -(-(records - 1) * allowed // schedule.slots) + 1
    return np.maximum(0, np.minimum(np.minimum(records, allowed), most))


def fewest_packets(expected: Fraction) -> int:
    """Return as many packets as almost every estimate has, at least 1; 0 where less than one is expected."""
    if expected < 1:
        return 0
    return min(MOST_PACKETS, max(1, math.floor(float(expected) - FEWER * math.sqrt(expected))))


def group_epsilon(epsilon0: float, n: int, delta: float, packets: int = 1) -> float:
    """Return the epsilon at `delta` of a person with `packets` of n shuffled packets, each of epsilon0.

    Group privacy: if one packet changed is (e, d), then P <= exp(e)·P' + d <= exp(e)·(exp(e)·P'' + d) + d for two, and
    so on: k packets are (k·e, d·(1 + exp(e) + … + exp((k-1)·e))). Take the smallest e whose delta is small enough.
    """
    if type(packets) is not int or packets < 1:
        raise InputError(f"a person has {packets} packets; give a whole number of 1 or more.")
    if packets == 1:
        return shuffled_epsilon(epsilon0, n, delta)

    def enough(epsilon: float) -> bool:
        times = sum(math.exp(step * epsilon) for step in range(packets))
        return shuffled_delta(epsilon0, n, epsilon) * times <= delta

    low, high = 0.0, float(epsilon0)  # where delta is 0
    while high - low > NEAR * epsilon0 * min(1.0, high):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return packets * high


def privacy_lines(settled: Settled, found: Protects) -> list[Line]:
    """Return the lines of a plan about privacy."""
    schedule = (
        f"sensorsim.device.schedule.Schedule({settled.schedule.slots}, {settled.schedule.allowed}), "
        f"{settled.asked.budget_days}"
    )
    record, *spans = found.spent
    made = [Line(f"epsilon of a {record.name}", record.basic, "epsilon, delta 0", f"float({CERTIFIED})")]
    for one in spans:
        any_start = "", "sensorsim.planning.most_anywhere", one.releases, one.basic, one.at_delta
        aligned = one.aligned_releases, one.aligned_basic, one.aligned_at_delta
        for words, most, releases, basic, at_delta in (
            any_start,
            (", aligned", "sensorsim.planning.most_releases", *aligned),
        ):
            of, within = f"of a person in a {one.name}{words}", f"in {counted(given(one.days), 'day')}"
            how = f"sensorsim.accounting.composition.of_releases(table, {releases}, {found.delta!r})"
            made.append(Line(f"releases {of}", releases, within, f"{most}({schedule}, {one.days})"))
            made.append(Line(f"epsilon {of}, basic", basic, "epsilon, delta 0", f"{how}[0]"))
            unit = f"epsilon at delta {found.delta:g}"
            made.append(Line(f"epsilon {of}, by distributions", at_delta, unit, f"{how}[1]"))
    shuffled, delta = found.shuffled, found.delta
    anywhere = "begun anywhere", shuffled.of_a_person, shuffled.epsilon
    for when, packets, epsilon in (anywhere, ("aligned", shuffled.aligned_of_a_person, shuffled.aligned_epsilon)):
        if epsilon is not None:
            name = f"epsilon of a person in the days of an estimate, {when}, shuffled"
            how = f"sensorsim.planning.group_epsilon(float({CERTIFIED}), {shuffled.packets}, {delta!r}, {packets})"
            made.append(Line(name, epsilon, f"epsilon at delta {delta:g}, {WITHOUT_IDENTITY}", how))
    return made
