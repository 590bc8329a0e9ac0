"""Covariance from sketches: beside an explicit regression, without noise, and from the device's own packets."""

import math
from dataclasses import replace

import naive_learn
import naive_sketch
import numpy as np
import pytest

from sensorsim.device import Sketch
from sensorsim.hospital import learning
from sensorsim.hospital.column_prior import PRIOR, likeness
from sensorsim.hospital.learning import (
    Squares,
    column_of_names,
    covariance,
    direction_bits,
    known_columns,
    learn,
    share_of,
    sketch_of,
)
from sensorsim.noise.noise_table import ready_table
from sensorsim.training.trained import feature_sums, on_the_lattice, sketch_sums

N = 5
MEAN = np.array([0.2, 0.7, 0.5, 0.4, 0.85])
CENTRE = np.array([0.25, 0.6, 0.5, 0.5, 0.8])  # what the first phase took for the mean
FACTORS = np.array([[0.2, -0.15, 0.1, 0.0, 0.05], [0.0, 0.1, 0.12, -0.2, 0.03]])
TRUE = FACTORS.T @ FACTORS + np.diag([0.01, 0.02, 0.005, 0.01, 0.02])
ROOT = 1.3


def directions(count: int, n: int = N) -> np.ndarray:
    return np.array([naive_sketch.entries(number, n) for number in range(count)], float)


def squares(count: int, each: float, noise: float, seed: int | None) -> tuple[Squares, np.ndarray]:
    """What as many packets of each direction say, and the mean square of each; without a seed there is no noise."""
    S = directions(count)
    second = TRUE + np.outer(MEAN - CENTRE, MEAN - CENTRE)
    u = np.einsum("di,ij,dj->d", S, second, S) / ROOT**2
    if seed is not None:
        u = u + np.random.default_rng(seed).normal(0, math.sqrt(noise / each), count)
    return Squares(S, np.full(count, each), u * each, CENTRE, ROOT, noise), u * ROOT**2


def expected(level: float = 1.0) -> np.ndarray:
    sd = np.sqrt(np.diag(TRUE))
    return level * np.outer(sd, sd) * naive_learn.likeness(N, PRIOR)


@pytest.mark.parametrize("each, noise", [(3.0, 0.4), (40.0, 0.4), (1000.0, 0.4), (40.0, 0.006)])
def test_the_regression_beside_least_squares(each: float, noise: float) -> None:
    """An explicit matrix of n(n+1)/2 entries, with as many rows for what is assumed of them."""
    seen, square = squares(90, each, noise, seed=4)
    moved = square - np.array([(s @ (MEAN - CENTRE)) ** 2 for s in seen.directions])
    given = (PRIOR.strength, learning.LEVEL_SD)
    wanted = naive_learn.ridge(seen.directions, seen.count, moved, noise * ROOT**4, expected(0.8), *given)
    found = covariance(seen, MEAN, expected(0.8), PRIOR.strength)
    values, vectors = np.linalg.eigh(wanted)
    wanted = vectors @ np.diag(np.maximum(values, 1e-9)) @ vectors.T
    assert found == pytest.approx(wanted, abs=1e-7)


def test_the_likeness_that_is_assumed() -> None:
    assert likeness(9) == pytest.approx(naive_learn.likeness(9, PRIOR))


def test_without_noise_the_covariance_comes_out() -> None:
    """Whatever is assumed, wherever the centre was, whatever R is."""
    for level in (0.3, 1.0, 3.0):
        seen, _ = squares(200, 1e6, 1e-4, None)
        assert covariance(seen, MEAN, expected(level), PRIOR.strength) == pytest.approx(TRUE, abs=1e-4)


def test_without_a_sketch_it_is_what_is_assumed() -> None:
    seen, _ = squares(200, 0.0, 0.4, None)
    assert covariance(seen, MEAN, expected(), PRIOR.strength) == pytest.approx(expected(), abs=1e-9)


def test_packets_overrule_what_is_assumed() -> None:
    """Two columns that are each other's mirror image, assumed to be alike: a hundred packets of a direction show it.

    The strength of the prior is what lets them: it is about as wide as a correlation can be.
    """
    true = np.array([[0.02, -0.018], [-0.018, 0.02]])
    S = directions(64, 2)
    u = np.einsum("di,ij,dj->d", S, true, S) / 0.3**2
    seen = Squares(S, np.full(64, 100.0), 100 * u, np.full(2, 0.5), 0.3, 0.4)
    found = covariance(seen, np.full(2, 0.5), 0.02 * likeness(2), PRIOR.strength)
    assert found[0, 1] / 0.02 < -0.75


@pytest.mark.slow
def test_many_columns_need_no_matrix_of_their_pairs() -> None:
    """n = 300: the regression has 45,150 unknowns, and its matrix would have 24 GB."""
    n = 300
    S = directions(2048, n)
    true = 0.01 * (0.5 + 0.5 * np.eye(n))
    u = np.einsum("di,ij,dj->d", S, true, S) / 9.0
    seen = Squares(S, np.full(2048, 50.0), 50 * u, np.full(n, 0.5), 3.0, 0.4)
    found = covariance(seen, np.full(n, 0.5), 0.01 * likeness(n), PRIOR.strength)
    assert np.isfinite(found).all() and np.linalg.eigvalsh(found).min() > 0
    assert np.trace(found) == pytest.approx(np.trace(true), rel=0.1)


# ── from packets ──


def records(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.clip(rng.multivariate_normal(MEAN, TRUE / 2, count), 0, 1)


def clipped_covariance(x: np.ndarray, sketch: Sketch, of: np.ndarray) -> np.ndarray:
    """What sketches without noise say: least squares of the records' clipped squares along every direction."""
    S = np.array([naive_sketch.entries(q, len(of)) for q in range(sketch.directions)], float)
    square = np.minimum((S @ (x - np.array(sketch.centre) / 2**15).T) ** 2, sketch.root**2).mean(axis=1)
    pairs = [(i, j) for i in range(len(of)) for j in range(len(of))]
    columns = sorted({tuple(sorted((of[i], of[j]))) for i, j in pairs})
    design = np.zeros((len(S), len(columns)))
    for i, j in pairs:
        design[:, columns.index(tuple(sorted((of[i], of[j]))))] += S[:, i] * S[:, j]
    away = S @ (x.mean(axis=0) - np.array(sketch.centre) / 2**15)
    entries = np.linalg.lstsq(design, square - away**2, rcond=None)[0]
    found = np.zeros((of.max() + 1, of.max() + 1))
    for (i, j), entry in zip(columns, entries, strict=True):
        found[i, j] = found[j, i] = entry
    return found


def near(found: np.ndarray, wanted: np.ndarray, x: np.ndarray) -> float:
    """The largest difference, in deviations of the columns."""
    sd = x.std(axis=0)
    return float(np.abs((found - wanted) / np.outer(sd, sd)).max())


def test_from_the_devices_own_packets() -> None:
    """Two phases of 200,000 records at 6.4: means, a sketch about them, covariance."""
    table, of = ready_table("6.4", 1), np.arange(N)
    table = replace(table, features=N)
    first, second = records(200_000, 1), records(200_000, 2)
    sums = feature_sums(on_the_lattice(first), table, 3)
    sketch = sketch_of(known_columns(table, sums, of), of)
    found = learn(table, sums, of, sketch, sketch_sums(on_the_lattice(second), table, sketch, 4))
    assert np.abs(found.mean - first.mean(axis=0)).max() < 0.003
    assert near(found.covariance, clipped_covariance(second, sketch, of), second) < 0.05
    true = np.diag(np.cov(second.T))
    assert np.all(np.diag(found.covariance) > 0.8 * true)  # what clipping at R takes off
    assert found.measured and not learn(table, sums, of).measured


def test_a_sketch_of_columns_that_stand_twice() -> None:
    """A direction with entries for both copies has their sum for the column."""
    table, names = ready_table("6.4", 1), ("a", "b", "a", "c", "d", "e", "b")
    table, of = replace(table, features=7), column_of_names(names)
    first, second = (records(100_000, seed)[:, of] for seed in (5, 6))
    sums = feature_sums(on_the_lattice(first), table, 7)
    sketch = sketch_of(known_columns(table, sums, of), of)
    assert sketch.n == 7 and sketch.centre[0] == sketch.centre[2]
    found = learn(table, sums, of, sketch, sketch_sums(on_the_lattice(second), table, sketch, 8))
    assert found.covariance.shape == (5, 5)
    assert near(found.covariance, clipped_covariance(second, sketch, of), second[:, [0, 1, 3, 4, 5]]) < 0.05


def test_no_sketch_came() -> None:
    table = ready_table("1.6", 1)
    of, sums = np.arange(14), np.full((14, 5), 20.0)
    sketch = Sketch.of([0.5] * 14, 1.0, 6)
    without, empty = learn(table, sums, of), learn(table, sums, of, sketch, (np.zeros(64), np.zeros(64)))
    assert np.array_equal(without.covariance, empty.covariance) and not empty.measured


def test_how_many_records_sketch() -> None:
    """None below 50 packets an entry, each weighed by 1/(variance + 0.1); 0.35 of them at 100, and never over 0.7."""
    for epsilon in ("0.4", "1.6", "6.4"):
        table = ready_table(epsilon, 1)
        variance = table.estimate_sd**2 + 0.1
        for n in (14, 64, 300):
            entries = n * (n + 1) / 2
            assert share_of(round(49 * entries * variance), n, table) == 0
            assert share_of(round(100 * entries * variance), n, table) == pytest.approx(0.35, abs=0.01)
            assert share_of(round(1000 * entries * variance), n, table) == pytest.approx(0.665, abs=0.001)
    assert share_of(10**9, 14, table) == pytest.approx(0.7, abs=1e-4) and share_of(0, 14, table) == 0


def test_how_many_directions() -> None:
    """Six for each entry of the covariance, as a power of two; 64 at least, 65,536 at most."""
    for n in (1, 2, 5, 14, 64, 147, 300):
        bits = direction_bits(n)
        wanted = 6 * n * (n + 1) / 2
        assert 2**bits >= min(wanted, 2**16) and (bits == 6 or 2 ** (bits - 1) < wanted) and 6 <= bits <= 16
