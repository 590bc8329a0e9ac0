"""Bound the epochs of a clock by the uptime of the device, as ports/ss_pace.h of a package does.

Each epoch has a budget, so who sets the clock could get a new budget with every jump forward. `Paced` passes on a later
epoch only while there were fewer new ones since the start than 2 + uptime / length of an epoch, and none in the first
24th of an epoch; until then it returns the latest known one. A correct clock never meets the first bound: one new epoch
for the time that the device was off, however long, one for the next end of an epoch, one for every length that passes.
"""

import time
from collections.abc import Callable
from typing import Any
from zlib import crc32

from sensorsim.kernels.journal import CHECKED, EPOCH_AT, SPENT_AT

SECONDS_OF_A_DAY = 86_400


def pace_wait(days: int) -> int:
    """Return the seconds of uptime before the first new epoch of a start, where an epoch has so many days."""
    return days * SECONDS_OF_A_DAY // 24


class Paced:
    """A board's flash and clock, whose epoch is bounded by its uptime. Give it to a Sensor as `flash` and as `epoch`.

    It stands for one start of the device: make a new one for a reset. `uptime` is a function of the seconds since then,
    by a counter that nobody can set.
    """

    def __init__(
        self,
        flash: Any,
        clock: Callable[[], int],
        days: int = 1,
        uptime: Callable[[], float] | None = None,
        wait: int | None = None,
    ) -> None:
        started = time.monotonic()
        self.flash, self.clock, self.length = flash, clock, days * SECONDS_OF_A_DAY
        self.uptime = uptime or (lambda: time.monotonic() - started)
        self.wait = pace_wait(days) if wait is None else wait
        self.epoch: int | None = None  # the latest one, by the journal or handed to the sensor
        self.granted = 0  # new ones that were handed to the sensor

    @property
    def one_at_a_time(self) -> Any:
        """Return the lock of the flash, where it has one."""
        return getattr(self.flash, "one_at_a_time", None)

    def load(self, slot: int) -> bytes:
        """Read a slot, and note its epoch where its check sum is right."""
        held: bytes = self.flash.load(slot)
        if crc32(held[:CHECKED]) == int.from_bytes(held[CHECKED:], "little"):
            found = int.from_bytes(held[EPOCH_AT:SPENT_AT], "little")
            self.epoch = found if self.epoch is None else max(found, self.epoch)
        return held

    def store(self, slot: int, entry: bytes) -> None:
        """Write a slot."""
        self.flash.store(slot, entry)

    def __call__(self) -> int:
        """Return the clock's epoch, or the latest known one where a later one would come too soon."""
        now, up = self.clock(), int(self.uptime())
        if self.epoch is None:  # of a new journal
            self.epoch = now
        elif now > self.epoch:
            if self.granted >= (0 if up < self.wait else 2 + up // self.length):
                return self.epoch
            self.granted, self.epoch = self.granted + 1, now
        return now
