"""Describe a deployment to plan: all defaults, all checks. None marks the number that the plan solves for."""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.costing.chips import DEFAULT_RADIO

if TYPE_CHECKING:
    from sensorsim.datasets.public_ranges import Range
    from sensorsim.noise.noise_table import NoiseTable

MEAN, COVARIANCE, MODEL = "mean", "covariance", "model"
GOALS = (MEAN, COVARIANCE, MODEL)
FEATURES = 14
MOST_DEVICES, MOST_DAYS, MOST_RECORDS = 10**9, 36_525, 2**16 - 1
WHOLE = {"devices": MOST_DEVICES, "records_per_day": MOST_RECORDS, "budget_days": MOST_DAYS, "every": MOST_DAYS}
SOLVABLE = (*WHOLE, "budget_epsilon", "accuracy")


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

    devices: int | None = 5000
    records_per_day: int | None = 1
    budget_epsilon: Decimal | float | str | None = "1"  # of a person in `budget_days`
    budget_days: int | None = 30
    every: int | None = 7  # days of packets in one estimate
    accuracy: float | None = None  # half width of the 95 % interval: of a mean in ranges, or of a correlation
    goal: str = MEAN
    features: int | None = None  # those of the columns or of the table; else 14
    columns: tuple[str, ...] = ()
    ranges: "tuple[Range, ...] | None" = None  # of the columns; ready ones where none are given
    days: int = 365  # that the fleet runs
    expect: float = 0.5  # the mean that is planned for; at one half the interval is widest
    loss: float = 0.0  # share of the packets that never arrive
    noise: "NoiseTable | None" = field(default=None, repr=False)  # a given table, in place of the best one
    delta: float = 1e-6  # of the epsilon by privacy-loss distributions
    chip: str | None = None
    radio: str = DEFAULT_RADIO
    battery_mah: float | None = None

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_features()
        if self.goal not in GOALS:
            raise InputError(
                f"a plan is not for {self.goal!r}{did_you_mean(self.goal, GOALS)}; give one of {', '.join(GOALS)}."
            )
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

    def _check_numbers(self) -> None:
        for name, most in {**WHOLE, "days": MOST_DAYS}.items():
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 1 <= value <= most):
                raise InputError(f"{_words(name)} is {value}; give a whole number from 1 to {most}.")
        if self.every is not None and self.every > self.days:
            raise InputError(
                f"an estimate is made of {self.every} days and the fleet runs for {self.days}; give a smaller --every, "
                "or more --days."
            )
        if self.budget_epsilon is not None:
            from sensorsim.noise.noise_table import budget_of

            object.__setattr__(self, "budget_epsilon", budget_of(self.budget_epsilon, "budget epsilon"))
        if self.accuracy is not None and not (_is_real(self.accuracy) and 0 < self.accuracy < 0.5):
            raise InputError(
                f"accuracy is {self.accuracy}; give the half width of an interval as a share of the range, above 0 and "
                "below 0.5, as in 0.02 for 2 %."
            )
        if not (_is_real(self.expect) and 0 <= self.expect <= 1):
            raise InputError(f"the mean expected is {self.expect}; give it as a share of the range, from 0 to 1.")
        if self.goal != MEAN and self.expect != type(self).expect:
            raise InputError(f"--expect is the mean that is planned for, and a {self.goal} has none; leave it out.")
        if not (_is_real(self.loss) and 0 <= self.loss < 1):
            raise InputError(f"loss is {self.loss}; give the share of packets that are lost, from 0 to below 1.")
        from sensorsim.accounting.composition import LEAST_DELTA

        if not (_is_real(self.delta) and LEAST_DELTA <= self.delta < 1):
            raise InputError(f"delta is {self.delta}; give a number from {LEAST_DELTA:g} to below 1.")

    def _check_features(self) -> None:
        from sensorsim.datasets.public_ranges import ranges_for
        from sensorsim.noise.noise_table import MOST_FEATURES

        known = {"--features": self.features, "the columns": len(self.columns) or None}
        known["the noise table"] = None if self.noise is None else self.noise.features
        numbers = {name: count for name, count in known.items() if count is not None}
        if len(set(numbers.values())) > 1:
            listed = " and ".join(
                f"{name} {'are' if name == 'the columns' else 'is'} {n}" for name, n in numbers.items()
            )
            raise InputError(f"{listed}: a record has one number of features; give a table made for them.")
        if not (type(self.n) is int and 1 <= self.n <= MOST_FEATURES):
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


def _is_real(value: object) -> bool:
    return type(value) in (int, float)
