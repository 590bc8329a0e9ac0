"""What is simulated. Two equal settings give the same sums, to the bit, however the work is divided."""

import hashlib
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.hints import did_you_mean
from sensorsim.device.firmware import Firmware
from sensorsim.device.schedule import Schedule
from sensorsim.errors import InputError
from sensorsim.fleet.people import People
from sensorsim.kernels.formats import ONE

if TYPE_CHECKING:
    from decimal import Decimal

MOST_DEVICES, MOST_DAYS, MOST_SKEW, MOST_SEED = 10**9, 36_525, 3_650, 2**64 - 1
MOST_SUMS = 1 << 24  # numbers that a fleet keeps: 128 MB
MOST_SUM = 2**63 - 1  # that one of them can hold
FIRST_PERIOD = MOST_SKEW  # budget period of the first day: a clock that is behind stays above 0
SPENT_BINS = 1 << 16
SAMPLED, GREEDY = "sampled", "greedy"
SCHEDULES = {
    SAMPLED: "the releases of a period fall on records all over it",
    GREEDY: "a device releases until its budget is spent, and is silent for the rest of the period",
}


@dataclass(frozen=True)
class Faults:
    """What goes wrong, each by chance and independent of everything else."""

    reset_rate: float = 0.0  # of a device on a day: memory is lost, the sensor opens again before its next record
    power_cuts: float = 0.0  # of a release: the power goes at some byte of the first store that it makes
    loss: float = 0.0  # of a packet, on the air
    stuck_entropy: float = 0.0  # of a device: from some day on its source gives one byte for ever
    clock_skew: int = 0  # days that a clock is off, ahead or behind, at most; drawn anew after a reset or a cut

    def __post_init__(self) -> None:
        for name in ("reset_rate", "power_cuts", "loss", "stuck_entropy"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value <= 1:
                raise InputError(f"{name.replace('_', ' ')} is {value}; give a probability from 0 to 1.")
        if type(self.clock_skew) is not int or not 0 <= self.clock_skew <= MOST_SKEW:
            raise InputError(f"clock skew is {self.clock_skew}; give a whole number of days from 0 to {MOST_SKEW}.")


class Prices(NamedTuple):
    """Energy in whole nanojoules, so that sums of it are exact; `step` is that of the histogram over devices."""

    release: int = 0  # counting, drawing and sending, without what the flash takes
    open: int = 0  # seeding the generator, reading the journal
    store: int = 0  # any store of the journal
    step: int = 1


def check_numbers(devices: int, days: int, records_per_day: int, seed: int, schedule: str) -> None:
    """Refuse numbers that no fleet has; it needs no data, so it is done before any is read."""
    for name, value, most in (
        ("devices", devices, MOST_DEVICES),
        ("days", days, MOST_DAYS),
        ("records per day", records_per_day, MOST_DEVICES),
    ):
        if type(value) is not int or not 1 <= value <= most:
            raise InputError(f"{name} is {value}; give a whole number from 1 to {most}.")
    if type(seed) is not int or not 0 <= seed <= MOST_SEED:
        raise InputError(f"seed is {seed}; give a whole number from 0 to 2^64-1.")
    if schedule not in SCHEDULES:
        hint = did_you_mean(schedule, SCHEDULES)
        raise InputError(f"schedule {schedule!r} is not known{hint}; give one of {', '.join(SCHEDULES)}.")


@dataclass(frozen=True)
class Settings:
    """A firmware on many devices, the people who wear them, how long, and what goes wrong."""

    firmware: Firmware
    people: People
    devices: int
    days: int
    records_per_day: int = 1
    schedule: str = SAMPLED
    faults: Faults = field(default_factory=Faults)
    seed: int = 0
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        check_numbers(self.devices, self.days, self.records_per_day, self.seed, self.schedule)
        if self.firmware.encoder is not None:
            raise InputError("a fleet releases features or a sketch, not hidden units; leave the encoder out.")
        if self.people.n != self.firmware.n:
            raise InputError(
                f"the noise table is for {self.firmware.n} features and the data has {self.people.n} columns; give a "
                f"table made with --features {self.people.n}, or pick {self.firmware.n} columns with --columns."
            )
        kept = self.groups * self.firmware.features * self.columns
        if kept > MOST_SUMS:
            raise InputError(
                f"{self.days} days of {self.firmware.features} features are {kept} sums; a fleet keeps at most "
                f"{MOST_SUMS}: give fewer days, or a table of fewer features."
            )
        _ = self.slots  # refuses periods that are too long
        if self.devices > self.most_devices:
            fewer = f"at most {self.most_devices} devices, or " if self.most_devices else ""
            days = " or days" if self.firmware.sketch else ""
            raise InputError(
                f"sums over {self.devices} devices may pass 2^63, as values of this table are up to {self.limit}; give "
                f"{fewer}fewer records a day{days}."
            )

    @cached_property
    def slots(self) -> Schedule:
        return Schedule.of(self.firmware, self.records_per_day)

    @property
    def groups(self) -> int:
        """Days whose sums are kept apart; those of a sketch are kept together, as there are so many directions."""
        return 1 if self.firmware.sketch else self.days

    @property
    def limit(self) -> int:
        """The largest value of a packet where values are summed, else 1: of symbols each is counted."""
        return int(self.firmware.arguments.get("limit", 1))

    @property
    def most_values(self) -> int:
        """Values that one device can add to a sum."""
        return self.records_per_day * (self.days if self.firmware.sketch else 1)

    @property
    def most_devices(self) -> int:
        """As many as no sum can pass 2^63 with: squares of values, or x in Q15."""
        largest: int = max(self.limit**2, ONE)
        return MOST_SUM // (self.most_values * largest)

    @property
    def columns(self) -> int:
        """Sums of a feature on a day: one for each symbol, or count, sum and sum of squares."""
        from sensorsim.hospital.expected import Expected

        return len(Expected(self.firmware).columns)

    @property
    def periods(self) -> int:
        """Budget periods that a clock can show within the days."""
        firmware, skew = self.firmware, self.faults.clock_skew
        return (self.days + 2 * skew) // firmware.budget_days + 2

    @property
    def first_epoch(self) -> int:
        """The first of them."""
        return (FIRST_PERIOD * self.firmware.budget_days - self.faults.clock_skew) // self.firmware.budget_days

    @cached_property
    def spent_step(self) -> int:
        """Releases of one bin of the histogram over devices."""
        return self._most_spent // SPENT_BINS + 1

    @property
    def spent_bins(self) -> int:
        return self._most_spent // self.spent_step + 1

    @property
    def _most_spent(self) -> int:
        """No journal can count more: a record has at most four stores (a cut, two openings, its own)."""
        tries = 4 * self.days * self.records_per_day * self.firmware.reserve
        return min(self.periods * self.firmware.releases, tries)

    def to_dict(self) -> dict[str, Any]:
        """All that decides the sums: first what people choose, then what follows from it."""
        firmware = self.firmware
        made = {name: getattr(self, name) for name in ("devices", "days", "records_per_day", "schedule", "seed")}
        made |= {each.name: getattr(self.faults, each.name) for each in fields(Faults)}
        made |= {"identity": firmware.identity.hex(), "budget_epsilon": _plain(firmware.budget)}
        made |= {"budget_days": firmware.budget_days, "reserve": firmware.reserve}
        made |= {"columns": list(self.people.columns), "data": self.people.digest}
        return made | {"releases": firmware.releases, "prices": list(self.prices)}

    @cached_property
    def digest(self) -> str:
        import json

        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def _plain(number: "Decimal") -> str:
    """Without zeros at its end: 5 and 5.0 are one budget."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
