"""What the claims compute, by obvious references that share no code with them."""

import itertools
import math
import random
from fractions import Fraction

import pytest

from sensorsim.paper import loss_claims, printed_sensitivities, release_claims
from sensorsim.paper.recompute import statements

BY_ID = {one.id: one for one in statements()}


def computed(id):
    return BY_ID[id].check(None).computed


def test_both_totals_by_hand():
    n, l, add, mul = 14, 7, 1, 3
    read = 2 + 1 + 2 + 1
    spof = (2 * n * add + 2 * n * read) + (2 * n + n * mul) + n * l
    assert f"= {spof} by the list" in computed("cost-spof")
    for name, div in (("u8", 32), ("u16", 47), ("u32", 79), ("i32", 88)):
        dpsgd = n * (1 + read) + (n + 1) * div + (n - 1) + 2 * n * mul + 7 * (1 + mul + div) + n * (1 + 1 + div)
        assert f"{name} {dpsgd}" in computed("cost-width")
    assert "1403" in computed("cost-dpsgd") and f"{100 * (1403 - 364) / 1403:.2f} %" in computed("cost-saving")


def test_x87_macro_operations_by_hand():
    n = 14
    spof = n * 7 + 3 * n + 2 * n + 2 * n * 6
    dpsgd = n * 3 + 2 * n + (n - 1) + 1 + (n + 1) + n + n * 6
    assert f"x87 {spof} against {dpsgd}" in computed("cost-order")


def test_the_division_that_breaks_even():
    n, l = 14, 7
    rest = 7 * n + (n - 1) + 2 * n * 3 + 7 * 4 + 2 * n
    assert f"less than {((19 + l) * n - rest) / (2 * n + 8):.2f}" in computed("cost-order")


def test_derivatives_by_known_values():
    """tanh's Maclaurin series: log(1 + e^z)'' = (1 - tanh²(z/2))/4."""
    wanted = {
        1: Fraction(1, 2),
        2: Fraction(1, 4),
        3: 0,
        4: Fraction(-1, 8),
        5: 0,
        6: Fraction(1, 4),
        8: Fraction(-17, 16),
    }
    found = loss_claims.derivatives(8)
    assert {order: found[order - 1] for order in wanted} == wanted


def test_the_error_of_the_polynomial_on_a_grid():
    for delta in (0.01, 0.5, 2.0):
        worst = -math.inf
        for i, j in itertools.product(range(21), range(-40, 41)):
            x, z = i / 20, delta * j / 40
            true = x * math.log(1 + math.exp(-z)) + (1 - x) * math.log(1 + math.exp(z))
            worst = max(worst, true - (math.log(2) + (0.5 - x) * z + (0.5 * x - 0.25) * z * z))
        assert loss_claims.taylor_error(delta) == pytest.approx(worst, rel=1e-3)
        assert loss_claims.taylor_bound(delta, 2.0) == pytest.approx(
            4 * sum(delta**r / math.factorial(r) for r in range(3, 40)), rel=1e-9
        )


def test_the_largest_loss_on_a_lattice():
    """Discrete outputs, every pair of them: a grid that holds both peaks has the same largest ratio."""
    first, second, scale = (0.5, -0.25), (-0.5, 0.25), 1.5
    grid = [k / 4 for k in range(-40, 41)]

    def log_density(q, means):
        return -sum(abs(a - b) for a, b in zip(q, means, strict=True)) / scale

    worst = max(log_density(q, first) - log_density(q, second) for q in itertools.product(grid, grid))
    assert release_claims.largest_loss(first, second, scale) == pytest.approx(worst)
    assert "1.4142 by the densities" in computed("dp-both")


def test_least_sensitivities_by_ternary_search():
    def printed(a):
        up, down, s = math.log(1 + math.exp(a)), math.log(1 + math.exp(-a)), 1 / (1 + math.exp(-a))
        return up + 2 * (down / up + 2 * math.exp(a) / (1 + math.exp(a)) ** 2 + s)

    low, high = 0.0, 2.0
    while high - low > 1e-7:
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if printed(a) < printed(b) else (a, high)
    at, value = printed_sensitivities.minimum(printed_sensitivities.s.spof_term_printed)
    assert at == pytest.approx(low, abs=1e-4) and value == pytest.approx(printed(low), abs=1e-6)


def test_the_stabilized_loss_by_multiplying_out():
    """alpha2·(z + c) + alpha3·(z + c)², term by term."""
    for x, c in itertools.product((Fraction(1, 10), Fraction(7, 10)), (Fraction(1), Fraction(5, 2))):
        alpha2 = Fraction(1, 2) - x
        assert alpha2 + 2 * c * loss_claims.alpha3(x) == alpha2 * (1 - c)


def test_the_probability_of_a_small_factor_by_erf():
    l, draws = 7, 100
    most = max((0.5 * (1 + math.erf(math.log(1 / l) / s / math.sqrt(2)))) ** draws for s in (0.1, 1, 10, 1e3, 1e6))
    assert most < 1e-30 and f"{most:.1e}" in computed("noise-max")


def test_the_inverse_of_the_factor():
    for h, y in itertools.product((0.2, 0.8), (0.3, 4.0)):
        x = release_claims.factor(y, h)
        assert x * (1 - h) / (1 - h * x) == pytest.approx(y) and x / (1 - h * x + h) != pytest.approx(y)


def test_variance_by_drawing():
    rng = random.Random(2)
    drawn = [sum(2 * rng.gauss(0, 1) for _ in range(14)) for _ in range(20_000)]
    assert sum(d * d for d in drawn) / len(drawn) == pytest.approx(56, rel=0.05)
    assert computed("noise-variance").startswith("56 ")


def test_kurtosis_by_integrals():
    step = 1e-3
    grid = [k * step for k in range(60_000)]

    def kurtosis(density):
        second, fourth = (2 * sum(t**p * density(t) * step for t in grid) for p in (2, 4))
        return fourth / second**2

    assert kurtosis(lambda t: math.exp(-t) / 2) == pytest.approx(6, rel=1e-3)
    assert kurtosis(lambda t: (1 + t) * math.exp(-t) / 4) == pytest.approx(4.5, rel=1e-3)
    assert computed("dp-split").startswith("6 of one, 4.5 ")
