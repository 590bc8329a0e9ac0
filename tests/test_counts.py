"""The two counters agree with each other, with the printed list, and with what a reader counts by hand."""

import broken_kernels
import pytest
from sensorsim.kernels.noise import advance

from sensorsim.cost.ledger import describe, printed
from sensorsim.cost.mechanisms import MECHANISMS
from sensorsim.cost.polynomial import Polynomial, parse
from sensorsim.cost.pricing import PAPER_PRICES
from sensorsim.cost.symbolic import symbolic
from sensorsim.cost.trace import trace

BY_NAME = {mechanism.name: mechanism for mechanism in MECHANISMS}


def priced(counts):
    """Only the operations that the paper prices, by step."""
    return {key: count for key, count in counts.items() if key[1] in PAPER_PRICES and count}


def by_step(name):
    total = {}
    for entry in printed(name):
        key = entry.step, entry.operation
        total[key] = total.get(key, Polynomial.constant(0)) + entry.times
    return total


@pytest.mark.parametrize("name", BY_NAME)
def test_reading_and_running_agree(name):
    """For every n in 1 … 64; l matters to SPOF as printed only. All pairs of n and l: see the slow test."""
    for n in range(1, 65) if "n" in BY_NAME[name].kernel.parameters else [1]:
        for l in {1, 2, n // 2 + 1, n} if name == "spof" else {1}:
            assert_agree(BY_NAME[name], n, l)


@pytest.mark.slow
@pytest.mark.parametrize("n", range(1, 65))
def test_reading_and_running_agree_for_every_pair(n):
    for l in range(1, 65):
        for mechanism in MECHANISMS:
            assert_agree(mechanism, n, l)


def assert_agree(mechanism, n, l):
    expected = {key: count.at(n=n, l=l) for key, count in mechanism.symbolic().items()}
    assert mechanism.traced(n, l) == {key: count for key, count in expected.items() if count}, (n, l)


def test_the_printed_list_of_spof_is_what_the_kernel_does():
    assert by_step("spof") == priced(BY_NAME["spof"].symbolic())


def test_the_printed_list_of_dpsgd_differs_in_the_squares_only():
    listed, derived = by_step("dpsgd"), priced(BY_NAME["dpsgd"].symbolic())
    assert listed.keys() == derived.keys()
    assert {key for key in listed if listed[key] != derived[key]} == {("squares", "MUL")}
    assert (str(listed["squares", "MUL"]), str(derived["squares", "MUL"])) == ("2n", "n")


def test_the_noise_pointer_is_six_operations():
    counts = trace(advance, {"cursor": 3, "stride": 2, "size": 4})
    assert {op: n for (_, op), n in counts.items() if op in PAPER_PRICES} == {"ADD": 2, "NOT": 1, "AND": 2, "OR": 1}


def test_every_operation_of_one_feature_by_hand():
    """SPOF on one feature and one hidden unit, counted line by line in kernels/spof.py with a pencil."""
    counts = BY_NAME["spof"].traced(1, 1)
    total = {}
    for (_, operation), count in counts.items():
        total[operation] = total.get(operation, 0) + count
    assert total == {
        **{"ADD": 1 + 2 + 4, "SUB": 2, "MUL": 1, "NOT": 2, "AND": 4, "OR": 2},
        "SHIFT": 1 + 2,  # one in alpha3's product, one sign mask for each draw
        "LOAD": 1 + 2 + 1 + 2 + 2,  # weight, two cursors, feature, two strides, two samples
        "STORE": 1 + 2 + 2,  # weight, two coefficients, two cursors
        "COMPARE": 2 * 2 + 1,  # two loops of one round, one saturation
        "BRANCH": 2 * 2,
        "SELECT": 1,
        "INDEX": 1 + 2 + 1 + 2 + 2,  # n·l, two increments, 2i, 2i+1, two negated sizes
    }


def test_the_words_of_a_step():
    assert describe("dpsgd", "gradients") == "n ADD + n SUB + n DIV"
    assert describe("spof", "perturbation") == "2n ADD + 2n C_N"


@pytest.mark.parametrize("name", ["adds_without_a_primitive", "calls_a_stranger", "loops_while"])
def test_what_is_not_in_the_language_is_an_error_and_never_free(name):
    faulty = getattr(broken_kernels, name)
    with pytest.raises((SyntaxError, KeyError)):
        symbolic(faulty)


@pytest.mark.parametrize(
    ("text", "shown", "value"),
    [("2*n", "2n", 28), ("n*l", "n·l", 98), ("n - 1", "n - 1", 13), ("n+1", "n + 1", 15), ("7", "7", 7), ("0", "0", 0)],
)
def test_polynomials(text, shown, value):
    made = parse(text)
    assert str(made) == shown
    assert made.at(n=14, l=7) == value


def test_polynomial_arithmetic():
    n, l = Polynomial.variable("n"), Polynomial.variable("l")
    assert str((n + 1) * (n - 1)) == "n·n - 1"
    assert str(19 * n + n * l) == "(19 + l)·n"
    assert (n - n) == Polynomial.constant(0)
