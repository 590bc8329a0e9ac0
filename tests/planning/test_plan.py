"""What a plan says of designs, intervals and budgets, against references that share no code with it."""

import math
import re
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from sensorsim._util.errors import InputError
from sensorsim.accounting.composition import of_releases
from sensorsim.device.schedule import Schedule
from sensorsim.noise.noise_table import READY_EPSILONS, make_table, ready_table
from sensorsim.planning import Asked, plan
from sensorsim.planning.estimands import ESTIMANDS, ROWS, mean_count, mean_half, packets, value_sd
from sensorsim.planning.person_epsilon import fewest_packets, group_epsilon, most_anywhere, most_releases
from sensorsim.planning.plan_text import plan_text
from sensorsim.planning.solve import best_releases, choose_design, divide_budget, settle, solve, value_variance


def one_bit(epsilon, features=1):
    return make_table("rows", epsilon, features, 1, symbols=2)


# ── the interval ──


@pytest.mark.parametrize("epsilon", ["0.3", "1", "2.18"])
@pytest.mark.parametrize("count, expect", [(40, 0.5), (1166, 0.5), (1166, 0.2), (30_001, 0.9)])
def test_the_interval_is_clopper_and_pearsons(epsilon, count, expect):
    """One bit is a coin whose chance is a straight line in the mean; scipy's exact test has the coin's limits.

    Between two whole numbers of ones it lies between theirs.
    """
    from scipy.stats import binomtest

    table = one_bit(epsilon)
    (_, low), (_, high) = ((row[0] / 2**16, row[1] / 2**16) for row in table.rows.all_counts())
    chance = low + expect * (high - low)
    halves = []
    for ones in (math.floor(chance * count), math.floor(chance * count) + 1):
        limits = binomtest(ones, count).proportion_ci(0.95, "exact")
        ends = [min(1.0, max(0.0, (limit - low) / (high - low))) for limit in limits]
        halves.append((ends[1] - ends[0]) / 2)
    share = chance * count - math.floor(chance * count)
    expected = (1 - share) * halves[0] + share * halves[1]
    assert mean_half(table, count, expect) == pytest.approx(expected, rel=1e-6)


def test_the_standard_deviation_is_that_of_the_worst_people():
    """All people of two kinds, of whatever x, that have the mean: none is worse, and one is as bad."""
    table = ready_table("1.6", 1)
    values = table.estimate(np.arange(table.symbols))
    for mean in (0.5, 0.25, 0.1):
        worst = 0.0
        for a, b in product(np.linspace(0, mean, 33), np.linspace(mean, 1, 33)):
            weight = (mean - a) / (b - a) if b > a else 0.0
            law = sum(share * chances(table, x) for share, x in ((1 - weight, a), (weight, b)))
            worst = max(worst, float(law @ (values - mean) ** 2))
        assert value_sd(table, mean) == pytest.approx(math.sqrt(worst), rel=1e-3)


def chances(table, x):
    _, counts = table.distribution(round(x * 2**15))
    return counts / counts.sum()


@pytest.mark.parametrize("epsilon", READY_EPSILONS)
def test_no_ready_table_beats_one_bit_for_the_mean_of_people(epsilon):
    assert value_sd(one_bit(epsilon)) <= 1.001 * value_sd(ready_table(epsilon, 1))


def test_the_fewest_values_are_the_fewest():
    table = one_bit("1")
    count = mean_count(table, 0.05)
    assert mean_half(table, count) <= 0.05 < mean_half(table, count - 1)


def test_packets_are_those_of_the_schedule():
    """Over whole periods every device has exactly what its budget pays for."""
    schedule = Schedule(10, 3)
    seen = sum(schedule.due(serial, epoch, slot) for serial in range(20) for epoch in (4, 5) for slot in range(10))
    assert packets(20, 20, 10, schedule.allowed) == seen
    assert packets(20, 20, 10, schedule.allowed, loss=0.25) == Fraction(3, 4) * seen


# ── the design ──


def foretold(budget, parts):
    """The variance of a mean of one-bit values, from the mechanism's two probabilities."""
    high = 1 / (1 + math.exp(-min(budget / parts, 8)))
    return 0.25 / (2 * high - 1) ** 2 / parts


@pytest.mark.parametrize("budget", ["0.1", "1", "3", "3.2", "7", "20", "100", "900"])
@pytest.mark.parametrize("n, days", [(1, 5), (3, 4), (14, 30)])
def test_no_other_design_has_a_narrower_interval(budget, n, days):
    found = choose_design(Asked(features=n, budget_epsilon=budget, budget_days=days))
    every = [foretold(float(budget), r * k) for r in range(1, days + 1) for k in range(1, n + 1)]
    assert foretold(float(budget), found.releases * found.k) <= min(every) * (1 + 1e-12)
    assert found.releases * found.epsilon <= Decimal(budget)


@pytest.mark.parametrize("goal, budget", [("covariance", 100), ("covariance", 300), ("mean", 300), ("mean", 11)])
def test_rows_are_divided_as_well_as_can_be(goal, budget):
    """The promise of a design is closer at a smaller share, so the variance jumps: every count is tried here."""
    spread = ESTIMANDS[goal].spread
    found = best_releases(ROWS, spread, budget, 400)
    every = [value_variance(ROWS, budget / count, spread) / count for count in range(1, 401)]
    assert every[found - 1] == min(every)


def test_a_part_of_a_budget_is_never_too_much():
    for budget, parts in product(("1", "0.7", "900", "0.0123456789"), (2, 3, 7, 30, 999)):
        part = divide_budget(Decimal(budget), parts)
        assert 0 <= Fraction(Decimal(budget)) - parts * Fraction(part) <= Fraction(Decimal(budget)) / 10**5


# ── what is left open ──

BASE = {"features": 1, "accuracy": 0.03}
STEPS = {"devices": -1, "every": -1, "budget_epsilon": Decimal("-0.001"), "budget_days": 1}


@pytest.mark.parametrize("missing", STEPS)
def test_what_is_solved_for_is_just_enough(missing):
    """A value is of one device in so many: with a few devices less, one value less arrives."""
    found = solve(Asked(**BASE, **{missing: None}))
    value = getattr(found.asked, missing)
    assert found.half <= 0.03
    steps = 30 if missing == "devices" else 1  # of which a week has seven
    worse = settle(found.asked.with_(**{missing: value + steps * STEPS[missing]}))
    assert worse.half > 0.03


def test_more_records_a_day_help_where_the_budget_pays_for_them():
    asked = {"features": 1, "budget_epsilon": 40, "budget_days": 2, "every": 2, "devices": 1000}
    two = solve(Asked(**asked, records_per_day=2)).half
    found = solve(Asked(**asked, accuracy=two, records_per_day=None))
    assert found.asked.records_per_day == 2


def test_a_refusal_says_what_would_do():
    with pytest.raises(InputError) as refused:
        plan(Asked(columns=("TotalSteps",), accuracy=0.02))
    words = str(refused.value).replace(",", "").split()
    devices, days = int(words[words.index("takes") + 1]), int(words[words.index("over") + 1])
    epsilon = words[words.index("epsilon") + 1]
    for way in ({"devices": devices}, {"budget_epsilon": epsilon}, {"every": days}):
        assert plan(Asked(columns=("TotalSteps",), accuracy=0.02, **way)).half <= 0.02


def test_a_refusal_shows_the_digits_that_it_is_about():
    half = settle(Asked()).half
    with pytest.raises(InputError) as refused:
        plan(Asked(accuracy=half * (1 - 1e-6)))
    reached, wanted = re.findall(r"±([\d.]+) %", str(refused.value))
    assert float(reached) > float(wanted) == pytest.approx(100 * half, rel=1e-5)
    assert ESTIMANDS["covariance"].format_pair(0.1, 0.09999) == ("0.1 of a correlation", "0.09999")
    assert ESTIMANDS["covariance"].format_pair(0.1000001, 0.1) == ("0.1000001 of a correlation", "0.1")


@pytest.mark.parametrize("missing", ["records_per_day", "budget_days", "budget_epsilon"])
def test_what_nothing_of_reaches_is_refused_with_ways_out(missing):
    with pytest.raises(InputError, match=r"^no .* reaches ±1 %: it takes .* devices"):
        plan(Asked(features=1, devices=20, accuracy=0.01, **{missing: None}))


# ── what is protected ──


def test_a_year_of_releases_a_day():
    """The figures that this was built for: 1.6 a day is 584 in a year, 459 at 1e-6; 0.1 a day 36.5, and 10.3."""
    for epsilon, basic, at_delta in (("1.6", 584, 459), ("0.1", 36.5, 10.3)):
        found = of_releases(ready_table(epsilon, 1), 365, 1e-6)
        assert found[0] == pytest.approx(basic, rel=1e-3) and found[1] == pytest.approx(at_delta, rel=5e-3)


def test_a_few_releases_against_their_two_laws():
    """Randomised response a few times: delta at epsilon, summed over how many answers speak for either input."""
    table, times, delta = one_bit("0.5"), 12, 1e-3
    p = 1 / (1 + math.exp(-float(table.certificate.epsilon_record)))
    _, found = of_releases(table, times, delta)

    def at(epsilon):
        chance = [(math.comb(times, i), p**i * (1 - p) ** (times - i), p ** (times - i) * (1 - p) ** i)
                  for i in range(times + 1)]  # fmt: skip
        return sum(many * max(0.0, a - math.exp(epsilon) * b) for many, a, b in chance)

    assert at(found) <= delta < at(found - 0.01)


def most_in_a_row(slots, allowed):
    """For every number of records in a row the most releases of one period: all turns, all picks, by brute force."""
    ends = [j * slots // allowed for j in range(allowed + 1)]
    strata = [range(a, b) for a, b in pairwise(ends)]
    most = [0] * (slots + 1)
    for turn, picks in product(range(slots), product(*strata)):
        due = sorted((pick - turn) % slots for pick in picks)
        for first in range(slots):
            for last in range(first, slots):
                inside = sum(first <= slot <= last for slot in due)
                most[last - first + 1] = max(most[last - first + 1], inside)
    return most


@pytest.mark.parametrize("period, often, allowed", [(6, 1, 1), (3, 2, 2), (4, 2, 3), (5, 1, 5), (7, 1, 4), (1, 1, 1)])
def test_the_most_releases_are_met_and_never_passed(period, often, allowed):
    """Every turn and pick of the schedule in every period, and every record that the days may begin with."""
    slots = period * often
    most, schedule = most_in_a_row(slots, allowed), Schedule(slots, allowed)

    def spent(start, records):
        found, slot = 0, start
        while slot < start + records:
            end = min(start + records, (slot // slots + 1) * slots)
            found, slot = found + most[end - slot], end
        return found

    for days in (1, 2, 4, 7, 15):
        assert most_releases(schedule, period, days) == spent(0, days * often)
        assert most_anywhere(schedule, period, days) == max(spent(start, days * often) for start in range(slots))


@pytest.mark.parametrize("slots, allowed", [(24, 5), (30, 1), (17, 7)])
def test_the_kernel_never_passes_the_most(slots, allowed):
    """Days of one record, begun with any of them."""
    schedule = Schedule(slots, allowed)
    for serial in range(8):
        due = [schedule.due(serial, epoch, slot) for epoch in (3, 4, 5) for slot in range(slots)]
        for records in (1, 2, 5, slots, slots + 3):
            seen = max(sum(due[first : first + records]) for first in range(len(due) - records))
            assert seen <= most_anywhere(schedule, slots, records)


def test_the_epsilon_of_a_month_is_that_of_any_month():
    """One release a month of the budget: any 30 days may hold two."""
    found = plan(Asked())
    month = next(one for one in found.protects.spent if one.name == "month")
    once = found.protects.spent[0].basic
    assert (month.releases, month.aligned_releases) == (2, 1)
    assert month.basic == pytest.approx(2 * once) and month.aligned_basic == once
    assert month.at_delta <= month.basic
    told = {line.name: line.value for line in found.lines}
    assert told["epsilon of a person in a month, basic"] == month.basic
    assert told["epsilon of a person in a month, aligned, basic"] == once


# ── shuffled ──


def test_shuffling_is_told_apart():
    once = plan(Asked()).protects
    assert once.shuffled.aligned_epsilon is not None and once.shuffled.aligned_epsilon < once.spent[0].basic
    assert once.spent == plan(Asked(devices=50_000)).protects.spent  # devices change the shuffled one alone
    assert plan(Asked(budget_days=1)).protects.shuffled.epsilon is None  # seven packets of a person in a week


def test_weeks_that_cross_a_budget_period_have_two_packets_of_a_person():
    found = plan(Asked())
    one = found.protects.shuffled
    assert (one.of_a_person, one.aligned_of_a_person) == (2, 1)
    assert one.epsilon is not None and one.epsilon > 2 * one.aligned_epsilon
    assert "2 of a person" in plan_text(found) and "by chance" in plan_text(found)
    assert any("lost by chance" in note for note in found.to_dict()["notes"])


def test_fewer_packets_may_come_than_are_expected():
    """Of 2,000 weeks hardly any has fewer packets than the shuffled epsilon is of; half have fewer than expected."""
    found = plan(Asked(features=1))
    count = found.protects.shuffled.packets
    seen = np.random.default_rng(1).binomial(5000, 7 / 30, 2000)
    assert (seen < count).mean() < 1e-3 and (seen < found.settled.packets).mean() > 0.3
    assert fewest_packets(Fraction(1, 2)) == 0 and fewest_packets(Fraction(3)) == 1
    assert fewest_packets(Fraction(10**12)) == 10**8


@pytest.mark.parametrize("packets", [1, 2, 3])
def test_the_epsilon_of_some_packets_holds_for_randomised_response(packets):
    """All others have 0, the person goes from 0 to 1: the number of ones, with exact laws. More tells nothing more."""
    from scipy.stats import binom

    epsilon0, n, delta = 1.0, 400, 1e-4
    epsilon = group_epsilon(epsilon0, n, delta, packets)
    p = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    others = binom.pmf(range(n - packets + 1), n - packets, 1 - p)
    laws = [np.convolve(others, binom.pmf(range(packets + 1), packets, chance)) for chance in (1 - p, p)]
    for a, b in (laws, laws[::-1]):
        assert np.maximum(0, a - math.exp(epsilon) * b).sum() <= delta
    assert epsilon < packets * epsilon0
    assert packets == 1 or epsilon >= packets * group_epsilon(epsilon0, n, delta)
