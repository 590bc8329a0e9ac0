"""The sums of a fleet: whole numbers, so that neither order nor division of the work changes them.

`find_inconsistency` checks sums from a file: an altered file must not pass for a result.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim.kernels.formats import ONE

if TYPE_CHECKING:
    from sensorsim.fleets.settings import Settings

Whole = npt.NDArray[np.int64]

# Outcomes of records and devices, in the order of `outcomes`.
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
# Bins of energy: one step wide up to EVEN of them, then twice as wide in each octave. So a device that takes ten
# thousand times as much as another has its bin, and no bin is wider than 1/256 of its energy.
EVEN, OF_AN_OCTAVE, OCTAVES = 512, 256, 14
ENERGY_BINS = EVEN + OCTAVES * OF_AN_OCTAVE
MOST_STEPS = EVEN << OCTAVES  # where the last bin ends


@dataclass(frozen=True, eq=False)
class Counts:
    """Sums over some devices, as arrays.

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
        """Add the sums of other devices."""
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
    """Return the first step of energy in a bin; a bin ends where the next one begins."""
    if bin_ < EVEN:
        return bin_
    octave, place = divmod(bin_ - EVEN, OF_AN_OCTAVE)
    return OF_AN_OCTAVE + place << octave + 1


def total(sums: Whole) -> Any:
    """Sum over the first axis (days) without overflow: squares of stairs of many days pass 2^63."""
    high, low = (sums >> 32).sum(axis=0), (sums & 0xFFFFFFFF).sum(axis=0)
    return high.astype(object) * 2**32 + low.astype(object) if sums.ndim > 1 else int(high) * 2**32 + int(low)


# ---- consistency


def find_inconsistency(settings: "Settings", counts: Counts, devices: int) -> str | None:
    """Return the first reason why no `devices` of these settings can have these sums; None if they can."""
    return next((why for why, sound in _checks(settings, counts, devices) if not sound), None)


def _checks(settings: "Settings", counts: Counts, devices: int) -> Iterator[tuple[str, bool]]:
    """Yield reasons and whether each check passes; later checks rely on bounds of earlier ones."""
    summed = "limit" in settings.firmware.arguments
    often = devices * settings.records_per_day
    signed = (counts.tally[..., :1], counts.tally[..., 2:]) if summed else (counts.tally,)  # sums may be below 0
    arrays = [array for name, array in counts.arrays().items() if name != "tally"]
    yield "a sum below 0", all(int(array.min()) >= 0 for array in (*arrays, *signed) if array.size)
    yield "devices that are not those of its batches", {_all(counts.spent), _all(counts.energy)} == {devices}
    yield "outcomes that do not add up", _outcomes_add_up(settings, counts, devices)
    values = counts.tally[..., 0] if summed else counts.tally  # of each symbol, or of all
    yield "more values than records", int(values.max()) <= devices * settings.most_values
    values = values if summed else values.sum(axis=-1)
    yield "more values than records", int(values.max()) <= devices * settings.most_values
    came, most = _all(values), settings.firmware.k * int(counts.outcomes[RECEIVED])
    yield "values that are not those of its packets", came == most
    yield "records that are not those of its days", _records_add_up(settings, counts, often)
    yield "truths that no records have", _within(counts.truth, counts.records[:, None], ONE)
    yield "truths that no values have", _within(counts.behind, values, ONE)
    yield "squares that no values have", not summed or _squares_fit(counts.tally, settings.limit)
    yield "more packets than records", int(counts.worst[SENT]) <= settings.days * settings.records_per_day


def _outcomes_add_up(settings: "Settings", counts: Counts, devices: int) -> bool:
    found: list[int] = counts.outcomes.tolist()
    records = devices * settings.days * settings.records_per_day
    refused = sum(found[SPENT : BAD_CLOCK + 1])
    parts = found[PASSED] + found[RELEASED] + refused + found[CUT]
    of_devices = found[RESETS] <= devices * settings.days and found[STUCK] <= devices
    return records == found[RECORDS] == parts and found[RELEASED] == found[LOST] + found[RECEIVED] and of_devices


def _records_add_up(settings: "Settings", counts: Counts, often: int) -> bool:
    """Check the records of each day: all that devices made, or for a sketch those that were released."""
    if settings.firmware.sketch is None:
        return bool((counts.records == often).all())
    return int(counts.records.max()) <= often and _all(counts.records) == int(counts.outcomes[RELEASED])


def _within(sums: Whole, count: Whole, most: int) -> bool:
    """Check that each sum can be one of `count` numbers from 0 to `most`; settings bound the products below 2^63."""
    return bool((sums <= count * most).all())


def _squares_fit(tally: Whole, limit: int) -> bool:
    count, values, squares = (tally[..., place] for place in range(3))
    span = count * limit
    return bool(((-span <= values) & (values <= span) & (abs(values) <= squares) & (squares <= span * limit)).all())


def _all(sums: Whole) -> int:
    return int(total(sums.reshape(-1)))
