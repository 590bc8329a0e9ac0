"""The compiled sensor on an emulated core, over the same simulated flash, entropy and clock as the firmware model.

The four functions of the port are played by the host, so that flash, entropy and clock are the very objects that
`sensorsim.device.Sensor` runs on: the two can be compared packet for packet, and power can be cut at any byte.
"""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sensorsim.device.entropy import Entropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.flash import Flash
from sensorsim.device.status import Status
from sensorsim.language.c.text import with_prefix
from sensorsim.machine.elf import read_elf
from sensorsim.machine.emulator import ARGUMENTS, Machine
from sensorsim.machine.targets import Target, compile_elf

GARBAGE = 0xA5  # in memory before a sensor is opened
ROOM = 1 << 16  # for the sensor's state
FAILED = 1
ENTRY = """\
#include "ss_sensor.h"

uint32_t board_entry(ss_sensor *sensor, const ss_port *port, const uint16_t *x, uint8_t *packet);

uint32_t board_entry(ss_sensor *sensor, const ss_port *port, const uint16_t *x, uint8_t *packet)
{
    if (sensor != (ss_sensor *)0) {
        (void)ss_sensor_open(sensor, port);
        (void)ss_sensor_release(sensor, x, packet);
        (void)ss_sensor_left(sensor);
    }
    return (uint32_t)sizeof(ss_sensor);
}
"""


def link_sensor(target: Target, sources: Sequence[Path], include: Sequence[Path], prefix: str, build: Path) -> Path:
    """The whole sensor for a core, with an entry that calls its three functions, so that nothing is left out."""
    entry = build / "board_entry.c"
    entry.write_text(with_prefix(ENTRY, prefix), "utf-8")
    return compile_elf(target, [*sources, entry], include, "board_entry", build / f"board-{target.name}.elf")


class EmulatedSensor:
    """`ss_sensor_open`, `ss_sensor_release` and `ss_sensor_left` of a linked program."""

    def __init__(
        self,
        target: Target,
        program: Path,
        firmware: Firmware,
        prefix: str = "ss_",
        flash: Flash | None = None,
        entropy: Entropy | None = None,
        epoch: Callable[[], int] | None = None,
    ) -> None:
        from sensorsim.device.entropy import SystemEntropy

        self.machine, self.firmware, self.prefix = Machine(target, read_elf(program.read_bytes())), firmware, prefix
        self.flash, self.entropy, self.epoch = flash or Flash(), entropy or SystemEntropy(), epoch or (lambda: 0)
        self.sensor = ARGUMENTS
        self.port, self.x = ARGUMENTS + ROOM, ARGUMENTS + ROOM + 256
        self.packet = self.x + 2 * firmware.n + 16
        functions = self.machine.play([self._entropy, self._load, self._store, self._epoch])
        self.machine.uc.mem_write(self.port, struct.pack("<5I", 0, *functions))
        self.reset()

    def reset(self) -> None:
        """What a reset leaves of memory: nothing that can be relied on, but not an open sensor."""
        self.machine.uc.mem_write(self.sensor, bytes([GARBAGE]) * ROOM)
        self.machine.uc.mem_write(self.packet, bytes([GARBAGE]) * self.firmware.layout.bytes)

    @property
    def ram_bytes(self) -> int:
        """The size of an ss_sensor."""
        return self.machine.call("board_entry", (0, 0, 0, 0))

    def open(self) -> Status:
        return Status(self._call("open", self.sensor, self.port))

    def release(self, x: Any) -> tuple[Status, bytes]:
        self.machine.uc.mem_write(self.x, struct.pack(f"<{self.firmware.n}H", *map(int, x)))
        status = Status(self._call("release", self.sensor, self.x, self.packet))
        return status, bytes(self.machine.uc.mem_read(self.packet, self.firmware.layout.bytes))

    def left(self) -> int:
        return self._call("left", self.sensor)

    def _call(self, name: str, *arguments: int) -> int:
        try:
            return self.machine.call(f"{self.prefix}sensor_{name}", arguments)
        except Exception:
            self.reset()  # the power went
            raise

    def _entropy(self, board: int, bytes_at: int, count: int) -> int:
        try:
            self.machine.uc.mem_write(bytes_at, bytes(self.entropy(count)))
        except OSError:
            return FAILED
        return 0

    def _load(self, board: int, slot: int, bytes_at: int, count: int) -> int:
        try:
            self.machine.uc.mem_write(bytes_at, self.flash.load(slot)[:count])
        except OSError:
            return FAILED
        return 0

    def _store(self, board: int, slot: int, bytes_at: int, count: int) -> int:
        try:
            self.flash.store(slot, bytes(self.machine.uc.mem_read(bytes_at, count)))
        except OSError:
            return FAILED
        return 0

    def _epoch(self, board: int) -> int:
        return self.epoch()
