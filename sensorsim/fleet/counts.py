"""All that is kept of a fleet: whole numbers that add up, so that neither order nor division of the work shows."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from sensorsim.fleet.settings import Settings

Whole = npt.NDArray[np.int64]

# What became of records and devices, in the order of `outcomes`.
OUTCOMES = (
    "records",  # that the application made
    "passed over",  # by the schedule
    "released",  # packets that left a sensor
    "lost",  # of those, on the air
    "received",  # of those, at the hospital
    "spent",  # refused: the budget of the period is spent
    "no entropy",  # refused: the sensor stays closed
    "no store",
    "bad journal",
    "bad clock",  # refused: the clock is behind the journal
    "cut",  # lost: the power went while it was counted
    "resets",
    "opens",
    "stores",
    "stuck devices",
)
RECORDS, PASSED, RELEASED, LOST, RECEIVED, SPENT, NO_ENTROPY, NO_STORE, BAD_JOURNAL, BAD_CLOCK, CUT = range(11)
RESETS, OPENS, STORES, STUCK = range(11, 15)
JOURNAL, SENT = range(2)  # of `worst`
# Bins of energy: as wide as a step up to EVEN of them, then those of an octave are twice as wide as those of the last.
# So a device that takes ten thousand times as much as another has its bin, and none is wider than 1/256 of what it is.
EVEN, OF_AN_OCTAVE, OCTAVES = 512, 256, 14
ENERGY_BINS = EVEN + OCTAVES * OF_AN_OCTAVE
MOST_STEPS = EVEN << OCTAVES  # where the last bin ends


@dataclass(frozen=True, eq=False)
class Counts:
    """Sums over some devices.

    tally     (groups, features, columns)  symbols received, or count, sum and sum of squares; groups are days
    behind    (groups, features)           sum of x in Q15 over the records of which a feature was received
    truth     (days, features)             sum of x over all records, be they released or not; of u for a sketch, whose
                                           only column then is that of released records
    records   (days,)                      how many that were
    outcomes  as OUTCOMES
    spent     (bins,)                      devices by the releases that their journals counted over all days, in steps
                                           of `settings.spent_step`
    worst     (2,)                         the most releases that a journal counted in one period, and the most packets
                                           that left a device while its clock showed one
    energy    (ENERGY_BINS,)               devices by the energy they used, in steps of `settings.prices.step`: see
                                           `begins`
    """

    tally: Whole
    behind: Whole
    truth: Whole
    records: Whole
    outcomes: Whole
    spent: Whole
    worst: Whole
    energy: Whole

    @classmethod
    def empty(cls, settings: "Settings") -> "Counts":
        firmware = settings.firmware
        features, n = firmware.features, 1 if firmware.sketch else firmware.features
        return cls(
            np.zeros((settings.groups, features, settings.columns), np.int64),
            np.zeros((settings.groups, features), np.int64),
            np.zeros((settings.days, n), np.int64),
            np.zeros(settings.days, np.int64),
            np.zeros(len(OUTCOMES), np.int64),
            np.zeros(settings.spent_bins, np.int64),
            np.zeros(2, np.int64),
            np.zeros(ENERGY_BINS, np.int64),
        )

    def add(self, other: "Counts") -> None:
        """Take in what others counted."""
        for name, mine in self.arrays().items():
            if name == "worst":
                np.maximum(mine, other.worst, out=mine)
            else:
                mine += getattr(other, name)

    def arrays(self) -> dict[str, Whole]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def outcome(self, name: str) -> int:
        return int(self.outcomes[OUTCOMES.index(name)])

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Counts) and all(
            np.array_equal(mine, getattr(other, name)) for name, mine in self.arrays().items()
        )


def begins(bin_: int) -> int:
    """The first step of energy that belongs to a bin; that of the next one is where it ends."""
    if bin_ < EVEN:
        return bin_
    octave, place = divmod(bin_ - EVEN, OF_AN_OCTAVE)
    return OF_AN_OCTAVE + place << octave + 1


def total(sums: Whole) -> Any:
    """Sums over the first axis (days) as whole numbers of any size: squares of stairs of many days pass 2^63."""
    high, low = (sums >> 32).sum(axis=0), (sums & 0xFFFFFFFF).sum(axis=0)
    return high.astype(object) * 2**32 + low.astype(object) if sums.ndim > 1 else int(high) * 2**32 + int(low)
