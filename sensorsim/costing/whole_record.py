"""Report the energy of whole records on one chip and radio, as a battery sees it.

Every operation is priced at the kernels' width on the core of a chip; generators, memory and radio by their energy. All
mechanisms are treated alike: each takes fresh random words for a record, counts the record in a journal before it is
sent (24 bytes stored, and the arithmetic of the sensor's journal), and sends it as one record. The sensor's own line
also packs its packet and pays for a generator that replaces its key. Sensing, sleep, the upkeep of a link and a radio's
protocol stack are not included.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim.costing.chips import (
    DEFAULT_RADIO,
    Chip,
    Radio,
    Store,
    Trng,
    load_chips,
    load_parts,
    load_priced_chip,
    load_radio,
)
from sensorsim.costing.cost_report import CostReport, round_percent
from sensorsim.costing.prices import is_own
from sensorsim.costing.pricing import full_pricing
from sensorsim.costing.record_energy import (
    CHACHA20,
    NANOJOULES_PER_MICROJOULE,
    PARTS,
    SECONDS_PER_DAY,
    SENSOR,
    TRNG,
    RecordCost,
    RecordPricer,
    check_random_source,
)

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_CHIP = "nrf52840"  # of the chips with a radio the one with the most reliable figures
COULOMB_PER_MAH = 3.6
LARGEST_MAH = 1_000_000  # of a battery; a larger one is a mistaken unit


class Choices(NamedTuple):
    """Hold the options of a whole record."""

    chip: str | None = None  # None: see `choose_chip`
    radio: str = DEFAULT_RADIO
    random: str = CHACHA20
    records_per_day: float = 1.0
    battery_mah: float | None = None  # None: do not report records per charge


class WholeRecord(NamedTuple):
    """Hold the records of every mechanism that releases anything, on one chip and radio."""

    chip: Chip
    radio: Radio
    trng: Trng | None
    store: Store | None
    choices: Choices
    level: str
    costs: Mapping[str, RecordCost]
    flags: tuple[str, ...] = ()  # rows of the processor's table that are not settled

    def pricers(self) -> Callable[[int], RecordPricer]:
        """Return a function from n to the pricer of records of n features, with the same choices."""
        parts = self.chip, self.radio, self.trng, self.store, self.choices.random
        pricing = full_pricing(self.chip.cpu)
        return cache(lambda n: RecordPricer(*parts, {}, n, pricing))

    def savings(self) -> dict[str, float | None]:
        """Return by how many per cent SPOF takes less energy than DP-SGD: arithmetic alone, then with each part."""
        if not {"spof", "dpsgd"} <= self.costs.keys():
            return {}
        return {name: self._saving(name) for name in PARTS}

    def _saving(self, last: str) -> float | None:
        spof, dpsgd = (self.costs[name].microjoule_upto(last) for name in ("spof", "dpsgd"))
        return None if spof is None or not dpsgd else 100 * (1 - spof / dpsgd)

    @property
    def joule(self) -> float | None:
        """Return the energy of the battery at the chip's supply voltage."""
        battery = self.choices.battery_mah
        return None if battery is None else battery * COULOMB_PER_MAH * self.chip.supply_V

    def over_duty(self) -> dict[str, float]:
        """Return the mechanisms that send longer than the band's rules allow, in per cent of a day."""
        often, limit = self.choices.records_per_day, self.radio.duty_percent
        duty = {name: cost.duty_percent(often) for name, cost in self.costs.items()}
        return {name: percent for name, percent in duty.items() if percent > limit}

    def unsettled(self) -> list[str]:
        """List the figures that are not confirmed, a sentence for each."""
        said = [(f"core of {self.chip.name}", self.chip.status, self.chip.note)]
        if self.store:
            said.append((f"{self.store.kind} of {self.chip.name}", self.store.status, self.store.note))
        else:
            said.append((f"memory of {self.chip.name}", "not known", "no figure in its table, so there is no total"))
        if self.choices.random == TRNG and self.trng:
            said.append((f"generator of {self.chip.name}", self.trng.status, self.trng.note))
        of = f", {self.radio.status_of}" if self.radio.status_of else ""
        said.append((f"{self.radio.radio}{of}", self.radio.status, self.radio.note))
        return [f"{what}: {status} ({note})" for what, status, note in said if status != "confirmed"] + [*self.flags]

    def to_dict(self) -> dict[str, Any]:
        per_day, joule = self.choices.records_per_day, self.joule
        battery = {} if joule is None else {"battery_mah": self.choices.battery_mah, "battery_J": joule}
        return {
            "chip": self.chip.chip,
            "chip_given": self.choices.chip is not None,
            "cpu": self.chip.cpu,
            "random": self.choices.random,
            "radio": self.radio.radio,
            "radio_of": self.radio.chip,
            "records_per_day": float(per_day),
            **battery,
            "duty_percent_allowed": self.radio.duty_percent,
            "over_duty": list(self.over_duty()),
            "level": self.level,
            "store": self.store.kind if self.store else None,
            "store_uJ": self._store_microjoule("nanojoule"),
            "store_uJ_erasing_each_time": self._store_microjoule("nanojoule_erasing"),
            "saving_percent": {name: round_percent(value) for name, value in self.savings().items()},
            "unsettled": self.unsettled(),
            "mechanisms": {name: cost.to_dict(per_day, joule) for name, cost in self.costs.items()},
        }

    def _store_microjoule(self, how: str) -> float | None:
        from sensorsim.kernels.journal import SLOT_BYTES

        nanojoule = getattr(self.store, how)(SLOT_BYTES) if self.store else None
        return None if nanojoule is None else nanojoule / NANOJOULES_PER_MICROJOULE

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one row for each mechanism and part."""
        for name, cost in self.costs.items():
            for part, value in cost.parts.items():
                yield {
                    "mechanism": name,
                    "part": part,
                    "cycles": value.cycles,
                    "uJ": value.microjoule,
                    "chip": self.chip.chip,
                    "radio": self.radio.radio,
                    "random": self.choices.random,
                    "level": self.level,
                }

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(self.rows())


def price_whole_record(
    report: CostReport, choices: Choices | None = None, cycles: Mapping[str, float] | None = None
) -> WholeRecord:
    """Price whole records of the mechanisms of a report.

    `cycles` are those of compiled code, where they are known: by the mechanism's name, `chacha20` for one block, and
    `sensor` for a whole release, whose parts then keep the kernel level's proportions.
    """
    choices = choices or report.choices
    chip, radio, trng, store = resolve_choices(choices, report.pricing.cpu.name)
    pricer = RecordPricer(chip, radio, trng, store, choices.random, cycles or {}, report.n)
    costs = {
        name: pricer.mechanism_record(
            name, each.mechanism.title, each.counted.operations, each.random_bits, each.bits_sent
        )
        for name, each in report.mechanisms.items()
        if each.bits_sent
    }
    costs[SENSOR] = pricer.sensor_record()
    check_day(choices.records_per_day, radio, costs.values())
    flags = tuple(pricer.pricing.flags.values())
    return WholeRecord(chip, radio, trng, store, choices, "machine" if cycles else "kernel", costs, flags)


def resolve_choices(choices: Choices, cpu: str) -> tuple[Chip, Radio, Trng | None, Store | None]:
    """Load the chip, radio, generator and memory of these choices; InputError where they do not fit together."""
    chip = choose_chip(choices.chip, cpu)
    own = choices.chip if choices.chip and is_own(choices.chip) else None
    trng, store = load_parts(chip.chip, own)
    check_random_source(choices.random, chip.name, trng)
    if not 0 < choices.records_per_day < float("inf"):
        raise InputError(f"{choices.records_per_day:g} records a day are not possible; give a number above 0.")
    if choices.battery_mah is not None and not 0 < choices.battery_mah <= LARGEST_MAH:
        raise InputError(
            f"a battery of {choices.battery_mah:g} mAh is not possible; give a number above 0, at most {LARGEST_MAH}."
        )
    return chip, load_radio(choices.radio, chip.chip), trng, store


def check_day(records: float, radio: Radio, costs: Iterable[RecordCost]) -> None:
    """Check that the radio can send this many of the shortest record in a day."""
    shortest = min(costs, key=lambda cost: cost.busy_seconds)
    if not shortest.fits_day(records):
        most = int(SECONDS_PER_DAY / shortest.busy_seconds)
        raise InputError(
            f"{records:g} records a day are not possible: the shortest keeps {radio.radio} busy for "
            f"{shortest.busy_seconds:.3g} s, and a day has {SECONDS_PER_DAY}; give at most {most}."
        )


def choose_chip(name: str | None, cpu: str) -> Chip:
    """Load the named chip, or the default, or the first whose core is `cpu` where the default's is not."""
    if name is not None:
        return load_priced_chip(name)
    known = {chip.chip: chip for chip in load_chips()}
    fitting = [chip for chip in known.values() if chip.cpu and chip.cpu in (cpu, f"{cpu}f")]
    default = known[DEFAULT_CHIP]
    return default if default in fitting or not fitting else fitting[0]
