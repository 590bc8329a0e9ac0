"""Time sampling: exactly as many due records in every period as the budget pays for, each record equally likely."""

from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from compiled_c import library, off
from scipy.stats import chi2, chi2_contingency
from sensorsim.kernels.schedule import MOST_SLOTS, due, mixed, one_of

from sensorsim._util.errors import InputError
from sensorsim.device import Firmware
from sensorsim.device.schedule import Schedule
from sensorsim.language.c.identifiers import Names
from sensorsim.language.numba_backend import compiled
from sensorsim.machine.harness import differing_bits, run_on_host
from sensorsim.machine.targets import TRAP
from sensorsim.machine.vectors import as_arrays, of_one_call
from sensorsim.noise.noise_table import ready_table

LEAST_P = 1e-4  # a chi-square below this on fixed serial numbers is no chance
SIZES = [(1, 1), (2, 1), (7, 3), (28, 1), (30, 10), (30, 29), (365, 12), (360, 97)]


# ── naive references ──


def naive_mixed(word: int) -> int:
    """MurmurHash3's fmix32."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        word = (word ^ word // 2**shift) * factor % 2**32
    return word


def naive_days(serial: int, epoch: int, slots: int, allowed: int) -> set[int]:
    """The due slots, by lists: the period in `allowed` parts, one of each, and all turned back."""
    word = naive_mixed((naive_mixed(serial * 0x9E3779B1 % 2**32) + epoch) % 2**32)
    turn = word * slots // 2**32
    ends = [j * slots // allowed for j in range(allowed + 1)]
    found = set()
    for j in range(allowed):
        part = list(range(ends[j], ends[j + 1]))
        own = naive_mixed((word + (j + 1) * 0x9E3779B1) % 2**32)
        found.add((part[own * len(part) // 2**32] - turn) % slots)
    return found


def calendar(serials: np.ndarray, epoch: int, slots: int, allowed: int) -> np.ndarray:
    """(serials, slots): what the kernel says of every slot, as Numba runs it in batches."""
    serial, slot = np.repeat(serials.astype(np.uint32), slots), np.tile(np.arange(slots), len(serials))
    made = due.batch(serial=serial, epoch=epoch, slot=slot, slots=slots, allowed=allowed)
    return np.asarray(made["returns"], np.int64).reshape(len(serials), slots)


def fits(seen: np.ndarray) -> bool:
    """Whether counts can be those of cells that are equally likely: Pearson's test."""
    expected = seen.sum() / seen.size
    return bool(chi2.sf(((seen - expected) ** 2 / expected).sum(), seen.size - 1) > LEAST_P)


# ── the word ──


def test_the_word_has_the_published_values() -> None:
    """The hash of no bytes is fmix32 of its seed: MurmurHash3_x86_32's known answers for seeds 1 and 2^32 - 1."""
    assert [mixed(word) for word in (0, 1, 2**32 - 1)] == [0, 0x514E28B7, 0x81F16F39]


def test_a_number_below_another_is_the_high_word_of_the_product() -> None:
    chance = Random(3)
    for _ in range(3000):
        word = chance.choice([0, 2**32 - 1, chance.randrange(2**32)])
        count = chance.choice([1, MOST_SLOTS, chance.randint(1, MOST_SLOTS)])
        assert one_of(word, count) == word * count // 2**32


# ── how many, and which ──


@pytest.mark.parametrize("slots, allowed", SIZES)
def test_it_is_one_of_each_part_of_the_period(slots: int, allowed: int) -> None:
    for serial, epoch in product((0, 1, 77, 999_999, 2**32 - 1), (0, 3650, 2**32 - 1)):
        wanted = [slot in naive_days(serial, epoch, slots, allowed) for slot in range(slots)]
        assert [bool(due(serial, epoch, slot, slots, allowed)) for slot in range(slots)] == wanted
        assert [Schedule(slots, allowed).due(serial, epoch, slot) for slot in range(slots)] == wanted


@pytest.mark.parametrize("slots, allowed", SIZES)
def test_every_period_has_exactly_as_many_as_are_allowed(slots: int, allowed: int) -> None:
    for epoch in range(3650, 3655):
        days = calendar(np.arange(2000), epoch, slots, allowed)
        assert (days.sum(axis=1) == allowed).all()


@pytest.mark.parametrize("slots, allowed", [(7, 3), (30, 10), (30, 29), (28, 1), (31, 7), (96, 4)])
def test_every_slot_is_due_equally_often(slots: int, allowed: int) -> None:
    """Over serial numbers in a row, as a fleet has them: the share of each slot within what chance leaves open."""
    for epoch in (0, 3650):
        days = calendar(np.arange(20_000), epoch, slots, allowed)
        expected = len(days) * allowed / slots
        spread = np.sqrt(expected * (1 - allowed / slots))
        assert (np.abs(days.sum(axis=0) - expected) < 4.5 * spread).all()


@pytest.mark.parametrize("slots, allowed, rhythm", [(168, 7, 24), (720, 30, 24), (28, 4, 7), (30, 4, 7), (29, 4, 7)])
def test_no_rhythm_of_the_records_falls_in_with_it(slots: int, allowed: int, rhythm: int) -> None:
    """A device's releases are spread over the phases of a day or a week as independent ones are, or more evenly.

    Releases that are a whole number of days apart would all have one phase: the variance over devices of their number
    in half of the phases would be `allowed` times as large.
    """
    days = calendar(np.arange(6000), 3650, slots, allowed)
    high = np.arange(slots) % rhythm < rhythm // 2
    share = high.mean()
    assert days[:, high].sum(axis=1).var() < 1.1 * allowed * share * (1 - share)


@pytest.mark.parametrize("later, neighbour", [(1, 0), (2, 0), (12, 0), (0, 1), (1, 1), (0, 1000)])
def test_periods_and_neighbours_are_independent(later: int, neighbour: int) -> None:
    """The due slot of one period tells nothing of that of a later one, nor of another device's."""
    slots, serials = 12, np.arange(30_000)
    here = calendar(serials, 3650, slots, 1).argmax(axis=1)
    there = calendar(serials + neighbour, 3650 + later, slots, 1).argmax(axis=1)
    pairs = np.zeros((slots, slots), int)
    np.add.at(pairs, (here, there), 1)
    assert chi2_contingency(pairs).pvalue > LEAST_P
    assert fits(pairs)


def test_over_the_periods_of_one_device_every_slot_has_its_turn() -> None:
    slots = 30
    for serial in (0, 1, 4999):
        epochs = np.repeat(np.arange(6000), slots)
        made = due.batch(serial=serial, epoch=epochs, slot=np.tile(np.arange(slots), 6000), slots=slots, allowed=1)
        assert fits(np.asarray(made["returns"], np.int64).reshape(-1, slots).sum(axis=0))


# ── limits ──


def test_a_budget_that_pays_for_all_makes_all_due() -> None:
    for slots, allowed in ((1, 1), (1, MOST_SLOTS), (30, 30), (30, 31), (30, MOST_SLOTS), (MOST_SLOTS, MOST_SLOTS)):
        assert calendar(np.array([0, 5, 2**32 - 1]), 9, slots, allowed).all()


@pytest.mark.parametrize("allowed", [1, 2, 32_767, 65_533, 65_534])
def test_the_longest_period(allowed: int) -> None:
    row = calendar(np.array([2**32 - 1]), 2**32 - 1, MOST_SLOTS, allowed)[0]
    assert set(np.flatnonzero(row).tolist()) == naive_days(2**32 - 1, 2**32 - 1, MOST_SLOTS, allowed)
    assert row.sum() == allowed


def test_a_schedule_follows_from_firmware_and_records() -> None:
    """Epsilon 8 in 30 days at 1.6 a release pays for five."""
    made = Firmware(ready_table("1.6", 1), budget_epsilon=8, budget_days=30)
    assert Schedule.of(made, 1) == Schedule(30, 5) and Schedule.of(made, 1).samples
    assert Schedule.of(made, 24) == Schedule(720, 5)
    daily = Firmware(ready_table("1.6", 1), budget_epsilon=8)
    assert Schedule.of(daily, 3) == Schedule(3, 3) and not Schedule.of(daily, 3).samples
    assert Schedule.of(daily, 5) == Schedule(5, 5) and Schedule.of(daily, 6).samples


@pytest.mark.parametrize("slots, allowed", [(0, 1), (MOST_SLOTS + 1, 1), (-1, 1), (1.0, 1), (5, 0), (5, -1), (5, 2.0)])
def test_refused_schedules(slots: int, allowed: int) -> None:
    with pytest.raises(InputError, match="give "):
        Schedule(slots, allowed)


@pytest.mark.parametrize("records", [0, -1, 2.0])
def test_refused_records_a_day(records: int) -> None:
    with pytest.raises(InputError, match="records a day"):
        Schedule.of(Firmware(ready_table("1.6", 1)), records)


def test_a_period_of_too_many_records() -> None:
    made = Firmware(ready_table("1.6", 1), budget_days=365)
    assert Schedule.of(made, 179).slots == 365 * 179
    with pytest.raises(InputError, match=f"1 to {MOST_SLOTS}, with fewer records a day"):
        Schedule.of(made, 180)


# ── every reader of the kernel ──


def test_numba_and_c_say_what_python_says(tmp_path: Path) -> None:
    """At the ends of every range and between them; in C what the language leaves undefined would stop the test."""
    _, host = library([due], tmp_path, options=TRAP)
    function = Names([due], "ss_").functions[due]
    assert off(host, due, function=function) == 0
    chance = Random(8)
    for _ in range(400):
        slots = chance.choice([1, 2, 30, 365, MOST_SLOTS - 1, MOST_SLOTS, chance.randint(1, MOST_SLOTS)])
        allowed = chance.choice([1, slots, MOST_SLOTS, chance.randint(1, slots)])
        slot = chance.choice([0, slots - 1, chance.randrange(slots)])
        serial, epoch = chance.choice([0, 2**32 - 1, chance.randrange(2**32)]), chance.choice([0, 3650, 2**32 - 1])
        wanted = due(serial, epoch, slot, slots, allowed)
        given = {"serial": serial, "epoch": epoch, "slot": slot, "slots": slots, "allowed": allowed}
        assert compiled(due)(serial, epoch, slot, slots, allowed) == wanted
        got = run_on_host(host, of_one_call(due, given), function)
        assert differing_bits(got, as_arrays(due, {"returns": wanted})) == 0
