"""What the bound R of a sketch does to correlations: what it clips off them, and how much noise it lets in.

A sketch is u = min(1, (s·(x - c))²/R²). A small R clips: the covariance that is learnt is then too small, and by more
along directions on which columns go together, so correlations come out too small as well, however many packets there
are. A large R lets more noise in, as that goes with R². Nothing closed says what clipping takes; it depends on people.

So it is simulated, on people that are made here (plan/model.py), without noise and without chance: every public
direction meets all of them, and the regression of the hospital is solved for what it would learn from endless packets.
Real people differ; with longer tails, or all columns alike, clipping takes more.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

SIMULATED = 4_000  # of the people of plan/model.py
MOST_SIMULATED = 24  # features; of more, clipping takes about as much, and noise is scaled to them
REACHES = (1.7, 2.2, 2.8, 3.5, 4.5, 6.0, 8.0)  # R in standard deviations of a sketch; the first is the hospital's own
PEOPLE = f"{SIMULATED:,} synthetic people"
ON_OTHERS = "on others clipping may take more"


@dataclass(frozen=True)
class Reach:
    """One R, on the people that are made here. Correlations are those of any two columns, the worst of them."""

    reach: float  # R in standard deviations of a sketch, on average over directions
    root: float  # R
    bias: float  # by which a correlation is off for good, at most
    spread: float  # variance of u itself, of one direction, on average
    error: float  # standard error of a correlation from one sketch whose u had the variance 1, at most


@dataclass(frozen=True)
class Regression:
    """Least squares for the entries (i, j), i <= j, of a covariance, on the products of all directions' entries."""

    vectors: Any  # (directions, n)
    i: Any
    j: Any
    products: Any  # (directions, entries)
    inverse: Any  # of products'·products

    def solved(self, squares: Any) -> Any:
        """The covariance, (n, n), that mean squares along the directions come from."""
        import numpy as np

        n = self.vectors.shape[1]
        found = np.zeros((n, n))
        found[self.i, self.j] = found[self.j, self.i] = self.inverse @ (self.products.T @ squares)
        return found


def column_variance(n: int) -> float:
    """That of a column of the people, on average."""
    return float(_people(min(n, MOST_SIMULATED)).var(axis=0).mean())


@lru_cache(maxsize=4)
def reaches(n: int) -> tuple[Reach, ...]:
    """All of REACHES, for n columns: smallest R first."""
    import numpy as np

    from sensorsim.device.sketch import LEAST_ROOT

    few = min(n, MOST_SIMULATED)
    x = _people(few)
    regression, truth = _regression(few), np.corrcoef(x.T)
    squares = ((x - x.mean(axis=0)) @ regression.vectors.T) ** 2
    once = _error(regression, x.var(axis=0), truth) * math.sqrt(_wider(n) / _wider(few))
    unit = math.sqrt(float(x.var(axis=0).sum()) / 2)  # half of a direction's entries are not zero
    found = []
    for reach in REACHES:
        root = max(reach * unit, LEAST_ROOT)
        clipped = np.minimum(squares, root**2)
        bias = np.abs(correlations(regression.solved(clipped.mean(axis=0))) - truth).max()
        spread = float(clipped.var(axis=0).mean()) / root**4
        scaled = root * math.sqrt(n / few)
        found.append(Reach(root / unit, scaled, float(bias), spread, once * scaled**2))
    return tuple(found)


def correlations(covariance: Any) -> Any:
    import numpy as np

    deviation = np.sqrt(np.diag(covariance))
    return covariance / np.outer(deviation, deviation)


def _people(n: int) -> Any:
    from sensorsim.plan.model import made_people

    return made_people(n)[:SIMULATED] / 2**15


def _regression(n: int) -> Regression:
    """On the directions that the hospital's sketch of n features has."""
    import numpy as np

    from sensorsim.device.sketch import Sketch
    from sensorsim.hospital.learn import direction_bits

    vectors = Sketch.of([0.5] * n, 1.0, direction_bits(n)).vectors().astype(np.float64)
    i, j = np.triu_indices(n)
    products = vectors[:, i] * vectors[:, j] * np.where(i == j, 1, 2)  # off the diagonal an entry stands twice
    return Regression(vectors, i, j, products, np.linalg.inv(products.T @ products))


def _error(regression: Regression, variance: Any, truth: Any) -> float:
    """Standard error of the worst correlation, from one square of variance 1, with packets even over directions.

    r = Σ_ij/sqrt(Σ_ii·Σ_jj) moves with all three: by dΣ_ij/sqrt(v_i·v_j) - r/2·(dΣ_ii/v_i + dΣ_jj/v_j).
    """
    import numpy as np

    i, j = regression.i, regression.j
    covariance = regression.inverse * len(regression.vectors)
    own = np.flatnonzero(i == j)  # where the diagonal's entries are, column by column
    pair = np.flatnonzero(i != j)
    a, b, (v, w) = own[i[pair]], own[j[pair]], (variance[i[pair]], variance[j[pair]])
    half = truth[i[pair], j[pair]] / 2
    moved = covariance[pair, pair] / (v * w)
    moved -= 2 * half / np.sqrt(v * w) * (covariance[pair, a] / v + covariance[pair, b] / w)
    moved += half**2 * (covariance[a, a] / v**2 + covariance[b, b] / w**2 + 2 * covariance[a, b] / (v * w))
    return float(np.sqrt(moved.max()))


def _wider(n: int) -> float:
    """By how much the variance of an entry goes up as there are not endless directions: D/(D - entries)."""
    from sensorsim.hospital.learn import direction_bits

    directions = float(2 ** direction_bits(n))
    return directions / (directions - n * (n + 1) // 2)
