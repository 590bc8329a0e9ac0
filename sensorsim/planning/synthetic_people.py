"""Simulate on synthetic people what has no closed form: what clipping does to correlations, and what a model reaches.

The people are the same for everyone: columns with means from 0.15 to 0.6, a third of their variance by one factor that
all share and a third by factors of three neighbours. Real people differ, and so will the figures.

A sketch is u = min(1, (s·(x - c))²/R²). A small R clips, which makes correlations too small for any number of packets;
a large R lets more noise in. Clipping is simulated without noise and sampling: every public direction meets all people.
A model is learnt from packets of the kernels; only their sums are kept, and the linear map is the hospital's.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sensorsim.device.sketches import LEAST_ROOT, Sketch, sketch_records
from sensorsim.hospital import learning
from sensorsim.hospital.learning import Map, direction_bits, learn, linear_map
from sensorsim.noise.batch_release import sampled_records
from sensorsim.noise.noise_table import NoiseTable

PEOPLE = 20_000
MOST_PACKETS = 2_000_000  # more count as this many
AT_ONCE = 1 << 17
SEED = 20_180_419
DATA = f"{PEOPLE:,} synthetic records"
CLIPPED = 4_000  # people that clipping is simulated on
PEOPLE_CLIPPED = f"{CLIPPED:,} synthetic people"
MOST_SIMULATED = 24  # features; of more, clipping takes about as much, and noise is scaled to them
REACHES = (1.7, 2.2, 2.8, 3.5, 4.5, 6.0, 8.0)  # R in standard deviations of a sketch; the first is the hospital's own
ON_OTHERS = "on others clipping may take more"


def made_people(n: int) -> npt.NDArray[np.uint16]:
    """Return records of n features in Q15."""
    rng = np.random.default_rng(SEED)
    common = rng.standard_normal((PEOPLE, 1))
    near = np.repeat(rng.standard_normal((PEOPLE, -(-n // 3))), 3, axis=1)[:, :n]
    own = rng.standard_normal((PEOPLE, n))
    x = np.linspace(0.15, 0.6, n) + 0.15 * (common + near + own) / np.sqrt(3)
    return np.asarray(np.rint(np.clip(x, 0, 1) * 2**15).astype(np.uint16))


# ── clipping ──


@dataclass(frozen=True)
class Reach:
    """Effect of one R on the worst correlation of two columns."""

    reach: float  # R in standard deviations of a sketch, on average over directions
    root: float  # R
    bias: float  # largest error of a correlation that no number of packets removes
    spread: float  # variance of u itself, of one direction, on average
    error: float  # largest standard error of a correlation from one sketch whose u had the variance 1

    def sketch_sd(self, noise: float) -> float:
        """Return the standard error of a correlation from one sketch."""
        return self.error * math.sqrt(noise + self.spread)


class Regression:
    """Least squares for the entries (i, j), i <= j, of a covariance, on the products of all directions' entries.

    The directions are those of the hospital's sketch of n features.
    """

    def __init__(self, n: int) -> None:
        self.vectors = Sketch.of([0.5] * n, 1.0, direction_bits(n)).vectors().astype(np.float64)  # (directions, n)
        self.i, self.j = np.triu_indices(n)
        twice = np.where(self.i == self.j, 1, 2)  # an entry off the diagonal occurs twice
        self.products = self.vectors[:, self.i] * self.vectors[:, self.j] * twice  # (directions, entries)
        self.inverse = np.linalg.inv(self.products.T @ self.products)

    def solve(self, squares: Any) -> Any:
        """Return the covariance, (n, n), from mean squares along the directions."""
        n = self.vectors.shape[1]
        found = np.zeros((n, n))
        found[self.i, self.j] = found[self.j, self.i] = self.inverse @ (self.products.T @ squares)
        return found


def column_variance(n: int) -> float:
    """Return the mean variance of a column of the people."""
    return float((made_people(min(n, MOST_SIMULATED))[:CLIPPED] / 2**15).var(axis=0).mean())


@lru_cache(maxsize=4)
def reaches(n: int) -> tuple[Reach, ...]:
    """Return the effect of each of REACHES for n columns, smallest R first."""
    few = min(n, MOST_SIMULATED)
    x = made_people(few)[:CLIPPED] / 2**15
    regression, truth = Regression(few), np.corrcoef(x.T)
    squares = ((x - x.mean(axis=0)) @ regression.vectors.T) ** 2
    once = _unit_error(regression, x.var(axis=0), truth) * math.sqrt(_variance_factor(n) / _variance_factor(few))
    unit = math.sqrt(float(x.var(axis=0).sum()) / 2)  # half of a direction's entries are not zero
    found = []
    for reach in REACHES:
        root = max(reach * unit, LEAST_ROOT)
        clipped = np.minimum(squares, root**2)
        covariance = regression.solve(clipped.mean(axis=0))
        deviation = np.sqrt(np.diag(covariance))
        bias = np.abs(covariance / np.outer(deviation, deviation) - truth).max()
        spread = float(clipped.var(axis=0).mean()) / root**4
        scaled = root * math.sqrt(n / few)
        found.append(Reach(root / unit, scaled, float(bias), spread, once * scaled**2))
    return tuple(found)


def _unit_error(regression: Regression, variance: Any, truth: Any) -> float:
    """Return the standard error of the worst correlation from one square of variance 1, directions evenly met.

    r = Σ_ij/sqrt(Σ_ii·Σ_jj) moves with all three: by dΣ_ij/sqrt(v_i·v_j) - r/2·(dΣ_ii/v_i + dΣ_jj/v_j).
    """
    i, j = regression.i, regression.j
    covariance = regression.inverse * len(regression.vectors)
    own = np.flatnonzero(i == j)  # index of the diagonal's entries, column by column
    pair = np.flatnonzero(i != j)
    a, b, (v, w) = own[i[pair]], own[j[pair]], (variance[i[pair]], variance[j[pair]])
    half = truth[i[pair], j[pair]] / 2
    moved = covariance[pair, pair] / (v * w)
    moved -= 2 * half / np.sqrt(v * w) * (covariance[pair, a] / v + covariance[pair, b] / w)
    moved += half**2 * (covariance[a, a] / v**2 + covariance[b, b] / w**2 + 2 * covariance[a, b] / (v * w))
    return float(np.sqrt(moved.max()))


def _variance_factor(n: int) -> float:
    """Return the factor on the variance of an entry for a finite number of directions: D/(D - entries)."""
    directions = 2.0 ** direction_bits(n)
    return directions / (directions - n * (n + 1) // 2)


# ── a model ──


@dataclass(frozen=True)
class SimulatedModel:
    """Accuracy is 100·(1 - mean squared error); R² is against the column means, which need no private map."""

    hidden: int
    packets: int  # that were simulated
    accuracy: float
    r2: float
    accuracy_of_half: float  # of always answering one half
    accuracy_of_means: float  # of always answering the true column means
    accuracy_without: float  # of the data-free map
    data: str = DATA


def simulate_model(table: NoiseTable, packets: int) -> SimulatedModel:
    """Simulate a linear map through half as many numbers as there are features."""
    n, count = table.features, min(packets, MOST_PACKETS)
    people = made_people(n)
    hidden = max(1, n // 2)
    x = people / 2**15

    def percent(answer: Any) -> float:
        return 100 * (1 - float(((answer - x) ** 2).mean()))

    def answer(found: Map) -> Any:
        return np.clip(found.d + (x @ found.W + found.b) @ found.V, 0, 1)

    means, accuracy = percent(x.mean(axis=0)), percent(answer(_learn_map(table, people, count, hidden)))
    without = percent(answer(linear_map(learning.nothing_known(np.arange(n)), hidden)))
    r2 = 1 - (100 - accuracy) / (100 - means)
    return SimulatedModel(hidden, count, accuracy, r2, percent(0.5), means, without)


def _learn_map(table: NoiseTable, people: Any, packets: int, hidden: int) -> Map:
    """Learn from features first, then from sketches about their means, in the proportion of `share_of`."""
    n, rng = table.features, np.random.default_rng(SEED + 1)
    column_of = np.arange(n)
    sketches = round(packets * learning.share_of(packets, n, table))
    sums = np.zeros((n, table.symbols or 2))
    for part, size in enumerate(_batches(packets - sketches)):
        chosen, y = (
            each.ravel() for each in sampled_records(people[rng.integers(0, PEOPLE, size)], table, [SEED, part])
        )
        if table.symbols is not None:  # the count of each symbol of every feature
            flat = np.bincount(chosen.astype(np.int64) * table.symbols + y, minlength=n * table.symbols)
            sums += flat.reshape(n, table.symbols)
        else:  # the number of its values and their sum
            sums += np.stack([np.bincount(chosen, minlength=n), np.bincount(chosen, table.estimate(y), n)], axis=1)
    if not sketches:
        return linear_map(learn(table, sums, column_of), hidden)
    sketch = learning.sketch_of(learning.known_columns(table, sums, column_of), column_of)
    count, total = np.zeros(sketch.directions), np.zeros(sketch.directions)
    for part, size in enumerate(_batches(sketches)):
        number, y = sketch_records(people[rng.integers(0, PEOPLE, size)], table, sketch, [SEED + 2, part])
        count += np.bincount(number, minlength=sketch.directions)
        total += np.bincount(number, table.estimate(y), minlength=sketch.directions)
    return linear_map(learn(table, sums, column_of, sketch, (count, total)), hidden)


def _batches(records: int) -> list[int]:
    return [min(AT_ONCE, records - start) for start in range(0, records, AT_ONCE)]
