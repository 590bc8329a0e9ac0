"""Compute what a plan costs on the chip and on the air: the whole record of `sensorsim cost`, per release and day.

The sensor's line there is of one feature by a rows table. Here it sends the packet of this table; a release of more
features has the arithmetic of one for each of them, and as many blocks of the generator as its words take. Records that
are not released cost nothing that is counted. Sensing, sleep and the upkeep of a link are not included.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sensorsim._util.terminal import counted
from sensorsim.costing.record_energy import RecordPricer, resolve_choices
from sensorsim.planning.deployment import Line, given

if TYPE_CHECKING:
    from sensorsim.costing.record_energy import Part, WholeRecord
    from sensorsim.planning.solve import Settled

DAYS_PER_YEAR = 365.25
MICROJOULES_PER_JOULE = 1_000_000


@dataclass(frozen=True)
class Costs:
    """Costs of one device. Energies are None where the tables have no figure for a part of the chip."""

    chip: str
    radio: str
    cycles: float
    bytes: int
    on_air_ms: float
    microjoule: float | None  # of a release
    releases_per_day: float
    microjoule_per_day: float | None
    table_bytes: int
    battery_share: float | None  # of a charge that the releases of the whole run take; None also without a battery
    battery_years: float | None  # of releases alone that a charge pays for


def costs(settled: "Settled") -> Costs:
    """Compute the costs of a settled deployment."""
    from sensorsim.costing.record_energy import NANOJOULES_PER_MICROJOULE, check_day

    asked, size = settled.asked, settled.firmware.layout.bytes
    record = record_of(asked.n, asked.chip, asked.radio, asked.battery_mah)
    often = settled.schedule.allowed / given(asked.budget_days)
    check_day(often, record.radio, [record.costs["sensor"]])
    release = release_cost(asked.n, *_shape(settled), asked.chip, asked.radio)
    each = None if release.nJ is None else release.nJ / NANOJOULES_PER_MICROJOULE
    a_day = None if each is None else each * often
    joule = record.joule
    share = None if a_day is None or joule is None else a_day * asked.days / MICROJOULES_PER_JOULE / joule
    years = None if not share else asked.days / share / DAYS_PER_YEAR
    air = 1000 * record.radio.sending_seconds(size)
    of_device = record.chip.name, record.radio.radio, release.cycles, size, air
    return Costs(*of_device, each, often, a_day, settled.table.table_bytes, share, years)


@lru_cache(maxsize=8)
def record_of(n: int, chip: str | None, radio: str, battery_mah: float | None = None) -> "WholeRecord":
    """Return the sensor's record of n features on a chip, by a radio, as in `sensorsim cost`."""
    from sensorsim.costing.record_energy import SENSOR, Choices, WholeRecord

    choices = Choices(chip, radio, battery_mah=battery_mah)
    parts = resolve_choices(choices, "")
    pricer = RecordPricer(*parts, choices.random, {}, n)
    return WholeRecord(*parts, choices, "kernel", {SENSOR: pricer.sensor_record()})


def release_cost(n: int, k: int, blocks: int, size: int, chip: str | None, radio: str) -> "Part":
    """Return the cost of a release of k features, generator blocks and packet bytes; no energy where unknown."""
    from sensorsim.costing.record_energy import Part

    record = record_of(n, chip, radio)
    sensor = record.costs["sensor"]
    arithmetic, words = sensor.parts["arithmetic"], sensor.parts["random words"]
    cycles = sensor.cycles + (k - 1) * arithmetic.cycles + (blocks - 1) * words.cycles
    known = [part.nJ for part in sensor.parts.values() if part.nJ is not None]
    if len(known) < len(sensor.parts) or arithmetic.nJ is None or words.nJ is None:
        return Part(cycles, None)
    air = record.radio.nanojoule(size) - record.radio.nanojoule(sensor.bytes_sent)
    return Part(cycles, sum(known) + (k - 1) * arithmetic.nJ + (blocks - 1) * words.nJ + air)


def _shape(settled: "Settled") -> tuple[int, int, int]:
    """Return the features of a release, the generator blocks for its words, and the bytes of its packet."""
    firmware = settled.firmware
    return firmware.k, firmware.blocks, firmware.layout.bytes


def cost_lines(settled: "Settled", found: Costs) -> list[Line]:
    """Return the lines of a plan about costs."""
    asked = settled.asked
    of = f"{asked.n}, {asked.chip!r}, {asked.radio!r}"
    numbers = ", ".join(map(repr, (asked.n, *_shape(settled), asked.chip, asked.radio)))
    release = f"sensorsim.planning.release_cost({numbers})"
    each = f"{release}.nJ / 1000"
    often = f"{settled.schedule.allowed} / {asked.budget_days}"
    layout = f"sensorsim.device.firmware.Firmware(table, budget_epsilon={str(asked.budget)!r}).layout.bytes"
    made = [
        Line("cycles of a release", found.cycles, "cycles", f"{release}.cycles"),
        Line("bytes of a packet", found.bytes, "bytes", layout),
        Line("time on air of a packet", found.on_air_ms, "ms",
             f"1000 * sensorsim.planning.record_of({of}).radio.sending_seconds({found.bytes})"),
        Line("energy of a release", found.microjoule, "µJ", each if found.microjoule is not None else "None"),
        Line("releases a day", found.releases_per_day, "a day", often),
        Line("bytes of the table", found.table_bytes, "bytes", "table.table_bytes"),
    ]  # fmt: skip
    if found.microjoule_per_day is not None:
        made.append(Line("energy of a day", found.microjoule_per_day, "µJ a day", f"{each} * ({often})"))
    if found.battery_share is not None:
        joule = f"sensorsim.planning.record_of({of}, {asked.battery_mah!r}).joule"
        run = f"{each} * ({often}) * {asked.days} / 1e6 / {joule}"
        made.append(Line("share of a charge", found.battery_share, f"in {counted(asked.days, 'day')}", run))
        years = f"{asked.days} / ({run}) / {DAYS_PER_YEAR}"
        made.append(Line("years of a charge, releases alone", found.battery_years, "years", years))
    return made
