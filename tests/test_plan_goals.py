"""Plans for a covariance and for a model, what they cost, and their figure."""

import math

import numpy as np
import pytest

from sensorsim.cost.chip_parts import load_parts
from sensorsim.cost.prices import load_chips
from sensorsim.cost.report import cost
from sensorsim.device.sketch import Sketch, sketch_records
from sensorsim.errors import InputError
from sensorsim.hospital.prior import FLAT_VARIANCE
from sensorsim.plan import Asked, plan
from sensorsim.plan.figure import curve, draw
from sensorsim.plan.model import PEOPLE, foretold, made_people
from sensorsim.plan.reached import ASSUMED_VARIANCE, correlation_count, correlation_half, correlation_sd
from sensorsim.plan.text import plan_text
from sensorsim.privacy.tables import ready_table

# ── covariance ──


@pytest.mark.parametrize("n, spread", [(4, 0.15), (8, 0.2)])
def test_the_error_of_a_correlation_is_met_by_least_squares(n, spread):
    """Packets of the real kernels, the plain regression on products of directions; noise dominates at epsilon 1.6.

    The noise of small squares is below that at the worst x: a few per cent. 50 runs of n(n-1)/2 entries have an error
    of 6 % and 3 % of their own.
    """
    table, records, runs = ready_table("1.6", 1), 6_000, 50
    rng = np.random.default_rng(5)
    x = np.clip(0.5 + spread * rng.standard_normal((records, n)), 0, 1)
    variance = float(x.var(axis=0).mean())
    sketch = Sketch.of([0.5] * n, 1.7 * math.sqrt(n * variance / 2), 11)
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    S = sketch.vectors().astype(float)
    products = np.stack([S[:, i] * S[:, j] * (1 if i == j else 2) for i, j in pairs], axis=1)
    whole, found = np.rint(x * 2**15).astype(np.uint16), []
    for seed in range(runs):
        number, y = sketch_records(whole, table, sketch, seed)
        square = table.estimate(y) * sketch.root**2
        A = products[number]
        found.append(np.linalg.solve(A.T @ A, A.T @ square))
    off = [place for place, (i, j) in enumerate(pairs) if i != j]
    measured = math.sqrt(float(np.var(found, axis=0, ddof=1)[off].mean())) / variance
    assert 0.82 < measured / correlation_sd(table, n, 2 * records, variance) < 1.1


def test_a_correlation_assumes_what_the_hospital_assumes():
    assert pytest.approx(FLAT_VARIANCE / 2) == ASSUMED_VARIANCE


def test_packets_for_a_correlation_are_the_fewest():
    table = ready_table("1", 1)
    count = correlation_count(table, 14, 0.1)
    assert correlation_half(table, 14, count) <= 0.1 < correlation_half(table, 14, count - 1)


def test_a_covariance_is_solved_for_and_one_feature_has_none():
    found = plan(Asked(goal="covariance", devices=None, accuracy=0.1))
    assert found.half <= 0.1 and found.table.release == 1 and found.solved_for == "devices"
    with pytest.raises(InputError, match="at least 2 features"):
        Asked(goal="covariance", features=1)


# ── model ──


def test_a_model_of_many_packets_comes_to_the_best_linear_map():
    """Principal components of the very people: nothing linear through as many numbers does better."""
    found = foretold(ready_table("6.4", 1), 400_000)
    x = made_people(14) / 2**15
    away = x - x.mean(axis=0)
    values = np.linalg.eigvalsh(away.T @ away / PEOPLE)
    best = 100 * (1 - values[: 14 - found.hidden].sum() / 14)
    assert best - 0.03 < found.accuracy <= best + 1e-6
    assert found.accuracy_of_means == pytest.approx(100 * (1 - values.sum() / 14))
    assert found.accuracy_of_half == pytest.approx(100 * (1 - ((x - 0.5) ** 2).mean()))
    assert found.r2 == pytest.approx(1 - (100 - found.accuracy) / (100 - found.accuracy_of_means))


def test_a_plan_for_a_model_has_what_it_must_beat():
    found = plan(Asked(goal="model"))
    lines = plan_text(found).split("\n")
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    told = {line.name: line.value for line in found.lines}
    same = foretold(found.table, 5000 * 7 // 30)
    assert told["R² of the model"] == same.r2 and told["accuracy of the model"] == same.accuracy
    assert f"column means {same.accuracy_of_means:.2f} %" in "\n".join(lines)
    assert found.to_dict()["model"]["data"] == same.data


def test_a_model_is_not_solved_for():
    with pytest.raises(InputError, match="not solved for"):
        Asked(goal="model", accuracy=0.1)


# ── costs ──


def test_the_energy_is_that_of_cost():
    """14 features by one bit are 25 bits, as the 27 of the sensor's own line: 4 bytes."""
    found = plan(Asked(battery_mah=200)).costs
    sensor = cost(n=14).record.costs["sensor"]
    assert found.bytes == sensor.bytes_sent == 4
    assert found.microjoule == pytest.approx(sensor.microjoule) and found.cycles == sensor.cycles
    assert found.microjoule_per_day == pytest.approx(sensor.microjoule / 30)
    joule = 200 * 3.6 * cost(n=14).record.chip.supply_V
    assert found.battery_share == pytest.approx(365 / 30 * sensor.microjoule / 1e6 / joule)
    assert found.battery_years == pytest.approx(joule / (sensor.microjoule / 30 / 1e6) / 365.25)


def test_more_features_cost_their_words_and_bytes():
    """All 14 features of every record: 20 bits before them and a bit each, 14 words in two blocks of 8."""
    found = plan(Asked(budget_epsilon=1000)).costs
    record = cost(n=14).record
    sensor = record.costs["sensor"]
    assert found.bytes == math.ceil((20 + 14) / 8) == 5
    parts = sensor.parts["arithmetic"], sensor.parts["random words"]
    assert found.cycles - sensor.cycles == pytest.approx(13 * parts[0].cycles + parts[1].cycles)
    more = 1000 * (found.microjoule - sensor.microjoule)
    assert more == pytest.approx(13 * parts[0].nJ + parts[1].nJ + record.radio.nJ_per_byte)


def test_a_chip_whose_memory_is_not_known_has_no_energy():
    chips = [chip.chip for chip in load_chips() if chip.cpu and load_parts(chip.chip)[1] is None]
    for chip in chips[:1]:
        found = plan(Asked(chip=chip, battery_mah=100))
        assert found.costs.microjoule is None and found.costs.battery_share is None
        assert "no energy is known" in plan_text(found)
    assert chips


def test_a_chip_that_is_not_known_is_refused_before_a_table_is_made():
    with pytest.raises(InputError, match="zx80"):
        plan(Asked(chip="zx80"))


# ── figure ──


@pytest.mark.parametrize("goal, times", [("mean", 1.03), ("covariance", 1.03)])
def test_the_lines_go_through_the_plan(goal, times):
    found = plan(Asked(goal=goal, devices=200_000))
    here, four = curve(found.asked, [200_000, 800_000])
    assert found.half / times < here < found.half * times
    assert four == pytest.approx(here / 2)


def test_a_figure_is_the_same_bytes_each_time(tmp_path):
    found = plan(Asked(devices=50_000, accuracy=0.1))
    for name in ("a.svg", "b.svg", "c.png"):
        draw(found, str(tmp_path / name))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(InputError, match="not a figure"):
        draw(found, str(tmp_path / "d.txt"))
