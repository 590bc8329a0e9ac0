"""The days of devices as Numba runs them: what an application does with each record, and what goes wrong."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sensorsim.device.flash import MODES
from sensorsim.fleets import board, chance
from sensorsim.fleets import counts as kept
from sensorsim.fleets.draw import Draw
from sensorsim.fleets.fast import fast, fast_and_kept
from sensorsim.fleets.settings import FIRST_PERIOD
from sensorsim.kernels.journal import SLOT_BYTES
from sensorsim.kernels.schedule import due as due_kernel
from sensorsim.language.numba_backend import compiled

CUT_MODES = len(MODES)
OUTCOME = np.array(  # of a status of the sensor: its place in `outcomes`
    [kept.RELEASED, kept.SPENT, kept.NO_ENTROPY, kept.NO_STORE, kept.BAD_JOURNAL, kept.BAD_CLOCK, kept.NO_ENTROPY]
)


class Run(NamedTuple):
    """The settings as numbers."""

    seed: Any
    days: int
    often: int  # records a day
    period: int  # days of a budget
    slots: int
    allowed: int
    sampled: bool
    groups: int
    symbols: bool  # else values, of which sums are kept
    sketched: bool
    reset: float
    cut: float
    loss: float
    stuck: float
    skew: int
    spent_step: int
    of_release: int
    of_open: int
    of_store: int
    energy_step: int
    first_epoch: int  # that a clock can show


class Days(NamedTuple):
    """The people's."""

    records: Any
    first: Any
    count: Any


class Sums(NamedTuple):
    """Where it is counted: the arrays of `Counts`, those of a trace, and packets of the device at hand by period."""

    tally: Any
    behind: Any
    truth: Any
    records: Any
    outcomes: Any
    spent: Any
    worst: Any
    energy: Any
    told: Any
    packets: Any
    by_period: Any


def loop(made: Draw) -> Callable[..., Any]:
    """Compile the days of devices with this draw."""
    blank, close, open_, count, look, forget = board.steps()
    draw, start, sketch = made.draw, made.start, made.sketch
    due = compiled(due_kernel)
    asked, happens, one_of = chance.asked, chance.happens, chance.one_of

    @fast
    def set_clock(device: Any, run: Any) -> None:
        """Set the clock anew, some days off."""
        numbers = device.numbers
        off = one_of(2 * run.skew + 1, run.seed, numbers[board.NUMBER], chance.OF_SKEW, numbers[board.CLOCKS])
        numbers[board.SKEW] = off - run.skew
        numbers[board.CLOCKS] += 1

    @fast
    def plan_cut(device: Any, run: Any, t: int) -> None:
        """Cut the power in the store of this release, if it makes one."""
        numbers = device.numbers
        who = numbers[board.NUMBER]
        if run.cut > 0 and happens(run.cut, run.seed, who, chance.OF_CUT, t):
            numbers[board.CUT_AT] = one_of(SLOT_BYTES, run.seed, who, chance.OF_CUT_PLACE, t)
            numbers[board.CUT_MODE] = one_of(CUT_MODES, run.seed, who, chance.OF_CUT_MODE, t)

    @fast
    def counted(device: Any, run: Any, room: Any, t: int) -> Any:
        """Return what the sensor answers before it draws: a status, or that the power went."""
        if not device.open[0]:
            status = open_(device)
            start(device, room)
            if status != board.OK:
                return status
        plan_cut(device, run, t)
        status = count(device)
        device.numbers[board.CUT_AT] = board.NEVER
        return status

    @fast
    def tallied(run: Any, x: Any, room: Any, day: int, sums: Any) -> None:
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
    def told(device: Any, room: Any, t: int, came: bool, sums: Any) -> None:
        """Keep the packet itself, for a trace."""
        line = sums.outcomes[kept.RELEASED] - 1
        sums.told[line, 0], sums.told[line, 1], sums.told[line, 2] = device.numbers[board.NUMBER], t, came
        for j in range(len(room.packet)):
            sums.packets[line, j] = room.packet[j]

    @fast
    def sent(device: Any, run: Any, x: Any, room: Any, bound: Any, t: int, sums: Any) -> None:
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
            tallied(run, x, room, day, sums)
        sums.outcomes[kept.RECEIVED if came else kept.LOST] += 1
        if len(sums.told):
            told(device, room, t, came, sums)

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
        status = counted(device, run, room, t)
        if status == board.CUT:
            sums.outcomes[kept.CUT] += 1
            set_clock(device, run)
            return
        sums.outcomes[OUTCOME[status]] += 1
        if status == board.OK:
            sent(device, run, x, room, bound, t, sums)

    @fast
    def bin_of(steps: int) -> Any:
        """Return the bin of an energy; see counts.py."""
        steps, octave = min(steps, kept.MOST_STEPS - 1), 0
        while steps >= kept.EVEN:
            steps >>= 1
            octave += 1
        return steps + octave * kept.OF_AN_OCTAVE

    @fast
    def ended(device: Any, run: Any, sums: Any) -> None:
        """Add one device to the distributions."""
        look(device)
        numbers = device.numbers
        sums.outcomes[kept.OPENS] += numbers[board.OPENS]
        sums.outcomes[kept.STORES] += numbers[board.STORES]
        total = numbers[board.SPENT_BEFORE] + numbers[board.SEEN_SPENT]
        sums.spent[min(total // run.spent_step, len(sums.spent) - 1)] += 1
        sums.worst[kept.JOURNAL] = max(sums.worst[kept.JOURNAL], numbers[board.WORST])
        used = numbers[board.SENT] * run.of_release + numbers[board.OPENS] * run.of_open
        used += numbers[board.STORES] * run.of_store
        sums.energy[bin_of(used // run.energy_step)] += 1

    @fast_and_kept
    def live(first: int, last: int, run: Any, people: Any, device: Any, room: Any, bound: Any, sums: Any) -> None:
        numbers = device.numbers
        for number in range(first, last):
            blank(device, asked(run.seed, number, chance.OF_ENTROPY, 0))
            numbers[board.NUMBER] = number
            forget(sums.by_period)
            set_clock(device, run)
            stuck_from = run.days
            if happens(run.stuck, run.seed, number, chance.OF_STUCK, 0):
                stuck_from = one_of(run.days, run.seed, number, chance.OF_STUCK_DAY, 0)
                sums.outcomes[kept.STUCK] += 1
            person = number % len(people.first)
            row, rows = people.first[person], people.count[person]
            place = one_of(rows, run.seed, number, chance.OF_START, 0)
            for day in range(run.days):
                numbers[board.STUCK] = day >= stuck_from
                if run.reset > 0 and happens(run.reset, run.seed, number, chance.OF_RESET, day):
                    close(device)
                    sums.outcomes[kept.RESETS] += 1
                    set_clock(device, run)
                for t in range(day * run.often, (day + 1) * run.often):
                    record(device, run, people.records[row + place], room, bound, t, sums)
                    place = place + 1 if place + 1 < rows else 0
            ended(device, run, sums)
        sums.outcomes[kept.RECORDS] += (last - first) * run.days * run.often

    return live
