"""Baselines: the accuracy of other mechanisms at the same epsilon, and the ready tables beside them.

Every figure is the standard deviation of an unbiased estimate at the worst x, range 1, pure epsilon. The closed forms
are the worst-case variances of Wang et al. (ICDE 2019) for the range -1..1, divided by 4.
"""

import csv
import functools
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sensorsim._util.errors import InputError
from sensorsim.tables import folder

if TYPE_CHECKING:
    import numpy as np

    from sensorsim.noise.noise_table import NoiseTable

# Of best_sd.csv: about a tenth apart below 1, so that the chords between them lie close.
EPSILONS = (
    *(0.05, 0.055, 0.06, 0.065, 0.07, 0.075, 0.08, 0.09, 0.1, 0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.18),
    *(0.2, 0.22, 0.24, 0.26, 0.28, 0.3, 0.33, 0.36, 0.4, 0.44, 0.48, 0.52, 0.56, 0.6, 0.65, 0.7, 0.75),
    *(0.8, 0.85, 0.9, 0.95, *(e / 10 for e in range(10, 32)), *(e / 10 for e in range(32, 81, 2))),
)
_FINE_VALUES = 90  # on either side of 0
HYBRID_FROM = 0.61  # below, the hybrid mechanism is the one-bit mechanism
ONE_IN_TEN = 0.1  # of the draws clamped: what keeps stairs close to additive noise


def laplace_sd(epsilon: float) -> float:
    """Return the sd of Laplace noise: sqrt(2)/epsilon."""
    return math.sqrt(2) / _positive(epsilon)


def one_bit_sd(epsilon: float) -> float:
    """Return the sd of Duchi, Jordan and Wainwright: (e^eps + 1)/(e^eps - 1)/2, at the middle of the range."""
    return 0.5 / math.tanh(_positive(epsilon) / 2)


def piecewise_sd(epsilon: float) -> float:
    """Return the sd of the piecewise mechanism: sqrt(s/3)/(s-1) with s = e^(eps/2), at the ends of the range."""
    s = math.exp(_positive(epsilon) / 2)
    return math.sqrt(s / 3) / (s - 1)


def hybrid_sd(epsilon: float) -> float:
    """Return the sd of their hybrid, the same at every x.

    Its variance is ((s+3)/(3s(s-1)) + (E+1)²/(s(E-1)²))/4 with E = e^eps.
    """
    if _positive(epsilon) <= HYBRID_FROM:
        return one_bit_sd(epsilon)
    s = math.exp(epsilon / 2)  # and (E + 1)/(E - 1) is 1/tanh(eps/2), which does not overflow
    return math.sqrt(((s + 3) / (3 * s * (s - 1)) + 1 / (s * math.tanh(epsilon / 2) ** 2)) / 4)


def best_known_sd(epsilon: float) -> float | None:
    """Return the sd of the best mechanism that a fine linear program found, up to epsilon 8; None above.

    Below 0.05 it is one bit, which the program improves by 2 in 10,000 at most. Between the points of best_sd.csv its
    logarithm, which is convex, is interpolated: at most 0.13 % above what the program finds.
    """
    points = _points()
    if epsilon < points[0][0]:
        return one_bit_sd(epsilon)
    for (a, sd_a), (b, sd_b) in pairwise(points):
        if epsilon <= b:
            t = (epsilon - a) / (b - a)
            return math.exp((1 - t) * math.log(sd_a) + t * math.log(sd_b))
    return None


def baseline_sds(epsilon: float) -> dict[str, Any]:
    """Return the standard deviations of all baselines at one epsilon, by name."""
    return {f.__name__: f(epsilon) for f in (best_known_sd, hybrid_sd, piecewise_sd, one_bit_sd, laplace_sd)}


@functools.lru_cache(maxsize=1)
def _points() -> list[tuple[float, float]]:
    with (folder() / "best_sd.csv").open() as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        return [(float(line["epsilon"]), float(line["sd"])) for line in lines]


def fine_sd(epsilon: float) -> float:
    """Solve the fine linear program: the sd of a mechanism at its worst x, which more knots and values hardly lower."""
    import numpy as np

    from sensorsim.noise.rows_design import Program

    s = math.exp(epsilon / 2)
    knots = 33 if epsilon <= 2 else 65 if epsilon <= 4 else 129
    half = np.arange(1, _FINE_VALUES + 1) / _FINE_VALUES * 1.03 * (s + 1) / (s - 1)
    program = Program(math.exp(epsilon), knots, 2 * _FINE_VALUES + 1, 1 << 16, mixtures=(0.0, 0.5))
    solution = program.solve(half)
    if solution is None:
        raise ValueError(f"the linear program for epsilon {epsilon:g} has no solution")
    second = solution.counts @ program.values(half) ** 2 / (1 << 16)
    x, gap = program.x[:-1], 2 / (knots - 1)
    # second moment at x + t*gap minus (x + t*gap)²: a parabola in t with its top here
    t = np.clip((np.diff(second) / gap - 2 * x) / (2 * gap), 0, 1)
    worst = (second[:-1] + t * np.diff(second) - (x + t * gap) ** 2).max()
    return math.sqrt(worst) / 2


def table_text() -> str:
    """Compute the text of best_sd.csv; about ten minutes."""
    head = "# Worst standard deviation of the best unbiased epsilon-private estimate found, range 1. Made by: "
    head += """python -c "from sensorsim.noise.baseline import table_text as t; print(t(), end='')\""""
    return "\n".join([head, "epsilon,sd", *(f"{e:g},{fine_sd(e):.7g}" for e in EPSILONS)]) + "\n"


def _positive(epsilon: float) -> float:
    if not epsilon > 0:
        raise InputError(f"epsilon must be above 0, got {epsilon:g}.")
    return epsilon


# ---- the ready tables beside these, and how many records each needs


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
    """Compare tables and baselines at each budget for which tables are ready."""
    from sensorsim.noise.noise_table import READY_EPSILONS, ready_table

    found = []
    for text in READY_EPSILONS:
        rows, stairs, tenth = ready_table(text, 1), ready_table(text, 1, "stairs"), mostly_unclamped(text)
        rows_sd, stairs_sd, tenth_sd = (table.estimate_sd or math.inf for table in (rows, stairs, tenth))
        sizes = {name: rows.details()[name] for name in ("knots", "symbols")}
        sizes |= {"rows_bytes": rows.table_bytes, "rows_bits": rows.value_bits}
        sds = baseline_sds(float(text)) | {"rows_sd": rows_sd, "stairs_sd": stairs_sd, "stairs_tenth_sd": tenth_sd}
        found.append(Peers(epsilon=float(text), records=(tenth_sd / rows_sd) ** 2, **sizes, **sds))
    return found


@functools.lru_cache(maxsize=16)
def mostly_unclamped(epsilon: str) -> "NoiseTable":
    """Make stairs whose ends take one draw in ten at most."""
    from sensorsim.noise.noise_table import make_table

    return make_table("stairs", epsilon, release=1, most_clamped=ONE_IN_TEN)


def error_of_mean(table: "NoiseTable", records: "list[int]", runs: int, x: float, seed: int) -> "np.ndarray[Any, Any]":
    """Measure the RMS error of the mean of each number of released values of x, by the kernels."""
    import numpy as np

    from sensorsim.kernels.formats import ONE
    from sensorsim.noise.batch_release import sampled_records

    features = np.full((runs * max(records), table.features), round(x * ONE), np.uint16)
    values = table.estimate(sampled_records(features, table, seed, generator="fast")[1]).reshape(runs, -1)
    return _rms_of_means(values - round(x * ONE) / ONE, records)


def error_of_mean_laplace(epsilon: float, records: "list[int]", runs: int, seed: int) -> "np.ndarray[Any, Any]":
    """Measure the RMS error of the mean of each number of values with Laplace noise added."""
    from sensorsim.kernels.formats import ONE
    from sensorsim.noise.host_noise import Words, discrete_laplace

    noise = discrete_laplace((runs, max(records)), math.ceil(ONE / epsilon), Words(seed)) / ONE
    return _rms_of_means(noise, records)


def _rms_of_means(errors: "np.ndarray[Any, Any]", records: "list[int]") -> "np.ndarray[Any, Any]":
    """Return the root mean square over the runs of the mean of the first n errors, for each n of `records`."""
    import numpy as np

    means = errors.cumsum(1)[:, np.array(records) - 1] / np.array(records)
    return np.asarray(np.sqrt(np.square(means).mean(0)))
