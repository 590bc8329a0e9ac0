"""DINAR's pre-fetch: what it computes, what it costs beside C_N, and that no epsilon can hold for it."""

from itertools import product

import numpy as np
import pytest
from sensorsim.kernels.dinar import dinar, dinar_fetch, dinar_scramble, dinar_scrambled, dinar_shift

from sensorsim.costing.kernel_report import kernel_report
from sensorsim.costing.pricing import PAPER_PRICES

POOL = [-40_000, -9_000, 300, 21_000]  # four samples in units of 2^-15
SIZE = len(POOL)
ALL = range(SIZE)
X, OTHER = 1_000, 1_001  # two values of a coefficient, one unit apart


def naive(coefficient, pool, strides, words, shift, cursor):
    """The same by division and lists, in words of a textbook."""
    noisy = []
    for value, stride, word in zip(coefficient, strides, words, strict=True):
        cursor = (cursor + stride) % len(pool)
        noisy.append(value + pool[(cursor ^ word) % len(pool)] // 2**shift)
    return noisy, cursor


def plain(coefficient, strides, shift=0, cursor=0, pool=POOL):
    kept, noisy = [cursor], [0] * len(coefficient)
    dinar(coefficient, pool, strides, shift, kept, noisy, len(coefficient), len(pool))
    return noisy, kept[0]


def scrambled(coefficient, strides, words, shift=0, cursor=0, pool=POOL):
    kept, noisy = [cursor], [0] * len(coefficient)
    dinar_scrambled(coefficient, pool, strides, words, shift, kept, noisy, len(coefficient), len(pool))
    return noisy, kept[0]


def test_one_fetch_moves_the_pointer_reads_and_halves():
    cursor = [3]
    assert dinar_fetch(POOL, cursor, 2, 0, SIZE) == POOL[1]  # 3 + 2 is past the end of four
    assert cursor == [1]
    assert dinar_fetch(POOL, cursor, 0, 3, SIZE) == -1_125
    assert [dinar_shift(sample, 1) for sample in (7, 1, 0, -1, -7)] == [3, 0, 0, -1, -4]


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_every_word_is_an_order_of_the_whole_pool(bits):
    size = 2**bits
    for word in (0, 1, 5, 2**32 - 1, 0x9E3779B9):
        assert sorted(dinar_scramble(place, word, size - 1) for place in range(size)) == list(range(size))
    for word in range(size):
        assert {dinar_scramble(0, word, size - 1)} == {word}


def test_a_pool_of_another_size_loses_samples_when_scrambled():
    assert {dinar_scramble(place, 0, 5 - 1) for place in range(5)} == {0, 4}


@pytest.mark.parametrize("n", [1, 2, 7, 14])
def test_the_kernels_are_what_a_textbook_writes(n):
    draw = np.random.default_rng(n)
    for size in (2, 8, 256):
        pool = draw.integers(-(2**30), 2**30, size).tolist()
        coefficient = draw.integers(-(2**15), 2**15, n).tolist()
        strides, words = draw.integers(0, size, n).tolist(), draw.integers(0, 2**32, n).tolist()
        shift, cursor = int(draw.integers(0, 16)), int(draw.integers(0, size))
        found = scrambled(coefficient, strides, words, shift, cursor, pool)
        assert found == naive(coefficient, pool, strides, words, shift, cursor)
        found = plain(coefficient, strides, shift, cursor, pool)
        assert found == naive(coefficient, pool, strides, [0] * n, shift, cursor)
        fast = dinar_scrambled.run(
            coefficient=coefficient, noise=pool, stride=strides, word=words, shift=shift, cursor=[cursor]
        )
        assert fast["noisy"].tolist() == naive(coefficient, pool, strides, words, shift, cursor)[0]


def reachable(value, shift):
    """Every output of one coefficient, over every state, stride and scrambling word that there is."""
    return {
        scrambled([value], [stride], [word], shift, cursor)[0][0] for cursor, stride, word in product(ALL, ALL, ALL)
    }


@pytest.mark.parametrize("shift", range(16))
def test_some_outputs_tell_two_coefficients_apart_for_certain(shift):
    """A ratio of probabilities is bounded by no exp(epsilon) where one of them is zero, at any shift."""
    here, there = reachable(X, shift), reachable(OTHER, shift)
    assert here - there and there - here
    assert len(here) <= SIZE  # nothing but the pool's samples, however it is ordered


def test_shifting_merges_samples():
    sizes = [len(reachable(X, shift)) for shift in range(16)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == SIZE and sizes[-1] < SIZE


def test_a_known_order_can_be_taken_off_again():
    """Who knows the pool, the strides and where the pointer stood reads every coefficient."""
    secret, strides = [120, -3_000, 32_767, 0, -32_768], [1, 1, 1, 1, 1]
    for cursor in ALL:
        noisy, _ = plain(secret, strides, 2, cursor)
        noise, _ = plain([0] * 5, strides, 2, cursor)
        assert [a - b for a, b in zip(noisy, noise, strict=True)] == secret


def test_what_a_fixed_order_and_a_reused_word_are_worth():
    """Of 4³ sequences of three samples a fixed order leaves 4, and one word for all of them 8.

    Turning over bits of an address in 0 … 3 turns or mirrors the circle of four, which has eight such symmetries.
    """
    fixed = {tuple(plain([0] * 3, [1] * 3, 0, cursor)[0]) for cursor in ALL}
    public = {tuple(scrambled([0] * 3, [1] * 3, [2, 1, 3], 0, cursor)[0]) for cursor in ALL}
    reused = {tuple(scrambled([0] * 3, [1] * 3, [word] * 3, 0, cursor)[0]) for cursor, word in product(ALL, ALL)}
    fresh = {tuple(scrambled([0] * 3, [1] * 3, list(words))[0]) for words in product(ALL, ALL, ALL)}
    assert (len(fixed), len(public), len(reused), len(fresh)) == (SIZE, SIZE, 2 * SIZE, SIZE**3)


def by_class(formula):
    total = {}
    for (_, operation), times in formula.items():
        total[operation] = total.get(operation, 0) + times.at(n=14)
    return total


@pytest.mark.parametrize(("kernel", "beside"), [(dinar, {}), (dinar_scrambled, {"AND": 14, "XOR": 14})])
def test_the_cost_is_the_papers_and_a_shift(kernel, beside):
    """For each coefficient C_N, one addition of noise, one shift; scrambling is one XOR and one AND more."""
    found = by_class(kernel.formula())
    expected = {"ADD": 3 * 14, "NOT": 14, "AND": 2 * 14, "OR": 14, "SHIFT": 2 * 14}  # a sign mask is a shift as well
    for operation, count in beside.items():
        expected[operation] = expected.get(operation, 0) + count
    arithmetic = (*PAPER_PRICES, "SHIFT", "XOR")
    assert {operation: count for operation, count in found.items() if operation in arithmetic} == expected
    for n in (1, 5, 14):
        counted = {key: times.at(n=n) for key, times in kernel.formula().items()}
        assert kernel.count(n=n) == {key: count for key, count in counted.items() if count}
    c_n = 6
    paper = kernel_report(kernel, {"n": 14}, ("k7",), "paper").prices["k7"]
    assert paper.total.typical == 14 * (c_n + 1) + beside.get("AND", 0)
