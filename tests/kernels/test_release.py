"""The stairs kernels: against obvious loops, against the certificate's distribution, and what they cost."""

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import naive_release as naive
import numba
import numpy as np
import pytest
from hypothesis import strategies as st
from sensorsim.kernels.choice import choose, choose_next
from sensorsim.kernels.stairs import release_stairs, sampled_stairs, sampled_stairs_one

from sensorsim._util.errors import InputError
from sensorsim.language import Length, max_, min_
from sensorsim.language.intervals import Span
from sensorsim.language.numba_backend import compiled
from sensorsim.language.numba_backend.batch import BLOCK
from sensorsim.language.numba_backend.generators import GENERATORS
from sensorsim.language.ranges import RangeError, prove
from sensorsim.noise.batch_release import release_records, sampled_records
from sensorsim.noise.noise_table import NoiseTable, make_table, ready_table

ALL_X = np.arange(2**16, dtype=np.uint16)
WORD = st.integers(0, 2**32 - 1)
TABLES = [("0.1", "all"), ("6.4", 1), ("1.6", 1)]


def arguments(table: NoiseTable) -> tuple[list[int], int, int, tuple[int, ...]]:
    """Entries, limit and stair_bits as plain numbers, and all numbers that a release takes behind the table."""
    given = table.arguments()
    entries = [int(v) for v in given.pop("table")]
    numbers = tuple(given[name] for name in release_stairs.parameters if name in given)
    return entries, given["limit"], given["stair_bits"], numbers


def stairs_table(epsilon: str | int, of: int | str = "all") -> NoiseTable:
    return ready_table(epsilon, of, kind="stairs")


@pytest.mark.parametrize("epsilon, of", TABLES)
def test_every_x_by_python_numba_and_reference(epsilon: str, of: int | str) -> None:
    """All 65,536 values of x, each with a word of its own: the ends of a word, then random ones."""
    table = stairs_table(epsilon, of)
    values, limit, stair_bits, numbers = arguments(table)
    word = np.random.default_rng(5).integers(0, 2**32, 2**16, np.uint32)
    word[:4], word[-4:] = [0, 2**32 - 1, 2**31, 2**15], [0, 2**32 - 1, 2**31, 2**15]
    wanted = [naive.release(int(x), values, int(w), limit, stair_bits) for x, w in zip(ALL_X, word, strict=True)]
    plain, fast = [], np.empty(2**16, np.int32)
    for first in range(0, 2**16, 4096):
        part = slice(first, first + 4096)
        y = [0] * 4096
        xs, ws = ALL_X[part].tolist(), word[part].tolist()
        release_stairs(xs, ws, y, 4096, values, *numbers)
        plain += y
        entries = np.array(values, np.int8)
        compiled(release_stairs)(ALL_X[part], word[part], fast[part], 4096, entries, *numbers)
    assert plain == wanted
    assert fast.tolist() == wanted


def test_all_secret_bits_give_the_certificate_s_distribution() -> None:
    """Every entry with every place on its stair, once each: the kernel puts out what the certificate is about."""
    table = make_table("stairs", 8, features=1, frac_bits=15, entries=2**10)
    values, (_, _, stair_bits, numbers) = table.arguments()["table"], arguments(table)
    assert stair_bits < 15  # several stairs to the range, the general case
    top, low = np.meshgrid(np.arange(2**10, dtype=np.uint32), np.arange(2**stair_bits, dtype=np.uint32))
    between = np.uint32(0x5A5A5A5A) & np.uint32(2**22 - 2**stair_bits)  # bits that must not matter
    word = ((top << 22) | between | low).reshape(-1).astype(np.uint32)
    run = compiled(release_stairs)
    for x_q in (0, 1, 12345, 2**15 - 1, 2**15):
        y = np.empty(len(word), np.int32)
        x = np.full(4096, x_q, np.uint16)
        for first in range(0, len(word), 4096):
            part = slice(first, first + 4096)
            run(x, word[part], y[part], 4096, values, *numbers)
        outputs, counts = table.distribution(x_q)
        assert np.array_equal(np.bincount(y - outputs[0], minlength=len(counts)), counts)


@pytest.mark.parametrize("n", [1, 2, 3, 14, 1000, 4096])
def test_every_word_chooses_evenly(n: int) -> None:
    """All 2^20 words that differ for the choice: every place gets its share, to one word."""
    counts = np.zeros(n, np.int64)
    _count_choices(compiled(choose), counts, n)
    assert abs(counts - 2**20 / n).max() < 1
    for word in (0, 4095, 4096, 2**31, 2**32 - 1):
        assert choose(word, n) == (word >> 12) * n >> 20


@numba.njit
def _count_choices(choice: Any, counts: Any, n: int) -> None:
    for word in range(2**20):
        counts[choice(np.uint32(word << 12 | 0xABC), n)] += 1


def test_sampled_picks_every_ordered_pair_once() -> None:
    """n = 4, k = 2: the 4 · 3 places that two words can pick give the 12 ordered pairs, from any order kept before."""
    values, _, _, numbers = arguments(stairs_table("1", 1))
    for start in ([0, 1, 2, 3], [2, 0, 3, 1]):
        pairs = set()
        for a, b in itertools.product(range(4), range(3)):
            order, chosen = list(start), [0, 0]
            words = [(a << 30) + 5, 0, -(-(b << 32) // 3) + 4096, 0]
            sampled_stairs([0] * 4, words, order, chosen, [0, 0], 4, 2, values, *numbers)
            pairs.add(tuple(chosen))
            assert sorted(order) == [0, 1, 2, 3]
        assert pairs == set(itertools.permutations(range(4), 2))


def test_a_round_of_the_shuffle() -> None:
    """Every place of those left can be the one that changes places with the last of them; nothing else moves."""
    for left in (1, 2, 5):
        for place in range(left):
            order = [3, 0, 4, 1, 2]
            choose_next(order, -(-(place << 32) // left) + (4096 if place else 0), 5, left)
            wanted = [3, 0, 4, 1, 2]
            wanted[place], wanted[left - 1] = wanted[left - 1], wanted[place]
            assert order == wanted


@pytest.mark.parametrize("generator", GENERATORS)
def test_batches_do_not_depend_on_threads(generator: str) -> None:
    x = np.random.default_rng(1).integers(0, 2**15, (5 * BLOCK + 7, 14), np.uint16)
    whole, one = stairs_table(1), stairs_table(1, 1)
    a, b = (release_records(x, whole, 4, threads, generator) for threads in (1, 2))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, release_records(x, whole, 5, 1, generator))
    for c, d in zip(*(sampled_records(x, one, 4, t, generator) for t in (1, 2)), strict=True):
        assert np.array_equal(c, d)
    out = np.empty_like(a)
    assert release_records(x, whole, 4, 1, generator, out=out) is out and np.array_equal(a, out)
    strided = np.asfortranarray(x)
    assert np.array_equal(a, release_records(strided, whole, 4, 1, generator))


def test_released_means_are_unbiased() -> None:
    x = np.tile(np.linspace(0, 2**15, 14).astype(np.uint16), (2**16, 1))
    table = stairs_table("6.4")
    y = release_records(x, table, seed=2)
    error = y.mean(0) / table.gain - (x[0].astype(float) - 2**14 - 0.5)
    assert abs(error / (y.std(0) / table.gain / 2**8)).max() < 5
    one = stairs_table("6.4", 1)
    chosen, z = sampled_records(x, one, seed=2)
    for i in range(14):
        mine = z[chosen == i]
        assert abs(len(mine) - 2**16 / 14) < 5 * 2**8 / 14**0.5
        wanted = one.gain * (float(x[0, i]) - 2**14 - 0.5)
        assert abs(mine.mean() - wanted) < 5 * mine.std() / len(mine) ** 0.5


def test_tables_that_the_kernels_cannot_take() -> None:
    x = np.zeros((1, 14), np.uint16)
    for table, word in (
        (make_table("naive", 1, frac_bits=8), "stairs"),
        (make_table("stairs", 1, frac_bits=8), "frac_bits 15"),
        (replace(stairs_table(1), counts=((-200, 4096), (200, 4096))), "beyond its last stair"),
    ):
        with pytest.raises(InputError, match=word):
            release_records(x, table)
    with pytest.raises(InputError, match="2 features"):
        sampled_records(x[:, :1], make_table("stairs", 1, features=2, release=2))
    with pytest.raises(InputError, match="choose chacha20 or fast"):
        release_records(x, stairs_table(1), generator="lfsr")


def test_the_range_check_needs_k_at_most_n(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the declared bound of k by n the shuffle would run past the last feature, and the check says where."""
    without = Length("k", 1, 4096, "features released of a record")
    monkeypatch.setitem(sampled_stairs.parameters, "k", without)
    monkeypatch.setitem(sampled_stairs.lengths, "k", without)
    with pytest.raises(RangeError, match=r"release_kernels\.py"):
        prove(sampled_stairs)


def test_signed_minimum_and_maximum_of_intervals() -> None:
    spans = [Span(lo, hi) for lo in range(-3, 4) for hi in range(lo, 4)]
    for a, b in itertools.product(spans, spans):
        for primitive, plain in ((min_, min), (max_, max)):
            found = {plain(u, v) for u in range(a.lo, a.hi + 1) for v in range(b.lo, b.hi + 1)}
            assert primitive.interval is not None
            span = primitive.interval(a, b)
            assert (span.lo, span.hi) == (min(found), max(found))


def macro_operations(counts: Any) -> int:
    """What the paper prices, with its prices of the K7: a multiplication 3, a division 32, else 1."""
    prices = {"MUL": 3, "DIV": 32, **dict.fromkeys(("ADD", "SUB", "AND", "OR", "NOT"), 1)}
    return sum(prices.get(operation, 0) * int(count) for (_, operation), count in counts.items())


def test_cost_of_a_release() -> None:
    """The sampled release of n = 14 is to need at most 36 macro-operations, a tenth of SPOF's 364."""
    for n in (1, 14, 100):
        assert macro_operations(release_stairs.count(n=n)) == 4 * n
        assert macro_operations(sampled_stairs.count(n=n, k=1)) == 7
        assert macro_operations(sampled_stairs_one.count(n=n)) == 7
        assert "order" not in sampled_stairs_one.parameters


def test_cost_command_shows_random_bits_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from sensorsim.commands.program import main; main(['cost', '--format', 'json']);"
        "heavy = {'numpy', 'numba', 'torch', 'pandas', 'matplotlib', 'scipy'} & set(sys.modules); sys.exit(bool(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["mechanisms"]["sampled"]["random_bits"] == 64


def test_more_features_than_the_table_is_certified_for_are_refused():
    with pytest.raises(InputError, match="certified for 1 released"):
        release_records(np.zeros((2, 14), np.uint16), stairs_table(1, 1))


@pytest.mark.parametrize("run, table", [(release_records, stairs_table(1)), (sampled_records, stairs_table(1, 1))])
def test_what_is_no_feature_is_refused(run: Any, table: NoiseTable) -> None:
    """Reals, nan and negative numbers would otherwise be released as zeros."""
    whole = np.full((3, 14), 7)
    assert len(run(whole, table)) > 0
    for bad, word in (
        (whole / 2, "holds 3.5; give floats from 0 to 1"),
        (np.full((3, 14), np.nan), "no finite number"),
        (whole - 8, "holds -1"),
        (whole + 2**16, "holds 65543"),
        (whole[0], "one row for each record"),
        ([[True] * 14], "of type bool"),
    ):
        with pytest.raises(InputError, match=word):
            run(bad, table)


def test_without_a_seed_no_two_releases_are_alike() -> None:
    x = np.zeros((64, 14), np.uint16)
    assert not np.array_equal(release_records(x, stairs_table(1)), release_records(x, stairs_table(1)))
