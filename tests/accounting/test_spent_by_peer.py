"""What `spent` says of every mechanism lies between two bounds of dp-accounting: never too little, and no more."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import naive_noise as naive
import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as peer

from sensorsim._util.errors import InputError
from sensorsim.accounting.composition import worst_pair
from sensorsim.mechanisms import every, nominal_scale, spent
from sensorsim.noise.kinds.rows_table import RowsTable
from sensorsim.noise.noise_table import NoiseTable, make_table, ready_table

DELTA = 1e-6
STEP = 2e-4  # of the peer's grid: rounding to it moves a composition of k parts by at most k steps
SPARE = 1e-3  # of delta: our bound counts the rounding of its sums as delta, up to so much of it
SOLVED = 1e-9  # relative: an epsilon is solved for to so much, upwards

Parts = list[tuple[Any, int]]  # distributions of the peer, and how often each is drawn


class Case(NamedTuple):
    """A use of a mechanism, and the peer's distributions of it: below the truth (False), or above (True)."""

    use: dict[str, Any]
    theirs: Callable[[bool], Parts]


def laplace(pessimistic: bool, scale: float, moved: float = 1.0) -> Any:
    return peer.from_laplace_mechanism(scale, moved, pessimistic, STEP, use_connect_dots=pessimistic)


def gaussian(pessimistic: bool, multiplier: float, moved: float) -> Any:
    return peer.from_gaussian_mechanism(multiplier, moved, pessimistic, STEP, use_connect_dots=pessimistic)


def response(pessimistic: bool, epsilon: float) -> Any:
    """Randomised response: the worst mechanism of that epsilon."""
    return peer.from_randomized_response(2 / (1 + math.exp(epsilon)), 2, pessimistic, STEP)


def released(pessimistic: bool, table: NoiseTable) -> Any:
    """One value: below, x = 0 against x = 1; above, the largest curve of all pairs of inputs on a knot or a stair."""
    if not pessimistic:
        ends = [shares(table, x) for x in (0, 1 << table.frac_bits)]
        found = [{y: math.log(p) for y, p in one.items()} for one in ends]
        return peer.from_two_probability_mass_functions(*found, False, STEP, symmetric=False)
    laws = [shares(table, round(x)) for x in np.linspace(0, 1 << table.frac_bits, len(table.extremes()))]
    outputs = sorted(set().union(*laws))
    found = np.unique([[law.get(y, 0.0) for y in outputs] for law in laws], axis=0)
    most = math.ceil(float(table.certify().epsilon_release or 0) / STEP) + 1
    grid = np.arange(-most, most + 1)
    alpha = np.exp(grid * STEP)[:, None]
    curves = [np.maximum(0, p - alpha * q).sum(1) for p, q in itertools.permutations(merged(found), 2)]
    dots = pld_pmf.create_pmf_pessimistic_connect_dots(STEP, grid, np.maximum.reduce(curves))
    return peer.PrivacyLossDistribution(dots)


def shares(table: NoiseTable, x_q: int) -> dict[int, float]:
    """The probability of every output."""
    values, counts = table.distribution(x_q)
    return {int(y): int(c) / int(counts.sum()) for y, c in zip(values, counts, strict=True) if c}


def merged(laws: Any) -> Any:
    """The same with outputs added up that have the same probabilities: they tell the same."""
    columns, times = np.unique(laws.T, axis=0, return_counts=True)
    return (columns * times[:, None]).T


def of_table(table: NoiseTable, records: int) -> Case:
    return Case({"table": table, "records": records}, lambda up: [(released(up, table), records * table.release)])


def of_epsilon(epsilon: float, records: int) -> Case:
    return Case({"epsilon": epsilon, "records": records}, lambda up: [(response(up, epsilon), records)])


def of_coefficients(mechanism: str) -> list[Case]:
    scale = nominal_scale(mechanism, 1.0)
    return [
        Case(
            {"epsilon": 1.0, "draws": 3, "records": 2},
            lambda up: [(laplace(up, scale), 14 * 6), (laplace(up, scale, 0.5), 14 * 6)],
        )
    ]


def of_gradients(mechanism: str) -> list[Case]:
    return [
        Case(
            {"noise_multiplier": 20.0, "draws": 5, "records": 7, "batch": 3},
            lambda up: [(gaussian(up, 20.0, 6.0), 10), (gaussian(up, 20.0, 2.0), 5)],
        )
    ]


def rows(counts: Sequence[Sequence[int]], release: int = 1) -> RowsTable:
    """A table of these counts, in no way a good one."""
    return RowsTable(Decimal(9), 5, release, 15, sum(counts[0]).bit_length() - 1, tuple(map(tuple, counts)))


CASES: dict[str, Callable[[], list[Case]]] = {
    "none": list,
    "spof": lambda: of_coefficients("spof"),
    "fm": lambda: of_coefficients("fm"),
    "dpsgd": lambda: [
        Case({"epsilon": 1.0, "records": 9}, lambda up: [(laplace(up, 14.0), 14 * 9)]),
        Case({"scale": 20.0, "C": 1.0, "records": 9}, lambda up: [(response(up, 2 * math.sqrt(14) / 20), 9)]),
    ],
    "dpsgd-weights": lambda: [
        *of_gradients("dpsgd-weights"),
        Case({"epsilon": 2.0, "draws": 8, "noise": "laplace"}, lambda up: [(response(up, 0.25), 8)]),
    ],
    "dp-zo": lambda: [
        *of_gradients("dp-zo"),
        Case({"epsilon": 2.0, "draws": 8, "noise": "laplace"}, lambda up: [(laplace(up, 4.0), 8)]),
    ],
    "release": lambda: [
        of_table(ready_table("6.4", "all"), 13),
        of_table(make_table("stairs", 6, 3, entries=2**10, frac_bits=5), 9),
        of_epsilon(6.4, 13),
    ],
    "sampled": lambda: [
        of_table(ready_table("1.6", 1), 100),
        of_table(make_table("stairs", 1.6, release=1, entries=2**8, frac_bits=5), 100),
        of_table(ready_table("0.1", 1), 50),
        of_table(rows([[48000, 17536], [20000, 45536]]), 100),  # one bit, not symmetric
        of_table(rows([[192, 40, 24], [40, 24, 192]], release=3), 20),  # looked up
        of_table(ready_table("0.4", 1), 365),
        of_epsilon(1.6, 100),
        of_epsilon(0.4, 365),
    ],
    "sketch": lambda: [of_table(ready_table("0.8", 1), 30), of_epsilon(0.8, 30)],
}


def test_every_mechanism_has_a_case() -> None:
    assert {mechanism.name for mechanism in every()} == CASES.keys()
    assert all(CASES[mechanism.name]() for mechanism in every() if mechanism.private)


@pytest.mark.parametrize("mechanism", CASES)
def test_between_the_bounds_of_dp_accounting(mechanism: str) -> None:
    for use, theirs in CASES[mechanism]():
        found = spent(mechanism, delta=DELTA, **use)
        below, above = composed(theirs(False), DELTA), composed(theirs(True), DELTA * (1 - SPARE))
        assert below <= found.epsilon <= found.basic, (use, below)
        assert found.epsilon <= above * (1 + SOLVED), (use, above)
        assert above - below <= 0.02 * above + 2 * STEP * sum(times for _, times in theirs(False)), (
            "the peer says little"
        )


def composed(parts: Parts, delta: float) -> float:
    whole = None
    for one, times in parts:
        many = one.self_compose(times)
        whole = many if whole is None else whole.compose(many)
    assert whole is not None
    return float(whole.get_epsilon_for_delta(delta))


@pytest.mark.parametrize("seed", range(6))
def test_no_two_records_do_worse_than_the_worst_pair(seed: int) -> None:
    """By brute force: two records of a person, each replaced on its own by any other, through tables of any counts."""
    rng = np.random.default_rng(seed)
    counts = [rng.multinomial(256 - 4, rng.dirichlet(np.ones(4))) + 1 for _ in range(3)]
    table = rows([row.tolist() for row in counts])
    found = spent("sampled", table=table, records=2, delta=0.02)
    laws = [Counter(dict(enumerate(row.tolist()))) for row in counts]
    pairs = list(itertools.permutations(laws, 2))
    worst = max(naive.composed_delta([first, second], found.epsilon) for first in pairs for second in pairs)
    assert worst <= 0.02
    alone = max(naive.composed_delta([pair, pair], found.epsilon * 0.9) for pair in pairs)
    assert alone > 0.02 or len(set(map(tuple, zip(*worst_pair(table), strict=True)))) > 4  # no pair alone is the worst


def test_no_x_between_the_stairs_does_worse() -> None:
    table = make_table("stairs", 3.2, release=1, entries=2**8, frac_bits=5)
    laws = [Counter(shares(table, x)) for x in range(33)]
    p, q = worst_pair(table)
    for epsilon in np.arange(-30, 34) / 10:
        above = np.maximum(0, p - math.exp(epsilon) * q).sum() / p.sum()
        worst = max(naive.hockey_stick(a, b, epsilon) for a, b in itertools.permutations(laws, 2))
        assert above - 0.01 < worst <= above + 1e-12


def test_a_large_epsilon_keeps_its_digits() -> None:
    """Where exp(-epsilon) is near the last digit of 1."""
    for epsilon in (30.0, 35.0, 36.5):
        assert 2 * epsilon - 1e-3 < spent("sampled", epsilon, records=2).epsilon <= 2 * epsilon


def test_a_use_that_no_table_has_is_refused() -> None:
    table = ready_table("1.6", 1)
    for use in ({"table": table, "epsilon": 1.6}, {"scale": 1.0}, {"epsilon": 1.6, "scale": 1.0}, {}, {"table": "t"}):
        with pytest.raises(InputError, match="table"):
            spent("sampled", **use)
    with pytest.raises(InputError, match="table"):
        spent("spof", 1.0, table=table)
    naive_one = make_table("naive", 1, frac_bits=6)
    assert spent("release", table=naive_one, records=3).epsilon == math.inf
