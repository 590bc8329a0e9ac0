"""Simulate devices over all their days: what an application does with each record, and what goes wrong.

Each device has random numbers of its own, so a batch is any range of devices.
"""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import fields
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sensorsim.device.flash import MODES
from sensorsim.fleets import board, chance
from sensorsim.fleets import counts as kept
from sensorsim.fleets.board import Draw, draw_of
from sensorsim.fleets.chance import fast
from sensorsim.fleets.counts import Counts
from sensorsim.fleets.settings import FIRST_PERIOD, GREEDY
from sensorsim.kernels.journal import SLOT_BYTES
from sensorsim.kernels.schedule import due as due_kernel
from sensorsim.language.numba_backend import OUTER, compiled
from sensorsim.language.numba_backend.jit import jit

if TYPE_CHECKING:
    import numpy.typing as npt

    from sensorsim.device.firmware import Firmware
    from sensorsim.fleets.settings import Settings

CUT_MODES = len(MODES)
OUTCOME = np.array(  # by status of the sensor: its place in `outcomes`
    [kept.RELEASED, kept.SPENT, kept.NO_ENTROPY, kept.NO_STORE, kept.BAD_JOURNAL, kept.BAD_CLOCK, kept.NO_ENTROPY]
)


_namedtuple: Any = namedtuple  # with fields that are no literals
# Where is counted: the arrays of `Counts`, those of a trace, and packets of the device at hand by period.
Sums = _namedtuple("Sums", [*(each.name for each in fields(Counts)), "sent", "packets", "by_period"])
# The settings as numbers: `often` is records a day, `period` days of a budget, `symbols` that they are counted.
Run = _namedtuple(
    "Run",
    "seed days often period slots allowed sampled groups symbols sketched reset cut loss stuck skew spent_step "
    "of_release of_open of_store energy_step first_epoch",
)


class Trace(NamedTuple):
    """Every packet that left a sensor, in the order of devices and records."""

    device: "npt.NDArray[np.int64]"
    record: "npt.NDArray[np.int64]"  # the number of the record: day * records_per_day + i
    received: "npt.NDArray[np.bool_]"
    packet: "npt.NDArray[np.uint8]"  # (packets, bytes)


def run_batch(settings: "Settings", first: int, last: int) -> Counts:
    """Return the sums of devices first … last - 1."""
    return _run(settings, first, last, 0)[0]


def trace(settings: "Settings", first: int, last: int) -> tuple[Trace, Counts]:
    """Return every packet of a few devices, and their sums."""
    counts, sent, packets = _run(settings, first, last, (last - first) * settings.days * settings.records_per_day)
    made = int(counts.outcomes[kept.RELEASED])
    return Trace(sent[:made, 0], sent[:made, 1], sent[:made, 2] != 0, packets[:made]), counts


def _run(settings: "Settings", first: int, last: int, traced: int) -> tuple[Counts, Any, Any]:
    """Return the sums of some devices, and (device, record, received) and the bytes of `traced` packets."""
    firmware, faults, people, prices = settings.firmware, settings.faults, settings.people, settings.prices
    counts = Counts.empty(settings)
    slots = settings.slots
    run = Run(
        seed=np.uint64(settings.seed), days=settings.days, often=settings.records_per_day, period=firmware.budget_days,
        slots=slots.slots, allowed=slots.allowed, sampled=slots.samples and settings.schedule != GREEDY,
        groups=settings.groups, symbols="limit" not in firmware.arguments, sketched=firmware.sketch is not None,
        reset=float(faults.reset_rate), cut=float(faults.power_cuts), loss=float(faults.loss),
        stuck=float(faults.stuck_entropy), skew=faults.clock_skew, spent_step=settings.spent_step,
        of_release=prices.release, of_open=prices.open, of_store=prices.store, energy_step=prices.step,
        first_epoch=settings.first_epoch,
    )  # fmt: skip
    live, draw = _live_of(firmware), draw_of(firmware)
    sent, packets = np.zeros((traced, 3), np.int64), np.zeros((traced, firmware.layout.bytes), np.uint8)
    sums = Sums(**counts.arrays(), sent=sent, packets=packets, by_period=np.zeros(settings.periods, np.int64))
    days = people.records, people.first, people.count
    live(first, last, run, days, board.device(firmware), draw.room, draw.bound, sums)
    return counts, sent, packets


_known: dict[tuple[bytes, tuple[str, ...]], Callable[..., Any]] = {}
_looking = Lock()


def _live_of(firmware: "Firmware") -> Callable[..., Any]:
    """Return the compiled loop for a firmware; compiling takes some ten seconds on first use."""
    key = firmware.identity, firmware.numbers
    with _looking:
        if key not in _known:
            _known[key] = loop(draw_of(firmware))
        return _known[key]


def loop(made: Draw) -> Callable[..., Any]:
    """Compile the loop over devices, days and records; later processes need not compile it."""
    blank, close, open_, count, look = board.steps()
    start, draw, sketch = made.start, made.draw, made.sketch
    due = compiled(due_kernel)
    random_bits, happens, one_of = chance.random_bits, chance.happens, chance.one_of

    @fast
    def set_clock(device: Any, run: Any) -> None:
        """Set the clock anew, some days off."""
        numbers = device.numbers
        off = one_of(2 * run.skew + 1, run.seed, numbers[board.NUMBER], chance.OF_SKEW, numbers[board.CLOCKS])
        numbers[board.SKEW] = off - run.skew
        numbers[board.CLOCKS] += 1

    @fast
    def count_release(device: Any, run: Any, room: Any, t: int) -> Any:
        """Return what the sensor answers before it draws: a status, or that the power went in its store."""
        numbers, who = device.numbers, device.numbers[board.NUMBER]
        if not device.open[0]:
            status = open_(device)
            start(device, room)
            if status != board.OK:
                return status
        if run.cut > 0 and happens(run.cut, run.seed, who, chance.OF_CUT, t):
            numbers[board.CUT_AT] = one_of(SLOT_BYTES, run.seed, who, chance.OF_CUT_PLACE, t)
            numbers[board.CUT_MODE] = one_of(CUT_MODES, run.seed, who, chance.OF_CUT_MODE, t)
        status = count(device)
        numbers[board.CUT_AT] = board.NEVER
        return status

    @fast
    def tally(run: Any, x: Any, room: Any, day: int, sums: Any) -> None:
        """Count a packet at the hospital."""
        group = day if run.groups > 1 else 0
        for j in range(len(room.y)):
            feature, y = np.int64(room.chosen[j]), np.int64(room.y[j])
            if run.symbols:
                sums.tally[group, feature, y] += 1
            else:
                sums.tally[group, feature, 0] += 1
                sums.tally[group, feature, 1] += y
                sums.tally[group, feature, 2] += y * y
            sums.behind[group, feature] += np.int64(room.u[0] if run.sketched else x[feature])

    @fast
    def send(device: Any, run: Any, x: Any, room: Any, bound: Any, t: int, sums: Any) -> None:
        """Draw the release that was counted, send it, and see whether it comes."""
        numbers, day = device.numbers, t // run.often
        draw(device, x, room, bound)
        numbers[board.SENT] += 1
        period = numbers[board.NOW] - run.first_epoch
        sums.by_period[period] += 1  # beside the journal, which may be wrong
        sums.worst[kept.SENT] = max(sums.worst[kept.SENT], sums.by_period[period])
        if run.sketched:
            sketch(x, room, bound)
            sums.records[day] += 1
            sums.truth[day, 0] += np.int64(room.u[0])
        came = not happens(run.loss, run.seed, numbers[board.NUMBER], chance.OF_LOSS, t)
        if came:
            tally(run, x, room, day, sums)
        sums.outcomes[kept.RECEIVED if came else kept.LOST] += 1
        if len(sums.sent):
            line = sums.outcomes[kept.RELEASED] - 1
            sums.sent[line, 0], sums.sent[line, 1], sums.sent[line, 2] = numbers[board.NUMBER], t, came
            for j in range(len(room.packet)):
                sums.packets[line, j] = room.packet[j]

    @fast
    def record(device: Any, run: Any, x: Any, room: Any, bound: Any, t: int, sums: Any) -> None:
        """Take one record of the application: released, passed over, refused or lost."""
        numbers, day = device.numbers, t // run.often
        if not run.sketched:
            sums.records[day] += 1
            for j in range(len(x)):
                sums.truth[day, j] += np.int64(x[j])
        own_day = FIRST_PERIOD * run.period + day + numbers[board.SKEW]
        epoch, slot = own_day // run.period, own_day % run.period * run.often + t % run.often
        if run.sampled and due(numbers[board.NUMBER], epoch, slot, run.slots, run.allowed) == 0:
            sums.outcomes[kept.PASSED] += 1
            return
        numbers[board.NOW] = epoch
        status = count_release(device, run, room, t)
        if status == board.CUT:
            sums.outcomes[kept.CUT] += 1
            set_clock(device, run)
            return
        sums.outcomes[OUTCOME[status]] += 1
        if status == board.OK:
            send(device, run, x, room, bound, t, sums)

    @fast
    def finish(device: Any, run: Any, sums: Any) -> None:
        """Add one device to the distributions; bins of energy are those of counts.py."""
        look(device)
        numbers = device.numbers
        sums.outcomes[kept.OPENS] += numbers[board.OPENS]
        sums.outcomes[kept.STORES] += numbers[board.STORES]
        total = numbers[board.SPENT_BEFORE] + numbers[board.SEEN_SPENT]
        sums.spent[min(total // run.spent_step, len(sums.spent) - 1)] += 1
        sums.worst[kept.JOURNAL] = max(sums.worst[kept.JOURNAL], numbers[board.WORST])
        used = numbers[board.SENT] * run.of_release + numbers[board.OPENS] * run.of_open
        used += numbers[board.STORES] * run.of_store
        bin_, octave = min(used // run.energy_step, kept.MOST_STEPS - 1), 0
        while bin_ >= kept.EVEN:
            bin_ >>= 1
            octave += 1
        sums.energy[bin_ + octave * kept.OF_AN_OCTAVE] += 1

    def live(first: int, last: int, run: Any, people: Any, device: Any, room: Any, bound: Any, sums: Any) -> None:
        records, first_rows, row_counts = people
        numbers = device.numbers
        for number in range(first, last):
            blank(device, random_bits(run.seed, number, chance.OF_ENTROPY, 0))
            numbers[board.NUMBER] = number
            sums.by_period[:] = 0
            set_clock(device, run)
            stuck_from = run.days
            if happens(run.stuck, run.seed, number, chance.OF_STUCK, 0):
                stuck_from = one_of(run.days, run.seed, number, chance.OF_STUCK_DAY, 0)
                sums.outcomes[kept.STUCK] += 1
            person = number % len(first_rows)
            row, rows = first_rows[person], row_counts[person]
            place = one_of(rows, run.seed, number, chance.OF_START, 0)
            for day in range(run.days):
                numbers[board.STUCK] = day >= stuck_from
                if run.reset > 0 and happens(run.reset, run.seed, number, chance.OF_RESET, day):
                    close(device)
                    sums.outcomes[kept.RESETS] += 1
                    set_clock(device, run)
                for t in range(day * run.often, (day + 1) * run.often):
                    record(device, run, records[row + place], room, bound, t, sums)
                    place = place + 1 if place + 1 < rows else 0
            finish(device, run, sums)
        sums.outcomes[kept.RECORDS] += (last - first) * run.days * run.often

    return jit(live, kept=True, **OUTER)
