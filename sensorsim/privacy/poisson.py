"""Gaussian noise on sums that each record joins by chance: Poisson sampling, for records that are replaced.

Every record joins every sum with the same probability q ("rate"), apart from all others, and nobody sees who joined. A
record moves a sum by at most C. Noise has a standard deviation of multiplier·C. Then no two neighbours are told apart
better than the mixtures

    P = sum over j of Bin(j; k, q)·N(j, multiplier²)      Q = sum over j of Bin(j; k, q)·N(-j, multiplier²)

where k records of a person (usually one) are replaced. Where they are removed or added instead, which is what most
libraries count, Q = N(0, multiplier²).

Why these. Given all other records, both outputs are mixtures of normals around the sums V_S of the parts v_i of those
records i that joined; under the other data set v_i' stands for v_i. Against a normal at zero, the densities are sums of
exp(V·g - |V|²/2), g normal: numbers u_S for P and w_S for Q. At alpha = exp(epsilon) the hockey stick is the mean of
max(0, linear function), with weights above zero on each u and below zero on each w: a convex function. Along a path of
covariances its mean changes by half the sum of (change of covariance)·(second derivative)·(product of two of these
numbers), so it grows with each variance, with each covariance of two u or two w, and as the covariance of a u and a w
falls. All are at their ends together: parts of full length C, all v along one line, all v' against it. That is P and Q.
For alpha below 1 swap the two. Steps that follow each other compose, whatever later steps make of earlier ones.
"""

import math
from functools import lru_cache
from typing import Any

from sensorsim.errors import InputError
from sensorsim.privacy import pld
from sensorsim.privacy.spending import gaussian_epsilon, noise_multiplier_for

REPLACED = ((1, -1),)  # where the sums go under P and under Q
REMOVED = ((1, 0), (0, -1))  # removing a record, and adding one
MOST_TOGETHER = 256  # records of a person in one sum; above, no amplification is claimed
LOST = 1e-4  # share of delta that the cut tails of all steps may take
HALVINGS = 48
POINTS = 2 * pld.CELLS  # of a composition: many steps with a small loss each need a finer grid
MOST_CELLS = 1 << 13  # of one step


def epsilon(
    multiplier: float,
    rate: float,
    steps: int,
    delta: float,
    records: int = 1,
    relation: tuple[tuple[int, int], ...] = REPLACED,
) -> float:
    """The epsilon at delta of `steps` noisy sums; an upper bound, and a close one."""
    if not 0 < rate <= 1:
        raise InputError(f"a sampling rate of {rate}; give a probability above 0 and at most 1.")
    together = _together(records, rate, steps, delta)
    if rate == 1 or together > MOST_TOGETHER:  # everyone always joins: at least as telling
        moved = max(p - q for p, q in relation)
        return gaussian_epsilon(moved * records * math.sqrt(steps) / multiplier, delta)
    return max(_composed(multiplier, rate, steps, delta, records, ways).epsilon(delta) for ways in relation)


@lru_cache(maxsize=64)
def multiplier_for(wanted: float, delta: float, steps: int, rate: float) -> float:
    """Standard deviation over C with which a record that may be replaced spends `wanted`, to 1e-3 on the safe side."""
    high = noise_multiplier_for(wanted, delta, steps)
    if rate == 1:
        return high
    low = high * rate
    while epsilon(low, rate, steps, delta) <= wanted:
        high, low = low, low / 2
    while high / low > 1 + 1e-3:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if epsilon(middle, rate, steps, delta) <= wanted else (middle, high)
    return high


def _together(records: int, rate: float, steps: int, delta: float) -> int:
    """So many of a person's records meet in one sum, but for a chance that counts as lost."""
    from scipy.stats import binom

    return min(records, int(binom.isf(LOST * delta / steps, records, rate)) + 1)


def _composed(multiplier: float, rate: float, steps: int, delta: float, records: int, ways: tuple[int, int]) -> pld.PLD:
    from scipy.stats import norm

    pair = _Pair(multiplier, rate, records, _together(records, rate, steps, delta), ways)
    reach = float(norm.isf(LOST * delta / steps)) * multiplier
    low, high = min(ways) * pair.together - reach, max(ways) * pair.together + reach
    span = float(pair.loss(high) - pair.loss(low))
    step = max(span * steps / POINTS, span / MOST_CELLS)
    return pld.compose([(pair.distribution(low, high, step), steps)])


class _Pair:
    """P and Q of one sum."""

    def __init__(self, multiplier: float, rate: float, records: int, together: int, ways: tuple[int, int]) -> None:
        import numpy as np
        from scipy.stats import binom

        self.multiplier, self.together, self.ways = multiplier, together, ways
        self.joined = np.arange(together + 1)
        self.weights = binom.pmf(self.joined, records, rate)

    def loss(self, x: Any) -> Any:
        """log(P/Q) at x; it grows with x, since P's normals stand to the right of Q's."""
        return self._log_density(x, self.ways[0]) - self._log_density(x, self.ways[1])

    def distribution(self, low: float, high: float, step: float) -> pld.PLD:
        """The losses between x = low and x = high on a grid; what is outside counts as infinite."""
        import numpy as np

        first, last = math.floor(self.loss(low) / step), math.ceil(self.loss(high) / step)
        edges = self._where(np.arange(first, last + 1) * step, low, high)
        cells_p, cells_q = (self._masses(edges, way) for way in self.ways)
        # What rounding may take from each cell is added to the mass that counts as infinite.
        infinite = max(0.0, 1 - float(cells_p.sum())) + len(cells_p) * 2.0**-52
        return pld.from_cells(np.append(cells_p, 0.0), np.append(cells_q, 0.0), step, first, infinite)

    def _where(self, losses: Any, low: float, high: float) -> Any:
        """The x of each loss, by halving."""
        import numpy as np

        left, right = np.full(len(losses), low), np.full(len(losses), high)
        for _ in range(HALVINGS):
            middle = (left + right) / 2
            less = self.loss(middle) < losses
            left, right = np.where(less, middle, left), np.where(less, right, middle)
        right[0], right[-1] = low, high
        return right

    def _masses(self, edges: Any, way: int) -> Any:
        """Of the cells between edges, each taken from the tail that it is nearer to."""
        import numpy as np
        from scipy.special import ndtr

        z = (edges[:, None] - way * self.joined) / self.multiplier
        a, b = z[:-1], z[1:]
        masses = np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
        return masses @ self.weights

    def _log_density(self, x: Any, way: int) -> Any:
        """Of the mixture against a normal at zero."""
        import numpy as np
        from scipy.special import logsumexp

        moved = way * self.joined / self.multiplier
        exponent = np.asarray(x)[..., None] / self.multiplier * moved - moved**2 / 2
        return logsumexp(exponent, axis=-1, b=self.weights)
