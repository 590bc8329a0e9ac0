"""A private sensor as its firmware runs: the same kernels, the same steps and the same answers as the C that ships.

    sensor = Sensor(firmware)
    sensor.open()                        Status.OK, or why it stays closed
    status, packet = sensor.release(x)   on anything but Status.OK the packet is all zeros and nothing was released
    sensor.left()                        releases that the budget of this epoch still allows

A release is counted in the journal before it is drawn, so a cut can lose it and cannot repeat it. Where anything is in
doubt the sensor closes and its key is wiped.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sensorsim.device.entropy import Entropy, Generator, SystemEntropy
from sensorsim.device.firmware import Firmware
from sensorsim.device.flash import SLOTS, Flash, Journal
from sensorsim.device.status import Status
from sensorsim.errors import InputError
from sensorsim.kernels.journal import HOLDS, NEW

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

LAST_EPOCH, MOST_X, SECONDS_OF_A_DAY = 2**32 - 1, 2**16 - 1, 86_400


class Clock:
    """A board's clock that is set by hand: `clock.epoch` is the number of the budget period."""

    def __init__(self, epoch: int = 0) -> None:
        self.epoch = epoch

    def __call__(self) -> int:
        return self.epoch


class Sensor:
    """One device: a firmware on a board with flash, a source of entropy and a clock.

    Left alone it is private: entropy is the operating system's, the flash is blank, and an epoch is `budget_days` of
    the calendar. A table alone stands for the firmware that releases through it once an epoch.
    """

    def __init__(
        self,
        firmware: "Firmware | NoiseTable",
        flash: Flash | None = None,
        entropy: Entropy | None = None,
        epoch: Callable[[], int] | None = None,
    ) -> None:
        self.firmware = firmware if isinstance(firmware, Firmware) else Firmware(firmware)
        self.flash = flash or Flash()
        days = self.firmware.budget_days
        self._clock = epoch or (lambda: int(time.time()) // (days * SECONDS_OF_A_DAY))
        self._generator = Generator(entropy or SystemEntropy(), self.firmware.blocks)
        self._journal, self._mechanism = Journal(self.firmware, self.flash), _Mechanism(self.firmware)
        self.close()

    def close(self) -> None:
        """Forget everything that only memory holds, the key first. The journal stays."""
        self._generator.wipe()
        self._mechanism.wipe()
        self.is_open = False
        self._known = (0, 0)  # epoch and releases spent in it, as the journal last said
        self._ahead = 0  # of those, how many are counted and not drawn yet

    def open(self) -> Status:
        """Seed the generator and read the journal; on blank flash, begin it."""
        self.close()
        try:
            status = self._generator.seed() or self._begin()
        except BaseException:  # a power cut takes the memory with it
            self.close()
            raise
        self.is_open = status == Status.OK
        if not self.is_open:
            self.close()
        return status

    def release(self, x: Sequence[int] | Any) -> tuple[Status, bytes]:
        """Count one release, then draw it from x: n whole numbers, 0 … 32768 for 0 … 1."""
        record = self._mechanism.record(x)
        try:
            status = self._count()
            if status != Status.OK:
                return status, bytes(self.firmware.layout.bytes)
            epoch, spent = self._known
            number = spent - self._ahead
            return status, self._mechanism.draw(record, self._generator.words(number, epoch), number, epoch)
        except BaseException:
            self.close()
            raise

    def left(self) -> int:
        """Releases that the budget of this epoch still allows, as far as this sensor knows; 0 where it is closed."""
        epoch, spent = self._known
        if not self.is_open or self._now() < epoch:
            return 0
        used = spent - self._ahead if self._now() == epoch else 0
        return max(0, self.firmware.releases - used)

    def _now(self) -> int:
        now = self._clock()
        if not 0 <= now <= LAST_EPOCH:
            raise InputError(f"the clock says epoch {now}; give a whole number from 0 to 2^32-1.")
        return now

    def _begin(self) -> Status:
        """What `open` finds in the journal."""
        if not self._journal.load():
            return Status.NO_STORE
        now, state = self._now(), self._journal.read()
        if state == NEW:
            self._known = (now, 0)
            written = all(self._journal.write(slot, now, 0) for slot in range(SLOTS))
            return Status.OK if written else Status.NO_STORE
        if state != HOLDS:
            return Status.BAD_JOURNAL
        self._known = self._journal.found
        if now < self._known[0]:
            return Status.BAD_CLOCK
        return self._count_on(now) if self._journal.alone else Status.OK

    def _count_on(self, now: int) -> Status:
        """One slot is bad and may have been the newer one: count what it may have counted."""
        answer, _, after = self._journal.spend(now)
        if answer != HOLDS:
            return Status.OK  # all is counted already
        if not self._journal.write(self._journal.next_slot, now, after):
            return Status.NO_STORE
        self._known = (now, after)
        return Status.OK

    def _count(self) -> Status:
        """Take one release off what is counted ahead, or count some more in the journal."""
        if not self.is_open:
            return Status.NOT_OPEN
        now = self._now()
        if now < self._known[0]:
            return Status.BAD_CLOCK
        if now > self._known[0] or self._ahead == 0:
            status = self._spend(now)
            if status != Status.OK:
                return status
        self._ahead -= 1
        return Status.OK

    def _spend(self, now: int) -> Status:
        """Store the next count in the slot whose turn it is; what it counts may be drawn afterwards."""
        journal = self._journal
        if not journal.load():
            return Status.NO_STORE
        if journal.read() != HOLDS or journal.found < self._known:  # it was put back to what it said before
            self.close()
            return Status.BAD_JOURNAL
        if journal.found > self._known:  # another sensor counted on the same flash
            self._known, self._ahead = journal.found, 0
        answer, before, after = journal.spend(now)
        if answer != HOLDS:
            return Status(answer)
        if not journal.write(journal.next_slot, now, after):
            return Status.NO_STORE
        self._known, self._ahead = (now, after), after - before
        return Status.OK


class _Mechanism:
    """The record: encoded where there is an encoder, released, packed; nothing of it stays."""

    def __init__(self, firmware: Firmware) -> None:
        import numpy as np

        from sensorsim.language.run import compiled
        from sensorsim.language.run.values import dtype

        takes = firmware.kernel.parameters
        self._n, self._words = firmware.n, firmware.words
        self._release, self._encode, self._pack = compiled(firmware.kernel), _encoding(firmware), _packing(firmware)
        sizes = {"order": firmware.features, "chosen": firmware.k, "y": firmware.k}
        self._room = {name: np.zeros(size, dtype(takes[name])) for name, size in sizes.items() if name in takes}
        self._arguments = dict.fromkeys(takes) | firmware.arguments | self._room
        self._hidden = np.zeros(firmware.features, np.uint16)

    def wipe(self) -> None:
        """As after a reset: the order of the features starts at 0 … n-1."""
        for values in self._room.values():
            values.fill(0)
        if "order" in self._room:
            self._room["order"][:] = range(len(self._room["order"]))
        self._hidden.fill(0)

    def record(self, x: Any) -> Any:
        """x as the kernels take it."""
        import numpy as np

        given = np.asarray(x)
        if given.shape != (self._n,) or given.dtype.kind not in "iu":
            raise InputError(f"a record of this sensor is {self._n} whole numbers, 0 … 32768 for 0 … 1; give as many.")
        if given.dtype != np.uint16 and not 0 <= int(given.min()) <= int(given.max()) <= MOST_X:
            raise InputError(f"a feature is {given.min()} … {given.max()}; give whole numbers from 0 to {MOST_X}.")
        return np.ascontiguousarray(given, np.uint16)

    def draw(self, x: Any, words: Any, number: int, epoch: int) -> bytes:
        """One release and its packet. The words and the hidden units are wiped."""
        given = self._arguments
        given["x"] = self._encode(x, self._hidden)
        given["word"] = words[: self._words]
        self._release(*given.values())
        given["x"] = given["word"] = None
        words.fill(0)
        self._hidden.fill(0)
        return self._pack(self._room.get("chosen"), self._room["y"], number, epoch)


def _encoding(firmware: Firmware) -> Callable[[Any, Any], Any]:
    """What the release reads: the record itself, or the hidden units that an encoder makes of it."""
    encoder = firmware.encoder
    if encoder is None:
        return lambda x, hidden: x
    import numpy as np

    from sensorsim.kernels.encoder import SIGMOID
    from sensorsim.kernels.encoder import encoder as kernel
    from sensorsim.language.run import compiled

    run, n, l = compiled(kernel), encoder.n, encoder.l
    weights, bias = np.array(encoder.weights, np.int16), np.array(encoder.bias, np.int32)
    sigmoid = np.array(SIGMOID.contents, np.uint16)

    def encode(x: Any, hidden: Any) -> Any:
        run(x, weights, bias, sigmoid, hidden, n, l, len(sigmoid))
        return hidden

    return encode


def _packing(firmware: Firmware) -> Callable[[Any, Any, int, int], bytes]:
    """Packs the features that were picked, their values, and the numbers that a packet carries."""
    import numpy as np

    from sensorsim.kernels import packet as kernels
    from sensorsim.language.run import compiled

    layout, n, k = firmware.layout, firmware.features, firmware.k
    head, count, chosen = map(compiled, (kernels.pack_head, kernels.pack_number, kernels.pack_chosen))
    limit = firmware.arguments.get("limit")
    values = compiled(kernels.pack_symbols if limit is None else kernels.pack_values)
    where = (*(() if limit is None else (limit,)), layout.values_at, k, layout.value_bits)
    packet = np.zeros(layout.bytes, np.uint8)

    def pack(picked: Any, y: Any, number: int, epoch: int) -> bytes:
        head(packet, layout.head, layout.bytes)
        for name in layout.numbers:
            count(packet, epoch if name == "epoch" else number, layout.number_at(name))
        if layout.which_bits:
            chosen(packet, picked, layout.chosen_at, n, k, layout.which_bits)
        values(packet, y, *where)
        return packet.tobytes()

    return pack
