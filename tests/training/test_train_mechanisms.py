"""Mechanisms against obvious loops; releases; what a statement says; what the weights may depend on."""

import math
from dataclasses import replace

import naive_train as naive
import numpy as np
import pytest
from training_setup import printed, small_days, torch

from sensorsim.mechanisms import find
from sensorsim.mechanisms.release import Release, table_for
from sensorsim.training import loop, model
from sensorsim.training.config import Config, checked
from sensorsim.training.fitting import CLEAN_RELEASE, PRIVATE_MAXIMA, REPRODUCIBLE, statement
from sensorsim.training.step import Batch, Source, Step, noise_factor

L = 3


@pytest.fixture(scope="module")
def small():
    return small_days(("TotalSteps", "Calories", "SedentaryMinutes", "Calories"))


class Caught(Step):
    """A step that keeps what it would have gone backward with."""

    def backward(self, x, h, dz, c=0.0):
        self.read, self.dz, self.c = x, dz, c


def caught(config, batch):
    weights = model.allocate(1, 4, L, False, True)
    model.initialise(weights, generator())
    step = Caught(config, batch, weights, weights, Source(0))
    config.object.step(step)
    return step, weights.W[0].tolist(), weights.V[0].tolist()


def uniform(count, seed):
    g = generator(seed)
    return [torch.rand(1, 1, 4, generator=g) for _ in range(count)]


def plain(*tensors):
    return [None if t is None else t.flatten().tolist() for t in tensors]


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("c", [0.0, 1.5])
def test_spof_step_equals_the_printed_formulas(noisy, c):
    x, noise2, noise3, far = uniform(4, 0)
    seen = x + 3 * (far - 0.5) if noisy else None
    config = printed("spof", 0.8, c=c)
    step, W, V = caught(config, Batch(x, seen, drawn={"noise2": noise2, "noise3": noise3}))
    x_, noise2_, noise3_, seen_ = plain(x, noise2, noise3, seen)
    ref = naive.spof_z_gradient(x_, noise2_, noise3_, W, V, c, 0.8, seen_)
    np.testing.assert_allclose(step.dz.flatten().numpy(), ref, rtol=2e-4)
    assert step.c == c and torch.equal(step.read, x)


@pytest.mark.parametrize("noisy", [False, True])
def test_noise_that_was_frozen_keeps_its_scale(noisy):
    """The scale of the first weights, by the obvious loop, whatever the weights are later."""
    x, far = uniform(2, 6)
    seen = x + 3 * (far - 0.5) if noisy else None
    config = printed("spof", 0.8, c=1.5, m=1)
    weights = model.allocate(1, 4, L, False, True)
    model.initialise(weights, generator())
    rows = loop.Records(x[0], torch.tensor([[0]]), 1, {}, seen)
    scale = config.object.prepare(loop.Setting(config, rows, weights))["scale"].item()
    x_, seen_ = plain(x, seen)
    c_j = sum(1.5 * h for h in naive.encode(x_, weights.W[0].tolist()))
    b = 1.0 if seen is None else sum(naive.noise_factors(x_, seen_, weights.W[0].tolist()))
    assert scale == pytest.approx((1.5 * 4 + 4 * c_j * (c_j / 2 + 2) / b) / (math.sqrt(2) * 0.8), rel=1e-5)
    assert config.object.prepare(loop.Setting(replace(config, redraw=True), rows, weights)) == {}


@pytest.mark.parametrize("point", ["zero", "prediction"])
@pytest.mark.parametrize("C", [0.3, 4.0])
@pytest.mark.parametrize("noisy", [False, True])
def test_dpsgd_step_equals_the_printed_formulas(C, noisy, point):
    x, drawn, far = uniform(3, 1)
    seen = x + 3 * (far - 0.5) if noisy else None
    config = printed("dpsgd", 0.8, C=C, point=point)
    given = {"noise2": drawn} if C < 1 else {"less_x": drawn * 4 / 0.8 - x}
    step, W, V = caught(config, Batch(x, seen, drawn=given))
    x_, drawn_, seen_ = plain(x, drawn, seen)
    b = 1.0 if seen is None else sum(naive.noise_factors(x_, seen_, W))
    z = naive.decode(naive.encode(x_, W), V) if point == "prediction" else None
    ref = naive.dpsgd_z_gradient(x_, drawn_, C, 0.8, b, z)
    np.testing.assert_allclose(step.dz.flatten().numpy(), ref, rtol=2e-5)


@pytest.mark.parametrize(("C", "name"), [(0.3, "noise2"), (4.0, "less_x")])
def test_dpsgd_draws_the_sum_where_nothing_clips(C, name):
    assert name in find("dpsgd").draw(torch.rand(5, 4), printed("dpsgd", 0.8, C=C), Source(0))


def test_noise_factor_is_l_and_not_one_without_noise():
    h = torch.rand(2, 1, 7) + 0.1
    assert noise_factor(h, h).flatten().tolist() == pytest.approx([7, 7])


@pytest.mark.parametrize(("kind", "epsilon"), [("stairs", 0.3), ("stairs", 1.6), ("stairs", 6.4), ("rows", 0.3)])
def test_release_is_unbiased_and_has_the_stated_spread(kind, epsilon):
    used = table_for(kind, epsilon, 3, 1)
    assert float(used.certificate.epsilon_record) <= epsilon
    config = printed("sampled", epsilon, kind=kind)
    x = torch.tensor([0.0, 0.3, 1.0]).expand(200_000, 3)
    drawn = find("sampled").draw(x, config, Source(2))
    released, picked = drawn["released"], drawn["weight"] > 0
    assert (picked.sum(1) == 1).all()  # one feature of each record, and nothing of the others
    assert (released[~picked] == 0.5).all()
    for column in range(3):
        values = released[picked[:, column], column].double()
        assert abs(len(values) - len(x) / 3) < 5 * math.sqrt(len(x) * 2 / 9)
        assert abs(values.mean() - x[0, column]) < 5 * used.estimate_sd / math.sqrt(len(values))
        assert values.var() <= 1.05 * used.estimate_sd**2


def test_a_release_of_all_features_is_unbiased():
    x = torch.tensor([0.0, 0.3, 0.8, 1.0]).expand(100_000, 4)
    drawn = find("release").draw(x, printed("release", 1.0), Source(4))  # one bit for each feature
    assert drawn.keys() == {"released"} and all(len(column.unique()) == 2 for column in drawn["released"].T)
    spread = drawn["released"].double().std(0) / math.sqrt(len(x))
    assert ((drawn["released"].double().mean(0) - x[0]).abs() < 5 * spread).all()


def test_sampled_coefficients_are_unbiased():
    config = checked(Config("sampled", 3.0, k=2, l=2, estimator="loss", kind="stairs"), 4)
    x = torch.tensor([[0.0, 0.2, 0.7, 1.0]]).expand(100_000, 4)
    drawn = find("sampled").draw(x, config, Source(3))
    alpha2 = drawn["weight"] * (0.5 - drawn["released"])
    assert ((drawn["weight"] > 0).sum(1) == 2).all()
    assert (alpha2.mean(0) - (0.5 - x[0])).abs().max() < 5 * float(alpha2.std() / math.sqrt(len(x)))


@pytest.mark.parametrize("mechanism", ["release", "sampled"])
@pytest.mark.parametrize("sigma", [0.0, 5.0])
def test_weights_depend_on_the_release_alone(small, mechanism, sigma, monkeypatch):
    """In the loop: other records behind the same release give the same weights to the last bit."""
    fixed = {"runs": 2, "l": 2, "epochs": 1, "kind": "stairs"}
    config = checked(Config(mechanism, 1.0, estimator="loss", sigma=sigma, **fixed), small.n)
    kept = config.object.draw(torch.tensor(small.x, dtype=torch.float32)[:, None].expand(-1, 2, -1), config, Source(0))
    train = torch.tensor(~small.held_out)

    def same(self, x, *_):
        return {name: t[train].clone() for name, t in kept.items()}

    other = replace(small, x=1 - small.x)
    with monkeypatch.context() as patch:
        patch.setattr(Release, "draw", same)
        first, second = (loop.train_block(d, config, 2, Source(0)) for d in (small, other))
    assert torch.equal(first.flat, second.flat)
    free = [loop.train_block(d, config, 2, Source(0)).flat for d in (small, other)]
    assert not torch.equal(*free)


class Moved(Source):
    """Laplace noise of a seed, moved by whole steps of the lattice: the k-th draw by the k-th number."""

    def __init__(self, seed, *steps):
        super().__init__(seed)
        self.steps = list(steps)

    def discrete(self, shape, t):
        return super().discrete(shape, t) + self.steps.pop(0)


@pytest.mark.parametrize(
    "config",
    [
        printed("dpsgd", 50.0),
        printed("dpsgd", 50.0, sigma=5.0),
        printed("dpsgd", 50.0, point="prediction"),
        printed("spof", 50.0, c=0.0),
        printed("spof", 50.0, c=2.5),
        printed("spof", 50.0, c=2.5, sigma=5.0),
        printed("fm", 50.0),
    ],
    ids=lambda config: f"{config.mechanism} c={config.c} sigma={config.sigma} {config.point}",
)
def test_released_forward_reads_no_raw_record(small, config):
    """Moving x and its noise against each other leaves what is released, and so the weights, as they were."""
    step = 1 << 13  # a quarter, on the lattice of x
    config = checked(replace(config, runs=1, l=2, m=1, epochs=2, forward="released"), small.n)
    assert statement(config, small.n).spent_epsilon is not None
    base = replace(small, x=np.round((0.3 + 0.4 * small.x) * 2**15) / 2**15, user=np.zeros_like(small.user))
    moved = replace(base, x=base.x - 0.25)
    back = (-step,) if config.mechanism == "dpsgd" else (-step, step)
    still = (0,) * len(back)
    first = loop.train_block(base, config, 1, Moved(0, *still))
    second = loop.train_block(moved, config, 1, Moved(0, *back))
    assert torch.equal(first.flat, second.flat)
    assert not torch.equal(first.flat, loop.train_block(moved, config, 1, Moved(0, *still)).flat)
    if not config.sigma and not config.c:  # and with a raw forward pass it is another model
        raw = replace(config, forward="raw")
        pair = [loop.train_block(d, raw, 1, Moved(0, *by)).flat for d, by in ((base, still), (moved, back))]
        assert not torch.equal(*pair)


@pytest.mark.parametrize(
    ("config", "spent", "word"),
    [
        (printed("none"), None, "nothing"),
        (printed("spof", 1.0, c=0.0), math.sqrt(2), "not covered"),
        (printed("spof", 1.0, c=2.5), None, "private data"),
        (
            printed("spof", 1.0, c=2.5, forward="released"),
            math.sqrt(2) * 21 / (21 + 14 * 17.5 * (17.5 / 2 + 2)),
            "weights included",
        ),
        (printed("fm", 1.0, redraw=True), 4.2, "not covered"),
        (printed("dpsgd", 1.0), 1.0, "not covered"),
        (printed("dpsgd", 1.0, forward="released"), 1.0, "weights included"),
        (printed("dpsgd", 1.0, C=1.0), None, "clipped"),
        (printed("dpsgd", 1.0, sigma=5.0), None, "b_j"),
        (printed("dpsgd", 1.0, point="prediction"), None, "at the prediction"),
        (printed("dpsgd-weights", 1.0), 1.0, "weights"),
        (printed("dpsgd-weights", 1.0, noise="laplace"), 1.0, "weights"),
        (printed("dp-zo", 1.0), 1.0, "every step"),
        (printed("dp-zo", 1.0, noise="laplace"), 1.0, "every step"),
        (printed("sampled", 1.0, kind="stairs"), 1.0, "weights included"),
        (printed("release", 1.0, kind="stairs"), 1.0, "weights included"),
        (printed("release", 1.0, kind="stairs", estimator="loss", forward="raw", redraw=True), 3.92, "not covered"),
    ],
)
def test_statement(config, spent, word):
    found = statement(checked(config, 14), 14)
    assert word in found.covers
    if spent is None:
        assert found.spent_epsilon is None
    else:
        assert found.spent_epsilon == pytest.approx(spent, rel=0.01)
        divided = statement(checked(config, 14), 14, "max")  # private maxima take the epsilon away
        assert divided.covers == PRIVATE_MAXIMA and divided.covers_short == divided.with_secret_noise == "nothing"
        assert divided.spent_epsilon is None and divided.nominal_epsilon == config.epsilon
    seeded = statement(checked(replace(config, seed=1), 14), 14)
    assert not found.reproducible and "reproducible" not in found.covers and seeded.reproducible
    assert seeded.covers.startswith(REPRODUCIBLE if spent else "nothing")


@pytest.mark.parametrize("mechanism", ["release", "sampled"])
def test_a_statement_says_that_the_clean_record_is_released(mechanism):
    for sigma, sees, said in ((5.0, "clean", True), (0.0, "clean", False), (5.0, "noisy", False)):
        config = replace(checked(Config(mechanism, 1.0, kind="stairs", sigma=sigma), 14), release_sees=sees)
        assert (CLEAN_RELEASE in statement(config, 14).covers) is said


def generator(seed=0):
    return torch.Generator().manual_seed(seed)
