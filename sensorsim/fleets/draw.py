"""Compile the draw of a firmware for the devices of a fleet: the kernel of kernels/sensor_draw.py, as Numba runs it.

What the kernel takes beside the sensor differs from firmware to firmware. A few lines of text bind it: numbers as they
are, so that Numba folds them, and arrays by their place.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sensorsim.fleets.board import on_device
from sensorsim.fleets.fast import fast
from sensorsim.language.numba_backend import compiled
from sensorsim.language.numba_backend.compile import dtype

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware


class Room(NamedTuple):
    """Arrays of one release, made once for a batch; those that a firmware has no use for are empty."""

    word: Any
    order: Any
    chosen: Any  # features that were picked, or the direction of a sketch
    y: Any  # symbols or values
    hidden: Any
    packet: Any
    u: Any  # what a sketch releases, for the sums of the simulation: no sensor keeps it


class Draw(NamedTuple):
    """Numba's functions, and what they are called with."""

    start: Callable[..., Any]  # (device, room): after an opening
    draw: Callable[..., Any]  # (device, x, room, bound)
    sketch: Callable[..., Any]  # (x, room, bound): finds the direction in the packet, and what was released
    room: Room
    bound: tuple[Any, ...]  # arrays of the table, the encoder and the sketch


def draw_of(firmware: "Firmware") -> Draw:
    """Compile the draw of this firmware, with arrays of its own."""
    given = firmware.draw_arguments()
    arrays = [name for name, value in given.items() if isinstance(value, np.ndarray)]
    place = {name: f"bound[{arrays.index(name)}]" if name in arrays else repr(int(given[name])) for name in given}
    passed = "".join(f", {text}" for text in ("x", "room.packet", *place.values()))
    draw = on_device(firmware.draw.draw_release, "device, x, room, bound", passed)
    start = _nothing if firmware.draw.start is None else on_device(firmware.draw.start, "device, room", "")
    return Draw(
        start,
        draw,
        _sketching(firmware, place) if firmware.sketch else _nothing,
        _room(firmware),
        tuple(given[name] for name in arrays),
    )


def _room(firmware: "Firmware") -> Room:
    fields = firmware.draw.record.fields
    made = {name: np.zeros(int(kind.length), dtype(kind)) for name, kind in fields.items() if name in Room._fields}
    empty = dict.fromkeys(("order", "hidden"), np.zeros(0, np.uint32))
    every = {"chosen": np.arange(firmware.k, dtype=np.uint32)}  # where all features are released, these they are
    packet, u = np.zeros(firmware.layout.bytes, np.uint8), np.zeros(1, np.uint16)
    return Room(**{**empty, **every, **made, "packet": packet, "u": u})


@fast
def _nothing(one: Any, other: Any, *more: Any) -> None:
    pass


def _sketching(firmware: "Firmware", place: dict[str, str]) -> Callable[..., Any]:
    from sensorsim.kernels.sketch import sketch

    known = place | {"x": "x", "number": "number"}
    scope: dict[str, Any] = {"sketch": compiled(sketch)}
    passed, layout = ", ".join(known[name] for name in sketch.parameters), firmware.layout
    lines = [
        "def value(x, room, bound):",
        " number = 0",
        f" for i in range({layout.which_bits}):",
        f"  bit = {layout.chosen_at} + i",
        "  number |= (room.packet[bit >> 3] >> (bit & 7) & 1) << i",
        " room.chosen[0] = number",
        f" room.u[0] = sketch({passed})",
    ]
    exec("\n".join(lines), scope)  # numbers and names from above alone
    return fast(scope["value"])
