"""Count what one `ss_sensor_release` costs: the release, and all that a sensor does around it so that it stays one.

One feature of n through a rows table by thresholds, 5 knots and 5 symbols, as the default package has it. The budget is
counted by running the sensor's own kernels over a board whose journal holds. The board's part, the time of its flash
and of its clock, is not in it.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.mechanisms.form import which
from sensorsim.mechanisms.release import SIZE

if TYPE_CHECKING:
    from sensorsim.cost.pricing import Pricing, Total
    from sensorsim.language.kernel import Kernel

    Call = tuple[Kernel, dict[str, int]]  # with its lengths

VALUE_BITS = 3
RANDOM_BITS = 64  # a word picks the feature, a word draws
IDENTITY = list(range(1, 9))  # of some table


class SensorPart(NamedTuple):
    """A part of a release: its operations and their cost."""

    name: str
    operations: dict[str, int]
    cost: "Total"


class SensorRelease(NamedTuple):
    """The parts of one release and their sum."""

    parts: tuple[SensorPart, ...]
    cost: "Total"

    def to_dict(self) -> dict[str, Any]:
        parts = {part.name: {"total": part.cost.typical, "operations": part.operations} for part in self.parts}
        return {"total": self.cost.typical, "total_min": self.cost.min, "total_max": self.cost.max, "parts": parts}


def sensor_release(n: int, pricing: "Pricing") -> SensorRelease:
    """Every operation priced, as `pricing` does in full accounting."""
    parts = [SensorPart(name, dict(counts), pricing.total(counts)) for name, counts in sensor_operations(n).items()]
    whole = sum((Counter(part.operations) for part in parts), Counter[str]())
    return SensorRelease(tuple(parts), pricing.total(whole))


@cache
def sensor_operations(n: int) -> Mapping[str, Counter[str]]:
    """Return the operations of each part of a release, counted by running the kernels; the generator's by reading."""
    from sensorsim.kernels import generator
    from sensorsim.kernels.sensor import count_release

    parts = {"journal": run_on_board(count_release), "random words": read_counts(generator.fresh_words, blocks=1)}
    for name, calls in _calls(n).items():
        counts: Counter[str] = Counter()
        for kernel, lengths in calls:
            counts += _counted(kernel, lengths, {})
        parts[name] = counts
    return parts


def opening_operations() -> Counter[str]:
    """Return the operations of an opening that finds a sound journal: the seeding by reading, the rest by running."""
    from sensorsim.kernels import sensor

    return read_counts(sensor.seed, otherwise=True) + run_on_board(sensor.start) + read_counts(sensor.close_sensor)


def read_counts(kernel: "Kernel", otherwise: bool = False, **lengths: int) -> Counter[str]:
    """Return the operations of a kernel that always goes the same way, by reading it."""
    found: Counter[str] = Counter()
    for (_, operation), polynomial in kernel.formula(otherwise).items():
        found[operation] += polynomial.value(kernel.lengths_at(lengths))
    return found


class _Board:
    """A board whose journal holds, with two releases spent in epoch 1; see the ports of the kernel."""

    def __init__(self) -> None:
        self.slots = [_slot(1), _slot(2)]

    def load(self, slot: int, bytes: list[int]) -> int:
        bytes[:] = self.slots[slot]
        return 0

    def store(self, slot: int, bytes: list[int]) -> int:
        self.slots[slot] = list(bytes)
        return 0

    def epoch(self) -> int:
        return 1


def run_on_board(kernel: "Kernel") -> Counter[str]:
    """Return the operations of one call of a kernel of the sensor, counted by running it on a board."""
    known = {"epoch": [1], "spent": [2], "used": [2], "port": _Board()}
    given = {f"sensor.{name}": value for name, value in known.items()}
    return _counted(kernel, {}, {**given, "identity": IDENTITY, "budget": 10, "reserve": 1})


def packet_bytes(n: int) -> int:
    """Bytes of the packet that a release sends."""
    from sensorsim.kernels.packet import HEAD_BITS

    bits: int = HEAD_BITS + which(n) + VALUE_BITS
    return (bits + 7) // 8


def _calls(n: int) -> dict[str, list["Call"]]:
    from sensorsim.kernels import packet, rows_search

    head, bits = packet.HEAD_BITS, which(n)
    packing: list[Call] = [(packet.pack_head, {"bytes": packet_bytes(n)})]
    if bits:
        packing.append((packet.pack_chosen, {"n": n, "k": 1, "at": head, "bits": bits}))
    packing.append((packet.pack_symbols, {"k": 1, "at": head + bits, "bits": VALUE_BITS}))
    return {"release": [(rows_search.sampled_rows_search_one, {"n": n, **SIZE})], "packet": packing}


def _slot(spent: int) -> list[int]:
    from sensorsim.kernels import checksum, journal

    crc = list(checksum.CRC.contents or ())
    entry = [0] * journal.SLOT_BYTES
    journal.write_slot(entry, IDENTITY, crc, 1, 1, spent, len(crc))
    return entry


def _counted(kernel: "Kernel", lengths: dict[str, int], given: dict[str, Any]) -> Counter[str]:
    from sensorsim.language.arguments import arguments
    from sensorsim.language.count import count

    made = arguments(kernel, kernel.lengths_at(lengths), lambda name, lo, hi: lo) | given
    found: Counter[str] = Counter()
    for (_, operation), times in count(kernel, made).items():
        found[operation] += times
    return found
