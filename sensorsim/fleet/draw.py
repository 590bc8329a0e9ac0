"""One release of one record, as Numba runs it: what `device.drawing.Drawing` does, on the same kernels.

The kernel of a release takes other arguments for each form of a table. They are bound here by a few lines of text that
are compiled with it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np

from sensorsim.fleet.fast import fast
from sensorsim.language.numba_backend import compiled
from sensorsim.language.numba_backend.compile import dtype

if TYPE_CHECKING:
    from sensorsim.device.firmware import Firmware


class Room(NamedTuple):
    """Arrays of one release, made once for a batch."""

    order: Any
    chosen: Any  # features that were picked, or the direction of a sketch
    y: Any  # symbols or values
    u: Any  # what a sketch releases
    packet: Any


class Draw(NamedTuple):
    """Numba's functions, and what they are called with."""

    wipe: Callable[..., Any]  # (room): as after a reset
    draw: Callable[..., Any]  # (x, word, room, bound)
    pack: Callable[..., Any]  # (room, number, epoch, bound)
    room: Room
    bound: tuple[Any, ...]  # arrays and numbers of the table and the sketch


def draw_of(firmware: "Firmware") -> Draw:
    """For this firmware, with room of its own."""
    takes = firmware.kernel.parameters
    free = ("x", "word", "order", "chosen", "y")
    names = [name for name in takes if name not in free]
    bound = tuple(firmware.arguments[name] for name in names)
    place = {name: f"bound[{i}]" for i, name in enumerate(names)}
    place |= {"x": "x", "word": "word", "order": "room.order", "chosen": "room.chosen", "y": "room.y"}
    scope: dict[str, Any] = {"release": compiled(firmware.kernel)}
    lines = ["def draw(x, word, room, bound):"]
    if firmware.sketch is not None:
        lines += _sketching(firmware, scope, len(bound))
        bound += (np.array(firmware.sketch.centre, np.uint16),)
    lines.append(f" release({', '.join(place[name] for name in takes)})")
    room = _room(firmware)
    return Draw(_wiping(), _compiled(lines, "draw", scope), _packing(firmware), room, bound)


def _room(firmware: "Firmware") -> Room:
    takes, k = firmware.kernel.parameters, firmware.k
    kind = dtype(takes["y"])
    picked = np.dtype(np.uint32) if firmware.sketch or "chosen" not in takes else dtype(takes["chosen"])
    size = firmware.features if "order" in takes else 0
    return Room(
        np.zeros(size, dtype(takes["order"]) if size else np.uint32),
        np.arange(k, dtype=picked),  # where all features are released, these they are
        np.zeros(k, kind),
        np.zeros(1, np.uint16),
        np.zeros(firmware.layout.bytes, np.uint8),
    )


def _sketching(firmware: "Firmware", scope: dict[str, Any], centre: int) -> list[str]:
    """The first word picks the direction; what is released is the record's square along it."""
    from sensorsim.kernels import sketch as kernels

    sketch = firmware.sketch
    assert sketch is not None
    scope |= {"direction": compiled(kernels.direction), "sketch": compiled(kernels.sketch), "u32": numba.uint32}
    return [
        f" room.chosen[0] = direction(word[0], {sketch.direction_bits})",
        f" room.u[0] = sketch(x, bound[{centre}], room.chosen[0], u32({sketch.factor}), {sketch.n}, {sketch.halvings})",
        " x = room.u",
        " word = word[1:]",
    ]


def _wiping() -> Callable[..., Any]:
    @fast
    def wipe(room: Any) -> None:
        for i in range(len(room.order)):
            room.order[i] = i

    return wipe


def _packing(firmware: "Firmware") -> Callable[..., Any]:
    from sensorsim.kernels import packet as kernels
    from sensorsim.kernels.sketch import pack_direction

    layout, k, limit = firmware.layout, firmware.k, firmware.arguments.get("limit")
    scope: dict[str, Any] = {
        "head": compiled(kernels.pack_head),
        "count": compiled(kernels.pack_number),
        "chosen": compiled(kernels.pack_chosen),
        "direction": compiled(pack_direction),
        "values": compiled(kernels.pack_symbols if limit is None else kernels.pack_values),
    }
    lines = ["def pack(room, number, epoch):", f" head(room.packet, {layout.head}, {layout.bytes})"]
    for name in layout.numbers:
        lines.append(f" count(room.packet, {'epoch' if name == 'epoch' else 'number'}, {layout.number_at(name)})")
    if firmware.sketch is not None:
        lines.append(f" direction(room.packet, room.chosen[0], {layout.chosen_at}, {layout.which_bits})")
    elif layout.which_bits:
        where = f"{layout.chosen_at}, {firmware.features}, {k}, {layout.which_bits}"
        lines.append(f" chosen(room.packet, room.chosen, {where})")
    of_values = "" if limit is None else f"{limit}, "
    lines.append(f" values(room.packet, room.y, {of_values}{layout.values_at}, {k}, {layout.value_bits})")
    return _compiled(lines, "pack", scope)


def _compiled(lines: list[str], name: str, scope: dict[str, Any]) -> Callable[..., Any]:
    exec(compile("\n".join(lines) + "\n", f"<{name}>", "exec"), scope)  # numbers and names from above alone
    function: Callable[..., Any] = fast(scope[name])
    return function
