"""A fleet in batches: the same sums however it is divided and interrupted, and a file that is kept whole."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import tracemalloc
import zlib
from dataclasses import replace

import fleet_standin
import pytest

from sensorsim._util.errors import InputError
from sensorsim.device.firmware import Firmware
from sensorsim.fleets import fleet_file, life, simulation
from sensorsim.fleets.counts import Counts
from sensorsim.fleets.settings import Faults, Prices
from sensorsim.noise.noise_table import ready_table

SETTINGS = fleet_standin.settings()
WHOLE = fleet_standin.run_batch(SETTINGS, 0, SETTINGS.devices)


@pytest.fixture
def ran(monkeypatch):
    """Batches that were run, each a range of devices, by the stand-in."""
    found = []

    def run_batch(settings, first, last):
        if last > first:
            found.append((first, last))
        return fleet_standin.run_batch(settings, first, last)

    monkeypatch.setattr(life, "run_batch", run_batch)
    return found


@pytest.fixture
def half(ran, tmp_path):
    """A file in which a few batches are finished."""
    path = tmp_path / "half.sqlite"

    class EnoughError(Exception):
        pass

    def progress(doing, devices):
        if devices > SETTINGS.devices // 3:
            raise EnoughError

    with pytest.raises(EnoughError):
        simulation.simulate(SETTINGS, path, jobs=1, progress=progress)
    ran.clear()
    return path


@pytest.mark.parametrize("jobs", [1, 2, 5, None])
def test_any_number_of_jobs_gives_the_same_sums(ran, tmp_path, jobs):
    assert simulation.simulate(SETTINGS, tmp_path / "f", jobs=jobs) == WHOLE
    assert len(ran) >= simulation.FEWEST_BATCHES - 1


def test_a_finished_file_is_read_and_no_more(ran, tmp_path):
    simulation.simulate(SETTINGS, tmp_path / "f")
    before, seen = (tmp_path / "f").read_bytes(), []
    ran.clear()
    found = simulation.simulate(
        SETTINGS, tmp_path / "f", dask="tcp://127.0.0.1:1", progress=lambda *told: seen.append(told)
    )
    assert found == WHOLE and ran == [] and seen == [(simulation.RUNS, SETTINGS.devices)]
    assert (tmp_path / "f").read_bytes() == before and [path.name for path in tmp_path.iterdir()] == ["f"]


def test_only_what_is_missing_is_run(half, ran):
    with fleet_file.FleetFile(half, SETTINGS, simulation.batch_size(SETTINGS)) as found:
        finished = [found.range_of(number) for number in found.done]
    assert simulation.simulate(SETTINGS, half, jobs=2) == WHOLE
    devices = sorted(device for first, last in finished + ran for device in range(first, last))
    assert devices == list(range(SETTINGS.devices)) and finished and ran


@pytest.mark.parametrize(
    ("where", "batches"),
    [
        pytest.param("before", 3, marks=pytest.mark.slow),
        ("within", 3),
        pytest.param("after", 4, marks=pytest.mark.slow),
    ],
)
def test_killed_at_any_time_a_batch_is_in_or_not(ran, tmp_path, where, batches):
    """The process kills itself as kill -9 does, in a write."""
    path = tmp_path / "f"
    program = [sys.executable, fleet_standin.__file__, str(path), "2", where]
    assert subprocess.run(program, timeout=60).returncode == -signal.SIGKILL
    with fleet_file.FleetFile(path, SETTINGS, simulation.batch_size(SETTINGS)) as found:
        ref = Counts.empty(SETTINGS)
        for number in found.done:
            ref.add(fleet_standin.run_batch(SETTINGS, *found.range_of(number)))
        assert found.sums == ref and len(found.done) == batches
    assert simulation.simulate(SETTINGS, path, jobs=2) == WHOLE and len(ran) + batches == found.batches


def test_two_runs_on_one_file_do_not_count_twice(half, ran, monkeypatch):
    monkeypatch.setattr(fleet_file.FleetFile, "wait", 0.1)
    with fleet_file.FleetFile(half, SETTINGS, simulation.batch_size(SETTINGS)) as first:
        first.claim()
        with pytest.raises(InputError, match="is being written by another run"):
            simulation.simulate(SETTINGS, half)
        number = next(iter(first.missing))
        first.add(number, fleet_standin.run_batch(SETTINGS, *first.range_of(number)))
        with pytest.raises(InputError, match="is being written by another run"):
            simulation.simulate(SETTINGS, half)
    assert ran == [] and simulation.simulate(SETTINGS, half) == WHOLE


def test_one_that_looked_before_another_wrote_looks_again(half, ran):
    size = simulation.batch_size(SETTINGS)
    with fleet_file.FleetFile(half, SETTINGS, size) as late:
        with fleet_file.FleetFile(half, SETTINGS, size) as first:
            first.claim()
            for number in list(first.missing):
                first.add(number, fleet_standin.run_batch(SETTINGS, *first.range_of(number)))
        assert not late.finished
        late.claim()
        assert late.finished and late.sums == WHOLE


OTHERS = {
    "devices": ({"devices": 99}, "devices 100, this run has 99"),
    "seed": ({"seed": 5}, "seed 0, this run has 5"),
    "loss": ({"faults": Faults(loss=0.25)}, r"loss 0.0, this run has 0.25"),
    "table": ({"firmware": Firmware(ready_table("0.8", 1, "rows"))}, "noise table [0-9a-f]{40}"),
    "budget": ({"firmware": Firmware(ready_table("1.6", 1, "rows"), budget_epsilon="4")}, "budget epsilon 1.6, this"),
    "people": ({"people": fleet_standin.people(seed=1)}, "people .* this run has"),
    "prices": ({"prices": Prices(3, 2, 1, 1)}, "prices of energy"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_another_fleet_is_left_alone(half, ran, name):
    others, sentence = OTHERS[name]
    before = half.read_bytes()
    with pytest.raises(InputError, match=f"{sentence}.*nothing was changed in it: give another file with out"):
        simulation.simulate(replace(SETTINGS, **others), half)
    assert half.read_bytes() == before and ran == []


def test_an_empty_file_is_as_good_as_none(tmp_path, ran):
    """A run that is killed as it begins leaves one."""
    (tmp_path / "f").touch()
    assert simulation.simulate(SETTINGS, tmp_path / "f") == WHOLE


DAMAGE = {
    "a sum is cut": ("UPDATE sums SET data = substr(data, 1, length(data) - 3) WHERE name = 'tally'",),
    "a byte is another": ("UPDATE sums SET data = data || x'00' || data WHERE name = 'spent'",),
    "a sum is huge": ("UPDATE sums SET data = zeroblob(50000000) WHERE name = 'records'",),
    "a sum is text": ("UPDATE sums SET data = 'many' WHERE name = 'truth'",),
    "a sum is gone": ("DELETE FROM sums WHERE name = 'energy'",),
    "a shape is another": ("UPDATE sums SET shape = '[9]' WHERE name = 'truth'",),
    "a sum is of none": ("UPDATE sums SET data = ? WHERE name = 'spent'", (zlib.compress(WHOLE.spent * 0),)),
    "a batch is gone": ("DELETE FROM batches WHERE number = 0",),
    "a batch too many": ("INSERT INTO batches VALUES (7)",),
    "a batch of none": ("INSERT INTO batches VALUES (-1)",),
    "a batch past all": ("INSERT INTO batches VALUES (4611686018427387904)",),
    "settings are cut": ("UPDATE meta SET value = substr(value, 1, 9) WHERE name = 'settings'",),
    "settings are deep": ("UPDATE meta SET value = ? WHERE name = 'settings'", ("[" * 60_000,)),
    "settings are long": ("UPDATE meta SET value = zeroblob(9000000) WHERE name = 'settings'",),
    "a digest is another": ("UPDATE meta SET value = 'f' WHERE name = 'digest'",),
    "a division is another": ("UPDATE meta SET value = '50' WHERE name = 'devices of a batch'",),
    "content is another": ("UPDATE meta SET value = 'cake' WHERE name = 'content'",),
    "a version is another": ("UPDATE meta SET value = '99' WHERE name = 'version'",),
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON batches BEGIN DELETE FROM sums; END",),
    "no batches": ("DROP TABLE batches",),
}


def damage(path, statement, values=()):
    database = sqlite3.connect(path)
    with database:
        database.execute(statement, values)
    database.close()


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_file_is_refused_and_left_alone(half, ran, what):
    damage(half, *DAMAGE[what])
    before = half.read_bytes()
    with pytest.raises(InputError, match=r"is damaged \(|nothing was changed in it"):
        simulation.simulate(SETTINGS, half)
    assert half.read_bytes() == before and ran == []


def test_no_more_is_unpacked_than_there_must_be(half, ran):
    """A few bytes of a stranger's could unpack to a thousand times as many."""
    bomb = zlib.compress(bytes(2_000_000))
    damage(half, "UPDATE sums SET data = ? WHERE name = 'tally'", (bomb,))
    assert len(bomb) < WHOLE.tally.nbytes + fleet_file.SPARE
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="tally of another length"):
            simulation.simulate(SETTINGS, half)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("place", ["folder", "link", "pipe", "no/where"])
def test_a_place_for_no_file_is_refused(tmp_path, ran, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "other")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"; (give|make)"):
        simulation.simulate(SETTINGS, tmp_path / place)
    assert ran == [] and not (tmp_path / "other").exists()


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "2", True])
def test_jobs_are_whole_and_some(tmp_path, ran, jobs):
    with pytest.raises(InputError, match="give a whole number of 1 or more"):
        simulation.simulate(SETTINGS, tmp_path / "f", jobs=jobs)
    assert list(tmp_path.iterdir()) == []


def test_what_a_full_disk_leaves_goes_on(tmp_path, ran):
    path = tmp_path / "f"
    program = [sys.executable, fleet_standin.__file__, str(path), "1", "full disk"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    said = r"InputError: cannot write .* \(.*\); 3 of 8 batches are kept in .*: make room .* same command again"
    assert re.search(said, done.stderr)
    assert simulation.simulate(SETTINGS, path) == WHOLE and len(ran) == 5


def test_little_is_held_at_a_time(ran, tmp_path, monkeypatch):
    """Where sums are large, few batches are run at once, whatever the jobs."""
    held = sum(array.size for array in WHOLE.arrays().values())
    monkeypatch.setattr(simulation, "MOST_HELD", 3 * held)
    at_once, most = [0], [0]
    inner = life.run_batch

    def run_batch(settings, first, last):
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        found = inner(settings, first, last)
        at_once[0] -= 1
        return found

    monkeypatch.setattr(life, "run_batch", run_batch)
    assert simulation.simulate(SETTINGS, tmp_path / "f", jobs=50) == WHOLE and most[0] <= 3
