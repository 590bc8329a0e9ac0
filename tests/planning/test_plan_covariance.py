"""Plans for a covariance, against the truth: what is learnt of correlated columns by the kernels and the hospital."""

import math

import numpy as np
import pytest

from sensorsim._util.errors import InputError
from sensorsim.device.sketches import Sketch, sketch_records
from sensorsim.hospital.learning import known_columns, learn, sketch_of
from sensorsim.mechanisms.release import table_for
from sensorsim.noise.batch_release import sampled_records
from sensorsim.noise.noise_table import ready_table
from sensorsim.planning import Asked, plan
from sensorsim.planning.estimands import Correlation, correlation, correlation_count, predicted_correlation
from sensorsim.planning.plan_text import plan_text
from sensorsim.planning.synthetic_people import REACHES, column_variance, made_people, reaches


def truth_of(x):
    return np.corrcoef((x / 2**15).T)[np.triu_indices(x.shape[1], 1)]


def errors(table, x, count, root, runs):
    """Of every correlation that the hospital learns, run by run: half of the packets features, half sketches."""
    n, found = x.shape[1], []
    of_columns = np.arange(n)
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        chosen, y = (part.ravel() for part in sampled_records(x[rng.integers(0, len(x), count // 2)], table, [seed, 1]))
        sums = np.zeros((n, table.symbols))
        np.add.at(sums, (chosen, y), 1)
        own = sketch_of(known_columns(table, sums, of_columns), of_columns)
        sketch = Sketch.of(own.middle.tolist(), root, own.direction_bits)
        number, y = sketch_records(x[rng.integers(0, len(x), count // 2)], table, sketch, [seed, 2])
        squares = [np.bincount(number, weight, sketch.directions) for weight in (None, table.estimate(y))]
        covariance = learn(table, sums, of_columns, sketch, tuple(squares)).covariance
        deviation = np.sqrt(np.diag(covariance))
        learnt = (covariance / np.outer(deviation, deviation))[np.triu_indices(n, 1)]
        found.append(learnt - truth_of(x))
    return np.array(found)


def check(n, epsilon, count, runs):
    """95 % of the correlations are within, and of the worst one no fewer than chance may take off it."""
    table = table_for("rows", epsilon, n, 1)
    told = correlation(table, n, count)
    found = errors(table, made_people(n), count, told.root, runs)
    assert (abs(found) <= told.half).mean() >= 0.95
    assert (abs(found) <= told.half).mean(axis=0).min() >= 0.75
    worst, error = abs(found.mean(axis=0)).max(), told.sd / math.sqrt(runs)
    assert told.bias - 4 * error < worst < told.bias + 4 * error


def test_correlations_are_within_what_is_told_of_them():
    check(5, "6.4", 100_000, 8)


@pytest.mark.slow
@pytest.mark.parametrize("n, epsilon, count", [(5, "1.6", 200_000), (5, "6.4", 20_000), (14, "6.4", 400_000)])
def test_they_are_for_other_numbers_of_packets_and_columns(n, epsilon, count):
    check(n, epsilon, count, 12)


def test_of_other_people_nothing_is_promised():
    """Columns that are more alike are clipped more: what is told does not hold for them, and the plan says so."""
    rng = np.random.default_rng(5)
    alike = 0.9 * rng.standard_normal((20_000, 1)) + math.sqrt(0.19) * rng.standard_normal((20_000, 5))
    x = np.rint(np.clip(0.5 + 0.2 * alike, 0, 1) * 2**15).astype(np.uint16)
    table = table_for("rows", "6.4", 5, 1)
    told = correlation(table, 5, 100_000)
    assert (abs(errors(table, x, 100_000, told.root, 4)) <= told.half).mean() < 0.95
    found = plan(Asked(goal="covariance", features=5, devices=10**6))
    assert "synthetic" in plan_text(found) and "on others clipping may take more" in plan_text(found)
    assert any("synthetic" in note and "not proved" in note for note in found.to_dict()["notes"])


@pytest.mark.parametrize("reach", [1, 3])
def test_what_clipping_takes_is_met_by_the_kernel(reach):
    """Squares of the kernel without noise, at random, and plain least squares: no chance is left but that of draws."""
    n, rng = 5, np.random.default_rng(3)
    x, at = made_people(n), reaches(n)[reach]
    sketch = Sketch.of((x / 2**15).mean(axis=0).tolist(), at.root, 7)
    number = rng.integers(0, sketch.directions, 400_000)
    square = sketch.value(x[rng.integers(0, len(x), len(number))], number.astype(np.uint32)) / 2**15 * at.root**2
    i, j = np.triu_indices(n)
    vectors = sketch.vectors().astype(float)
    products = (vectors[:, i] * vectors[:, j] * np.where(i == j, 1, 2))[number]
    covariance = np.zeros((n, n))
    covariance[i, j] = covariance[j, i] = np.linalg.solve(products.T @ products, products.T @ square)
    deviation = np.sqrt(np.diag(covariance))
    off = (covariance / np.outer(deviation, deviation))[np.triu_indices(n, 1)] - truth_of(x)
    assert abs(off).max() == pytest.approx(at.bias, abs=0.02)
    assert square.var() / at.root**4 >= at.spread > 0.5 * square.var() / at.root**4  # directions differ, too


def test_more_reach_takes_less_and_lets_in_more():
    for n in (2, 3, 14):
        found = reaches(n)
        assert len(found) == len(REACHES)
        assert [at.bias for at in found] == sorted((at.bias for at in found), reverse=True)
        assert [at.error for at in found] == sorted(at.error for at in found)
        assert all(at.root >= 0.5 for at in found)  # the firmware has no smaller one
        assert 0.01 < column_variance(n) < 0.0226


@pytest.mark.slow
def test_the_noise_of_the_worst_correlation_is_met_by_least_squares():
    """Columns that go together, packets of the real kernels, plain regression; noise is small beside a variance."""
    n, records, runs, table = 5, 100_000, 60, ready_table("3.2", 1)
    at, x = reaches(5)[3], made_people(5)
    sketch = Sketch.of((x / 2**15).mean(axis=0).tolist(), at.root, 7)
    i, j = np.triu_indices(n)
    vectors, found = sketch.vectors().astype(float), []
    products = vectors[:, i] * vectors[:, j] * np.where(i == j, 1, 2)
    for seed in range(runs):
        rng = np.random.default_rng([9, seed])
        number, y = sketch_records(x[rng.integers(0, len(x), records)], table, sketch, seed)
        A, covariance = products[number], np.zeros((n, n))
        solved = np.linalg.solve(A.T @ A, A.T @ (table.estimate(y) * sketch.root**2))
        covariance[i, j] = covariance[j, i] = solved
        deviation = np.sqrt(np.diag(covariance))
        found.append((covariance / np.outer(deviation, deviation))[np.triu_indices(n, 1)])
    measured = np.std(found, axis=0, ddof=1).max()
    told = at.error * math.sqrt((table.estimate_sd**2 + at.spread) / records)
    assert 0.8 < measured / told < 1.2  # the largest of ten, each known to 9 %


def test_the_reach_is_the_best_of_all():
    for count in (10**4, 10**6, 10**8):
        told = predicted_correlation(1.0, 14, count)
        each = [at.bias + 1.959964 * at.error * math.sqrt((1 + at.spread) * 2 / count) for at in reaches(14)]
        assert told.half == pytest.approx(min(each)) and told.root == reaches(14)[int(np.argmin(each))].root
    assert predicted_correlation(1.0, 14, 10**8).root > predicted_correlation(1.0, 14, 10**4).root


def test_packets_for_a_correlation_are_the_fewest():
    table = table_for("rows", "1", 14, 1)
    for half in (0.1, 0.3):
        count = correlation_count(table, 14, half)
        assert correlation(table, 14, count).half <= half * (1 + 1e-12)
        assert correlation(table, 14, count - 1).half > half * (1 - 1e-12)


def test_a_covariance_is_solved_for_and_one_feature_has_none():
    found = plan(Asked(goal="covariance", devices=None, accuracy=0.2))
    assert found.half <= 0.2 and found.table.release == 1 and found.solved_for == "devices"
    with pytest.raises(InputError, match="at least 2 features"):
        Asked(goal="covariance", features=1)


def test_both_parts_and_the_root_are_told():
    found = plan(Asked(goal="covariance", features=5, devices=10**6))
    told = found.settled.correlation
    assert isinstance(told, Correlation) and found.half == told.bias + 1.959964 * told.sd
    text = plan_text(found)
    assert f"clipping {told.bias:.2g}, noise {1.959964 * told.sd:.2g}" in text and "about ±" in text
    assert f"receive --write-sketch FILE --root {told.root:.4g}" in text and "not a proved interval" in text
    names = {line.name: line.value for line in found.lines}
    assert names["bound R of the sketch"] == told.root and names["bias by clipping, largest"] == told.bias


def test_what_clipping_forbids_is_refused_with_what_is_reachable():
    least = min(at.bias for at in reaches(14))
    for accuracy in (least, least / 2):
        with pytest.raises(InputError, match=f"clipping alone takes {least:.2g} of a correlation"):
            plan(Asked(goal="covariance", accuracy=accuracy))
    with pytest.raises(InputError, match="256 features or fewer"):
        plan(Asked(goal="covariance", features=300))
