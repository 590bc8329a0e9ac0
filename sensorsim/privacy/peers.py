"""The ready tables beside other ways to release one number privately, and how many records each needs."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sensorsim.kernels.formats import ONE
from sensorsim.privacy import yardstick
from sensorsim.privacy.tables import READY_EPSILONS, NoiseTable, make_table, ready_table

if TYPE_CHECKING:
    import numpy as np

ONE_IN_TEN = 0.1  # of the draws clamped: what keeps stairs close to noise that is added


@dataclass(frozen=True)
class Peers:
    """Standard deviations of the unbiased estimate at the worst x, one feature, in ranges of x."""

    epsilon: float
    laplace_sd: float
    one_bit_sd: float
    piecewise_sd: float
    hybrid_sd: float
    stairs_tenth_sd: float  # stairs with one draw in ten clamped at most
    stairs_sd: float  # ready table
    rows_sd: float  # ready table
    best_known_sd: float | None
    knots: int
    symbols: int
    rows_bytes: int
    rows_bits: int  # on the air, for one value
    records: float  # that stairs with one draw in ten clamped need, for one that rows need


def peers() -> list[Peers]:
    """One row for each budget that tables are ready for."""
    return [_at(epsilon) for epsilon in READY_EPSILONS]


def _at(text: str) -> Peers:
    epsilon, rows, stairs = float(text), ready_table(text, 1), ready_table(text, 1, "stairs")
    tenth = sd_of(little_clamped(text))
    shape = rows.details()
    return Peers(
        epsilon=epsilon,
        laplace_sd=yardstick.laplace_sd(epsilon),
        one_bit_sd=yardstick.one_bit_sd(epsilon),
        piecewise_sd=yardstick.piecewise_sd(epsilon),
        hybrid_sd=yardstick.hybrid_sd(epsilon),
        stairs_tenth_sd=tenth,
        stairs_sd=sd_of(stairs),
        rows_sd=sd_of(rows),
        best_known_sd=yardstick.best_known_sd(epsilon),
        knots=shape["knots"],
        symbols=shape["symbols"],
        rows_bytes=rows.table_bytes,
        rows_bits=rows.value_bits,
        records=(tenth / sd_of(rows)) ** 2,
    )


def sd_of(table: NoiseTable) -> float:
    """At the worst x."""
    assert table.estimate_sd is not None
    return table.estimate_sd


@lru_cache(maxsize=16)
def little_clamped(epsilon: str) -> NoiseTable:
    """Stairs whose ends take one draw in ten at most."""
    return make_table("stairs", epsilon, release=1, most_clamped=ONE_IN_TEN)


def error_of_mean(table: NoiseTable, records: "list[int]", runs: int, x: float, seed: int) -> "np.ndarray[Any, Any]":
    """Root of the mean squared error of the mean of so many released values of x: by the kernels, over many runs."""
    import numpy as np

    from sensorsim.privacy.releases import sampled_records

    features = np.full((runs * max(records), table.features), round(x * ONE), np.uint16)
    values = table.estimate(sampled_records(features, table, seed, generator="fast")[1]).reshape(runs, -1)
    return _errors(values - round(x * ONE) / ONE, records)


def error_of_mean_laplace(epsilon: float, records: "list[int]", runs: int, seed: int) -> "np.ndarray[Any, Any]":
    """The same for Laplace noise that is added to x."""
    from sensorsim.privacy.discrete_laplace import discrete_laplace
    from sensorsim.privacy.words import Words

    noise = discrete_laplace((runs, max(records)), math.ceil(ONE / epsilon), Words(seed)) / ONE
    return _errors(noise, records)


def _errors(values: "np.ndarray[Any, Any]", records: "list[int]") -> "np.ndarray[Any, Any]":
    """Root mean square over the runs of the mean of the first so many values."""
    import numpy as np

    means = values.cumsum(1)[:, np.array(records) - 1] / np.array(records)
    return np.asarray(np.sqrt(np.square(means).mean(0)))
