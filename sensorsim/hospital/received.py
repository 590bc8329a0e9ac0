"""What was received: the mean of every feature with its interval, or what a sketch tells, and the totals."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sensorsim.hospital.expected import STAIRS_COLUMNS
from sensorsim.hospital.intervals import LEVEL, mean_interval
from sensorsim.hospital.law import law_of
from sensorsim.hospital.statistics import CONTENT, SCHEMA_VERSION, Statistics
from sensorsim.results import Result
from sensorsim.terminal import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sensorsim.device.sketch import Sketch
    from sensorsim.noise.noise_table import NoiseTable

PRIVACY = "local, per record"
SHOWN = 14  # features that a repr lists


@dataclass(frozen=True)
class FeatureMean:
    """One feature: the unbiased mean, which noise may put outside 0 … 1, and the limits of the mean of x."""

    feature: int  # as packets number it, from 0 on
    count: int
    mean: float | None  # None where nothing came
    low: float
    high: float


@dataclass(frozen=True)
class DirectionMean:
    """One direction of a sketch: the unbiased mean of u·R², which is that of (s·(x - c))² where nothing is clipped."""

    direction: int
    count: int
    mean: float | None  # None where nothing came


@dataclass(frozen=True)
class SketchMean:
    """All directions together: the mean of u·R², about half the sum of the features' variances about the centre."""

    features: int  # of a record
    directions: int
    met: int  # of them
    root: float  # R
    mean: float | None
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Received(Result):
    """Everything that packets of one table have to say."""

    table: "NoiseTable"
    statistics: Statistics
    sketch: "Sketch | None" = None  # the sums are then of directions

    @property
    def accepted(self) -> int:
        return self.statistics.accepted

    @property
    def rejected(self) -> int:
        return sum(self.statistics.rejected.values())

    @cached_property
    def features(self) -> tuple[FeatureMean, ...]:
        """Return a row for each feature, its interval of the records that came, whatever x was; none for a sketch."""
        if self.sketch is not None:
            return ()
        totals, counts = self.total_and_count()
        law = law_of(self.table)
        rows = []
        for feature, (total, count) in enumerate(zip(totals.tolist(), counts.tolist(), strict=True)):
            mean = total / count if count else None
            low, high = mean_interval(law, mean or 0.0, count)
            rows.append(FeatureMean(feature, count, mean, low, high))
        return tuple(rows)

    @cached_property
    def directions(self) -> tuple[DirectionMean, ...]:
        """A row for each direction of a sketch; none without one."""
        if self.sketch is None:
            return ()
        totals, counts = self.total_and_count()
        scaled = zip((totals * self.sketch.root**2).tolist(), counts.tolist(), strict=True)
        return tuple(
            DirectionMean(i, count, total / count if count else None) for i, (total, count) in enumerate(scaled)
        )

    @cached_property
    def sketched(self) -> SketchMean | None:
        """What all directions say together, with an interval that holds for the mean over the records that came."""
        if self.sketch is None:
            return None
        totals, counts = self.total_and_count()
        count, square = int(counts.sum()), self.sketch.root**2
        mean = float(totals.sum()) / count if count else None
        low, high = mean_interval(law_of(self.table), mean or 0.0, count)
        shown = None if mean is None else square * mean
        met = int(np.count_nonzero(counts))
        return SketchMean(
            self.sketch.n, self.sketch.directions, met, self.sketch.root, shown, square * low, square * high
        )

    def rows(self) -> list[dict[str, Any]]:
        """One for each feature, or for each direction of a sketch."""
        return [asdict(row) for row in (self.directions if self.sketch else self.features)]

    def total_and_count(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Of each feature, the sum of its unbiased values and how many there are: what training pools over records.

        Of a sketch they are those of u in 0 … 1, a row for each direction.
        """
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
        told = {"features": self.rows()} if self.sketched is None else {"sketch": asdict(self.sketched)}
        return {**head, **self.statistics.to_dict(), "confidence": LEVEL, **told}

    def title(self) -> str:
        told = f"{self.rejected:,} refused, {self.statistics.empty:,} empty"
        return f"{counted(self.accepted, 'packet')} accepted, {told}"

    def facts(self) -> dict[str, str]:
        kept = self.statistics
        facts = {"epsilon": f"{kept.epsilon} per packet, as proved here: {PRIVACY}"}
        facts["table"] = (
            f"{self.table.kind}, {kept.k} of {counted(kept.n, 'value')} in a packet, identity {kept.identity[:16]}"
        )
        if self.sketched is not None:
            facts["mean square"] = f"{self.sketched.low:.5f} … {self.sketched.high:.5f} along a direction (95 %)"
        for row in self.features[:SHOWN]:
            mean = "–" if row.mean is None else f"{row.mean:.5f}"
            facts[f"feature {row.feature}"] = f"{mean}, 95 % within {row.low:.5f} … {row.high:.5f}"
        if len(self.features) > SHOWN:
            facts["…"] = f"{len(self.features) - SHOWN} more: to_frame() has them"
        return facts

    def figure(self) -> "Figure":
        from sensorsim.results import whiskers

        found = [(row.mean, row.low, row.high) for row in self.features]
        names, most = [f"feature {row.feature}, {row.count:,}" for row in self.features], 1.0
        axis = "mean of x, 0 … 1, and its 95 % interval, after the number of values that came"
        if self.sketched is not None:
            found, names = [(self.sketched.mean, self.sketched.low, self.sketched.high)], ["mean square"]
            axis, most = "mean square along a direction, and its 95 % interval", float(self.sketched.root) ** 2
        made: Figure = whiskers(self.title(), names, found, axis, most)
        return made
