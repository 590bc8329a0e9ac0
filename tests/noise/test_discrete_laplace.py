"""Words for the host, and the discrete Laplace draws made from them: exactly, against the distribution and a peer."""

import copy
import math
import os

import naive_release
import numpy as np
import pytest
from scipy import stats

from sensorsim._util.errors import InputError
from sensorsim.noise import host_noise as module
from sensorsim.noise.host_noise import BLOCK, Words, discrete_laplace

SCALES = [1, 3, 100, 21 << 15]
WHOLE = 7 * math.factorial(20)


def survival(k: float, t: int) -> float:
    """P(z >= k), k >= 0, summed by hand: (1 - p)/(1 + p)·(p^k + p^(k+1) + …)."""
    return math.exp(-k / t) / (1 + math.exp(-1 / t))


def bins(t: int, draws: int) -> list[int]:
    """Lower ends, symmetric in z: even ones to where 200 draws are expected beyond, and one to where 20 are."""
    far = max(2, int(t * math.log(draws / 400)))
    step = max(1, far // 30)
    above = [*range(1 + step // 2, far, step), max(far, int(t * math.log(draws / 40)))]
    return [1 - k for k in reversed(above)] + above


def chi_square(z: np.ndarray, t: int) -> float:
    edges = bins(t, z.size)
    at_least = [survival(k, t) if k > 0 else 1 - survival(1 - k, t) for k in edges]
    expected = -np.diff([1.0, *at_least, 0.0]) * z.size
    counts = np.bincount(np.searchsorted(edges, z, side="right"), minlength=len(edges) + 1)
    assert expected.min() > 5
    return float(stats.chisquare(counts, expected * (z.size / expected.sum())).pvalue)


def naive_draws(words: list[int], t: int, count: int) -> list[int]:
    """The algorithm of the paper, one event after the other, in Python's whole numbers."""
    stream = iter(words)
    q = (2**63 - 1) // t

    def below(limit: int) -> int:
        return next(word for word in stream if word < limit)

    def in_a_row() -> int:
        word, run = below(WHOLE), 1
        while run < 20 and word * math.factorial(run + 1) < WHOLE:
            run += 1
        while run >= 20 and below((2**64 - 1) // (run + 1) * (run + 1)) < (2**64 - 1) // (run + 1):
            run += 1
        return run

    def draw() -> int | None:
        half, sign = divmod(below(2 * q * t), 2)
        u, most, run, v = half // q, in_a_row(), 0, 0
        while run < most and below(2 * q * t) * t < 2 * q * t * u:
            run += 1
        if run % 2:
            return None
        while in_a_row() % 2 == 0:
            v += 1
        return None if sign and u + t * v == 0 else (-1) ** sign * (u + t * v)

    found: list[int] = []
    while len(found) < count:
        one = draw()
        found += [] if one is None else [one]
    return found


@pytest.mark.parametrize("t", SCALES)
def test_the_distribution(t: int) -> None:
    z = discrete_laplace(400_000, t, Words(seed=11))
    assert chi_square(z, t) > 1e-3
    p = math.exp(-1 / t)
    mean, square = 2 * p / (1 - p**2), 2 * p / (1 - p) ** 2
    assert abs(z).mean() == pytest.approx(mean, abs=4 * math.sqrt((square - mean**2) / z.size))
    assert stats.binomtest(int((z > 0).sum()), int((z != 0).sum())).pvalue > 1e-3
    assert stats.binomtest(int((z == 0).sum()), z.size, (1 - p) / (1 + p)).pvalue > 1e-3
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 4 / math.sqrt(z.size)


@pytest.mark.parametrize("t", [*SCALES, 2**39 + 1, 2**40 - 1, 2**40])
def test_word_for_word_as_in_unbounded_numbers(t: int) -> None:
    ref = naive_draws(Words(seed=t).take(40_000).tolist(), t, 3000)
    comp = discrete_laplace(3000, t, Words(seed=t))
    assert comp.dtype == np.int64 and comp.tolist() == ref


@pytest.mark.parametrize("k", range(2, 21))
def test_where_a_run_of_events_ends(k: int) -> None:
    """At t = 1: u = 0 is kept, then z counts runs of even length until one is odd. A run of k begins at 7·20!/k!."""
    odd = WHOLE // 2
    edge = WHOLE // math.factorial(k)
    assert edge * math.factorial(k) == WHOLE
    for word, run in ((edge - 1, k), (edge, k - 1)):
        after = [(2**64 - 1) // 21, 2**64 - 1, odd] if run == 20 else [odd]  # 1/21 does not happen
        given = np.array([0, WHOLE, odd, 0, word, *after], np.uint64)
        draws = np.zeros(1, np.int64)
        assert module._compiled()(draws, given, 1)[0] == 1
        assert draws[0] == (run % 2 == 0)


def test_a_run_beyond_twenty() -> None:
    """A word below 7 leaves the rest to words of their own: 1/21 happens, 1/22 does not: 21, odd, z = 0."""
    share = (2**64 - 1) // 22
    given = np.array([0, WHOLE // 2, 0, 6, (2**64 - 1) // 21 - 1, share, WHOLE // 2], np.uint64)
    draws = np.full(1, 9, np.int64)
    assert module._compiled()(draws, given, 1) == (1, 6) and draws[0] == 0
    given[5] = share - 1  # 1/22 happens as well, and the words end before 1/23
    assert module._compiled()(draws, given[:6], 1) == (0, 0)


def test_a_draw_cut_short_is_made_again_from_its_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else long draws, which are large ones, would be lost more often than short ones."""
    ref = discrete_laplace((10, 50), 3, Words(seed=2))
    for most in (1, 5, 64):
        monkeypatch.setattr(module, "MOST_WORDS", most)
        assert (discrete_laplace((10, 50), 3, Words(seed=2)) == ref).all()


def test_a_peer() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    for t in (2, 40):
        theirs = np.array(dp.m.make_laplace(*space, scale=float(t))([0] * 20_000))
        ours = discrete_laplace(20_000, t, Words())
        edges = [k for k in bins(t, 20_000) if abs(k) < 4 * t]
        table = [np.bincount(np.searchsorted(edges, z, side="right"), minlength=len(edges) + 1) for z in (ours, theirs)]
        assert stats.chi2_contingency(table).pvalue > 1e-6  # neither has a seed


def test_seeds() -> None:
    first = discrete_laplace((4, 8), 1000, Words(seed=3))
    assert first.shape == (4, 8) and (discrete_laplace((4, 8), 1000, Words(seed=3)) == first).all()
    assert (discrete_laplace((4, 8), 1000, Words(seed=4)) != first).any()
    assert (discrete_laplace((4, 8), 1000, Words()) != discrete_laplace((4, 8), 1000, Words())).any()
    assert discrete_laplace(0, 1, Words(seed=3)).size == 0 and discrete_laplace((), 1, Words(seed=3)).shape == ()
    assert Words().private and not Words(seed=0).private


@pytest.mark.parametrize("t", [0, -1, 2**40 + 1, 1.5, True, math.nan])
def test_bad_scales(t: int) -> None:
    with pytest.raises(InputError, match="whole number from 1 to 2"):
        discrete_laplace(3, t, Words(seed=1))


def test_words_are_those_of_the_cipher() -> None:
    key = np.random.SeedSequence(7).generate_state(8, np.uint32).astype("<u4").tobytes()
    words = Words(seed=7)
    blocks = (0, 1, BLOCK // 8)  # 8 words a block
    ref = [naive_release.chacha20_block(key, k, bytes(12)) for k in blocks]
    comp = words.take(BLOCK + 8).astype("<u8").tobytes()
    assert [comp[:64], comp[64:128], comp[-64:]] == ref


def test_words_however_they_are_cut() -> None:
    whole, cut = Words(seed=1).take(3 * BLOCK), Words(seed=1)
    parts = [cut.take(k) for k in (0, 3, BLOCK - 3, 1, BLOCK, BLOCK - 1)]
    assert (np.concatenate(parts) == whole).all() and len(set(whole.tolist())) == whole.size
    with pytest.raises(InputError, match="0 or more"):
        cut.take(-1)
    with pytest.raises(InputError, match="seed"):
        Words(seed=-1)


def test_uniform_and_normal(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Words(seed=6)
    u = words.uniform((100, 1000))
    assert u.shape == (100, 1000) and u.dtype == np.float64
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3
    assert stats.kstest(words.normal(100_000), "norm").pvalue > 1e-3
    given = [
        np.array([0, 2**64 - 1, 2047], np.uint64),
        np.array([5, 1 << 11], np.uint64),
        np.array([1 << 63], np.uint64),
    ]
    monkeypatch.setattr(words, "take", lambda count: given.pop(0)[:count])
    assert words.uniform(3).tolist() == [0.5, 1 - 2**-53, 2**-53]


def test_no_word_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    private, seeded = Words(), Words(seed=1)
    with pytest.raises(InputError, match="not copied"):
        copy.deepcopy(private)
    forked = Words.__new__(Words)  # as a forked process finds it
    forked.__dict__.update(private.__dict__, _state=private._state.copy(), _block=private._block.copy())
    seen = [private.take(4).tolist(), seeded.take(4).tolist()]
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert forked.take(4).tolist() != seen[0]
    assert (seen[1] + seeded.take(4).tolist()) == Words(seed=1).take(8).tolist()
