"""Statuses of a sensor's calls. The numbers are those of its kernels; the C header is written from them."""

from enum import IntEnum

from sensorsim.kernels import sensor


class Status(IntEnum):
    """Status of a call. With anything but OK the packet is all zeros and nothing was released."""

    about: str  # in words

    def __new__(cls, value: int, about: str = "") -> "Status":
        made = int.__new__(cls, value)
        made._value_, made.about = value, about
        return made

    OK = sensor.OK, "done"
    SPENT = sensor.SPENT, "the budget of this epoch is spent; the next epoch brings a new one"
    NO_ENTROPY = sensor.NO_ENTROPY, "the board's entropy failed, is stuck or leans to some values"
    NO_STORE = sensor.NO_STORE, "the journal could not be read, or not be written and read back"
    BAD_JOURNAL = (
        sensor.BAD_JOURNAL,
        "the journal is in doubt: damaged, of another table, or put back to an earlier state",
    )
    BAD_CLOCK = sensor.BAD_CLOCK, "the epoch lies before the journal's"
    NOT_OPEN = sensor.NOT_OPEN, "the sensor is not open"
