"""Three ways to spend a budget over a period: against closed forms from the tables' own counts."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from sensorsim._util.errors import InputError
from sensorsim.noise.certificate import certify
from sensorsim.noise.noise_table import NoiseTable, budget_of, make_table, ready_table
from sensorsim.planning.strategies import ONE, Setting, Strategy, compare, due, release_one, table_of

DEVICES = 5000
NAMES = ("time sampling", "every record", "memoised")


@dataclass(frozen=True)
class Compared:
    """What was compared, and what with."""

    found: tuple[Strategy, ...]
    whole: NoiseTable
    part: NoiseTable


@pytest.fixture(scope="module", params=["two symbols", pytest.param("as shipped", marks=pytest.mark.slow)])
def one(request: pytest.FixtureRequest) -> Compared:
    """One feature with epsilon 1, 30 records. With two symbols all is drawn by one kernel: one to compile."""
    two = request.param == "two symbols"
    whole = make_table("rows", "1", 1, symbols=2, knots=2) if two else ready_table("1", 1)
    found = compare("1", devices=DEVICES, table=whole if two else None)
    return Compared(found, whole, table_of(budget_of("0.033333333"), 1))


@pytest.fixture(scope="module")
def fourteen() -> tuple[Strategy, ...]:
    return compare("1.6", 14, 10, devices=DEVICES, levels=3)


def chances(table: NoiseTable, x: int) -> list[float]:
    counts = [int(count) for count in table.distribution(x)[1]]
    return [count / sum(counts) for count in counts]


def noise_of(table: NoiseTable, x: int) -> float:
    """Variance of the unbiased value, symbol by symbol."""
    values = [float(table.estimate(np.array([symbol]))[0]) for symbol in table.distribution(x)[0]]
    mean = sum(p * v for p, v in zip(chances(table, x), values, strict=True))
    assert mean == pytest.approx(x / ONE, abs=1e-9)
    return sum(p * (v - mean) ** 2 for p, v in zip(chances(table, x), values, strict=True))


def mean_noise(table: NoiseTable) -> float:
    """Over x that is uniform: the middle of 256 cells each."""
    return sum(noise_of(table, (2 * i + 1) * ONE // 512) for i in range(256)) / 256


def test_they_are_three_and_say_what_is_proved(one: Compared) -> None:
    assert tuple(found.name for found in one.found) == NAMES
    sampled, every, memoised = one.found
    assert (sampled.releases, sampled.packets) == (1, 1) and (every.releases, every.packets) == (30, 30)
    assert (memoised.releases, memoised.packets) == (4, 30)
    assert 0.99 < sampled.epsilon_person == sampled.epsilon_release <= 1
    assert every.epsilon_person == pytest.approx(30 * every.epsilon_release) and 0.99 < every.epsilon_person <= 1
    assert memoised.epsilon_person == pytest.approx(4 * memoised.epsilon_release)
    assert "no epsilon holds" in memoised.proves and memoised.bound is None and memoised.rounding == 1 / 6
    for found in (sampled, every):
        e = math.exp(found.epsilon_person)
        assert found.bound == pytest.approx((e - 1) / (e + 1)) and found.rounding == 0


# ── what shows ──


def test_what_is_proved_holds(one: Compared) -> None:
    assert all(found.bound is not None and found.advantage_high <= found.bound for found in one.found[:2])


def near(found: Strategy, exact: float) -> bool:
    """Within twice its error bars: four standard errors."""
    spread = found.advantage_high - found.advantage
    assert 0 < spread < 0.03
    return abs(found.advantage - exact) <= 2 * spread


def test_a_sampled_record_tells_half_of_what_one_release_tells(one: Compared) -> None:
    ends = chances(one.whole, 0), chances(one.whole, ONE)
    distance = sum(max(0.0, q - p) for p, q in zip(*ends, strict=True))
    assert near(one.found[0], distance / 2)


def test_every_record_adds_its_releases_up(one: Compared) -> None:
    """Two symbols, 15 records after the change: the number of ones is binomial, and 8 or more speak for a change."""
    (_, p), (_, q) = chances(one.part, 0), chances(one.part, ONE)
    assert one.part.symbols == 2 and q - 0.5 == pytest.approx(0.5 - p)

    def most(chance: float) -> float:
        return sum(math.comb(15, k) * chance**k * (1 - chance) ** (15 - k) for k in range(8, 16))

    assert near(one.found[1], most(q) - most(p))


def shows_every_change(found: Strategy, table: NoiseTable) -> None:
    same = sum(p * q for p, q in zip(chances(table, 0), chances(table, ONE), strict=True))
    assert near(found, 1 - same)
    assert found.advantage_low > math.tanh(found.epsilon_release / 2), "more than one release could ever tell"


def test_memoised_symbols_show_every_change(one: Compared) -> None:
    shows_every_change(one.found[2], one.whole)


@pytest.mark.slow
def test_many_features_keep_the_bound_and_show_every_change(fourteen: tuple[Strategy, ...]) -> None:
    shows_every_change(fourteen[2], ready_table("1.6", 1))
    assert all(found.advantage_high <= found.bound for found in (*fourteen[:2], *compare("3.2", 1, 2)[:2]))


# ── how well the mean is known ──
# x is uniform before the change and after it: its variance is 1/12, that of a device's mean over an even period 1/24.


def expected_errors(n: int, records: int, levels: int, whole: NoiseTable, part: NoiseTable) -> list[float]:
    s, b = 1 / 12, 1 / 24
    noise, small = mean_noise(whole), mean_noise(part)
    sampled = n * (noise + s) - b
    every = (n * small + (n - 1) * s) / records
    last = levels - 1
    weight = [(1 if 0 < level < last else 0.5) / last for level in range(levels)]
    at = [noise_of(whole, round(level * ONE / last)) for level in range(levels)]
    kept = sum(
        p * q * (at[i] if i == j else at[i] / 4 + at[j] / 4) for i, p in enumerate(weight) for j, q in enumerate(weight)
    )
    spread = sum(p * (level / last - 0.5) ** 2 for level, p in enumerate(weight)) / 2  # of a rounded mean
    cells = (np.arange(0, 1, 1e-4) + 5e-5).tolist()
    shared = sum((round(x * last) / last - 0.5) * (x - 0.5) for x in cells) / len(cells) / 2
    memoised = n * (kept + spread) - 2 * shared + b
    return [math.sqrt(value / DEVICES) for value in (sampled, every, memoised)]


def test_standard_errors_of_one_feature(one: Compared) -> None:
    wanted = expected_errors(1, 30, 4, one.whole, one.part)
    for found, exact in zip(one.found, wanted, strict=True):
        assert found.standard_error == pytest.approx(exact, rel=0.03)  # six standard errors of 20,000 devices
        assert found.standard_error_expected == pytest.approx(exact, rel=0.02)


@pytest.mark.slow
def test_standard_errors_of_many_features(fourteen: tuple[Strategy, ...]) -> None:
    wanted = expected_errors(14, 10, 3, ready_table("1.6", 1), table_of(budget_of("0.16"), 14))
    for found, exact in zip(fourteen, wanted, strict=True):
        assert found.standard_error == pytest.approx(exact, rel=0.04)  # a device speaks of one feature in fourteen
        assert found.standard_error_expected == pytest.approx(exact, rel=0.02)


@pytest.mark.slow
def test_the_estimates_themselves_err_by_as_much() -> None:
    """Means of what was received, feature by feature and fleet by fleet, against the people's own means."""
    from scipy.stats import chi2

    table, errors = table_of(budget_of("1.6"), 14), []
    for seed in range(12):
        a, b = np.random.default_rng([seed, 9]).integers(0, ONE + 1, (2, 2000, 14), dtype=np.uint16)
        setting = Setting(14, 10, 2000, 3, seed, a, b)
        x = np.where((due(setting, seed) >= 5)[:, None], b, a)
        picked, values = release_one(x, table, [seed, 1])
        truth = (a.astype(float) + b).mean(axis=0) / 2 / ONE
        errors += [float(values[picked == j].mean() - truth[j]) for j in range(14)]
    variance = (14 * (mean_noise(table) + 1 / 12) - 1 / 24) / 2000
    low, high = chi2.ppf([1e-4, 1 - 1e-4], len(errors)) * variance
    assert low <= sum(error**2 for error in errors) <= high


def test_the_schedule_is_the_kernels() -> None:
    """Each device is due once a period, about as often before the change as after it."""
    a = np.zeros((4000, 1), np.uint16)
    slots = due(Setting(1, 30, 4000, 4, 1, a, a), 5)
    counts = np.bincount(slots, minlength=30)
    assert len(counts) == 30 and abs(counts - 4000 / 30).max() < 6 * math.sqrt(4000 / 30)


# ── the rest ──


def test_a_seed_gives_it_again() -> None:
    assert compare("0.2", 1, 2, seed=3) == compare("0.2", 1, 2, seed=3) != compare("0.2", 1, 2, seed=4)


def test_a_table_at_hand_is_used() -> None:
    table = make_table("rows", "0.8", 1, symbols=2, knots=2)
    found = compare(1, records=10, table=table)
    assert found[0].epsilon_release == float(certify(table).epsilon_record or 0) < 0.81
    for other in (ready_table("1", 1), ready_table("1", "all"), ready_table("1.6", 1, "stairs")):
        with pytest.raises(InputError, match="is to be a rows table"):
            compare(1, table=other)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"epsilon": 0}, "privacy budget"),
        ({"epsilon": 1, "records": 1}, "records is 1"),
        ({"epsilon": 1, "devices": 1.5}, "devices is 1.5"),
        ({"epsilon": 1, "records": 40_000}, "too many to compare"),
        ({"epsilon": "0.01", "records": 1000}, "too small"),
    ],
)
def test_bad_input_is_one_sentence(given, said: str) -> None:
    with pytest.raises(InputError, match=said):
        compare(**given)
