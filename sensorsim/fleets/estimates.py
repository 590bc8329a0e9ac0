"""Estimates of a simulated fleet compared with the truth, and distributions of spending and energy over devices.

An estimate is of one feature over some days, from the sums of received packets, as `hospital.Received` makes it. It is
compared with two truths, each with its interval: the mean of x over all records of these days, and the mean over the
records of which the feature was received.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.kernels.formats import ONE

if TYPE_CHECKING:
    from sensorsim.fleets.counts import Counts, Whole
    from sensorsim.fleets.energy import Board
    from sensorsim.fleets.settings import Settings
    from sensorsim.hospital.receiver import FeatureMean, Received, SketchMean

MOST_ESTIMATES = 200_000  # some milliseconds each
SKETCH = "sketch"  # name of the feature if one number of a record is released
QUANTILES = {"least": 0.0, "5 %": 0.05, "median": 0.5, "95 %": 0.95, "most": 1.0}
DELTA = 1e-6
NANOJOULES_PER_JOULE = 10**9
NANOJOULES_PER_MICROJOULE = 1000


@dataclass(frozen=True)
class Estimate:
    """Estimate of a feature over days first_day … first_day + days - 1, the first day being 1; values in 0 … 1.

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
        """Return half the width of the people's interval."""
        return (self.high - self.low) / 2

    @property
    def error(self) -> float | None:
        return None if self.mean is None or self.truth is None else self.mean - self.truth


@dataclass(frozen=True)
class Coverage:
    """How many intervals hold the truth, with a confidence interval of that share (Clopper and Pearson)."""

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
        """Return the 95 % confidence interval of the share."""
        from scipy.special import betaincinv

        from sensorsim.hospital.confidence import TAIL

        hits, misses = self.covered, self.intervals - self.covered
        low = float(betaincinv(hits, misses + 1, TAIL)) if hits else 0.0
        return low, float(betaincinv(hits + 1, misses, 1 - TAIL)) if misses else 1.0


def number_of(settings: "Settings", every: int) -> int:
    """Return how many estimates of `every` days there are; refuse none, and so many that they would take hours."""
    if type(every) is not int or every < 1:
        raise InputError(f"an estimate of {every} days is not possible; give a whole number of 1 or more.")
    if settings.firmware.sketch is not None:
        return 1
    number = -(-settings.days // every) * settings.firmware.features
    if number > MOST_ESTIMATES:
        least = -(-settings.days // (MOST_ESTIMATES // settings.firmware.features))
        raise InputError(f"these are {number} estimates; at most {MOST_ESTIMATES} are made: give --every {least}.")
    return number


def estimates(
    settings: "Settings", counts: "Counts", every: int, progress: Callable[[int], None] = lambda made: None
) -> tuple[Estimate, ...]:
    """Estimate each feature over each `every` days, and over the rest; a sketch once over all days."""
    from sensorsim.fleets.counts import total

    number_of(settings, every)
    sketch = settings.firmware.sketch
    every = settings.days if sketch else every
    made: list[Estimate] = []
    for first in range(0, settings.days, every):
        days, length = slice(first, first + every), min(every, settings.days - first)
        came = received(settings, total(counts.tally[days]))
        records, truth, behind = (total(each[days]) for each in (counts.records, counts.truth, counts.behind))
        rows: list[tuple[int, str, int, FeatureMean | SketchMean]] = [
            (row.feature, name, row.count, row)
            for row, name in zip(came.features, settings.people.columns if came.features else (), strict=True)
        ]
        if came.sketched is not None:
            rows, behind = [(0, SKETCH, counts.outcome("received"), came.sketched)], [behind.sum()]
        for feature, name, count, row in rows:
            truths = _share(truth[feature], records), _share(behind[feature], count)
            about = feature, name, first + 1, length, length == every
            made.append(_estimate(settings, about, (count, row.mean, row.low, row.high), *truths))
            progress(len(made))
    return tuple(made)


def received(settings: "Settings", tally: Any) -> "Received":
    """Return what the hospital received, from the sums of each feature or direction."""
    from sensorsim.hospital.packets import Expected
    from sensorsim.hospital.receiver import Received
    from sensorsim.hospital.sum_files import Statistics

    firmware = settings.firmware
    return Received(firmware.table, Statistics.of_tally(Expected(firmware), tally), firmware.sketch)


def _estimate(
    settings: "Settings",
    about: tuple[int, str, int, int, bool],
    came: tuple[int, float | None, float, float],
    truth: float | None,
    truth_of_records: float | None,
) -> Estimate:
    """Make an estimate; `came` is the hospital's, of a sketch on the scale 0 … R², truths are in 0 … 1."""
    from sensorsim.hospital.confidence import PEOPLE, law_of, mean_interval, spread_of_people

    law, sketch = law_of(settings.firmware.table), settings.firmware.sketch
    scale = sketch.root**2 if sketch else 1.0
    count, mean, low_of_records, high_of_records = came
    low, high = (scale * end for end in mean_interval(law, (mean or 0.0) / scale, count, PEOPLE))
    foretold = None if truth is None or not count else scale * spread_of_people(law, truth) / math.sqrt(count)
    true, true_of_records = (None if each is None else scale * each for each in (truth, truth_of_records))
    covered = None if true is None or not count else low <= true <= high
    inside = None if true_of_records is None else low_of_records <= true_of_records <= high_of_records
    own = (low_of_records, high_of_records, true_of_records, inside)
    return Estimate(*about, count, mean, low, high, true, covered, *own, foretold)


def _share(total: int, count: int) -> float | None:
    """Return the mean of `count` values of x, in 0 … 1."""
    return total / count / ONE if count else None


# ---- distributions over devices


@dataclass(frozen=True, eq=False)
class Spread:
    """A histogram over devices: bin i covers begins(i)·step to begins(i + 1)·step - 1. Quantiles are rounded up."""

    devices: "Whole"
    step: int
    begins: Callable[[int], int] = int  # bins of one step each

    def quantile(self, share: float) -> int:
        """Return a value that at least this share of the devices does not exceed."""
        upto = self.devices.cumsum()
        every = int(upto[-1])
        rank = min(max(math.ceil(share * every), 1), every)
        place = int(upto.searchsorted(rank)) if every else 0
        return self.begins(place + 1) * self.step - 1

    def quantiles(self) -> dict[str, int]:
        return {name: self.quantile(share) for name, share in QUANTILES.items()}

    @property
    def overflows(self) -> bool:
        """Return whether the last bin, which holds all larger values, has devices."""
        return bool(self.devices[-1])


@dataclass(frozen=True)
class Wear:
    """Releases of a person over all days, and their epsilon: basic, and at delta by privacy-loss distributions."""

    delta: float
    median_releases: int
    median_basic: float
    median_at_delta: float
    most_releases: int
    most_basic: float
    most_at_delta: float


@dataclass(frozen=True, eq=False)
class Used:
    """Energy of devices over all days, in nanojoules: an exact mean, and quantiles to a bin of the histogram."""

    spread: Spread
    mean: float
    days: int
    parts: dict[str, float]  # of the mean: releases, openings, stores

    def share(self, board: "Board | None", nanojoule: float) -> float | None:
        """Return the share of a battery charge."""
        return None if board is None or not board.joule else nanojoule / NANOJOULES_PER_JOULE / board.joule

    def to_dict(self, board: "Board | None") -> dict[str, Any]:
        named = {} if board is None else {"chip": board.chip, "radio": board.radio, "battery_mah": board.battery_mah}
        quantiles = {name: nanojoule / NANOJOULES_PER_MICROJOULE for name, nanojoule in self.spread.quantiles().items()}
        return {
            **named,
            "mean_uJ": self.mean / NANOJOULES_PER_MICROJOULE,
            "mean_uJ_per_day": self.mean / NANOJOULES_PER_MICROJOULE / self.days,
            "parts_uJ": {name: nanojoule / NANOJOULES_PER_MICROJOULE for name, nanojoule in self.parts.items()},
            "devices_uJ": quantiles,
            "step_uJ": self.spread.step / NANOJOULES_PER_MICROJOULE,
            "most_is_at_least": self.spread.overflows,
            "share_of_battery": self.share(board, self.mean),
        }
