"""Zeroth-order steps: slopes against plain Python, clipping, the scale of the noise, a public direction, learning."""

import math

import naive_train as naive
import numpy as np
import pytest
from training_setup import LAYOUTS, Silent, printed, small_days, torch

from sensorsim.training import cells, model
from sensorsim.training.config import checked
from sensorsim.training.step import Batch, Source, Step

UNITS, N, L = 3, 5, 2


def stepped(config, x, inside=True, present=None, source=None, units=UNITS, noisy=None, stretch=1.0):
    """Weights, and the gradient that one step fills in."""
    weights, gradient = (model.allocate(units, N, L, config.bias, inside) for _ in range(2))
    model.initialise(weights, torch.Generator().manual_seed(0))
    weights.flat.mul_(stretch)
    before = weights.flat.clone()
    config.object.step(Step(config, Batch(x, noisy, present), weights, gradient, source or Silent(0)))
    assert torch.equal(weights.flat, before)  # two passes beside the weights leave them as they were
    return weights, gradient


def lists(parameters, unit):
    """The matrices and vectors of one unit, as plain lists."""
    parts = [parameters.W[unit], parameters.V[unit]]
    if parameters.b is not None:
        parts += [parameters.b[unit, 0], parameters.d[unit, 0]]
    return [part.tolist() for part in parts]


def signs_of(gradient, unit, along):
    """The direction of a gradient that is `along` times a vector of signs."""
    return [np.sign(np.array(part) * along).tolist() for part in lists(gradient, unit)]


def slopes_of(weights, gradient, records, C, batch):
    """By plain Python: the number along the direction, for either direction that the gradient may have had."""
    for unit in range(UNITS):
        found = abs(lists(gradient, unit)[0][0][0])
        refs = []
        for along in (1, -1):
            signs = signs_of(gradient, unit, along)
            refs.append(along * naive.zeroth_order_step(records[unit], lists(weights, unit), signs, C, batch))
        yield found, refs


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("batch", "inside"), LAYOUTS)
def test_a_step_equals_plain_python(batch, inside, bias, noise):
    x = torch.rand(UNITS, batch, N, generator=torch.Generator().manual_seed(1))
    present = None if batch == 1 else torch.full((UNITS, batch, 1), 1 / batch)
    config = printed("dp-zo", 1.0, C=100.0, noise=noise, bias=bias, batch=batch)
    weights, gradient = stepped(config, x, inside, present)
    for found, refs in slopes_of(weights, gradient, x.tolist(), 100.0, batch):
        # Both directions give the same step: a slope changes its sign with its direction. Losses are floats of size 4
        # with 2^-24 of it lost in each of a few sums, and 64 times a difference of two is taken.
        assert refs == [pytest.approx(found, abs=64 * 8 * 4 * 2**-24 + 2**-16)] * 2


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_every_record_is_clipped_on_its_own_at_both_ends(noise):
    """Records with slopes far beyond ±C, within ±C, and one that is not there."""
    g = torch.Generator().manual_seed(2)
    x = torch.rand(UNITS, 4, N, generator=g) * torch.tensor([1.0, 1.0, 30.0, 30.0])[:, None]
    present = torch.tensor([0.25, 0.25, 0.25, 0.0]).reshape(1, 4, 1).expand(UNITS, 4, 1)
    config = printed("dp-zo", 1.0, C=0.5, noise=noise, batch=4)
    weights, gradient = stepped(config, x, False, present)
    ends, inside = [], 0
    for (found, refs), records, unit in zip(
        slopes_of(weights, gradient, x[:, :3].tolist(), 0.5, 4), x[:, :3].tolist(), range(UNITS), strict=True
    ):
        assert refs == [pytest.approx(found, abs=1e-3)] * 2
        signs = signs_of(gradient, unit, 1)
        slopes = [naive.zeroth_order_slope(record, lists(weights, unit), signs) for record in records]
        ends += [math.copysign(1, slope) for slope in slopes if abs(slope) > 0.5]
        inside += sum(abs(slope) < 0.5 for slope in slopes)
    assert set(ends) == {1.0, -1.0} and inside  # the records do reach both ends, and not all do


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_no_record_moves_a_sum_by_more_than_its_clip(noise):
    """However large a record: a loss that no float holds counts as 0, and the step stays a number."""
    for size in (1e3, 1e18, 1e30, math.inf):
        x = torch.full((UNITS, 1, N), size)
        _, gradient = stepped(printed("dp-zo", 1.0, C=0.5, noise=noise), x, stretch=3.0)
        assert (gradient.flat.abs() <= 0.5).all()


def test_clipped_slopes_are_added_as_whole_numbers():
    """A sum of floats near 2^9 loses the last steps of the lattice, and how depends on the other records."""
    slopes = 8 * torch.rand(50, 256, 1, generator=torch.Generator().manual_seed(0)) - 1
    exact = [sum(round(value * 2**15) for value in row) for row in slopes.flatten(1).double().tolist()]

    class TakesOff(Source):
        def discrete(self, shape, t):
            return -torch.tensor(exact).reshape(tuple(shape))

    config = printed("dp-zo", 1.0, C=8.0, noise="laplace", batch=256)
    step = Step(config, Batch(torch.rand(50, 256, N)), None, None, TakesOff(0))
    assert config.object.perturbed(slopes, step).tolist() == [0.0] * 50


@pytest.mark.parametrize(("batch", "inside"), LAYOUTS)
def test_the_noise_is_one_number_of_the_right_scale(batch, inside):
    """Laplace noise of scale epochs·2C/eps on the sum; Gaussian as dp-accounting says for the same epsilon."""
    from dp_accounting.pld import privacy_loss_distribution as peer

    units = 4000
    x = torch.rand(units, batch, N, generator=torch.Generator().manual_seed(3))
    present = None if batch == 1 else torch.full((units, batch, 1), 1 / batch)
    for noise in ("gaussian", "laplace"):
        config = printed("dp-zo", 1.6, C=0.5, noise=noise, batch=batch, epochs=7)
        silent, noisy = (stepped(config, x, inside, present, source, units)[1] for source in (Silent(5), Source(5)))
        drawn = batch * (noisy.W - silent.W)
        assert torch.allclose(drawn.abs(), drawn[:, :1, :1].abs().expand_as(drawn), atol=1e-4)
        assert torch.allclose(batch * (noisy.V - silent.V).abs()[:, 0, 0], drawn.abs()[:, 0, 0], atol=1e-4)
        spread = float(drawn[:, 0, 0].double().square().mean().sqrt())
        if noise == "laplace":
            expected, deviation = math.sqrt(2) * 7 * 2 * 0.5 / 1.6, math.sqrt(5)  # kurtosis 6
            assert spread == pytest.approx(expected, rel=5 * deviation / (2 * math.sqrt(units)))
        else:
            one = peer.from_gaussian_mechanism(spread, sensitivity=2 * 0.5, value_discretization_interval=1e-3)
            found = one.self_compose(7).get_epsilon_for_delta(1e-6)
            assert found == pytest.approx(1.6, rel=5 * math.sqrt(2) / (2 * math.sqrt(units)) * 1.2)


def test_the_direction_is_public():
    """It depends on the generator alone: neither on the record, nor on its noise."""

    def direction(x, source):
        _, gradient = stepped(printed("dp-zo", 1.0), x, source=source)
        return gradient.flat / gradient.flat[:1]

    x = torch.rand(UNITS, 1, N, generator=torch.Generator().manual_seed(4))
    same = direction(x, Silent(0))
    assert torch.equal(same.abs(), torch.ones_like(same)) and 0 < (same > 0).float().mean() < 1
    assert torch.equal(same, direction(1 - x, Silent(0))) and torch.equal(same, direction(x, Source(0)))
    secret = Source()
    secret.generator.manual_seed(0)
    assert torch.equal(same, direction(x, secret))
    assert not torch.equal(same, direction(x, Silent(1)))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_it_learns_where_the_noise_is_small(noise):
    dataset = small_days(normalise="max")
    common = {"noise": noise, "l": 2, "runs": 4, "lr": 0.01, "seed": 0}
    start, after, drowned = (
        loss_of(dataset, checked(printed("dp-zo", epsilon, epochs=epochs, **common), dataset.n))
        for epsilon, epochs in ((1e6, 0), (1e6, 250), (0.01, 20))
    )
    # The least loss of an answer that is the same for every record: z = 4·mean - 2 for each feature.
    constant = sum(math.log(2) - 2 * (column.mean() - 0.5) ** 2 for column in dataset.x.T)
    assert (after < constant).all() and (constant < start).all() and (constant < drowned).all()


def loss_of(dataset, config):
    """The mean polynomial loss of a record, for every run."""
    weights, _ = cells.train_and_score(dataset, config, range(config.runs))
    usual = model.allocate(weights.W.shape[0], dataset.n, config.l, config.bias, False)
    model.copy(weights, usual)
    runs = config.runs
    total = np.zeros(runs)
    for unit in range(runs * config.m):
        mine = dataset.x[dataset.user == unit % config.m]
        parts = [usual.W[unit].tolist(), usual.V[unit].tolist()]
        total[unit // config.m] += sum(naive.polynomial_loss(row.tolist(), *parts) for row in mine)
    return total / len(dataset.x)
