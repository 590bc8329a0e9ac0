"""Count what one `ss_sensor_release` costs: the release, and all that a sensor does around it so that it stays one.

One feature of n through a rows table by thresholds, 5 knots and 5 symbols, as the default package has it: the sensor's
own kernels, run over a board whose journal holds, the wiping of random words included. The board's part, the time of
its flash and of its clock, is not in it.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.mechanisms.release import SIZE

if TYPE_CHECKING:
    from sensorsim.costing.pricing import Pricing, Total
    from sensorsim.kernels.packet import Layout
    from sensorsim.language.count import Counts
    from sensorsim.language.kernel import Kernel

VALUE_BITS = 3
RANDOM_BITS = 64  # a word picks the feature, a word draws
IDENTITY = list(range(1, 9))  # of some table
JOURNAL, WORDS, RELEASE, PACKET, WIPING = "journal", "random words", "release", "packet", "wiping"


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
    """Return the operations of each part of a release, counted by running the kernels."""
    from sensorsim.kernels.sensor import count_release

    parts = {
        JOURNAL: run_on_board(count_release),
        WORDS: Counter[str](),
        RELEASE: Counter[str](),
        PACKET: Counter[str](),
        WIPING: Counter[str](),
    }
    draw = _draw(n)
    for (step, operation), times in _counts(draw, draw.lengths_at(SIZE), {"sensor.used": [3]}).items():
        part = WIPING if step == "sensor" else step if step in parts else RELEASE
        parts[part][operation] += times
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
    """Return the bytes of the packet that a release sends."""
    size: int = _layout(n).bytes
    return size


def _layout(n: int) -> "Layout":
    from sensorsim.kernels.packet import Layout

    return Layout(0, n, 1, VALUE_BITS)


def _draw(n: int) -> "Kernel":
    """Return the draw of the default package, for records of n features."""
    from sensorsim.kernels.rows_search import sampled_rows_search_one
    from sensorsim.kernels.sensor_draw import Plan, declare_draw

    draw: Kernel = declare_draw(Plan(sampled_rows_search_one, n, n, 1, 1, _layout(n))).draw_release
    return draw


def _slot(spent: int) -> list[int]:
    from sensorsim.kernels import checksum, journal

    crc = list(checksum.CRC.contents or ())
    entry = [0] * journal.SLOT_BYTES
    journal.write_slot(entry, IDENTITY, crc, 1, 1, spent, len(crc))
    return entry


def _counted(kernel: "Kernel", lengths: dict[str, int], given: dict[str, Any]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (_, operation), times in _counts(kernel, lengths, given).items():
        found[operation] += times
    return found


def _counts(kernel: "Kernel", lengths: dict[str, int], given: dict[str, Any]) -> "Counts":
    from sensorsim.language.arguments import arguments
    from sensorsim.language.count import count

    return count(kernel, arguments(kernel, kernel.lengths_at(lengths), lambda name, lo, hi: lo) | given)
