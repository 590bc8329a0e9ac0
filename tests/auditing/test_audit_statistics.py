"""The statistics of the audit against references that share no code, and no false alarm in a hundred seeds."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sensorsim.auditing import Field, Input, Source, examine
from sensorsim.auditing.cell_counts import GROUPS, LOW, column_pairs, count_packets, count_values, learn, make_cells
from sensorsim.auditing.hypothesis_tests import at_least, at_most, best_bound, chi_square, independence, p_value, rarest

TRUTH = 0.75  # of randomised response: three true answers for each false one


def randomised_response(fields: int = 3) -> Source:
    """Each bit of a record, true with probability 3/4: log 3 each, exactly."""

    def draw(x: Any, count: int, seed: Sequence[int]) -> Any:
        lies = np.random.default_rng(tuple(seed)).random((count, fields)) >= TRUTH
        return (x[None, :] ^ lies).astype(np.int32)

    def expected(x: Any, column: int) -> Any:
        return np.arange(2), np.array([TRUTH, 1 - TRUTH] if x[column] == 0 else [1 - TRUTH, TRUTH])

    inputs = [Input(name, np.array(bits[:fields])) for name, bits in
              (("0", (0, 0, 0)), ("1", (1, 1, 1)), ("mixed", (0, 1, 0)))]  # fmt: skip
    cost = math.log(TRUTH / (1 - TRUTH))
    names = tuple(Field(f"bit {i}", cost) for i in range(fields))
    return Source("response", "bits", fields * cost, fields, names, tuple(inputs), draw, expected, lambda x: True)


@pytest.mark.slow
def test_no_false_alarm_in_a_hundred_seeds() -> None:
    """The error probability is 1e-4 for each. The p-values, made for all tests at once, are not small too often."""
    found = [examine(randomised_response(), draws=24_000, seed=seed) for seed in range(1000, 1100)]
    assert all(one.passed for one in found)
    looks = [look for one in found for look in one.looks]
    for kind in ("distribution", "dependence"):
        small = sum(getattr(look, kind).p_value < 0.05 for look in looks)
        assert small <= 0.05 * len(looks) + 4 * math.sqrt(0.05 * len(looks))
    bounds = [look.event.bound / look.event.claimed for look in looks]
    assert 0.8 < max(bounds) <= 1


def test_a_lie_too_few_is_found() -> None:
    """The same with four true answers for each false one: log 4 where log 3 is claimed, as a leak and as a mismatch."""

    def draw(x: Any, count: int, seed: Sequence[int]) -> Any:
        lies = np.random.default_rng(tuple(seed)).random((count, 3)) >= 0.8
        return (x[None, :] ^ lies).astype(np.int32)

    found = examine(randomised_response()._replace(draw=draw), draws=200_000)
    assert not found.matches
    unknown = randomised_response()._replace(draw=draw, expected=lambda x, column: None)
    found = examine(unknown, draws=200_000)
    assert found.leaks and math.log(3) < found.last.event.bound < math.log(4)


def test_the_bound_holds_and_is_near() -> None:
    """Known rates: the bound stays below the true epsilon, and comes near it with many draws."""
    rng = np.random.default_rng(0)
    p, q = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    error = 0.1 / (2 * 2 * 3)
    above = 0
    for _ in range(300):
        choose, test = (np.stack([rng.multinomial(1000, p), rng.multinomial(1000, q)]) for _ in range(2))
        above += best_bound(choose, test, 3, 1, error).epsilon > math.log(4)
    assert above <= 30
    many = [np.stack([rng.multinomial(10**7, p), rng.multinomial(10**7, q)]) for _ in range(2)]
    bound, rates = best_bound(*many, 3, 1, 1e-5)
    assert 0.99 * math.log(4) < bound < math.log(4) and rates == pytest.approx((0.4, 0.1), abs=0.001)


def test_the_bound_is_zero_where_nothing_differs() -> None:
    same = np.full((2, 8), 1000)
    assert best_bound(same, same, 3, 1, 0.01).epsilon == 0
    assert best_bound(same, np.zeros((2, 8)), 3, 1, 0.01).epsilon == 0


def test_clopper_pearson_by_its_definition() -> None:
    """At the bound, as many hits or more (fewer) have the probability that was given away."""
    trials, error = 40, 0.02
    for hits in (1, 7, 39):
        low, high = at_least(hits, trials, error), at_most(hits, trials, error)
        binomial = lambda p, k: math.comb(trials, k) * p**k * (1 - p) ** (trials - k)  # noqa: E731
        assert sum(binomial(low, k) for k in range(hits, trials + 1)) == pytest.approx(error)
        assert sum(binomial(high, k) for k in range(hits + 1)) == pytest.approx(error)
    assert at_least(0, trials, error) == 0 and at_most(trials, trials, error) == 1


@pytest.mark.parametrize("claimed", [0.0, 1.0, 2.5])
def test_the_rarest_leak_by_its_definition(claimed: float) -> None:
    """Simulated: at that rate an event that never happens otherwise is proved so often, at half of it seldom."""
    trials, error, confidence = 5000, 1e-6, 0.9
    p = rarest(trials, claimed, error, confidence)
    rng = np.random.default_rng(1)
    ceiling = math.exp(claimed) * (1 - error ** (1 / trials))
    for rate, least, most in ((p, 0.86, 0.94), (p / 2, 0, 0.2)):
        hits = rng.binomial(trials, rate, 2000)
        proved = np.mean([at_least(int(h), trials, error) > ceiling for h in hits])
        assert least <= proved <= most
    assert rarest(10, 5.0, error, confidence) == 1


def test_chi_square_is_scipy_s() -> None:
    from scipy.stats import chisquare

    expected = np.array([100.0, 0.0, 300.0, 60.0, 70.0, 0.0])
    found = np.array([90.0, 0.0, 310.0, 55.0, 75.0, 0.0])
    statistic, groups = chi_square(found, expected)
    assert (statistic, groups) == (pytest.approx(chisquare(found[expected > 0], expected[expected > 0])[0]), 4)


def test_p_values_are_scipy_s() -> None:
    from scipy.stats import chi2, ncx2

    assert p_value(30.0, 12) == pytest.approx(chi2.sf(30, 12))
    assert p_value(60.0, 12, 5.0) == pytest.approx(ncx2.sf(60, 12, 5))
    assert p_value(60.0, 0) == 1


def test_independence_is_scipy_s() -> None:
    from scipy.stats import chi2_contingency

    rng = np.random.default_rng(2)
    full = rng.multinomial(40_000, np.full(64, 1 / 64), 3).reshape(3, 8, 8)
    full[1, 0, 0] += 300
    for table, statistic, degrees, p in zip(full, *independence(full), strict=True):
        known = chi2_contingency(table, correction=False)
        assert (statistic, degrees, p) == (pytest.approx(known.statistic), 49, pytest.approx(known.pvalue))
    thin = rng.multinomial(500, np.full(64, 1 / 64), 1).reshape(1, 8, 8)
    known = chi2_contingency(thin[0].reshape(2, 4, 2, 4).sum(axis=(1, 3)), correction=False)
    assert independence(thin)[2][0] == pytest.approx(known.pvalue)
    one_bit = np.zeros((1, 8, 8), int)
    one_bit[0, :2, :2] = [[200, 100], [100, 200]]  # few counts, but in four cells
    known = chi2_contingency(one_bit[0, :2, :2], correction=False)
    assert independence(one_bit)[2][0] == pytest.approx(known.pvalue)


def test_counts_are_those_of_plain_loops() -> None:
    source = randomised_response()
    rng = np.random.default_rng(3)
    packets = rng.integers(-5000, 5000, (301, 3)).astype(np.int32)
    packets[:, 2] &= ~3  # a lattice of four
    source = source._replace(expected=lambda x, column: None)
    cells, pairs = make_cells(source, [packets, packets]), column_pairs(3)
    counts = count_packets(packets, cells, 0, pairs)
    assert cells.shift.tolist() == [0, 0, 2]
    assert sorted(map(tuple, pairs.within.tolist())) == [(0, 1), (0, 2), (1, 2)]
    across = [(a, b, 1) for a in range(3) for b in range(3)] + [(a, a, lag) for a in range(3) for lag in range(2, 9)]
    assert sorted(map(tuple, pairs.across.tolist())) == sorted(across)
    low = [[(int(v) >> int(cells.shift[c])) % LOW for c, v in enumerate(row)] for row in packets]
    for number, (a, b) in enumerate(pairs.within.tolist()):
        want = Counter(row[a] * GROUPS + row[b] for row in low)
        assert {k: n for k, n in enumerate(counts.joint[1, number].tolist()) if n} == want
    for phase in (0, 1):
        for number, (a, b, lag) in enumerate(pairs.across.tolist()):
            starts = [t for t in range(301 - lag) if t // lag % 2 == phase]
            assert len({t + d for t in starts for d in (0, lag)}) == 2 * len(starts)  # no packet is used twice
            want = Counter(low[t][a] * GROUPS + low[t + lag][b] for t in starts)
            found = counts.joint[1, len(pairs.within) + phase * len(pairs.across) + number].tolist()
            assert {k: n for k, n in enumerate(found) if n} == want
    assert counts.joint[0].sum() == counts.joint[1].sum()
    for column in range(3):
        where = cells.of(packets[:, column].astype(np.int64), column)
        assert counts.cells[column].tolist() == np.bincount(where, minlength=256).tolist()
    assert counts.ends.tolist() == [[row.min(), row.max()] for row in packets.T]
    values = np.zeros(1 << cells.bits, np.uint32)
    count_values(packets, cells, values)
    want = Counter(int(v) % (1 << cells.bits) for v in packets[:, cells.pooled].ravel())
    assert {k: n for k, n in enumerate(values.tolist()) if n} == want


def test_what_is_learnt_tells_apart_what_no_single_value_does() -> None:
    """Two bytes that are even by themselves; their xor gives x away in half of the packets."""
    rng = np.random.default_rng(4)

    def packets(x: int, count: int) -> Any:
        made = rng.integers(0, 256, (count, 3))
        made[::2, 1] = made[::2, 0] ^ (17 + x)
        return rng.permutation(made)

    event = learn(packets(0, 3000), packets(90, 3000), 1)
    assert event is not None
    first, second = (event.score(packets(x, 20_000)) for x in (0, 90))
    assert event.statistics[0].what == "{} xor {}" and {event.statistics[0].a, event.statistics[0].b} == {0, 1}
    assert (first > event.cuts[-3]).mean() > 20 * (second > event.cuts[-3]).mean()
    alike = learn(packets(0, 3000), packets(0, 3000), 1)
    assert alike is not None
    first, second = (alike.score(packets(0, 20_000)) for _ in range(2))
    assert abs((first > 0).mean() - (second > 0).mean()) < 0.02
