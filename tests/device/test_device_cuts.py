"""Power that goes at every byte of every store: nothing is released twice, little is lost, the budget holds.

The entropy of these boards is the same at every power-up, the worst that a board can do: then only the journal keeps
two releases from using the same words. With words of one's own at each power-up the rest would be easy.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

import naive_device as naive
import numpy as np
import pytest

from sensorsim._util.errors import InputError
from sensorsim.device import Clock, Firmware, Flash, ListedEntropy, PowerCut, SeededEntropy, Sensor, Status
from sensorsim.noise.noise_table import ready_table
from sensorsim.verification.sensor_timing import words_to_come

ONE = ready_table("1.6", 1)
X = [2000 * i for i in range(14)]
SEED = np.random.default_rng(3).bytes(1024)
MODES = ("bytes", "bits", "erase first", "whole store")
FIRST_EPOCH = 2**32 - 5  # so that the last epoch there is comes up too


@dataclass
class Life:
    """A sensor on one flash, over any number of power-ups, and all that ever left it."""

    firmware: Firmware
    model: type[Sensor] = Sensor
    replayed: bool = True
    flash: Flash = field(default_factory=Flash)
    clock: Clock = field(default_factory=lambda: Clock(FIRST_EPOCH))
    words: list[tuple[int, ...]] = field(default_factory=list)
    released: Counter[int] = field(default_factory=Counter)
    cuts: Counter[int] = field(default_factory=Counter)  # of an epoch
    said: tuple[int, int] | None = None  # what the journal said last
    power_ups: int = 0
    to_come: Iterator[tuple[int, str, int]] = field(default_factory=lambda: iter(()))

    def next_cut(self) -> None:
        for cut in self.to_come:
            self.flash.cut(*cut)
            return

    def power_up(self) -> None:
        """Open until it is open; the flash may cut that short."""
        self.power_ups += 1
        entropy = ListedEntropy(SEED) if self.replayed else SeededEntropy(self.power_ups)
        self.sensor = self.model(self.firmware, self.flash, entropy, self.clock)
        sensor, drawn = self.sensor, self.sensor._draw

        def draw(*given: Any) -> None:
            self.words.append(tuple(map(int, words_to_come(sensor))))
            drawn(*given)

        self.sensor._draw = draw
        try:
            assert self.sensor.open() == Status.OK, "a torn slot is never a reason to stay closed"
        except PowerCut:
            self.after_cut()

    def after_cut(self) -> None:
        self.cuts[self.clock.epoch] += 1
        assert not self.sensor.is_open and not self.sensor._memory.key.array.any()
        self.look()
        self.next_cut()
        self.power_up()

    def look(self) -> None:
        """The count of the journal never runs backward."""
        image = self.flash.image
        state, found, _ = naive.read_journal([image[:24], image[24:]], self.firmware.journal_identity)
        assert state == "holds" or (state == "blank" and self.said is None), "the journal is lost"
        if state == "holds":
            assert self.said is None or found >= self.said, "the journal went back"
            self.said = found

    def release(self) -> bool:
        """One release, or false where the epoch's budget is spent."""
        try:
            status, packet = self.sensor.release(X)
        except PowerCut:
            self.after_cut()
            return True
        assert status in (Status.OK, Status.SPENT)
        assert any(packet) == (status == Status.OK)
        self.released[self.clock.epoch] += status == Status.OK
        self.look()
        return status == Status.OK

    def spend_all(self) -> None:
        while self.release():
            pass
        assert self.sensor.left() == 0

    def check(self) -> None:
        budget, reserve = self.firmware.releases, self.firmware.reserve
        assert len(self.words) == len(set(self.words)), "the same words were drawn with twice"
        assert self.released.total() <= len(self.words) <= self.released.total() + self.cuts.total()
        for epoch, done in self.released.items():
            assert done <= budget, "more was released than the budget allows"
            assert done >= budget - reserve * self.cuts[epoch], "a cut lost more than one store counts"


def firmware(budget: int, reserve: int) -> Firmware:
    return Firmware(ONE, budget_epsilon=Decimal("1.6") * budget, reserve=reserve)


def live(life: Life, cuts: Iterable[tuple[int, str, int]], epochs: int) -> Life:
    """Spend the whole budget of some epochs; the power-up after a cut gets the next one."""
    life.to_come = iter(cuts)
    life.next_cut()
    life.power_up()
    for epoch in range(epochs):
        life.clock.epoch = FIRST_EPOCH + epoch
        life.spend_all()
    life.check()
    return life


def stores(made: Firmware, epochs: int) -> int:
    return 2 + epochs * -(-made.releases // made.reserve)


def cut_everywhere(
    made: Firmware, epochs: int, mode: str, bits: int = 0x55, model: type[Sensor] = Sensor, replayed: bool = True
) -> int:
    """A life for each byte of each store of it, cut there; returns how many releases there were in all."""
    done = 0
    for after in range(24 * stores(made, epochs)):
        if mode == "whole store" and after % 24:
            continue  # it does not matter where in the store the cut was set
        life = live(Life(made, model, replayed), [(after, mode, bits)], epochs)
        assert life.cuts.total() == 1
        done += life.released.total()
    return done


BUDGETS = [(4, 1), (5, 2), (20, 16)]


LONGER = [pytest.param(*given, 4, again, marks=pytest.mark.slow)
          for given in ((20, 1), (20, 2), (64, 16)) for again in (True, False)]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("budget, reserve, epochs, replayed", [*((*one, 2, True) for one in BUDGETS), *LONGER])
def test_a_cut_at_every_byte_of_every_store(budget: int, reserve: int, epochs: int, replayed: bool, mode: str) -> None:
    made = firmware(budget, reserve)
    lives = stores(made, epochs) * (1 if mode == "whole store" else 24)
    assert cut_everywhere(made, epochs, mode, replayed=replayed) >= lives * (epochs * budget - reserve)


def test_without_cuts_nothing_is_lost() -> None:
    for budget, reserve in BUDGETS:
        life = live(Life(firmware(budget, reserve)), [], 4)
        assert set(life.released.values()) == {budget} and len(life.words) == 4 * budget


@pytest.mark.parametrize("budget, epochs", [(3, 1), pytest.param(6, 3, marks=pytest.mark.slow)])
def test_every_part_of_a_byte(budget: int, epochs: int) -> None:
    """Any bits of the byte that is being written may have taken their new value."""
    for bits in (*(1 << bit for bit in range(8)), 0x0F, 0x55, 0xAA, 0xF0, 0xFE, 0xFF):
        cut_everywhere(firmware(budget, 1), epochs, "bits", bits)


def many_cuts(seed: int, longest: int, modes: tuple[str, ...] = MODES) -> Iterator[tuple[int, str, int]]:
    source = Random(seed)
    while True:
        yield source.randrange(longest), source.choice(modes), source.randrange(256)


MORE = [pytest.param(50, reserve, 100, 24 * 8, marks=pytest.mark.slow) for reserve in (1, 2, 16)]


@pytest.mark.parametrize("budget, reserve, lives, longest", [*((*one, 30, 24 * 3) for one in BUDGETS), *MORE])
def test_cuts_again_and_again(budget: int, reserve: int, lives: int, longest: int) -> None:
    """Some power-ups are cut before they have released anything, the first ones too."""
    cuts = 0
    for seed in range(lives):
        life = Life(firmware(budget, reserve), replayed=longest < 100 or seed % 2 == 0)
        cuts += live(life, many_cuts(seed, longest), 4).cuts.total()
    assert cuts >= 100


def test_a_new_journal_that_is_cut_over_and_over() -> None:
    """Nothing can be released before both slots are written; until then memory counts as blank."""
    for mode in MODES:
        for first in range(48):
            life = Life(firmware(4, 1))
            life.flash.cut(first, mode)
            for second in (0, 3, 23, 24, 47):
                life.power_up()
                life.flash.cut(second, mode)
                life.sensor.close()
            life.flash.never_cut()
            life.power_up()
            life.spend_all()
            assert len(life.words) == len(set(life.words)) <= 4


def test_resets_without_a_cut_lose_what_was_counted_ahead() -> None:
    for budget, reserve in BUDGETS:
        life = Life(firmware(budget, reserve))
        life.power_up()
        resets = 0
        while life.release():
            life.power_up()
            life.look()
            resets += 1
        assert resets == -(-budget // reserve) == life.released[FIRST_EPOCH]
        assert len(life.words) == len(set(life.words))


def test_a_cut_while_a_slot_is_read_back() -> None:
    """The store is whole and nothing is drawn: the release is lost."""

    class Cutting(Flash):
        loads = 0

        def load(self, slot: int) -> bytes:
            self.loads += 1
            if self.loads == self.cut_at:
                raise PowerCut("while loading")
            return super().load(slot)

        cut_at = 0

    for at in range(1, 30):
        flash = Cutting()
        flash.cut_at = at
        life = Life(firmware(4, 2), flash=flash)
        life.power_up()
        life.spend_all()
        life.check()
        assert life.cuts.total() == (at <= flash.loads)


# ── each promise broken once: the trial finds it ──


class DrawsFirst(Sensor):
    """Draws before it counts."""

    def release(self, x: Any) -> tuple[Status, bytes]:
        if self.left() == 0:
            return super().release(x)
        memory = self._memory
        now = memory.port.epoch()
        before = memory.used, memory.epoch
        memory.used, memory.epoch = 1 + (memory.used if now == memory.epoch else 0), now
        packet = self._drawn(self._record(x))
        memory.used, memory.epoch = before
        try:
            return Status(self._count(memory, *self._bound)), packet
        except PowerCut:
            self.close()
            raise


class Forgets(Sensor):
    """Writes the slot that it should keep."""

    def release(self, x: Any) -> tuple[Status, bytes]:
        board = self._memory.port
        store, load = board.store, board.load

        def other(slot: int, bytes: Any) -> int:
            board.load = lambda slot, bytes: load(1 - slot, bytes)
            return int(store(1 - slot, bytes))

        board.store = other
        try:
            return super().release(x)
        finally:
            board.store, board.load = store, load


class Trusts(Sensor):
    """Takes any journal for its own: what is torn reads as nothing spent."""

    def open(self) -> Status:
        if naive.slot_kind(self.flash.load(0), self.firmware.journal_identity) != "good":
            self.flash.restore(b"\xff" * 48)
        return super().open()


class Changed(Sensor):
    """A sensor whose step that counts a release is followed by `after`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        count = self._count

        def changed(memory: Any, *bound: Any) -> int:
            ahead = memory.used < memory.spent
            status = count(memory, *bound)
            self.after(memory, status, ahead)
            return int(status)

        self._count = changed

    def after(self, memory: Any, status: int, ahead: bool) -> None: ...


class Lavish(Changed):
    """Counts one release in the journal where it draws two."""

    def after(self, memory: Any, status: int, ahead: bool) -> None:
        if status == Status.OK and not ahead and memory.used == memory.spent and memory.spent % 2:
            memory.used -= 1


class Wasteful(Sensor):
    """Counts another store's worth at every power-up."""

    def open(self) -> Status:
        status = super().open()
        if status == Status.OK and self._memory.spent:
            self._count(self._memory, *self._bound)
            self._memory.used = self._memory.spent
        return status


class Repeats(Sensor):
    """Draws the words of a power-up from the key alone."""

    def _drawn(self, record: Any) -> bytes:
        memory = self._memory
        before, memory.used, memory.epoch = (memory.used, memory.epoch), 0, 0
        packet = super()._drawn(record)
        memory.used, memory.epoch = before
        return packet


class Timid(Sensor):
    """Stays closed where one slot is torn."""

    def open(self) -> Status:
        kinds = [naive.slot_kind(self.flash.load(slot), self.firmware.journal_identity) for slot in (0, 1)]
        return Status.BAD_JOURNAL if {"other", "begun"} & set(kinds) else super().open()


BROKEN = {
    DrawsFirst: "the same words were drawn with twice",
    Forgets: "the journal is lost",
    Trusts: "the journal went back",
    Lavish: "more was released than the budget allows",
    Wasteful: "a cut lost more than one store counts",
    Repeats: "the same words were drawn with twice",
    Timid: "a torn slot is never a reason to stay closed",
}


@pytest.mark.parametrize("model, promise", BROKEN.items())
def test_the_trial_finds_a_sensor_that_breaks_a_promise(model: type[Sensor], promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        for mode in MODES:
            cut_everywhere(firmware(4, 1), 2, mode, model=model)


def test_rot_beside_a_blank_slot_starts_no_new_journal() -> None:
    """A cut right after an erase leaves one good slot and a blank one. A bit that then turns must not give all back."""
    clock, flash = Clock(100), Flash()
    firmware = Firmware(ready_table(1.6, 1), budget_epsilon=16)
    sensor = Sensor(firmware, flash, SeededEntropy(1), clock)
    assert sensor.open() == Status.OK
    for _ in range(5):
        assert sensor.release([0] * 14)[0] == Status.OK
    newest = max((flash.load(0), flash.load(1)), key=lambda slot: slot[16])
    for bit in range(8 * len(newest)):
        turned = bytearray(newest)
        turned[bit // 8] ^= 1 << bit % 8
        for image in (bytes(turned) + b"\xff" * 24, b"\xff" * 24 + bytes(turned)):
            assert Sensor(firmware, Flash(image), SeededEntropy(1), clock).open() == Status.BAD_JOURNAL


@pytest.mark.parametrize("reserve", [1, 2, 5])
def test_a_newer_slot_that_rots_at_every_reset_gives_nothing_back(reserve: int) -> None:
    clock, flash = Clock(100), Flash()
    firmware = Firmware(ready_table(1.6, 1), budget_epsilon=16, reserve=reserve)
    released = 0
    for boot in range(60):
        sensor = Sensor(firmware, flash, SeededEntropy(boot), clock)
        assert sensor.open() == Status.OK
        released += sensor.release([0] * 14)[0] == Status.OK
        slots = [bytearray(flash.load(0)), bytearray(flash.load(1))]
        newer = max((0, 1), key=lambda i: int.from_bytes(slots[i][16:20], "little"))
        slots[newer][boot % 24] ^= 1
        flash.restore(bytes(slots[0] + slots[1]))
    assert 0 < released <= firmware.releases


def test_a_buffer_that_is_not_filled_anew_is_seen() -> None:
    """The same 32 good bytes at every call pass both tests of the standard."""
    fixed = SeededEntropy(4)(32)
    firmware = Firmware(ready_table(1.6, 1))
    assert Sensor(firmware, entropy=lambda count: fixed[:count]).open() == Status.NO_ENTROPY


def test_a_journal_of_other_days_is_not_this_ones() -> None:
    """Epochs of 7 days and of 1 are numbered otherwise: an update from one to the other must not start a new budget."""
    clock, flash = Clock(100), Flash()
    assert Sensor(Firmware(ready_table(1.6, 1), budget_days=7), flash, SeededEntropy(1), clock).open() == Status.OK
    clock.epoch = 700
    assert Sensor(Firmware(ready_table(1.6, 1)), flash, SeededEntropy(1), clock).open() == Status.BAD_JOURNAL


def test_a_budget_is_rounded_down_exactly() -> None:
    table = ready_table(1.6, 1)
    epsilon = Firmware(table).epsilon
    assert Firmware(table, budget_epsilon=str(2 * epsilon)).releases == 2
    just_below = str(2 * epsilon - Decimal("1e-20"))
    assert Firmware(table, budget_epsilon=just_below).releases == 1
    for wrong in ("1_6", "١٦", "16" + "0" * 60):
        with pytest.raises(InputError):
            Firmware(table, budget_epsilon=wrong)
    for name, value in (("budget_days", 1.5), ("budget_days", True), ("reserve", "1"), ("reserve", 2.0)):
        with pytest.raises(InputError, match="whole number"):
            Firmware(table, **{name: value})
