"""The sketch of a package: its centre as a constant array, its bound and directions as constants beside that."""

from typing import Any

from sensorsim.device.sketch import Sketch
from sensorsim.kernels.sketch import sketch as sketch_kernel
from sensorsim.language.c.comments import wrap
from sensorsim.language.c.declarations import Table

SKETCH = "hospital/sketch.json"  # what `sensorsim receive` needs beside the table
CENTRE = "centre"
CONSTANTS = ("n", "factor", "halvings", "direction_bits")  # the kernels' arguments that the package binds


def sketch_macro(name: str, prefix: str) -> str:
    """The C name of a constant."""
    return f"{prefix}sketch_{name}".upper()


def sketch_table(sketch: Sketch, prefix: str) -> Table:
    """The array `centre` of the kernel `sketch`, and the constants that go with it."""
    about = (
        f"Sketch: the public centre of {sketch.n} features. The constants are the arguments "
        f"{', '.join(CONSTANTS)}: the bound R is {sketch.root:.9g}, and there are {sketch.directions} directions."
    )
    constants = tuple((sketch_macro(name, prefix), int(getattr(sketch, name))) for name in CONSTANTS)
    storage = sketch_kernel.arrays[CENTRE].storage
    return Table(f"{prefix}sketch_{CENTRE}", storage, sketch.centre, tuple(wrap(about)), constants)


def sketch_record(sketch: Sketch, name: str) -> dict[str, Any]:
    """What the manifest says of the sketch; its file is in the package."""
    record: dict[str, Any] = {"file": name, **{constant: getattr(sketch, constant) for constant in CONSTANTS}}
    return {**record, "root": sketch.root, "directions": sketch.directions, "columns": sketch.columns}
