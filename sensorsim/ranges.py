"""Public ranges of readings: what brings a column to 0 … 1 without a look at anybody's data.

A private maximum tells of the person who has it. A range is known before the first record: what a day can hold, what
a sensor can show. It is no secret, and it stands in a file of four columns: name, low, high, unit.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.files import read_bounded
from sensorsim._util.hints import did_you_mean
from sensorsim.tables import folder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

HEADER = ("name", "low", "high", "unit")
MOST_BYTES = 1 << 22
MOST_LETTERS = 100  # of a name or a unit
SHOWN_LETTERS = 40  # of a stranger's text in a message
SHOWN_NAMES = 5
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Range:
    """What a column can read, from low to high."""

    name: str
    low: float
    high: float
    unit: str

    def __post_init__(self) -> None:
        written = f"the range of {brief(self.name)} is {self.low} … {self.high}"
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InputError(f"{written}; both must be finite numbers, the smaller one first.")
        if not math.isfinite(self.span) or not math.isfinite(1 / self.span):
            raise InputError(f"{written}, which cannot be scaled to 0 … 1; choose another unit.")

    @property
    def span(self) -> float:
        return self.high - self.low

    def __str__(self) -> str:
        return f"{plain_number(self.low)} … {plain_number(self.high)} {self.unit}".rstrip()


def ready_ranges() -> dict[str, Range]:
    """Those that come with the package: the Fitbit columns and common vital signs."""
    return dict(_shipped())


def read_ranges(path: str | os.PathLike[str]) -> dict[str, Range]:
    """The ranges in a file of your own, in its order; each way it can be wrong is one sentence with its line."""
    try:
        text = read_bounded(path, MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); give a CSV file of {','.join(HEADER)}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as a CSV file of {','.join(HEADER)} in UTF-8.") from None
    found: dict[str, Range] = {}
    lines = _lines(text, str(path))
    number, cells = next(lines, (1, []))
    if tuple(cells) != HEADER:
        raise InputError(
            f"{path} line {number}: the header is {repr(brief(','.join(cells))) if cells else 'missing'}; it must be "
            f"{','.join(HEADER)}."
        )
    for number, cells in lines:
        made = _range(cells, f"{path} line {number}")
        if made.name in found:
            raise InputError(f"{path} line {number}: {brief(made.name)} has a range already; keep one of its lines.")
        found[made.name] = made
    if not found:
        raise InputError(f"{path} holds no range; write a line like heart_rate,20,250,1/min below its header.")
    return found


def ranges_for(
    columns: Sequence[str], given: str | os.PathLike[str] | Mapping[str, Range] | None = None
) -> tuple[Range, ...]:
    """A range for every column: the one in the file (or mapping) given, else a ready one."""
    own = given if isinstance(given, Mapping) else {} if given is None else read_ranges(given)
    ready = {_plain(name): known for name, known in _shipped().items()}
    missing = [name for name in dict.fromkeys(columns) if name not in own and _plain(name) not in ready]
    if missing:
        raise InputError(_unknown(missing, given))
    return tuple(own.get(name) or replace(ready[_plain(name)], name=name) for name in columns)


def to_unit(raw: Any, ranges: Sequence[Range]) -> npt.NDArray[np.float64]:
    """Readings (…, n) on the scale 0 … 1 of their ranges; what lies outside is clipped."""
    import numpy as np

    x = np.array(raw, np.float64)  # a copy
    low, high = _limits(x, ranges)
    np.clip(x, low, high, out=x)  # first, so that no difference overflows
    x -= low
    x /= high - low
    return x


def from_unit(x: Any, ranges: Sequence[Range]) -> npt.NDArray[np.float64]:
    """Numbers on the scale 0 … 1, (…, n), as readings; 0 and 1 are the ends of the range exactly."""
    import numpy as np

    x = np.asarray(x, np.float64)
    low, high = _limits(x, ranges)
    return np.asarray(low * (1 - x) + high * x)


def outside(raw: Any, ranges: Sequence[Range]) -> tuple[int, ...]:
    """How many readings of each column (rows, n) lie outside of its range."""
    import numpy as np

    raw = np.asarray(raw, np.float64)
    _limits(raw, ranges)
    return tuple(int(((c < r.low) | (c > r.high)).sum()) for c, r in zip(raw.T, ranges, strict=True))


def as_rows(ranges: Mapping[str, Range]) -> list[dict[str, Any]]:
    """Lines of a ranges file, whole numbers without a point."""
    return [
        {"name": known.name, "low": plain_number(known.low), "high": plain_number(known.high), "unit": known.unit}
        for known in ranges.values()
    ]


def plain_number(value: float) -> float | int:
    """40000 for 40000.0: as one would write it."""
    return int(value) if value == int(value) and abs(value) < 1e15 else value


def brief(text: object, most: int = SHOWN_LETTERS) -> str:
    """A stranger's text as it may stand in a message: one line, printable, short."""
    line = "".join(letter if letter.isprintable() else "?" for letter in str(text)[: most + 1])
    return line if len(line) <= most else f"{line[:most]}…"


@cache
def _shipped() -> dict[str, Range]:
    return read_ranges(Path(folder()) / "ranges.csv")


def _plain(name: str) -> str:
    """Without what writers differ in: HeartRate, heart_rate and Heart Rate are one."""
    return "".join(letter for letter in name.casefold() if letter not in " _-.")


def _lines(text: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of every line that is neither blank nor a remark."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            cells = next(csv.reader([line.rstrip("\r")], strict=True, skipinitialspace=True))
        except csv.Error as error:
            raise InputError(f"{path} line {number} is not CSV ({error}); write {','.join(HEADER)}.") from None
        yield number, [cell.strip() for cell in cells]


def _range(cells: list[str], where: str) -> Range:
    """One line of the file, checked."""
    if len(cells) != len(HEADER):
        raise InputError(f"{where} has {len(cells)} cells; it must have {len(HEADER)}: {','.join(HEADER)}.")
    name, low, high, unit = cells
    if not name or not name.isprintable() or len(name) > MOST_LETTERS:
        raise InputError(f"{where}: {brief(name) or 'nothing'} is no name; give 1 to {MOST_LETTERS} printable letters.")
    if (unit and not unit.isprintable()) or len(unit) > MOST_LETTERS:
        raise InputError(f"{where}: {brief(unit)} is no unit; give at most {MOST_LETTERS} printable letters.")
    for what, cell in (("low", low), ("high", high)):
        if not NUMBER.fullmatch(cell) or not math.isfinite(float(cell)):
            raise InputError(f"{where}: {what} is {brief(cell) or 'empty'}; it must be a finite number, as in 36.5.")
    try:
        return Range(name, float(low), float(high), unit)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _unknown(missing: list[str], given: object) -> str:
    """What to write, for columns that no range is known for."""
    names = ", ".join(brief(name) for name in missing[:SHOWN_NAMES])
    names += f" and {len(missing) - SHOWN_NAMES} more" if len(missing) > SHOWN_NAMES else ""
    known = {**_shipped(), **given} if isinstance(given, Mapping) else _shipped()
    names += did_you_mean(missing[0], known) if len(missing) == 1 else ""
    line = f"{brief(missing[0])},LOW,HIGH,UNIT"
    if given is None:
        return (
            f"no public range is known for {names}; write a file with the line {','.join(HEADER)} and lines like "
            f"{line} (the least and the most that its sensor can read), and give it as --ranges FILE."
        )
    where = "the mapping given" if isinstance(given, Mapping) else given
    return f"{where} has no range for {names}, and none is ready; add lines like {line}."


def _limits(values: npt.NDArray[np.float64], ranges: Sequence[Range]) -> tuple[Any, Any]:
    import numpy as np

    if not values.ndim or values.shape[-1] != len(ranges):
        size = values.shape[-1] if values.ndim else 0
        raise InputError(f"{size} columns meet {len(ranges)} ranges; give one range for each column.")
    return np.array([known.low for known in ranges]), np.array([known.high for known in ranges])
