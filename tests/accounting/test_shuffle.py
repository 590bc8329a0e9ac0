"""Shuffling: against exact sums in fractions, whole shuffled batches enumerated, and what its authors published."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sensorsim._util.errors import InputError
from sensorsim.accounting import amplification as shuffle
from sensorsim.accounting.amplification import clone_probability, shuffled_delta, shuffled_epsilon
from sensorsim.noise.certificate import certify
from sensorsim.noise.kinds.rows_table import RowsTable
from sensorsim.noise.noise_table import make_table, ready_table

GRID = [(e0, n, d) for e0 in (0.05, 0.5, 1, 2, 4, 6) for n in (1000, 5000, 10**5, 10**7) for d in (1e-10, 1e-6, 1e-3)]


# ── what is published ──


def closed_form_epsilon(epsilon0: float, n: int, delta: float) -> float | None:
    """Return theorem 3.1 of "Hiding among the clones", as its authors compute it; None where its condition fails."""
    logarithm = math.log(4 / delta)
    if epsilon0 > math.log(n / (16 * logarithm)):
        return None
    e = math.exp(epsilon0)
    spread = 8 * math.sqrt(e * logarithm / n) + 8 * e / n
    first = math.log1p(spread)
    return math.log1p(-math.expm1(-epsilon0) / (1 + math.exp(-epsilon0 - first)) * spread)


def test_the_example_that_the_authors_print() -> None:
    """The README of github.com/apple/ml-shuffling-amplification: 100,000 packets of epsilon 4, delta 1e-6."""
    assert closed_form_epsilon(4, 10**5, 1e-6) == pytest.approx(0.5378040242374512, rel=1e-12)
    assert 0.1675385583317841 <= shuffled_epsilon(4, 10**5, 1e-6) <= 0.172790550755978


def test_never_above_the_published_bound() -> None:
    held = 0
    for epsilon0, n, delta in GRID:
        published = closed_form_epsilon(epsilon0, n, delta)
        if published is not None:
            held += 1
            assert shuffled_epsilon(epsilon0, n, delta) <= published
    assert held > 40


# ── the sum itself ──


def exact_delta(e: Fraction, n: int, grown: Fraction, clone: Fraction) -> Fraction:
    """The divergence of P and Q, for exp(epsilon0) = e and exp(epsilon) = grown: every c, every a, in fractions."""
    p: dict[tuple[int, int], Fraction] = {}
    q: dict[tuple[int, int], Fraction] = {}
    for c in range(n):
        of_c = math.comb(n - 1, c) * clone**c * (1 - clone) ** (n - 1 - c)
        for a in range(c + 1):
            chance = of_c * Fraction(math.comb(c, a), 2**c)
            for d, of_d in ((1, e / (e + 1)), (0, 1 / (e + 1))):
                for law, pair in ((p, (a + d, c - a + 1 - d)), (q, (a + 1 - d, c - a + d))):
                    law[pair] = law.get(pair, Fraction(0)) + chance * of_d
    return sum((max(Fraction(0), p[pair] - grown * q[pair]) for pair in p), Fraction(0))


@settings(max_examples=60, deadline=None)
@given(st.fractions("1.05", 30, max_denominator=50), st.integers(1, 14), st.fractions(0, 1, max_denominator=40))
def test_small_batches_in_fractions(e: Fraction, n: int, part: Fraction) -> None:
    grown = 1 + part * (e - 1)
    exact = float(exact_delta(e, n, grown, 1 / e))
    found = shuffled_delta(math.log(e), n, math.log(grown))
    assert exact * (1 - 1e-12) - 1e-15 <= found <= exact * (1 + 1e-6) + 1e-8 * (found > 0)


def summed_delta(epsilon0: float, n: int, epsilon: float) -> float:
    """The same for larger n, in floats, by all c and a: no tails, no runs, no thresholds."""
    from scipy.stats import binom

    top, a = 1 / (1 + math.exp(-epsilon0)), np.arange(n + 1)
    total = 0.0
    for c in range(n):
        one, other = binom.pmf(a - 1, c, 0.5), binom.pmf(a, c, 0.5)
        p, q = top * one + (1 - top) * other, (1 - top) * one + top * other
        total += binom.pmf(c, n - 1, math.exp(-epsilon0)) * np.maximum(0, p - math.exp(epsilon) * q).sum()
    return float(total)


@pytest.mark.parametrize("epsilon0, epsilon", [(0.5, 0.1), (1, 0.3), (3, 1), (5, 4.5)])
def test_larger_batches_by_plain_sums(epsilon0: float, epsilon: float) -> None:
    exact = summed_delta(epsilon0, 400, epsilon)
    assert exact <= shuffled_delta(epsilon0, 400, epsilon) <= exact * 1.00001


@pytest.mark.parametrize(
    "epsilon0, n, epsilon", [(0.5, 10**6, 0.002), (1, 10**6, 0.004), (4, 10**7, 0.01), (1, 10**7, 0.0015)]
)
def test_runs_cost_less_than_a_hundredth(epsilon0, n, epsilon, monkeypatch):
    in_runs = shuffled_delta(epsilon0, n, epsilon)
    monkeypatch.setattr(shuffle, "RUNS", 10**9)
    one_by_one = shuffled_delta(epsilon0, n, epsilon)
    assert 0 < one_by_one <= in_runs <= one_by_one * 1.01


def test_binomial_probabilities_to_one_part_in_1e10() -> None:
    """The half of the proof that rests on a library: what it is taken to be wrong by is ten times that."""
    import mpmath as mp
    from scipy.stats import binom

    worst = 0.0
    with mp.workdps(50):
        for c, spreads in product((1, 7, 60, 1099, 1100, 5000, 10**6, 10**8), (0, 1, 3, 6, 10)):
            k = c // 2 + int(spreads * math.sqrt(c) / 2)
            if k > c:
                continue
            exact = mp.exp(mp.loggamma(c + 1) - mp.loggamma(k + 1) - mp.loggamma(c - k + 1) - c * mp.log(2))
            worst = max(worst, abs(float(binom.pmf(k, c, 0.5) / exact - 1)))
            if k > 0 and c <= 10**6:
                worst = max(worst, abs(float(binom.sf(k - 1, c, 0.5) / _tail(mp, exact, c, k) - 1)))
        for n, p, below in product((10**4, 10**7), (0.02, 0.4), (4, 8)):
            k = int(n * p - below * math.sqrt(n * p * (1 - p)))
            worst = max(worst, abs(float(binom.cdf(k, n, p) / _below(mp, n, mp.mpf(p), k) - 1)))
    assert worst <= shuffle.PMF_ERROR / 10


def _tail(mp, chance, c, k):
    """P(Bin(c, 1/2) >= k), its first chance given."""
    total, first = chance * 0, chance
    while k <= c and chance > first * mp.mpf(10) ** -20:
        total += chance
        chance *= mp.mpf(c - k) / (k + 1)
        k += 1
    return total


def _below(mp, n, p, k):
    """P(Bin(n, p) <= k)."""
    logs = mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
    first = chance = mp.exp(logs + k * mp.log(p) + (n - k) * mp.log1p(-p))
    total = chance * 0
    while k >= 0 and chance > first * mp.mpf(10) ** -20:
        total += chance
        chance *= k * (1 - p) / ((n - k + 1) * p)
        k -= 1
    return total


# ── batches as an analyst sees them, enumerated ──

Law = dict[tuple[int, ...], float]


def shuffled(rows: list[list[float]]) -> Law:
    """How often each symbol stands in a batch: the law of the counts, one person after another."""
    law: Law = {(0,) * len(rows[0]): 1.0}
    for row in rows:
        grown: Law = {}
        for counts, chance in law.items():
            for symbol, of_symbol in enumerate(row):
                after = (*counts[:symbol], counts[symbol] + 1, *counts[symbol + 1 :])
                grown[after] = grown.get(after, 0.0) + chance * of_symbol
        law = grown
    return law


def divergence(p: Law, q: Law, epsilon: float) -> float:
    return sum(max(0.0, p[seen] - math.exp(epsilon) * q[seen]) for seen in p)


def never_above(channel: list[list[float]], others: list[int], epsilon0: float, clone: float | None = None) -> float:
    """The worst of all pairs, beside a bound that must hold; returns how near it came."""
    near = 0.0
    for epsilon in (0.0, 0.1 * epsilon0, 0.4 * epsilon0, 0.8 * epsilon0):
        bound = shuffled_delta(epsilon0, len(others) + 1, epsilon, clone)
        for mine, yours in product(range(len(channel)), repeat=2):
            rest = [channel[x] for x in others]
            exact = divergence(shuffled([channel[mine], *rest]), shuffled([channel[yours], *rest]), epsilon)
            assert exact <= bound + 1e-12
            near = max(near, exact / bound)
    return near


def randomised_response(k: int, epsilon0: float) -> list[list[float]]:
    e = math.exp(epsilon0)
    return [[(e if x == y else 1) / (e + k - 1) for y in range(k)] for x in range(k)]


@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 2.5])
@pytest.mark.parametrize("others", [[], [0], [0, 1], [0] * 7, [0, 1] * 6, [1] * 20])
def test_randomised_response_enumerated(epsilon0: float, others: list[int]) -> None:
    channel = randomised_response(2, epsilon0)
    near = never_above(channel, others, epsilon0)
    nearer = never_above(channel, others, epsilon0, 2 / (math.exp(epsilon0) + 1))
    assert near <= nearer <= 1 + 1e-6


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=3, max_size=3),
    st.floats(0.2, 3),
    st.lists(st.integers(0, 2), max_size=5),
)
def test_any_release_enumerated(raw: list[list[float]], spread: float, others: list[int]) -> None:
    """Rows drawn at random, rare symbols included; epsilon0 is what they keep."""
    raw = [[math.exp(-spread * value) * (0.01 if y == 0 else 1) for y, value in enumerate(row)] for row in raw]
    channel = [[value / sum(row) for value in row] for row in raw]
    epsilon0 = max(math.log(max(column) / min(column)) for column in zip(*channel, strict=True)) + 1e-9
    never_above(channel, others, epsilon0)


# ── its shape ──


def test_alone_nothing_is_hidden() -> None:
    """One packet: randomised response itself, whose delta is (e^eps0 - e^eps)/(e^eps0 + 1)."""
    for epsilon0, delta in ((0.3, 1e-3), (1.0, 1e-6), (4.0, 0.1), (30.0, 1e-3)):
        e = math.exp(epsilon0)
        exact = math.log(e - delta * (e + 1))
        assert exact <= shuffled_epsilon(epsilon0, 1, delta) <= min(epsilon0, exact + 2e-6 * epsilon0)


def test_more_packets_less_epsilon_and_never_more_than_alone() -> None:
    for epsilon0, delta in product((0.1, 1, 3, 8, 90, 500), (1e-9, 1e-4)):
        found = [shuffled_epsilon(epsilon0, n, delta) for n in (1, 30, 1000, 30_000, 10**6, 10**8)]
        assert found == sorted(found, reverse=True) and found[0] <= epsilon0
    for n in (100, 10**5):
        over_delta = [shuffled_epsilon(1, n, delta) for delta in (1e-12, 1e-9, 1e-6, 1e-3)]
        over_epsilon0 = [shuffled_epsilon(epsilon0, n, 1e-6) for epsilon0 in (0.1, 0.5, 1, 2, 4, 8)]
        assert over_delta == sorted(over_delta, reverse=True) and over_epsilon0 == sorted(over_epsilon0)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 10), st.integers(1, 10**7), st.floats(1e-12, 0.1))
def test_epsilon_and_delta_agree(epsilon0: float, n: int, delta: float) -> None:
    epsilon = shuffled_epsilon(epsilon0, n, delta)
    assert 0 <= epsilon <= epsilon0 and shuffled_delta(epsilon0, n, epsilon) <= delta


# ── tables ──


def test_two_symbols_of_one_feature_hide_better() -> None:
    table = make_table("rows", 1, 1, symbols=2, knots=2)
    proved = float(certify(table).epsilon_record or 0)
    clone = clone_probability(table)
    assert math.exp(-proved) < clone <= 2 / (math.exp(proved) + 1) * 1.0001
    channel = [
        [float(c) / float(counts.sum()) for c in counts] for _, counts in map(table.distribution, (0, 9000, 32768))
    ]
    never_above(channel, [0, 1, 2, 2, 0], proved, clone)
    assert shuffled_epsilon(proved, 10**4, 1e-6, clone) < shuffled_epsilon(proved, 10**4, 1e-6)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 255), min_size=3, max_size=5).filter(lambda c: len(c) != 4 and len(set(c)) > 1),
    st.lists(st.integers(0, 2), max_size=6),
)
def test_any_two_symbols_enumerated(counts: list[int], others: list[int]) -> None:
    table = RowsTable(Decimal(9), 1, 1, 15, 8, tuple((256 - count, count) for count in counts), False)
    proved = math.log(max(max(c) / min(c) for c in zip(*table.counts, strict=True))) + 1e-9
    channel = [[count / 256 for count in row] for row in table.counts]
    never_above(channel, others, proved, clone_probability(table))


def test_other_tables_get_what_any_release_gets() -> None:
    for table in (ready_table("1", 1), ready_table("6.4", "all"), ready_table("1.6", 1, "stairs")):
        proved = float(certify(table).epsilon_record or 0)
        assert math.exp(-proved) * (1 - 1e-8) < clone_probability(table) <= math.exp(-proved)
    with pytest.raises(InputError):
        clone_probability(make_table("naive", 1, 14))


@pytest.mark.parametrize(
    "call",
    [
        lambda: shuffled_epsilon(0, 10, 1e-6),
        lambda: shuffled_epsilon(math.nan, 10, 1e-6),
        lambda: shuffled_epsilon(1, 0, 1e-6),
        lambda: shuffled_epsilon(1, 10**9, 1e-6),
        lambda: shuffled_epsilon(1, 10, 0),
        lambda: shuffled_delta(1, 10, -1),
        lambda: shuffled_delta(1, 10, 0.5, 1.5),
        lambda: shuffled_epsilon(1, 10, 1),
    ],
)
def test_bad_input_is_refused(call) -> None:
    with pytest.raises(InputError):
        call()
