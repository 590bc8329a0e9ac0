"""Batch forms: the record kernels, for many records, on any number of threads."""

import naive
import numpy as np
import pytest
from sensorsim.kernels import batch
from sensorsim.kernels.formats import EXP_TABLE, EXP_ZERO, HALF

N, L, SIZE = 14, 7, 256
RNG = np.random.default_rng(5)
X = RNG.integers(0, 2**16, (200, N)).astype(np.uint16)
WEIGHTS = RNG.integers(-999, 999, N * L).astype(np.int32)
NOISE = RNG.integers(-(2**20), 2**20, SIZE).astype(np.int32)


def words(block, width, key):
    """The generator, written out: two 16-bit words from each 32-bit hash of (key, counter)."""
    half = batch.BLOCK * width // 2
    low, high = [], []
    for j in range(half):
        v = ((block * N + j) * 0x9E3779B9 & 0xFFFFFFFF) ^ key
        v = (v ^ v >> 16) * 0x21F0AAAD & 0xFFFFFFFF
        v = (v ^ v >> 15) * 0x735A2D97 & 0xFFFFFFFF
        v ^= v >> 15
        low.append(v & (SIZE - 1))
        high.append(v >> 16 & (SIZE - 1))
    return np.array(low + high).reshape(batch.BLOCK, width)


def test_spof_records_are_spof_on_every_row():
    alpha2, alpha3 = batch.spof_records(X, WEIGHTS, 81920, NOISE, seed=3)
    key = int(batch.key_of(3))
    for block in range(0, len(X), batch.BLOCK):
        strides, cursor = words(block, 2 * N, key), [0, 0]
        for r in range(block, min(block + batch.BLOCK, len(X))):
            row, stride = X[r].tolist(), strides[r - block].tolist()
            _, two, three, cursor = naive.spof(row, [], 0, NOISE.tolist(), stride, cursor)
            assert alpha2[r].tolist() == two
            assert alpha3[r].tolist() == three


def test_dpsgd_records_are_dpsgd_on_every_row():
    noisy = batch.dpsgd_records(X, 2048, NOISE, seed=3)
    strides, cursor = words(0, N, int(batch.key_of(3))), 0
    for r in range(batch.BLOCK):
        power, stride = EXP_TABLE[EXP_ZERO], strides[r].tolist()
        expected, cursor = naive.dpsgd(X[r].tolist(), power, 2048, NOISE.tolist(), stride, cursor)
        assert noisy[r].tolist() == expected


def test_lean_records_are_the_lean_kernels_on_every_row():
    alpha2, alpha3 = batch.spof_lean_records(X, NOISE, seed=4)
    noisy = batch.dpsgd_lean_records(X, 2048, NOISE, seed=4)
    word = words(0, N, int(batch.key_of(4)))
    for r in range(batch.BLOCK):
        row, chosen = X[r].tolist(), word[r].tolist()
        assert (alpha2[r].tolist(), alpha3[r].tolist()) == naive.spof_lean(row, NOISE.tolist(), chosen)
        assert noisy[r].tolist() == naive.dpsgd_lean(row, HALF, 2048, NOISE.tolist(), chosen)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_threads_change_nothing(count):
    x = np.ascontiguousarray(X[:count])
    for one, two in zip(
        batch.spof_records(x, WEIGHTS, 7, NOISE, threads=1),
        batch.spof_records(x, WEIGHTS, 7, NOISE, threads=2),
        strict=True,
    ):
        assert np.array_equal(one, two)


def test_rows_past_the_end_stay_untouched():
    out = np.full((8, N), 77, np.int32), np.full((8, N), 77, np.int32)
    batch.spof_lean_records(np.ascontiguousarray(X[:5]), NOISE, out=out)
    assert (out[0][5:] == 77).all()
    assert (out[1][5:] == 77).all()
    assert (out[0][:5] != 77).any()


def test_indices_are_even():
    """Chi-square of the generator's indices over the table: 255 degrees of freedom, five standard deviations."""
    counts = np.zeros(SIZE)
    for seed in range(40):
        counts += np.bincount(words(64 * seed, N, int(batch.key_of(seed))).ravel(), minlength=SIZE)
    expected = counts.sum() / SIZE
    assert abs(((counts - expected) ** 2 / expected).sum() - 255) < 5 * (2 * 255) ** 0.5


def test_roots():
    values = np.array([0, 1, 3, 4, 8, 9, 2**32 - 1, 65535**2, 65535**2 - 1], np.uint32)
    assert batch.roots(values).tolist() == [0, 1, 1, 2, 2, 3, 65535, 65535, 65534]
