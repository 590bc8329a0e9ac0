"""What one `ss_sensor_release` costs: the release, and all that a sensor does around it so that it stays one.

One feature of n through a rows table by thresholds, 5 knots and 5 symbols, as the default package has it. The board's
own part, the time of its flash and of its clock, is not in it.
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

    Call = tuple[Kernel, dict[str, int], dict[str, Any]]  # with its lengths and the arguments that are not the least

VALUE_BITS = 3
RANDOM_BITS = 64  # a word picks the feature, a word draws


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
    """The operations of each part of a release, counted by running the kernels; the generator's by reading it."""
    parts: dict[str, Counter[str]] = {}
    for name, calls in _calls(n).items():
        counts: Counter[str] = Counter()
        for kernel, lengths, given in calls:
            counts += _count(kernel, lengths, given)
        parts[name] = counts
    return parts


def packet_bytes(n: int) -> int:
    """Bytes of the packet that a release sends."""
    from sensorsim.kernels.packet import HEAD_BITS

    bits: int = HEAD_BITS + which(n) + VALUE_BITS
    return (bits + 7) // 8


def _calls(n: int) -> dict[str, list["Call"]]:
    from sensorsim.kernels import generator, journal, packet, rows_search

    head = packet.HEAD_BITS
    identity = list(range(1, 9))
    slots = {"slots": [*_slot(identity, 1), *_slot(identity, 2)], "identity": identity}
    bits = which(n)
    packing: list[Call] = [(packet.pack_head, {"bytes": packet_bytes(n)}, {})]
    if bits:
        packing.append((packet.pack_chosen, {"n": n, "k": 1, "at": head, "bits": bits}, {}))
    packing.append((packet.pack_symbols, {"k": 1, "at": head + bits, "bits": VALUE_BITS}, {}))
    release = rows_search.sampled_rows_search_one
    return {
        "journal": [
            (journal.read_journal, {}, slots),
            (journal.spend, {}, {"now": 1, "found": [1, 2, 0], "budget": 10}),
            (journal.write_slot, {}, {}),
        ],
        "random words": [(generator.fresh_words, {"blocks": 1}, {})],
        "release": [(release, {"n": n, **SIZE}, {})],
        "packet": packing,
    }


def _slot(identity: list[int], spent: int) -> list[int]:
    from sensorsim.kernels import checksum, journal

    crc = list(checksum.CRC.contents or ())
    entry = [0] * journal.SLOT_BYTES
    journal.write_slot(entry, identity, crc, 1, 1, spent, len(crc))
    return entry


def _count(kernel: "Kernel", lengths: dict[str, int], given: dict[str, Any]) -> Counter[str]:
    from sensorsim.language.arguments import arguments
    from sensorsim.language.count import count

    found: Counter[str] = Counter()
    if kernel.name == "fresh_words":  # ten rounds of one block branch on nothing: read, as running takes longer
        for (_, operation), polynomial in kernel.formula().items():
            found[operation] += polynomial.value(lengths)
        return found
    made = arguments(kernel, kernel.lengths_at(lengths), lambda name, lo, hi: lo) | given
    for (_, operation), times in count(kernel, made).items():
        found[operation] += times
    return found
