"""What comes out of a fleet, from sums that are made here by obvious steps and not by the fleet's engine."""

import json
import math
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binomtest

from sensorsim._util.errors import InputError
from sensorsim.datasets.public_ranges import Range
from sensorsim.device.firmware import Firmware
from sensorsim.device.sketches import Sketch
from sensorsim.fleets.counts import OUTCOMES, Counts
from sensorsim.fleets.energy import Board
from sensorsim.fleets.estimates import Spread
from sensorsim.fleets.fleet_page import page
from sensorsim.fleets.fleet_result import FleetResult
from sensorsim.fleets.fleet_text import text
from sensorsim.fleets.settings import People, Prices, Settings
from sensorsim.noise.noise_table import certified, ready_table

ONE = 2**15
PRICES = Prices(release=1000, open=70, store=3, step=500)
BOARD = Board(PRICES, "a chip", "a radio", 1.0, 10.8)


class Made(NamedTuple):
    """A fleet, and everything that happened in it: what came as (day, feature, symbol, x), and x of all records."""

    settings: Settings
    counts: Counts
    came: list[tuple[int, int, int, int]]
    x: np.ndarray  # (days, devices, features), in 0 … 32768
    released: list[int]  # of each device


def chances_of(table: Any, x: int) -> np.ndarray:
    """Of the symbols at x, from the whole counts of the table's rows."""
    counts = np.array(table.rows.all_counts(), np.float64)
    place = x / ONE * (len(counts) - 1)
    row = min(int(place), len(counts) - 2)
    mixed = (1 - (place - row)) * counts[row] + (place - row) * counts[row + 1]
    return mixed / mixed.sum()


@cache
def made(epsilon: str = "3.2", devices: int = 150, days: int = 23, loss: float = 0.1, seed: int = 1) -> Made:
    """Every device releases one feature of three on two days of three; x is 0 or 1 for the first, uniform, constant."""
    draws = np.random.default_rng(seed)
    table = certified(replace(ready_table(epsilon, 1), features=3))
    firmware = Firmware(table, budget_epsilon=str(1000), budget_days=days)
    x = np.empty((days, devices, 3), np.int64)
    x[..., 0] = ONE * draws.integers(0, 2, (days, devices))
    x[..., 1] = draws.integers(0, ONE + 1, (days, devices))
    x[..., 2] = 9830
    ranges = (Range("steps", 0, 40000, "steps"), Range("b", 0, 1, ""), Range("c", 10, 20, "km"))
    people = People.of(("steps", "b", "c"), x[0] / ONE, np.arange(devices), "made up", ranges)
    settings = Settings(firmware, people, devices, days, prices=PRICES)
    counts, came, released = Counts.empty(settings), [], [0] * devices
    for day in range(days):
        for device in range(devices):
            counts.records[day] += 1
            counts.truth[day] += x[day, device]
            if draws.random() < 1 / 3:
                continue
            released[device] += 1
            feature = int(draws.integers(3))
            value = int(x[day, device, feature])
            symbol = int(draws.choice(len(table.rows.values()), p=chances_of(table, value)))
            if draws.random() >= loss:
                came.append((day, feature, symbol, value))
                counts.tally[day, feature, symbol] += 1
                counts.behind[day, feature] += value
    for number in released:
        counts.spent[number // settings.spent_step] += 1
        counts.energy[(1000 * number + 70 + 3 * number) // PRICES.step] += 1
    counts.worst[0] = max(released)
    told = {"records": days * devices, "released": sum(released), "received": len(came), "opens": devices}
    told |= {"passed over": days * devices - sum(released), "lost": sum(released) - len(came), "stores": sum(released)}
    for name, number in told.items():
        counts.outcomes[OUTCOMES.index(name)] = number
    return Made(settings, counts, came, x, released)


def result_of(found: Made, every: int = 7) -> FleetResult:
    return FleetResult(found.settings, found.counts, every, BOARD)


# ---- estimates


def test_every_estimate_and_truth() -> None:
    """By feature and seven days, from the lists of what was drawn."""
    found = made()
    result, values = result_of(found), [float(value) for value in found.settings.firmware.table.rows.values()]
    assert len(result.estimates) == 3 * 4
    for one in result.estimates:
        first = one.first_day - 1
        days = range(first, min(first + 7, 23))
        own = [(symbol, x) for day, feature, symbol, x in found.came if day in days and feature == one.feature]
        assert (one.days, one.whole, one.count) == (len(days), len(days) == 7, len(own))
        assert one.mean == pytest.approx(np.mean([values[symbol] for symbol, _ in own]), abs=1e-12)
        assert one.truth == pytest.approx(found.x[days, :, one.feature].mean() / ONE, abs=1e-12)
        assert one.truth_of_records == pytest.approx(np.mean([x for _, x in own]) / ONE, abs=1e-12)
        assert one.covered == (one.low <= one.truth <= one.high)
        assert one.covered_of_records == (one.low_of_records <= one.truth_of_records <= one.high_of_records)
        assert one.low <= one.low_of_records + 1e-6 and one.high_of_records <= one.high + 1e-6
        assert one.half == (one.high - one.low) / 2


def test_totals_leave_short_periods_out() -> None:
    result = result_of(made())
    whole = [one for one in result.estimates if one.first_day < 22]
    assert len(whole) == 9 and result.coverage.intervals == 12
    assert result.half == pytest.approx(np.mean([one.half for one in whole]))
    assert result.count == pytest.approx(np.mean([one.count for one in whole]))
    errors = [one.mean - one.truth for one in whole]
    assert result.error_sd == pytest.approx(math.sqrt(np.mean(np.square(errors))))
    steps = result.features[0]
    assert (steps.periods, steps.whole_periods) == (4, 3)
    assert steps.half == pytest.approx(np.mean([one.half for one in whole[::3]]))
    assert steps.half_in_unit == pytest.approx(40000 * steps.half)
    assert result_of(made(), every=30).half is None


def test_the_spread_that_is_foretold() -> None:
    """For x of 0 and 1, which are the worst people at epsilon 3.2: noise at both ends, and what 0 and 1 differ by."""
    found = made()
    table = found.settings.firmware.table
    values = np.array([float(value) for value in table.rows.values()])
    noise = [chances_of(table, end) @ (values - end / ONE) ** 2 for end in (0, ONE)]
    for one in result_of(found).estimates[::3]:
        m = one.truth
        assert one.foretold_sd**2 * one.count == pytest.approx(
            (1 - m) * noise[0] + m * noise[1] + m * (1 - m), rel=1e-6
        )


def test_coverage_has_the_error_of_a_binomial_share() -> None:
    coverage = result_of(made(), every=1).coverage
    limits = binomtest(coverage.covered, coverage.intervals).proportion_ci(0.95, "exact")
    assert coverage.limits == pytest.approx((limits.low, limits.high), abs=1e-9)


def test_stairs_are_summed() -> None:
    """Three numbers of a feature in place of symbols: count, sum, sum of squares."""
    table = ready_table("1.6", 1, "stairs")
    people = People.of([f"c{i}" for i in range(14)], np.full((4, 14), 0.25), range(4), "made up")
    settings = Settings(Firmware(table), people, 4, 1)
    counts = Counts.empty(settings)
    assert counts.tally.shape == (1, 14, 3)
    values = [5000, -3000, 100]
    counts.tally[0, 3] = len(values), sum(values), sum(value**2 for value in values)
    counts.records[0], counts.truth[0] = 4, 4 * ONE // 4
    found = FleetResult(settings, counts).estimates[3]
    assert found.mean == pytest.approx(np.mean([float(table.estimate(value)) for value in values]))
    assert found.count == 3 and found.truth == 0.25


def test_a_sketch() -> None:
    """One estimate over all days, of u·R²; directions are put together."""
    table, sketch = certified(replace(ready_table("1.6", 1), features=1)), Sketch.of([0.5, 0.25], 1.5, 3)
    people = People.of(("a", "b"), np.full((4, 2), 0.25), range(4), "made up")
    settings = Settings(Firmware(table, sketch=sketch), people, 4, 10)
    counts = Counts.empty(settings)
    symbols = [0, 2, 2, 1, 0, 3]
    for direction, symbol in enumerate(symbols):
        counts.tally[0, direction, symbol] += 1
    counts.behind[0, :6] = ONE // 2
    counts.records[:7], counts.truth[:7, 0] = 1, ONE // 4
    counts.outcomes[OUTCOMES.index("received")] = 6
    result, square = FleetResult(settings, counts), sketch.root**2
    (found,) = result.estimates
    values = [float(value) for value in table.rows.values()]
    assert found.mean == pytest.approx(square * np.mean([values[symbol] for symbol in symbols]))
    assert (found.count, found.name, found.days) == (6, "sketch", 10)
    assert found.truth == pytest.approx(square / 4) and found.truth_of_records == pytest.approx(square / 2)
    assert 0 <= found.low <= found.high <= square and found.covered
    assert "over 10 days" in text(result) and page(result)
    # What is not released has no direction, so nothing is known of it: the truth is that of released records.
    assert "of all released records" in text(result) and "people's" not in text(result)
    assert result.to_dict()["people_are"] == "all released records"
    titles = " ".join(axes.get_title(loc="left") for axes in page(result).axes)
    assert "of all released records" in titles and "people" not in titles


# ---- people and devices


def test_what_people_spent() -> None:
    found = made()
    result, ordered = result_of(found), sorted(found.released)
    rank = {"least": 0, "5 %": 7, "median": 74, "95 %": 142, "most": 149}  # of 150, from 0 on
    assert result.spent.quantiles() == {name: ordered[place] for name, place in rank.items()}
    epsilon = float(found.settings.firmware.epsilon)
    assert result.wear.median_basic == pytest.approx(ordered[74] * epsilon)
    assert result.to_dict()["spend"]["people"]["most"]["epsilon"] == pytest.approx(ordered[-1] * epsilon)


def test_a_coarse_histogram_never_says_too_little() -> None:
    numbers = np.random.default_rng(3).integers(0, 1000, 501)
    for step in (1, 7, 40):
        spread = Spread(np.bincount(numbers // step), step)
        for share in (0.0, 0.05, 0.5, 0.95, 1.0):
            true = np.sort(numbers)[max(0, math.ceil(share * 501) - 1)]
            assert true <= spread.quantile(share) < true + step


def test_a_budget_that_is_not_kept_is_told() -> None:
    found = made()
    firmware = Firmware(found.settings.firmware.table, budget_epsilon="64", budget_days=23)  # 20 releases
    settings = Settings(firmware, found.settings.people, 150, 23, prices=PRICES)
    counts = Counts.empty(settings)
    counts.worst[0] = 20
    assert not FleetResult(settings, counts).over_budget
    assert "OVER BUDGET" not in text(result_of(found))
    for worst in ((21, 20), (20, 21)):  # of a journal, of packets that were sent
        counts.worst[:] = worst
        result = FleetResult(settings, counts)
        told = result.to_dict()["spend"]
        assert result.over_budget and told["over_budget"] and "OVER BUDGET" in text(result)
        epsilon = float(firmware.epsilon)
        assert (told["most_in_a_period"], told["most_sent_in_a_period"]) == tuple(each * epsilon for each in worst)


def test_energy() -> None:
    found = made()
    result = result_of(found)
    own = [1000 * number + 70 + 3 * number for number in found.released]
    assert result.used is not None and result.used.mean == pytest.approx(np.mean(own))
    for share, place in ((0.0, 0), (0.5, 74), (1.0, 149)):
        assert sorted(own)[place] <= result.used.spread.quantile(share) < sorted(own)[place] + PRICES.step
    told = result.to_dict()["energy"]
    assert told["mean_uJ_per_day"] == pytest.approx(np.mean(own) / 1000 / 23)
    assert told["share_of_battery"] == pytest.approx(np.mean(own) / 1e9 / 10.8)
    free = FleetResult(Settings(found.settings.firmware, found.settings.people, 150, 23), found.counts)
    assert free.used is None and free.to_dict()["energy"] is None and "energy" not in text(free)


def test_what_became_of_records() -> None:
    found = made()
    shares = {one.name: (one.count, one.of, one.share) for one in result_of(found).outcomes}
    sent = sum(found.released)
    assert shares["released"] == (sent, "records", sent / (150 * 23))
    assert shares["received"] == (len(found.came), "released", len(found.came) / sent)
    assert shares["opens"] == (150, "devices", 1.0)
    assert list(shares) == list(OUTCOMES)


# ---- forms


def test_forms() -> None:
    result = result_of(made())
    told = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert (told["simulation"], told["private"], told["schema_version"]) == (True, False, 1)
    assert len(told["estimates"]) == 12 and told["features"][2]["unit"] == "km"
    frame = result.to_frame()
    assert len(frame) == 12 and list(frame.columns) == list(result.rows()[0])
    assert Counter(row["name"] for row in result.rows()) == {"steps": 4, "b": 4, "c": 4}
    assert len(repr(result)) < 2000
    with pytest.raises(InputError, match="estimate of 0 days"):
        FleetResult(result.settings, result.counts, 0)


def nothing(loss: bool) -> FleetResult:
    """All packets lost, or no device ever opened."""
    settings = made().settings
    counts = Counts.empty(settings)
    counts.records[:], counts.truth[:] = 150, 75 * ONE
    counts.outcomes[OUTCOMES.index("records")] = 150 * 23
    for name in ("released", "lost") if loss else ("no entropy",):
        counts.outcomes[OUTCOMES.index(name)] = 150 * 23
    counts.spent[0] = counts.energy[0] = 150
    return FleetResult(settings, counts, 7, BOARD)


@pytest.mark.parametrize("loss", [True, False])
def test_where_nothing_comes(loss: bool) -> None:
    result = nothing(loss)
    assert result.coverage.share is None and result.half == 0.5 and result.error_sd is None
    assert all((one.mean, one.covered, one.low, one.high) == (None, None, 0.0, 1.0) for one in result.estimates)
    json.dumps(result.to_dict(), allow_nan=False)
    assert "nothing came" in text(result) and max(map(len, text(result).split("\n"))) <= 80
    assert page(result)


def words_of(figure: Any) -> str:
    return " ".join(str(found.get_text()) for found in figure.findobj(lambda drawn: hasattr(drawn, "get_text")))


def one_device(spent: int, energy: int) -> FleetResult:
    """Over one day, with its number of releases and its bin of energy."""
    firmware = Firmware(made().settings.firmware.table, budget_epsilon="900", budget_days=1)
    settings = Settings(firmware, made().settings.people, 1, 1, records_per_day=281, prices=PRICES)
    counts = Counts.empty(settings)
    counts.spent[spent] = counts.energy[energy] = 1
    counts.records[:], counts.outcomes[: OUTCOMES.index("lost")] = 1, 1
    return FleetResult(settings, counts, 1, BOARD)


@pytest.mark.parametrize("spent, energy", [(0, 0), (1, 3), (281, 511), (200, 512), (5, 4000), (5, 4095)])
def test_ticks_of_histograms_can_be_told_apart(spent: int, energy: int) -> None:
    """However few devices there are, and however much they use."""
    drawn = page(one_device(spent, energy))
    assert "1 device over 1 day:" in drawn.get_suptitle() and "s over" not in drawn.get_suptitle()
    axis = drawn.axes[4].xaxis
    low, high = axis.get_view_interval()
    ticks = axis.get_major_formatter().format_ticks([at for at in axis.get_majorticklocs() if low <= at <= high])
    assert 2 <= len(set(ticks)) == len(ticks) <= 7 and max(map(len, ticks)) <= 8
    assert not any(word in "".join(ticks) for word in ("e", "+")) and axis.get_major_formatter().get_offset() == ""
    assert spends(drawn) == [(spent * 3.2, 1)]


def spends(drawn: Any) -> list[tuple[float, float]]:
    """Return value and height of every bar of the spends; check that each is thin, labels stand at values, all fit."""
    axes = drawn.axes[3]
    found = [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in axes.patches]
    assert all(bar.get_width() <= 3.2 / 4 for bar in axes.patches)
    values, (low, high) = [value for value, _ in found], axes.get_xlim()
    assert low < min(values) and max(values) < high
    ticks = dict(zip(axes.get_xticks(), axes.get_xticklabels(), strict=True))
    assert 1 <= len(ticks) <= 7 and all(min(abs(tick - value) for value in values) < 1e-9 for tick in ticks)
    assert all(float(label.get_text()) == pytest.approx(tick, rel=1e-3) for tick, label in ticks.items())
    return [(pytest.approx(value), height) for value, height in found]


def with_spends(people: dict[int, int], days: int = 1) -> Any:
    """Draw a page of people by their numbers of releases, of epsilon 3.2 each."""
    firmware = Firmware(made().settings.firmware.table, budget_epsilon="900", budget_days=1)
    settings = Settings(firmware, made().settings.people, sum(people.values()), days, 281, prices=PRICES)
    counts = Counts.empty(settings)
    for releases, number in people.items():
        counts.spent[releases // settings.spent_step] += number
    counts.records[:], counts.outcomes[: OUTCOMES.index("lost")] = 1, 1
    return page(FleetResult(settings, counts, 1, BOARD)), settings.spent_step


@pytest.mark.parametrize(
    "people", [{1: 30, 2: 20}, {0: 3, 2: 1}, {5: 1, 100: 7, 280: 2}, {n: n + 1 for n in range(281)}]
)
def test_a_spend_is_drawn_at_its_value(people: dict[int, int]) -> None:
    """Whole releases, so an epsilon between two of them is nobody's."""
    drawn, step = with_spends(people)
    assert step == 1 and spends(drawn) == [(releases * 3.2, number) for releases, number in people.items()]


def test_what_is_beyond_the_last_bin_is_said() -> None:
    result = one_device(1, 4095)
    assert "or more µJ" in text(result) and "and beyond" in words_of(page(result))
    assert result.to_dict()["energy"]["most_is_at_least"] is True
    assert text(result).startswith(" 1 device × 1 day,")
    plain = one_device(1, 4094)
    assert "or more" not in text(plain) and "and beyond" not in words_of(page(plain))
