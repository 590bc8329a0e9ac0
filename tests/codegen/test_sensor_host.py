"""A sensor on a computer as compiled C: forks, threads, a clock that jumps; and the pace beside its model in Python."""

from collections.abc import Callable
from random import Random

import pytest
from exported import BOARDS, STRICT, export, need, run

from sensorsim.device import Clock, Firmware, Flash, Paced, Sensor, Status
from sensorsim.device.pace import pace_wait
from sensorsim.device.running import plain
from sensorsim.noise.noise_table import ready_table

DAY = 86_400
START = 20_000 * DAY + 3600  # one in the morning
BUDGET = 10
BOUND = 3 * BUDGET  # of one run that is shorter than an epoch: what is left of the journal's, and two new ones


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A function that runs boards/host.c, with a budget of ten a day, four of which a store counts."""
    cc = need("cc")
    folder = tmp_path_factory.mktemp("host")
    box, made = export(folder / "box"), folder / "host"
    where = [f"-I{box / place}" for place in ("include", "src", "ports", "ports/host")]
    sources = [*(box / "src").glob("*.c"), box / "ports" / "host" / "ss_port_host.c", BOARDS / "host.c"]
    options = ("-std=gnu99", "-O1", "-pthread", f"-DSS_BUDGET={BUDGET}", "-DSS_RESERVE=4", *STRICT)
    run(cc, *options, *where, *sources, "-o", made)
    return lambda *given, **more: run(made, *given, **more).stdout


@pytest.mark.parametrize("mode", ["fork", "fork-same-number"])
def test_after_a_fork_the_child_releases_nothing_and_the_parent_its_budget(host, tmp_path, mode):
    """Also what was counted ahead, for which no port is asked. The child cannot open the journal of its parent."""
    lines = host(mode, tmp_path / "journal", START, 100).splitlines()
    who = [line.split()[0] for line in lines]
    assert who == ["before", "status", *["parent"] * (BUDGET - 1)]
    assert lines[1] == f"status {Status.NOT_OPEN.value} left 0 open {Status.NO_ENTROPY.value} port 1"


def test_a_port_that_leaves_a_call_by_a_jump_does_not_stop_the_next(host, tmp_path):
    lines = host("jump", tmp_path / "journal", START, 100).splitlines()
    assert [line.split()[0] for line in lines] == ["after"] * BUDGET


def test_threads_take_turns(host, tmp_path):
    for number in range(5):
        assert len(host("threads", tmp_path / f"{number}", START, 100).splitlines()) == BUDGET


def test_a_thousand_jumps_of_the_clock_bring_two_budgets(host, tmp_path):
    wait = pace_wait(1)
    for number, (awake, most) in enumerate(((0, BUDGET), (wait + 1, BOUND))):
        journal = tmp_path / f"{number}"
        assert host("steps", journal, START, 100, 0, 0, 0) == f"{BUDGET}\n"
        # The same in one process and in many: what was handed out is kept as long as the machine runs.
        assert int(host("steps", journal, START, 100 + awake, 1000, DAY, 0)) == most - BUDGET
        later = START + 1000 * DAY
        again = sum(int(host("steps", journal, later + i * DAY, 100 + awake, 0, 0, 0)) for i in range(20))
        assert again == 0
    assert int(host("steps", tmp_path / "1", later + 100 * DAY, 100 + DAY, 5, DAY, 0)) == BUDGET


def test_ordinary_days_lose_nothing(host, tmp_path):
    """A month of one process, then a month of one a day; then the machine is off for a month."""
    journal = tmp_path / "journal"
    assert host("steps", journal, START, 100, 4 * 29, DAY // 4, DAY // 4) == f"{30 * BUDGET}\n"
    for day in range(30, 60):
        assert host("steps", journal, START + day * DAY, 100 + day * DAY, 0, 0, 0) == f"{BUDGET}\n"
    held = journal / "ss_run"
    held.write_bytes(b"f" * 36 + held.read_bytes()[36:])  # another start of the machine
    steps = 2  # of an hour: the new epoch is believed after the first
    assert host("steps", journal, START + 90 * DAY, 50, steps, 3600, 3600) == f"{BUDGET}\n"


def test_the_pace_of_the_c_is_that_of_the_model(host):
    choose, told, expected = Random(3), [], []
    for _ in range(200):
        told.append("s 0 0")
        clock, flash, up = Clock(choose.randrange(100)), Flash(), 0
        paced = Paced(flash, clock, 1, lambda: up)  # noqa: B023 - called in this turn of the loop
        for _ in range(choose.randrange(60)):
            kind = choose.choice("aaaaeb")
            if kind == "a":
                clock.epoch = max(0, clock.epoch + choose.choice((0, 0, 1, 1, 1, 5, 1000, -1, -3)))
                up += choose.choice((0, 1, 3599, 3600, DAY, 3 * DAY))
                told.append(f"a {clock.epoch} {up}")
                expected.append(paced())
            else:
                epoch = max(0, clock.epoch + choose.choice((-1, 0, 1, 7)))
                told.append(f"{kind} {epoch} 0")
                entry = b"SJ\1\1" + bytes(8) + epoch.to_bytes(4, "little") + bytes(4)
                flash.store(0, entry + (crc(entry) ^ (kind == "b")).to_bytes(4, "little"))
                paced.load(0)
    assert [int(line) for line in host("pace", input="\n".join(told)).split()] == expected


def crc(data: bytes) -> int:
    from zlib import crc32

    return crc32(data)


class Board:
    """A device over resets: its flash stays, its uptime begins anew."""

    def __init__(self, days: int = 1, pace: bool = True) -> None:
        self.now, self.up, self.days, self.pace, self.flash = START, 0, days, pace, Flash()
        self.firmware = Firmware(ready_table(1.6, 1), budget_epsilon=16, budget_days=days, reserve=2)
        self.reset()

    def reset(self) -> None:
        self.up = 0
        clock: Callable[[], int] = lambda: self.now // (self.days * DAY)  # noqa: E731
        board = Paced(self.flash, clock, self.days, lambda: self.up)
        self.sensor = Sensor(self.firmware, board, epoch=board if self.pace else clock)
        assert self.sensor.open() == Status.OK

    def passes(self, seconds: int) -> None:
        self.now, self.up = self.now + seconds, self.up + seconds

    def spend(self, tries: int = BUDGET + 2) -> int:
        return sum(self.sensor.release([0] * 14)[0] == Status.OK for _ in range(tries))


@pytest.mark.parametrize("seed", range(3))
def test_a_year_with_resets_is_that_of_a_clock_taken_at_its_word(seed):
    """Record by record, every six hours, but for the hour after a start."""
    choose = Random(seed)
    paced, free = Board(), Board(pace=False)
    for _ in range(4 * 365):
        if choose.random() < 0.1:
            off = choose.choice((0, 0, 3600, 5 * DAY))
            for board in (paced, free):
                board.now += off
                board.reset()
                board.passes(pace_wait(1))
        assert paced.spend(1) == free.spend(1)
        for board in (paced, free):
            board.passes(DAY // 4)
    assert paced.flash.image == free.flash.image


def test_a_sensor_left_alone_is_paced(monkeypatch):
    """By the calendar, and no faster than the time since it was made."""
    import time

    now = [START, 50.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(time, "monotonic", lambda: now[1])
    sensor = Sensor(Firmware(ready_table(1.6, 1), budget_epsilon=16), runs=plain)
    assert sensor.open() == Status.OK
    done = 0
    for _ in range(1000):
        done += sum(sensor.release([0] * 14)[0] == Status.OK for _ in range(2))
        now[0] += DAY
    assert done <= BUDGET
    now[1] += 2 * DAY
    done = 0
    for _ in range(100):
        done += sum(sensor.release([0] * 14)[0] == Status.OK for _ in range(BUDGET))
        now[0] += DAY
    assert done == 4 * BUDGET
