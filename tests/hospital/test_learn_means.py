"""Means of columns from sums of symbols: beside brute force, on any distribution, with few packets and with none."""

import math
from functools import cache
from typing import Any

import naive_learn
import naive_rows
import naive_sketch
import numpy as np
import pytest
from scipy.stats import chi2

from sensorsim.device import Sketch
from sensorsim.hospital.column_prior import PRIOR, SHAPES, columns
from sensorsim.hospital.learning import column_of_names, known_columns, learn
from sensorsim.noise.noise_table import NoiseTable, ready_table
from sensorsim.training.trained import feature_sums, on_the_lattice, sketch_sums

MANY = 10**6
# where x lies and how often: none of it is a Beta distribution, most of it lies between the knots of every table
ANYWHERE = {
    "two heaps": ([0.05, 0.9], [0.7, 0.3]),
    "between knots": ([0.13, 0.37, 0.61], [0.5, 0.25, 0.25]),
    "uniform": (np.linspace(0, 1, 101), np.full(101, 1 / 101)),
    "always 0": ([0.0], [1.0]),
    "always 1": ([1.0], [1.0]),
    "0 or 1": ([0.0, 1.0], [0.85, 0.15]),
    "a rare end": ([0.31, 1.0], [0.98, 0.02]),
}


def drawn(table: NoiseTable, x: Any, share: Any, packets: int, seed: int) -> np.ndarray:
    """One column's sums: symbols of a rows table by its counts, count and sum of a stairs table by its distribution."""
    rng = np.random.default_rng(seed)
    each = rng.multinomial(packets, share)
    if table.kind == "rows":
        laws = naive_learn.chances(table.counts)(np.array(x))
        return sum(rng.multinomial(count, law) for count, law in zip(each, laws, strict=True))
    total = 0.0
    for count, at in zip(each, x, strict=True):
        values, counts = table.distribution(round(at * 2**15))
        total += float(rng.multinomial(count, counts / counts.sum()) @ table.estimate(values))
    return np.array([packets, total])


def standard_error(table: NoiseTable, x: Any, share: Any, packets: int) -> tuple[float, float]:
    """The mean, and the standard error of the mean of unbiased values."""
    if table.kind == "rows":
        symbols = len(table.counts[0])
        mean, variance = naive_learn.unbiased(table.counts, table.estimate(np.arange(symbols)), x, share)
    else:
        mean, square = float(np.dot(x, share)), 0.0
        for at, part in zip(x, share, strict=True):
            values, counts = table.distribution(round(at * 2**15))
            square += part * float(counts / counts.sum() @ table.estimate(values) ** 2)
        variance = square - mean**2
    return mean, math.sqrt(variance / packets)


@pytest.mark.parametrize("kind", ["rows", "stairs"])
@pytest.mark.parametrize("epsilon", ["0.1", "0.4", "1.6", "6.4"])
def test_with_many_packets_the_mean_is_right_whatever_the_column_is(epsilon: str, kind: str) -> None:
    """Within four standard errors of the unbiased mean: all columns at once, beside each other."""
    table = ready_table(epsilon, 1, kind)
    packets = MANY if kind == "rows" else MANY // 10
    cases = [case for name, case in ANYWHERE.items() if kind == "rows" or name != "uniform"]
    sums = np.array([drawn(table, *case, packets, place) for place, case in enumerate(cases)])
    found = columns(table, sums)
    for mean, claimed, case in zip(found.mean, found.uncertainty, cases, strict=True):
        wanted, error = standard_error(table, *case, packets)
        assert abs(mean - wanted) < 4 * error, case
        # no more doubt than unbiased values leave for any column, and two per cent for the steps of the grid
        assert claimed < 1.02 * (table.estimate_sd**2 + 1 / 4) / packets


@cache
def from_the_prior(columns: int, draws: int) -> Any:
    return naive_learn.prior_columns(PRIOR, SHAPES, draws, columns, np.random.default_rng(7))


# By importance sampling from the prior with exact likelihoods. What differs is how the freedom of a shape is treated:
# as normal. With 60,000 draws means differ by up to 0.10 posterior deviations, and those by up to 12 per cent.
FEW = [("0.4", 10), ("0.4", 40), ("0.4", 150), ("1.6", 10), ("1.6", 40), ("1.6", 150)]


@pytest.mark.parametrize("epsilon, packets", FEW)
def test_few_packets_beside_brute_force(epsilon: str, packets: int) -> None:
    table = ready_table(epsilon, 1)
    chance = naive_learn.chances(table.counts)
    for place, at in enumerate([[0.1], [0.5], [0.9], [0.0, 1.0], [0.2, 0.3, 0.95]]):
        sums = drawn(table, at, np.full(len(at), 1 / len(at)), packets, place)[None]
        mean, variance, draws = naive_learn.posterior(from_the_prior(1, 30_000), chance, sums)
        found, sd = columns(table, sums), math.sqrt(variance[0])
        allowed = 0.12 + 4 / math.sqrt(draws)  # the second part is the brute force's own error
        assert abs(found.mean[0] - mean[0]) < allowed * sd
        assert abs(math.sqrt(found.uncertainty[0]) / sd - 1) < allowed


def test_columns_tell_of_each_other() -> None:
    """Three columns near 0.2 and one of which nothing came: by brute force, all four at once."""
    table = ready_table("1.6", 1)
    chance = naive_learn.chances(table.counts)
    sums = np.array([drawn(table, [0.2], [1.0], 12, place) for place in range(3)] + [np.zeros(len(table.counts[0]))])
    mean, variance, draws = naive_learn.posterior(from_the_prior(4, 20_000), chance, sums)
    found = columns(table, sums)
    allowed = 0.12 + 4 / math.sqrt(draws)
    assert np.all(np.abs(found.mean - mean) < allowed * np.sqrt(variance))
    assert found.mean[3] < 0.47  # it has moved with the others
    assert found.uncertainty[3] > found.uncertainty[:3].max()


@pytest.mark.parametrize("kind", ["rows", "stairs"])
def test_nothing_came(kind: str) -> None:
    table = ready_table("1.6", 1, kind)
    found = columns(table, np.zeros((14, table.symbols or 2)))
    assert found.mean == pytest.approx(np.full(14, 0.5))
    values, weights = from_the_prior(1, 30_000)
    means = (values * weights).sum(axis=-1)
    assert found.uncertainty == pytest.approx(np.full(14, means.var()), rel=0.05)


def test_mirror_images_are_learnt_alike() -> None:
    """1 - x gives 1 - mean, whatever epsilon is: no prior for small values."""
    for epsilon in ("0.1", "0.8", "6.4"):
        table = ready_table(epsilon, 1)
        sums = np.array([drawn(table, [0.05, 0.4], [0.8, 0.2], 30, place) for place in range(14)])
        found, mirrored = columns(table, sums), columns(table, sums[:, ::-1])
        assert np.array(table.counts).tolist() == np.array(table.counts)[::-1, ::-1].tolist()
        assert mirrored.mean == pytest.approx(1 - found.mean, abs=1e-6)
        assert mirrored.uncertainty == pytest.approx(found.uncertainty, rel=1e-4)


@pytest.mark.parametrize("sigma", [0.2, 0.5])
def test_noise_of_the_environment_is_taken_off(sigma: float) -> None:
    """Columns that are what the prior thinks of, near an end: clipping pulls what is delivered to the middle."""
    table = ready_table("3.2", 1)
    rng = np.random.default_rng(3)
    chance = naive_learn.chances(table.counts)
    true, sums, seen = [], [], []
    for a, b in ((1.5, 13.5), (12.0, 3.0), (36.0, 4.0), (0.3, 1.2)):
        x = rng.beta(a, b, 200_000)
        delivered = np.clip(x + sigma * rng.standard_normal(len(x)), 0, 1)
        true.append(x.mean())
        seen.append(delivered.mean())
        sums.append(rng.multinomial(len(x), chance(delivered).mean(axis=0)))
    taken_off, as_it_came = columns(table, sums, sigma), columns(table, sums)
    assert np.abs(as_it_came.mean - np.array(seen)).max() < 0.01  # biased, as it must be
    assert np.abs(np.array(seen) - true).min() > 0.015
    away = np.abs(taken_off.mean - np.array(true))
    assert np.all(away < 0.4 * np.abs(np.array(seen) - true)) and np.all(away < 4 * np.sqrt(taken_off.uncertainty))


def test_spreads_of_columns_of_which_little_is_known_are_alike() -> None:
    """A hundred records at 0.4 say nothing of spreads; a million at 6.4 say all. The means stay as they are."""
    cases = list(ANYWHERE.values())
    for epsilon, packets, alike in (("0.4", 8, True), ("6.4", MANY, False)):
        table = ready_table(epsilon, 1)
        sums = np.array([drawn(table, *case, packets, place) for place, case in enumerate(cases)])
        plain, together = columns(table, sums), known_columns(table, sums, np.arange(len(cases)))
        assert together.mean.tolist() == plain.mean.tolist()
        spread, drawn_to = (np.log(one.within).std() for one in (plain, together))
        assert (drawn_to < 0.1 * spread) if alike else (drawn_to > 0.99 * spread)


def test_a_column_that_stands_twice_is_one() -> None:
    table = ready_table("1.6", 1)
    names = ("a", "b", "a", "c", "b")
    of = column_of_names(names)
    assert of.tolist() == [0, 1, 0, 2, 1]
    sums = np.array([drawn(table, [0.1 + 0.2 * of[i]], [1.0], 20 + i, i) for i in range(5)])
    pooled = np.array([sums[0] + sums[2], sums[1] + sums[4], sums[3]])
    found, alone = learn(table, sums, of), learn(table, pooled, np.arange(3))
    for mine, wanted in zip(found[:3], alone[:3], strict=True):
        assert mine == pytest.approx(wanted)


# ── sums of releases ──


@pytest.mark.parametrize("epsilon, k", [("1.6", 1), ("6.4", 1), ("1.6", "all")])
def test_sums_of_features_follow_the_law_of_the_table(epsilon: str, k: Any) -> None:
    """Chi-square of every column's symbols, and of how often each column was picked."""
    table = ready_table(epsilon, k)
    at = np.linspace(0, 1, 14)
    rows = 70_000  # more than one block
    sums = feature_sums(on_the_lattice(np.tile(at, (rows, 1))), table, 5)
    each = rows if k == "all" else rows / 14
    assert sums.sum() == rows * (14 if k == "all" else 1)
    if k == "all":
        assert set(sums.sum(axis=1)) == {rows}
    else:
        assert ((sums.sum(axis=1) - each) ** 2 / each).sum() < chi2.ppf(1 - 1e-6, 13)
    for x, found in zip(at, sums, strict=True):
        law = np.array(naive_rows.distribution(round(x * 2**15), table.counts), float)
        wanted = law / law.sum() * found.sum()
        assert ((found - wanted) ** 2 / wanted).sum() < chi2.ppf(1 - 1e-6, len(wanted) - 1)


def test_sums_of_stairs_are_counts_and_sums_of_unbiased_values() -> None:
    table = ready_table("6.4", 1, "stairs")
    at = np.linspace(0, 1, 14)
    sums = feature_sums(on_the_lattice(np.tile(at, (20_000, 1))), table, 6)
    assert sums[:, 0].sum() == 20_000
    _, error = standard_error(table, [0.5], [1.0], 20_000 // 14)
    assert np.abs(sums[:, 1] / sums[:, 0] - at).max() < 5 * error


def test_sums_of_sketches_are_of_the_clipped_square() -> None:
    """One record again and again: each direction's mean is u by its definition, as far as noise lets it be."""
    table = ready_table("6.4", 1)
    x, centre = [0.1, 0.9, 0.5, 0.0, 1.0], [0.3, 0.5, 0.2, 0.6, 0.4]
    sketch = Sketch.of(centre, 0.7, 5)
    count, total = sketch_sums(on_the_lattice(np.tile(x, (150_000, 1))), table, sketch, 9)
    assert count.sum() == 150_000
    away = on_the_lattice([x])[0].tolist()
    u = [
        float(naive_sketch.exact(naive_sketch.along(away, sketch.centre, q), sketch.factor, sketch.halvings))
        for q in range(32)
    ]
    assert 3 < sum(value == 1 for value in u) < 30  # some are clipped at R, some are not
    errors = np.array([standard_error(table, [value], [1.0], 1)[1] for value in u])
    score = (total / count - u) / (errors / np.sqrt(count))
    assert (score**2).sum() < chi2.ppf(1 - 1e-6, 32)
