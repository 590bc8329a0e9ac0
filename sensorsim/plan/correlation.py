"""What packets tell of a correlation: half of them release features, half of them sketches of the covariance.

R²·u = s'Σs + noise, and Σ is the regression on the products of the directions' entries (hospital/covariance.py). What a
correlation is off by has two parts, and more packets lessen only one of them:

    clipping   its bias at this R, simulated on synthetic people: plan/clipping.py
    noise      1.96 standard errors, which go with R²·sd(u)/sqrt(sketches)

The R of a plan is the one, of a few, with which the two together are least. Their sum is about what 95 of 100
correlations are within on those people: a forecast, and no proved interval. sd(u)² is the table's largest noise and
what squares differ by themselves. The hospital's prior is left out: where noise is as small as a plan asks for, it
moves little.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sensorsim.errors import InputError
from sensorsim.plan.reached import NORMAL_95

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable
    from sensorsim.plan.clipping import Reach

SKETCHED = Fraction(1, 2)  # of the packets
MOST_FEATURES = 256  # of more, the 2^16 directions of a sketch are too few for all entries of a covariance


@dataclass(frozen=True)
class Correlation:
    """What one correlation of n columns is off by, about; `root` is the R to give to the sketch."""

    reach: float
    root: float
    bias: float
    sd: float

    @property
    def half(self) -> float:
        return self.bias + NORMAL_95 * self.sd


def correlation(table: "NoiseTable", n: int, count: int) -> Correlation:
    """From so many packets of a table, with the best R."""
    return foretold_correlation(_noise(table), n, count)


def foretold_correlation(noise: float, n: int, count: float) -> Correlation:
    """The same for a table that is not made yet, whose values have this variance."""
    from sensorsim.plan.clipping import reaches

    check_features(n)
    sketches = count * float(SKETCHED)
    each = [Correlation(at.reach, at.root, at.bias, _of_one(at, noise) / math.sqrt(sketches)) for at in reaches(n)]
    return min(each, key=lambda one: one.half)


def correlation_count(table: "NoiseTable", n: int, half: float) -> int:
    """The fewest packets with which a correlation is off by no more, about."""
    from sensorsim.plan.clipping import reaches

    check_reachable(n, half)
    able = [at for at in reaches(n) if at.bias < half]
    sketches = min((NORMAL_95 * _of_one(at, _noise(table)) / (half - at.bias)) ** 2 for at in able)
    return math.ceil(sketches / SKETCHED)


def check_reachable(n: int, half: float) -> None:
    """Refuse what no number of packets reaches."""
    from sensorsim.plan.clipping import PEOPLE, reaches

    check_features(n)
    least = min(at.bias for at in reaches(n))
    if half <= least:
        raise InputError(
            f"clipping alone takes {least:.2g} of a correlation on {PEOPLE}, however many packets there are; ask for "
            f"more than that, not {half:g}."
        )


def check_features(n: int) -> None:
    if n > MOST_FEATURES:
        raise InputError(
            f"a covariance of {n} features is not planned for: a sketch has too few directions for its entries; give "
            f"{MOST_FEATURES} features or fewer."
        )


def _noise(table: "NoiseTable") -> float:
    assert table.estimate_sd is not None
    return table.estimate_sd**2


def _of_one(at: "Reach", noise: float) -> float:
    """Standard error from one sketch."""
    return at.error * math.sqrt(noise + at.spread)
