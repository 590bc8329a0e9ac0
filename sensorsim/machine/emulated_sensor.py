"""Run the compiled sensor on an emulated core, over the simulated flash, entropy and clock of the firmware model.

The host implements the four functions of the port, so that flash, entropy and clock are the objects that
`sensorsim.device.Sensor` runs on: the two can be compared packet for packet, and power can be cut at any byte.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import fill, temporary_folder
from sensorsim.costing.prices import load_cpu
from sensorsim.device.entropy import Entropy, SeededEntropy, SystemEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.flash import Flash
from sensorsim.device.sensor import Clock
from sensorsim.device.status import Status
from sensorsim.language.c.comments import with_prefix
from sensorsim.machine.counting import BlockCounter, Tally
from sensorsim.machine.elf import Program, read_elf
from sensorsim.machine.emulator import Machine
from sensorsim.machine.instructions import Decoder
from sensorsim.machine.targets import SHOWN, TARGETS, Target, compile_elf

GARBAGE = 0xA5  # in memory before a sensor is opened
ROOM = 1 << 16  # for the sensor's state
RELEASES = 20
CALLS = ("open, blank memory", "open", "release", "left")
FAILED = 1
BOARD = 0x0B0A2D00  # what the program must hand to every function of the port as it is
BOARD_ENTRY = "board_entry"


def link_sensor(target: Target, sources: Sequence[Path], include: Sequence[Path], prefix: str, build: Path) -> Path:
    """Link the whole sensor for a core, with an entry that calls its three functions so that nothing is left out."""
    entry = board_entry(prefix, build)
    return compile_elf(target, [*sources, entry], include, BOARD_ENTRY, build / f"board-{target.name}.elf")


def board_entry(prefix: str, build: Path, close: bool = False) -> Path:
    """Write a C file with the entry; it may close the sensor too, which few applications do."""
    entry, last = build / "board_entry.c", "(void)call_left(sensor);\n"
    text = (files("sensorsim.machine") / entry.name).read_text("utf-8")
    if close:
        text = text.replace(last, last + 8 * " " + "ss_sensor_close(sensor);\n")
    entry.write_text(with_prefix(text, prefix), "utf-8")
    return entry


class EmulatedSensor:
    """Call `ss_sensor_open`, `ss_sensor_release`, `ss_sensor_left` and `ss_sensor_close` of a linked program."""

    def __init__(
        self,
        target: Target,
        program: Path | Program,
        firmware: Firmware,
        prefix: str = "ss_",
        flash: Flash | None = None,
        entropy: Entropy | None = None,
        epoch: Callable[[], int] | None = None,
    ) -> None:
        linked = read_elf(program.read_bytes()) if isinstance(program, Path) else program
        self.machine, self.firmware, self.prefix = Machine(target, linked), firmware, prefix
        self.flash, self.entropy, self.epoch = flash or Flash(), entropy or SystemEntropy(), epoch or (lambda: 0)
        self.sensor = self.machine.places.arguments
        self.port, self.x = self.sensor + ROOM, self.sensor + ROOM + 256
        self.packet = self.x + 2 * firmware.n + 16
        functions = self.machine.play([self._entropy, self._load, self._store, self._epoch])
        self.machine.uc.mem_write(self.port, struct.pack("<5I", BOARD, *functions))
        self.reset()

    def reset(self) -> None:
        """Fill memory with garbage, as after a reset; the sensor is not open."""
        self.machine.uc.mem_write(self.sensor, bytes([GARBAGE]) * ROOM)
        self.machine.uc.mem_write(self.packet, bytes([GARBAGE]) * self.firmware.layout.bytes)

    @property
    def ram_bytes(self) -> int:
        """Return the size of an ss_sensor."""
        return self.machine.call(BOARD_ENTRY, (0, 0, 0, 0))

    def open(self) -> Status:
        return Status(self._call("open", self.sensor, self.port))

    def release(self, x: Any) -> tuple[Status, bytes]:
        self.machine.uc.mem_write(self.x, struct.pack(f"<{self.firmware.n}H", *map(int, x)))
        status = Status(self._call("release", self.sensor, self.x, self.packet))
        return status, bytes(self.machine.uc.mem_read(self.packet, self.firmware.layout.bytes))

    def left(self) -> int:
        return self._call("left", self.sensor)

    def close(self) -> None:
        self._call("close", self.sensor)

    def _call(self, name: str, *arguments: int) -> int:
        try:
            return self.machine.call(f"{self.prefix}sensor_{name}", arguments)
        except Exception:
            self.reset()  # the power went
            raise

    def _check(self, board: int, count: int = 0, slot: int = 0) -> None:
        if board != BOARD:
            raise InputError(f"the program hands 0x{board:x} to a function of the port, and its board is 0x{BOARD:x}.")
        if count > ROOM or slot > 1:
            raise InputError(f"the program asks its board for {count} bytes of slot {slot}, which no sensor does.")

    def _try(self, board: int, count: int, slot: int, access: Callable[[], Any]) -> int:
        """Return the status of an access that may fail; a damaged program may pass any arguments."""
        self._check(board, count, slot)
        try:
            access()
        except OSError:
            return FAILED
        return 0

    def _entropy(self, board: int, at: int, count: int) -> int:
        return self._try(board, count, 0, lambda: self.machine.uc.mem_write(at, bytes(self.entropy(count))))

    def _load(self, board: int, slot: int, at: int, count: int) -> int:
        return self._try(board, count, slot, lambda: self.machine.uc.mem_write(at, self.flash.load(slot)[:count]))

    def _store(self, board: int, slot: int, at: int, count: int) -> int:
        return self._try(board, count, slot, lambda: self.flash.store(slot, bytes(self.machine.uc.mem_read(at, count))))

    def _epoch(self, board: int) -> int:
        self._check(board)
        return self.epoch()


@dataclass(frozen=True)
class CallCost:
    """Hold the cost of one function on one core: mean instructions and cost of a call, deepest stack."""

    call: str
    target: str
    instructions: float
    cost: float | None
    unit: str
    stack_bytes: int


@dataclass(frozen=True)
class SensorCost:
    """Hold the cost of all calls on one core, and the size of flash and RAM."""

    target: str
    calls: tuple[CallCost, ...]
    flash_bytes: int
    ram_bytes: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def sensor_costs(
    firmware: Firmware, texts: Mapping[str, str], prefix: str, targets: Sequence[str] = SHOWN
) -> list[SensorCost]:
    """Compile the sensor for each core, run it there and count, with generator, journal and packet.

    The board's own functions are not included: the time to write flash or to fill a byte of entropy is the board's.
    """
    with temporary_folder() as made:
        folder = Path(made)
        fill(folder, {path: text for path, text in texts.items() if path.startswith(("src/", "include/"))})
        sources, include = sorted((folder / "src").glob("*.c")), [folder / "include", folder / "src"]
        costs = []
        for target in (TARGETS[name] for name in targets):
            clock, cpu = Clock(1), load_cpu(target.cpu)
            program = link_sensor(target, sources, include, prefix, folder)
            sensor = EmulatedSensor(target, program, firmware, prefix, entropy=SeededEntropy(1), epoch=clock)
            counter = BlockCounter(sensor.machine, Decoder(target, cpu))
            calls = tuple(_cost_of_call(sensor, call, clock, counter, cpu.unit) for call in CALLS)
            flash = sensor.machine.program.flash_bytes
            costs.append(SensorCost(target.name, calls, flash, sensor.ram_bytes))
        return costs


def _cost_of_call(sensor: EmulatedSensor, call: str, clock: Clock, counter: BlockCounter, unit: str) -> CallCost:
    machine, tally = sensor.machine, Tally()
    machine.paint()
    for _ in range(RELEASES if call == "release" else 1):
        clock.epoch += 1  # so that the budget never ends it
        machine.forget()
        status = Status.OK
        if call == "left":
            sensor.left()
        else:
            status = sensor.open() if call.startswith("open") else sensor.release([16384] * sensor.firmware.n)[0]
        if status != Status.OK:
            raise RuntimeError(f"the sensor answers {status.name} to {call} on {machine.target.name}")
        counter.take(tally)
    price = tally.price.mean if tally.price else None
    return CallCost(call, machine.target.name, tally.spread.mean, price, unit, machine.stack_bytes())
