"""What a plan foretells is what a fleet measures: half widths within 5 %, packets, and errors no larger than said."""

from dataclasses import replace

import pytest

from sensorsim.fleets import FleetResult, People, Settings, simulate
from sensorsim.planning import Asked, plan

STEPS = ("TotalSteps",)
MINUTES = ("TotalSteps", "LightlyActiveMinutes", "SedentaryMinutes", "Calories")
CASES = {
    "one release in 30 days": (Asked(columns=STEPS, devices=5000, budget_epsilon="1", budget_days=30), 84),
    "a release a day": (Asked(columns=STEPS, devices=2000, budget_epsilon="1", budget_days=1), 28),
    "several features": (Asked(columns=MINUTES, devices=20_000, budget_epsilon="2", budget_days=28), 84),
    "several releases": (Asked(columns=STEPS, devices=3000, budget_epsilon="12", budget_days=28), 84),
    "several records a day": (Asked(columns=STEPS, devices=3000, records_per_day=8, budget_days=7), 56),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_plan_foretells_the_fleet(case, tmp_path):
    asked, days = CASES[case]
    made = plan(asked)
    settings = Settings(
        made.settled.firmware,
        People.generated(asked.columns),
        devices=asked.devices,
        days=days,
        records_per_day=asked.records_per_day,
    )
    result = FleetResult(settings, simulate(settings, tmp_path / "fleet.sqlite"), every=asked.every)
    assert not result.over_budget
    for feature in result.features:
        weeks = [one for one in result.estimates if one.feature == feature.feature]
        truth = sum(one.truth for one in weeks) / len(weeks)
        foretold = plan(replace(asked, expect=truth, noise=made.table))
        assert feature.half == pytest.approx(foretold.half, rel=0.05), feature.name
        received = sum(one.count for one in weeks) / len(weeks)
        assert received == pytest.approx(foretold.settled.count, rel=0.05)
    assert result.coverage.share > 0.85
    assert result.error_sd < 1.2 * foretold.settled.sd
