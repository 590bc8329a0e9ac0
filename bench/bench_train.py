"""Training: one DP step (one record through one net) inside 100 runs, beside Opacus doing it one run at a time.

Run with: pytest bench/bench_train.py -s. Times are per call; the lines printed have them per step and run.
"""

import time
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sensorsim.datasets import synthetic  # noqa: E402
from sensorsim.datasets.dataset import prepare  # noqa: E402
from sensorsim.training import cells  # noqa: E402
from sensorsim.training.config import Config  # noqa: E402
from sensorsim.training.loop import train_block  # noqa: E402
from sensorsim.training.step import Source  # noqa: E402

RUNS, N, L = 100, 14, 7
PRINTED = {"batch": 1, "lr": 1e-3, "C": 4.0, "optimiser": "adam", "start": "random"}


def sources(count, seed=0):
    return [Source(None if seed is None else seed + run) for run in range(count)]


@pytest.fixture(scope="module")
def days():
    torch.set_num_threads(1)
    return prepare(synthetic.make())


def steps_of(dataset, config):
    """Records that all users of one run read: each is a step of one net."""
    return int((~dataset.held_out).sum()) * config.epochs


@pytest.mark.parametrize("seed", [0, None], ids=["seeded", "secret"])
@pytest.mark.parametrize("mechanism", ["dpsgd-weights", "dp-zo", "dpsgd", "spof"])
def test_one_step_of_one_run_in_a_hundred(benchmark, days, mechanism, seed):
    """Gaussian noise comes from torch with a seed, from ChaCha20 without; Laplace noise from ChaCha20 in both."""
    config, dataset = cells.ready(Config(mechanism, 1.6, runs=RUNS, epochs=1, **PRINTED), days)
    benchmark.pedantic(lambda: train_block(dataset, config, RUNS, sources(RUNS, seed)), rounds=5, warmup_rounds=1)
    each = benchmark.stats.stats.median / steps_of(dataset, config) / RUNS
    benchmark.extra_info["microseconds_per_step_and_run"] = 1e6 * each


@pytest.mark.filterwarnings("ignore")
def test_one_step_of_opacus(benchmark, days):
    """The peer: per-sample gradients, clipping, Gaussian noise, Adam, batch 1, one run."""
    step = opacus_stepper(days)
    benchmark.pedantic(step, rounds=300, warmup_rounds=50)
    benchmark.extra_info["microseconds_per_step_and_run"] = 1e6 * benchmark.stats.stats.median


@pytest.mark.filterwarnings("ignore")
def test_at_least_300_times_opacus(days):
    """The claim itself at m = 2, both sides in turn in one process, the best of several each.

    With m = 1 a step handles half as many nets, and the ratio was 269 to 355: not always 300.
    """
    step = opacus_stepper(days)
    config, dataset = cells.ready(Config("dpsgd-weights", 1.6, runs=RUNS, epochs=1, **PRINTED), days)
    ours, theirs = [], []
    for _ in range(8):
        began = time.perf_counter()
        train_block(dataset, config, RUNS, sources(RUNS))
        ours.append((time.perf_counter() - began) / steps_of(dataset, config) / RUNS)
        began = time.perf_counter()
        for _ in range(100):
            step()
        theirs.append((time.perf_counter() - began) / 100)
    ratio = min(theirs) / min(ours)
    print(f"\nours {1e6 * min(ours):.2f} µs, Opacus {1e6 * min(theirs):.0f} µs per step and run: {ratio:.0f} times")
    assert ratio >= 300


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("batch", "epochs", "times"), [(1, 3, 15), (64, 60, 6)])
def test_one_run_of_one_net_beside_opacus(batch, epochs, times):
    """No batching of runs to help: m = 1, one run, both sides in turn in one process, the best of several each."""
    days = prepare(synthetic.make(), m=1)
    step = opacus_stepper(days, batch)
    config, dataset = cells.ready(
        Config("dpsgd-weights", 1.6, runs=1, m=1, epochs=epochs, **PRINTED | {"batch": batch}), days
    )
    steps = -(-int((~dataset.held_out).sum()) // batch) * epochs
    ours, theirs = [], []
    for _ in range(8):
        began = time.perf_counter()
        train_block(dataset, config, 1, Source(0))
        ours.append((time.perf_counter() - began) / steps)
        began = time.perf_counter()
        for _ in range(200):
            step()
        theirs.append((time.perf_counter() - began) / 200)
    ratio = min(theirs) / min(ours)
    print(
        f"\nbatch {batch}: ours {1e6 * min(ours):.1f} µs, Opacus {1e6 * min(theirs):.0f} µs a step: {ratio:.1f} times"
    )
    assert ratio >= times


def opacus_stepper(dataset, batch=1):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus.grad_sample import GradSampleModule
        from opacus.optimizers import DPOptimizer

    net = torch.nn.Sequential(torch.nn.Linear(N, L, bias=False), torch.nn.Sigmoid(), torch.nn.Linear(L, N, bias=False))
    wrapped = GradSampleModule(net)
    optimizer = DPOptimizer(
        torch.optim.Adam(wrapped.parameters(), lr=1e-3),
        noise_multiplier=1.0,
        max_grad_norm=4.0,
        expected_batch_size=batch,
    )
    rows = torch.tensor(dataset.x, dtype=torch.float32)
    place = 0

    def step():
        nonlocal place
        x = rows[place : place + batch]
        place = (place + batch) % (len(rows) - batch)
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(wrapped(x), x, reduction="sum").backward()
        optimizer.step()

    return step


@pytest.mark.parametrize("m", [1, 2, 4, 8])
def test_linear_in_users(benchmark, m):
    """Records per user stay the same, so time should grow with m."""
    dataset = prepare(synthetic.make(rows=120 * m, persons=10 * m), m=m)
    config, dataset = cells.ready(Config("dpsgd", 1.6, runs=25, m=m, epochs=1), dataset)
    benchmark.pedantic(lambda: train_block(dataset, config, 25, sources(25)), rounds=3)


@pytest.mark.parametrize("rows", [300, 600, 1200, 2400])
def test_linear_in_rows(benchmark, rows):
    dataset = prepare(synthetic.make(rows=rows, persons=35))
    config, dataset = cells.ready(Config("dpsgd", 1.6, runs=25, epochs=1), dataset)
    benchmark.pedantic(lambda: train_block(dataset, config, 25, sources(25)), rounds=3)


@pytest.mark.parametrize(
    "mechanism", ["none", "spof", "fm", "dpsgd", "dpsgd-weights", "dp-zo", "release", "sampled", "sketch"]
)
def test_one_cell_of_the_figure(benchmark, days, mechanism):
    """100 runs, 10 epochs; the figure has 7 × 2 of each but `none`."""
    config = Config(mechanism, 1.6, runs=RUNS)
    cells.ready(config, days)  # a table is designed once, where none ships
    result = benchmark.pedantic(lambda: cells.run_cell(days, config), rounds=1)
    assert np.isfinite(result["accuracy"]).all()


def test_memory_does_not_grow_with_the_runs(days):
    """Runs are trained in blocks: after one block, the peak hardly moves for five."""
    cells.run_cell(days, Config("dpsgd", 1.6, runs=128, epochs=1))
    before = resident()
    cells.run_cell(days, Config("dpsgd", 1.6, runs=640, epochs=1))
    grown = resident() - before
    print(f"\npeak resident memory {before:.0f} MB after 128 runs, {grown:.0f} MB more after 640")
    assert grown < 100


def resident():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
