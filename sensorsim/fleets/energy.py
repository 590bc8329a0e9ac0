"""Energy of releases, openings and stores in whole nanojoules, priced as `cost` prices them.

    release    arithmetic, random words and the packet on the air: the sensor's line of a whole record
    store      the journal of that line: read, count, write, and the memory that keeps it
    open       1024 bytes of the chip's entropy (where the tables know of it), watched and absorbed; the journal read

So a release whose store counts it alone takes what `cost` says of the sensor, with this packet on the air. That line is
one of a rows table with 5 knots and 5 symbols, one feature of n; other tables, and a sketch, are priced as if they were
that one. Sensing, sleep, the schedule, refusals and the upkeep of a link are not counted, there as here.
"""

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from sensorsim.costing.chips import DEFAULT_RADIO, NONE
from sensorsim.costing.record_energy import resolve_choices
from sensorsim.device.schedule import Schedule
from sensorsim.fleets.settings import GREEDY, SAMPLED, Faults, Prices

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware

STORES_OF_A_NEW_JOURNAL = 2
BYTES_OF_A_WORD = 4


class Board(NamedTuple):
    """A chip with its radio and battery."""

    prices: Prices
    chip: str
    radio: str
    battery_mah: float | None = None
    joule: float | None = None  # what the battery holds
    note: str = ""  # why there are no prices


def board_of(
    firmware: "Firmware",
    days: int,
    records_per_day: int,
    chip: str | None = None,
    radio: str = DEFAULT_RADIO,
    battery_mah: float | None = None,
    faults: Faults | None = None,
    schedule: str = SAMPLED,
) -> Board:
    """Return the chip that `sensorsim cost` chooses, with prices for devices of these days and faults.

    All prices are zero if the tables lack a figure for a part of the chip.
    """
    from sensorsim.costing.pricing import opening_operations
    from sensorsim.costing.record_energy import CHACHA20, COULOMB_PER_MAH, Choices, RecordPricer
    from sensorsim.fleets.counts import EVEN, MOST_STEPS
    from sensorsim.kernels.health import START_UP

    parts = resolve_choices(Choices(chip, radio, battery_mah=battery_mah), "")
    pricer = RecordPricer(*parts, CHACHA20, {}, firmware.table.features)
    joule = None if battery_mah is None else battery_mah * COULOMB_PER_MAH * pricer.chip.supply_V
    named = pricer.chip.name, pricer.radio.radio, battery_mah, joule
    if pricer.store is None:
        note = f"the table of {pricer.chip.name} has no figure for its memory, so no energy is counted"
        return Board(Prices(), *named, note)
    line, entropy = pricer.sensor_record().parts, int(START_UP) // BYTES_OF_A_WORD
    operations = opening_operations() + Counter({"LOAD": entropy, "STORE": entropy})
    beside = pricer.trng.nanojoule(entropy) if pricer.trng and pricer.trng.status != NONE else 0.0
    opening, store = pricer.part(pricer.count_cycles(operations), beside).nJ, line["journal"].nJ
    arithmetic, words = line["arithmetic"].nJ, line["random words"].nJ
    assert arithmetic is not None and words is not None and opening is not None and store is not None
    release = arithmetic + words + pricer.radio.nanojoule(firmware.layout.bytes)
    prices = Prices(round(release), round(opening), round(store))
    # Even bins of the histogram reach to twice a faultless device, the last one beyond all.
    plain = faultless(prices, firmware, days, records_per_day)
    largest = most(prices, firmware, days, records_per_day, faults or Faults(), schedule)
    return Board(prices._replace(step=max(1, -(-2 * plain // EVEN), largest // MOST_STEPS + 1)), *named)


def faultless(prices: Prices, firmware: "Firmware", days: int, records_per_day: int) -> int:
    """Return the energy of a device without faults: it opens once, and spends its whole budget in each period."""
    allowed = Schedule.of(firmware, records_per_day).allowed
    periods = -(-days // firmware.budget_days)
    stores = STORES_OF_A_NEW_JOURNAL + periods * -(-allowed // firmware.reserve)
    return periods * allowed * prices.release + prices.open + stores * prices.store


def most(prices: Prices, firmware: "Firmware", days: int, records_per_day: int, faults: Faults, schedule: str) -> int:
    """Return an upper bound on the energy of a device with any faults."""
    records = days * records_per_day
    jumps = faults.clock_skew > 0 and (faults.reset_rate > 0 or faults.power_cuts > 0)  # slots may come again
    periods = -(-days // firmware.budget_days) + (faults.clock_skew > 0)
    if jumps:
        periods = (days + 2 * faults.clock_skew) // firmware.budget_days + 2
    due = periods * Schedule.of(firmware, records_per_day).allowed
    tries = records if jumps or schedule == GREEDY else min(records, due)
    within = min(tries, periods * firmware.releases)  # that budgets pay for
    openings = min(tries, days + 1 if faults.reset_rate > 0 else 1)
    stores = within if faults.reset_rate > 0 else min(within, periods * -(-firmware.releases // firmware.reserve))
    if faults.power_cuts > 0:
        stores = 2 * tries  # one that is torn, and one that makes up for it
    if faults.power_cuts > 0 or faults.stuck_entropy > 0 or jumps:
        openings = tries
    return within * prices.release + openings * prices.open + (STORES_OF_A_NEW_JOURNAL + stores) * prices.store
