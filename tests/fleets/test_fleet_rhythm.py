"""People whose days have a rhythm, on devices that release a few of their records: intervals hold for them too."""

from dataclasses import replace

import numpy as np
import pytest

from sensorsim.device import Firmware
from sensorsim.fleets.fleet_result import FleetResult
from sensorsim.fleets.life import run_batch
from sensorsim.fleets.settings import People, Settings
from sensorsim.noise.noise_table import certified, ready_table

DEVICES, WEEKS = 150, 200


@pytest.mark.slow  # compiles
@pytest.mark.parametrize("hours", [12, 8])
def test_intervals_hold_for_days_and_nights(hours: int) -> None:
    """A record an hour, 1 by day and 0 by night, 7 of the 168 of a week: were they a whole number of days apart, all of
    a device's would be of one hour, and a mean would be that of 150 draws and not of 1050. Noise is little."""
    table = certified(replace(ready_table("6.4", 1), features=1))
    firmware = Firmware(table, budget_epsilon=str(7 * table.epsilon), budget_days=7)
    x = (np.arange(24) < hours).astype(float)[:, None]
    settings = Settings(firmware, People.of(("awake",), x, np.zeros(24), "made up"), DEVICES, 7 * WEEKS, 24)
    assert (settings.slots.slots, settings.slots.allowed) == (168, 7)
    result = FleetResult(settings, run_batch(settings, 0, DEVICES), every=7)
    every = [one for one in result.estimates if one.whole]
    assert len(every) == WEEKS and {one.count for one in every} == {7 * DEVICES}
    assert all(one.truth == pytest.approx(hours / 24, abs=0.03) for one in every)
    for share in (result.coverage.share, result.coverage_of_records.share):
        assert share is not None and share >= 0.9
    # With all of a device's releases in one hour, means would be off by sqrt(7) times as much as by chance.
    of_chance = np.sqrt(hours / 24 * (1 - hours / 24) / (7 * DEVICES))
    assert result.error_sd is not None and 0.5 * of_chance < result.error_sd < 1.5 * of_chance
