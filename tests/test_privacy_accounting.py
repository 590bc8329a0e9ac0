"""What was spent, and the sensitivities it rests on."""

import json
import math
from pathlib import Path

import naive_privacy as naive
import pytest

from sensorsim.cli import main
from sensorsim.errors import InputError
from sensorsim.privacy import sensitivity
from sensorsim.privacy.accounting import (
    COEFFICIENTS,
    NOTHING,
    WEIGHTS,
    gaussian_epsilon,
    noise_multiplier_for,
    nominal_scale,
    spent,
)


def test_fresh_noise_in_each_epoch() -> None:
    assert spent("spof", scale=21.0, draws=10).epsilon == pytest.approx(2.86, abs=0.005)
    assert spent("spof", 1.0, draws=10).epsilon == pytest.approx(4.196, abs=0.005)
    assert spent("spof", scale=21.0, draws=10, records=364).basic == pytest.approx(3640)


def test_one_draw_is_pure() -> None:
    once = spent("spof", 1.0)
    assert (once.epsilon, once.delta) == (pytest.approx(math.sqrt(2)), 0.0)
    assert spent("fm", 1.0).epsilon == once.epsilon
    for mechanism in ("exact", "sampled", "dpsgd"):
        assert spent(mechanism, 0.7).epsilon == pytest.approx(0.7) and spent(mechanism, 0.7).delta == 0


def test_what_is_covered() -> None:
    assert spent("none").covers == NOTHING and spent("none").epsilon == math.inf
    for mechanism in ("spof", "fm", "exact", "sampled"):
        assert spent(mechanism, 1.0).covers == COEFFICIENTS
        assert spent(mechanism, 1.0, forward="released").covers == WEIGHTS
    assert spent("dpsgd", 1.0, forward="released").covers == COEFFICIENTS
    assert spent("dpsgd-weights", 1.0).covers == WEIGHTS


def test_clipped_dpsgd_by_its_printed_scale_spends_less_than_it_says() -> None:
    assert nominal_scale("dpsgd", 1.0, C=4.0) == 14
    assert nominal_scale("dpsgd", 1.0, C=1.0) == 28
    assert spent("dpsgd", 1.0, C=1.0).epsilon == pytest.approx(2 * math.sqrt(14) / 28)


def test_certified_draws_compose_no_worse_than_basic() -> None:
    many = spent("sampled", 0.1, draws=100, certified=True)
    assert many.epsilon < many.basic == pytest.approx(10)
    assert spent("sampled", 0.1, certified=True).epsilon == 0.1


def test_gaussian_agrees_with_dp_accounting() -> None:
    from dp_accounting.pld import privacy_loss_distribution as peer

    for multiplier, draws in ((2.0, 10), (26.7, 10), (8.0, 1)):
        mu = 2 * math.sqrt(draws) / multiplier
        ref = peer.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-4).get_epsilon_for_delta(1e-6)
        comp = spent("dpsgd-weights", noise_multiplier=multiplier, draws=draws).epsilon
        assert comp == pytest.approx(ref, rel=1e-6) and comp == gaussian_epsilon(mu, 1e-6)
    assert spent("dpsgd-weights", 1.0, draws=10).epsilon == pytest.approx(1.0, abs=1e-9)
    assert noise_multiplier_for(1.0, 1e-6, 40) == pytest.approx(2 * noise_multiplier_for(1.0, 1e-6, 10))


@pytest.mark.parametrize(
    "wrong",
    [
        {"mechanism": "x"},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": None},
        {"draws": 0},
        {"delta": 0.0},
        {"delta": math.nan},
        {"forward": "both"},
        {"scale": -1.0},
        {"certified": True},
    ],
)
def test_bad_input(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        spent(**({"mechanism": "spof", "epsilon": 1.0} | wrong))  # type: ignore[arg-type]


def test_printed_and_true_terms() -> None:
    grid = [k / 10000 for k in range(-20000, 20001)]
    least = min(grid, key=sensitivity.spof_term_printed)
    assert least == pytest.approx(0.9057, abs=1e-4)
    assert sensitivity.spof_term_printed(least) == pytest.approx(4.0348, abs=5e-5)
    assert sensitivity.spof_term_printed(0) == pytest.approx(4.6931, abs=5e-5)
    assert sensitivity.spof_term(0) == pytest.approx(2.8863, abs=5e-5)
    assert min(grid, key=sensitivity.spof_term) == 0
    for a in (-2.0, -0.3, 0.0, 0.9057, 3.0):
        assert sensitivity.spof_term(a) == pytest.approx(naive.spof_term(a), rel=1e-12)
        term = 2 * max(abs(math.exp(a) / (1 + math.exp(a)) - x) for x in (0, 1))
        assert sensitivity.dpsgd_term(a) == pytest.approx(term)
        assert (sensitivity.dpsgd_term_printed(a) == pytest.approx(term)) == (a >= 0)


def test_sensitivities_of_a_record() -> None:
    assert sensitivity.spof() == 21 and sensitivity.exact() == 14
    c_j = sensitivity.typical_c_j()
    assert c_j == 8.75 and sensitivity.stabilized_printed(c_j) == pytest.approx(801.94, abs=0.01)
    assert sensitivity.stabilized_printed(c_j) / sensitivity.spof() == pytest.approx(38, abs=0.5)
    assert sensitivity.stabilized(2.5) > sensitivity.stabilized_printed(c_j)
    assert sensitivity.dpsgd_clipped_printed(4) == 112
    assert sensitivity.dpsgd_clipped(4) == pytest.approx(29.93, abs=0.005)
    assert sensitivity.dpsgd(4) == 14 and sensitivity.dpsgd(1) == pytest.approx(7.483, abs=1e-3)
    assert sensitivity.largest_gradient_norm(50.0) < 4 and sensitivity.largest_gradient_norm() == math.sqrt(14) / 2
    assert sensitivity.noisy_inputs_printed([1.0] * 7) == 7 * sensitivity.noisy_inputs(1.0)
    assert sensitivity.noisy_inputs(2.0) == 14 * (2 + 2)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["sensitivity", "--format", "json", "--plot", str(tmp_path / "s.svg")])
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["DP-SGD, clipped"]["printed"] == 112
    assert b"<svg" in (tmp_path / "s.svg").read_bytes()
    for bad in (["--a", "nan"], ["--l", "20"], ["--clip", "0"]):
        with pytest.raises(SystemExit) as exit_:
            main(["sensitivity", *bad])
        assert exit_.value.code == 2


@pytest.mark.parametrize(
    ("mechanism", "given"), [("dpsgd-weights", {"scale": 0.001}), ("exact", {"noise_multiplier": 1.0})]
)
def test_a_scale_of_the_wrong_kind_is_refused(mechanism, given):
    with pytest.raises(InputError, match="noise_multiplier"):
        spent(mechanism, **given)
