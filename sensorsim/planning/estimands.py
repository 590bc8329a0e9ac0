"""Estimands of a plan: a mean over people, a correlation, or a linear model, each as one object.

A correlation takes two kinds of packets: half of them release features, half of them sketches of the covariance. Its
error has two parts, and more packets reduce only the second: the bias by clipping at the sketch's R, simulated on
synthetic people (planning/synthetic_people.py), and 1.96 standard errors of the noise, which go with R²/sqrt(sketches).
A plan takes the R, of a few, with which their sum is least. About 95 of 100 correlations are within that sum on those
people: a forecast, not a proved interval. The hospital's prior is left out.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from sensorsim._util.errors import InputError
from sensorsim.hospital.confidence import law_of, mean_interval, spread_of_people
from sensorsim.hospital.learning import SQUARES_SPREAD
from sensorsim.noise.noise_table import NoiseTable
from sensorsim.planning.deployment import COVARIANCE, MEAN, MODEL, Asked, given
from sensorsim.planning.synthetic_people import PEOPLE_CLIPPED, reaches

if TYPE_CHECKING:
    from sensorsim.planning.solve import Design

NORMAL_95 = 1.959964  # standard normal quantile of 97.5 %
MOST_PACKETS = 10**15
ONE_BIT, ROWS = "one bit", "rows"  # forms of a table
SKETCHED = Fraction(1, 2)  # of the packets for a correlation
MOST_FEATURES = 256  # beyond, the 2^16 directions of a sketch are too few for all entries of a covariance
MOST_DIGITS = 17


class NoneEnoughError(InputError):
    """No number within its bounds is enough."""


@dataclass(frozen=True)
class Estimate:
    """Half width of a 95 % interval and its standard error; None where nothing arrives."""

    half: float
    sd: float | None = None


@dataclass(frozen=True)
class Correlation:
    """Predicted error of one correlation; `root` is the R to give to the sketch."""

    reach: float
    root: float
    bias: float
    sd: float

    @property
    def half(self) -> float:
        return self.bias + NORMAL_95 * self.sd


class Estimand:
    """Something that packets estimate. This base serves a model, whose accuracy is simulated and not solved for.

    The others also say: `count_for`, the fewest values that reach the accuracy; `design_noise` and `table_noise`, the
    variance of one value of a design or a table; `predict`, the half width in closed form from packets of k features.
    """

    goal: ClassVar[str] = MODEL
    forms: ClassVar[tuple[str, ...]] = (ROWS,)  # of tables that may serve
    spread: ClassVar[float] = SQUARES_SPREAD  # variance that people, or squares of a sketch, add to that of one value
    per_feature: ClassVar[bool] = False  # each feature has its own estimate, so a record may release several
    table_is_quick: ClassVar[bool] = False  # whether a search may make the table of every candidate
    percent: ClassVar[bool] = True  # whether a half width is shown as a percentage

    def check(self, asked: Asked) -> None:
        """Refuse what cannot be planned, or an accuracy that no number of packets reaches."""

    def estimate(self, table: NoiseTable, asked: Asked, count: int) -> Estimate | Correlation:
        """Return the half width from `count` values."""
        return Estimate(1.0)

    def format_half(self, half: float) -> str:
        """Format a half width with its unit."""
        return f"{_digits(100 * half)} % of the range" if self.percent else f"{half:.2g} of a correlation"

    def format_short(self, half: float) -> str:
        """Format a half width without the name of its unit."""
        return f"{_digits(100 * half)} %" if self.percent else f"{half:g}"

    def format_pair(self, half: float, wanted: float) -> tuple[str, str]:
        """Format two half widths with enough digits to tell them apart."""
        pair = [self.format_half(half).split()[0], self.format_short(wanted).split()[0]]
        times, unit, short = (100, " % of the range", " %") if self.percent else (1, " of a correlation", "")
        for digits in range(3, MOST_DIGITS):
            if pair[0] != pair[1]:
                break
            pair = [f"{times * value:.{digits}g}" for value in (half, wanted)]
        return pair[0] + unit, pair[1] + short


class MeanEstimand(Estimand):
    """The mean of every feature over people, with a proved interval."""

    goal = MEAN
    forms = (ONE_BIT, ROWS)
    spread = 0.25  # largest variance of x in 0 … 1
    per_feature = True
    table_is_quick = True

    def estimate(self, table: NoiseTable, asked: Asked, count: int) -> Estimate:
        sd = float(value_sd(table, asked.expect) / count**0.5) if count else None
        return Estimate(mean_half(table, count, asked.expect), sd)

    def count_for(self, table: NoiseTable, asked: Asked) -> int:
        return mean_count(table, given(asked.accuracy), asked.expect)

    def design_noise(self, design: "Design", asked: Asked) -> float:
        return design.variance - (asked.expect - 0.5) ** 2  # a design predicts about one half

    def table_noise(self, table: NoiseTable, asked: Asked) -> float:
        return value_sd(table, asked.expect) ** 2

    def predict(self, noise: float, asked: Asked, packets: float, k: int) -> float:
        count = packets * k / asked.n
        return min(NORMAL_95 * math.sqrt(noise / count) if count > 0 else math.inf, 0.5)


class CorrelationEstimand(Estimand):
    """The correlation of any two columns, by sketches."""

    goal = COVARIANCE
    percent = False

    def check(self, asked: Asked) -> None:
        if asked.n > MOST_FEATURES:
            raise InputError(
                f"a covariance of {asked.n} features is not planned for: a sketch has too few directions for its "
                f"entries; give {MOST_FEATURES} features or fewer."
            )
        if asked.accuracy is not None:
            _check_reachable(asked.n, asked.accuracy)

    def estimate(self, table: NoiseTable, asked: Asked, count: int) -> Estimate | Correlation:
        return correlation(table, asked.n, count) if count else Estimate(1.0)

    def count_for(self, table: NoiseTable, asked: Asked) -> int:
        return correlation_count(table, asked.n, given(asked.accuracy))

    def design_noise(self, design: "Design", asked: Asked) -> float:
        return design.variance - self.spread

    def table_noise(self, table: NoiseTable, asked: Asked) -> float:
        return float(given(table.estimate_sd) ** 2)

    def predict(self, noise: float, asked: Asked, packets: float, k: int) -> float:
        return predicted_correlation(noise, asked.n, packets).half


ESTIMANDS: dict[str, Any] = {each.goal: each() for each in (MeanEstimand, CorrelationEstimand, Estimand)}


def packets(devices: int, every: int, budget_days: int, allowed: int, loss: float = 0.0) -> Fraction:
    """Return the expected packets of one estimate: `allowed` of a device in `budget_days`, over `every` days."""
    arrive = 1 - Fraction(Decimal(str(loss)))
    return Fraction(devices * every * allowed, budget_days) * arrive


def fewest(enough: Callable[[int], bool], low: int, most: int) -> int:
    """Return the smallest integer that is enough, where larger ones are too; NoneEnoughError where `most` is not."""
    high = low
    while not enough(high):
        if high >= most:
            raise NoneEnoughError(f"not even {most} would do; ask for less.")
        low, high = high + 1, min(2 * high, most)
    return low + bisect_left(range(low, high), True, key=enough)


# ── a mean ──


def mean_half(table: NoiseTable, count: int, expect: float = 0.5) -> float:
    """Return the half width of a mean over people from `count` values of one feature, as a share of the range.

    A one-bit table gives an integer number of ones: interpolate between the two next to the expected mean.
    """
    law = law_of(table)

    def half(mean: float) -> float:
        return mean_interval(law, mean, count, of="people").half

    if len(law.values) > 2 or count == 0:
        return half(expect)
    small, large = map(float, law.values)
    ones = (expect - small) / (large - small) * count
    below = min(math.floor(ones), count - 1)
    beside = [half(small + (large - small) * whole / count) for whole in (below, below + 1)]
    return beside[0] + (ones - below) * (beside[1] - beside[0])


def mean_count(table: NoiseTable, half: float, expect: float = 0.5) -> int:
    """Return the fewest values of a feature whose mean has an interval of this half width."""
    return fewest(lambda count: mean_half(table, count, expect) <= half, 1, MOST_PACKETS)


def value_sd(table: NoiseTable, expect: float = 0.5) -> float:
    """Return the standard deviation of one value about the mean, for the worst people of that mean."""
    return spread_of_people(law_of(table), expect)


# ── a correlation ──


def correlation(table: NoiseTable, n: int, count: int) -> Correlation:
    """Predict the error of a correlation of n columns from `count` packets, with the best R."""
    return predicted_correlation(given(table.estimate_sd) ** 2, n, count)


def predicted_correlation(noise: float, n: int, count: float) -> Correlation:
    """Predict it for a table whose values have this variance."""
    sketches = count * float(SKETCHED)
    each = [Correlation(at.reach, at.root, at.bias, at.sketch_sd(noise) / math.sqrt(sketches)) for at in reaches(n)]
    return min(each, key=lambda one: one.half)


def correlation_count(table: NoiseTable, n: int, half: float) -> int:
    """Return the fewest packets with which a correlation has about this half width."""
    _check_reachable(n, half)
    able, noise = [at for at in reaches(n) if at.bias < half], given(table.estimate_sd) ** 2
    sketches = min((NORMAL_95 * at.sketch_sd(noise) / (half - at.bias)) ** 2 for at in able)
    return math.ceil(sketches / SKETCHED)


def _check_reachable(n: int, half: float) -> None:
    least = min(at.bias for at in reaches(n))
    if half <= least:
        raise InputError(
            f"clipping alone takes {least:.2g} of a correlation on {PEOPLE_CLIPPED}, however many packets there are; "
            f"ask for more than that, not {half:g}."
        )


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 10 else f"{value:.1f}"
