"""One release of one record: encoded or sketched where the firmware says so, drawn through the table, packed.

The kernels are those that are exported as C. Nothing of the record stays.
"""

from collections.abc import Callable
from typing import Any

from sensorsim.device.firmware import Firmware
from sensorsim.device.running import Runs, compiled
from sensorsim.errors import InputError
from sensorsim.language.types import numpy_name
from sensorsim.records import as_numbers, quantised

MOST_X = 2**16 - 1
Reads = Callable[[Any, Any, Any], Any]  # of the record, room for what is made of it, and the words


class Drawing:
    """Room for one release, and its steps."""

    def __init__(self, firmware: Firmware, runs: Runs = compiled) -> None:
        import numpy as np

        takes = firmware.kernel.parameters
        self._n, self._drawn = firmware.n, slice(firmware.picks, firmware.words)
        sizes = {"order": firmware.features, "chosen": firmware.k, "y": firmware.k}
        self._room = {
            name: np.zeros(size, numpy_name(takes[name].storage)) for name, size in sizes.items() if name in takes
        }
        self._arguments = dict.fromkeys(takes) | firmware.arguments | self._room
        self._hidden = np.zeros(firmware.k if firmware.sketch else firmware.features, np.uint16)
        self._chosen = np.zeros(1, np.uint32) if firmware.sketch else self._room.get("chosen")
        self._release, self._pack = runs(firmware.kernel), _packing(firmware, runs)
        self._reads = _sketching(firmware, self._chosen, runs) if firmware.sketch else _encoding(firmware, runs)

    def wipe(self) -> None:
        """As after a reset: the order of the features starts at 0 … n-1."""
        for values in (*self._room.values(), self._hidden):
            values.fill(0)
        if "order" in self._room:
            self._room["order"][:] = range(len(self._room["order"]))

    def record(self, x: Any) -> Any:
        """x as the kernels take it."""
        import numpy as np

        given = as_numbers(x)
        if given.shape != (self._n,):
            raise InputError(f"a record of this sensor is {self._n} whole numbers, 0 … 32768 for 0 … 1; give as many.")
        if given.dtype.kind == "f":
            return quantised(given)
        if given.dtype != np.uint16 and not 0 <= int(given.min()) <= int(given.max()) <= MOST_X:
            raise InputError(f"a feature is {given.min()} … {given.max()}; give whole numbers from 0 to {MOST_X}.")
        return np.ascontiguousarray(given, np.uint16)

    def draw(self, x: Any, words: Any, number: int, epoch: int) -> bytes:
        """One release and its packet. The words and what was made of x are wiped."""
        given = self._arguments
        given["x"] = self._reads(x, self._hidden, words)
        given["word"] = words[self._drawn]
        self._release(*given.values())
        given["x"] = given["word"] = None
        words.fill(0)
        self._hidden.fill(0)
        return self._pack(self._chosen, self._room["y"], number, epoch)


def _encoding(firmware: Firmware, runs: Runs) -> Reads:
    """What the release reads: the record itself, or the hidden units that an encoder makes of it."""
    encoder = firmware.encoder
    if encoder is None:
        return lambda x, hidden, words: x
    import numpy as np

    from sensorsim.kernels.encoder import SIGMOID
    from sensorsim.kernels.encoder import encoder as kernel

    run, n, l = runs(kernel), encoder.n, encoder.l
    weights, bias = np.array(encoder.flat, np.int16), np.array(encoder.bias, np.int32)
    sigmoid = np.array(SIGMOID.contents, np.uint16)

    def encode(x: Any, hidden: Any, words: Any) -> Any:
        run(x, weights, bias, sigmoid, hidden, n, l, len(sigmoid))
        return hidden

    return encode


def _sketching(firmware: Firmware, chosen: Any, runs: Runs) -> Reads:
    """What the release reads: the sketch of the record along the direction that the first word picks."""
    import numpy as np

    from sensorsim.kernels import sketch as kernels

    sketch = firmware.sketch
    assert sketch is not None
    pick, run = runs(kernels.direction), runs(kernels.sketch)
    centre, factor = np.array(sketch.centre, np.uint16), np.uint32(sketch.factor)
    bits, n, halvings = sketch.direction_bits, sketch.n, sketch.halvings

    def reads(x: Any, hidden: Any, words: Any) -> Any:
        chosen[0] = pick(words[0], bits)
        hidden[0] = run(x, centre, chosen[0], factor, n, halvings)
        return hidden

    return reads


def _packing(firmware: Firmware, runs: Runs) -> Callable[[Any, Any, int, int], bytes]:
    """Packs what was picked, the values of it, and the numbers that a packet carries."""
    import numpy as np

    from sensorsim.kernels import packet as kernels

    layout, k = firmware.layout, firmware.k
    head, count = map(runs, (kernels.pack_head, kernels.pack_number))
    which = _packing_which(firmware, runs)
    limit = firmware.arguments.get("limit")
    values = runs(kernels.pack_symbols if limit is None else kernels.pack_values)
    where = (*(() if limit is None else (limit,)), layout.values_at, k, layout.value_bits)
    packet = np.zeros(layout.bytes, np.uint8)

    def pack(picked: Any, y: Any, number: int, epoch: int) -> bytes:
        head(packet, layout.head, layout.bytes)
        for name in layout.numbers:
            count(packet, epoch if name == "epoch" else number, layout.number_at(name))
        if layout.which_bits:
            which(packet, picked)
        values(packet, y, *where)
        return packet.tobytes()

    return pack


def _packing_which(firmware: Firmware, runs: Runs) -> Callable[[Any, Any], None]:
    """Packs which features were picked, or which direction: there are more of these than features."""
    from sensorsim.kernels.packet import pack_chosen

    layout, n, k = firmware.layout, firmware.features, firmware.k
    if firmware.sketch is None:
        chosen = runs(pack_chosen)
        return lambda packet, picked: chosen(packet, picked, layout.chosen_at, n, k, layout.which_bits)
    from sensorsim.kernels.sketch import pack_direction

    direction = runs(pack_direction)
    return lambda packet, picked: direction(packet, picked[0], layout.chosen_at, layout.which_bits)
