"""Public ranges of readings, which scale a column to 0 … 1, and records as the integers of the sensor's kernels.

A private maximum reveals something of the person who has it. A range is known before the first record: what a day can
hold, what a sensor can show. It is stored in a CSV file of four columns: name, low, high, unit.

Kernels take integers, 0 … 32768 for 0 … 1. They treat a number above 1 as 1, and the certificate holds for it, but an
estimate of it would be silently wrong, as would one of a reading in its own unit. So numbers outside 0 … 1 are
refused. Readings come with their ranges, whose ends are public, and are clipped to them, as a sensor does.
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
from sensorsim.kernels.formats import ONE
from sensorsim.tables import folder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

HEADER = ("name", "low", "high", "unit")
COLUMNS = ",".join(HEADER)
MOST_BYTES = 1 << 22
MOST_LETTERS = 100  # of a name or a unit
SHOWN_LETTERS = 40  # of untrusted text in a message
SHOWN_NAMES = 5
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
Ranges = Sequence[Any] | str | os.PathLike[str]  # of Range or of (low, high), or a file of them
TAKES = f"give floats from 0 to 1, or whole numbers from 0 to {ONE} for 0 to 1"


@dataclass(frozen=True)
class Range:
    """The least and the most that a column can read."""

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


@cache
def _shipped() -> dict[str, Range]:
    return read_ranges(Path(folder()) / "ranges.csv")


def ready_ranges() -> dict[str, Range]:
    """Return the ranges that ship with the package: the Fitbit columns and common vital signs."""
    return dict(_shipped())


def read_ranges(path: str | os.PathLike[str]) -> dict[str, Range]:
    """Read the ranges of a file, in its order; report the first fault with its line."""
    try:
        text = read_bounded(path, MOST_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); give a CSV file of {COLUMNS}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save it as a CSV file of {COLUMNS} in UTF-8.") from None
    found: dict[str, Range] = {}
    lines = _lines(text, str(path))
    number, cells = next(lines, (1, []))
    if tuple(cells) != HEADER:
        header = repr(brief(",".join(cells))) if cells else "missing"
        raise InputError(f"{path} line {number}: the header is {header}; it must be {COLUMNS}.")
    for number, cells in lines:
        made = _parse_range(cells, f"{path} line {number}")
        if made.name in found:
            raise InputError(f"{path} line {number}: {brief(made.name)} has a range already; keep one of its lines.")
        found[made.name] = made
    if not found:
        raise InputError(f"{path} holds no range; write a line like heart_rate,20,250,1/min below its header.")
    return found


def _lines(text: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield number and cells of every line that is neither blank nor a comment."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            try:
                cells = next(csv.reader([line.rstrip("\r")], strict=True, skipinitialspace=True))
            except csv.Error as error:
                raise InputError(f"{path} line {number} is not CSV ({error}); write {COLUMNS}.") from None
            yield number, [cell.strip() for cell in cells]


def _parse_range(cells: list[str], where: str) -> Range:
    if len(cells) != len(HEADER):
        raise InputError(f"{where} has {len(cells)} cells; it must have {len(HEADER)}: {COLUMNS}.")
    name, low, high, unit = cells
    for what, text in (("name", name), ("unit", unit or "-")):
        if not text or not text.isprintable() or len(text) > MOST_LETTERS:
            shown = brief(text) or "nothing"
            raise InputError(f"{where}: {shown} is no {what}; give 1 to {MOST_LETTERS} printable letters.")
    for what, cell in (("low", low), ("high", high)):
        if not NUMBER.fullmatch(cell) or not math.isfinite(float(cell)):
            raise InputError(f"{where}: {what} is {brief(cell) or 'empty'}; it must be a finite number, as in 36.5.")
    try:
        return Range(name, float(low), float(high), unit)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def ranges_for(
    columns: Sequence[str], given: str | os.PathLike[str] | Mapping[str, Range] | None = None
) -> tuple[Range, ...]:
    """Return a range for every column: that of the given file or mapping, else a shipped one.

    HeartRate, heart_rate and Heart Rate name the same shipped range.
    """
    own = given if isinstance(given, Mapping) else {} if given is None else read_ranges(given)
    ready = {_comparable(name): known for name, known in _shipped().items()}
    missing = [name for name in dict.fromkeys(columns) if name not in own and _comparable(name) not in ready]
    if not missing:
        return tuple(own.get(name) or replace(ready[_comparable(name)], name=name) for name in columns)
    names = ", ".join(brief(name) for name in missing[:SHOWN_NAMES])
    names += f" and {len(missing) - SHOWN_NAMES} more" if len(missing) > SHOWN_NAMES else ""
    names += did_you_mean(missing[0], {**_shipped(), **own}) if len(missing) == 1 else ""
    line = f"{brief(missing[0])},LOW,HIGH,UNIT"
    if given is None:
        raise InputError(
            f"no public range is known for {names}; write a file with the line {COLUMNS} and lines like "
            f"{line} (the least and the most that its sensor can read), and give it as --ranges FILE."
        )
    where = "the mapping given" if isinstance(given, Mapping) else given
    raise InputError(f"{where} has no range for {names}, and none is ready; add lines like {line}.")


def _comparable(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter not in " _-.")


def to_unit(raw: Any, ranges: Sequence[Range]) -> npt.NDArray[np.float64]:
    """Scale readings (…, n) to 0 … 1 of their ranges; clip those outside."""
    import numpy as np

    x = np.array(raw, np.float64)  # a copy
    low, high = _limits(x, ranges)
    np.clip(x, low, high, out=x)  # first, so that no difference overflows
    x -= low
    x /= high - low
    return x


def from_unit(x: Any, ranges: Sequence[Range]) -> npt.NDArray[np.float64]:
    """Scale numbers in 0 … 1, (…, n), back to readings; 0 and 1 give the ends of the range exactly."""
    import numpy as np

    x = np.asarray(x, np.float64)
    low, high = _limits(x, ranges)
    return np.asarray(low * (1 - x) + high * x)


def outside(raw: Any, ranges: Sequence[Range]) -> tuple[int, ...]:
    """Count the readings (rows, n) of each column that are outside its range."""
    import numpy as np

    raw = np.asarray(raw, np.float64)
    low, high = _limits(raw, ranges)
    return tuple(((raw < low) | (raw > high)).sum(axis=0).tolist())


def _limits(values: npt.NDArray[np.float64], ranges: Sequence[Range]) -> tuple[Any, Any]:
    import numpy as np

    size = values.shape[-1] if values.ndim else 0
    if size != len(ranges) or not values.ndim:
        raise InputError(f"{size} columns meet {len(ranges)} ranges; give one range for each column.")
    return np.array([known.low for known in ranges]), np.array([known.high for known in ranges])


def as_rows(ranges: Mapping[str, Range]) -> list[dict[str, Any]]:
    """Return the lines of a ranges file."""
    return [
        {"name": known.name, "low": plain_number(known.low), "high": plain_number(known.high), "unit": known.unit}
        for known in ranges.values()
    ]


def plain_number(value: float) -> float | int:
    """Return a whole number as int, so that it is printed without a point."""
    return int(value) if value == int(value) and abs(value) < 1e15 else value


def brief(text: object, most: int = SHOWN_LETTERS) -> str:
    """Shorten untrusted text for a message: one line, printable, at most `most` characters."""
    line = "".join(letter if letter.isprintable() else "?" for letter in str(text)[: most + 1])
    return line if len(line) <= most else f"{line[:most]}…"


# ── records as the kernels take them ──


def as_records(x: Any, features: int, ranges: Ranges | None = None) -> npt.NDArray[np.uint16]:
    """Return records, one a row, as integers. Floats are rounded to the nearest; with `ranges`, x are readings."""
    import numpy as np

    given = as_numbers(x)
    if given.ndim != 2:
        raise InputError(f"x has {given.ndim} dimensions; give two, a row for each record.")
    if not given.size:
        raise InputError(f"x has the shape {given.shape[0]} × {given.shape[1]}; give at least one record.")
    if given.shape[1] != features:
        raise InputError(
            f"the records have {given.shape[1]} features and the table is for {features}; make it with "
            f"--features {given.shape[1]}, or give {features} columns."
        )
    if ranges is not None:
        given = to_unit(_finite(given), _parse_ranges(ranges, features))
    if given.dtype.kind == "f":
        return quantised(given)
    low, high = int(given.min()), int(given.max())
    if low < 0 or high > ONE:
        raise InputError(f"x holds {low if low < 0 else high}; {TAKES}, or readings with ranges=.")
    if high == 1:  # 1/32768 in the kernels' format, and surely not meant so
        raise InputError(f"x holds whole numbers up to 1, which are almost 0 of {ONE}; give them as floats.")
    return np.ascontiguousarray(given, np.uint16)


def quantised(x: Any) -> npt.NDArray[np.uint16]:
    """Round floats in 0 … 1 to the nearest of 32769 steps, as the sensor does."""
    import numpy as np

    low, high = float(_finite(x).min()), float(x.max())
    if low < 0 or high > 1:
        raise InputError(f"x holds {low if low < 0 else high:g}; {TAKES}, or readings with ranges=.")
    return np.ascontiguousarray(np.rint(np.asarray(x, np.float64) * ONE), np.uint16)


def as_numbers(x: Any) -> npt.NDArray[Any]:
    """Return an array of integers or floats; raise InputError for anything else that numpy makes of x."""
    import numpy as np

    try:
        made = np.asarray(x)
    except Exception:  # rows of several lengths, or an object with an `__array__` of its own
        raise InputError(f"x cannot be read as an array; {TAKES}, rows alike.") from None
    if isinstance(x, np.ma.MaskedArray) and np.ma.getmaskarray(x).any():
        raise InputError("x has masked values; fill them in, or leave their records out.")
    if made.dtype.kind not in "iuf":
        raise InputError(f"x holds values of type {made.dtype}; {TAKES}.")
    return made


def _finite(x: Any) -> Any:
    import numpy as np

    if x.dtype.kind == "f" and not np.isfinite(x).all():
        raise InputError("x holds a value that is no finite number; fill it in, or leave its record out.")
    return x


def _parse_ranges(given: Ranges, features: int) -> list[Range]:
    """Return a range for each feature, in order."""
    if isinstance(given, str | os.PathLike):
        given = list(read_ranges(given).values())
    made = []
    for number, one in enumerate(given):
        try:
            low, high = (one.low, one.high) if isinstance(one, Range) else map(float, one)
            made.append(one if isinstance(one, Range) else Range(f"feature {number}", low, high, ""))
        except (TypeError, ValueError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"range {number} is {one!r:.60}; give (low, high), or a Range.") from None
    if len(made) != features:
        raise InputError(f"{features} features meet {len(made)} ranges; give one range for each.")
    return made
