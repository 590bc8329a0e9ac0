"""Prices of a fleet, against what `cost` says of a sensor and against counts by hand."""

import pytest

from sensorsim._util.errors import InputError
from sensorsim.costing.chips import load_chip, load_parts
from sensorsim.costing.cost_report import cost
from sensorsim.costing.pricing import opening_operations
from sensorsim.device.firmware import Firmware
from sensorsim.fleets.energy import board_of, faultless, most
from sensorsim.fleets.settings import Faults, Prices
from sensorsim.noise.noise_table import ready_table


def one_of_14(**budget: object) -> Firmware:
    return Firmware(ready_table("1.6", 1), **budget)


@pytest.mark.parametrize("chip, radio", [(None, "ble-1m"), ("cc2340r2", "ble-1m"), ("msp430fr5994", "lora-sf7")])
def test_a_release_with_its_store_is_the_sensor_s_record(chip: str | None, radio: str) -> None:
    """Its packet here is that of this table: by what it is longer or shorter, it takes more or less."""
    firmware = one_of_14()
    record = cost(n=14, l=1, chip=chip, radio=radio).record
    sensor = record.costs["sensor"]
    assert sensor.microjoule is not None
    longer = (firmware.layout.bytes - sensor.bytes_sent) * record.radio.nJ_per_byte
    found = board_of(firmware, 28, 1, chip, radio).prices
    assert found.release + found.store == pytest.approx(1000 * sensor.microjoule + longer, abs=1.01)
    assert found.store == round(sensor.parts["journal"].nJ)


def test_an_opening_by_hand() -> None:
    """1024 bytes in 32 turns: a block of ChaCha20 is 80 quarter rounds of 4 additions, 4 xors and 4 rotations."""
    turns, quarter_rounds = 1024 // 32, 10 * 8
    found = opening_operations()
    assert found["ROTATE"] == turns * quarter_rounds * 4
    # 16 words of the state are added at the end. The health tests add 7 times for a byte, 5 times for a word of four,
    # which are looked at together for counters, and 2 times for a turn.
    assert found["ADD"] == turns * (quarter_rounds * 4 + 16 + 2) + 7 * 1024 + 5 * 256
    # Eight words of entropy are mixed in by xor, and compared with those before; 5 + 2 for a byte in the health tests,
    # 3 for a word, 2 for a turn; the rest is the journal's checksums.
    in_turns = turns * (quarter_rounds * 4 + 8 + 8 + 2) + 7 * 1024 + 3 * 256
    assert in_turns < found["XOR"] < in_turns + 500


def test_an_opening_takes_the_chip_s_entropy() -> None:
    """nRF52840: the tables say what a true random word takes. ATmega328P has no source: its core alone is counted."""
    trng, _ = load_parts("nrf52840")
    assert trng is not None
    start = trng.nJ_per_word * trng.start_us / trng.us_per_word
    of_entropy = 256 * trng.nJ_per_word + start
    found = board_of(one_of_14(), 28, 1, "nrf52840").prices
    cycles = (found.open - of_entropy) * 1000 / load_chip("nrf52840").pJ_per_cycle
    assert sum(opening_operations().values()) / 2 < cycles < 2 * sum(opening_operations().values())
    assert load_parts("atmega328p")[0] is None or load_parts("atmega328p")[0].status == "none"
    assert board_of(one_of_14(), 28, 1, "atmega328p").prices.open > 0


def test_a_device_that_nothing_happens_to() -> None:
    """60 days are two periods of 30; ε 8 pays for five releases of 1.6, and two are counted by a store."""
    firmware = one_of_14(budget_epsilon="8", budget_days=30, reserve=2)
    prices = Prices(release=1000, open=70, store=3)
    assert faultless(prices, firmware, 60, 1) == 10 * 1000 + 70 + (2 + 2 * 3) * 3
    assert faultless(prices, firmware, 61, 1) - faultless(prices, firmware, 60, 1) == 5 * 1000 + 3 * 3


@pytest.mark.parametrize("days", [1, 28, 3650])
def test_a_faultless_fleet_has_fine_bins(days: int) -> None:
    """512 even ones reach to twice what a device takes that nothing happens to."""
    firmware = one_of_14()
    prices = board_of(firmware, days, 24).prices
    reach, wanted = prices.step * 512, 2 * faultless(prices, firmware, days, 24)
    assert wanted <= reach < wanted + 512


FAULTY = {
    "none": Faults(),
    "resets": Faults(reset_rate=1),
    "cuts": Faults(power_cuts=1),
    "cuts and resets": Faults(reset_rate=1, power_cuts=1),
    "stuck": Faults(stuck_entropy=1),
    "clocks": Faults(reset_rate=0.1, clock_skew=3650),
    "all": Faults(reset_rate=1, power_cuts=1, loss=1, stuck_entropy=1, clock_skew=9),
}


@pytest.mark.parametrize("schedule", ["sampled", "greedy"])
@pytest.mark.parametrize("faults", FAULTY)
@pytest.mark.parametrize("budget", [{}, {"budget_epsilon": "8", "budget_days": 30}, {"budget_days": 7}])
def test_no_device_is_beyond_the_last_bin(faults: str, schedule: str, budget: dict[str, object]) -> None:
    firmware, days, often = one_of_14(**budget), 365, 1000
    prices = board_of(firmware, days, often, faults=FAULTY[faults], schedule=schedule).prices
    worst = most(prices, firmware, days, often, FAULTY[faults], schedule)
    assert worst >= faultless(prices, firmware, days, often) and worst // prices.step < 512 * 2**14
    if FAULTY[faults].power_cuts and schedule == "greedy":  # it is opened, torn and repaired at every record
        assert worst >= days * often * (prices.open + 2 * prices.store)


def test_the_most_of_a_faultless_device_is_what_it_takes() -> None:
    firmware = one_of_14(budget_epsilon="8", budget_days=30, reserve=2)
    for days in (30, 60, 90):
        prices = Prices(release=1000, open=70, store=3)
        assert most(prices, firmware, days, 1, Faults(), "sampled") == faultless(prices, firmware, days, 1)


def test_a_battery() -> None:
    """100 mAh at the chip's supply."""
    board = board_of(one_of_14(), 28, 1, "nrf52840", battery_mah=100)

    assert board.joule == pytest.approx(100 / 1000 * 3600 * load_chip("nrf52840").supply_V)
    assert (board.chip, board.radio) == ("nRF52840", "ble-1m")


def test_a_chip_without_figures_costs_nothing_and_says_so() -> None:
    board = board_of(one_of_14(), 28, 1, "apollo3")
    assert board.prices == Prices() and "Apollo3 Blue has no figure for its memory" in board.note
    assert board_of(one_of_14(), 28, 1).note == ""


@pytest.mark.parametrize("chip, radio, battery", [("nrf9", "ble-1m", 1), (None, "morse", 1), (None, "ble-1m", 0)])
def test_what_there_is_not(chip: str | None, radio: str, battery: float) -> None:
    with pytest.raises(InputError):
        board_of(one_of_14(), 28, 1, chip, radio, battery)
