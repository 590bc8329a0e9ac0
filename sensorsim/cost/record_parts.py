"""The parts of a record, each priced on a chip: what the core does by its cycles, the rest by its energy."""

from collections.abc import Mapping

from sensorsim.cost.chip_parts import Store, Trng
from sensorsim.cost.prices import Chip, load_cpu
from sensorsim.cost.pricing import Pricing
from sensorsim.cost.radio import Radio
from sensorsim.cost.random import CHACHA12, CHACHA20, TRNG, WORD_BITS, block_operations, blocks, missing_rounds
from sensorsim.cost.record_cost import PARTS, Part, RecordCost
from sensorsim.cost.sensor import RANDOM_BITS, packet_bytes, sensor_operations

SENSOR = "sensor"
WIDTH = 32  # what the kernels compute with
PICOJOULES_PER_NANOJOULE = 1000


def full_pricing(cpu: str) -> Pricing:
    """Every operation priced, at the kernels' width."""
    table = load_cpu(cpu)
    return Pricing(table, WIDTH, False, table.unit, "full")


class Making:
    """Everything that the records of one report share."""

    def __init__(
        self,
        chip: Chip,
        radio: Radio,
        trng: Trng | None,
        store: Store | None,
        random: str,
        cycles: Mapping[str, float],
        n: int,
        pricing: Pricing | None = None,  # of the chip's core, where one has been made
    ) -> None:
        self.pricing = pricing or full_pricing(chip.cpu)
        self.chip, self.radio, self.trng, self.store = chip, radio, trng, store
        self.random, self.cycles, self.n = random, cycles, n
        self.release = {name: self.priced(counts) for name, counts in sensor_operations(n).items()}
        scale = cycles[SENSOR] / sum(self.release.values()) if SENSOR in cycles else 1
        self.of_release = {name: cost * scale for name, cost in self.release.items()}

    def priced(self, counts: Mapping[str, int]) -> float:
        return float(self.pricing.total(counts).typical)

    def part(self, cycles: float, beside: float | None = 0.0) -> Part:
        """Cycles of the core and what something else takes meanwhile, in nanojoules."""
        core = cycles * self.chip.pJ_per_cycle / PICOJOULES_PER_NANOJOULE
        return Part(cycles, None if beside is None else core + beside)

    def of_mechanism(self, name: str, title: str, counts: Mapping[str, int], bits: int, sent: int) -> RecordCost:
        arithmetic = self.cycles.get(name, self.priced(counts))
        size = -(-sent // 8)
        parts = (self.part(arithmetic), self.words(bits), self.journal(self.of_release["journal"]), self.air(size))
        return self.made(name, title, bits, size, parts)

    def of_sensor(self) -> RecordCost:
        parts = self.of_release
        size = packet_bytes(self.n)
        made = (
            self.part(parts["release"] + parts["packet"]),
            self.forgetting_words(RANDOM_BITS),
            self.journal(parts["journal"]),
            self.air(size),
        )
        counted = bool(self.cycles) and SENSOR not in self.cycles  # no compiled sensor on this core
        title = "the sensor, kernel level" if counted else "the sensor, 1 feature by rows"
        return self.made(SENSOR, title, RANDOM_BITS, size, made)

    def made(self, name: str, title: str, bits: int, size: int, parts: tuple[Part, ...]) -> RecordCost:
        by_name = dict(zip(PARTS, parts, strict=True))
        air = self.radio.packets(size), by_name, self.radio.sending_seconds(size), self.radio.busy_seconds(size)
        return RecordCost(name, title, bits, size, *air)

    def words(self, bits: int) -> Part:
        """Random words for a mechanism by itself: whole blocks of a cipher, or true ones."""
        if self.random not in (CHACHA20, CHACHA12):
            return self.true_words(bits)
        block = self.priced(block_operations(self.random))
        if CHACHA20 in self.cycles:
            block *= self.cycles[CHACHA20] / self.priced(block_operations(CHACHA20))
        return self.part(blocks(bits) * block)

    def forgetting_words(self, bits: int) -> Part:
        """Random words for the sensor: one block of its generator, whose first half is the next key."""
        if self.random not in (CHACHA20, CHACHA12):
            return self.true_words(bits)
        whole = self.release["random words"]
        fewer = 1 - self.priced(missing_rounds(self.random)) / whole
        return self.part(self.of_release["random words"] * fewer)

    def true_words(self, bits: int) -> Part:
        """What a chip's generator takes, and the core that reads and keeps its words; nothing where they are free."""
        if self.random != TRNG or self.trng is None:
            return self.part(0)
        words = bits // WORD_BITS
        return self.part(self.priced({"LOAD": words, "STORE": words}), self.trng.nanojoule(words))

    def journal(self, cycles: float) -> Part:
        from sensorsim.kernels.journal import SLOT_BYTES

        return self.part(cycles, self.store.nanojoule(SLOT_BYTES) if self.store else None)

    def air(self, size: int) -> Part:
        return self.part(0, self.radio.nanojoule(size))
