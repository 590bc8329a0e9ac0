"""A fleet by obvious steps: one device after the other, each a `sensorsim.device.Sensor` or its C on an emulated core.

Of sensorsim.fleets only the chances are shared, which are inputs: what befalls which device when. The packets are taken
apart by strings of bits, the journal is read from the bytes of the flash, and sums are dictionaries.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import naive_device
import naive_packets
import naive_sketch
import numpy as np

from sensorsim.device import Clock, Flash, PowerCut, SeededEntropy, Sensor, Status, StuckEntropy
from sensorsim.device.flash import MODES
from sensorsim.device.schedule import Schedule
from sensorsim.fleets import chance
from sensorsim.machine.emulated_sensor import EmulatedSensor

FIRST_PERIOD = 3650  # of the first day, for a clock that is right
REFUSALS = {
    Status.SPENT: "spent",
    Status.NO_ENTROPY: "no entropy",
    Status.NO_STORE: "no store",
    Status.BAD_JOURNAL: "bad journal",
    Status.BAD_CLOCK: "bad clock",
}


class Packet(NamedTuple):
    """A packet that left a sensor."""

    device: int
    record: int
    received: bool
    packet: bytes


@dataclass
class Told:
    """All results of a fleet, and every packet."""

    packets: list[Packet] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    tally: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    behind: Counter[tuple[int, int]] = field(default_factory=Counter)
    truth: Counter[tuple[int, int]] = field(default_factory=Counter)
    records: Counter[int] = field(default_factory=Counter)
    spent: list[int] = field(default_factory=list)  # of each device, over all periods
    energy: list[int] = field(default_factory=list)  # of each device
    worst: int = 0  # of a journal, in one period
    most_sent: int = 0  # packets of a device in one period of its clock


class Core:
    """The compiled sensor, handed from device to device. Its application remembers whether it is open."""

    def __init__(self, core: EmulatedSensor) -> None:
        self.core, self.is_open = core, False

    def board(self, flash: Flash, entropy: Callable[[int], bytes], clock: Clock) -> "Core":
        self.core.flash, self.core.entropy, self.core.epoch = flash, entropy, clock
        self.close()
        return self

    def close(self) -> None:
        """Reset: the memory holds garbage."""
        self.core.reset()
        self.is_open = False

    def open(self) -> Status:
        status = self.core.open()
        self.is_open = status == Status.OK
        return status

    def release(self, x: Any) -> tuple[Status, bytes]:
        try:
            status, packet = self.core.release(x)
        except PowerCut:
            self.is_open = False
            raise
        self.is_open = status not in (Status.BAD_JOURNAL, Status.NOT_OPEN)
        return status, packet


class Wearable:
    """One device with its person, its faults and the application that asks its sensor for releases."""

    def __init__(self, settings: Any, number: int, told: Told, core: Core | None = None) -> None:
        self.settings, self.number, self.told = settings, number, told
        self.seed = np.uint64(settings.seed)
        self.firmware, self.faults, people = settings.firmware, settings.faults, settings.people
        self.schedule = Schedule.of(self.firmware, settings.records_per_day)
        self.flash, self.clock = Flash(), Clock()
        self.source = SeededEntropy(int(chance.random_bits(self.seed, number, chance.OF_ENTROPY, 0)))
        self.stuck_from: int | None = None
        if self.happens(self.faults.stuck_entropy, chance.OF_STUCK, 0):
            self.stuck_from = self.one_of(settings.days, chance.OF_STUCK_DAY, 0)
        self.sensor: Any = (
            core.board(self.flash, self.entropy, self.clock)
            if core
            else Sensor(self.firmware, self.flash, self.entropy, self.clock)
        )
        person = number % len(people.first)
        begin, count = int(people.first[person]), int(people.count[person])
        self.worn = people.records[begin : begin + count].tolist()
        self.start = self.one_of(count, chance.OF_START, 0)
        self.clocks, self.opens, self.sent, self.day = 0, 0, 0, 0
        self.skew = self.next_skew()
        self.counted: dict[int, int] = {}  # releases by period, as the journal says
        self.sent_in: Counter[int] = Counter()  # packets by period, as the clock says

    # ── chances ──

    def happens(self, rate: float, question: int, number: int) -> bool:
        return bool(chance.happens(rate, self.seed, self.number, question, number))

    def one_of(self, count: int, question: int, number: int) -> int:
        return int(chance.one_of(count, self.seed, self.number, question, number))

    def next_skew(self) -> int:
        """Days that the clock is off from now on."""
        most = self.faults.clock_skew
        self.clocks += 1
        return self.one_of(2 * most + 1, chance.OF_SKEW, self.clocks - 1) - most

    def entropy(self, count: int) -> bytes:
        stuck = self.stuck_from is not None and self.day >= self.stuck_from
        return StuckEntropy(0x55)(count) if stuck else self.source(count)

    # ── days ──

    def live(self) -> None:
        settings, outcomes = self.settings, self.told.outcomes
        for self.day in range(settings.days):
            if self.happens(self.faults.reset_rate, chance.OF_RESET, self.day):
                self.sensor.close()
                self.skew = self.next_skew()
                outcomes["resets"] += 1
            for i in range(settings.records_per_day):
                self.wear(self.day * settings.records_per_day + i, i)
        outcomes["opens"] += self.opens
        outcomes["stores"] += self.flash.stores
        outcomes["stuck devices"] += self.stuck_from is not None
        prices = settings.prices
        self.told.energy.append(
            self.sent * prices.release + self.opens * prices.open + self.flash.stores * prices.store
        )
        self.told.spent.append(sum(self.counted.values()))
        self.told.worst = max(self.told.worst, *self.counted.values(), 0)
        self.told.most_sent = max(self.told.most_sent, *self.sent_in.values(), 0)

    def wear(self, t: int, i: int) -> None:
        """Make a record, and release it if it is due."""
        x = self.worn[(self.start + t) % len(self.worn)]
        self.told.outcomes["records"] += 1
        if not self.firmware.sketch:
            self.told.records[self.day] += 1
            self.told.truth.update({(self.day, feature): value for feature, value in enumerate(x)})
        days = self.firmware.budget_days
        self.clock.epoch, own_day = divmod(FIRST_PERIOD * days + self.day + self.skew, days)
        slot = own_day * self.settings.records_per_day + i
        if self.settings.schedule == "sampled" and not self.schedule.due(self.number, self.clock.epoch, slot):
            self.told.outcomes["passed over"] += 1
            return
        self.ask(x, t)
        self.look()

    def ask(self, x: list[int], t: int) -> None:
        """The application asks for a release."""
        outcomes = self.told.outcomes
        if not self.sensor.is_open:
            self.opens += 1
            status = self.sensor.open()
            if not self.sensor.is_open:
                outcomes[REFUSALS[status]] += 1
                return
        if self.happens(self.faults.power_cuts, chance.OF_CUT, t):
            place, mode = self.one_of(24, chance.OF_CUT_PLACE, t), self.one_of(4, chance.OF_CUT_MODE, t)
            self.flash.cut(place, MODES[mode], 0x55)
        try:
            status, packet = self.sensor.release(x)
        except PowerCut:
            outcomes["cut"] += 1
            self.skew = self.next_skew()
            assert not self.sensor.is_open
            return
        self.flash.never_cut()
        if status != Status.OK:
            assert not any(packet)
            outcomes[REFUSALS[status]] += 1
            return
        self.send(x, t, packet)

    def send(self, x: list[int], t: int, packet: bytes) -> None:
        told = self.told
        received = not self.happens(self.faults.loss, chance.OF_LOSS, t)
        told.packets.append(Packet(self.number, t, received, packet))
        told.outcomes["released"] += 1
        told.outcomes["received" if received else "lost"] += 1
        self.sent += 1
        self.sent_in[self.clock.epoch] += 1
        features, values = taken_apart(self.firmware, packet)
        behind = {feature: x[feature] for feature in features} if not self.firmware.sketch else {}
        if sketch := self.firmware.sketch:
            (direction,) = features
            behind[direction] = naive_sketch.sketch(x, sketch.centre, direction, sketch.factor, sketch.halvings)
            told.records[self.day] += 1
            told.truth[self.day, 0] += behind[direction]
        if not received:
            return
        group = 0 if sketch else self.day
        for feature, value in zip(features, values, strict=True):
            told.behind[group, feature] += behind[feature]
            sums = {value: 1} if "limit" not in self.firmware.arguments else {0: 1, 1: value, 2: value * value}
            told.tally.update({(group, feature, column): each for column, each in sums.items()})

    def look(self) -> None:
        """Note what the journal counts now."""
        slots = [self.flash.load(0), self.flash.load(1)]
        state, (epoch, spent), _ = naive_device.read_journal(slots, self.firmware.journal_identity)
        if state == "holds":
            self.counted[epoch] = max(spent, self.counted.get(epoch, 0))


def taken_apart(firmware: Any, packet: bytes) -> tuple[list[int], list[int]]:
    """Features and values of a packet, as a hospital reads them."""
    lift = firmware.arguments.get("limit", 0)
    bits = firmware.table.value_bits
    form = naive_packets.Form(firmware.identity, firmware.features, firmware.k, bits, 2**bits, lift)
    found = naive_packets.taken_apart(form, packet)
    assert not isinstance(found, str), found
    return found


def live(settings: Any, numbers: Iterable[int], core: Core | None = None) -> Told:
    """These devices over all their days; with a core, on the compiled sensor."""
    told = Told()
    for number in numbers:
        Wearable(settings, number, told, core).live()
    return told
