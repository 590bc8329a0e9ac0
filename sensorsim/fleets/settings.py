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
from sensorsim._util.option_kinds import REQUIRED, Choice, Number, Whole, check_declared, option
from sensorsim.datasets.public_ranges import brief
from sensorsim.device.firmware import Firmware
from sensorsim.device.schedule import Schedule
from sensorsim.kernels.formats import ONE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sensorsim.datasets.public_ranges import Range

MOST_DEVICES, MOST_DAYS, MOST_SKEW, MOST_SEED = 10**9, 36_525, 3_650, 2**64 - 1
CHANCE = Number(0, 1)
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


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Probabilities of faults, each independent of everything else."""

    reset_rate: float = option(
        0.0, CHANCE, "Chance of a reset, each day: memory is lost, and the sensor opens again before its next record."
    )
    power_cuts: float = option(0.0, CHANCE, "Chance of a power cut, at each release: at some byte of its first store.")
    loss: float = option(0.0, CHANCE, "Chance that a packet is lost on the air.")
    stuck_entropy: float = option(
        0.0, CHANCE, "Chance that the entropy source of a device sticks: from some day on it repeats one byte."
    )
    clock_skew: int = option(
        0, Whole(0, MOST_SKEW), "Days that clocks are off, at most; drawn again after a reset or a cut."
    )

    def __post_init__(self) -> None:
        check_declared(self)


class Prices(NamedTuple):
    """Energy in whole nanojoules, so that sums are exact; `step` is the bin width of the histogram over devices."""

    release: int = 0  # counting, drawing and sending, without what the flash takes
    open: int = 0  # seeding the generator, reading the journal
    store: int = 0  # any store of the journal
    step: int = 1


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
        from sensorsim.datasets.dataset import NUMERIC_COLUMNS, prepare
        from sensorsim.datasets.synthetic import make

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
    devices: int = option(REQUIRED, Whole(1, MOST_DEVICES), "Number of devices.")
    days: int = option(REQUIRED, Whole(1, MOST_DAYS), "Days that the fleet runs.")
    records_per_day: int = option(1, Whole(1, MOST_DEVICES), "Records that a device makes.")
    schedule: str = option(
        SAMPLED,
        Choice(*SCHEDULES),
        "Where a budget does not pay for every record: releases all over the period, or until it is spent.",
    )
    faults: Faults = field(default_factory=Faults)
    seed: int = option(
        0,
        Whole(0, MOST_SEED),
        "Seed of everything that is drawn, so that a run can go on: reproducible, so not private.",
    )
    prices: Prices = field(default_factory=Prices)

    def __post_init__(self) -> None:
        check_declared(self)
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
        from sensorsim.hospital.packets import Expected

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
