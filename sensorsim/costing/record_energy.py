"""Price one record part by part on a chip: arithmetic, random words, the journal, the packet on the air.

A record takes whole blocks of the cipher and discards the rest of the last one: a stored word is a secret that can be
read. A mechanism by itself uses all sixteen words of a ChaCha20 block; the sensor's generator keeps eight of them as
its next key.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from sensorsim._util.errors import InputError
from sensorsim._util.hints import did_you_mean
from sensorsim.costing.chips import NONE, Chip, Radio, Store, Trng
from sensorsim.costing.pricing import PICOJOULES_PER_NANOJOULE, Pricing, full_pricing
from sensorsim.costing.sensor import RANDOM_BITS, packet_bytes, sensor_operations

PARTS = ("arithmetic", "random words", "journal", "on air")
SENSOR = "sensor"
NANOJOULES_PER_MICROJOULE = 1000
MICROJOULES_PER_JOULE = 1_000_000
SECONDS_PER_DAY = 86_400
CHACHA20, CHACHA12, TRNG, FREE = "chacha20", "chacha12", "trng", "free"
SOURCES = (CHACHA20, CHACHA12, TRNG, FREE)
DOUBLE_ROUNDS = {CHACHA20: 10, CHACHA12: 6}
BLOCK_BITS = 512
WORD_BITS = 32


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

    `cycles` are those of compiled code, where known: by mechanism, `chacha20` for one block, `sensor` for a release.
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
        arithmetic = self.cycles.get(name, self.count_cycles(counts))
        return self._record(name, title, bits, -(-sent // 8), self.part(arithmetic), self._random_words(bits))

    def sensor_record(self) -> RecordCost:
        """Price a release by the whole sensor."""
        counted = bool(self.cycles) and SENSOR not in self.cycles  # no compiled sensor on this core
        title = "the sensor, kernel level" if counted else "the sensor, 1 feature by rows"
        arithmetic = self.part(sum(self.release[name] for name in ("release", "packet", "wiping")))
        return self._record(SENSOR, title, RANDOM_BITS, packet_bytes(self.n), arithmetic, self._sensor_words())

    def _record(self, name: str, title: str, bits: int, size: int, arithmetic: Part, words: Part) -> RecordCost:
        radio, air = self.radio, self.part(0, self.radio.nanojoule(size))
        parts = dict(zip(PARTS, (arithmetic, words, self._journal(), air), strict=True))
        seconds = radio.sending_seconds(size), radio.busy_seconds(size)
        return RecordCost(name, title, bits, size, radio.packets(size), parts, *seconds)

    def _random_words(self, bits: int) -> Part:
        """Price the random words of a mechanism by itself: whole blocks of a cipher, or true ones."""
        if self.random not in DOUBLE_ROUNDS:
            return self._true_words(bits)
        block = self.count_cycles(block_operations(self.random))
        if CHACHA20 in self.cycles:
            block *= self.cycles[CHACHA20] / self.count_cycles(block_operations(CHACHA20))
        return self.part(-(-bits // BLOCK_BITS) * block)

    def _sensor_words(self) -> Part:
        """Price the random words of the sensor: one block of its generator, whose first half is the next key."""
        if self.random not in DOUBLE_ROUNDS:
            return self._true_words(RANDOM_BITS)
        fewer = 1 - self.count_cycles(skipped_rounds(self.random)) / self.counted["random words"]
        return self.part(self.release["random words"] * fewer)

    def _true_words(self, bits: int) -> Part:
        """Price words of the chip's generator, and the core that loads and stores them; nothing where they are free."""
        if self.random != TRNG or self.trng is None:
            return self.part(0)
        words = bits // WORD_BITS
        return self.part(self.count_cycles({"LOAD": words, "STORE": words}), self.trng.nanojoule(words))

    def _journal(self) -> Part:
        from sensorsim.kernels.journal import SLOT_BYTES

        return self.part(self.release["journal"], self.store.nanojoule(SLOT_BYTES) if self.store else None)


def check_random_source(source: str, chip: str, trng: Trng | None) -> None:
    """Check that a source of random words is known, and that the chip has it."""
    if source not in SOURCES:
        hint = did_you_mean(source, SOURCES)
        raise InputError(f"random words from {source!r} are not known{hint}; choose one of {', '.join(SOURCES)}.")
    if source == TRNG and trng is None:
        raise InputError(
            f"the table of {chip} has no figure for a generator of true random words; give --random chacha20."
        )
    if source == TRNG and trng is not None and trng.status == NONE:
        why = f" ({trng.note})" if trng.note else ""
        raise InputError(f"{chip} has no generator of true random words{why}; give --random chacha20.")


@cache
def block_operations(source: str) -> Mapping[str, int]:
    """Count the operations of one block of ChaCha by reading the kernel, less the rounds that the source skips."""
    from sensorsim.kernels.chacha20 import chacha20

    whole = Counter({operation: times.at() for (_, operation), times in chacha20.formula().items()})
    return dict(whole - skipped_rounds(source))


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
