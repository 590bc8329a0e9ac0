"""What packets of a table tell of a mean over people: how many come, and the interval."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from sensorsim.errors import InputError

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

NORMAL_95 = 1.959964  # standard normal quantile of 97.5 %
MOST_PACKETS = 10**15


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


def foretold_half(variance: float, count: float) -> float:
    """Half the width in closed form, for a table that is not made yet and whose values have this variance."""
    return NORMAL_95 * math.sqrt(variance / count) if count > 0 else math.inf


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
