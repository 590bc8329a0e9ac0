"""What a hospital would say of a simulated fleet, held against the truth that only a simulation knows.

An estimate is of one feature over some days, from the sums of the packets that came, as `hospital.Received` makes it.
There are two truths. That of the people is the mean of x over all records of these days, be they released or not: what
somebody asks for. That of the records is the mean over those of which the feature came. Each has its interval.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sensorsim.errors import InputError
from sensorsim.kernels.formats import ONE

if TYPE_CHECKING:
    from sensorsim.fleet.counts import Counts
    from sensorsim.fleet.settings import Settings
    from sensorsim.hospital.receiver import Received

MOST_ESTIMATES = 200_000  # some milliseconds each
SKETCH = "sketch"  # the feature's name where one number of a record is released


@dataclass(frozen=True)
class Estimate:
    """One feature over days first_day … first_day + days - 1, the first day being 1; values in 0 … 1.

    Of a sketch they are those of u·R² in 0 … R², over all days, and the people's truth is that of what was released.
    """

    feature: int
    name: str
    first_day: int
    days: int
    whole: bool  # as many days as an estimate has
    count: int  # values that came
    mean: float | None  # None where nothing came
    low: float  # of the people's interval
    high: float
    truth: float | None  # None where there was no record
    covered: bool | None  # None where nothing came, or there is no truth
    low_of_records: float
    high_of_records: float
    truth_of_records: float | None
    covered_of_records: bool | None
    foretold_sd: float | None  # of mean - truth for the worst people of that mean

    @property
    def half(self) -> float:
        """Half the width of the people's interval."""
        return (self.high - self.low) / 2

    @property
    def error(self) -> float | None:
        return None if self.mean is None or self.truth is None else self.mean - self.truth


@dataclass(frozen=True)
class Coverage:
    """How many intervals hold the truth, with the limits that chance leaves to that share (Clopper and Pearson)."""

    intervals: int
    covered: int

    @classmethod
    def of(cls, every: Sequence[bool | None]) -> "Coverage":
        return cls(sum(one is not None for one in every), sum(one is True for one in every))

    @property
    def share(self) -> float | None:
        return self.covered / self.intervals if self.intervals else None

    @property
    def limits(self) -> tuple[float, float]:
        """95 % of them."""
        from scipy.special import betaincinv

        from sensorsim.hospital.confidence import TAIL

        hits, misses = self.covered, self.intervals - self.covered
        low = float(betaincinv(hits, misses + 1, TAIL)) if hits else 0.0
        return low, float(betaincinv(hits + 1, misses, 1 - TAIL)) if misses else 1.0


def number_of(settings: "Settings", every: int) -> int:
    """Estimates over `every` days each; refuses what no estimate can be, and what would take hours."""
    if type(every) is not int or every < 1:
        raise InputError(f"an estimate of {every} days is not possible; give a whole number of 1 or more.")
    if settings.firmware.sketch is not None:
        return 1
    periods = -(-settings.days // every)
    number = periods * settings.firmware.features
    if number > MOST_ESTIMATES:
        least = -(-settings.days // (MOST_ESTIMATES // settings.firmware.features))
        raise InputError(
            f"{periods} periods of {settings.firmware.features} features are {number} estimates; at most "
            f"{MOST_ESTIMATES} are made: give --every {least} or more."
        )
    return number


def estimates(
    settings: "Settings", counts: "Counts", every: int, progress: Callable[[int], None] = lambda made: None
) -> tuple[Estimate, ...]:
    """Each feature over each `every` days, the last of which may be fewer; of a sketch one over all days."""
    number_of(settings, every)
    if settings.firmware.sketch is not None:
        return (_of_sketch(settings, counts),)
    made: list[Estimate] = []
    for first in range(0, settings.days, every):
        for one in _of_days(settings, counts, first, every):
            made.append(one)
            progress(len(made))
    return tuple(made)


def received(settings: "Settings", tally: Any) -> "Received":
    """What the hospital has, from sums of a feature (or direction) each."""
    from sensorsim.hospital.packet_tally import Expected
    from sensorsim.hospital.receiver import Received
    from sensorsim.hospital.sufficient_statistics import Statistics

    firmware = settings.firmware
    return Received(firmware.table, Statistics.of_tally(Expected(firmware), tally), firmware.sketch)


def _of_days(settings: "Settings", counts: "Counts", first: int, every: int) -> Iterator[Estimate]:
    from sensorsim.fleet.counts import total

    days = slice(first, first + every)
    came = received(settings, total(counts.tally[days]))
    records, truth, behind = (total(each[days]) for each in (counts.records, counts.truth, counts.behind))
    length = min(every, settings.days - first)
    for row, name in zip(came.features, settings.people.columns, strict=True):
        about = row.feature, name, first + 1, length, length == every
        true = _share(truth[row.feature], records)
        true_of_records = _share(behind[row.feature], row.count)
        yield _made(settings, about, (row.count, row.mean, row.low, row.high), true, true_of_records, 1.0)


def _of_sketch(settings: "Settings", counts: "Counts") -> Estimate:
    from sensorsim.fleet.counts import total

    came = received(settings, total(counts.tally)).sketched
    assert came is not None
    count = counts.outcome("received")
    true = _share(total(counts.truth[:, 0]), total(counts.records))
    true_of_records = _share(total(counts.behind[0]), count)
    about = 0, SKETCH, 1, settings.days, True
    return _made(settings, about, (count, came.mean, came.low, came.high), true, true_of_records, came.root**2)


def _made(
    settings: "Settings",
    about: tuple[int, str, int, int, bool],
    came: tuple[int, float | None, float, float],
    truth: float | None,
    truth_of_records: float | None,
    scale: float,
) -> Estimate:
    """`came` is what the hospital says, on the scale 0 … `scale`; truths are in 0 … 1."""
    from sensorsim.hospital.confidence import PEOPLE, law_of, mean_interval, spread_of_people

    law = law_of(settings.firmware.table)
    count, mean, low_of_records, high_of_records = came
    low, high = (scale * end for end in mean_interval(law, (mean or 0.0) / scale, count, PEOPLE))
    foretold = None if truth is None or not count else scale * spread_of_people(law, truth) / math.sqrt(count)
    true, true_of_records = (None if each is None else scale * each for each in (truth, truth_of_records))
    covered = None if true is None or not count else low <= true <= high
    inside = None if true_of_records is None else low_of_records <= true_of_records <= high_of_records
    own = (low_of_records, high_of_records, true_of_records, inside)
    return Estimate(*about, count, mean, low, high, true, covered, *own, foretold)


def _share(total: int, count: int) -> float | None:
    """The mean of so many x, in 0 … 1."""
    return total / count / ONE if count else None
