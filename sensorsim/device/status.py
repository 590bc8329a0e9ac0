"""Statuses of a sensor's calls. The numbers are those of its kernels; the C header is written from them."""

from enum import IntEnum

from sensorsim.kernels import sensor


class Status(IntEnum):
    """Status of a call. With anything but OK the packet is all zeros and nothing was released."""

    OK = sensor.OK
    SPENT = sensor.SPENT
    NO_ENTROPY = sensor.NO_ENTROPY
    NO_STORE = sensor.NO_STORE
    BAD_JOURNAL = sensor.BAD_JOURNAL
    BAD_CLOCK = sensor.BAD_CLOCK
    NOT_OPEN = sensor.NOT_OPEN

    @property
    def about(self) -> str:
        """Return the status in words."""
        return _ABOUT[self]


_ABOUT = {
    Status.OK: "done",
    Status.SPENT: "the budget of this epoch is spent; the next epoch brings a new one",
    Status.NO_ENTROPY: "the board's entropy failed, is stuck or leans to some values",
    Status.NO_STORE: "the journal could not be read, or not be written and read back",
    Status.BAD_JOURNAL: "the journal is in doubt: damaged, of another table, or put back to an earlier state",
    Status.BAD_CLOCK: "the epoch lies before the journal's",
    Status.NOT_OPEN: "the sensor is not open",
}
