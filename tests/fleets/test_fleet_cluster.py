"""A fleet on a Dask cluster: the same sums, and a cluster that is not there or goes away is one sentence.

Schedulers and workers are on loopback, every port chosen by the system, no dashboard to the outside.
"""

import contextlib

import fleet_standin
import pytest
from clusters import local_cluster

from sensorsim._util import pool
from sensorsim._util.errors import InputError
from sensorsim.fleets import life, simulation
from sensorsim.fleets.settings import Faults

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
SETTINGS = fleet_standin.settings()
WHOLE = fleet_standin.run_batch(SETTINGS, 0, SETTINGS.devices)


@pytest.fixture(autouse=True)
def standin(monkeypatch, request):
    """Workers here are threads of this process, so they run it too."""
    if "engine" not in request.node.name:
        monkeypatch.setattr(life, "run_batch", fleet_standin.run_batch)


def test_a_cluster_gives_the_same_sums(tmp_path):
    with local_cluster() as found:
        assert simulation.simulate(SETTINGS, tmp_path / "f", dask=found.scheduler_address) == WHOLE


GOES = {"workers": lambda found: found.scale(0), "all of it": lambda found: found.close()}


@pytest.mark.parametrize("what", GOES)
def test_a_cluster_that_goes_away_leaves_what_is_finished(tmp_path, monkeypatch, what):
    monkeypatch.setattr(pool, "CLUSTER_WAIT", 2)
    monkeypatch.setattr(simulation, "CLUSTER_LOOK", 0.2)
    monkeypatch.setattr(simulation, "FEWEST_BATCHES", 25)
    found, path, seen = local_cluster(), tmp_path / "f", []

    def progress(doing, devices):
        seen.append(devices)
        if len(seen) == 4:
            GOES[what](found)

    said = r"the Dask cluster at tcp://.* went away in the middle \(\w+\); [0-9]+ of 25 batches are kept in .*/f: "
    said += "start it anew, and give the same command again to go on"
    with pytest.raises(InputError, match=said):
        simulation.simulate(SETTINGS, path, dask=found.scheduler_address, progress=progress)
    with contextlib.suppress(Exception):
        found.close(timeout=2)
    left = []

    def run_batch(settings, first, last):
        left.append((first, last))
        return fleet_standin.run_batch(settings, first, last)

    monkeypatch.setattr(life, "run_batch", run_batch)
    assert simulation.simulate(SETTINGS, path, jobs=2) == WHOLE and len(left) - 1 <= 25 - 3  # one of them of no devices


def test_a_cluster_without_workers_is_one_sentence(tmp_path):
    with (
        local_cluster(workers=0) as found,
        pytest.raises(InputError, match="has no workers; 0 of 8 batches are finished"),
    ):
        simulation.simulate(SETTINGS, tmp_path / "f", dask=found.scheduler_address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nonsense", "cake://127.0.0.1:1", ""])
def test_a_scheduler_that_does_not_answer_is_one_sentence(tmp_path, monkeypatch, address):
    monkeypatch.setattr(pool, "CLUSTER_WAIT", 0.3)
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        simulation.simulate(SETTINGS, tmp_path / "f", dask=address)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_fails_is_one_sentence(tmp_path, monkeypatch):
    def run_batch(settings, first, last):
        raise MemoryError("no room")

    monkeypatch.setattr(life, "run_batch", run_batch)
    with (
        local_cluster(workers=1) as found,
        pytest.raises(InputError, match=r"could not run a batch \(MemoryError: no room\)"),
    ):
        simulation.simulate(SETTINGS, tmp_path / "f", dask=found.scheduler_address)


def test_a_worker_of_another_version_is_refused():
    with pytest.raises(RuntimeError, match="a worker has version"):
        simulation.work(SETTINGS, 0, 1, simulation.VERSION + 1)


@pytest.mark.slow
def test_the_engine_on_processes_is_the_engine_here(tmp_path):
    settings = fleet_standin.settings(faults=Faults(reset_rate=0.05, power_cuts=0.05, loss=0.1), days=20)
    with local_cluster(processes=True) as found:
        remote = simulation.simulate(settings, tmp_path / "f", dask=found.scheduler_address)
    assert remote == life.run_batch(settings, 0, settings.devices)
