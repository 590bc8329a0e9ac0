"""From mean and covariance to a model: beside PCA, Wiener's filter and the data-free map."""

from dataclasses import replace

import naive_learn
import numpy as np
import pytest
from sensorsim.kernels.encoder import encoder
from sensorsim.kernels.formats import ENCODER_BIAS, ENCODER_WEIGHT

from sensorsim.hospital.column_prior import PRIOR
from sensorsim.hospital.learning import Learnt, learn, linear_map, nothing_known
from sensorsim.mechanisms.base import LINEAR, SIGMOID
from sensorsim.noise.noise_table import ready_table
from sensorsim.training import trained
from sensorsim.training.trained import Part, Trained, logit, sigmoid

RNG = np.random.default_rng(8)
FACTORS = RNG.standard_normal((4, 9)) * 0.05
MEAN = RNG.uniform(0.3, 0.7, 9)
X = np.clip(MEAN + RNG.standard_normal((4000, 4)) @ FACTORS + 0.02 * RNG.standard_normal((4000, 9)), 0, 1)
KNOWN = Learnt(X.mean(axis=0), np.full(9, 1e-12), np.cov(X.T), np.arange(9))


def applied(learnt: Learnt, l: int, sigma: float, inputs: np.ndarray) -> np.ndarray:
    """x̂ by the model as it is used."""
    return Trained(LINEAR, (Part(*linear_map(learnt, l, sigma)),)).predict(0, inputs)


# ── the map ──


@pytest.mark.parametrize("l", [1, 4, 7, 9])
def test_with_everything_known_it_is_pca(l: int) -> None:
    wanted = naive_learn.wiener(X, X.mean(axis=0), np.cov(X.T), l, 0.0)
    assert applied(KNOWN, l, 0.0, X) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("sigma", [0.05, 0.5, 5.0])
def test_under_noise_it_is_wieners_filter(sigma: float) -> None:
    noisy = X + sigma * np.random.default_rng(1).standard_normal(X.shape)
    wanted = naive_learn.wiener(noisy, X.mean(axis=0), np.cov(X.T), 7, sigma)
    assert applied(KNOWN, 7, sigma, noisy) == pytest.approx(wanted, abs=1e-5)


def test_the_error_under_noise_is_the_least_of_all_shrinkages() -> None:
    """The closed form of the expected error: more and less of what is kept are worse."""
    made = linear_map(KNOWN, 7, 0.1)
    there_and_back = made.W @ made.V

    def error(part: float) -> float:
        left = np.eye(9) - part * there_and_back
        return float(np.trace(left.T @ np.cov(X.T) @ left) + 0.1**2 * part**2 * (there_and_back**2).sum())

    assert error(1.0) < min(error(0.97), error(1.03))


@pytest.mark.parametrize("l", [1, 7, 14])
def test_before_the_first_packet_it_is_the_data_free_map(l: int) -> None:
    """The axes of the assumed likeness about one half; the same when packets were awaited and none came."""
    x = np.random.default_rng(2).random((50, 14))
    wanted = naive_learn.wiener(x, np.full(14, 0.5), naive_learn.likeness(14, PRIOR), l, 0.0)
    of = np.arange(14)
    assert applied(nothing_known(of), l, 0.0, x) == pytest.approx(wanted, abs=1e-6)
    for kind in ("rows", "stairs"):
        table = ready_table("1.6", 1, kind)
        empty = learn(table, np.zeros((14, table.symbols or 2)), of)
        assert applied(empty, l, 0.0, x) == pytest.approx(wanted, abs=1e-5)


def test_of_what_is_assumed_between_columns_half_is_relied_on_under_noise() -> None:
    """Axes of the whole likeness, each shrunk by what half of it says: worked out entry by entry."""
    sigma, of = 1.0, np.arange(6)
    x = np.random.default_rng(3).random((20, 6))
    spread = 1.5 / 12 * naive_learn.likeness(6, PRIOR)
    axes = np.linalg.svd(spread)[0][:, :3]
    half = np.array([[spread[i, j] * (1 if i == j else 0.5) for j in range(6)] for i in range(6)])
    wanted = np.full((20, 6), 0.5)
    for axis in axes.T:
        power = axis @ half @ axis
        wanted += np.outer((x - 0.5) @ axis, axis) * power / (power + sigma**2)
    assert applied(nothing_known(of), 3, sigma, x) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("sigma", [0.0, 0.4, 5.0])
@pytest.mark.parametrize("l", [1, 5])
def test_means_that_are_mostly_noise_are_doubted(l: int, sigma: float) -> None:
    """The centre beside James and Stein's formula, from hardly known to well known."""
    rng = np.random.default_rng(4)
    for deviation in (0.25, 0.1, 0.02):
        mean = 0.5 + deviation * rng.standard_normal(9).clip(-1.5, 1.5)
        uncertainty = deviation**2 * rng.uniform(0.5, 1.0, 9)
        made = linear_map(KNOWN._replace(mean=mean, uncertainty=uncertainty), l, sigma)
        assert made.d == pytest.approx(naive_learn.centre(mean, uncertainty, l, sigma, PRIOR), abs=1e-9)


def test_doubt_does_less_harm_than_none() -> None:
    """Means near one half, learnt with errors larger than they differ by: without doubt the map errs more."""
    rng = np.random.default_rng(5)
    with_doubt = without = 0.0
    for _ in range(200):
        true = 0.5 + 0.1 * rng.standard_normal(9)
        found = true + 0.15 * rng.standard_normal(9)
        learnt = nothing_known(np.arange(9))._replace(mean=found.clip(0, 1), uncertainty=np.full(9, 0.15**2))
        made = linear_map(learnt, 4)
        dropped = np.eye(9) - made.W @ made.V
        with_doubt += float((((true - made.d) @ dropped) ** 2).sum())
        without += float((((true - learnt.mean) @ dropped) ** 2).sum())
    assert with_doubt < 0.8 * without


def test_a_column_that_stands_twice_is_read_and_written_twice() -> None:
    of = np.array([0, 1, 2, 0, 3, 1])
    learnt = Learnt(X.mean(axis=0)[:4], np.full(4, 1e-12), np.cov(X[:, :4].T), of)
    rows = X[:, :4][:, of]
    wanted = naive_learn.wiener(rows, rows.mean(axis=0), np.cov(rows.T), 2, 0.0)
    found = applied(learnt, 2, 0.0, rows)
    assert found == pytest.approx(wanted, abs=1e-6)
    assert found[:, [0, 1]] == pytest.approx(found[:, [3, 5]])
    assert applied(learnt, 4, 0.0, rows) == pytest.approx(rows, abs=1e-6)  # four numbers hold all six


@pytest.mark.parametrize("n, l", [(1, 1), (2, 1), (2, 2), (300, 1), (300, 7), (300, 300)])
@pytest.mark.parametrize("sigma", [0.0, 5.0])
def test_any_size(n: int, l: int, sigma: float) -> None:
    table = replace(ready_table("1.6", 1), features=n)
    rng = np.random.default_rng(n)
    found = learn(table, rng.integers(0, 5, (n, 5)), np.arange(n))
    made = linear_map(found, l, sigma)
    assert made.W.shape == (n, l) and made.V.shape == (l, n) and np.abs(made.W).max() <= 15.9
    x = rng.random((5, n))
    answer = applied(found, l, sigma, x)
    assert np.isfinite(answer).all() and answer.min() >= 0 and answer.max() <= 1
    if l == n and not sigma:
        assert answer == pytest.approx(x, abs=1e-6)


# ── the model as it is used ──


def test_there_and_back() -> None:
    rng = np.random.default_rng(6)
    part = Part(rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=(3, 5)) * 0.1, np.full(5, 0.5))
    x = rng.random((7, 5))
    a = x @ part.W + part.b
    h = 1 / (1 + np.exp(-a))
    linear, net = Trained(LINEAR, (part, part)), Trained(SIGMOID, (part,), c=0.5)
    assert (linear.m, linear.n, linear.l) == (2, 5, 3)
    for model in (linear, net):
        assert model.encode(0, x) == pytest.approx(h)
        assert np.array_equal(model.predict(0, x), model.decode(0, model.encode(0, x)))
    assert linear.decode(1, h) == pytest.approx(np.clip(a @ part.V + part.d, 0, 1))
    assert net.decode(0, h) == pytest.approx(1 / (1 + np.exp(-(h @ (part.V + 0.5) + part.d))))
    assert logit(sigmoid(a)) == pytest.approx(a)
    assert np.isfinite(logit(np.array([0.0, 1.0]))).all() and sigmoid(np.array([-1e4, 1e4])).tolist() == [0.0, 1.0]


def test_in_the_kernels_integers() -> None:
    """Encoded by the kernel in 16 bits: less than 0.01 points are lost."""
    made = linear_map(KNOWN, 7)
    weights = np.array([[ENCODER_WEIGHT.quantise(float(w)) for w in row] for row in made.W.T], np.int16)
    bias = np.array([ENCODER_BIAS.quantise(float(b)) + 9 // 2 for b in made.b], np.int32)
    rows = np.rint(X[:500] * 2**15).astype(np.uint16)
    hidden = encoder.batch(x=rows, weights=weights.ravel(), bias=bias)["hidden"]
    model = Trained(LINEAR, (Part(*made),))
    lost = ((model.decode(0, hidden / 2**15) - X[:500]) ** 2).mean() - (
        (model.predict(0, X[:500]) - X[:500]) ** 2
    ).mean()
    assert lost < 1e-4


# ── pseudo-records ──


def test_pseudo_records_have_mean_spread_and_likeness() -> None:
    drawn = trained.pseudo_records(KNOWN, 40_000, np.random.default_rng(7))
    assert drawn.min() >= 0 and drawn.max() <= 1
    assert drawn.mean(axis=0) == pytest.approx(KNOWN.mean, abs=0.003)
    assert drawn.var(axis=0) == pytest.approx(np.diag(KNOWN.covariance), rel=0.05)
    assert np.corrcoef(drawn.T) == pytest.approx(np.corrcoef(X.T), abs=0.03)


def test_pseudo_records_differ_by_what_is_not_known_of_the_means() -> None:
    unsure = KNOWN._replace(uncertainty=np.full(9, 0.02))
    drawn = trained.pseudo_records(unsure, 40_000, np.random.default_rng(8))
    assert drawn.var(axis=0) == pytest.approx(np.diag(KNOWN.covariance) + 0.02, rel=0.06)


def test_the_net_of_pseudo_records_reconstructs_records() -> None:
    """Close to PCA without noise; near the column means, and no further, with much."""
    spread = ((X - X.mean(axis=0)) ** 2).mean()
    clean = Trained(SIGMOID, (trained.fitted(KNOWN, 7, 0.0, True),))
    assert ((clean.predict(0, X) - X) ** 2).mean() < 0.2 * spread
    noisy = Trained(SIGMOID, (trained.fitted(KNOWN, 7, 5.0, True),))
    delivered = X + 5 * np.random.default_rng(9).standard_normal(X.shape)
    assert ((noisy.predict(0, delivered) - X) ** 2).mean() < 1.6 * spread
