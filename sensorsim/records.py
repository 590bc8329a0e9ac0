"""Records as the sensor's kernels take them: whole numbers, 0 … 32768 for 0 … 1. Everything else is refused here.

A number above 1 would count as 1 in the kernels, and the certificate holds for it; but an estimate of it would be
wrong without a word, as would one of a reading in its own unit. So numbers outside 0 … 1 are refused, and readings
come with their ranges, whose ends are public: what lies outside of these is clipped, as a sensor does.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.kernels.formats import ONE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sensorsim.ranges import Range

Ranges = Sequence[Any] | str | os.PathLike[str]  # of Range or of (low, high), or a file of them
TAKES = f"give floats from 0 to 1, or whole numbers from 0 to {ONE} for 0 to 1"


def as_records(x: Any, features: int, ranges: "Ranges | None" = None) -> "npt.NDArray[np.uint16]":
    """Records, one in each row, as whole numbers. Floats are rounded to the nearest; with `ranges` x is readings."""
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
        from sensorsim.ranges import to_unit

        given = to_unit(_finite(given), _ranges(ranges, features))
    if given.dtype.kind == "f":
        return quantised(given)
    low, high = int(given.min()), int(given.max())
    if low < 0 or high > ONE:
        raise InputError(f"x holds {low if low < 0 else high}; {TAKES}, or readings with ranges=.")
    if high == 1:  # 1/32768 in the kernels' format, and surely not meant so
        raise InputError(f"x holds whole numbers up to 1, which are almost 0 of {ONE}; give them as floats.")
    return np.ascontiguousarray(given, np.uint16)


def quantised(x: Any) -> "npt.NDArray[np.uint16]":
    """Floats in 0 … 1 as the sensor quantises them: rounded to the nearest of 32769 steps."""
    import numpy as np

    low, high = float(_finite(x).min()), float(x.max())
    if low < 0 or high > 1:
        raise InputError(f"x holds {low if low < 0 else high:g}; {TAKES}, or readings with ranges=.")
    return np.ascontiguousarray(np.rint(np.asarray(x, np.float64) * ONE), np.uint16)


def as_numbers(x: Any) -> "npt.NDArray[Any]":
    """An array of whole numbers or floats; InputError for anything else that numpy makes of x."""
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


def _ranges(given: Ranges, features: int) -> "tuple[Range, ...]":
    """One for each feature, in order."""
    from sensorsim.ranges import Range, read_ranges

    if isinstance(given, str | os.PathLike):
        found: list[Any] = list(read_ranges(given).values())
    else:
        found = list(given)
    made = []
    for number, one in enumerate(found):
        if isinstance(one, Range):
            made.append(one)
            continue
        try:
            low, high = map(float, one)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"range {number} is {one!r:.60}; give (low, high), or a Range.") from None
        made.append(Range(f"feature {number}", low, high, ""))
    if len(made) != features:
        raise InputError(f"{features} features meet {len(made)} ranges; give one range for each.")
    return tuple(made)
