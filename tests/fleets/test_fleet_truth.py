"""Truth at small scale: a fleet's batches, its devices one by one, and the C on an emulated core, packet for packet."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fleet_reference as reference
import numpy as np
import pytest
from fleet_reference import Core, Told
from test_device import looked_up, mirrored, several

from sensorsim._util.files import fill
from sensorsim.codegen.sensor_package import SensorCode
from sensorsim.device import Firmware, Sketch
from sensorsim.fleets import chance
from sensorsim.fleets.counts import OUTCOMES, Counts
from sensorsim.fleets.energy import most
from sensorsim.fleets.life import run_batch, trace
from sensorsim.fleets.settings import GREEDY, Faults, People, Prices, Settings
from sensorsim.machine.emulated_sensor import EmulatedSensor, link_sensor
from sensorsim.machine.targets import TARGETS
from sensorsim.noise.noise_table import ready_table

DEVICES, DAYS = 200, 30
ON_CORES = range(3, DEVICES, 10)  # twenty of them
FAULTS = Faults(reset_rate=0.1, power_cuts=0.3, loss=0.2, stuck_entropy=0.15, clock_skew=9)
PRICES = Prices(release=1000, open=300, store=70, step=20)  # energies are in even bins and in an octave
CENTRE = tuple(2000 * i for i in range(14))
# Where bins of energy end but the last, in steps: 512 of one each, then fourteen times 256, each time twice as wide.
ENDS = [*range(1, 513), *(2**k * (256 + i) for k in range(1, 15) for i in range(1, 257))][:-1]
SKETCH = Sketch(14, CENTRE, 40000, 1, 6)


def people(persons: int = 37, rows: int = 400) -> People:
    """Persons with few days and with many, all of them worn from the middle on; the ends of the range among them."""
    chance = np.random.default_rng(5)
    x = np.clip(chance.normal(0.5, 0.4, (rows, 14)), 0, 1)
    return People.of([f"feature {i}" for i in range(14)], x, chance.integers(0, persons, rows), "made for a test")


def of_rows() -> Firmware:
    """Five releases in 21 records, two by each store; epoch and number in every packet."""
    numbers = ("epoch", "sequence")
    return Firmware(ready_table("1.6", 1), budget_epsilon=8, budget_days=7, reserve=2, numbers=numbers)


def settings(firmware: Firmware, **changed: Any) -> Settings:
    given: dict[str, Any] = {"devices": DEVICES, "days": DAYS, "records_per_day": 3, "faults": FAULTS, "seed": 7}
    return Settings(firmware, people(), **given | {"prices": PRICES} | changed)


def placed(shape: tuple[int, ...], numbers: Counter[Any]) -> np.ndarray:
    """A dictionary of sums as an array."""
    made = np.zeros(shape, np.int64)
    for place, number in numbers.items():
        made[place] += number
    return made


def sums_of(of: Settings, told: Told) -> dict[str, np.ndarray]:
    """What the reference tells, as a fleet keeps it."""
    firmware, step = of.firmware, of.prices.step
    assert of.spent_step == 1 and set(told.outcomes) <= set(OUTCOMES)
    columns = 3 if "limit" in firmware.arguments else len(firmware.table.counts[0])
    return {
        "tally": placed((1 if firmware.sketch else of.days, firmware.features, columns), told.tally),
        "behind": placed((1 if firmware.sketch else of.days, firmware.features), told.behind),
        "truth": placed((of.days, 1 if firmware.sketch else firmware.n), told.truth),
        "records": placed((of.days,), told.records),
        "outcomes": np.array([told.outcomes[name] for name in OUTCOMES]),
        "spent": placed((of.spent_bins,), Counter(told.spent)),
        "worst": np.array([told.worst, told.most_sent]),
        "energy": placed((4096,), Counter(sum(end <= used // step for end in ENDS) for used in told.energy)),
    }


def assert_same_sums(of: Settings, counts: Counts, told: Told) -> None:
    wanted = sums_of(of, told)
    for name, made in counts.arrays().items():
        assert made.dtype == np.int64 and made.tolist() == wanted[name].tolist(), name


def packets_of(of: Settings, first: int, last: int) -> tuple[list[reference.Packet], Counts]:
    """Those of the fleet's batches, as the reference writes them."""
    found, counts = trace(of, first, last)
    rows = zip(found.device.tolist(), found.record.tolist(), found.received.tolist(), found.packet, strict=True)
    return [reference.Packet(*row[:3], row[3].tobytes()) for row in rows], counts


def assert_true(of: Settings, first: int = 0, last: int = DEVICES) -> Told:
    """Batches tell what the devices tell that live one by one."""
    told = reference.live(of, range(first, last))
    packets, counts = packets_of(of, first, last)
    assert packets == told.packets
    assert_same_sums(of, counts, told)
    assert_same_sums(of, run_batch(of, first, last), told)
    assert max(told.energy) <= most(of.prices, of.firmware, of.days, of.records_per_day, of.faults, of.schedule)
    return told


# ── what befalls a device ──


def naive_asked(*numbers: int) -> int:
    """splitmix64's last steps, once for each number, in whole numbers of any size."""
    word = 0
    for number in numbers:
        word = (word ^ number) + 0x9E3779B97F4A7C15
        word %= 2**64
        word = (word ^ word // 2**30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word // 2**27) * 0x94D049BB133111EB % 2**64
        word ^= word // 2**31
    return word


def test_chances_follow_from_seed_device_question_and_number() -> None:
    """The first number that splitmix64 gives from state 0 is published; all else is mixed from it alike."""
    assert chance.mix(np.uint64(0)) == naive_asked(0) == 0xE220A8397B1DCDAF
    for numbers in ((0, 0, 0, 0), (7, 1, 2, 3), (2**64 - 1, 10**9 - 1, 9, 36_525)):
        wanted, given = naive_asked(*numbers), (np.uint64(numbers[0]), *numbers[1:])
        assert chance.random_bits(*given) == wanted
        assert chance.one_of(24, *given) == wanted % 24
        assert chance.happens((wanted // 2**11) / 2**53, *given) == 0  # its own number is not below itself
        assert chance.happens((wanted // 2**11 + 1) / 2**53, *given) == 1
        assert chance.happens(1.0, *given) and not chance.happens(0.0, *given)


def test_chances_are_even_and_independent() -> None:
    """Over devices, days and questions: shares within five standard deviations, of pairs too."""
    tries, rate, seed = 20_000, 0.3, np.uint64(7)
    deviation = (rate * (1 - rate) / tries) ** 0.5
    by_device = np.array([chance.happens(rate, seed, d, chance.OF_RESET, 4) for d in range(tries)])
    by_day = np.array([chance.happens(rate, seed, 4, chance.OF_RESET, d) for d in range(tries)])
    other = np.array([chance.happens(rate, seed, d, chance.OF_CUT, 4) for d in range(tries)])
    for seen in (by_device, by_day, other):
        assert abs(seen.mean() - rate) < 5 * deviation
        assert abs(np.mean(seen[1:] & seen[:-1]) - rate**2) < 5 * deviation
    assert abs(np.mean(by_device & other) - rate**2) < 5 * deviation
    questions = {getattr(chance, name) for name in vars(chance) if name.startswith("OF_")}
    assert len(questions) == 10


# ── one form of firmware, in all that can happen to it ──


@pytest.fixture(scope="module")
def unlucky() -> tuple[Settings, Told]:
    """All faults at once, many of each."""
    of = settings(of_rows())
    return of, assert_true(of)


def test_with_all_faults_at_once(unlucky: tuple[Settings, Told]) -> None:
    """The comparison is that of `unlucky`; here, that it was about something."""
    of, told = unlucky
    never = {"no store", "bad journal"}  # a cut leaves one good slot, whatever it does to the other
    assert {name for name in OUTCOMES if told.outcomes[name] == 0} == never
    assert min(told.outcomes[name] for name in OUTCOMES if name not in never) > 20
    assert told.outcomes["records"] == DEVICES * DAYS * 3
    assert len({packet.packet for packet in told.packets}) > 1000
    assert told.worst == told.most_sent == of.firmware.releases == 5
    assert len(set(told.spent)) > 10 and len(set(told.energy)) > 50
    steps = [used // of.prices.step for used in told.energy]
    assert min(steps) < 512 <= max(steps)  # in even bins and in wider ones


def test_twenty_of_them_on_an_emulated_core(unlucky: tuple[Settings, Told], tmp_path: Path) -> None:
    of, told = unlucky
    assert_same_on_a_core(of, told, tmp_path)


def assert_same_on_a_core(of: Settings, told: Told, folder: Path) -> None:
    """The compiled sensor, on the same entropy, clocks, flash, faults and records."""
    core = Core(on_a_core(of.firmware, folder))
    by_core, by_model = reference.live(of, ON_CORES, core), reference.live(of, ON_CORES)
    assert len(ON_CORES) == 20 and by_core == by_model
    assert by_core.packets == [packet for packet in told.packets if packet.device in ON_CORES]
    batches = [packets_of(of, number, number + 1)[0] for number in ON_CORES]
    assert by_core.packets == [packet for batch in batches for packet in batch] and len(by_core.packets) > 100


def on_a_core(firmware: Firmware, folder: Path) -> EmulatedSensor:
    fill(folder, SensorCode(firmware, "ss_").sources(""))
    target, include = TARGETS["cortex-m0plus"], [folder / "include", folder / "src"]
    program = link_sensor(target, sorted((folder / "src").glob("*.c")), include, "ss_", folder)
    return EmulatedSensor(target, program, firmware, "ss_")


def test_plain() -> None:
    devices = 50
    told = assert_true(settings(of_rows(), faults=Faults()), last=devices)
    assert told.outcomes["opens"] == devices and told.outcomes["lost"] == told.outcomes["cut"] == 0
    # Four whole periods and two days of another: exactly five releases in each whole one.
    assert all(20 <= spent <= 25 for spent in told.spent)
    by_period = Counter((packet.device, packet.record // 21) for packet in told.packets)
    assert all(by_period[number, period] == 5 for number in range(devices) for period in range(4))


def test_greedy_devices_release_until_their_budget_is_spent() -> None:
    told = assert_true(
        settings(of_rows(), schedule=GREEDY, faults=Faults(reset_rate=0.02, power_cuts=0.02, loss=0.02, clock_skew=1)),
        last=80,
    )
    assert told.outcomes["spent"] > 1000 and told.outcomes["passed over"] == 0


def test_another_day_another_seed_other_devices() -> None:
    """A record a day, a seed that fills its word, numbers from the end of the largest fleet."""
    of = settings(of_rows(), devices=10**9, records_per_day=1, seed=2**64 - 1)
    assert assert_true(of, 10**9 - 50, 10**9).outcomes["released"] > 300


@pytest.mark.parametrize(
    "faults, outcomes",
    [
        (Faults(reset_rate=1), {"resets": DAYS}),
        (Faults(power_cuts=1), {"released": 0}),
        (Faults(loss=1), {"received": 0}),
        (Faults(stuck_entropy=1), {"stuck devices": 1}),
        (Faults(reset_rate=1, clock_skew=3650), {"resets": DAYS}),
    ],
)
def test_what_always_happens(faults: Faults, outcomes: dict[str, int]) -> None:
    devices = 6
    told = assert_true(settings(of_rows(), faults=faults, prices=PRICES._replace(step=1)), last=devices)
    assert max(told.energy) > 2**12  # in bins of many octaves
    assert {name: told.outcomes[name] for name in outcomes} == {name: devices * outcomes[name] for name in outcomes}


def test_batches_of_any_size_add_up(unlucky: tuple[Settings, Told]) -> None:
    of, told = unlucky
    whole = Counts.empty(of)
    for first, last in ((150, 200), (0, 1), (1, 77), (77, 150), (77, 77)):
        whole.add(run_batch(of, first, last))
    assert_same_sums(of, whole, told)


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget, days, reserve, often",
    [("1.6", 1, 1, 1), ("1.6", 30, 1, 1), ("12.8", 1, 3, 24), ("4.8", 2, 3, 2), ("160", 9, 7, 3)],
)
def test_other_budgets_of_the_same_release(budget: str, days: int, reserve: int, often: int) -> None:
    """One a day, one a month, a third of a day's records, some of two days', and more than a period has records."""
    made = replace(of_rows(), budget_epsilon=budget, budget_days=days, reserve=reserve)
    assert_true(settings(made, records_per_day=often), last=20)


# ── every form of release ──


FORMS: dict[str, tuple[Callable[[], Firmware], dict[str, Any]]] = {
    "rows, one a day": (lambda: Firmware(ready_table("1.6", 1)), {"records_per_day": 1}),
    "rows, three of all": (
        lambda: Firmware(several(ready_table("1.6", 1), 3), budget_epsilon=20, budget_days=3, numbers=("sequence",)),
        {},
    ),
    "rows by thresholds": (lambda: Firmware(ready_table("3.2", 1), budget_epsilon=20, reserve=3), {}),
    "rows, all features": (lambda: Firmware(ready_table("6.4", "all"), budget_epsilon=30, budget_days=2), {}),
    "rows, one bit": (lambda: Firmware(ready_table("0.1", 1), budget_epsilon=1, budget_days=30, reserve=4), {}),
    "rows, one bit of all": (
        lambda: Firmware(ready_table("1.6", "all"), budget_epsilon=8, budget_days=7, numbers=("epoch",)),
        {},
    ),
    "rows looked up": (lambda: Firmware(looked_up(), budget_epsilon=9, budget_days=5), {"schedule": GREEDY}),
    "rows mirrored": (lambda: Firmware(mirrored(), budget_epsilon=32, budget_days=10, reserve=5), {}),
    "stairs": (lambda: Firmware(ready_table("1.6", 1, "stairs"), budget_epsilon=8, budget_days=7), {}),
    "stairs, three of all": (
        lambda: Firmware(several(ready_table("1.6", 1, "stairs"), 3), budget_epsilon=25, budget_days=4, reserve=2),
        {},
    ),
    "stairs, all features": (lambda: Firmware(ready_table("6.4", "all", "stairs"), budget_epsilon=30), {}),
    "sketch by rows": (
        lambda: Firmware(ready_table("1.6", 1), budget_epsilon=8, budget_days=7, reserve=2, sketch=SKETCH),
        {},
    ),
    "sketch by stairs": (
        lambda: Firmware(
            ready_table("1.6", 1, "stairs"), budget_epsilon=8, budget_days=2, numbers=("sequence",), sketch=SKETCH
        ),
        {"schedule": GREEDY},
    ),
    "sketch by one bit": (lambda: Firmware(ready_table("0.1", 1), budget_epsilon=1, sketch=SKETCH), {}),
}
ON_CORES_TOO = ("rows, three of all", "stairs, three of all", "sketch by rows")


@pytest.mark.slow  # each form compiles anew
@pytest.mark.parametrize("name", FORMS)
def test_every_form(name: str, tmp_path: Path) -> None:
    make, changed = FORMS[name]
    of = settings(make(), **changed)
    told = assert_true(of)
    assert told.outcomes["released"] > 500 and told.outcomes["cut"] > 100
    if name in ON_CORES_TOO:
        assert_same_on_a_core(of, told, tmp_path)
