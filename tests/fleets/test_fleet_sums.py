"""Sums of a fleet: none passes its 64 bits unseen, days add up beyond them, and altered ones are told."""

import itertools
import json
import random
import sqlite3
import zlib
from dataclasses import replace
from typing import Any

import fleet_standin
import numpy as np
import pytest

from sensorsim._util.errors import InputError
from sensorsim.device.firmware import Firmware
from sensorsim.device.sketches import Sketch
from sensorsim.fleets import estimates as fleet_estimates
from sensorsim.fleets import life, simulation
from sensorsim.fleets.counts import OUTCOMES, Counts, begins, find_inconsistency, total
from sensorsim.fleets.estimates import MOST_ESTIMATES, estimates, number_of
from sensorsim.fleets.fleet_result import FleetResult
from sensorsim.fleets.settings import People, Settings
from sensorsim.noise.noise_table import certified, make_table, ready_table

STAIRS = Firmware(make_table("stairs", "0.02", 14, "all"))  # of wide noise: its values are millions
LIMIT = STAIRS.arguments["limit"]
ONE = 2**15


def of_stairs(**others: Any) -> Settings:
    return fleet_standin.settings(firmware=STAIRS, **others)


# ── 64 bits ──


@pytest.mark.parametrize("often", [1, 24])
def test_fleets_whose_squares_could_pass_64_bits_are_refused(often: int) -> None:
    most = (2**63 - 1) // (often * LIMIT**2)
    assert most * often * LIMIT**2 < 2**63 <= (most + 1) * often * LIMIT**2 and most < 10**6
    of_stairs(devices=most, days=36_525, records_per_day=often)  # days are kept apart
    with pytest.raises(InputError, match=f"may pass 2.63, .* up to {LIMIT}; give at most {most} devices, or fewer"):
        of_stairs(devices=most + 1, days=1, records_per_day=often)


def test_where_no_device_is_allowed_there_are_too_many_records() -> None:
    firmware = Firmware(make_table("stairs", "0.02", 1), sketch=Sketch.of([0.5, 0.25], 1.5, 3))
    people = People.of(("a", "b"), np.full((4, 2), 0.25), range(4), "made up")
    assert 36_525 * 60_000 * firmware.arguments["limit"] ** 2 >= 2**63
    with pytest.raises(InputError, match=r"give fewer records a day or days\.") as told:
        Settings(firmware, people, devices=1, days=36_525, records_per_day=60_000)
    assert "at most" not in str(told.value)


@pytest.mark.parametrize("kind", ["rows", "stairs"])
def test_a_sketch_adds_up_all_days(kind: str) -> None:
    table = certified(replace(ready_table("1.6", 1, kind), features=1))
    made: dict[str, Any] = {"people": People.of(("a", "b"), np.full((4, 2), 0.25), range(4), "made up")}
    firmware = Firmware(table, sketch=Sketch.of([0.5, 0.25], 1.5, 3), budget_epsilon="1000")
    largest = max(firmware.arguments.get("limit", 0) ** 2, ONE)  # a square, or x in Q15
    most = (2**63 - 1) // (1000 * 36_525 * largest)
    if most < 10**9:
        with pytest.raises(InputError, match=f"give at most {most} devices, or fewer records a day or days"):
            Settings(firmware, devices=most + 1, days=36_525, records_per_day=1000, **made)
    Settings(firmware, devices=min(most, 10**9), days=36_525, records_per_day=1000, **made)


def test_totals_of_any_size() -> None:
    draws = random.Random(1)
    rows = [[draws.randrange(-(2**63), 2**63) for _ in range(3)] for _ in range(500)]
    whole = np.array(rows, np.int64)
    assert total(whole).tolist() == [sum(row[i] for row in rows) for i in range(3)]
    assert total(whole[:, 1]) == sum(row[1] for row in rows) and type(total(whole[:, 1])) is int
    top = np.full((36_525, 2), 2**63 - 1, np.int64)
    assert total(top).tolist() == [36_525 * (2**63 - 1)] * 2


def test_days_that_add_up_beyond_64_bits() -> None:
    """Each day is right for itself; over all of them squares are more than 2^63."""
    firmware, days = Firmware(ready_table("1.6", 1, "stairs")), 365
    limit = firmware.arguments["limit"]
    count = min(10**9, (2**63 - 1) // limit**2)
    settings = fleet_standin.settings(firmware=firmware, devices=count, days=days)
    squares, counts = count * (limit - 1) ** 2, Counts.empty(settings)
    counts.tally[...] = count, count * 5, squares
    counts.records[:], counts.truth[:], counts.behind[:] = count, count * ONE // 4, count * ONE // 4
    assert squares < 2**63 < days * squares
    found = estimates(settings, counts, days)[13]
    assert found.count == days * count and found.mean == pytest.approx(float(firmware.table.estimate(5)))
    assert found.truth == found.truth_of_records == 0.25
    seen: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        inner = fleet_estimates.received
        patch.setattr(fleet_estimates, "received", lambda of, tally: seen.append(tally) or inner(of, tally))
        estimates(settings, counts, days)
    assert seen[0].tolist() == [[days * count, days * count * 5, days * squares]] * 14


# ── energy ──


def test_bins_of_energy_follow_each_other() -> None:
    """512 of one step, then 256 in each octave: none is wider than 1/256 of where it begins."""
    edges = [begins(place) for place in range(4097)]
    assert edges[:513] == list(range(513)) and edges[512 + 256] == 1024 and edges[-1] == 512 * 2**14
    widths = [after - before for before, after in itertools.pairwise(edges)]
    assert all(256 * width <= edge for edge, width in zip(edges[512:-1], widths[512:], strict=True))
    assert min(widths) == 1


# ── how many estimates ──


def test_estimates_that_would_take_hours_are_refused_before() -> None:
    settings = fleet_standin.settings(days=36_525)
    least = next(every for every in range(1, 100) if -(-36_525 // every) * 14 <= MOST_ESTIMATES)
    with pytest.raises(InputError, match=rf"511350 estimates.*every {least}\."):
        number_of(settings, 1)
    assert number_of(settings, least) == -(-36_525 // least) * 14
    with pytest.raises(InputError, match="511350 estimates"):
        FleetResult(settings, Counts.empty(fleet_standin.settings()), 1)


# ── altered files ──

SETTINGS = fleet_standin.settings()
WHOLE = fleet_standin.run_batch(SETTINGS, 0, SETTINGS.devices)


def edited(name: str, change: Any) -> Counts:
    made = Counts(**{each: array.copy() for each, array in WHOLE.arrays().items()})
    change(getattr(made, name))
    return made


def put(place: Any, value: int) -> Any:
    return lambda array: array.__setitem__(place, value)


def more(outcome: str, by: int = 1) -> Any:
    return lambda array: array.__setitem__(OUTCOMES.index(outcome), array[OUTCOMES.index(outcome)] + by)


ALTERED = {
    "a tally with a million more": ("tally", lambda array: array.__iadd__(10**6)),
    "one value more": ("tally", lambda array: array.__setitem__((0, 0, 0), array[0, 0, 0] + 1)),
    "a tally below zero": ("tally", put((0, 0, 0), -5)),
    "a huge tally": ("tally", put((0, 0, 0), 2**62)),
    "two that wrap": ("tally", put((0, slice(0, 4), 0), 2**62)),
    "a truth too large": ("truth", put((1, 1), SETTINGS.devices * ONE + 1)),
    "a truth below zero": ("truth", put((1, 1), -1)),
    "a truth of values": ("behind", put((0, 0), SETTINGS.devices * ONE + 1)),
    "a record more": ("records", put(1, SETTINGS.devices + 1)),
    "a cut more": ("outcomes", more("cut")),
    "a packet more": ("outcomes", more("released")),
    "a packet lost more": ("outcomes", more("lost")),
    "records": ("outcomes", more("records")),
    "many resets": ("outcomes", more("resets", SETTINGS.devices * SETTINGS.days + 1)),
    "all stuck": ("outcomes", more("stuck devices", SETTINGS.devices + 1)),
    "a device more": ("spent", put(0, 1000)),
    "bins that cancel": ("energy", put(slice(0, 2), [10**6, -(10**6)])),
    "more packets than records": ("worst", put(1, SETTINGS.days + 1)),
}


def test_sums_of_the_stand_in_are_sound() -> None:
    assert find_inconsistency(SETTINGS, WHOLE, SETTINGS.devices) is None


@pytest.mark.parametrize("what", ALTERED)
def test_altered_sums_are_told(what: str) -> None:
    assert find_inconsistency(SETTINGS, edited(*ALTERED[what]), SETTINGS.devices) is not None


@pytest.mark.parametrize(
    "sums, sound",
    [
        ((2, -5, 17), True),
        ((1, -LIMIT, LIMIT**2), True),
        ((0, 1, 0), False),
        ((2, 2 * LIMIT + 1, LIMIT**2), False),
        ((2, 5, 4), False),
        ((1, 0, LIMIT**2 + 1), False),
        ((1, 3, -1), False),
    ],
)
def test_sums_of_stairs(sums: tuple[int, int, int], sound: bool) -> None:
    """Count, sum and squares: sums may be below zero, and squares go with them."""
    settings = of_stairs(devices=10, days=1)
    counts = Counts.empty(settings)
    counts.tally[0] = sums
    released = {"records": 10, "passed over": 10 - sums[0], "released": sums[0], "received": sums[0]}
    for name, number in released.items():
        counts.outcomes[OUTCOMES.index(name)] = number
    counts.records[0] = counts.spent[0] = counts.energy[0] = 10
    assert (find_inconsistency(settings, counts, 10) is None) == sound


def test_a_file_with_altered_sums_is_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "run_batch", fleet_standin.run_batch)
    path = tmp_path / "f.sqlite"
    simulation.simulate(SETTINGS, path)
    changed = zlib.compress((WHOLE.tally + 1).tobytes())
    with sqlite3.connect(path) as database:
        database.execute("UPDATE sums SET data = ? WHERE name = 'tally'", (changed,))
    database.close()
    with pytest.raises(InputError, match=r"f.sqlite is damaged \(values that are not those of its packets\)"):
        simulation.simulate(SETTINGS, path)


# ── what differs ──


@pytest.mark.parametrize("texts", [("5", "5.0", "5.00", "+5", "05"), ("50", "5e1", "50.0"), ("0.5", ".5", "5E-1")])
def test_one_budget_however_it_is_written(texts: tuple[str, ...]) -> None:
    table = ready_table("0.1", 1)
    made = [fleet_standin.settings(firmware=Firmware(table, budget_epsilon=text)) for text in texts]
    assert len({each.digest for each in made}) == 1 and json.loads(json.dumps(made[0].to_dict()))
