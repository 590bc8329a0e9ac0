"""Release records in Python through a certified table, as a fleet of sensors would send them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sensorsim._util.option_kinds import Free, Whole
from sensorsim._util.results import Result, whiskers
from sensorsim._util.terminal import counted
from sensorsim.commands.declare import REQUIRED, Command, option
from sensorsim.commands.noise import NOISE_TABLE, proved_table
from sensorsim.noise.noise_table import LOCAL, NoiseTable

if TYPE_CHECKING:
    from decimal import Decimal

    import numpy as np
    import numpy.typing as npt
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1
SHOWN = 6  # features whose means a repr lists
SEEDED = "reproducible from its seed, so NOT PRIVATE"


@dataclass(frozen=True, repr=False, eq=False)
class Released(Result):
    """Released values: which features and which symbols of each record. All else is post-processing of them."""

    table: NoiseTable
    picked: "npt.NDArray[np.uint32]"  # (records, k): the features released of each record, numbered from 0
    symbols: "npt.NDArray[Any]"  # (records, k): what was released of them, as `table` draws it
    epsilon: "Decimal"  # of a record, proved when this was released
    private: bool = True  # not so with a seed

    @cached_property
    def estimate(self) -> "npt.NDArray[np.float64]":
        """Return unbiased values of x in 0 … 1, (records, features); NaN where a feature was not released."""
        import numpy as np

        made = np.full((len(self.symbols), self.table.features), np.nan)
        np.put_along_axis(made, self.picked.astype(np.int64), np.asarray(self.table.estimate(self.symbols), float), 1)
        return made

    @cached_property
    def means(self) -> list[dict[str, Any]]:
        """Return the mean of every feature with its 95 % interval, which holds for any records."""
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
        return [dict(row) for row in self.means]

    @property
    def protects(self) -> str:
        """Return the protection in words; values drawn from a seed are not private."""
        return f"epsilon {self.epsilon} per record, proved now; {LOCAL if self.private else SEEDED}"

    def title(self) -> str:
        n, k = self.table.features, self.picked.shape[1]
        return f"{counted(len(self.symbols), 'record')} released, {k} of {counted(n, 'feature')} of each"

    def facts(self) -> dict[str, str]:
        halves = sorted((row["high"] - row["low"]) / 2 for row in self.means if row["mean"] is not None)
        shown = ["–" if row["mean"] is None else f"{row['mean']:.3f}" for row in self.means]
        more = " …" if len(shown) > SHOWN else ""
        within = f"95 % within ±{halves[len(halves) // 2]:.3f} in the median"
        return {
            "protects": self.protects,
            "table": f"{self.table.kind}, {self.table.bits_on_air} bits a record on the air",
            "means": f"{', '.join(shown[:SHOWN])}{more} (features 0 …; {within})",
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
        found = [(row["mean"], row["low"], row["high"]) for row in self.means]
        places = [f"feature {row['feature']}, {row['count']:,}" for row in self.means]
        axis = "mean of x, 0 … 1, and its 95 % interval, after the number of values released"
        return whiskers(f"{self.title()}: {self.protects}", places, found, axis)


class Pairs(Free):
    """A sequence or an array of pairs, which the command itself checks."""

    words = "a pair for each feature"

    def accepts(self, value: Any) -> bool:
        return hasattr(value, "__len__") and not isinstance(value, str | bytes)


@dataclass(frozen=True)
class ReleaseRecords(Command[Released]):
    """The kernels are those of the firmware, and the table is proved first. Where the table releases fewer features
    than a record has, they are picked at random. Values outside of 0 to 1 and NaN are refused: the kernels would count
    them as 0 or 1, and estimates would be biased.
    """

    usage = """
        >>> import numpy as np, sensorsim as ss
        >>> released = ss.release(np.full((20000, 14), 0.9), ss.noise_table(epsilon=1.6, release=1))
        >>> released.symbols.shape, str(released.epsilon)
        ((20000, 1), '1.599958023791')
    """
    x: Any = option(
        REQUIRED,
        Free(),
        "A row for each record: floats from 0 to 1, which are rounded as the sensor does, or the sensor's own whole "
        "numbers from 0 to 32768; with ranges, readings in their units.",
    )
    table: NoiseTable | str = option(REQUIRED, NOISE_TABLE, "The table that the sensors draw from.")
    ranges: Any = option(None, Pairs(), "A pair (low, high) for each feature; readings are clipped to it.")
    seed: int | Sequence[int] | None = option(
        None, Free(), "Seed of every draw: reproducible, so not private.", default_text="secret random words"
    )
    threads: int = option(1, Whole(1), "Threads; the result does not depend on them.")

    def run(self) -> Released:
        import numpy as np

        from sensorsim.datasets.public_ranges import as_records
        from sensorsim.noise.batch_release import release_records, sampled_records
        from sensorsim.noise.certificate import certify

        noise = proved_table(self.table)
        records = as_records(self.x, noise.features, self.ranges)
        if noise.sampled:
            picked, symbols = sampled_records(records, noise, self.seed, self.threads)
        else:
            symbols = release_records(records, noise, self.seed, self.threads)
            picked = np.broadcast_to(np.arange(noise.features, dtype=np.uint32), symbols.shape)
        proved = certify(noise).epsilon_record
        assert proved is not None  # or nothing would have been released
        return Released(noise, picked, symbols, proved, private=self.seed is None)
