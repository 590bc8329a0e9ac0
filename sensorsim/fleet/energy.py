"""What a device's battery pays for, in whole nanojoules: releases, openings and stores, priced as `cost` prices them.

    release    arithmetic, random words and the packet on the air: the sensor's line of a whole record
    store      the journal of that line: read, count, write, and the memory that keeps it
    open       1024 bytes of the chip's entropy (where the tables know of it), watched and absorbed; the journal read

So a release whose store counts it alone takes what `cost` says of the sensor, with this packet on the air. That line is
one of a rows table with 5 knots and 5 symbols, one feature of n; other tables, and a sketch, are priced as if they were
that one. Sensing, sleep, the schedule, refusals and the upkeep of a link are not counted, there as here.
"""

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.cost.chip_parts import NONE
from sensorsim.cost.radio import DEFAULT_RADIO
from sensorsim.fleet.settings import Prices

if TYPE_CHECKING:
    from sensorsim.cost.record_parts import Making
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


def prices_of(
    firmware: "Firmware", days: int, records_per_day: int, chip: str | None = None, radio: str = DEFAULT_RADIO
) -> Prices:
    """Those of a board; all zero where the tables have no figure for a part of the chip."""
    return board_of(firmware, days, records_per_day, chip, radio).prices


def board_of(
    firmware: "Firmware",
    days: int,
    records_per_day: int,
    chip: str | None = None,
    radio: str = DEFAULT_RADIO,
    battery_mah: float | None = None,
) -> Board:
    """A chip as `sensorsim cost` chooses it, for devices that run so many days."""
    from sensorsim.cost.random import CHACHA20
    from sensorsim.cost.record import COULOMB_PER_MAH, Choices, settle
    from sensorsim.cost.record_parts import Making

    parts = settle(Choices(chip, radio, battery_mah=battery_mah), "")
    making = Making(*parts, CHACHA20, {}, firmware.table.features)
    joule = None if battery_mah is None else battery_mah * COULOMB_PER_MAH * making.chip.supply_V
    named = making.chip.name, making.radio.radio, battery_mah, joule
    if making.store is None:
        note = f"energy.csv has no figure for the memory of {making.chip.name}, so no energy is counted"
        return Board(Prices(), *named, note)
    return Board(_prices(making, firmware, days, records_per_day), *named)


def _prices(making: "Making", firmware: "Firmware", days: int, records_per_day: int) -> Prices:
    line = making.of_sensor().parts
    release = sum(_known(line[name].nJ) for name in ("arithmetic", "random words"))
    release += making.radio.nanojoule(firmware.layout.bytes)
    entropy = _bytes_of_an_opening() // BYTES_OF_A_WORD
    operations = Counter(opening_operations()) + Counter({"LOAD": entropy, "STORE": entropy})
    beside = making.trng.nanojoule(entropy) if making.trng and making.trng.status != NONE else 0.0
    opening = _known(making.part(making.priced(operations), beside).nJ)
    found = Prices(round(release), round(opening), round(_known(line["journal"].nJ)))
    return found._replace(step=_step(found, firmware, days, records_per_day))


def faultless(prices: Prices, firmware: "Firmware", days: int, records_per_day: int) -> int:
    """Nanojoules of a device that nothing happens to: it opens once, and spends its whole budget in each period."""
    from sensorsim.device.schedule import Schedule

    allowed = Schedule.of(firmware, records_per_day).allowed
    periods = -(-days // firmware.budget_days)
    stores = STORES_OF_A_NEW_JOURNAL + periods * -(-allowed // firmware.reserve)
    return periods * allowed * prices.release + prices.open + stores * prices.store


def _step(prices: Prices, firmware: "Firmware", days: int, records_per_day: int) -> int:
    """Of the histogram over devices, which reaches to twice what a faultless one takes."""
    from sensorsim.fleet.counts import ENERGY_BINS

    return max(1, -(-2 * faultless(prices, firmware, days, records_per_day) // ENERGY_BINS))


@cache
def opening_operations() -> Counter[str]:
    """Of an opening that finds a sound journal. What branches on nothing is read, the journal is run."""
    from sensorsim.kernels import generator, health

    found: Counter[str] = Counter()
    for kernel, lengths in ((health.watch, {"count": generator.SEED_BYTES}), (generator.absorb, {})):
        for (_, operation), polynomial in kernel.formula().items():  # they branch on nothing
            found[operation] += polynomial.value(lengths) * (_bytes_of_an_opening() // generator.SEED_BYTES)
    return found + _reading()


def _reading() -> Counter[str]:
    """Of a journal whose two slots hold."""
    from sensorsim.kernels import checksum, journal
    from sensorsim.language.arguments import arguments
    from sensorsim.language.count import count

    identity, crc = list(range(1, 1 + journal.IDENTITY_BYTES)), list(checksum.CRC.contents or ())
    slots: list[int] = []
    for spent in (1, 2):
        entry = [0] * journal.SLOT_BYTES
        journal.write_slot(entry, identity, crc, 1, 1, spent, len(crc))
        slots += entry
    kernel: Any = journal.read_journal
    given = arguments(kernel, kernel.lengths_at({}), lambda name, lo, hi: lo) | {"slots": slots, "identity": identity}
    found: Counter[str] = Counter()
    for (_, operation), times in count(kernel, given).items():
        found[operation] += times
    return found


def _bytes_of_an_opening() -> int:
    from sensorsim.kernels.health import START_UP

    return int(START_UP)


def _known(nanojoule: float | None) -> float:
    assert nanojoule is not None
    return nanojoule
