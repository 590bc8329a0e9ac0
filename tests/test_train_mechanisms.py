"""Mechanisms against obvious loops; releases; what a statement says; what the weights may depend on."""

import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import naive_train as naive  # noqa: E402

from sensorsim.train import data, estimator, mechanisms, model, noise, run, synthetic  # noqa: E402
from sensorsim.train.config import Config, checked  # noqa: E402
from sensorsim.train.mechanisms import Batch  # noqa: E402
from sensorsim.train.statement import statement, weight_noise_scale  # noqa: E402

COLUMNS = ("TotalSteps", "Calories", "SedentaryMinutes", "Calories")


@pytest.fixture(scope="module")
def small():
    return data.prepare(synthetic.make(rows=60, persons=8), columns=COLUMNS)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("c", [0.0, 1.5])
def test_spof_step_equals_the_printed_formulas(noisy, c):
    generator = torch.Generator().manual_seed(0)
    weights = model.allocate(1, 4, 3, False, True)
    model.initialise(weights, generator)
    x, noise2, noise3 = (torch.rand(1, 1, 4, generator=generator) for _ in range(3))
    seen = x + torch.randn(x.shape, generator=generator) if noisy else None
    h = model.encode(weights, x)
    z = model.decode(weights, h)
    b = z_noisy = None
    if seen is not None:
        h_noisy = model.encode(weights, seen)
        b, z_noisy = mechanisms.noise_factor(h, h_noisy), model.decode(weights, h_noisy)
    comp = mechanisms.spof_step(Config("spof", 0.8, c=c), Batch(x, seen, noise2, noise3), h, z, b, z_noisy)
    plain = [t.flatten().tolist() for t in (x, noise2, noise3)]
    ref = naive.spof_z_gradient(
        *plain, weights.W[0].tolist(), weights.V[0].tolist(), c, 0.8, None if seen is None else seen.flatten().tolist()
    )
    np.testing.assert_allclose(comp.flatten().numpy(), ref, rtol=2e-4)


@pytest.mark.parametrize("C", [0.3, 4.0])
@pytest.mark.parametrize("b", [None, 2.5])
def test_dpsgd_step_equals_the_printed_formulas(C, b):
    generator = torch.Generator().manual_seed(1)
    x, drawn = (torch.rand(1, 1, 4, generator=generator) for _ in range(2))
    factor = None if b is None else torch.full((1, 1, 1), b)
    comp = mechanisms.dpsgd_step(Config("dpsgd", 0.8, C=C), Batch(x, noise2=drawn), torch.zeros_like(x), factor)
    ref = naive.dpsgd_z_gradient(x.flatten().tolist(), drawn.flatten().tolist(), C, 0.8, b or 1.0)
    np.testing.assert_allclose(comp.flatten().numpy(), ref, rtol=1e-5)


def test_noise_factor_is_l_and_not_one_without_noise():
    h = torch.rand(2, 1, 7) + 0.1
    assert mechanisms.noise_factor(h, h).flatten().tolist() == pytest.approx([7, 7])


@pytest.mark.parametrize("epsilon", [0.3, 1.6, 6.4])
def test_release_is_unbiased_and_has_the_stated_spread(epsilon):
    used = noise.table(epsilon, 14, 1)
    assert noise.certified_epsilon(used) <= epsilon
    x = torch.tensor([0.0, 0.3, 1.0]).expand(200_000, 3)
    released, picked = noise.release(x, used, torch.Generator().manual_seed(2))
    assert (picked.sum(1) == 1).all()  # one feature of each record, and nothing of the others
    assert (released[~picked] == 0.5).all()
    for column in range(3):
        values = released[picked[:, column], column].double()
        assert abs(len(values) - len(x) / 3) < 5 * math.sqrt(len(x) * 2 / 9)
        assert abs(values.mean() - x[0, column]) < 5 * math.sqrt(noise.variance(used) / len(values))
        assert values.var() <= 1.05 * noise.variance(used)


def test_sampled_coefficients_are_unbiased(small):
    config = checked(Config("sampled", 3.0, k=2, l=2, estimator="loss"), small.n)
    x = torch.tensor([[0.0, 0.2, 0.7, 1.0]]).expand(100_000, 4)
    drawn = run.draw_release(x, config, torch.Generator().manual_seed(3))
    alpha2 = drawn["weight"] * (0.5 - drawn["released"])
    assert ((drawn["weight"] > 0).sum(1) == 2).all()
    assert (alpha2.mean(0) - (0.5 - x[0])).abs().max() < 5 * float(alpha2.std() / math.sqrt(len(x)))


@pytest.mark.parametrize("mechanism", ["exact", "sampled"])
@pytest.mark.parametrize("kind", ["marginals", "loss"])
def test_weights_depend_on_the_release_alone(small, mechanism, kind, monkeypatch):
    """Other records behind the same release give the same weights to the last bit."""
    config = checked(Config(mechanism, 1.0, runs=2, l=2, epochs=1, estimator=kind), small.n)
    kept = run.draw_release(torch.tensor(small.x, dtype=torch.float32)[:, None].expand(-1, 2, -1), config, generator())
    train = torch.tensor(~small.held_out)

    def same(x, *_):
        fixed = {name: t[train].transpose(0, 1) if x.shape[0] == 2 else t for name, t in kept.items()}
        return {name: t.clone() for name, t in fixed.items()}

    monkeypatch.setattr(run, "draw_release", same)
    other = replace(small, x=1 - small.x)
    first, second = (run.train_block(d, config, 2, generator()) for d in (small, other))
    assert torch.equal(first.flat, second.flat)
    monkeypatch.undo()
    assert not torch.equal(
        run.train_block(small, config, 2, generator()).flat, run.train_block(other, config, 2, generator()).flat
    )


@pytest.mark.parametrize("mechanism", ["dpsgd", "spof"])
def test_released_forward_reads_no_raw_record(small, mechanism, monkeypatch):
    """Moving x and its noise against each other leaves what is released, and so the weights, as they were."""
    config = checked(Config(mechanism, 500.0, runs=1, l=2, epochs=2, forward="released", c=0.0), small.n)
    shift = 0.25
    scale = small.n / 500.0 if mechanism == "dpsgd" else 1.5 * small.n / (math.sqrt(2) * 500.0)
    base = data.Dataset(
        0.3 + 0.4 * small.x, *(getattr(small, f) for f in ("columns", "person", "user", "held_out")), "", "max"
    )
    moved = replace(base, x=base.x - shift)

    def drawn(offset2, offset3):
        def draw(x, *_):
            g = generator(9)
            noise2, noise3 = (noise.laplace(tuple(x.shape), g) * 0.1 for _ in range(2))
            found = {"noise2": noise2 - offset2 / scale}
            return found if mechanism == "dpsgd" else found | {"noise3": noise3 + offset3 / scale}

        return draw

    monkeypatch.setattr(run, "_draw", drawn(0.0, 0.0))
    first = run.train_block(base, config, 1, generator())
    monkeypatch.setattr(run, "_draw", drawn(shift, shift / 2))
    second = run.train_block(moved, config, 1, generator())
    torch.testing.assert_close(first.flat, second.flat, rtol=0, atol=2e-3)
    monkeypatch.setattr(run, "_draw", drawn(0.0, 0.0))
    third = run.train_block(moved, config, 1, generator())
    assert (first.flat - third.flat).abs().max() > 0.01


def test_posterior_goes_from_the_prior_to_the_mean(small):
    """With little noise and many records it is the mean; with much noise and few, the prior."""
    settings, column_of = estimator.Settings(), torch.tensor([0, 1, 2, 1])
    many = data.prepare(synthetic.make(rows=1000, persons=8), columns=COLUMNS)
    grid = torch.tensor(estimator._grid(), dtype=torch.float32)

    def means(dataset, epsilon):
        config = checked(Config("sampled", epsilon, l=2), dataset.n)
        posterior = estimator.column_posterior(dataset, config, 5, generator(), settings, column_of)
        return (posterior * grid).sum(-1)

    prior = settings.prior_a / (settings.prior_a + settings.prior_b)
    assert (means(small, 0.1) - prior).abs().max() < 0.05
    learnt = torch.tensor(many.x[~many.held_out].mean(0)[:3])
    assert (means(many, 6.4) - learnt).abs().max() < 0.06


@pytest.mark.parametrize(
    ("config", "spent", "word"),
    [
        (Config("none"), None, "nothing"),
        (Config("spof", 1.0, c=0.0), math.sqrt(2), "not covered"),
        (Config("spof", 1.0, c=2.5), None, "private data"),
        (
            Config("spof", 1.0, c=2.5, forward="released"),
            math.sqrt(2) * 21 / (21 + 14 * 17.5 * (17.5 / 2 + 2)),
            "weights included",
        ),
        (Config("fm", 1.0, redraw=True), 4.2, "not covered"),
        (Config("dpsgd", 1.0), 1.0, "not covered"),
        (Config("dpsgd", 1.0, forward="released"), 1.0, "weights included"),
        (Config("dpsgd", 1.0, C=1.0), None, "clipped"),
        (Config("dpsgd", 1.0, sigma=5.0), None, "b_j"),
        (Config("dpsgd-weights", 1.0), 1.0, "weights"),
        (Config("dpsgd-weights", 1.0, noise="laplace"), 1.0, "weights"),
        (Config("sampled", 1.0), 1.0, "weights included"),
        (Config("exact", 1.0, estimator="loss", forward="raw", redraw=True), 10.0, "not covered"),
    ],
)
def test_statement(config, spent, word):
    found = statement(checked(config, 14), 14)
    assert word in found.covers
    if spent is None:
        assert found.spent_epsilon is None
    else:
        assert found.spent_epsilon == pytest.approx(spent, rel=0.01)
        assert "column maxima" in found.covers
        assert "column maxima" not in statement(checked(config, 14), 14, "public").covers


def test_fresh_noise_in_every_epoch_is_composed_as_the_peer_does():
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    one = pld.from_laplace_mechanism(14.0, value_discretization_interval=1e-4)
    found = statement(checked(Config("dpsgd", 1.0, redraw=True), 14), 14)
    assert found.delta == 1e-6
    assert found.spent_epsilon == pytest.approx(one.self_compose(140).get_epsilon_for_delta(1e-6), rel=0.01)


def test_gaussian_noise_spends_its_epsilon_by_the_peer():
    """Ten Gaussian releases of sensitivity 2C, composed by dp-accounting."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    config = checked(Config("dpsgd-weights", 1.5, C=2.0), 14)
    scale = weight_noise_scale(config, 196)
    one = pld.from_gaussian_mechanism(scale, sensitivity=2 * config.C, value_discretization_interval=1e-3)
    assert one.self_compose(10).get_epsilon_for_delta(config.delta) == pytest.approx(1.5, rel=0.01)


def test_no_epsilon_is_stated_for_gradients_at_the_prediction():
    """The gradient sigma(z(x)) - x reads the raw record twice; the printed sensitivity n does not bound it."""
    found = statement(checked(Config("dpsgd", 1.0, point="prediction"), 14), 14)
    assert found.spent_epsilon is None and "at the prediction" in found.covers


def test_laplace_noise_on_weights_spends_its_epsilon_over_all_epochs():
    """Basic composition by hand: each epoch gets epsilon/epochs, and moves the sum by 2C·sqrt(weights) in L1."""
    config = checked(Config("dpsgd-weights", 1.5, C=2.0, noise="laplace", epochs=10), 14)
    assert weight_noise_scale(config, 196) == pytest.approx(2 * 2.0 * 14 / (1.5 / 10))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)
