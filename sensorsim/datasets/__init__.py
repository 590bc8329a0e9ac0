"""Data sets: public ranges, tables in CSV or Parquet, records in 0 … 1, splits by person, synthetic people.

`chosen_records` reads the records that the options of a command name. Importing this package loads nothing heavy.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.hints import need
from sensorsim.datasets.public_ranges import brief

if TYPE_CHECKING:
    from sensorsim.datasets.dataset import Dataset

TRAINING = ("torch", "scipy", "joblib", "safetensors")
RANGES, MAXIMA = "ranges", "max"  # how readings become 0 … 1: by public ranges, or divided by private maxima
NORMALISE = (RANGES, MAXIMA)
Told = Callable[[str], None]


def warn(text: str) -> None:
    """Issue a note as a warning, located at the first caller outside this package."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "sensorsim":
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, stacklevel=depth)


def chosen_records(
    data: str | None,
    m: int = 1,
    columns: str | Sequence[str] | None = None,
    person: str | None = None,
    ranges: str | None = None,
    normalise: str = RANGES,
    drop_missing: bool = False,
    seed: int = 0,
    needs: tuple[str, ...] = TRAINING,
    counts: bool = True,
    told: Told = warn,
) -> Dataset:
    """Load a data set and pass its notes to `told`; `counts` as in `data_notes`."""
    need(*needs)
    from sensorsim.datasets.dataset import load

    options: dict[str, Any] = {"person": person, "ranges": ranges, "drop_missing": drop_missing, "seed": seed}
    dataset = load(data, m=m, columns=column_names(columns), normalise=normalise, **options)
    for line in data_notes(dataset, counts):
        told(line)
    return dataset


def column_names(columns: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Split names at commas, except within quotes; return several names as they are."""
    if columns is None or not isinstance(columns, str):
        return None if columns is None else tuple(columns)
    try:
        cells = next(csv.reader([columns.replace("\n", " ")], strict=True, skipinitialspace=True), [])
    except csv.Error as error:
        raise InputError(f'--columns cannot be read ({error}); give names like Steps,"Heart rate, bpm".') from None
    found = tuple(name.strip() for name in cells)
    if not all(found):
        raise InputError(
            f"--columns {brief(columns) or 'is empty and'} has a blank name; give names like Steps,Calories."
        )
    return found


def data_notes(dataset: Dataset, counts: bool = True) -> Iterable[str]:
    """Yield what the reader of a result must know of its data.

    Without `counts` nothing depends on a reading, not even whether one is outside its range: whoever chooses the
    ranges would find the largest reading by bisection. That a cell is empty is public.
    """
    if not dataset.persons_known:
        yield f"Note: no column of {dataset.source} names persons (--person), so every row counts as one."
    if dataset.dropped:
        rows = f"{dataset.dropped} of {dataset.dropped + len(dataset.x)}" if counts else "some"
        yield f"Note: {rows} rows have a missing cell and are left out."
    if counts and dataset.clipped and dataset.ranges:
        most, known = max(zip(dataset.clipped_in, dataset.ranges, strict=True), key=lambda pair: pair[0])
        yield (
            f"Note: {dataset.clipped} of {dataset.x.size} readings lie outside of their ranges and are clipped, "
            f"{most} of them in {brief(known.name)} ({known})."
        )
