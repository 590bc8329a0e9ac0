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
from sensorsim.fleets.fast import fast
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

# The board, and what the simulation wants to know.
NOW, CUT_AT, CUT_MODE, POWERLESS, STUCK, STORES, OPENS = range(7)
SEEN_EPOCH, SEEN_SPENT, SPENT_BEFORE, WORST = range(7, 11)  # of the journal: its last period, all before, the most
NUMBER, CLOCKS, SKEW, SENT = range(11, 15)  # of the device, clocks that were set, days off, packets
NUMBERS = 15

MEMORY = [name for name, kind in SENSOR.fields.items() if not kind.ports]  # an array each, also of one cell
FIELDS = ["numbers", "flash", "source", "bound", *MEMORY]
_namedtuple: Any = namedtuple  # its fields are those of the record, and no literals
Device = _namedtuple("Device", FIELDS)


def device(firmware: "Firmware") -> Any:
    """Return memory for one device, as it is before `blank`."""
    fields = [np.zeros(int(SENSOR.fields[name].length), dtype(SENSOR.fields[name])) for name in MEMORY]
    return Device(
        np.zeros(NUMBERS, np.int64),
        np.zeros(SLOTS * SLOT_BYTES, np.uint8),
        np.zeros(1, np.uint64),
        firmware.journal_arguments(),
        *fields,
    )


class Ports(NamedTuple):
    """The board's answers, as Numba's functions of a device."""

    entropy: Callable[..., Any]
    load: Callable[..., Any]
    store: Callable[..., Any]
    epoch: Callable[..., Any]


class Steps(NamedTuple):
    """What a board can be asked to do, as Numba's functions of a device."""

    blank: Callable[..., Any]  # a new device with this seed of its entropy
    close: Callable[..., Any]
    open: Callable[..., Any]
    count: Callable[..., Any]  # take one release off the budget
    look: Callable[..., Any]  # note what the journal says at the end
    forget: Callable[..., Any]  # overwrite an array


@fast
def fill(values: Any, value: int) -> None:
    for i in range(len(values)):
        values[i] = value


@fast
def forget(values: Any) -> None:
    fill(values, 0)


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


@cache
def ports() -> Ports:
    """Return the board's answers, compiled on first use."""

    @fast
    def next_byte(device: Any) -> Any:
        """Return the next byte as `device.SeededEntropy` gives it, or always the same."""
        if device.numbers[STUCK]:
            return np.uint8(STUCK_BYTE)
        device.source[0] += np.uint64(0x9E3779B97F4A7C15)
        z = device.source[0]
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return np.uint8(z >> np.uint64(32) & np.uint64(255))

    @fast
    def entropy(device: Any, bytes: Any) -> Any:
        for i in range(len(bytes)):
            bytes[i] = next_byte(device)
        return 0

    @fast
    def load(device: Any, slot: int, bytes: Any) -> Any:
        for i in range(len(bytes)):
            bytes[i] = device.flash[slot * SLOT_BYTES + i]
        return 0

    @fast
    def torn(device: Any, at: int, bytes: Any, after: int, mode: int) -> None:
        """Store with a power cut at the byte after `after`; see `device.Flash.cut`."""
        if mode == WHOLE_STORE:
            after = SLOT_BYTES
        for i in range(SLOT_BYTES):
            new, kept = bytes[i], device.flash[at + i]
            if mode == ERASE_FIRST:
                kept = np.uint8(BLANK)
            if i == after and mode == BITS:
                kept = np.uint8(kept & ~np.uint8(CUT_BITS) | new & np.uint8(CUT_BITS))
            device.flash[at + i] = new if i < after else kept

    @fast
    def number_at(bytes: Any, place: int) -> Any:
        number = np.int64(0)
        for i in range(4):
            number |= np.int64(bytes[place + i]) << 8 * i
        return number

    @fast
    def store(device: Any, slot: int, bytes: Any) -> Any:
        numbers = device.numbers
        numbers[STORES] += 1
        if numbers[CUT_AT] != NEVER:
            torn(device, slot * SLOT_BYTES, bytes, numbers[CUT_AT], numbers[CUT_MODE])
            numbers[CUT_AT], numbers[POWERLESS] = NEVER, 1
            return 1
        for i in range(SLOT_BYTES):
            device.flash[slot * SLOT_BYTES + i] = bytes[i]
        note(device, number_at(bytes, EPOCH_AT), number_at(bytes, SPENT_AT))
        return 0

    @fast
    def epoch(device: Any) -> Any:
        return device.numbers[NOW]

    return Ports(entropy, load, store, epoch)


def on_device(kernel: Any, takes: str, passed: str) -> Any:
    """Return a kernel of the sensor as Numba's function of a device, and of what else it takes.

    A field of the record is the device's, or that of the room for one release.
    """
    fields = [name.removeprefix("sensor.") for name in kernel.parameters if name.startswith("sensor.")]
    given = ["device" if name == "port" else f"{'device' if name in MEMORY else 'room'}.{name}" for name in fields]
    scope: dict[str, Any] = {"kernel": compiled(kernel, ports())}
    exec(f"def step({takes}):\n return kernel({', '.join(given)}{passed})\n", scope)  # names of the record alone
    return fast(scope["step"])


@cache
def steps() -> Steps:
    """Return what a board can be asked to do, compiled on first use."""
    read, bound = compiled(journal.read_journal), "".join(f", device.bound[{i}]" for i in range(5))
    open_kernel, count_kernel = (on_device(one, "device", bound) for one in (sensor.open_sensor, sensor.count_release))
    close_kernel = on_device(sensor.close_sensor, "device", "")

    @fast
    def close(device: Any) -> None:
        """Lose the memory, the key first."""
        close_kernel(device)
        forget(device.state)
        forget(device.block)
        forget(device.epoch)
        forget(device.spent)
        forget(device.used)
        forget(device.found)

    @fast
    def blank(device: Any, seed: int) -> None:
        forget(device.numbers)
        device.numbers[CUT_AT] = NEVER
        fill(device.flash, BLANK)
        device.source[0] = seed
        close(device)

    @fast
    def look(device: Any) -> Any:
        answer = read(device.flash, device.bound[0], device.bound[1], device.found, len(device.bound[1]))
        if answer == HOLDS:
            note(device, np.int64(device.found[EPOCH]), np.int64(device.found[COUNT]))
        return answer

    @fast
    def ended(device: Any, status: int) -> Any:
        """Return what a call came to: a status, or that the power went."""
        numbers = device.numbers
        note(device, np.int64(device.found[EPOCH]), np.int64(device.found[COUNT]))
        if numbers[POWERLESS]:
            numbers[POWERLESS] = 0
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

    return Steps(blank, close, open_, count, look, forget)
