"""What a sensor answers. The numbers are those of the C header, which is written from this enumeration."""

from enum import IntEnum


class Status(IntEnum):
    """Anything but OK: the packet is all zeros and nothing was released."""

    OK = 0
    SPENT = 1
    NO_ENTROPY = 2
    NO_STORE = 3
    BAD_JOURNAL = 4
    BAD_CLOCK = 5
    NOT_OPEN = 6

    @property
    def about(self) -> str:
        """The status in words."""
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
