"""A private sensor as its firmware runs: the same kernels, the same steps and the same answers as the C that ships.

    sensor = Sensor(firmware)
    sensor.open()                        Status.OK, or why it stays closed
    status, packet = sensor.release(x)   on anything but Status.OK the packet is all zeros and nothing was released
    sensor.left()                        releases that the budget of this epoch still allows

A release is counted in the journal before it is drawn, so a cut can lose it and cannot repeat it. Where anything is in
doubt the sensor closes and its key is wiped.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sensorsim.calls import one_sentence
from sensorsim.device.drawing import Drawing
from sensorsim.device.entropy import Entropy, Generator, SystemEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.flash import SLOTS, Flash, Journal
from sensorsim.device.pace import SECONDS_OF_A_DAY, Paced
from sensorsim.device.running import Runs, compiled
from sensorsim.device.status import Status
from sensorsim.errors import InputError
from sensorsim.kernels.journal import HOLDS, NEW
from sensorsim.single import Single

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

LAST_EPOCH = 2**32 - 1


class Clock:
    """A board's clock that is set by hand: `clock.epoch` is the number of the budget period."""

    def __init__(self, epoch: int = 0) -> None:
        self.epoch = epoch

    def __call__(self) -> int:
        return self.epoch


class Sensor(Single):
    """One device: a firmware on a board with flash, a source of entropy and a clock.

    There is one of it: it is not copied or pickled, threads take turns, and in a forked process it is closed, for its
    next words are those of the parent.

    Left alone it is private: entropy is the operating system's, the flash is blank, and an epoch is `budget_days` of
    the calendar, no faster than the time since the sensor was made (see `Paced`). A clock that is given is taken at its
    word: who sets it sets the budget, unless it is a `Paced` one. A table alone stands for the firmware that releases
    through it once an epoch.
    """

    instead = "make a Sensor with a Flash of its own"

    @one_sentence
    def __init__(
        self,
        firmware: "Firmware | NoiseTable",
        flash: Flash | Paced | None = None,
        entropy: Entropy | None = None,
        epoch: Callable[[], int] | None = None,
        *,
        runs: Runs = compiled,
    ) -> None:
        self.firmware = firmware if isinstance(firmware, Firmware) else Firmware(firmware)
        self.flash = Flash() if flash is None else flash
        for name, given, wanted in (
            ("epoch", epoch, "a function of the period's number"),
            ("entropy", entropy, "a function from a count to as many bytes"),
            ("runs", runs, "a function that makes one of a kernel"),
        ):
            if given is not None and not callable(given):
                raise InputError(f"{name} is of type {type(given).__name__}; give {wanted}, or none.")
        if not (hasattr(self.flash, "load") and hasattr(self.flash, "store")):
            raise InputError(f"flash is of type {type(flash).__name__}; give a Flash, or what loads and stores as one.")
        board: Flash | Paced = self.flash
        if epoch is None:
            epoch = board = Paced(self.flash, self._of_the_calendar, self.firmware.budget_days)
        self._clock = epoch
        self._generator = Generator(SystemEntropy() if entropy is None else entropy, self.firmware.blocks, runs)
        self._journal = Journal(self.firmware, board, runs)
        self._mechanism = Drawing(self.firmware, runs)
        self.close()

    def __repr__(self) -> str:
        return f"Sensor({self.firmware!r}, {'open' if self.is_open else 'closed'})"

    @property
    def one_at_a_time(self) -> Any:
        """Return the flash's own lock where it has one, so that sensors that share a flash take turns too."""
        return getattr(self.flash, "one_at_a_time", None) or super().one_at_a_time

    def close(self) -> None:
        """Forget everything that only memory holds, the key first. The journal stays."""
        with self.one_at_a_time:
            self._generator.wipe()
            self._mechanism.wipe()
            self._open = False
            self._known = (0, 0)  # epoch and releases spent in it, as the journal last said
            self._ahead = 0  # of those, how many are counted and not drawn yet

    @property
    def is_open(self) -> bool:
        """Return whether it was opened, by this process."""
        return self._open and self._generator.is_ours

    def open(self) -> Status:
        """Seed the generator and read the journal; on blank flash, begin it."""
        with self.one_at_a_time:
            self.close()
            try:
                status = self._generator.seed() or self._begin()
            except BaseException:  # a power cut takes the memory with it
                self.close()
                raise
            self._open = status == Status.OK
            if not self._open:
                self.close()
            return status

    def release(self, x: Sequence[int] | Any) -> tuple[Status, bytes]:
        """Count one release, then draw it from x: n whole numbers, 0 … 32768 for 0 … 1, or floats in 0 … 1.

        A number of 16 bits above 32768 counts as 1, in the C as here: it stays within the certificate.
        """
        record = self._mechanism.record(x)
        with self.one_at_a_time:
            try:
                status = self._count()
                if status != Status.OK:
                    return status, bytes(self.firmware.layout.bytes)
                epoch, spent = self._known
                number = spent - self._ahead
                return status, self._mechanism.draw(record, self._generator.words(number, epoch), number, epoch)
            except BaseException:
                self.close()
                raise

    def left(self) -> int:
        """Releases that the budget of this epoch still allows, as far as this sensor knows; 0 where it is closed."""
        with self.one_at_a_time:
            epoch, spent = self._known
            if not self.is_open or self._now() < epoch:
                return 0
            used = spent - self._ahead if self._now() == epoch else 0
            return max(0, self.firmware.releases - used)

    def _of_the_calendar(self) -> int:
        return int(time.time()) // (self.firmware.budget_days * SECONDS_OF_A_DAY)

    def _now(self) -> int:
        now = self._clock()
        if not 0 <= now <= LAST_EPOCH:
            raise InputError(f"the clock says epoch {now}; give a whole number from 0 to 2^32-1.")
        return now

    def _begin(self) -> Status:
        """What `open` finds in the journal."""
        if not self._journal.load():
            return Status.NO_STORE
        now, state = self._now(), self._journal.read()
        if state == NEW:
            self._known = (now, 0)
            written = all(self._journal.write(slot, now, 0) for slot in range(SLOTS))
            return Status.OK if written else Status.NO_STORE
        if state != HOLDS:
            return Status.BAD_JOURNAL
        self._known = self._journal.found
        if now < self._known[0]:
            return Status.BAD_CLOCK
        return self._count_on(now) if self._journal.alone else Status.OK

    def _count_on(self, now: int) -> Status:
        """One slot is bad and may have been the newer one: count what it may have counted."""
        answer, _, after = self._journal.spend(now)
        if answer != HOLDS:
            return Status.OK  # all is counted already
        if not self._journal.write(self._journal.next_slot, now, after):
            return Status.NO_STORE
        self._known = (now, after)
        return Status.OK

    def _count(self) -> Status:
        """Take one release off what is counted ahead, or count some more in the journal."""
        if not self.is_open:
            self.close()  # the key of a parent is of no use here
            return Status.NOT_OPEN
        now = self._now()
        if now < self._known[0]:
            return Status.BAD_CLOCK
        if now > self._known[0] or self._ahead == 0:
            status = self._spend(now)
            if status != Status.OK:
                return status
        self._ahead -= 1
        return Status.OK

    def _spend(self, now: int) -> Status:
        """Store the next count in the slot whose turn it is; what it counts may be drawn afterwards."""
        journal = self._journal
        if not journal.load():
            return Status.NO_STORE
        if journal.read() != HOLDS or journal.found < self._known:  # it was put back to what it said before
            self.close()
            return Status.BAD_JOURNAL
        if journal.found > self._known:  # another sensor counted on the same flash
            self._known, self._ahead = journal.found, 0
        answer, before, after = journal.spend(now)
        if answer != HOLDS:
            return Status(answer)
        if not journal.write(journal.next_slot, now, after):
            return Status.NO_STORE
        self._known, self._ahead = (now, after), after - before
        return Status.OK
