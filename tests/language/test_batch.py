"""Batches of the kernels that ship: what the obvious loops give, for many records, on any number of threads."""

import naive
import numba
import numpy as np
import pytest
from sensorsim.kernels.dpsgd import dpsgd
from sensorsim.kernels.dpsgd_lean import dpsgd_lean
from sensorsim.kernels.formats import EXP_TABLE, EXP_ZERO, HALF
from sensorsim.kernels.root import root
from sensorsim.kernels.spof import spof
from sensorsim.kernels.spof_lean import spof_lean

from sensorsim.language.numba_backend.batch import BLOCK
from sensorsim.language.numba_backend.generators import GENERATORS, below, generator_fill, generator_state, words_below

N, L, SIZE = 14, 7, 256
RNG = np.random.default_rng(5)
X = RNG.integers(0, 2**16, (200, N)).astype(np.uint16)
WEIGHTS = RNG.integers(-999, 999, N * L).astype(np.int32)
NOISE = RNG.integers(-(2**20), 2**20, SIZE).astype(np.int32)
SPOF = {"weights": WEIGHTS, "constant": 81920, "noise": NOISE, "cursor": [0, 0]}


def words(generator, seed, block, width):
    """The words of one block of records, one row for each."""
    found = np.empty(BLOCK * width, np.uint32)
    generator_fill(generator)(found, generator_state(seed), block)
    return found.reshape(BLOCK, width)


def strides(generator, seed, block, width, size=SIZE):
    """The words below `size`, two from each word: the low halves first."""
    raw = words(generator, seed, block, width // 2).ravel()
    return np.concatenate([raw & (size - 1), raw >> 16 & (size - 1)]).reshape(BLOCK, width)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("count, n", [(200, N), (1, 1), (2 * BLOCK + 70, 3), (64, 130)])
def test_spof_on_every_row(generator, count, n):
    x = np.random.default_rng(n).integers(0, 2**16, (count, n))
    weights = np.arange(2 * n)
    made = spof.batch(x=x, generator=generator, seed=3, **SPOF | {"weights": weights, "cursor": [7, 255]})
    cursor = [0, 0]
    for r in range(count):
        cursor = [7, 255] if r % BLOCK == 0 else cursor
        stride = strides(generator, 3, r // BLOCK, 2 * n)[r % BLOCK].tolist()
        row = x[r].tolist(), weights.tolist(), 81920, NOISE.tolist(), stride, cursor
        stable, two, three, cursor = naive.spof(*row)
        assert made["alpha2"][r].tolist() == two
        assert made["alpha3"][r].tolist() == three
        assert made["stabilized"][r].tolist() == stable


def test_dpsgd_on_every_row():
    made = dpsgd.batch(x=X, a=EXP_ZERO, clip=2048, noise=NOISE, cursor=[0], seed=3)
    stride, cursor = strides("chacha20", 3, 0, N), 0
    for r in range(BLOCK):
        row, power = X[r].tolist(), EXP_TABLE[EXP_ZERO]
        expected, cursor = naive.dpsgd(row, power, 2048, NOISE.tolist(), stride[r].tolist(), cursor)
        assert made["noisy"][r].tolist() == expected


def test_the_lean_kernels_on_every_row():
    lean = spof_lean.batch(x=X, noise=NOISE, seed=4, generator="fast")
    noisy = dpsgd_lean.batch(x=X, sigma=HALF, clip=2048, noise=NOISE, seed=4, generator="fast")["noisy"]
    word = words("fast", 4, 1, N)
    for r in range(BLOCK, 2 * BLOCK):
        row, chosen = X[r].tolist(), word[r - BLOCK].tolist()
        assert (lean["alpha2"][r].tolist(), lean["alpha3"][r].tolist()) == naive.spof_lean(row, NOISE.tolist(), chosen)
        assert noisy[r].tolist() == naive.dpsgd_lean(row, HALF, 2048, NOISE.tolist(), chosen)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200, 16 * BLOCK + 77])
def test_threads_change_nothing(count):
    x = np.resize(X, (count, N))
    one, two = (spof.batch(x=x, threads=threads, seed=0, **SPOF) for threads in (1, 2))
    assert one.keys() == two.keys() == {"stabilized", "alpha2", "alpha3"}
    for name in one:
        assert np.array_equal(one[name], two[name])


def test_rows_past_the_end_stay_untouched():
    out = {"alpha2": np.full((8, N), 77, np.int32), "alpha3": np.full((8, N), 77, np.int32)}
    made = spof_lean.batch(x=X[:5], noise=NOISE, out=out)
    for name, array in out.items():
        assert made[name] is array
        assert (array[5:] == 77).all()
        assert (array[:5] != 77).any()


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("limit", [2, 3, 100, 256])
def test_words_below_a_limit_are_even(generator, limit):
    """Chi-square over the values, five standard deviations."""
    count, fill, take = BLOCK * 512, generator_fill(generator), numba.njit(lambda *given: below(*given))
    raw, found = np.empty(words_below(limit, count), np.uint32), np.empty(count, np.uint32)
    fill(raw, generator_state(limit), 3)
    take(raw, found, limit)
    counts = np.bincount(found, minlength=limit)
    expected = count / limit
    assert len(counts) == limit
    assert abs(((counts - expected) ** 2 / expected).sum() - (limit - 1)) < 5 * (2 * limit) ** 0.5


def test_a_table_of_any_length():
    """300 entries are no power of two; every stride below 300 occurs, none above, and the result is the kernel's."""
    noise = np.arange(300, dtype=np.int32)
    made = spof.batch(x=np.full((2000, N), HALF), seed=1, **SPOF | {"noise": noise})
    assert set(made["alpha2"].ravel().tolist()) == set(range(300))


def test_roots():
    values = np.array([0, 1, 3, 4, 8, 9, 2**32 - 1, 65535**2, 65535**2 - 1], np.uint32)
    assert root.batch(v=values)["returns"].tolist() == [0, 1, 1, 2, 2, 3, 65535, 65535, 65534]
