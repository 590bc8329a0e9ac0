"""A sensor and what it holds exist once: no copy, pickle, fork or thread repeats a word or spends a release twice."""

import copy
import json
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import numpy as np
import pytest

from sensorsim._util.errors import InputError
from sensorsim._util.uncopyable import process
from sensorsim.device import Clock, Firmware, Flash, ListedEntropy, Sensor, Status
from sensorsim.device.running import plain
from sensorsim.noise.host_noise import Words
from sensorsim.noise.noise_table import ready_table

BUDGET = 10
X = [8192] * 14
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def opened(reserve: int = 1, flash: Any = None, runs: Any = plain) -> Sensor:
    firmware = Firmware(ready_table(1.6, 1), budget_epsilon=16, reserve=reserve, numbers=("sequence",))
    sensor = Sensor(firmware, flash, epoch=Clock(5), runs=runs)
    assert sensor.open() == Status.OK and sensor.firmware.releases == BUDGET
    return sensor


def released(sensor: Sensor, times: int = BUDGET + 5) -> list[str]:
    """The packets of so many tries."""
    tries = [sensor.release(X) for _ in range(times)]
    return [packet.hex() for status, packet in tries if status == Status.OK]


def forked(work: Callable[[], Any]) -> Any:
    """What a forked process makes of it."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that other tests started
        child = os.fork()
    if child == 0:
        try:
            answer = work()
        except BaseException as error:
            answer = repr(error)
        os.write(theirs, json.dumps(answer).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as told:
        text = told.read()
    os.waitpid(child, 0)
    return json.loads(text)


@pytest.fixture
def often() -> Iterator[None]:
    """Threads switch so often that without a lock they meet."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps, lambda made: pickle.dumps(made, 0)])
def test_nothing_that_a_sensor_holds_is_copied(how: Callable[[Any], Any]) -> None:
    sensor = opened()
    for held in (sensor, sensor.flash, [sensor], ListedEntropy(b""), Words()):
        if isinstance(held, list) and how is copy.copy:
            continue  # another list of the same sensor
        with pytest.raises(InputError, match=r"is not copied or pickled, because .*; .*\.$"):
            how(held)
    assert len(released(sensor)) == BUDGET


@needs_fork
@pytest.mark.parametrize("reserve", [1, 4, 10])
def test_a_forked_process_releases_nothing_and_the_parent_all(reserve: int) -> None:
    sensor = opened(reserve)
    before = released(sensor, 1)

    def child() -> Any:
        said = sensor.release(X)
        wiped = not sensor._memory.key.array.any()
        return [said[0], said[1].hex(), sensor.left(), sensor.is_open, wiped, sensor.open(), len(released(sensor))]

    assert forked(child) == [Status.NOT_OPEN, "00" * len(sensor.release(X)[1]), 0, False, True, Status.NO_STORE, 0]
    after = released(sensor)
    assert len(before) + len(after) == BUDGET - 1  # one was released to see how long a packet is
    assert forked(lambda: forked(lambda: released(sensor))) == []


@needs_fork
def test_a_forked_process_may_open_a_sensor_on_a_flash_that_is_no_copy() -> None:
    """One in a file, say: its words are new, and what the parent has counted is spent."""

    class Outside:
        """Two slots that stand outside of the memory of the process."""

        def __init__(self) -> None:
            self.file = os.memfd_create("flash") if hasattr(os, "memfd_create") else pytest.skip("no memory file")
            os.pwrite(self.file, b"\xff" * 48, 0)

        def load(self, slot: int) -> bytes:
            return os.pread(self.file, 24, 24 * slot)

        def store(self, slot: int, entry: bytes) -> None:
            os.pwrite(self.file, entry, 24 * slot)

    sensor = opened(reserve=4, flash=Outside())
    first = released(sensor, 1)
    theirs = forked(lambda: [sensor.release(X)[0], sensor.open(), released(sensor)])
    ours = released(sensor)
    assert theirs[:2] == [Status.NOT_OPEN, Status.OK]
    assert len(first) + len(theirs[2]) + len(ours) <= BUDGET
    assert not {*theirs[2]} & {*first, *ours}


@needs_fork
def test_listed_entropy_is_of_one_process() -> None:
    sensor = Sensor(ready_table(1.6, 1), entropy=ListedEntropy(os.urandom(4096)), runs=plain)
    assert sensor.open() == Status.OK
    assert forked(sensor.open) == Status.NO_ENTROPY
    assert sensor.release(X)[0] == Status.OK


@needs_fork
def test_a_process_number_that_is_used_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grandchild may have the number that the process which opened the sensor had."""
    sensor, number = opened(), os.getpid()
    here = process()

    def child() -> Any:
        monkeypatch.setattr(os, "getpid", lambda: number)
        return [process() == here, released(sensor)]

    assert forked(child) == [False, []]


@pytest.mark.parametrize("shared", ["sensor", "flash"])
def test_threads_take_turns(shared: str, often: None) -> None:
    """Also those of two sensors on one flash."""
    for _ in range(5):
        flash = Flash()
        first = opened(flash=flash)
        second = first if shared == "sensor" else opened(flash=flash)
        with ThreadPoolExecutor(2) as pool:
            packets = [*pool.map(released, (first, second))]
        assert len(packets[0]) + len(packets[1]) == BUDGET
        numbers = {int.from_bytes(bytes.fromhex(packet), "little") >> 20 & 0xFFFF for packet in chain(*packets)}
        assert numbers == set(range(1, BUDGET + 1))


def test_threads_never_share_words_of_a_stream(often: None) -> None:
    words = Words()
    with ThreadPoolExecutor(4) as pool:
        parts = [*pool.map(words.take, [997] * 200)]
    assert len(np.unique(np.concatenate(parts))) == 200 * 997
