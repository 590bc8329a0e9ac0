"""`release`: records through a certified table, as a fleet of sensors would send them, and what can be said of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim._util.results import Result, whiskers
from sensorsim._util.terminal import counted
from sensorsim.api.noise import Table, read_table
from sensorsim.calls import checked
from sensorsim.datasets.public_ranges import Ranges
from sensorsim.noise.table_report import LOCAL

if TYPE_CHECKING:
    from decimal import Decimal

    import numpy as np
    import numpy.typing as npt
    from matplotlib.figure import Figure

    from sensorsim.noise.noise_table import NoiseTable

SCHEMA_VERSION = 1
SHOWN = 6  # features whose means a repr lists
SEEDED = "reproducible from its seed, so NOT PRIVATE"


@dataclass(frozen=True, repr=False, eq=False)
class Released(Result):
    """What left the sensors: of each record, which features and which symbols. All else is post-processing of it."""

    table: "NoiseTable"
    picked: "npt.NDArray[np.uint32]"  # (records, k): the features released of each record, numbered from 0
    symbols: "npt.NDArray[Any]"  # (records, k): what was released of them, as `table` draws it
    epsilon: "Decimal"  # of a record, proved when this was released
    private: bool = True  # not so with a seed

    @cached_property
    def estimate(self) -> "npt.NDArray[np.float64]":
        """Unbiased values of x in 0 … 1, (records, features); NaN where a feature was not released."""
        import numpy as np

        made = np.full((len(self.symbols), self.table.features), np.nan)
        np.put_along_axis(made, self.picked.astype(np.int64), np.asarray(self.table.estimate(self.symbols), float), 1)
        return made

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        import numpy as np

        from sensorsim.hospital.confidence import law_of, mean_interval

        law, made = law_of(self.table), []
        for feature, column in enumerate(self.estimate.T):
            values = column[~np.isnan(column)]
            mean = float(values.mean()) if len(values) else None
            low, high = mean_interval(law, mean or 0.0, len(values))
            made.append({"feature": feature, "count": len(values), "mean": mean, "low": low, "high": high})
        return made

    def rows(self) -> list[dict[str, Any]]:
        """The mean of every feature with its 95 % interval, which holds whatever the records are."""
        return [dict(row) for row in self._rows]

    @property
    def protects(self) -> str:
        """In words, and not private where it was drawn from a seed."""
        return f"epsilon {self.epsilon} per record, proved now; {LOCAL if self.private else SEEDED}"

    def title(self) -> str:
        n, k = self.table.features, self.picked.shape[1]
        return f"{counted(len(self.symbols), 'record')} released, {k} of {counted(n, 'feature')} of each"

    def facts(self) -> dict[str, str]:
        rows = self._rows
        halves = sorted((row["high"] - row["low"]) / 2 for row in rows if row["mean"] is not None)
        means = ", ".join("–" if row["mean"] is None else f"{row['mean']:.3f}" for row in rows[:SHOWN])
        means += " …" if len(rows) > SHOWN else ""
        return {
            "protects": self.protects,
            "table": f"{self.table.kind}, {self.table.bits_on_air} bits a record on the air",
            "means": f"{means} (features 0 …; 95 % within ±{halves[len(halves) // 2]:.3f} in the median)",
        }

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "records": len(self.symbols),
            "features": self.table.features,
            "released": int(self.picked.shape[1]),
            "kind": self.table.kind,
            "epsilon_record": str(self.epsilon),
            "privacy": LOCAL if self.private else SEEDED,
            "private": self.private,
            "means": self.rows(),
        }

    def figure(self) -> "Figure":
        found = [(row["mean"], row["low"], row["high"]) for row in self._rows]
        places = [f"feature {row['feature']}, {row['count']:,}" for row in self._rows]
        axis = "mean of x, 0 … 1, and its 95 % interval, after the number of values released"
        made: Figure = whiskers(f"{self.title()}: {self.protects}", places, found, axis)
        return made


@checked
def release(
    x: Any,
    table: Table,
    ranges: Ranges | None = None,
    seed: int | Sequence[int] | None = None,
    threads: int = 1,
) -> Released:
    """Release records through the kernels that firmware runs; the table is proved first, whatever its file says.

    x has a row for each record: floats from 0 to 1, which are rounded as the sensor does, or the sensor's own whole
    numbers, 0 … 32768; or, with `ranges`, a (low, high) for each feature, readings in their units, clipped to these.
    What lies outside, NaN among it, is refused: the kernels would count it as 0 or 1, and estimates would be wrong
    without a word. Where the table releases fewer features than a record has, they are picked at random.

    Random words are from a generator keyed by the operating system; with a `seed` all can be had again, so nothing is
    private.

        >>> import numpy as np, sensorsim as ss
        >>> released = ss.release(np.full((20000, 14), 0.9), ss.noise_table(epsilon=1.6, release=1))
        >>> released.symbols.shape, str(released.epsilon)
        ((20000, 1), '1.599958023791')
    """
    import numpy as np

    from sensorsim.datasets.public_ranges import as_records
    from sensorsim.noise.batch_release import release_records, sampled_records
    from sensorsim.noise.certificate import certify

    noise = read_table(table)
    if type(threads) is not int or threads < 1:
        raise InputError(f"threads is {threads!r}; give a whole number of at least 1.")
    records = as_records(x, noise.features, ranges)
    if noise.sampled:
        picked, symbols = sampled_records(records, noise, seed, threads)
    else:
        symbols = release_records(records, noise, seed, threads)
        picked = np.broadcast_to(np.arange(noise.features, dtype=np.uint32), symbols.shape)
    proved = certify(noise).epsilon_record
    assert proved is not None  # or nothing would have been released
    return Released(noise, picked, symbols, proved, private=seed is None)
