"""Run the sensor of kernels/sensor.py by Numba over many devices, on a board that is a few arrays.

The board has two slots of flash that power cuts tear, a source of entropy that follows from a seed or is stuck, and a
clock. tests/fleets/test_fleet_truth.py compares it with `device.Sensor`, packet for packet, faults included.
"""

from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sensorsim.device.flash import MODES, SLOTS
from sensorsim.device.status import Status
from sensorsim.fleets.chance import GOLDEN, fast, multiply_shifted
from sensorsim.kernels import journal, sensor
from sensorsim.kernels.journal import BLANK, COUNT, EPOCH, EPOCH_AT, HOLDS, SLOT_BYTES, SPENT_AT
from sensorsim.kernels.sensor import SENSOR
from sensorsim.language.numba_backend import compiled
from sensorsim.language.numba_backend.compile import dtype

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware

OK = int(Status.OK)
CUT = -1  # the power went: no status of a sensor, which has none any more
BITS, ERASE_FIRST, WHOLE_STORE = (MODES.index(name) for name in ("bits", "erase first", "whole store"))
CUT_BITS = 0x55
STUCK_BYTE = 0x55
NEVER = -1

# Indices of `numbers`: the board, the journal as the simulation saw it, the device.
NOW, CUT_AT, CUT_MODE, POWERLESS, STUCK, STORES, OPENS = range(7)
SEEN_EPOCH, SEEN_SPENT, SPENT_BEFORE, WORST = range(7, 11)  # its last period, all before, the most
NUMBER, CLOCKS, SKEW, SENT, NUMBERS = range(11, 16)  # clocks that were set, days off, packets

MEMORY = [name for name, kind in SENSOR.fields.items() if not kind.ports]  # an array each, also of one cell
_namedtuple: Any = namedtuple  # its fields are those of the record, and no literals
Device = _namedtuple("Device", ["numbers", "flash", "source", "bound", *MEMORY])
# Arrays of one release, made once for a batch: `chosen` are features or the direction of a sketch, `u` is what a sketch
# releases, for the sums of the simulation. Those that a firmware has no use for are empty.
Room = namedtuple("Room", ["word", "order", "chosen", "y", "hidden", "packet", "u"])


def device(firmware: "Firmware") -> Any:
    """Return memory for one device, as it is before `blank`."""
    fields = [np.zeros(int(SENSOR.fields[name].length), dtype(SENSOR.fields[name])) for name in MEMORY]
    flash, source = np.zeros(SLOTS * SLOT_BYTES, np.uint8), np.zeros(1, np.uint64)
    return Device(np.zeros(NUMBERS, np.int64), flash, source, firmware.journal_arguments(), *fields)


@fast
def note(device: Any, epoch: int, spent: int) -> None:
    """Keep for the simulation what the journal counts, over all periods."""
    numbers = device.numbers
    if epoch > numbers[SEEN_EPOCH]:
        numbers[SPENT_BEFORE] += numbers[SEEN_SPENT]
        numbers[SEEN_EPOCH], numbers[SEEN_SPENT] = epoch, 0
    if epoch == numbers[SEEN_EPOCH]:
        numbers[SEEN_SPENT] = max(numbers[SEEN_SPENT], spent)
        numbers[WORST] = max(numbers[WORST], spent)


# ---- the ports of a sensor, as Numba's functions of a device


@fast
def entropy(device: Any, bytes: Any) -> Any:
    """Fill bytes as `device.SeededEntropy` does, or with the same byte for ever."""
    for i in range(len(bytes)):
        if device.numbers[STUCK]:
            bytes[i] = STUCK_BYTE
        else:
            device.source[0] += GOLDEN
            bytes[i] = np.uint8(multiply_shifted(device.source[0]) >> np.uint64(32) & np.uint64(255))
    return 0


@fast
def load(device: Any, slot: int, bytes: Any) -> Any:
    for i in range(len(bytes)):
        bytes[i] = device.flash[slot * SLOT_BYTES + i]
    return 0


@fast
def number_at(bytes: Any, place: int) -> Any:
    number = np.int64(0)
    for i in range(4):
        number |= np.int64(bytes[place + i]) << 8 * i
    return number


@fast
def store(device: Any, slot: int, bytes: Any) -> Any:
    """Store a slot; where the power is to go in it, tear it as `device.Flash.cut` does."""
    numbers, at = device.numbers, slot * SLOT_BYTES
    numbers[STORES] += 1
    if numbers[CUT_AT] == NEVER:
        for i in range(SLOT_BYTES):
            device.flash[at + i] = bytes[i]
        note(device, number_at(bytes, EPOCH_AT), number_at(bytes, SPENT_AT))
        return 0
    mode = numbers[CUT_MODE]
    after = SLOT_BYTES if mode == WHOLE_STORE else numbers[CUT_AT]
    for i in range(SLOT_BYTES):
        new, kept = bytes[i], device.flash[at + i]
        if mode == ERASE_FIRST:
            kept = np.uint8(BLANK)
        if i == after and mode == BITS:
            kept = np.uint8(kept & ~np.uint8(CUT_BITS) | new & np.uint8(CUT_BITS))
        device.flash[at + i] = new if i < after else kept
    numbers[CUT_AT], numbers[POWERLESS] = NEVER, 1
    return 1


@fast
def epoch(device: Any) -> Any:
    return device.numbers[NOW]


PORTS = _namedtuple("Ports", "entropy load store epoch")(entropy, load, store, epoch)


def on_device(kernel: Any, takes: str, passed: str) -> Any:
    """Return a kernel of the sensor as Numba's function of a device, and of what else it takes.

    A field of the record is the device's, or that of the room for one release.
    """
    fields = [name.removeprefix("sensor.") for name in kernel.parameters if name.startswith("sensor.")]
    given = ["device" if name == "port" else f"{'device' if name in MEMORY else 'room'}.{name}" for name in fields]
    scope: dict[str, Any] = {"kernel": compiled(kernel, PORTS)}
    exec(f"def step({takes}):\n return kernel({', '.join(given)}{passed})\n", scope)  # names of the record alone
    return fast(scope["step"])


@cache
def steps() -> tuple[Callable[..., Any], ...]:
    """Return the steps of a sensor on its board as Numba's functions of a device: blank, close, open, count, look.

    `blank` makes a new device with this seed of its entropy, `count` takes one release off the budget, `look` notes
    what the journal says at the end.
    """
    read, bound = compiled(journal.read_journal), "".join(f", device.bound[{i}]" for i in range(5))
    open_kernel, count_kernel = (on_device(one, "device", bound) for one in (sensor.open_sensor, sensor.count_release))
    close_kernel = on_device(sensor.close_sensor, "device", "")

    @fast
    def close(device: Any) -> None:
        """Lose the memory, the key first."""
        close_kernel(device)
        device.state[:] = 0
        device.block[:] = 0
        device.epoch[:] = 0
        device.spent[:] = 0
        device.used[:] = 0
        device.found[:] = 0

    @fast
    def blank(device: Any, seed: int) -> None:
        device.numbers[:] = 0
        device.numbers[CUT_AT] = NEVER
        device.flash[:] = BLANK
        device.source[0] = seed
        close(device)

    @fast
    def look(device: Any) -> None:
        if read(device.flash, device.bound[0], device.bound[1], device.found, len(device.bound[1])) == HOLDS:
            note(device, np.int64(device.found[EPOCH]), np.int64(device.found[COUNT]))

    @fast
    def ended(device: Any, status: int) -> Any:
        """Return what a call came to: a status, or that the power went."""
        note(device, np.int64(device.found[EPOCH]), np.int64(device.found[COUNT]))
        if device.numbers[POWERLESS]:
            device.numbers[POWERLESS] = 0
            close(device)
            return CUT
        return status

    @fast
    def open_(device: Any) -> Any:
        device.numbers[OPENS] += 1
        status = ended(device, np.int64(open_kernel(device)))
        if status == OK:
            device.open[0] = 1
        else:
            close(device)
        return status

    @fast
    def count(device: Any) -> Any:
        """Take one release of those that are counted ahead, or count one in the journal now."""
        status = ended(device, np.int64(count_kernel(device)))
        if not device.open[0]:
            close(device)
        return status

    return blank, close, open_, count, look


# ---- the draw of a firmware


class Draw(NamedTuple):
    """Numba's functions of kernels/sensor_draw.py, and what they are called with."""

    start: Callable[..., Any]  # (device, room): after an opening
    draw: Callable[..., Any]  # (device, x, room, bound)
    sketch: Callable[..., Any]  # (x, room, bound): finds the direction in the packet, and what was released
    room: Any
    bound: tuple[Any, ...]  # arrays of the table, the encoder and the sketch


@fast
def _nothing(one: Any, other: Any, *more: Any) -> None:
    pass


def draw_of(firmware: "Firmware") -> Draw:
    """Compile the draw of this firmware, with arrays of its own.

    What the kernel takes beside the sensor differs from firmware to firmware. A few lines of text bind it: numbers as
    they are, so that Numba folds them, and arrays by their place.
    """
    given, layout = firmware.draw_arguments(), firmware.layout
    arrays = [name for name, value in given.items() if isinstance(value, np.ndarray)]
    place = {name: f"bound[{arrays.index(name)}]" if name in arrays else repr(int(given[name])) for name in given}
    passed = "".join(f", {text}" for text in ("x", "room.packet", *place.values()))
    draw = on_device(firmware.draw.draw_release, "device, x, room, bound", passed)
    start = _nothing if firmware.draw.start is None else on_device(firmware.draw.start, "device, room", "")
    sketch = _nothing
    if firmware.sketch:
        from sensorsim.kernels.sketch import sketch as kernel

        known = place | {"x": "x", "number": "number"}
        scope: dict[str, Any] = {"sketch": compiled(kernel)}
        lines = [
            "def value(x, room, bound):",
            " number = 0",
            f" for i in range({layout.which_bits}):",
            f"  bit = {layout.chosen_at} + i",
            "  number |= (room.packet[bit >> 3] >> (bit & 7) & 1) << i",
            " room.chosen[0] = number",
            f" room.u[0] = sketch({', '.join(known[name] for name in kernel.parameters)})",
        ]
        exec("\n".join(lines), scope)  # numbers and names from above alone
        sketch = fast(scope["value"])
    fields = firmware.draw.record.fields
    made = {name: np.zeros(int(kind.length), dtype(kind)) for name, kind in fields.items() if name in Room._fields}
    empty = dict.fromkeys(("order", "hidden"), np.zeros(0, np.uint32))
    every = {"chosen": np.arange(firmware.k, dtype=np.uint32)}  # where all features are released, these they are
    room = Room(**(empty | every | made | {"packet": np.zeros(layout.bytes, np.uint8), "u": np.zeros(1, np.uint16)}))
    return Draw(start, draw, sketch, room, tuple(given[name] for name in arrays))
