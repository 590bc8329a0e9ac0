"""Batches of the kernels that ship: what the obvious loops give, for many records, with words of the generator."""

import naive
import numba
import numpy as np
import pytest
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
