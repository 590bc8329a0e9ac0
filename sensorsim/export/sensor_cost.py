"""What one call of the sensor costs as machine code on every core: generator, journal and packet in it.

The board's own functions are not: how long a flash takes to write, or a generator to fill a byte, is the board's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sensorsim._util.files import temporary_folder
from sensorsim.cost.prices import load_cpu
from sensorsim.device.entropy import SeededEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.sensor import Clock
from sensorsim.device.status import Status
from sensorsim.export.board import EmulatedSensor, link_sensor
from sensorsim.export.write import fill
from sensorsim.machine.counting import BlockCounter, Tally
from sensorsim.machine.decode import Decoder
from sensorsim.machine.targets import SHOWN, TARGETS, Target

RELEASES = 20
CALLS = ("open, blank memory", "open", "release", "left")


@dataclass(frozen=True)
class CallCost:
    """One function on one core: mean instructions and cost of a call, deepest stack."""

    call: str
    target: str
    instructions: float
    cost: float | None
    unit: str
    stack_bytes: int


@dataclass(frozen=True)
class SensorCost:
    """All calls on one core, and what the sensor takes of flash and RAM."""

    target: str
    calls: tuple[CallCost, ...]
    flash_bytes: int
    ram_bytes: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def sensor_costs(
    firmware: Firmware, texts: Mapping[str, str], prefix: str, targets: Sequence[str] = SHOWN
) -> list[SensorCost]:
    """Compile the sensor for each core and run it there."""
    with temporary_folder() as name:
        folder = Path(name)
        fill(folder, {path: text for path, text in texts.items() if path.startswith(("src/", "include/"))})
        return [_on(TARGETS[target], firmware, folder, prefix) for target in targets]


def _on(target: Target, firmware: Firmware, folder: Path, prefix: str) -> SensorCost:
    sources, include = sorted((folder / "src").glob("*.c")), [folder / "include", folder / "src"]
    program = link_sensor(target, sources, include, prefix, folder)
    clock = Clock(1)
    sensor = EmulatedSensor(target, program, firmware, prefix, entropy=SeededEntropy(1), epoch=clock)
    cpu = load_cpu(target.cpu)
    counter, costs = BlockCounter(sensor.machine, Decoder(target, cpu)), []
    for call in CALLS:
        sensor.machine.paint()
        tally = Tally()
        for _ in range(RELEASES if call == "release" else 1):
            clock.epoch += 1  # so that the budget never ends it
            sensor.machine.forget()
            _run(sensor, call)
            counter.take(tally)
        price = tally.price
        stack = sensor.machine.stack_bytes()
        costs.append(CallCost(call, target.name, tally.spread.mean, price.mean if price else None, cpu.unit, stack))
    flash = sensor.machine.program.flash_bytes
    return SensorCost(target.name, tuple(costs), flash, sensor.ram_bytes)


def _run(sensor: EmulatedSensor, call: str) -> None:
    if call == "left":
        sensor.left()
        return
    status = sensor.open() if call.startswith("open") else sensor.release([16384] * sensor.firmware.n)[0]
    if status != Status.OK:
        raise RuntimeError(f"the sensor answers {status.name} to {call} on {sensor.machine.target.name}")
