"""What was received: the mean of every feature with its interval, and the totals."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim.hospital.expected import STAIRS_COLUMNS
from sensorsim.hospital.intervals import LEVEL, mean_interval
from sensorsim.hospital.law import law_of
from sensorsim.hospital.statistics import CONTENT, SCHEMA_VERSION, Statistics

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

PRIVACY = "local, per record"


@dataclass(frozen=True)
class FeatureMean:
    """One feature: the unbiased mean, which noise may put outside 0 … 1, and the limits of the mean of x."""

    feature: int  # as packets number it, from 0 on
    count: int
    mean: float | None  # None where nothing came
    low: float
    high: float


@dataclass(frozen=True)
class Received:
    """Everything that packets of one table have to say."""

    table: "NoiseTable"
    statistics: Statistics

    @property
    def accepted(self) -> int:
        return self.statistics.accepted

    @property
    def rejected(self) -> int:
        return sum(self.statistics.rejected.values())

    @cached_property
    def features(self) -> tuple[FeatureMean, ...]:
        """A row for each feature; the interval holds whatever x was: see `hospital/intervals.py`."""
        totals, counts = self.total_and_count()
        law = law_of(self.table)
        rows = []
        for feature, (total, count) in enumerate(zip(totals.tolist(), counts.tolist(), strict=True)):
            mean = total / count if count else None
            low, high = mean_interval(law, mean or 0.0, count)
            rows.append(FeatureMean(feature, count, mean, low, high))
        return tuple(rows)

    def total_and_count(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Of each feature, the sum of its unbiased values and how many there are: what training pools over records."""
        kept = self.statistics
        counts = np.array(kept.counts, np.int64)
        if kept.columns == STAIRS_COLUMNS:  # the estimate is a straight line, so that of the mean is the mean of them
            means = [float(self.table.estimate(row[1] / row[0])) if row[0] else 0.0 for row in kept.sums]
            return counts * np.array(means), counts
        values = self.table.estimate(np.arange(len(kept.columns)))
        return np.array(kept.sums, np.float64) @ values, counts

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `read_received` reads it back, from the sums alone."""
        head = {"schema_version": SCHEMA_VERSION, "content": CONTENT, "kind": self.table.kind, "privacy": PRIVACY}
        rows = [asdict(row) for row in self.features]
        return {**head, **self.statistics.to_dict(), "confidence": LEVEL, "features": rows}

    def to_frame(self) -> Any:
        """The same as a pandas frame, a row for each feature."""
        import pandas

        return pandas.DataFrame([asdict(row) for row in self.features])
