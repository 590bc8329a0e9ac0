"""What one received value can be, and how likely, at any x: a noise table as the hospital sees it."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim.noise.certificate import certify

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

Reals = npt.NDArray[np.float64]

MOST_VALUES = 513  # more are spread over as many points, so that their means stay
FINE, COARSE = 128, 32  # steps of x. Either has the knots of every rows table among its points
HEAVY = 0.02  # the chance at some x that makes a single value count as one


@dataclass(frozen=True, eq=False)
class Law:
    """chance[i, j] of the unbiased values[j] at x[i]; linear in between, which is exact for rows.

    Values that lie denser are split between two points each, and x between two x of the grid is a mixture of both:
    either keeps the mean and adds a little spread, so that what is said of the law holds for the table.
    """

    values: Reals  # ascending, 0 … 1 being the range of x
    chance: Reals
    step: float  # the largest between single values of some weight, times that weight: how discrete sums are
    epsilon: float  # of one value

    @cached_property
    def x(self) -> Reals:
        return np.linspace(0.0, 1.0, len(self.chance))

    @cached_property
    def mirrored(self) -> "Law":
        """The law of 1 - value at 1 - x."""
        return Law(1 - self.values[::-1], np.ascontiguousarray(self.chance[::-1, ::-1]), self.step, self.epsilon)


@lru_cache(maxsize=16)
def law_of(table: "NoiseTable") -> Law:
    """The law of a certified table, from its counts."""
    sd, epsilon = table.estimate_sd, certify(table).epsilon_release
    assert sd is not None and epsilon is not None
    steps = min(FINE if sd < 1 else COARSE, 1 << table.frac_bits)
    every = np.unique(np.concatenate([_at(table, i, 2)[0] for i in range(3)]))
    points = every if len(every) <= MOST_VALUES else np.linspace(every[0], every[-1], MOST_VALUES)
    chance, heavy, weight = [], np.array([]), 0.0
    for i in range(steps + 1):
        values, each = _at(table, i, steps)
        chance.append(_split(points, values, each))
        single = each >= HEAVY
        heavy, weight = np.union1d(heavy, values[single]), max(weight, float(each[single].sum()))
    step = weight * float(np.diff(heavy).max(initial=0.0))
    return Law(points, np.stack(chance), step, float(epsilon))


def _at(table: "NoiseTable", i: int, steps: int) -> tuple[Reals, Reals]:
    """Unbiased values and their chances at x = i/steps."""
    released, counts = table.distribution((i << table.frac_bits) // steps)
    values: Any = table.estimate(released)
    return values, counts / counts.sum()


def _split(points: Reals, values: Reals, chance: Reals) -> Reals:
    """Each chance on the two points beside its value, the nearer the more: the mean stays as it is."""
    left = np.clip(np.searchsorted(points, values, side="right") - 1, 0, len(points) - 2)
    share = (values - points[left]) / (points[left + 1] - points[left])
    low: Any = np.bincount(left, chance * (1 - share), len(points))
    high: Any = np.bincount(left + 1, chance * share, len(points))
    return np.asarray(low + high, np.float64)
