"""Whether sums can be those of a fleet: a file may have been altered, and an altered one must not pass for a result."""

from typing import TYPE_CHECKING

from sensorsim.fleet.counts import (
    BAD_CLOCK,
    CUT,
    LOST,
    PASSED,
    RECEIVED,
    RECORDS,
    RELEASED,
    RESETS,
    SENT,
    SPENT,
    STUCK,
    Counts,
    total,
)
from sensorsim.kernels.formats import ONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sensorsim.fleet.counts import Whole
    from sensorsim.fleet.settings import Settings


def unsound(settings: "Settings", counts: Counts, devices: int) -> str | None:
    """The first of what no `devices` of these settings can have added up to; None where there is nothing."""
    return next((why for why, sound in _checks(settings, counts, devices) if not sound), None)


def _checks(settings: "Settings", counts: Counts, devices: int) -> "Iterator[tuple[str, bool]]":
    """One after the other: later ones rest on what earlier ones have bounded."""
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
    """All that devices made on each day; of a sketch, those that were released."""
    if settings.firmware.sketch is None:
        return bool((counts.records == often).all())
    return int(counts.records.max()) <= often and _all(counts.records) == int(counts.outcomes[RELEASED])


def _within(sums: "Whole", count: "Whole", most: int) -> bool:
    """Whether each is one of so many numbers from 0 to `most`; no product passes 2^63, as settings see to."""
    return bool((sums <= count * most).all())


def _squares_fit(tally: "Whole", limit: int) -> bool:
    count, values, squares = (tally[..., place] for place in range(3))
    span = count * limit
    return bool(((-span <= values) & (values <= span) & (abs(values) <= squares) & (squares <= span * limit)).all())


def _all(sums: "Whole") -> int:
    return int(total(sums.reshape(-1)))
