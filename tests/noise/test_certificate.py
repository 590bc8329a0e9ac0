"""Certificates against brute force over all inputs, against dp-accounting, against broken tables; printed epsilons."""

import itertools
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import naive_noise as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sensorsim.accounting import composition as pld
from sensorsim.noise.certificate import (
    EVERY_PAIR,
    certify,
    exp_bounds,
    format_epsilon,
    format_epsilon_column,
    log_above,
)
from sensorsim.noise.kinds.stairs_table import StairsTable
from sensorsim.noise.noise_table import READY_EPSILONS, make_table, ready_table

READY = [(epsilon, release) for epsilon in READY_EPSILONS for release in ("all", 1)]


def brute(table: StairsTable) -> Fraction | None:
    assert table.limit is not None
    return naive.worst_ratio(table.counts, 1 << table.frac_bits, 1 << table.stair_bits, table.limit)


@pytest.mark.parametrize("x", ["1e-9", "0.0714285714", "1", "6.4", "31.7", "64"])
def test_rational_bounds_enclose_exp(x: str) -> None:
    low, high = exp_bounds(Fraction(x))
    with localcontext() as context:
        context.prec = 90
        true = Decimal(x).exp()
        assert Decimal(low.numerator) / low.denominator <= true <= Decimal(high.numerator) / high.denominator
    assert (high - low) / low < Fraction(1, 2**170)
    assert 0 <= float(log_above(low)) - float(x) < 3e-12


@pytest.mark.parametrize(
    ("epsilon", "release", "entries", "frac_bits"),
    [
        ("1", "all", 2**12, 4),
        ("1.6", 1, 2**8, 8),
        ("6.4", 1, 2**12, 6),
        ("8", "all", 2**10, 6),
    ],
)
def test_brute_force_over_all_inputs_equals_the_certificate(epsilon, release, entries, frac_bits):
    table = make_table("stairs", epsilon, release=release, entries=entries, frac_bits=frac_bits)
    assert table.certificate is not None
    assert brute(table) == table.certificate.ratio
    assert table.certificate.holds(table.epsilon)


@pytest.mark.parametrize("per_range", [1, 2, 4, 8])
def test_brute_force_equals_the_certificate_of_any_counts(per_range: int) -> None:
    rng = np.random.default_rng(per_range)
    for _ in range(20):
        K, stair_bits = int(rng.integers(per_range + 1, 12)), int(rng.integers(1, 4))
        counts = tuple((j, int(c)) for j, c in zip(range(-K, K + 1), rng.integers(1, 50, 2 * K + 1), strict=True))
        limit = (1 << stair_bits) * (2 * K - per_range - 1) // 2
        frac_bits = stair_bits + per_range.bit_length() - 1
        table = StairsTable(Decimal(1), 1, 1, frac_bits, 1, stair_bits, limit, None, counts)
        assert certify(table).ratio == brute(table)


@pytest.mark.parametrize(("epsilon", "release"), READY)
def test_ready_tables_hold_and_their_file_says_what_is_proved(epsilon: str, release: int | str) -> None:
    table = ready_table(epsilon, release, "stairs")
    proved = certify(table)
    assert proved == table.certificate
    assert proved.holds(Decimal(epsilon)) and proved.delta_record == 0
    coarse = table.on_coarse_lattice(1)
    assert certify(coarse).ratio == brute(coarse)
    assert naive.is_private(brute(coarse), table.epsilon, table.release)


def moved(table: StairsTable, source: int, target: int, amount: int) -> StairsTable:
    counts = dict(table.counts)
    counts[source] -= amount
    counts[target] += amount
    return replace(table, counts=tuple(sorted(counts.items())))


@pytest.mark.parametrize(("epsilon", "release"), [("1.6", 1), ("3.2", 1)])
def test_every_move_of_counts_is_judged_as_brute_force_judges_it(epsilon: str, release: int) -> None:
    table = ready_table(epsilon, release, "stairs").on_coarse_lattice(1)
    verdicts = set()
    for (source, count), (target, _) in itertools.permutations(table.counts, 2):
        for amount in {1, (count + 1) // 2, count}:
            changed = moved(table, source, target, amount)
            holds = certify(changed).holds(table.epsilon)
            assert holds == naive.is_private(brute(changed), table.epsilon, table.release), (source, target, amount)
            verdicts.add(holds)
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    ("kind", "frac_bits", "delta", "digits"),
    [("naive", 8, 0.999, 3), ("quantile", 8, 0.93, 2), ("naive", 16, 1.0, 9), ("quantile", 16, 1.0, 9)],
)
def test_obvious_tables_fail(kind: str, frac_bits: int, delta: float, digits: int) -> None:
    table = make_table(kind, 1, frac_bits=frac_bits, entries=2**16)
    proof = table.certificate
    assert proof is not None and proof.ratio is None
    assert round(float(proof.delta_record), digits) == delta
    assert float(proof.delta_record) - float(proof.delta_record_below) < 1e-4
    assert not proof.holds(table.epsilon, Decimal("0.5"))


def test_clamping_makes_quantile_tables_usable_at_small_f_only() -> None:
    small = make_table("quantile", 1, frac_bits=4, entries=2**18, limit_scales=3)
    assert small.certificate is not None and small.certificate.neighbours == EVERY_PAIR
    assert small.certificate.holds(small.epsilon, Decimal("1e-6"))
    loose = make_table("quantile", 1, frac_bits=4, entries=2**18).certificate
    assert loose is not None and not loose.holds(small.epsilon, Decimal("1e-3"))
    large = make_table("quantile", 1, frac_bits=8, entries=2**18, limit_scales=3).certificate
    assert large is not None and large.delta_record_below > Decimal("1e-6")


@pytest.mark.parametrize("limit_scales", [None, 1.5])
def test_delta_of_a_small_table_equals_brute_force(limit_scales: float | None) -> None:
    """Two features, one coefficient each: every pair of inputs for each, all combinations of outputs."""
    shape = {"entries": 64, "coefficients": 1, "limit_scales": limit_scales}
    table = make_table("quantile", 6, features=2, release=2, frac_bits=2, **shape)
    proof = table.certificate
    assert proof is not None and table.coefficients == 1 and proof.neighbours == EVERY_PAIR
    D = 1 << table.frac_bits
    outputs = [naive.release_counts(table.counts, D, 1, table.limit, x) for x in range(D + 1)]
    pairs = list(itertools.permutations(outputs, 2))
    single = max(naive.hockey_stick(p, q, 3.0) for p, q in pairs)
    assert single <= float(proof.delta_release) < single + 2e-12
    worst = max(naive.composed_delta([first, second], 6.0) for first in pairs for second in pairs)
    assert worst - 1e-9 <= float(proof.delta_record)
    assert float(proof.delta_record_below) <= worst
    ends = naive.composed_delta([(outputs[0], outputs[-1])] * 2, 6.0)
    assert abs(float(proof.delta_record_below) - ends) < 0.02


def test_outputs_are_those_of_the_naive_draws() -> None:
    for table in (make_table("stairs", 3.2, release=1, entries=2**8, frac_bits=5), make_table("naive", 4, frac_bits=3)):
        for x_q in (0, 3, 1 << table.frac_bits):
            values, counts = table.distribution(x_q)
            D, S = 1 << table.frac_bits, 1 << table.stair_bits
            ref = naive.release_counts(table.counts, D, S, table.limit, x_q)
            found = {int(y): int(c) for y, c in zip(values, counts, strict=True) if c}
            assert found == {y: c for y, c in ref.items() if c}


def test_composition_agrees_with_dp_accounting() -> None:
    """Their "connect the dots" through naive hockey-stick values at the grid, their composition."""
    from dp_accounting.pld import pld_pmf

    table = make_table("naive", 1, frac_bits=6, entries=2**12)
    D, step = 64, 1e-2
    grid = np.arange(-400, 401)
    ours, theirs = [], []
    for span, first, second in ((D, 0, D), (D // 2, D // 2, 0)):
        runs = [naive.release_counts(table.counts, span, 1, None, x) for x in (first, second)]
        cells = sorted(set(runs[0]) | set(runs[1]))
        p, q = (np.array([run[y] for y in cells]) for run in runs)
        ours.append((pld.from_counts(p, q, step), 14))
        deltas = np.array([naive.hockey_stick(runs[0], runs[1], k * step) for k in grid])
        peer = pld_pmf.create_pmf_pessimistic_connect_dots(step, grid, deltas)
        theirs.append(peer.self_compose(14, tail_mass_truncation=0))
    comp, ref = pld.compose(ours), theirs[0].compose(theirs[1], tail_mass_truncation=0)
    for epsilon in (0.0, 1.0, 5.0, 20.0):
        assert abs(comp.delta(epsilon) - ref.get_delta_for_epsilon(epsilon)) < 1e-9
    assert 0.1 < comp.delta(1.0) < 1


@given(st.decimals("1e-6", "1e6", places=12), st.integers(1, 8))
def test_a_printed_epsilon_is_never_less(value: Decimal, digits: int) -> None:
    assert Decimal(format_epsilon(value, digits)) >= value
    assert value <= Decimal(format_epsilon_column(value, digits)) < value + Decimal(1).scaleb(-digits)
    assert Decimal(format_epsilon(Fraction(value), digits)) >= value


@given(st.floats(1e-6, 1e6))
def test_a_float_is_what_its_certain_digits_say(value: float) -> None:
    certain = Decimal(f"{value:.12g}")
    assert certain <= Decimal(format_epsilon(value)) <= certain * Decimal("1.0011")


def test_epsilons_printed_by_hand() -> None:
    shown = {Decimal("0.999949"): "1", 1.6: "1.6", 13.99929: "14", 1.23401: "1.235", 0.1 + 0.2: "0.3"}
    shown |= {Fraction(1, 3): "0.3334", 123456.0: "123500", math.inf: "no bound", 0.5: "0.5", 2.0: "2"}
    assert {value: format_epsilon(value) for value in shown} == shown
    columns = {1.599958: "1.60", 1.601: "1.61", 1.6 + 4e-13: "1.60", None: "–", math.inf: "–"}
    assert {value: format_epsilon_column(value, 2) for value in columns} == columns
