"""Write and read the file of a sketch: JSON, public. A file that is read is untrusted."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import of_version, read_bounded, strict_json, write_whole
from sensorsim.device.sketches import Sketch
from sensorsim.encoders import name_of, range_of

SCHEMA_VERSION = 1
CONTENT = "sensorsim sketch"
MOST_BYTES = 1 << 22
WHOLE = ("n", "factor", "halvings", "direction_bits")


def write_sketch(sketch: Sketch, path: str | os.PathLike[str]) -> None:
    write_whole(path, sketch_text(sketch))


def sketch_text(sketch: Sketch) -> str:
    """Return the content of the file."""
    made: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "content": CONTENT}
    made |= {name: getattr(sketch, name) for name in WHOLE}
    made |= {"root": sketch.root, "centre": list(sketch.centre)}
    if sketch.columns is not None:
        made["columns"] = list(sketch.columns)
    if sketch.ranges is not None:
        made["ranges"] = [asdict(one) for one in sketch.ranges]
    return json.dumps(made, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read_sketch(path: str | os.PathLike[str]) -> Sketch:
    """Read a sketch that `sensorsim receive --write-sketch` wrote, and check it against the kernel's formats."""
    try:
        content = read_bounded(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a sketch.") from None
    return parse_sketch(content, Path(path).name)


def parse_sketch(content: bytes, name: str) -> Sketch:
    """Parse the bytes of a sketch's file."""
    try:
        newer = f"it has a newer schema version than {SCHEMA_VERSION}, which this sensorsim reads; update sensorsim."
        found = of_version(strict_json(content.decode("utf-8")), CONTENT, SCHEMA_VERSION, newer)
        columns, ranges = found.get("columns"), found.get("ranges")
        return Sketch(
            centre=tuple(_listed(found["centre"])),
            columns=None if columns is None else tuple(map(name_of, _listed(columns))),
            ranges=None if ranges is None else tuple(map(range_of, _listed(ranges))),
            **{which: found[which] for which in WHOLE},
        )
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise InputError(
            f"{name} is no sketch of sensorsim, or was altered; write one with `sensorsim receive --write-sketch`."
        ) from None


def _listed(value: object) -> list[Any]:
    if type(value) is not list:
        raise ValueError("list")
    return value
