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
        shapes = {
            "tally": (settings.groups, features, settings.columns),
            "behind": (settings.groups, features),
            "truth": (settings.days, n),
            "records": settings.days,
            "outcomes": len(OUTCOMES),
            "spent": settings.spent_bins,
            "worst": 2,
            "energy": ENERGY_BINS,
        }
        return cls(**{name: np.zeros(shape, np.int64) for name, shape in shapes.items()})

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


def find_inconsistency(settings: "Settings", counts: Counts, devices: int) -> str | None:
    """Return the first reason why no `devices` of these settings can have these sums; None if they can."""
    return next((why for why, sound in _checks(settings, counts, devices) if not sound), None)


def _checks(settings: "Settings", counts: Counts, devices: int) -> Iterator[tuple[str, Any]]:
    """Yield reasons and whether each check passes; later checks rely on bounds of earlier ones.

    Settings bound all products below 2^63.
    """
    summed, sketched = "limit" in settings.firmware.arguments, settings.firmware.sketch is not None
    often = devices * settings.records_per_day
    signed = (counts.tally[..., :1], counts.tally[..., 2:]) if summed else (counts.tally,)  # sums may be below 0
    arrays = [array for name, array in counts.arrays().items() if name != "tally"]
    yield "a sum below 0", all(int(array.min()) >= 0 for array in (*arrays, *signed) if array.size)
    yield "devices that are not those of its batches", {_all(counts.spent), _all(counts.energy)} == {devices}
    found: list[int] = counts.outcomes.tolist()
    parts = found[PASSED] + found[RELEASED] + sum(found[SPENT : BAD_CLOCK + 1]) + found[CUT]
    adds_up = often * settings.days == found[RECORDS] == parts and found[RELEASED] == found[LOST] + found[RECEIVED]
    of_devices = found[RESETS] <= devices * settings.days and found[STUCK] <= devices
    yield "outcomes that do not add up", adds_up and of_devices
    values = counts.tally[..., 0] if summed else counts.tally  # of each symbol, or of all
    yield "more values than records", int(values.max()) <= devices * settings.most_values
    values = values if summed else values.sum(axis=-1)
    yield "more values than records", int(values.max()) <= devices * settings.most_values
    yield "values that are not those of its packets", _all(values) == settings.firmware.k * found[RECEIVED]
    if sketched:  # only released records are counted
        counted = int(counts.records.max()) <= often and _all(counts.records) == found[RELEASED]
    else:
        counted = bool((counts.records == often).all())
    yield "records that are not those of its days", counted
    yield "truths that no records have", (counts.truth <= counts.records[:, None] * ONE).all()
    yield "truths that no values have", (counts.behind <= values * ONE).all()
    if summed:
        count, total_, squares = (counts.tally[..., place] for place in range(3))
        span = count * settings.limit
        fit = (-span <= total_) & (total_ <= span) & (abs(total_) <= squares) & (squares <= span * settings.limit)
        yield "squares that no values have", fit.all()
    yield "more packets than records", int(counts.worst[SENT]) <= settings.days * settings.records_per_day


def _all(sums: Whole) -> int:
    return int(total(sums.reshape(-1)))
