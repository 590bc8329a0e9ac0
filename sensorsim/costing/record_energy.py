"""Price whole records on one chip and radio, as a battery sees them: arithmetic, random words, journal and radio.

Every operation is priced at the kernels' width on the core of a chip; generators, memory and radio by their energy. All
mechanisms are treated alike: each takes fresh random words for a record, counts the record in a journal before it is
sent (24 bytes stored, and the arithmetic of the sensor's journal), and sends it as one record. The sensor's own line
also packs its packet and pays for a generator that replaces its key. Sensing, sleep, the upkeep of a link and a radio's
protocol stack are not included.

A record takes whole blocks of the cipher and discards the rest of the last one: a stored word is a secret that can be
read. A mechanism by itself uses all sixteen words of a ChaCha20 block; the sensor's generator keeps eight of them as
its next key.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.costing.chips import (
    DEFAULT_RADIO,
    NONE,
    Chip,
    Radio,
    Store,
    Trng,
    load_chips,
    load_parts,
    load_priced_chip,
    load_radio,
)
from sensorsim.costing.prices import is_own
from sensorsim.costing.pricing import (
    PICOJOULES_PER_NANOJOULE,
    RANDOM_BITS,
    Pricing,
    full_pricing,
    packet_layout,
    sensor_operations,
    sum_steps,
)

if TYPE_CHECKING:
    from sensorsim.costing.cost_report import CostReport

PARTS = ("arithmetic", "random words", "journal", "on air")
SENSOR = "sensor"
NANOJOULES_PER_MICROJOULE = 1000
MICROJOULES_PER_JOULE = 1_000_000
SECONDS_PER_DAY = 86_400
COULOMB_PER_MAH = 3.6
CHACHA20, CHACHA12, TRNG, FREE = "chacha20", "chacha12", "trng", "free"
SOURCES = (CHACHA20, CHACHA12, TRNG, FREE)
DOUBLE_ROUNDS = {CHACHA20: 10, CHACHA12: 6}
BLOCK_BITS, WORD_BITS = 512, 32
DEFAULT_CHIP = "nrf52840"  # of the chips with a radio the one with the most reliable figures
LARGEST_MAH = 1_000_000  # of a battery; a larger one is a mistaken unit


class Part(NamedTuple):
    """Hold the cycles and the energy of a part of a record; None where the chip's table has no figure."""

    cycles: float
    nJ: float | None  # noqa: N815 - the unit's own spelling

    @property
    def microjoule(self) -> float | None:
        """Return the energy in microjoules."""
        return None if self.nJ is None else self.nJ / NANOJOULES_PER_MICROJOULE


class RecordCost(NamedTuple):
    """Hold the cost of one record of one mechanism."""

    mechanism: str
    title: str
    random_bits: int
    bytes_sent: int
    packets: int
    parts: Mapping[str, Part]
    sending_seconds: float  # on the air
    busy_seconds: float  # that the radio is occupied

    @property
    def cycles(self) -> float:
        """Return the cycles of the core."""
        return sum(part.cycles for part in self.parts.values())

    @property
    def microjoule(self) -> float | None:
        """Return the energy of all parts; None where one of them is not known."""
        return self.microjoule_upto(PARTS[-1])

    def microjoule_upto(self, last: str) -> float | None:
        """Return the energy of the parts up to `last`, in their order."""
        parts = [self.parts[name].nJ for name in PARTS[: PARTS.index(last) + 1]]
        known = [nanojoule for nanojoule in parts if nanojoule is not None]
        return sum(known) / NANOJOULES_PER_MICROJOULE if len(known) == len(parts) else None

    def share(self, name: str) -> float | None:
        """Return the share of a part in the energy, in per cent."""
        whole, part = self.microjoule, self.parts[name].nJ
        return None if not whole or part is None else 100 * part / NANOJOULES_PER_MICROJOULE / whole

    def daily_microjoule(self, records: float) -> float | None:
        """Return the energy of `records` a day; None where the radio cannot send them, or a part is not known."""
        whole = self.microjoule
        return None if whole is None or not self.fits_day(records) else whole * records

    def fits_day(self, records: float) -> bool:
        """Return whether the radio can send `records` in a day."""
        return records * self.busy_seconds <= SECONDS_PER_DAY

    def duty_percent(self, records: float) -> float:
        """Return the share of a day that `records` are on the air, in per cent."""
        return 100 * records * self.sending_seconds / SECONDS_PER_DAY

    def records_per_charge(self, joule: float) -> float | None:
        """Return the number of records that `joule` pays for."""
        whole = self.microjoule
        return joule / (whole / MICROJOULES_PER_JOULE) if whole else None

    def to_dict(self, per_day: float, joule: float | None = None) -> dict[str, Any]:
        """Return the cost as JSON has it, for `per_day` records a day and a battery of `joule`."""
        charge = {} if joule is None else {"records_per_charge": self.records_per_charge(joule)}
        return {
            "title": self.title,
            "cycles": self.cycles,
            "uJ": self.microjoule,
            "uJ_per_day": self.daily_microjoule(per_day),
            **charge,
            "random_bits": self.random_bits,
            "bytes_sent": self.bytes_sent,
            "packets": self.packets,
            "on_air_seconds": self.sending_seconds,
            "duty_percent": self.duty_percent(per_day) if self.fits_day(per_day) else None,
            "parts": {
                name: {"cycles": part.cycles, "uJ": part.microjoule, "share_percent": self.share(name)}
                for name, part in self.parts.items()
            },
        }


class RecordPricer:
    """Price the records of one report: mechanisms by themselves, and the sensor.

    `cycles` are those of compiled code, where known: by mechanism, `chacha20` for one block, `sensor` for a release,
    whose parts then keep the kernel level's proportions.
    """

    def __init__(
        self,
        chip: Chip,
        radio: Radio,
        trng: Trng | None,
        store: Store | None,
        random: str,
        cycles: Mapping[str, float],
        n: int,
        pricing: Pricing | None = None,  # of the chip's core, where one exists already
    ) -> None:
        self.pricing = pricing or full_pricing(chip.cpu)
        self.chip, self.radio, self.trng, self.store = chip, radio, trng, store
        self.random, self.cycles, self.n = random, cycles, n
        self.counted = {name: self.count_cycles(counts) for name, counts in sensor_operations(n).items()}
        scale = cycles[SENSOR] / sum(self.counted.values()) if SENSOR in cycles else 1
        self.release = {name: cost * scale for name, cost in self.counted.items()}

    def count_cycles(self, counts: Mapping[str, int]) -> float:
        """Return the typical cycles of these operations."""
        return float(self.pricing.total(counts).typical)

    def part(self, cycles: float, beside: float | None = 0.0) -> Part:
        """Return a part with the energy of the core's cycles and of something `beside` it, in nanojoules."""
        core = cycles * self.chip.pJ_per_cycle / PICOJOULES_PER_NANOJOULE
        return Part(cycles, None if beside is None else core + beside)

    def mechanism_record(self, name: str, title: str, counts: Mapping[str, int], bits: int, sent: int) -> RecordCost:
        """Price a record of a mechanism with `bits` random bits and `sent` bits on the air."""
        words = self._true_words(bits)
        if words is None:  # whole blocks of a cipher
            block = self.count_cycles(block_operations(self.random))
            if CHACHA20 in self.cycles:
                block *= self.cycles[CHACHA20] / self.count_cycles(block_operations(CHACHA20))
            words = self.part(-(-bits // BLOCK_BITS) * block)
        arithmetic = self.part(self.cycles.get(name, self.count_cycles(counts)))
        return self._record(name, title, bits, -(-sent // 8), arithmetic, words)

    def sensor_record(self) -> RecordCost:
        """Price a release by the whole sensor."""
        words = self._true_words(RANDOM_BITS)
        if words is None:  # one block of its generator, whose first half is the next key
            fewer = 1 - self.count_cycles(skipped_rounds(self.random)) / self.counted["random words"]
            words = self.part(self.release["random words"] * fewer)
        counted = bool(self.cycles) and SENSOR not in self.cycles  # no compiled sensor on this core
        title = "the sensor, kernel level" if counted else "the sensor, 1 feature by rows"
        arithmetic = self.part(sum(self.release[name] for name in ("release", "packet", "wiping")))
        return self._record(SENSOR, title, RANDOM_BITS, packet_layout(self.n).bytes, arithmetic, words)

    def _record(self, name: str, title: str, bits: int, size: int, arithmetic: Part, words: Part) -> RecordCost:
        from sensorsim.kernels.journal import SLOT_BYTES

        radio, air = self.radio, self.part(0, self.radio.nanojoule(size))
        journal = self.part(self.release["journal"], self.store.nanojoule(SLOT_BYTES) if self.store else None)
        parts = dict(zip(PARTS, (arithmetic, words, journal, air), strict=True))
        seconds = radio.sending_seconds(size), radio.busy_seconds(size)
        return RecordCost(name, title, bits, size, radio.packets(size), parts, *seconds)

    def _true_words(self, bits: int) -> Part | None:
        """Price words of the chip's generator, with their loads and stores, or free ones; None where a cipher runs."""
        if self.random in DOUBLE_ROUNDS:
            return None
        if self.random != TRNG or self.trng is None:
            return self.part(0)
        words = bits // WORD_BITS
        return self.part(self.count_cycles({"LOAD": words, "STORE": words}), self.trng.nanojoule(words))


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
        found: dict[str, float | None] = {}
        for part in PARTS if {"spof", "dpsgd"} <= self.costs.keys() else ():
            spof, dpsgd = (self.costs[name].microjoule_upto(part) for name in ("spof", "dpsgd"))
            found[part] = None if spof is None or not dpsgd else 100 * (1 - spof / dpsgd)
        return found

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
        from sensorsim.kernels.journal import SLOT_BYTES

        per_day, joule, store = self.choices.records_per_day, self.joule, self.store
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
            "store": store.kind if store else None,
            "store_uJ": store.nanojoule(SLOT_BYTES) / NANOJOULES_PER_MICROJOULE if store else None,
            "store_uJ_erasing_each_time": store.nanojoule_erasing(SLOT_BYTES) / NANOJOULES_PER_MICROJOULE
            if store
            else None,
            "saving_percent": {
                name: None if saved is None else round(saved, 2) for name, saved in self.savings().items()
            },
            "unsettled": self.unsettled(),
            "mechanisms": {name: cost.to_dict(per_day, joule) for name, cost in self.costs.items()},
        }

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


def price_whole_record(
    report: "CostReport", choices: Choices | None = None, cycles: Mapping[str, float] | None = None
) -> WholeRecord:
    """Price whole records of the mechanisms of a report and of the sensor; for `cycles` see RecordPricer."""
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
    """Load the chip, radio, generator and memory of these choices; InputError where they do not fit together.

    Without a chip take the default, or the first whose core is `cpu` where the default's is not.
    """
    if choices.chip is not None:
        chip = load_priced_chip(choices.chip)
    else:
        known = {chip.chip: chip for chip in load_chips()}
        fitting = [chip for chip in known.values() if chip.cpu and chip.cpu in (cpu, f"{cpu}f")]
        chip = fitting[0] if fitting and known[DEFAULT_CHIP] not in fitting else known[DEFAULT_CHIP]
    trng, store = load_parts(chip.chip, choices.chip if choices.chip and is_own(choices.chip) else None)
    if choices.random not in SOURCES:
        hint = did_you_mean(choices.random, SOURCES)
        known_sources = ", ".join(SOURCES)
        raise InputError(f"random words from {choices.random!r} are not known{hint}; choose one of {known_sources}.")
    if choices.random == TRNG and (trng is None or trng.status == NONE):
        has = "no figure for a" if trng is None else "no"
        why = f" ({trng.note})" if trng and trng.note else ""
        raise InputError(f"{chip.name} has {has} generator of true random words{why}; give --random chacha20.")
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


@cache
def block_operations(source: str) -> Mapping[str, int]:
    """Count the operations of one block of ChaCha by reading the kernel, less the rounds that the source skips."""
    from sensorsim.kernels.chacha20 import chacha20

    whole = {operation: times.at() for operation, times in sum_steps(chacha20.formula()).items()}
    return dict(Counter(whole) - skipped_rounds(source))


@cache
def skipped_rounds(source: str) -> Counter[str]:
    """Count the operations of the rounds that ChaCha20 has and the source has not: eight quarters and the loop each."""
    from sensorsim.kernels.chacha20 import chacha20, quarter_round
    from sensorsim.language import ir
    from sensorsim.language.count import PER_ITERATION

    (loop,) = (node for node in chacha20.nodes if isinstance(node, ir.For) and isinstance(node.body[0], ir.Do))
    quarter = Counter({operation: times.at() for (_, operation), times in quarter_round.formula().items()})
    double = Counter(PER_ITERATION)
    for operation, times in quarter.items():
        double[operation] += times * len(loop.body)
    fewer = DOUBLE_ROUNDS[CHACHA20] - DOUBLE_ROUNDS[source]
    return Counter({operation: fewer * times for operation, times in double.items() if fewer})
