"""From sums of packets to what is known of mean and covariance, and to the sketch that the next packets go through.

Two phases. First records release features: their sums give means, and how much each column varies. Then, with the
means as a public centre, records release sketches: their sums give the covariance. A record is in one of the two, so
its epsilon is that of one packet either way. Nothing here reads a record.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim.hospital.covariance import Squares, covariance
from sensorsim.hospital.linear import Learnt
from sensorsim.hospital.means import LEAST, Columns, columns
from sensorsim.hospital.prior import FLAT_VARIANCE, PRIOR, Prior, Reals, likeness

if TYPE_CHECKING:
    from sensorsim.device.sketch import Sketch
    from sensorsim.hospital.received import Received
    from sensorsim.noise.noise_table import NoiseTable

Indices = npt.NDArray[np.int64]

REACH = 1.7  # R in standard deviations of a sketch: clipping costs little, and noise goes with R²
DIRECTIONS_EACH = 6  # for every entry of the covariance, so that the regression stands well
LEAST_BITS, MOST_BITS = 6, 16
MOST_SHARE, HALF_WAY = 0.7, 50.0  # of the records that sketch; packets for each entry of the covariance
SQUARES_SPREAD = 0.1  # variance of u itself, about
AS_OTHERS = 3.0  # how much less than its mean a column's spread is known


def column_of_names(names: Sequence[str]) -> Indices:
    """The number of the distinct column behind every feature: a column that stands twice is one, and that is public."""
    distinct = list(dict.fromkeys(names))
    return np.array([distinct.index(name) for name in names], np.int64)


def share_of(records: int, n: int, table: "NoiseTable") -> float:
    """The share of the records that should sketch: none while they are too few to learn a covariance from.

    It depends on how many records there are, on n and on the table: all of it public.
    """
    assert table.estimate_sd is not None
    each = records / (n * (n + 1) / 2) / (table.estimate_sd**2 + SQUARES_SPREAD)
    return MOST_SHARE * max(0.0, 1 - HALF_WAY / each) if each > 0 else 0.0


def learn(
    table: "NoiseTable",
    sums: Any,
    column_of: Indices,
    sketch: "Sketch | None" = None,
    squares: tuple[Any, Any] | None = None,
    sigma: float = 0.0,
    prior: Prior = PRIOR,
) -> Learnt:
    """What `sums` of features and, where there are some, `squares` (count and total of each direction) have to say.

    `sums` are those of `columns`, a row for each feature.
    """
    known = known_columns(table, sums, column_of, sigma, prior)
    sd = np.sqrt(known.within)
    expected = np.outer(sd, sd) * likeness(len(sd), prior)
    if sketch is None or squares is None or not np.any(squares[0]):
        return Learnt(known.mean, known.uncertainty, expected, column_of, measured=False)
    of_columns = _per_column(sketch.vectors().astype(np.float64).T, column_of).T
    count, total = (np.asarray(part, np.float64) for part in squares)
    centre = _first(sketch.middle, column_of)
    seen = Squares(of_columns, count, total, centre, sketch.root, known.noise + SQUARES_SPREAD)
    return Learnt(known.mean, known.uncertainty, covariance(seen, known.mean, expected, prior.strength), column_of)


def known_columns(
    table: "NoiseTable", sums: Any, column_of: Indices, sigma: float = 0.0, prior: Prior = PRIOR
) -> Columns:
    """Means and spreads of the distinct columns.

    What to keep is chosen by how spreads differ. While little is known they differ by noise, so each is drawn to that
    of the others, on a scale of logarithms.
    """
    found = columns(table, _per_column(np.asarray(sums, np.float64), column_of), sigma, prior)
    own = FLAT_VARIANCE / (FLAT_VARIANCE + AS_OTHERS * found.noise / np.maximum(found.packets, LEAST))
    return replace(
        found, uncertainty=_drawn_together(found.uncertainty, own), within=_drawn_together(found.within, own)
    )


def _drawn_together(values: Reals, own: Reals) -> Reals:
    common = np.exp(np.log(values).mean())
    return np.asarray(common * (values / common) ** own)


def sketch_of(known: Columns, column_of: Indices, names: Sequence[str] | None = None) -> "Sketch":
    """The sketch for the second phase: the means as its centre, R from how much the columns vary."""
    from sensorsim.device.sketch import Sketch

    n = len(column_of)
    root = REACH * float(np.sqrt(known.within[column_of].sum() / 2))  # half of a direction's entries are not zero
    return Sketch.of(known.mean[column_of].tolist(), root, direction_bits(n), names)


def direction_bits(n: int) -> int:
    """Directions enough for n features, as a power of two."""
    entries = n * (n + 1) // 2
    return min(MOST_BITS, max(LEAST_BITS, (DIRECTIONS_EACH * entries - 1).bit_length()))


def sums_of(received: "Received") -> npt.NDArray[np.float64]:
    """The sums of received packets as `learn` takes them."""
    kept = received.statistics
    if received.table.symbols is not None:
        return np.array(kept.sums, np.float64)
    total, count = received.total_and_count()
    return np.stack([count.astype(np.float64), total], axis=1)


def sketch_for(received: "Received", names: Sequence[str] | None = None) -> "Sketch":
    """The sketch of the second phase, from the features that were received in the first."""
    column_of = column_of_names(names) if names else np.arange(received.table.features)
    return sketch_of(known_columns(received.table, sums_of(received), column_of), column_of, names)


def _per_column(values: Any, column_of: Indices) -> Any:
    """Rows of features added up to rows of distinct columns."""
    found = np.zeros((int(column_of.max()) + 1, *np.shape(values)[1:]))
    np.add.at(found, column_of, values)
    return found


def _first(values: Any, column_of: Indices) -> Any:
    """One value for each distinct column: that of its first feature."""
    return np.asarray(values)[[int(np.argmax(column_of == column)) for column in range(int(column_of.max()) + 1)]]
