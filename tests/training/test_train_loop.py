"""The training loop: which records a step reads, the environment's noise, the mechanism's noise, the schedule."""

import math
import subprocess
import sys

import numpy as np
import pytest
from training_setup import printed, torch

from sensorsim.datasets.dataset import Dataset
from sensorsim.training import cells, loop, model, scores
from sensorsim.training.config import Config, checked
from sensorsim.training.step import Batch, Source, Step, Together
from sensorsim.training.trained import Part, Trained


def made(rows=60, n=4, m=2, held_out=True, seed=0):
    """Random records; user 0 has more of them than the others, and every fifth person is held out."""
    rng = np.random.default_rng(seed)
    person = np.arange(rows) // 2
    user = np.where(person % (m + 1) < m, person % (m + 1), 0)
    held = (person % 5 == 4) if held_out else np.zeros(rows, bool)
    return Dataset(rng.random((rows, n)), tuple("abcdefgh"[:n]), person, user, held, "made", "ranges")


def sources(count):
    return [Source(seed) for seed in range(count)]


# ---- which records


@pytest.mark.parametrize(("batch", "runs", "m"), [(1, 2, 2), (4, 2, 2), (100, 2, 2), (1, 1, 1), (4, 1, 1), (100, 1, 1)])
def test_every_record_is_read_once_per_epoch_by_its_own_user(batch, runs, m):
    days = made(m=m)
    config = printed("none", batch=batch, m=m, epochs=2)
    read = loop.gather(days, config, runs, sources(runs))
    seen = [[] for _ in range(runs * m)]
    for part in loop.batches(read, config, batch == 1 and runs * m > 1, sources(runs)):
        for unit in range(runs * m):
            for place in range(part.x.shape[1]):
                if part.present is None or part.present[unit, place, 0] > 0:
                    seen[unit].append(tuple(part.x[unit, place].tolist()))
    for unit, found in enumerate(seen):
        mine = days.x[(days.user == unit % m) & ~days.held_out].astype(np.float32)
        assert sorted(found) == sorted(tuple(row) for row in np.repeat(mine, 2, axis=0).tolist())


def test_a_user_without_records_left_stays_as_it_is():
    """User 1's weights are the same whether or not user 0 has many more records."""
    config = printed("none", m=2, epochs=1, lr=0.1)

    def trained(rows):
        x = np.random.default_rng(0).random((12, 3))[:rows]
        user = np.where(np.arange(rows) < 4, 1, 0)
        days = Dataset(x, ("a", "b", "c"), np.arange(rows), user, np.zeros(rows, bool), "", "ranges")
        read = loop.gather(days, config, 1, sources(1))
        weights, gradient = (model.allocate(2, 3, 2, False, True) for _ in range(2))
        model.initialise(weights, torch.Generator().manual_seed(1))
        update = model.make_optimiser("adam", weights.flat, config.lr)
        for place, part in enumerate(loop.epoch(read, config, True, sources(1))):
            if place < 4:
                part.x[1, 0] = torch.tensor(x[place])  # the same order for user 1 in both data sets
            config.object.step(Step(config, part, weights, gradient, Source(0)))
            if part.absent is None:
                update.step(gradient.flat)
            else:
                loop.update_the_present(update, weights, gradient, part.absent)
        return weights.W[1].clone()

    torch.testing.assert_close(trained(8), trained(12), rtol=0, atol=0)


def test_places_of_ones_are_those_of_independent_trials():
    """Against a coin for every trial: number, gaps and the joint of two neighbours."""
    total, q, repeats = 400, 0.15, 400
    source = Source(1)
    tosses = np.zeros((repeats, total))
    for toss in tosses:
        places = loop.bernoulli_places(total, q, source)
        assert len(np.unique(places)) == len(places)
        toss[places] = 1
    assert tosses.mean() == pytest.approx(q, abs=5 * math.sqrt(q * (1 - q) / tosses.size))
    both = (tosses[:, 1:] * tosses[:, :-1]).mean()
    assert both == pytest.approx(q * q, abs=5 * math.sqrt(q * q / tosses.size))
    spread = total * q * (1 - q)
    assert tosses.sum(1).var() == pytest.approx(spread, rel=5 * math.sqrt(2 / repeats))
    by_place = tosses.mean(0)
    assert (abs(by_place - q) < 5 * math.sqrt(q * (1 - q) / repeats)).all()
    assert loop.bernoulli_places(7, 1.0, source).tolist() == list(range(7))


@pytest.mark.parametrize(("batch", "runs"), [(1, 3), (6, 3), (6, 1), (30, 1), (100, 2)])
def test_poisson_batches_have_every_record_with_one_probability_and_drop_none(batch, runs, monkeypatch):
    days = made(m=1)
    rows = int((~days.held_out).sum())
    config = printed("dpsgd-weights", 1.0, batch=batch, m=1, sampling="poisson", records=rows, epochs=200)
    drawn = []
    places = loop.bernoulli_places
    monkeypatch.setattr(loop, "bernoulli_places", lambda *given: drawn.append(places(*given)) or drawn[-1])
    read = loop.gather(days, config, runs, sources(runs))
    number = {tuple(row): place for place, row in enumerate(read.x.tolist())}
    times, steps, sizes = np.zeros((runs, rows)), 0, []
    for part in loop.batches(read, config, False, sources(runs)):
        steps += 1
        for unit in range(runs):
            there = part.x[unit] if part.present is None else part.x[unit][part.present[unit, :, 0] > 0]
            found = [number[tuple(row)] for row in there.tolist()]
            assert len(set(found)) == len(found)
            times[unit, found] += 1
            sizes.append(len(found))
    q = min(1.0, batch / rows)
    assert steps == 200 * math.ceil(rows / batch)
    assert sum(sizes) == sum(map(len, drawn))  # whatever was drawn was read
    assert (abs(times / steps - q) <= 5 * math.sqrt(q * (1 - q) / steps)).all()
    if q < 1:
        assert np.var(sizes) == pytest.approx(rows * q * (1 - q), rel=6 * math.sqrt(2 / len(sizes)) + 0.05)


@pytest.mark.parametrize("runs", [1, 3])
def test_an_empty_poisson_batch_still_takes_a_noisy_step_and_means_are_over_the_batch_asked_for(runs):
    config = printed("dpsgd-weights", 1.0, batch=4, m=1, sampling="poisson", records=100, C=1e9)
    weights, gradient = (model.allocate(runs, 4, 2, False, False) for _ in range(2))
    model.initialise(weights, torch.Generator().manual_seed(0))
    step = Step(config, Batch(torch.rand(runs, 0, 4)), weights, gradient, Source(0))
    noise = torch.randn(gradient.flat.shape)
    step.clipped(config.C, False, False, noise)
    torch.testing.assert_close(gradient.flat, noise)
    x = torch.rand(runs, 2, 4)
    step.batch = Batch(x)
    step.clipped(config.C, False, False, torch.zeros_like(noise))
    two = gradient.flat.clone()
    step.batch = Batch(x.repeat(1, 2, 1))
    step.clipped(config.C, False, False, torch.zeros_like(noise))
    torch.testing.assert_close(gradient.flat, 2 * two)


# ---- clipping, in each of its three ways, against one record at a time by autograd


@pytest.mark.parametrize(("units", "size", "inside"), [(1, 1, False), (1, 5, False), (3, 1, True), (3, 5, False)])
@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("noisy", [False, True])
def test_clipped_means_equal_one_record_at_a_time(units, size, inside, group, squared, bias, noisy):
    generator = torch.Generator().manual_seed(3)
    x = torch.rand(units, size, 4, generator=generator)
    reads = x + torch.randn(x.shape, generator=generator) if noisy else x
    there = (torch.rand(units, size, generator=generator) < 0.7) if units > 1 else torch.ones(units, size, dtype=bool)
    weights, gradient = (model.allocate(units, 4, 2, bias, inside) for _ in range(2))
    model.initialise(weights, generator)
    C, batch = 0.4, 7
    config = printed("dpsgd-weights", 1.0, batch=batch, bias=bias)
    present = None if units == 1 else there[..., None] / batch
    step = Step(config, Batch(x, reads if noisy else None, present), weights, gradient, Source(0))
    step.clipped(C, group, squared, torch.zeros_like(gradient.flat))
    clips = 0
    for unit in range(units):
        tensors = [
            t[unit].clone().requires_grad_() for t in (weights.W, weights.V, weights.b, weights.d) if t is not None
        ]
        total = [torch.zeros_like(t) for t in tensors]
        for place in range(size):
            if not there[unit, place]:
                continue
            W, V, *biases = tensors
            h = torch.sigmoid(reads[unit, place] @ W + (biases[0][0] if bias else 0))
            z = h @ V + (biases[1][0] if bias else 0)
            predicted, target = torch.sigmoid(z), x[unit, place]
            cross = -(target * predicted.log() + (1 - target) * (1 - predicted).log()).sum()
            grads = torch.autograd.grad(2 * (predicted - target).square().sum() if squared else cross, tensors)
            parts = ([0, 2], [1, 3]) if group else ([0, 1, 2, 3],)
            for part in parts:
                mine = [place for place in part if place < len(grads)]
                norm = math.sqrt(sum(float(grads[place].square().sum()) for place in mine))
                bound = C / math.sqrt(2) if group else C
                clips += norm > bound
                for place in mine:
                    total[place] += grads[place] * min(1.0, bound / norm)
        found = [t[unit] for t in (gradient.W, gradient.V, gradient.b, gradient.d) if t is not None]
        for ref, comp in zip(total, found, strict=True):
            torch.testing.assert_close(comp, ref / batch, rtol=1e-4, atol=1e-6)
    assert clips > 0 or squared  # the bound was felt


# ---- the environment's noise


@pytest.mark.parametrize("sigma", [0.5, 5.0])
@pytest.mark.parametrize(("mechanism", "fresh"), [("none", True), ("dpsgd", False)])
@pytest.mark.parametrize(("batch", "runs"), [(1, 3), (8, 3), (8, 1)])
def test_training_sees_records_with_all_of_sigma(sigma, mechanism, fresh, batch, runs):
    """Deviation sigma around the record; drawn in every epoch where the mechanism says so, else once."""
    days = made(rows=600, m=1)
    config = printed(mechanism, 1.0, sigma=sigma, batch=batch, m=1, epochs=2)
    read = loop.gather(days, config, runs, sources(runs))
    noise: dict[tuple, list] = {}
    for part in loop.batches(read, config, batch == 1 and runs > 1, sources(runs)):
        for unit in range(runs):
            there = slice(None) if part.present is None else part.present[unit, :, 0] > 0
            for x, seen in zip(part.x[unit][there].tolist(), part.noisy[unit][there].tolist(), strict=True):
                noise.setdefault((unit, *x), []).append(np.subtract(seen, x))
    drawn = np.array(list(noise.values()))  # (records, epochs, n)
    assert drawn.shape == (runs * int((~days.held_out).sum()), 2, 4)
    first, second = drawn[:, 0].ravel(), drawn[:, 1].ravel()
    assert first.std() == pytest.approx(sigma, rel=5 / math.sqrt(2 * first.size))
    assert abs(first.mean()) < 5 * sigma / math.sqrt(first.size)
    together = np.corrcoef(first, second)[0, 1]
    assert abs(together) < 5 / math.sqrt(first.size) if fresh else together == pytest.approx(1)


@pytest.mark.parametrize("form", ["net", "linear", "sigmoid"])
@pytest.mark.parametrize("sigma", [0.0, 3.0, 6.0])
def test_scores_are_taken_under_all_of_sigma(form, sigma):
    """Features that go through one by one: the expected error is an integral over one normal number."""
    n, runs, slope, gain = 4, 3, 0.05, 6.4
    days = made(rows=6000, n=n, m=2)
    W, V, b, d = slope * np.eye(n), gain * np.eye(n), np.full(n, -slope / 2), np.full(n, -gain / 2)
    if form == "net":
        models = model.allocate(2 * runs, n, n, True, False)
        for tensor, value in ((models.W, W), (models.V, V), (models.b, b), (models.d, d)):
            tensor.copy_(torch.tensor(value).expand_as(tensor))
    elif form == "sigmoid":
        models = [Trained("sigmoid", (Part(W, b, V, d),) * 2)] * runs
    else:
        models = [Trained("linear", (Part(W, b, 0.4 * np.eye(n), np.full(n, 0.5)),) * 2)] * runs
    config = printed("none", sigma=sigma, m=2, l=n, bias=True)
    found = cells.score(days, config, models, [torch.Generator().manual_seed(seed) for seed in range(runs)])
    mean_of = {name: np.mean([one[name] for one in found], axis=0) for name in found[0]}

    def predicted(u):
        if form == "linear":
            return 0.5 + 0.4 * slope * (u - 0.5)
        return 1 / (1 + np.exp(-gain * (1 / (1 + np.exp(-slope * (u - 0.5))) - 0.5)))

    place, weight = np.polynomial.hermite.hermgauss(40)

    def expected(rows, sigma):
        """Mean of the squared error, and the standard error of that mean over these rows."""
        x = days.x[rows][..., None]
        square = np.square(predicted(x + sigma * math.sqrt(2) * place) - x)
        mean, second = (square @ weight / math.sqrt(math.pi), np.square(square) @ weight / math.sqrt(math.pi))
        return mean.mean(), math.sqrt(max(0.0, (second - mean**2).mean()) / mean.size)

    everyone = np.ones(len(days.x), bool)
    for name, rows in (
        ("accuracy", everyone),
        ("accuracy_train", ~days.held_out),
        ("accuracy_held_out", days.held_out),
    ):
        error, doubt = expected(rows, sigma)
        assert mean_of[name] == pytest.approx(100 * (1 - error), abs=500 * doubt + 1e-4)
    assert mean_of["accuracy_clean_input"] == pytest.approx(100 * (1 - expected(everyone, 0.0)[0]), abs=1e-4)
    error, doubt = expected(everyone, sigma)
    spread = np.square(days.x - days.x.mean(0)).mean()
    assert mean_of["r2"] == pytest.approx(1 - error / spread, abs=5 * doubt / spread + 1e-5)
    assert mean_of["column_mse"].mean() == pytest.approx(error, abs=5 * doubt + 1e-6)
    if sigma:
        assert len({one["accuracy"] for one in found}) == runs  # each run's noise is its own
        assert error - expected(everyone, sigma / 10)[0] > 10 * doubt  # the check can tell


def test_scores_in_chunks_of_rows_are_those_of_all_rows(monkeypatch):
    days = made(rows=50)
    error = np.random.default_rng(1).normal(size=(3, 50, 4))
    error[1, 30, 2] = math.inf

    class Off:
        """Answers each record of the set with its own error added."""

        def __init__(self, by):
            self.by = by

        def predict(self, j, x):
            place = np.abs(days.x[None] - x[:, None]).sum(axis=2).argmin(axis=1)
            return days.x[place] + self.by[place]

    def scored():
        models = [Off(by) for by in error]
        return cells.score(days, Config("none", m=days.m), models, [torch.Generator()] * 3)

    whole = scored()
    monkeypatch.setattr(scores, "ROWS_AT_ONCE", 7)
    cut = scored()
    assert set(whole[1].values()) == set(cut[1].values()) == {None}  # it diverged
    for run in (0, 2):
        assert whole[run] == {name: pytest.approx(value, rel=1e-12) for name, value in cut[run].items()}
    assert whole[0]["accuracy"] == pytest.approx(100 * (1 - np.square(error[0]).mean()))
    assert whole[2]["accuracy_mae"] == pytest.approx(100 * (1 - abs(error[2]).mean()))
    assert whole[0]["accuracy_held_out"] == pytest.approx(100 * (1 - np.square(error[0, days.held_out]).mean()))
    assert whole[0]["column_mse"] == pytest.approx(np.square(error[0]).mean(axis=0))


# ---- the mechanism's noise


def gaussian_multiplier(epsilon, delta, times):
    """Noise over C by the curve of the Gaussian mechanism (Balle and Wang), when a sum moves by 2C each time."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def excess(mu):
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta

    return 2 * math.sqrt(times) / brentq(excess, 1e-4, 50)


@pytest.mark.parametrize(("batch", "runs", "m"), [(1, 40, 2), (1, 1, 1), (10, 40, 2), (10, 1, 1), (1000, 40, 2)])
@pytest.mark.parametrize("secret", [False, True])
def test_weights_walk_as_far_as_the_noise_of_dpsgd_weights_should_take_them(batch, runs, m, secret):
    """Plain descent at a tiny rate: what moves weights is noise, lr·C·multiplier/batch in each of T steps."""
    days = made(rows=100, n=8, m=m, held_out=False)
    epochs, lr, C, epsilon = (60 if runs == 1 else 3), 1e-6, 0.7, 0.05
    config = printed("dpsgd-weights", epsilon, batch=batch, m=m, l=4, epochs=epochs, lr=lr, C=C, optimiser="sgd")
    streams = [Source(None if secret else seed) for seed in range(runs)]
    start = model.allocate(runs * m, 8, 4, False, False)
    states = [stream.generator.get_state() for stream in streams]
    model.initialise(start, *(stream.generator for stream in streams))
    for stream, state in zip(streams, states, strict=True):
        stream.generator.set_state(state)
    moved = (loop.train_block(days, config, runs, streams).flat - start.flat).double()
    rows = np.bincount(days.user)
    for j in range(m):
        steps = epochs * math.ceil(rows[j] / batch)
        expected = lr * C * gaussian_multiplier(epsilon, 1e-6, epochs) * math.sqrt(steps) / batch
        mine = moved[j::m]
        allowed = 5 / math.sqrt(2 * mine.numel()) + 0.02  # a float of size ½ is rounded to 6e-8, a hundredth of a walk
        assert float(mine.std()) == pytest.approx(expected, rel=allowed)


def test_noise_ahead_is_used_once_and_each_run_has_its_own():
    for inside in (False, True):
        together = Together(sources(3), 6, inside)
        shape = (50, 6) if inside else (6, 50)
        drawn = torch.stack([together.normal(shape, 2.0).clone() for _ in range(200)])
        assert len(drawn.unique()) > 0.999 * drawn.numel()
        assert float(drawn.std()) == pytest.approx(2.0, rel=5 / math.sqrt(2 * drawn.numel()))
        alone = Together(sources(1), 2, inside)
        mine = torch.stack([alone.normal((50, 2) if inside else (2, 50), 2.0).clone() for _ in range(200)])
        assert torch.equal(mine, drawn[..., :2] if inside else drawn[:, :2])
        assert together.discrete((6,), 40).shape == (6,) and together.signs(shape).abs().eq(1).all()


# ---- start and schedule


def test_the_rate_goes_to_zero_where_the_schedule_is_linear(monkeypatch):
    rates = []

    class Remembers(model.SGD):
        def step(self, gradient):
            rates.append(self.lr)
            super().step(gradient)

    monkeypatch.setattr(model, "make_optimiser", lambda name, flat, lr: Remembers(flat, lr))
    days = made(m=1)
    steps = 3 * math.ceil(int((~days.held_out).sum()) / 10)
    loop.train_block(days, printed("none", batch=10, m=1, epochs=3, lr=0.5, schedule="linear"), 2, sources(2))
    assert rates == pytest.approx([0.5 * (1 - place / steps) for place in range(steps)])
    rates.clear()
    loop.train_block(days, printed("none", batch=10, m=1, epochs=3, lr=0.5), 2, sources(2))
    assert rates == [0.5] * steps


def test_a_data_free_start_is_that_of_every_unit():
    from sensorsim.training.trained import data_free_start

    days = made()
    config = checked(Config("none", m=2, l=2, start="data-free", epochs=0), days.n)
    trained = loop.train_block(days, config, 3, sources(3))
    start = data_free_start(config, days.n, days.columns)
    assert torch.equal(trained.W, start.W.repeat(3, 1, 1)) and torch.equal(trained.V, start.V.repeat(3, 1, 1))


# ---- memory

PEAK = """
import re, sys
import numpy as np
from sensorsim.datasets.dataset import Dataset
from sensorsim.training import cells, loop
from sensorsim.training.config import Config
rows, person = 100_000, np.arange(100_000) // 20
days = Dataset(np.random.default_rng(0).random((rows, 14)), tuple("abcdefghijklmn"), person,
                    person % 2, person % 5 == 0, "made", "ranges")
config = Config(sys.argv[1], 1.6, sigma=5.0, runs=100, seed=0, batch=int(sys.argv[2]), epochs=1)
config, days = cells.ready(config, days)
cells.run_some(days, config, range(min(100, loop.runs_at_once(days, config))))
# ru_maxrss would be that of the process that started this one, where it was larger.
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "batch"), [("spof", 1024), ("dpsgd-weights", 16384), ("none", 64)])
def test_a_hundred_runs_at_a_hundred_thousand_rows_fit_into_two_gigabytes(mechanism, batch):
    """Runs are trained as many at once as fit, so what one such piece takes is the peak of all."""
    words = [sys.executable, "-c", PEAK, mechanism, str(batch)]
    assert float(subprocess.run(words, check=True, capture_output=True, text=True).stdout) < 2000
