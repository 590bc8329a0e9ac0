"""The two counters agree with each other, with the printed list, and with what a reader counts by hand."""

import pytest
from checking import load
from ill_formed import HEAD
from sensorsim.kernels.noise import advance

from sensorsim.costing.pricing import PAPER_PRICES, describe_step, list_forms, printed_list
from sensorsim.language import LanguageError, ir
from sensorsim.language.arguments import lengths_to_check
from sensorsim.language.kernel import reachable
from sensorsim.language.load import shipped
from sensorsim.language.polynomial import Polynomial, parse

BY_NAME = {mechanism.name: mechanism for mechanism in list_forms()}


def priced(counts):
    """Only the operations that the paper prices, by step."""
    return {key: count for key, count in counts.items() if key[1] in PAPER_PRICES and count}


def by_step(name):
    total = {}
    for entry in printed_list(name):
        key = entry.step, entry.operation
        total[key] = total.get(key, Polynomial.constant(0)) + entry.times
    return total


@pytest.mark.parametrize("name", BY_NAME)
def test_reading_and_running_agree(name):
    """For every n in 1 … 64, fewer where a record takes n·l steps. All pairs of n and l: see the slow test."""
    kernel = BY_NAME[name].kernel
    long = "l" in kernel.parameters and name != "spof"
    for n in [1, 2, 5, 14, 33] if long else range(1, 65) if "n" in kernel.parameters else [1]:
        for l in {1, 2, n // 2 + 1, n} if "l" in kernel.parameters else {1}:
            assert_agree(BY_NAME[name], n, l)


@pytest.mark.slow
@pytest.mark.parametrize("n", range(1, 65))
def test_reading_and_running_agree_for_every_pair(n):
    for mechanism in list_forms():
        hidden = "l" in mechanism.kernel.parameters
        some = range(1, 65) if mechanism.name == "spof" else (1, 2, 7, 31, 64)  # the longest take n·l steps in Python
        for l in some if hidden else (1,):
            assert_agree(mechanism, n, l)


def assert_agree(mechanism, n, l):
    expected = {key: count.at(n=n, l=l) for key, count in mechanism.symbolic().items()}
    assert mechanism.traced(n, l) == {key: count for key, count in expected.items() if count}, (n, l)


STRAIGHT = [one for one in shipped().values()
            if not any(isinstance(node, ir.If) for part in reachable([one]) for node in part.nodes)]  # fmt: skip


@pytest.mark.parametrize("kernel", STRAIGHT, ids=lambda one: one.qualified)
def test_reading_and_running_agree_for_every_kernel_without_a_branch(kernel):
    read = kernel.formula()
    for lengths in [{}, *lengths_to_check(kernel)]:
        at = kernel.lengths_at({name: max(kernel.lengths[name].lo, min(value, 60)) for name, value in lengths.items()})
        expected = {key: value.value(at) for key, value in read.items()}
        assert dict(kernel.count(**at)) == {key: value for key, value in expected.items() if value}


def test_the_printed_list_of_spof_is_what_the_kernel_does():
    assert by_step("spof") == priced(BY_NAME["spof"].symbolic())


def test_the_printed_list_of_dpsgd_differs_in_the_squares_only():
    listed, derived = by_step("dpsgd"), priced(BY_NAME["dpsgd"].symbolic())
    assert listed.keys() == derived.keys()
    assert {key for key in listed if listed[key] != derived[key]} == {("squares", "MUL")}
    assert (str(listed["squares", "MUL"]), str(derived["squares", "MUL"])) == ("2n", "n")


def test_the_noise_pointer_is_six_operations():
    counts = advance.count(cursor=3, stride=2, size=4)
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
    assert describe_step("dpsgd", "gradients") == "n ADD + n SUB + n DIV"
    assert describe_step("spof", "perturbation") == "2n ADD + 2n C_N"


def loops(*lines, head="n: N, m: M, u: U, x: U['n']"):
    text = f"@kernel()\ndef k({head}) -> U:\n    r = u32(0)\n" + "".join(f"    {line}\n" for line in lines)
    return load(HEAD + text + "    return r\n")["k"]


# the loops, and how often the body runs
SHAPES = {
    "one": (("for i in range(n):", "    r = x[i]"), lambda n, m, u: n),
    "two": (("for i in range(n):", "    for j in range(m):", "        r = x[i]"), lambda n, m, u: n * m),
    "triangle": (
        ("for i in range(n):", "    for j in range(i):", "        r = x[i]"),
        lambda n, m, u: n * (n - 1) // 2,
    ),
    "upper triangle": (
        ("for i in range(n):", "    for j in range(i, n):", "        r = x[i]"),
        lambda n, m, u: n * (n + 1) // 2,
    ),
    "pyramid": (
        ("for i in range(n):", "    for j in range(i):", "        for k1 in range(j):", "            r = x[i]"),
        lambda n, m, u: n * (n - 1) * (n - 2) // 6,
    ),
    "perhaps none": (("for i in range(m, n):", "    r = x[i]"), lambda n, m, u: max(n - m, 0)),
    "to a value": (("for i in range(u):", "    r = x[0]"), lambda n, m, u: u),
    "half": (("for i in range(n >> 1):", "    r = x[i]"), lambda n, m, u: n // 2),
    "once, with a triangle": (
        ("for i in range(1, n + 1):", "    for j in range(i):", "        r = x[0]", "    return r"),
        lambda n, m, u: 1,
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_loops_of_every_shape(shape):
    lines, times = SHAPES[shape]
    kernel = loops(*lines)
    read = kernel.formula()
    for n in range(1, 10):
        for m in range(1, 10):
            for u in (0, 1, 7) if "value" in shape else (0,):
                counts = kernel.count(n=n, m=m, u=u)
                assert sum(value for key, value in counts.items() if key[1] == "LOAD") == times(n, m, u)
                expected = {key: value.value({"n": n, "m": m, "u": u}) for key, value in read.items()}
                assert counts == {key: value for key, value in expected.items() if value}, (n, m, u)


def test_what_is_no_polynomial_is_said():
    with pytest.raises(LanguageError, match="no polynomial in the lengths"):
        loops("for i in range(x[0]):", "    r = x[0]").formula()
    with pytest.raises(LanguageError, match="may end in its first round or have none"):
        loops("for i in range(u):", "    return x[0]").formula()


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
