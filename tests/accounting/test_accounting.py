"""What was spent."""

import math

import pytest

from sensorsim._util.errors import InputError
from sensorsim.accounting.amplification import gaussian_epsilon, noise_multiplier_for
from sensorsim.accounting.composition import Covers
from sensorsim.mechanisms import nominal_scale, spent


def test_fresh_noise_in_each_epoch() -> None:
    assert spent("spof", scale=21.0, draws=10).epsilon == pytest.approx(2.86, abs=0.005)
    assert spent("spof", 1.0, draws=10).epsilon == pytest.approx(4.196, abs=0.005)
    assert spent("spof", scale=21.0, draws=10, records=364).basic == pytest.approx(3640)


def test_one_draw_is_pure() -> None:
    once = spent("spof", 1.0)
    assert (once.epsilon, once.delta) == (pytest.approx(math.sqrt(2)), 0.0)
    assert spent("fm", 1.0).epsilon == once.epsilon
    for mechanism in ("release", "sampled", "dpsgd"):
        assert spent(mechanism, 0.7).epsilon == pytest.approx(0.7) and spent(mechanism, 0.7).delta == 0


def test_what_is_covered_by_default_and_each_cover_has_its_own_words() -> None:
    for mechanism, covers in (("spof", Covers.COEFFICIENTS), ("release", Covers.RELEASE), ("dpsgd", Covers.GRADIENTS)):
        assert spent(mechanism, 1.0).covers is covers
    assert len({covers.sentence for covers in Covers}) == len({covers.value for covers in Covers}) == len(Covers)


def test_clipped_dpsgd_has_no_bound_by_its_printed_scale() -> None:
    """The scale is n/eps or 2nC/eps by whether the gradient clipped, which is private. A public scale has a bound."""
    assert nominal_scale("dpsgd", 1.0, C=4.0) == 14
    assert nominal_scale("dpsgd", 1.0, C=1.0) == 28
    for forward in ("raw", "released"):
        printed = spent("dpsgd", 1.0, C=1.0, forward=forward)
        assert printed.epsilon == math.inf and printed.covers is Covers.NOTHING and "clipped" in printed.why
        assert spent("dpsgd", 1.0, C=1.0, scale=28.0, forward=forward).epsilon == pytest.approx(2 * math.sqrt(14) / 28)


@pytest.mark.parametrize(
    ("mechanism", "use", "word"),
    [
        ("spof", {"c": 2.5}, "c > 0"),
        ("spof", {"sigma": 5.0}, "b_j"),
        ("fm", {"sigma": 5.0}, "b_j"),
        ("dpsgd", {"sigma": 5.0}, "b_j"),
        ("dpsgd", {"point": "prediction"}, "at the prediction"),
    ],
)
def test_no_bound_where_private_data_enter_elsewhere(mechanism: str, use: dict[str, object], word: str) -> None:
    found = spent(mechanism, 1.0, **use)
    assert found.epsilon == found.basic == math.inf and found.covers is Covers.NOTHING and word in found.why
    assert math.isfinite(spent(mechanism, 1.0, forward="released", **use).epsilon)
    # A public scale takes the place of one that depends on private data. It does not make the factor b_j public, nor
    # does it bound a gradient sigma(z(x)) - x, which two records move by up to 2 and not 1 in each component.
    assert math.isfinite(spent(mechanism, scale=21.0, **use).epsilon) == ("c" in use)


def test_gaussian_agrees_with_dp_accounting() -> None:
    for mechanism in ("dpsgd-weights", "dp-zo"):
        for multiplier, draws in ((2.0, 10), (26.7, 10), (8.0, 1)):
            mu = 2 * math.sqrt(draws) / multiplier
            comp = spent(mechanism, noise_multiplier=multiplier, draws=draws).epsilon
            assert comp == pytest.approx(peer_gaussian([mu]), rel=1e-6) and comp == gaussian_epsilon(mu, 1e-6)
        assert spent(mechanism, 1.0, draws=10).epsilon == pytest.approx(1.0, abs=1e-9)
    assert noise_multiplier_for(1.0, 1e-6, 40) == pytest.approx(2 * noise_multiplier_for(1.0, 1e-6, 10))


@pytest.mark.parametrize("mechanism", ["dpsgd-weights", "dp-zo"])
@pytest.mark.parametrize(("batch", "sums"), [(1, [1] * 13), (4, [4, 4, 4, 1]), (13, [13]), (40, [13])])
def test_all_records_of_a_person(mechanism: str, batch: int, sums: list[int]) -> None:
    """As many records of one person as can be meet in one noisy sum, and move it by 2C each: one Gaussian per sum."""
    multiplier = noise_multiplier_for(1.6, 1e-6, 10)
    found = spent(mechanism, 1.6, draws=10, records=13, batch=batch)
    ref = peer_gaussian([2 * size / multiplier for size in sums for _ in range(10)])
    assert found.delta == 1e-6 and found.epsilon == pytest.approx(ref, rel=2e-3)


def peer_gaussian(shifts: list[float]) -> float:
    """Epsilon at delta = 1e-6 of unit Gaussian noise moved by each of these, by dp-accounting."""
    from dp_accounting.pld import privacy_loss_distribution as peer

    found = None
    for shift in sorted(set(shifts)):
        one = peer.from_gaussian_mechanism(1 / shift, value_discretization_interval=1e-4)
        times = shifts.count(shift)
        many = one.self_compose(times) if times > 1 else one
        found = many if found is None else found.compose(many)
    assert found is not None
    return float(found.get_epsilon_for_delta(1e-6))


@pytest.mark.parametrize(("records", "batch", "times"), [(1, 1, 1), (3, 1, 3), (3, 3, 3), (3, 2, 4), (5, 3, 6)])
def test_laplace_on_sums_by_hand(records: int, batch: int, times: int) -> None:
    """A draw of a record is a tenth of epsilon, and every sum counts as the largest: basic composition."""
    for mechanism in ("dpsgd-weights", "dp-zo"):
        found = spent(mechanism, 0.6, draws=10, records=records, batch=batch, noise="laplace")
        assert found.basic == pytest.approx(0.6 * times)
        assert found.epsilon <= found.basic
    one = spent("dp-zo", 0.6, noise="laplace", records=2)
    assert (one.basic, spent("dp-zo", 0.6, noise="laplace").delta) == (pytest.approx(1.2), 0.0)


def test_laplace_on_slopes_by_its_scale() -> None:
    """A sum of slopes moves by 2C: 2C/scale for each draw."""
    assert nominal_scale("dp-zo", 1.6, C=3.0) == pytest.approx(2 * 3.0 / 1.6)
    assert spent("dp-zo", scale=20.0, C=3.0, noise="laplace").epsilon == pytest.approx(6 / 20)
    assert spent("dp-zo", scale=20.0, C=3.0, noise="laplace", records=2, batch=2).epsilon == pytest.approx(12 / 20)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"epsilon": 0.0}, {"epsilon": math.nan}, {"epsilon": None}, {"epsilon": "1"}, {"scale": -1.0}),
        *({"draws": 0}, {"draws": 2.5}, {"records": 0}, {"batch": 0}, {"features": 0}, {"release": 99}),
        *({"delta": 0.0}, {"delta": math.nan}, {"delta": 1e-17}, {"C": -1.0}, {"c": -2.5}, {"sigma": math.inf}),
        *({"mechanism": "x"}, {"forward": "both"}, {"point": "Prediction"}, {"noise": "x"}, {"table": "rows"}),
    ],
)
def test_bad_input(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        spent(**({"mechanism": "spof", "epsilon": 1.0} | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mechanism", "given"),
    [
        ("dpsgd-weights", {"scale": 0.001}),
        ("dp-zo", {"scale": 0.001}),
        ("release", {"noise_multiplier": 1.0}),
        ("dp-zo", {"noise_multiplier": 1.0, "noise": "laplace"}),
        ("dpsgd-weights", {"noise_multiplier": 1.0, "noise": "laplace"}),
    ],
)
def test_a_scale_of_the_wrong_kind_is_refused(mechanism: str, given: dict[str, object]) -> None:
    with pytest.raises(InputError, match="multiplier"):
        spent(mechanism, **given)
