"""The sketch: against its definition bit by bit, what rounding costs, how even the directions are, what is proved."""

import random
from typing import Any

import naive_rows
import naive_sketch as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensorsim.kernels import sketch as kernels
from test_kernels import records, run_both

from sensorsim.costing.pricing import PAPER_PRICES
from sensorsim.device.sketches import Sketch
from sensorsim.language.numba_backend import compiled

ONE = 2**15
EDGES = (-(2**27), 1 - 2**27, -ONE - 1, -ONE, 1 - ONE, -1, 0, 1, ONE // 2, ONE - 1, ONE, ONE + 1, 2**27 - 1, 2**27)
PLAIN = (40000, 46341, 52001)
FACTORS = (ONE, ONE + 1, 43691, *PLAIN, 2 * ONE - 2)  # the others lie beside simple ratios
# Five symbols at five knots.
COUNTS = (
    (30000, 20000, 9000, 4536, 2000),
    (20000, 24000, 12000, 6536, 3000),
    (8000, 14000, 21536, 14000, 8000),
    (3000, 6536, 12000, 24000, 20000),
    (2000, 4536, 9000, 20000, 30000),
)


def every(numbers: int, n: int) -> Any:
    return Sketch(n, (0,) * n, ONE, 0, (numbers - 1).bit_length()).vectors()


@settings(max_examples=60, deadline=None)
@given(records(kernels.sketch, n=st.integers(1, 20), halvings=st.integers(0, 12)))
def test_the_sketch_is_its_definition(values: dict[str, Any]) -> None:
    names = ("x", "centre", "number", "factor", "halvings")
    wanted = naive.sketch(*(values[name] for name in names))
    typed = [values[name] for name in kernels.sketch.parameters]
    assert kernels.sketch(*typed) == wanted
    fast = np.array(values["x"], np.uint16), np.array(values["centre"], np.uint16)
    words = np.uint32(values["number"]), np.uint32(values["factor"])
    assert compiled(kernels.sketch)(*fast, *words, values["n"], values["halvings"]) == wanted


@pytest.mark.parametrize("halvings", range(13))
@pytest.mark.parametrize("factor", FACTORS)
def test_squares_at_every_edge(factor: int, halvings: int) -> None:
    chance, fast = random.Random(factor + halvings), compiled(kernels.squared)
    bound = 2**halvings * ONE * ONE // factor  # where u reaches 1
    near = [sign * (bound + step) for sign in (-1, 1) for step in range(-3, 4)]
    for along in [*EDGES, *near, *(chance.randrange(-2 * bound, 2 * bound) for _ in range(50))]:
        total = max(-(2**27), min(2**27, along))
        wanted = naive.squared(total, factor, halvings)
        assert kernels.squared(total, factor, halvings) == wanted
        assert fast(np.int32(total), np.uint32(factor), halvings) == wanted
        assert abs(wanted - ONE * naive.exact(total, factor, halvings)) <= 5


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("halvings", [0, 1, 2])
def test_rounding_leaves_next_to_no_bias(factor: int, halvings: int) -> None:
    """Every sum that is not clipped, both signs."""
    root = 2**halvings * ONE * ONE / factor
    along = np.arange(-int(root), int(root) + 1, dtype=np.int32)
    u = kernels.squared.batch(along=along, factor=factor, halvings=halvings)["returns"]
    off = u - ONE * (along / root) ** 2
    assert abs(off).max() <= 5
    assert abs(off.mean()) < (0.02 if factor in PLAIN else 1)


def test_no_record_is_too_far() -> None:
    """4096 features, each as far off as it can be along its entry: within the format, and 1 at the least R."""
    for number in (0, 1, 65535):
        signs = naive.entries(number, 4096)
        x = np.array([2**16 - 1 if sign > 0 else 0 for sign in signs], np.uint16)
        centre = np.array([ONE if sign < 0 else 0 for sign in signs], np.uint16)
        total = naive.along(x.tolist(), centre.tolist(), number)
        assert total == ONE * sum(map(abs, signs)) <= 2**27
        for factor, halvings in ((ONE, 12), (2 * ONE - 2, 0)):
            found = compiled(kernels.sketch)(x, centre, np.uint32(number), np.uint32(factor), 4096, halvings)
            assert found == naive.squared(total, factor, halvings)
        assert found == ONE


def test_features_above_one_count_as_one() -> None:
    number = next(q for q in range(99) if naive.entries(q, 1) == [1])
    assert {kernels.sketch([x], [0], number, ONE, 1, 0) for x in (ONE, ONE + 1, 2**16 - 1)} == {ONE}


# ── directions ──


@pytest.mark.parametrize("bits", [1, 2, 9, 16])
def test_a_word_picks_every_direction_alike(bits: int) -> None:
    """The top bits and no others: 2^(32 - bits) words give each number."""
    for word in (0, 2 ** (32 - bits) - 1, 2 ** (32 - bits), 2**31, 2**32 - 1, 0x12345678):
        assert kernels.direction(word, bits) == word // 2 ** (32 - bits)
        assert compiled(kernels.direction)(np.uint32(word), bits) == word // 2 ** (32 - bits)


def test_directions_are_those_of_the_definition() -> None:
    sketch = Sketch(5, (0,) * 5, ONE, 0, 16)
    numbers = [0, 1, 2, 77, 1023, 32768, 65535]
    assert sketch.vectors(numbers).tolist() == [naive.entries(number, 5) for number in numbers]
    assert Sketch(40, (0,) * 40, ONE, 0, 6).vectors().tolist() == [naive.entries(number, 40) for number in range(64)]
    state = kernels.first_state(1023)
    for wanted in naive.entries(1023, 5):
        state = kernels.next_state(state)
        assert kernels.entry(state) == wanted


def test_entries_round_at_one_half() -> None:
    quarter = 2**30
    states = {
        0: 0,
        quarter - 1: 0,
        quarter: 1,
        2**31 - 1: 1,
        2**31: -1,
        3 * quarter - 1: -1,
        3 * quarter: 0,
        2**32 - 1: 0,
    }
    for state, wanted in states.items():
        assert kernels.entry(state) == compiled(kernels.entry)(np.uint32(state)) == wanted


def test_entries_are_a_quarter_a_half_a_quarter() -> None:
    vectors = every(2**12, 64)
    for value, chance in ((-1, 0.25), (0, 0.5), (1, 0.25)):
        shares = (vectors == value).mean(axis=0)
        assert abs(shares - chance).max() < 5 * (chance * (1 - chance) / 2**12) ** 0.5


@pytest.mark.parametrize("n, bits", [(14, 10), (24, 10), (24, 12), (90, 12)])
def test_entries_are_as_good_as_independent(n: int, bits: int) -> None:
    """No two features go together, nor do their absolute values: beyond 6 standard deviations none of 4005 pairs."""
    vectors = every(2**bits, n).astype(np.float64)
    for centred, deviation in ((vectors, 0.5), (abs(vectors) - 0.5, 0.25)):
        together = centred.T @ centred / len(vectors) / deviation
        assert abs(together[np.triu_indices(n, 1)]).max() < 6 / len(vectors) ** 0.5


def condition(vectors: Any) -> float:
    """Of the regression of s'Σs on the entries of Σ, every column scaled to the same length."""
    i, j = np.triu_indices(vectors.shape[1])
    design = vectors[:, i].astype(np.float64) * vectors[:, j]
    scaled = design / np.linalg.norm(design, axis=0)
    values = np.linalg.eigvalsh(scaled.T @ scaled)
    assert values[0] > 1e-6  # full rank
    return float((values[-1] / values[0]) ** 0.5)


@pytest.mark.parametrize("n, bits", [(3, 6), (14, 8), (14, 10), (24, 10)])
def test_the_regression_is_as_good_as_with_true_chance(n: int, bits: int) -> None:
    chance = np.random.default_rng(3)
    drawn = [condition(chance.choice([-1, 0, 0, 1], size=(2**bits, n))) for _ in range(5)]
    assert condition(every(2**bits, n)) < 1.25 * max(drawn)


# ── released ──


def sketched(chance: random.Random, n: int) -> dict[str, Any]:
    return {
        "x": [chance.choice([0, ONE, 2**16 - 1, chance.randrange(ONE)]) for _ in range(n)],
        "centre": [chance.randrange(ONE + 1) for _ in range(n)],
        "table": naive_rows.thresholds(COUNTS),
        "word": [chance.randrange(2**32), chance.randrange(2**32)],
        "factor": chance.randrange(ONE, 2 * ONE - 1),
        "chosen": [0],
        "y": [0],
        "n": n,
        "halvings": chance.randrange(3),
        "direction_bits": chance.randrange(1, 17),
        "cuts": 4,
        "knot_bits": 2,
    }


def test_a_released_sketch_is_the_definition_s() -> None:
    chance = random.Random(8)
    for n in (1, 2, 14, 30):
        for _ in range(40):
            values = sketched(chance, n)
            kernel = kernels.sketch_rows_search
            after = run_both(kernel, {name: values[name] for name in kernel.parameters})
            number = values["word"][0] // 2 ** (32 - values["direction_bits"])
            u = naive.sketch(values["x"], values["centre"], number, values["factor"], values["halvings"])
            assert after["chosen"] == [number]
            assert after["y"] == [naive_rows.symbol(u, COUNTS, values["word"][1])]


def test_the_number_of_a_direction_is_packed() -> None:
    for number, at, bits in ((65535, 20, 16), (5, 20, 3), (0x2A5, 36, 10)):
        packet = [0] * ((at + bits + 7) // 8)
        kernels.pack_direction(packet, number, at, bits)
        assert int.from_bytes(packet, "little") == number << at


# ── what is proved, and what it costs ──


@pytest.mark.parametrize("n", [1, 3, 14, 60])
def test_cost_by_running_is_cost_by_reading(n: int) -> None:
    kernel = kernels.sketch_rows_search
    at = kernel.lengths_at({"n": n, "cuts": 4, "knot_bits": 2})
    read = {key: count.value(at) for key, count in kernel.formula(cuts=4, knot_bits=2).items()}
    assert {key: count for key, count in kernel.count(**at).items() if count} == {k: c for k, c in read.items() if c}
    priced = sum(count for (_, operation), count in kernel.count(**at).items() if operation in PAPER_PRICES)
    rest = sum(c for (_, operation), c in kernel.count(**{**at, "n": 1}).items() if operation in PAPER_PRICES)
    assert priced - rest == 6 * (n - 1)  # of each feature: two products, three additions, a subtraction
