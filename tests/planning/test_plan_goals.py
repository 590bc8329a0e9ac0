"""Plans for a model, what plans cost, and their figure."""

import math

import numpy as np
import pytest

from sensorsim._util.errors import InputError
from sensorsim.costing.chips import load_chips, load_parts
from sensorsim.costing.cost_report import cost
from sensorsim.noise.noise_table import ready_table
from sensorsim.planning import Asked, plan
from sensorsim.planning.plan_figure import curve, draw
from sensorsim.planning.plan_text import plan_text
from sensorsim.planning.synthetic_people import PEOPLE, made_people, simulate_model

# ── model ──


@pytest.mark.slow
def test_a_model_of_many_packets_comes_to_the_best_linear_map():
    """Principal components of the very people: nothing linear through as many numbers does better."""
    found = simulate_model(ready_table("6.4", 1), 400_000)
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
    same = simulate_model(found.table, 5000 * 7 // 30)
    assert told["R² of the model"] == same.r2 and told["accuracy of the model"] == same.accuracy
    assert f"column means {same.accuracy_of_means:.2f} %" in "\n".join(lines)
    assert found.to_dict()["model"]["data"] == same.data


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


# ── figure ──


@pytest.mark.parametrize("goal, times", [("mean", 1.03), ("covariance", 1.03)])
def test_the_lines_go_through_the_plan(goal, times):
    found = plan(Asked(goal=goal, devices=200_000))
    here, four = curve(found.asked, [200_000, 800_000])
    assert found.half / times < here < found.half * times
    if goal == "mean":
        assert four == pytest.approx(here / 2)
    else:  # what clipping takes stays
        assert here / 2 < four < here


def test_a_figure_is_the_same_bytes_each_time(tmp_path):
    found = plan(Asked(devices=50_000, accuracy=0.1))
    for name in ("a.svg", "b.svg", "c.png"):
        draw(found, str(tmp_path / name))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(InputError, match="not a figure"):
        draw(found, str(tmp_path / "d.txt"))
