"""Rows against every word and every pair of inputs, their design against its goals, the baselines against papers."""

import functools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from sensorsim._util.errors import InputError
from sensorsim.noise import baseline
from sensorsim.noise.kinds.rows_table import Rows
from sensorsim.noise.rows_design import Program, design

# Symbols of x = 0, 1/4, 1/2 for epsilon 1.6, found by another program than this one; its certificate is 2991/604.
FOUND = (
    (32637, 17946, 2369, 2369, 3624, 6591),
    (13913, 17946, 11731, 11731, 3624, 6591),
    (6591, 14450, 11727, 11727, 14450, 6591),
)
FULL = Rows((*FOUND, FOUND[1][::-1], FOUND[0][::-1]), 16)
HALF = Rows(FOUND, 16, mirrored=True)
# What a linear program of others found: the worst standard deviation for range 1.
BEST = {"0.1": 10.00, "0.4": 2.50, "0.8": 1.251, "1": 0.999, "1.6": 0.6047, "2.3": 0.3907, "3.2": 0.2513, "6.4": 0.0706}


@functools.cache
def made(epsilon: str, symbols: int | None = None, knots: int | None = None, bits: int = 16) -> Rows:
    return design(Fraction(epsilon), symbols, knots, bits)


def every_word(rows: Rows, x: int, frac_bits: int) -> list[int]:
    """How often each symbol is drawn over all words, by the device's own steps."""
    shift = frac_bits - rows.knot_bits
    last = len(rows.thresholds()[0])
    flip = rows.mirrored and x > 1 << (frac_bits - 1)
    inside = (1 << frac_bits) - x if flip else x
    tops, seen = np.arange(1 << rows.bits), np.zeros(last + 1, dtype=np.int64)
    for low in range(1 << shift):
        row = (inside + low) >> shift
        symbols = sum((np.array(t) <= tops).astype(int) for t in rows.thresholds()[row])
        seen += np.bincount(last - symbols if flip else symbols, minlength=last + 1)
    return seen.tolist()


SMALL = [
    pytest.param(lambda: made("1.6", 5, 5, 8), 6, id="5 x 5 of 2^8"),
    pytest.param(lambda: made("0.8", 4, 3, 8), 5, id="3 x 4 of 2^8"),
    pytest.param(lambda: made("0.3", None, None, 8), 7, id="one bit of 2^8"),
    pytest.param(lambda: made("2.3", 6, 9, 16), 5, id="9 x 6 of 2^16"),
    pytest.param(lambda: FULL, 5, id="found elsewhere"),
    pytest.param(lambda: HALF, 5, id="mirrored"),
]


@pytest.mark.parametrize(("make", "frac_bits"), SMALL)
def test_every_word_and_every_pair_of_inputs(make, frac_bits):
    rows = make()
    inputs = range((1 << frac_bits) + 1)
    counts = [every_word(rows, x, frac_bits) for x in inputs]
    words = sum(counts[0])
    assert words == 1 << (rows.bits + frac_bits - rows.knot_bits)
    worst = max(Fraction(p, q) for a in counts for b in counts for p, q in zip(a, b, strict=True))
    assert worst == rows.ratio()
    for x, seen in zip(inputs, counts, strict=True):
        assert tuple(seen) == rows.distribution(x, frac_bits)
        mean = sum(Fraction(n, words) * v for n, v in zip(seen, rows.values(), strict=True))
        assert mean == Fraction(x, 1 << frac_bits)
        square = sum(Fraction(n, words) * v * v for n, v in zip(seen, rows.values(), strict=True))
        assert square - mean**2 == rows.variance(mean)


@pytest.mark.parametrize(("make", "frac_bits"), SMALL)
def test_the_worst_and_the_mean_variance(make, frac_bits):
    rows = make()
    steps = 512
    variances = [float(rows.variance(Fraction(i, steps))) for i in range(steps + 1)]
    # The variance is a parabola -x² between two knots: half a step beside its top it is lower by (half a step)².
    assert max(variances) <= rows.worst_sd() ** 2 * (1 + 1e-12) <= max(variances) + 1 / (2 * steps) ** 2
    simpson = variances[0] + variances[-1] + 4 * sum(variances[1::2]) + 2 * sum(variances[2:-1:2])
    assert rows.mean_sd() ** 2 == pytest.approx(simpson / (3 * steps), rel=1e-12)


def test_a_table_found_elsewhere():
    assert FULL.ratio() == Fraction(2991, 604)
    assert [round(float(2 * v - 1), 5) for v in FULL.values()[3:]] == [0, 1.39325, 1.75005]
    assert FULL.worst_sd() == pytest.approx(0.610, abs=5e-4)
    assert (FULL.table_bytes, HALF.table_bytes) == (50, 30)
    assert HALF.values() == FULL.values()
    assert (HALF.knots, HALF.worst_sd(), HALF.ratio()) == (5, FULL.worst_sd(), FULL.ratio())


def test_of_many_values_those_of_the_smallest_mean_variance():
    """3 rows settle 3 of 4 values. Along the direction that the rows leave free the mean variance has its bottom."""
    rows = Rows(((8, 4, 2, 2), (3, 5, 5, 3), (2, 2, 4, 8)), 4)
    free = np.linalg.svd(np.array(rows.counts, float))[2][-1]
    values = np.array([float(v) for v in rows.values()])

    def mean_square(a: np.ndarray) -> float:
        """Between two knots the mean of a line is that of its ends, so the middle row counts twice."""
        return float(np.array([1, 2, 1]) @ np.array(rows.counts) @ (a - 0.5) ** 2)

    assert all(mean_square(values + t * free) > mean_square(values) for t in (-0.1, -1e-4, 1e-4, 0.1))


def test_one_bit_needs_no_table():
    rows = made("0.3")
    base, slope = rows.one_bit()
    assert rows.table_bytes == 4 and (rows.knots, rows.symbols) == (2, 2)
    for x in (0, 1, 12345, 2**14, 2**15 - 1, 2**15):
        assert rows.distribution(x, 15)[1] == base + slope * x
    assert rows.distribution(2**15 + 9, 15) == rows.distribution(2**15, 15)
    assert FULL.one_bit() is None


def test_a_look_up_is_the_thresholds_written_out():
    rows = made("1.6", 5, 5, 8)
    assert rows.table_bytes == 5 * 256
    for symbols, cuts in zip(rows.lookup(), rows.thresholds(), strict=True):
        assert list(symbols) == [sum(cut <= top for cut in cuts) for top in range(256)]


def certified(rows: Rows, epsilon: str) -> float:
    """The certified share of epsilon; the comparison itself is one of decimals of 60 digits."""
    ratio = rows.ratio()
    assert ratio is not None
    with localcontext() as context:
        context.prec = 60
        logarithm = (Decimal(ratio.numerator) / ratio.denominator).ln()
        assert logarithm < Decimal(epsilon)
        return float(logarithm / Decimal(epsilon))


@pytest.mark.parametrize("epsilon", ["0.007", "0.0071", "0.0171", "0.083", "0.241", "0.34"])
def test_one_bit_uses_its_budget(epsilon):
    rows = made(epsilon)
    assert rows.table_bytes == 4
    # The slope is a whole number, about epsilon·2^15: less than one of it is lost, and half of one by an odd sum.
    assert certified(rows, epsilon) > 1 - 1.5 / (float(epsilon) * 2**15)
    assert rows.worst_sd() < baseline.one_bit_sd(float(epsilon)) * (1 + 1.5 / (float(epsilon) * 2**15))


@pytest.mark.parametrize("epsilon", ["0.43", "1.37", "2.13", "4.1", pytest.param("7.9", marks=pytest.mark.slow)])
def test_the_certificate_stays_within_epsilon_and_near_it(epsilon):
    size = (4, 3) if float(epsilon) < 5 else (9, 9)  # four symbols have no use for more
    assert certified(made(epsilon, *size), epsilon) > 0.998


def within(epsilon: str, best: float) -> None:
    rows = made(epsilon)
    factor = 1.02 if Fraction(epsilon) <= Fraction("1.6") else 1.04 if Fraction(epsilon) <= Fraction("3.2") else 1.10
    assert certified(rows, epsilon) > 0.99
    assert rows.worst_sd() <= factor * best
    assert rows.table_bytes <= 600


@pytest.mark.parametrize(
    "epsilon", [pytest.param(one, marks=[] if one in ("0.1", "0.4", "1.6") else pytest.mark.slow) for one in BEST]
)
def test_goals(epsilon):
    within(epsilon, BEST[epsilon])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.05", "0.2", "0.6", "1.4", "1.9", "2.9", "4", "5.7"])
def test_goals_against_the_fine_program(epsilon):
    within(epsilon, baseline.fine_sd(float(epsilon)))


def test_the_linear_program_is_the_one_written_down():
    """Against a program without the symmetry: every cell, every column, variance on the knots and between."""
    ratio, values, x = math.exp(1.3), np.array([-2.1, -1.4, 0, 1.4, 2.1]), np.linspace(-1, 1, 5)
    cells, columns = 25, 5
    upper, limits, equal, wanted = [], [], [], []
    for r in range(5):
        for s in range(5):
            cell, least = np.eye(31)[r * 5 + s], np.eye(31)[cells + s]
            upper += [cell - ratio * least, least - cell]
            limits += [0, 0]
        row = np.zeros((2, 31))
        row[0, r * 5 : r * 5 + 5], row[1, r * 5 : r * 5 + 5] = 1, values
        equal += list(row)
        wanted += [1, x[r]]
        for t in (0, 0.25, 0.5, 0.75) if r < 4 else (0,):
            line = -np.eye(31)[cells + columns]
            line[r * 5 : r * 5 + 5] += (1 - t) * values**2
            if t:
                line[r * 5 + 5 : r * 5 + 10] += t * values**2
            upper.append(line)
            limits.append((x[r] + t / 2) ** 2)
    naive = linprog(np.eye(31)[30], A_ub=upper, b_ub=limits, A_eq=equal, b_eq=wanted)
    solution = Program(ratio, 5, 5, 1 << 16).solve(values[3:])
    assert solution is not None
    assert solution.variance == pytest.approx(naive.fun, rel=1e-6)


@pytest.mark.parametrize(
    ("counts", "bits", "mirrored"),
    [
        (((2, 2), (1, 2)), 2, False),
        (((3, 1), (1, 3), (2, 2), (2, 2)), 2, False),
        (((3, 1, 0), (1, 3, 0)), 2, False),
        (((3, 1), (1, 3)), 2, True),
        (((3, 1), (1, 1, 2)), 2, False),
        (((5, -1), (1, 3)), 2, False),
        (((1, 1), (1, 1)), 17, False),
    ],
)
def test_what_is_no_table_is_refused(counts, bits, mirrored):
    with pytest.raises(InputError):
        Rows(counts, bits, mirrored)


def test_no_bound_and_no_values():
    assert Rows(((4, 0), (1, 3)), 2).ratio() is None
    with pytest.raises(InputError):
        Rows(((3, 1), (3, 1), (1, 3)), 2).values()
    with pytest.raises(InputError):
        Rows(((2, 2), (2, 2)), 2).values()


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(1), "bits": 12},
        {"epsilon": Fraction(1), "knots": 4},
        {"epsilon": Fraction(1), "symbols": 33},
        {"epsilon": Fraction(1), "symbols": 2, "knots": 5},
        {"epsilon": Fraction(1), "symbols": 5, "knots": 5, "most_bytes": 39},
        {"epsilon": Fraction(1, 1000), "bits": 8},
    ],
    ids=str,
)
def test_bad_designs_are_refused(wrong):
    with pytest.raises(InputError):
        design(**wrong)


@pytest.mark.parametrize("epsilon", [0.05, 0.4, 0.8, 1.6, 3.2, 6.4, 8.0])
def test_the_baselines_are_the_published_mechanisms(epsilon):
    """Variances integrated from the densities of Wang et al., range -1..1, divided by 4 for range 1."""
    E, s = math.exp(epsilon), math.exp(epsilon / 2)
    C, share = (s + 1) / (s - 1), 1 - 1 / s

    def piecewise(t: float) -> float:
        high, left = (E - s) / (2 * s + 2), (C + 1) / 2 * t - (C - 1) / 2
        ends = [(-C, left, high / E), (left, left + C - 1, high), (left + C - 1, C, high / E)]
        assert sum(p * (b - a) for a, b, p in ends) == pytest.approx(1)
        assert sum(p * (b**2 - a**2) / 2 for a, b, p in ends) == pytest.approx(t)
        return sum(p * (b**3 - a**3) / 3 for a, b, p in ends) - t * t

    def one_bit(t: float) -> float:
        out, up = (E + 1) / (E - 1), ((E - 1) * t + E + 1) / (2 * E + 2)
        return up * (out - t) ** 2 + (1 - up) * (out + t) ** 2

    everywhere = np.linspace(-1, 1, 21)
    assert baseline.piecewise_sd(epsilon) ** 2 * 4 == pytest.approx(max(map(piecewise, everywhere)))
    assert baseline.one_bit_sd(epsilon) ** 2 * 4 == pytest.approx(max(map(one_bit, everywhere)))
    if epsilon > 0.61:
        mixed = max(share * piecewise(t) + (1 - share) * one_bit(t) for t in everywhere)
        assert baseline.hybrid_sd(epsilon) ** 2 * 4 == pytest.approx(mixed)
    assert baseline.laplace_sd(epsilon) == pytest.approx(math.sqrt(2) / epsilon)
    best = baseline.best_known_sd(epsilon)
    assert best is not None and best < min(baseline.hybrid_sd(epsilon), baseline.piecewise_sd(epsilon))


@pytest.mark.parametrize("epsilon", list(BEST))
def test_the_best_known_agrees_with_another_program(epsilon):
    """At 6.4 ours is 1 % above: a program that looks at 17 or 33 x only, with none between, finds 0.0698 or 0.0709."""
    known = baseline.best_known_sd(float(epsilon))
    assert known == pytest.approx(BEST[epsilon], rel=2e-3 if float(epsilon) < 4 else 1.2e-2)


def test_the_table_of_the_best_known():
    points = baseline._points()
    assert tuple(e for e, _ in points) == baseline.EPSILONS
    for (a, sd_a), (b, sd_b), (c, sd_c) in zip(points, points[1:], points[2:], strict=False):
        chord = ((c - b) * math.log(sd_a) + (b - a) * math.log(sd_c)) / (c - a)
        assert math.log(sd_b) < chord + 1e-3  # convex, but for what the program itself is off
    assert baseline.best_known_sd(0.8) == dict(points)[0.8]
    assert baseline.best_known_sd(0.049) == baseline.one_bit_sd(0.049) and baseline.best_known_sd(8.01) is None
    assert baseline.fine_sd(1.0) == pytest.approx(dict(points)[1.0], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 0.0675, 0.4, 0.775, 1.6, 1.95, 2.5, 3.2, 4.1, 5.5, 6.4, 8.0])
def test_the_best_known_is_above_and_near(epsilon):
    known, solved = baseline.best_known_sd(epsilon), baseline.fine_sd(epsilon)
    assert known is not None
    assert solved * (1 - 2e-4) <= known <= solved * 1.002
    assert epsilon not in dict(baseline._points()) or known == pytest.approx(solved, rel=1e-4)
