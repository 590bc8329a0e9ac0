"""The settings of a simulated fleet, and the people who wear its devices.

Equal settings give the same sums, bit for bit, however the work is divided. Each device replays the days of one person,
in Q15. If there are more devices than people, they start over with the first person, each on another day. So a million
devices need no million people: their noise is their own, and estimates are compared with the days that were worn.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.device.firmware import Firmware
from sensorsim.device.schedule import Schedule
from sensorsim.kernels.formats import ONE
from sensorsim.ranges import brief

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sensorsim.ranges import Range

MOST_DEVICES, MOST_DAYS, MOST_SKEW, MOST_SEED = 10**9, 36_525, 3_650, 2**64 - 1
MOST_SUMS = 1 << 24  # numbers that a fleet keeps: 128 MB
MOST_SUM = 2**63 - 1  # that one of them can hold
FIRST_PERIOD = MOST_SKEW  # budget period of the first day: a clock that is behind stays above 0
SPENT_BINS = 1 << 16
MADE_PERSONS, MADE_DAYS = 2_000, 30  # of generated people
SAMPLED, GREEDY = "sampled", "greedy"
SCHEDULES = {
    SAMPLED: "the releases of a period fall on records all over it",
    GREEDY: "a device releases until its budget is spent, and is silent for the rest of the period",
}


@dataclass(frozen=True)
class Faults:
    """Probabilities of faults, each independent of everything else."""

    reset_rate: float = 0.0  # per device and day: memory is lost, the sensor opens again before its next record
    power_cuts: float = 0.0  # per release: the power fails at some byte of its first store
    loss: float = 0.0  # per packet, on the air
    stuck_entropy: float = 0.0  # per device: from some day on its source repeats one byte
    clock_skew: int = 0  # days that a clock is ahead or behind, at most; drawn again after a reset or a cut

    def __post_init__(self) -> None:
        for name in ("reset_rate", "power_cuts", "loss", "stuck_entropy"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value <= 1:
                raise InputError(f"{name.replace('_', ' ')} is {value}; give a probability from 0 to 1.")
        if type(self.clock_skew) is not int or not 0 <= self.clock_skew <= MOST_SKEW:
            raise InputError(f"clock skew is {self.clock_skew}; give a whole number of days from 0 to {MOST_SKEW}.")


class Prices(NamedTuple):
    """Energy in whole nanojoules, so that sums are exact; `step` is the bin width of the histogram over devices."""

    release: int = 0  # counting, drawing and sending, without what the flash takes
    open: int = 0  # seeding the generator, reading the journal
    store: int = 0  # any store of the journal
    step: int = 1


def check_numbers(devices: int, days: int, records_per_day: int, seed: int, schedule: str) -> None:
    """Refuse numbers out of range, before any data is read."""
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


@dataclass(frozen=True, eq=False)
class People:
    """Days of people: `records` is (days, n) in Q15; person p has `count[p]` rows from row `first[p]` on."""

    columns: tuple[str, ...]
    records: "npt.NDArray[np.uint16]"
    first: "npt.NDArray[np.int64]"
    count: "npt.NDArray[np.int64]"
    source: str
    ranges: "tuple[Range, ...] | None" = field(default=None)

    @classmethod
    def of(
        cls, columns: Sequence[str], x: Any, person: Any, source: str, ranges: "Sequence[Range] | None" = None
    ) -> "People":
        """Make people from values in 0 … 1 and the person of each row; the rows of a person keep their order."""
        import numpy as np

        values, persons = np.asarray(x, np.float64), np.asarray(person)
        if values.ndim != 2 or values.shape[1] != len(columns) or len(values) != len(persons) or not len(values):
            raise InputError("people are a table of one row or more, a column for each name and a person for each row.")
        if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
            raise InputError("a value of the people's days is outside 0 … 1; bring it there by a range.")
        order = np.argsort(persons, kind="stable")
        _, first, count = np.unique(persons[order], return_index=True, return_counts=True)
        records = np.ascontiguousarray(np.rint(values[order] * ONE).astype(np.uint16))
        return cls(tuple(columns), records, first.astype(np.int64), count.astype(np.int64), source,
                   None if ranges is None else tuple(ranges))  # fmt: skip

    @classmethod
    def generated(cls, columns: Sequence[str] | None = None, seed: int = 0) -> "People":
        """Make synthetic people with days like those of the public Fitbit file (train/synthetic.py)."""
        from sensorsim.training.data import NUMERIC_COLUMNS, prepare
        from sensorsim.training.synthetic import make

        unknown = [name for name in columns or () if name not in NUMERIC_COLUMNS]
        if unknown:
            some, hint = ", ".join(NUMERIC_COLUMNS[:3]), did_you_mean(unknown[0], NUMERIC_COLUMNS)
            raise InputError(
                f"the generator has no column {brief(unknown[0])}{hint}; it has {some} and {len(NUMERIC_COLUMNS) - 3} "
                "more, as in the header of `sensorsim data make`: pick from these with --columns."
            )
        frame = make(rows=MADE_PERSONS * MADE_DAYS, persons=MADE_PERSONS, seed=seed)
        made = prepare(frame, m=1, columns=tuple(columns) if columns else None, source="the generator")
        return cls.of(made.columns, made.x, made.person, "synthetic", made.ranges)

    @classmethod
    def unknown(cls, columns: tuple[str, ...], digest: str) -> "People":
        """Return people of whom only the digest is known, for the results of a finished fleet."""
        import numpy as np

        none = np.empty(0, np.int64)
        people = cls(columns, np.empty((0, len(columns)), np.uint16), none, none, f"sha256 {digest[:12]}")
        people.__dict__["digest"] = digest
        return people

    @property
    def n(self) -> int:
        return len(self.columns)

    @cached_property
    def digest(self) -> str:
        """Return a hash of all that a fleet reads."""
        found = hashlib.sha256("\n".join(self.columns).encode())
        for part in (self.records, self.first, self.count):
            found.update(part.tobytes())
        return found.hexdigest()


@dataclass(frozen=True)
class Settings:
    """A firmware on many devices, the people who wear them, the days, and the faults."""

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
        """Return the number of days with sums of their own; a sketch has one sum over all days for each direction."""
        return 1 if self.firmware.sketch else self.days

    @property
    def limit(self) -> int:
        """Return the largest value of a packet if values are summed; symbols are counted, so 1."""
        return int(self.firmware.arguments.get("limit", 1))

    @property
    def most_values(self) -> int:
        """Return how many values one device can add to a sum."""
        return self.records_per_day * (self.days if self.firmware.sketch else 1)

    @property
    def most_devices(self) -> int:
        """Return the largest number of devices with which no sum passes 2^63: squares of values, or x in Q15."""
        largest: int = max(self.limit**2, ONE)
        return MOST_SUM // (self.most_values * largest)

    @property
    def columns(self) -> int:
        """Return the number of sums of a feature on a day: one per symbol, or count, sum and sum of squares."""
        from sensorsim.hospital.packet_tally import Expected

        return len(Expected(self.firmware).columns)

    @property
    def periods(self) -> int:
        """Return how many budget periods a clock can show within the days."""
        firmware, skew = self.firmware, self.faults.clock_skew
        return (self.days + 2 * skew) // firmware.budget_days + 2

    @property
    def first_epoch(self) -> int:
        """Return the first budget period that a clock can show."""
        return (FIRST_PERIOD * self.firmware.budget_days - self.faults.clock_skew) // self.firmware.budget_days

    @cached_property
    def spent_step(self) -> int:
        """Return how many releases one bin of the histogram over devices covers."""
        return self._most_spent // SPENT_BINS + 1

    @property
    def spent_bins(self) -> int:
        return self._most_spent // self.spent_step + 1

    @property
    def _most_spent(self) -> int:
        """Return a bound on a journal's count: a record has at most four stores (a cut, two openings, its own)."""
        tries = 4 * self.days * self.records_per_day * self.firmware.reserve
        return min(self.periods * self.firmware.releases, tries)

    def to_dict(self) -> dict[str, Any]:
        """Return everything that decides the sums: choices first, then what follows from them."""
        firmware, budget = self.firmware, f"{self.firmware.budget:f}"
        return {
            **{name: getattr(self, name) for name in ("devices", "days", "records_per_day", "schedule", "seed")},
            **asdict(self.faults),
            "identity": firmware.identity.hex(),
            "budget_epsilon": budget.rstrip("0").rstrip(".") if "." in budget else budget,  # 5 and 5.0 are equal
            "budget_days": firmware.budget_days,
            "reserve": firmware.reserve,
            "columns": list(self.people.columns),
            "data": self.people.digest,
            "releases": firmware.releases,
            "prices": list(self.prices),
        }

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()
