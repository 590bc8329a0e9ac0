"""Simulate devices over all their days; each has random numbers of its own, so a batch is any range of devices."""

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sensorsim.fleets import board
from sensorsim.fleets.counts import RELEASED, Counts
from sensorsim.fleets.draw import draw_of
from sensorsim.fleets.loop import Days, Run, Sums, loop
from sensorsim.fleets.settings import GREEDY

if TYPE_CHECKING:
    import numpy.typing as npt

    from sensorsim.device.firmware import Firmware
    from sensorsim.fleets.settings import Settings


class Trace(NamedTuple):
    """Every packet that left a sensor, in the order of devices and records."""

    device: "npt.NDArray[np.int64]"
    record: "npt.NDArray[np.int64]"  # the number of the record: day * records_per_day + i
    received: "npt.NDArray[np.bool_]"
    packet: "npt.NDArray[np.uint8]"  # (packets, bytes)


def run_batch(settings: "Settings", first: int, last: int) -> Counts:
    """Return the sums of devices first … last - 1."""
    counts = Counts.empty(settings)
    _run(settings, first, last, counts, 0)
    return counts


def trace(settings: "Settings", first: int, last: int) -> tuple[Trace, Counts]:
    """Return every packet of a few devices, and their sums."""
    counts = Counts.empty(settings)
    most = (last - first) * settings.days * settings.records_per_day
    told, packets = _run(settings, first, last, counts, most)
    made = int(counts.outcomes[RELEASED])
    told, packets = told[:made], packets[:made]
    return Trace(told[:, 0], told[:, 1], told[:, 2] != 0, packets), counts


def _run(settings: "Settings", first: int, last: int, counts: Counts, room: int) -> tuple[Any, Any]:
    live, draw = _live_of(settings.firmware), draw_of(settings.firmware)
    people = settings.people
    told, packets = np.zeros((room, 3), np.int64), np.zeros((room, settings.firmware.layout.bytes), np.uint8)
    by_period = np.zeros(settings.periods, np.int64)
    sums = Sums(**counts.arrays(), told=told, packets=packets, by_period=by_period)
    days = Days(people.records, people.first, people.count)
    live(first, last, _numbers(settings), days, board.device(settings.firmware), draw.room, draw.bound, sums)
    return told, packets


def _numbers(settings: "Settings") -> Run:
    firmware, faults, slots = settings.firmware, settings.faults, settings.slots
    return Run(
        np.uint64(settings.seed),
        settings.days,
        settings.records_per_day,
        firmware.budget_days,
        slots.slots,
        slots.allowed,
        slots.samples and settings.schedule != GREEDY,
        settings.groups,
        firmware.arguments.get("limit") is None,
        firmware.sketch is not None,
        *(float(faults.reset_rate), float(faults.power_cuts), float(faults.loss), float(faults.stuck_entropy)),
        faults.clock_skew,
        settings.spent_step,
        *settings.prices,
        settings.first_epoch,
    )


_known: dict[tuple[bytes, tuple[str, ...]], Callable[..., Any]] = {}
_looking = Lock()


def _live_of(firmware: "Firmware") -> Callable[..., Any]:
    """Return the compiled loop for a firmware; compiling takes some ten seconds on first use."""
    key = firmware.identity, firmware.numbers
    with _looking:
        if key not in _known:
            _known[key] = loop(draw_of(firmware))
        return _known[key]
