"""The firmware of a private sensor in Python: what is built (`Firmware`), and one device that runs it (`Sensor`).

from sensorsim.device import Firmware, Sensor
sensor = Sensor(Firmware(table, budget_epsilon=16))
sensor.open()
status, packet = sensor.release(x)

The kernels are those that are exported as C, so a packet here is a packet there, bit for bit. The flash can lose power
at any byte (`Flash.cut`), wear out and lie; the entropy can stick, lean or fail.
"""

from sensorsim.device.entropy import BiasedEntropy as BiasedEntropy
from sensorsim.device.entropy import FailingEntropy as FailingEntropy
from sensorsim.device.entropy import ListedEntropy as ListedEntropy
from sensorsim.device.entropy import SeededEntropy as SeededEntropy
from sensorsim.device.entropy import StuckEntropy as StuckEntropy
from sensorsim.device.entropy import SystemEntropy as SystemEntropy
from sensorsim.device.firmware import Firmware as Firmware
from sensorsim.device.flash import Flash as Flash
from sensorsim.device.flash import FlashError as FlashError
from sensorsim.device.flash import PowerCut as PowerCut
from sensorsim.device.pace import Paced as Paced
from sensorsim.device.sensor import Clock as Clock
from sensorsim.device.sensor import Sensor as Sensor
from sensorsim.device.sketch_file import read_sketch as read_sketch
from sensorsim.device.sketch_file import write_sketch as write_sketch
from sensorsim.device.sketches import Sketch as Sketch
from sensorsim.device.sketches import sketch_records as sketch_records
from sensorsim.device.status import Status as Status
from sensorsim.kernels.packet import Layout as Layout
