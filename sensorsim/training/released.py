"""Records as the hospital gets to know them: through the device's own kernels, summed up, a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim.kernels.formats import ONE

if TYPE_CHECKING:
    from sensorsim.device.sketch import Sketch
    from sensorsim.noise.noise_table import NoiseTable

Sums = npt.NDArray[np.float64]
ROWS_AT_ONCE = 1 << 16


def on_the_lattice(x: Any) -> npt.NDArray[np.uint16]:
    """Records in 0 … 1 as the kernels read them, whole numbers in Q15; what lies outside counts as the nearest end."""
    return np.asarray(np.rint(np.clip(x, 0.0, 1.0) * ONE), np.uint16)


def feature_sums(x: npt.NDArray[np.uint16], table: NoiseTable, seed: int | None) -> Sums:
    """What `hospital.learn` takes: how often each symbol came of each feature; of stairs, count and sum of values."""
    from sensorsim.noise.batch_release import release_records, sampled_records

    n = x.shape[1]
    total = np.zeros((n, table.symbols or 2))
    for rows, part in _parts(x, seed):
        if table.sampled:
            chosen, y = sampled_records(rows, table, part)
        else:
            y = release_records(rows, table, part)
            chosen = np.broadcast_to(np.arange(n), y.shape)
        total += _counted(chosen, y, table, n)
    return total


def sketch_sums(x: npt.NDArray[np.uint16], table: NoiseTable, sketch: Sketch, seed: int | None) -> tuple[Sums, Sums]:
    """Of every direction, how many came and the sum of the unbiased values of u."""
    from sensorsim.device.sketch import sketch_records

    count, total = np.zeros(sketch.directions), np.zeros(sketch.directions)
    for rows, part in _parts(x, seed):
        number, y = sketch_records(rows, table, sketch, part)
        count += np.bincount(number, minlength=sketch.directions)
        total += np.bincount(number, table.estimate(np.ravel(y)), sketch.directions)
    return count, total


def _parts(x: npt.NDArray[np.uint16], seed: int | None) -> Iterator[tuple[Any, Any]]:
    """Blocks of rows, each with a seed of its own where there is one."""
    for place, first in enumerate(range(0, len(x), ROWS_AT_ONCE)):
        yield x[first : first + ROWS_AT_ONCE], None if seed is None else [seed, place]


def _counted(chosen: Any, y: Any, table: NoiseTable, n: int) -> Sums:
    which = np.ravel(chosen).astype(np.int64)
    if table.symbols is not None:
        places = which * table.symbols + np.ravel(y)
        return np.bincount(places, minlength=n * table.symbols).reshape(n, -1).astype(np.float64)
    values = np.bincount(which, table.estimate(np.ravel(y)), n)
    return np.stack([np.bincount(which, minlength=n).astype(np.float64), values], axis=1)
