"""A whole record, as a battery sees it: arithmetic, random words, the journal that counts it, the packet on the air.

Every operation is priced, at the kernels' width, on the core of a chip; generators, memory and radio by their energy.
All mechanisms are told alike: each takes fresh random words for a record, counts the record in a journal before it
leaves (24 bytes stored, and the arithmetic of the sensor's journal), and sends it as one record. The sensor's own line
packs its packet too and pays for a generator that forgets. Sensing, sleep, the upkeep of a link and a radio's protocol
stack are in none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.cost.chip_parts import Store, Trng, load_parts
from sensorsim.cost.prices import Chip, is_own, load_chips, load_priced_chip
from sensorsim.cost.radio import DEFAULT_RADIO, Radio, load_radio
from sensorsim.cost.random import CHACHA20, TRNG, check_source
from sensorsim.cost.record_cost import NANOJOULES_PER_MICROJOULE, PARTS, SECONDS_PER_DAY, RecordCost
from sensorsim.cost.record_parts import SENSOR, Making, full_pricing
from sensorsim.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from sensorsim.cost.report import CostReport

DEFAULT_CHIP = "nrf52840"  # of the chips with a radio of their own the one whose figures are surest
COULOMB_PER_MAH = 3.6
LARGEST_MAH = 1_000_000  # of a battery; above it somebody has mistaken a unit


class Choices(NamedTuple):
    """What is asked of a whole record."""

    chip: str | None = None  # None: see `choose_chip`
    radio: str = DEFAULT_RADIO
    random: str = CHACHA20
    records_per_day: float = 1.0
    battery_mah: float | None = None  # None: nobody asks how many records a charge pays for


class WholeRecord(NamedTuple):
    """Whole records of every mechanism that releases anything, on one chip by one radio."""

    chip: Chip
    radio: Radio
    trng: Trng | None
    store: Store | None
    choices: Choices
    level: str
    costs: Mapping[str, RecordCost]
    flags: tuple[str, ...] = ()  # rows of the processor's table that are not settled

    def making(self) -> Callable[[int], Making]:
        """What prices records of another n the same way, by that n."""
        parts = self.chip, self.radio, self.trng, self.store, self.choices.random
        pricing = full_pricing(self.chip.cpu)
        return cache(lambda n: Making(*parts, {}, n, pricing))

    def savings(self) -> dict[str, float | None]:
        """By how many per cent SPOF takes less energy than DP-SGD: arithmetic alone, then with each part added."""
        if not {"spof", "dpsgd"} <= self.costs.keys():
            return {}
        return {name: self._saving(name) for name in PARTS}

    def _saving(self, last: str) -> float | None:
        spof, dpsgd = (self.costs[name].upto(last) for name in ("spof", "dpsgd"))
        return None if spof is None or not dpsgd else 100 * (1 - spof / dpsgd)

    @property
    def joule(self) -> float | None:
        """What the battery holds, at the chip's supply."""
        battery = self.choices.battery_mah
        return None if battery is None else battery * COULOMB_PER_MAH * self.chip.supply_V

    def over_duty(self) -> dict[str, float]:
        """What would send for longer than the band's rules allow, in per cent of a day."""
        often, limit = self.choices.records_per_day, self.radio.duty_percent
        duty = {name: cost.duty_percent(often) for name, cost in self.costs.items()}
        return {name: percent for name, percent in duty.items() if percent > limit}

    def unsettled(self) -> list[str]:
        """What of these figures is no confirmed one, a sentence for each."""
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
            "store_uJ": self._stored("nanojoule"),
            "store_uJ_erasing_each_time": self._stored("nanojoule_erasing"),
            "saving_percent": {name: _rounded(value) for name, value in self.savings().items()},
            "unsettled": self.unsettled(),
            "mechanisms": {name: cost.to_dict(per_day, joule) for name, cost in self.costs.items()},
        }

    def _stored(self, how: str) -> float | None:
        from sensorsim.kernels.journal import SLOT_BYTES

        nanojoule = getattr(self.store, how)(SLOT_BYTES) if self.store else None
        return None if nanojoule is None else nanojoule / NANOJOULES_PER_MICROJOULE

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row for each mechanism and part."""
        for name, cost in self.costs.items():
            for part, value in cost.parts.items():
                yield {
                    "mechanism": name,
                    "part": part,
                    "cycles": value.cycles,
                    "uJ": None if value.nJ is None else value.nJ / NANOJOULES_PER_MICROJOULE,
                    "chip": self.chip.chip,
                    "radio": self.radio.radio,
                    "random": self.choices.random,
                    "level": self.level,
                }

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame(self.rows())


def whole_record(
    report: "CostReport", choices: Choices | None = None, cycles: Mapping[str, float] | None = None
) -> WholeRecord:
    """Whole records of what a report lists.

    `cycles` are those of compiled code, where they are known: by the mechanism's name, `chacha20` for one block, and
    `sensor` for a whole release, whose parts then keep the kernel level's proportions.
    """
    choices = choices or report.choices
    chip, radio, trng, store = settle(choices, report.pricing.cpu.name)
    making = Making(chip, radio, trng, store, choices.random, cycles or {}, report.n)
    costs = {
        name: making.of_mechanism(name, each.mechanism.title, each.counted.operations, each.random_bits, each.bits_sent)
        for name, each in report.mechanisms.items()
        if each.bits_sent
    }
    costs[SENSOR] = making.of_sensor()
    check_day(choices.records_per_day, radio, costs.values())
    flags = tuple(making.pricing.flags.values())
    return WholeRecord(chip, radio, trng, store, choices, "machine" if cycles else "kernel", costs, flags)


def settle(choices: Choices, cpu: str) -> tuple[Chip, Radio, Trng | None, Store | None]:
    """What these choices mean together, or one sentence on why they do not fit."""
    chip = choose_chip(choices.chip, cpu)
    own = choices.chip if choices.chip and is_own(choices.chip) else None
    trng, store = load_parts(chip.chip, own)
    check_source(choices.random, chip.name, trng)
    if not 0 < choices.records_per_day < float("inf"):
        raise InputError(f"{choices.records_per_day:g} records a day are not possible; give a number above 0.")
    if choices.battery_mah is not None and not 0 < choices.battery_mah <= LARGEST_MAH:
        raise InputError(
            f"a battery of {choices.battery_mah:g} mAh is not possible; give a number above 0, at most {LARGEST_MAH}."
        )
    return chip, load_radio(choices.radio, chip.chip), trng, store


def check_day(records: float, radio: Radio, costs: Iterable[RecordCost]) -> None:
    """Refuse more records than a day has room for, be they the shortest."""
    shortest = min(costs, key=lambda cost: cost.busy_seconds)
    if not shortest.fits(records):
        most = int(SECONDS_PER_DAY / shortest.busy_seconds)
        raise InputError(
            f"{records:g} records a day are not possible: the shortest keeps {radio.radio} busy for "
            f"{shortest.busy_seconds:.3g} s, and a day has {SECONDS_PER_DAY}; give at most {most}."
        )


def choose_chip(name: str | None, cpu: str) -> Chip:
    """The chip of that name; without one the default, or the first whose core is `cpu` where the default's is not."""
    if name is not None:
        return load_priced_chip(name)
    known = {chip.chip: chip for chip in load_chips()}
    fitting = [chip for chip in known.values() if chip.cpu and chip.cpu in (cpu, f"{cpu}f")]
    default = known[DEFAULT_CHIP]
    return default if default in fitting or not fitting else fitting[0]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
