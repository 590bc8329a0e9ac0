"""Run a private sensor as its firmware does: the kernels of kernels/sensor.py over a simulated board.

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

from sensorsim._util.errors import InputError, one_sentence
from sensorsim._util.uncopyable import Single, process
from sensorsim.datasets.public_ranges import as_numbers, quantised
from sensorsim.device.entropy import Entropy, SystemEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.flash import Flash
from sensorsim.device.pace import SECONDS_OF_A_DAY, Paced
from sensorsim.device.running import Cells, Runs, compiled, hosted, new_record
from sensorsim.device.status import Status
from sensorsim.kernels.generator import SEED_BYTES
from sensorsim.kernels.sensor import close_sensor, count_release, left, open_sensor

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

LAST_EPOCH = 2**32 - 1
MOST_X = 2**16 - 1


class Clock:
    """A board's clock that is set by hand: `clock.epoch` is the number of the budget period."""

    def __init__(self, epoch: int = 0) -> None:
        self.epoch = epoch

    def __call__(self) -> int:
        return self.epoch


class Sensor(Single):
    """A device: a firmware on a board with flash, a source of entropy and a clock.

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
        for name, given in {"epoch": epoch, "entropy": entropy, "runs": runs}.items():
            if given is not None and not callable(given):
                raise InputError(f"{name} is of type {type(given).__name__}; give a function, or none.")
        if not (hasattr(self.flash, "load") and hasattr(self.flash, "store")):
            raise InputError(f"flash is of type {type(flash).__name__}; give a Flash, or what loads and stores as one.")
        memory: Flash | Paced = self.flash
        if epoch is None:
            days = self.firmware.budget_days

            def calendar() -> int:
                return int(time.time()) // (days * SECONDS_OF_A_DAY)

            epoch = memory = Paced(self.flash, calendar, days)
        board = _Board(memory, SystemEntropy() if entropy is None else entropy, epoch)
        draw = self.firmware.draw
        self._memory = new_record(draw.record, port=board)
        self._bound = self.firmware.journal_arguments()
        self._tables = self.firmware.draw_arguments()
        self._open, self._count, self._left, self._close, self._draw = (
            hosted(kernel, runs) for kernel in (open_sensor, count_release, left, close_sensor, draw.draw_release)
        )
        self._start = None if draw.start is None else hosted(draw.start, runs)
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
            self._close(self._memory)
            self._process: tuple[int, int] | None = None
            for value in vars(self._memory).values():
                if isinstance(value, Cells):
                    value.array.fill(0)

    @property
    def is_open(self) -> bool:
        """Return whether it was opened, by this process."""
        return bool(self._memory.open) and self._process == process()

    def open(self) -> Status:
        """Seed the generator and read the journal; on blank flash, begin it."""
        with self.one_at_a_time:
            self.close()
            try:
                status = Status(self._open(self._memory, *self._bound))
            except BaseException:  # a power cut takes the memory with it
                self.close()
                raise
            if status == Status.OK:
                self._memory.open, self._process = 1, process()
                if self._start is not None:
                    self._start(self._memory)
            else:
                self.close()
            return status

    def release(self, x: Sequence[int] | Any) -> tuple[Status, bytes]:
        """Count one release, then draw it from x: n whole numbers, 0 … 32768 for 0 … 1, or floats in 0 … 1.

        A number of 16 bits above 32768 counts as 1, in the C as here: it stays within the certificate.
        """
        record = self._record(x)
        with self.one_at_a_time:
            try:
                status = Status(self._count(self._memory, *self._bound)) if self.is_open else Status.NOT_OPEN
                if not self.is_open:  # any more; and the key of a parent is of no use here
                    self.close()
                return status, self._drawn(record) if status == Status.OK else bytes(self.firmware.layout.bytes)
            except BaseException:
                self.close()
                raise

    def _record(self, x: Any) -> Any:
        """Return x as the kernels take it."""
        import numpy as np

        given, n = as_numbers(x), self.firmware.n
        if given.shape != (n,):
            raise InputError(f"a record of this sensor is {n} whole numbers, 0 … 32768 for 0 … 1; give as many.")
        if given.dtype.kind == "f":
            return quantised(given)
        if given.dtype != np.uint16 and not 0 <= int(given.min()) <= int(given.max()) <= MOST_X:
            raise InputError(f"a feature is {given.min()} … {given.max()}; give whole numbers from 0 to {MOST_X}.")
        return np.ascontiguousarray(given, np.uint16)

    def _drawn(self, record: Any) -> bytes:
        """Draw the release that was counted, and return its packet."""
        import numpy as np

        packet = bytearray(self.firmware.layout.bytes)
        self._draw(self._memory, record, Cells(np.frombuffer(packet, np.uint8)), *self._tables.values())
        return bytes(packet)

    def left(self) -> int:
        """Return how many releases the budget still allows in this epoch, as far as is known; 0 where it is closed."""
        with self.one_at_a_time:
            return int(self._left(self._memory, self.firmware.releases)) if self.is_open else 0


class _Board:
    """The ports of a sensor over a simulated flash, a source of entropy and a clock; what fails returns 1."""

    def __init__(self, flash: Flash | Paced, entropy: Entropy, clock: Callable[[], int]) -> None:
        self.flash, self.source, self.clock = flash, entropy, clock

    def entropy(self, bytes: Any) -> int:
        try:
            given = self.source(SEED_BYTES)
            if len(given) == SEED_BYTES:
                bytes[:] = bytearray(given)
                return 0
        except OSError:
            pass
        return 1

    def load(self, slot: int, bytes: Any) -> int:
        try:
            bytes[:] = bytearray(self.flash.load(slot))
        except OSError:
            return 1
        return 0

    def store(self, slot: int, bytes: Any) -> int:
        try:
            self.flash.store(slot, bytes.array.tobytes())
        except OSError:
            return 1
        return 0

    def epoch(self) -> int:
        now = self.clock()
        if not 0 <= now <= LAST_EPOCH:
            raise InputError(f"the clock says epoch {now}; give a whole number from 0 to 2^32-1.")
        return now
