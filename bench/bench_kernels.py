"""Speed of the batch runner on the kernels and on the root, peers beside them. Run: pytest bench/bench_kernels.py

Goals: SPOF at least 20 times vectorised numpy per coefficient on one thread with the fast generator (what numpy uses is
no secret either), on two threads at most 4 times a plain copy of the same bytes; the root at least 10 times cmsisdsp's
per call from Python, and exact.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sensorsim.kernels.dpsgd import dpsgd
from sensorsim.kernels.dpsgd_lean import dpsgd_lean
from sensorsim.kernels.formats import EXP_ZERO, HALF
from sensorsim.kernels.root import root
from sensorsim.kernels.spof import spof
from sensorsim.kernels.spof_lean import spof_lean

N, L, SIZE, RECORDS = 14, 7, 2**14, 200_000
RNG = np.random.default_rng(1)
X = RNG.integers(0, 32769, (RECORDS, N)).astype(np.uint16)
WEIGHTS = RNG.integers(-99999, 99999, N * L).astype(np.int32)
NOISE = np.round(RNG.laplace(0, 21, SIZE) * 32768).astype(np.int32)
OUT = np.empty((RECORDS, N), np.int32), np.empty((RECORDS, N), np.int32)
FAST = {"generator": "fast", "seed": 0}
CONSTANT = int(2.5 * 32768)


def our_spof(x: Any, weights: Any, pair: Any, generator: str = "fast", threads: int = 1) -> Any:
    """Every step as printed, the stabilized weights of each record included; nobody looks at those."""
    given = {"x": x, "weights": weights, "constant": CONSTANT, "noise": NOISE, "cursor": [0, 0]}
    room = {"alpha2": pair[0], "alpha3": pair[1], "stabilized": None}
    return spof.batch(generator=generator, seed=0, threads=threads, out=room, **given)


def our_dpsgd(x: Any, noisy: Any) -> Any:
    room = {"noisy": noisy, "gradient": None, "square": None, "clipped": None}
    return dpsgd.batch(x=x, a=EXP_ZERO, clip=4096, noise=NOISE, cursor=[0], out=room, **FAST)


def numpy_spof() -> tuple[Any, Any]:
    """The same record by numpy: stabilized weights, both coefficients, fresh Laplace noise."""
    noise = RNG.laplace(0, 21, (2, RECORDS, N))
    x = X / 32768
    stabilized = np.broadcast_to(WEIGHTS / 32768, (RECORDS, N * L)) + 2.5
    assert stabilized.shape == (RECORDS, N * L)
    return 0.5 - x + noise[0], 0.5 * x - 0.25 + noise[1]


SOURCE = np.zeros(2 * RECORDS * N, np.int32)
TARGET = np.zeros_like(SOURCE)
SPOF: dict[str, Callable[[], Any]] = {
    "sensorsim, 1 thread": lambda: our_spof(X, WEIGHTS, OUT),
    "sensorsim, 2 threads": lambda: our_spof(X, WEIGHTS, OUT, threads=2),
    "with ChaCha20": lambda: our_spof(X, WEIGHTS, OUT, "chacha20"),
    "numpy": numpy_spof,
    "copy of the results": lambda: np.copyto(TARGET, SOURCE),
}


@pytest.mark.benchmark(group="SPOF, 200,000 records of 14 features")
@pytest.mark.parametrize("name", SPOF)
def test_spof(benchmark: Any, name: str) -> None:
    benchmark.pedantic(SPOF[name], rounds=20, warmup_rounds=2)


def test_spof_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    best = best_in_turn(SPOF, 40)
    with capsys.disabled():
        for name, seconds in best.items():
            print(f"\n{name:<22} {1e9 * seconds / (2 * RECORDS * N):7.2f} ns per coefficient", end="")
        print(f"\nnumpy / sensorsim, 1 thread   {best['numpy'] / best['sensorsim, 1 thread']:.1f} ×")
        print(f"sensorsim, 2 threads / copy   {best['sensorsim, 2 threads'] / best['copy of the results']:.1f} ×")
    assert best["numpy"] > best["sensorsim, 1 thread"]


def test_growth_is_linear(capsys: pytest.CaptureFixture[str]) -> None:
    """SPOF against DP-SGD, printed and lean: nanoseconds per feature for records of 14 … 4096 features."""
    with capsys.disabled():
        print(f"\n{'n':>6}{'SPOF':>10}{'DP-SGD':>10}{'SPOF lean':>12}{'DP-SGD lean':>13}   ns per feature, one thread")
        for n in (14, 56, 224, 1024, 4096):
            count = max(64, 400_000 // n)
            x = RNG.integers(0, 32769, (count, n)).astype(np.uint16)
            weights, pair = np.zeros(n * L, np.int32), (np.empty((count, n), np.int32), np.empty((count, n), np.int32))
            both, noisy = {"alpha2": pair[0], "alpha3": pair[1]}, {"noisy": pair[0]}
            lean = {"x": x, "sigma": HALF, "clip": 4096, "noise": NOISE}
            runs = {
                "SPOF": lambda: our_spof(x, weights, pair),  # noqa: B023 - run at once
                "DP-SGD": lambda: our_dpsgd(x, pair[0]),  # noqa: B023
                "SPOF lean": lambda: spof_lean.batch(x=x, noise=NOISE, out=both, **FAST),  # noqa: B023
                "DP-SGD lean": lambda: dpsgd_lean.batch(out=noisy, **lean, **FAST),  # noqa: B023
            }
            ns = {name: 1e9 * seconds / (count * n) for name, seconds in best_in_turn(runs, 10).items()}
            print(f"{n:>6}{ns['SPOF']:>10.2f}{ns['DP-SGD']:>10.2f}{ns['SPOF lean']:>12.2f}{ns['DP-SGD lean']:>13.2f}")
            assert min(ns.values()) > 0


def roots() -> tuple[dict[str, Callable[[], Any]], Any]:
    """Both ways to many roots, and the words that they are taken of."""
    import cmsisdsp

    words = RNG.integers(1, 2**31, 20_000).astype(np.uint32)
    values = words.tolist()
    ours, theirs = lambda: root.batch(v=words), lambda: [cmsisdsp.arm_sqrt_q31(value) for value in values]
    return {"sensorsim": ours, "cmsisdsp": theirs}, words


def test_root_against_cmsis(capsys: pytest.CaptureFixture[str]) -> None:
    """Per root from Python, ours in the batch form (cmsisdsp has no other than one by one); and how exact each is."""
    import cmsisdsp

    runs, words = roots()
    values = words.tolist()
    best = best_in_turn(runs, 10)
    off = [abs(cmsisdsp.arm_sqrt_q31(value)[1] - exact_q31(value)) for value in values]
    wrong = sum(int(r) != math.isqrt(v) for r, v in zip(root.batch(v=words)["returns"], values, strict=True))
    with capsys.disabled():
        for name, seconds in best.items():
            print(f"\n{name:<12} {1e9 * seconds / len(values):7.1f} ns per root", end="")
        ratio, share = best["cmsisdsp"] / best["sensorsim"], 100 * off.count(0) / len(off)
        print(f"\ncmsisdsp / sensorsim {ratio:.1f} ×; ours is wrong for {wrong} of {len(values)},")
        print(f"cmsisdsp off by up to {max(off)} units in the last place, exact for {share:.0f} %")
    assert wrong == 0


def exact_q31(v: int) -> int:
    """The root of v/2^31, in units of 2^-31, to the nearest."""
    floor = math.isqrt(v << 31)
    return floor + ((v << 31) - floor * floor > floor)


def timed(run: Callable[[], Any], times: int) -> float:
    begin = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - begin) / times


def best_in_turn(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The best time of each, rounds taken in turn so that all meet the same machine."""
    for run in runs.values():
        run()
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], timed(run, 1))
    return best
