"""Choose the records of a budget period that a sensor releases, where its budget pays for some of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sensorsim._util.errors import InputError
from sensorsim.kernels.schedule import MOST_SLOTS

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware


@dataclass(frozen=True)
class Schedule:
    """Release `allowed` of the `slots` records of a period; serial number and period choose (kernels/schedule.py)."""

    slots: int
    allowed: int

    def __post_init__(self) -> None:
        if type(self.slots) is not int or not 1 <= self.slots <= MOST_SLOTS:
            raise InputError(
                f"a budget period of {self.slots} records; give 1 to {MOST_SLOTS}, with fewer records a day or fewer "
                "days of a budget."
            )
        if type(self.allowed) is not int or self.allowed < 1:
            raise InputError(f"{self.allowed} releases a period; give a whole number of 1 or more.")

    @classmethod
    def of(cls, firmware: "Firmware", records_per_day: int) -> "Schedule":
        """Return the schedule of a firmware whose application makes this many records a day."""
        slots = records_per_day * firmware.budget_days
        return cls(slots, min(firmware.releases, slots))

    @property
    def samples(self) -> bool:
        """Return whether some records are passed over."""
        return self.allowed < self.slots

    def due(self, serial: int, epoch: int, slot: int) -> bool:
        """Return whether the record of this slot is released."""
        from sensorsim.kernels.schedule import due

        return bool(due(serial, epoch, slot, self.slots, self.allowed))
