"""Speed of a released value, one thread, OpenDP's integer Laplace beside it. Run: pytest bench/bench_release.py

Goals per released value, stairs: ChaCha20, the default, 2,500 times OpenDP's speed, fast 5,000 times. The last
test takes all in turns, best of many, and prints the ratios.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sensorsim.language.numba_backend.generators import GENERATORS
from sensorsim.noise.batch_release import release_records, sampled_records
from sensorsim.noise.noise_table import ready_table

RECORDS, FEATURES = 1 << 15, 14
PEER_VALUES = 2000
KINDS = ("rows", "stairs")


def ours(kind: str, generator: str) -> tuple[Callable[[], Any], int]:
    """All features of many records, and how many values that is."""
    x = np.random.default_rng(0).integers(0, 2**15, (RECORDS, FEATURES), np.uint16)
    table = ready_table(1, kind=kind)
    out = release_records(x, table)
    return lambda: release_records(x, table, generator=generator, out=out), x.size


def sampled(kind: str, generator: str) -> tuple[Callable[[], Any], int]:
    """One feature of each of many records."""
    x = np.random.default_rng(0).integers(0, 2**15, (8 * RECORDS, FEATURES), np.uint16)
    table = ready_table(1, 1, kind)
    out = sampled_records(x, table)
    return lambda: sampled_records(x, table, generator=generator, out=out), len(x)


def theirs() -> tuple[Callable[[], Any], int]:
    """OpenDP's Laplace on whole numbers, a vector at a time, at the scale of the same budget."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i32")), dp.l1_distance(T="i32")
    measure, values = dp.m.make_laplace(*space, scale=14.0 * 2**15), [1 << 14] * PEER_VALUES
    return lambda: measure(values), PEER_VALUES


@pytest.mark.benchmark(group="one released value")
@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", [ours, sampled])
def test_release(benchmark: Any, form: Any, kind: str, generator: str) -> None:
    run, values = form(kind, generator)
    benchmark.extra_info["values"] = values
    benchmark.pedantic(run, rounds=20, warmup_rounds=2)


@pytest.mark.benchmark(group="one released value")
def test_opendp(benchmark: Any) -> None:
    run, values = theirs()
    benchmark.extra_info["values"] = values
    benchmark.pedantic(run, rounds=20, warmup_rounds=2)


def test_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    """Nanoseconds per value, in turns so that a busy machine slows all alike."""
    forms = {"OpenDP": theirs()}
    for kind in KINDS:
        forms |= {f"release, {kind}, {g}": ours(kind, g) for g in GENERATORS}
        forms |= {f"sampled, {kind}, {g}": sampled(kind, g) for g in GENERATORS}
    best = dict.fromkeys(forms, float("inf"))
    for round_ in range(31):
        for name, (run, values) in forms.items():
            start = time.perf_counter()
            run()
            if round_:  # the first compiles
                best[name] = min(best[name], (time.perf_counter() - start) / values * 1e9)
    with capsys.disabled():
        print()
        for name, ns in best.items():
            print(f"  {name:<28}{ns:10.2f} ns per value   {best['OpenDP'] / ns:8.0f} × OpenDP")
