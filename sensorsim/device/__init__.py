"""The firmware of a private sensor in Python: what is built (`Firmware`), and one device that runs it (`Sensor`).

from sensorsim.device import Firmware, Sensor
sensor = Sensor(Firmware(table, budget_epsilon=16))
sensor.open()
status, packet = sensor.release(x)

The kernels are those that are exported as C, so a packet here is a packet there, bit for bit. The flash can lose power
at any byte (`Flash.cut`), wear out and lie; the entropy can stick, lean or fail.
"""

from sensorsim.device.entropy import (
    BiasedEntropy,
    FailingEntropy,
    ListedEntropy,
    SeededEntropy,
    StuckEntropy,
    SystemEntropy,
)
from sensorsim.device.firmware import Firmware
from sensorsim.device.flash import Flash, FlashError, PowerCut
from sensorsim.device.pace import Paced
from sensorsim.device.sensor import Clock, Sensor
from sensorsim.device.sketch import Sketch, sketch_records
from sensorsim.device.sketch_file import read_sketch, write_sketch
from sensorsim.device.status import Status
from sensorsim.kernels.packet import Layout

__all__ = [
    "BiasedEntropy",
    "Clock",
    "FailingEntropy",
    "Firmware",
    "Flash",
    "FlashError",
    "Layout",
    "ListedEntropy",
    "Paced",
    "PowerCut",
    "SeededEntropy",
    "Sensor",
    "Sketch",
    "Status",
    "StuckEntropy",
    "SystemEntropy",
    "read_sketch",
    "sketch_records",
    "write_sketch",
]
