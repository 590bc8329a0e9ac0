"""Packets of a real board: one a line in hexadecimal, all of one length. Two files, for two records.

What a byte means is not known, so nothing is expected of one and nothing need be independent: a packet may have a
counter. What tells the two files apart is a leak, so they must differ in x alone: take them in turns, and leave out
what a clock or a counter puts in.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sensorsim._util.files import brief_path, read_bounded
from sensorsim.errors import InputError
from sensorsim.privacy.audit.source import Field, Input, Source

if TYPE_CHECKING:
    import numpy as np

FEWEST = 500  # packets in a file
MOST_BYTES = 1 << 28


def read_capture(path: str | os.PathLike[str]) -> "np.ndarray[Any, Any]":
    """The packets of a file, one row of bytes each, in their order."""
    import numpy as np

    name = brief_path(path)
    try:
        lines = read_bounded(path, MOST_BYTES).decode("ascii").split()
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}; give a file with one packet a line in hex.") from None
    except UnicodeDecodeError:
        raise InputError(f"{name} is no text; give a file with one packet a line in hex, as 01fe9a.") from None
    except ValueError:
        raise InputError(f"{name!r} is no path; give a file with one packet a line in hex, as 01fe9a.") from None
    if len(lines) < FEWEST:
        raise InputError(f"{name} has {len(lines)} packets; an audit needs at least {FEWEST} of each record.")
    length = len(lines[0])
    for number, line in enumerate(lines, 1):
        if len(line) != length:
            raise InputError(
                f"packet {number} of {name} has {len(line)} digits and the first {length}; give packets of one length."
            )
    try:
        content = bytes.fromhex("".join(lines)) if length % 2 == 0 else b""
    except ValueError:
        content = b""
    if not content:
        raise InputError(f"{name} has a line that is no hexadecimal bytes; give one packet a line, as 01fe9a.")
    return np.frombuffer(content, np.uint8).reshape(len(lines), length // 2)


def capture_source(packets: Sequence["np.ndarray[Any, Any]"], names: Sequence[str], claimed: float) -> Source:
    """A source of two captures; the shorter one decides how many packets are looked at."""
    import numpy as np

    widths = [captured.shape[1] for captured in packets]
    if widths[0] != widths[1]:
        raise InputError(f"{names[0]} has packets of {widths[0]} bytes and {names[1]} of {widths[1]}; give one length.")

    def draw(x: Any, count: int, seed: Sequence[int]) -> Any:
        start = seed[-1]
        return packets[int(x[0])][start : start + count].astype(np.int32)

    return Source(
        mechanism="capture",
        sees="the bytes of a packet, whatever they mean",
        claimed=claimed,
        per_record=1,
        fields=tuple(Field(f"byte {i}", claimed) for i in range(widths[0])),
        inputs=tuple(Input(name, np.array([number])) for number, name in enumerate(names)),
        draw=draw,
        expected=lambda x, column: None,
        independent=None,
        words="the board's own",
    )
