"""Describe a deployment to plan: all defaults, all checks. None marks the number that the plan solves for."""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import CHIP, RADIO, Budget, Choice, Number, Open, Whole, check_declared, option
from sensorsim.accounting.composition import LEAST_DELTA
from sensorsim.costing.chips import DEFAULT_RADIO
from sensorsim.datasets.public_ranges import Range, ranges_for
from sensorsim.noise.noise_table import MOST_FEATURES, NoiseTable, budget_of

MEAN, COVARIANCE, MODEL = "mean", "covariance", "model"
GOALS = (MEAN, COVARIANCE, MODEL)
FEATURES = 14
MOST_DEVICES, MOST_DAYS, MOST_RECORDS = 10**9, 36_525, 2**16 - 1
SOLVABLE = ("devices", "records_per_day", "budget_days", "every", "budget_epsilon", "accuracy")


class Line(NamedTuple):
    """One number of a plan; `how` is a Python expression that computes it again from `table`, the noise table."""

    name: str
    value: Any
    unit: str
    how: str

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


@dataclass(frozen=True)
class Asked:
    """A deployment. At most one of SOLVABLE is None; an accuracy that is not given is solved for."""

    devices: int | None = option(5000, Open(Whole(1, MOST_DEVICES)), "Devices of the fleet.")
    records_per_day: int | None = option(1, Open(Whole(1, MOST_RECORDS)), "Records that a device makes.")
    budget_epsilon: Decimal | float | str | None = option(
        "1", Open(Budget()), "Epsilon of a person in a budget period."
    )
    budget_days: int | None = option(30, Open(Whole(1, MOST_DAYS)), "Days of a budget period.")
    every: int | None = option(7, Open(Whole(1, MOST_DAYS)), "Days that one estimate is made of.")
    accuracy: float | None = option(
        None,
        Open(Number(above=0, below=0.5)),
        "Half width of the 95 % interval, as a share of the range: 0.02 is 2 %; of a correlation about.",
    )
    goal: str = option(
        MEAN, Choice(*GOALS), "What is estimated: every mean, the covariance, or a linear model.", flag="for"
    )
    features: int | None = option(None, Whole(1), "Features of a record.", default_text=str(FEATURES))
    columns: tuple[str, ...] = ()
    ranges: "tuple[Range, ...] | None" = None  # of the columns; ready ones where none are given
    days: int = option(365, Whole(1, MOST_DAYS), "Days that the fleet runs.")
    expect: float = option(
        0.5, Number(0, 1), "Mean that is planned for, as a share of the range; at 0.5 the interval is widest."
    )
    loss: float = option(0.0, Number(0, below=1), "Share of the packets that are lost.")
    noise: NoiseTable | None = field(default=None, repr=False)  # a given table, in place of the best one
    delta: float = option(1e-6, Number(LEAST_DELTA, below=1), "Delta of the epsilon by privacy-loss distributions.")
    chip: str | None = option(None, CHIP, "A chip, for energy; `sensorsim cpus` lists them, or FILE.csv with your own.")
    radio: str = option(DEFAULT_RADIO, RADIO, "What sends: ble-2m, 802154, lora-sf7 …")
    battery_mah: float | None = option(None, Number(), "Also what the releases take of a battery.")

    def __post_init__(self) -> None:
        check_declared(self)
        if self.every is not None and self.every > self.days:
            raise InputError(
                f"an estimate is made of {self.every} days and the fleet runs for {self.days}; give a smaller --every, "
                "or more --days."
            )
        if self.budget_epsilon is not None:
            object.__setattr__(self, "budget_epsilon", budget_of(self.budget_epsilon, "budget epsilon"))
        if self.goal != MEAN and self.expect != type(self).expect:
            raise InputError(f"--expect is the mean that is planned for, and a {self.goal} has none; leave it out.")
        self._check_features()
        missing = [name for name in SOLVABLE if getattr(self, name) is None]
        if len(missing) > 1:
            named = " and ".join(_words(name) for name in missing)
            raise InputError(f"{named} are open and a plan solves for one of them; give all but one.")
        if self.goal != MEAN and self.n < 2:
            raise InputError(
                f"a {self.goal} needs at least 2 features, for their covariance; give --features 2 or more."
            )
        if self.goal == MODEL and (self.accuracy is not None or self.open != "accuracy"):
            raise InputError("a model is simulated and not solved for; leave --accuracy out and give all the rest.")
        if self.goal != MEAN and self.noise is not None and self.noise.release != 1:
            raise InputError(
                f"a {self.goal} is learnt from one number of a record and this table releases {self.noise.release}; "
                "make it with --release 1."
            )

    def _check_features(self) -> None:
        known = {"--features": self.features, "the columns": len(self.columns) or None}
        known["the noise table"] = None if self.noise is None else self.noise.features
        numbers = {name: count for name, count in known.items() if count is not None}
        if len(set(numbers.values())) > 1:
            listed = " and ".join(
                f"{name} {'are' if name == 'the columns' else 'is'} {n}" for name, n in numbers.items()
            )
            raise InputError(f"{listed}: a record has one number of features; give a table made for them.")
        if not 1 <= self.n <= MOST_FEATURES:
            raise InputError(f"features is {self.n}; give a whole number from 1 to {MOST_FEATURES}.")
        if self.goal != MEAN and self.ranges is not None:
            raise InputError(f"--ranges give a mean its unit, and a {self.goal} has none; leave them out.")
        if self.goal == MEAN and self.columns and self.ranges is None:
            object.__setattr__(self, "ranges", ranges_for(self.columns))
        if self.ranges is not None and len(self.ranges) != self.n:
            raise InputError(f"{self.n} features meet {len(self.ranges)} ranges; give one range for each.")

    @property
    def n(self) -> int:
        """Number of features of a record."""
        if self.features is not None:
            return self.features
        return len(self.columns) or (FEATURES if self.noise is None else self.noise.features)

    @property
    def open(self) -> str | None:
        """Name of the number that the plan solves for; None where all are given, the accuracy too."""
        return next((name for name in SOLVABLE if getattr(self, name) is None), None)

    @property
    def budget(self) -> Decimal:
        return Decimal(str(given(self.budget_epsilon)))

    def with_(self, **found: Any) -> "Asked":
        """Return a copy with some values replaced."""
        return replace(self, **found)

    def to_dict(self) -> dict[str, Any]:
        names = ("devices", "records_per_day", "budget_days", "every", "accuracy", "goal", "days", "expect", "loss")
        made = {name: getattr(self, name) for name in (*names, "delta", "chip", "radio", "battery_mah")}
        return {"features": self.n, "columns": list(self.columns), "budget_epsilon": str(self.budget), **made}


def given(value: Any) -> Any:
    """Return a value that is known not to be None."""
    assert value is not None
    return value


def span(days: int) -> str:
    """Return how often an estimate comes, in words."""
    return {1: "a day", 7: "a week", 30: "a month", 365: "a year"}.get(days, f"in {days:,} days")


def _words(name: str) -> str:
    return name.replace("_", " ")
