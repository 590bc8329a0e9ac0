"""What packets of a table tell: the interval of a mean over people, and the error of a correlation.

A correlation is learnt from sketches: half of the packets release features, half squares u along public directions s,
whose entries are -1, 0, 0 or 1. R²·u = s'Σs + noise; least squares on the products s_i·s_j. Those of two entries have
the mean 0 and the variance 1 once they are doubled, as an entry off the diagonal stands twice, and are uncorrelated; so

    sd(Σ_ij) = R²·sd(u)/sqrt(packets)                    i ≠ j
    sd(Σ_ii) = 2·sqrt(n/(n+1))·R²·sd(u)/sqrt(packets)    from (I + 11')/4, the products of equal entries

`learn` takes R = REACH·sqrt(sum of the variances / 2), and a sketch no R below LEAST_ROOT. For n columns of one
variance v a correlation Σ_ij/v has the error max(REACH²·n/2, LEAST_ROOT²/v) · sd(u)/sqrt(packets). sd(u)² is the
table's largest noise and what squares differ by themselves: so it holds where noise dominates. What the hospital knows
before, its prior, makes its estimate better than that.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from sensorsim.errors import InputError

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

NORMAL_95 = 1.959964  # standard normal quantile of 97.5 %
SKETCHED = Fraction(1, 2)  # of the packets, for a covariance
MOST_PACKETS = 10**15
ASSUMED_VARIANCE = 1 / 24  # of a column, as the hospital assumes before the first packet: prior.FLAT_VARIANCE / 2


class NoneEnoughError(InputError):
    """No number that may be given reaches what is asked for."""


def packets(devices: int, every: int, budget_days: int, allowed: int, loss: float = 0.0) -> Fraction:
    """Expected packets of one estimate: `allowed` of a device in `budget_days`, over `every` days, less losses."""
    arrive = 1 - Fraction(Decimal(str(loss)))
    return Fraction(devices * every * allowed, budget_days) * arrive


def mean_half(table: "NoiseTable", count: int, expect: float = 0.5) -> float:
    """Half the width of the interval of a mean over people, from so many values of one feature; share of the range.

    Of one bit a whole number of ones comes: the interval is that between the two of them beside the mean expected.
    """
    from sensorsim.hospital.intervals import mean_interval
    from sensorsim.hospital.law import law_of

    law = law_of(table)

    def half(mean: float) -> float:
        low, high = mean_interval(law, mean, count, of="people")
        return (high - low) / 2

    if len(law.values) > 2 or count == 0:
        return half(expect)
    small, large = map(float, law.values)
    ones = (expect - small) / (large - small) * count
    below = min(math.floor(ones), count - 1)
    beside = [half(small + (large - small) * whole / count) for whole in (below, below + 1)]
    return beside[0] + (ones - below) * (beside[1] - beside[0])


def value_sd(table: "NoiseTable", expect: float = 0.5) -> float:
    """Standard deviation of one value about the mean of the people, for the worst people of that mean."""
    from sensorsim.hospital.intervals import spread_of_people
    from sensorsim.hospital.law import law_of

    return spread_of_people(law_of(table), expect)


def mean_count(table: "NoiseTable", half: float, expect: float = 0.5) -> int:
    """The fewest values of a feature with which a mean has an interval of this half width."""
    return fewest(lambda count: mean_half(table, count, expect) <= half, 1, MOST_PACKETS)


def correlation_sd(table: "NoiseTable", n: int, count: int, variance: float = ASSUMED_VARIANCE) -> float:
    """Standard error of one correlation of n columns from so many packets, half of which are sketches."""
    from sensorsim.hospital.learn import SQUARES_SPREAD

    assert table.estimate_sd is not None
    return _correlation_sd(table.estimate_sd**2 + SQUARES_SPREAD, n, count, variance)


def correlation_half(table: "NoiseTable", n: int, count: int) -> float:
    """Half the width of its 95 % interval, of a normal law."""
    return NORMAL_95 * correlation_sd(table, n, count)


def correlation_count(table: "NoiseTable", n: int, half: float) -> int:
    """The fewest packets for an interval of this half width."""
    return math.ceil((correlation_half(table, n, 1) / half) ** 2)


def foretold_half(variance: float, n: int, count: float, mean: bool) -> float:
    """The same two, in closed form, for a table that is not made yet and whose values have this variance."""
    if count <= 0:
        return math.inf
    return NORMAL_95 * (math.sqrt(variance / count) if mean else _correlation_sd(variance, n, count))


def _correlation_sd(noise: float, n: int, count: float, variance: float = ASSUMED_VARIANCE) -> float:
    from sensorsim.device.sketch import LEAST_ROOT
    from sensorsim.hospital.learn import REACH

    squared_root = max(REACH**2 * n / 2, LEAST_ROOT**2 / variance)  # R² in variances of a column
    return squared_root * math.sqrt(noise / (count * float(SKETCHED)))


def fewest(enough: Callable[[int], bool], low: int, most: int) -> int:
    """The smallest whole number that is enough, where larger ones are; NoneEnoughError where `most` is not."""
    high = low
    while not enough(high):
        if high >= most:
            raise NoneEnoughError(f"not even {most} would do; ask for less.")
        low, high = high + 1, min(2 * high, most)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high
