"""What others reach: the standard deviation of an unbiased estimate at the worst x, range 1, pure epsilon.

The closed forms are the worst-case variances of Wang et al. (ICDE 2019) for the range -1..1, divided by 4.
"""

import csv
import functools
import math
from itertools import pairwise

from sensorsim.errors import InputError
from sensorsim.tables import folder

# Of best_sd.csv: a tenth more each below 1, so that the chords between them lie close.
EPSILONS = (
    *(0.05, 0.055, 0.06, 0.065, 0.07, 0.075, 0.08, 0.09, 0.1, 0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.18),
    *(0.2, 0.22, 0.24, 0.26, 0.28, 0.3, 0.33, 0.36, 0.4, 0.44, 0.48, 0.52, 0.56, 0.6, 0.65, 0.7, 0.75),
    *(0.8, 0.85, 0.9, 0.95, *(e / 10 for e in range(10, 32)), *(e / 10 for e in range(32, 81, 2))),
)
_FINE_VALUES = 90  # on either side of 0
HYBRID_FROM = 0.61  # below, the hybrid mechanism is the one-bit mechanism


def laplace_sd(epsilon: float) -> float:
    """Laplace noise: sqrt(2)/epsilon."""
    return math.sqrt(2) / _positive(epsilon)


def one_bit_sd(epsilon: float) -> float:
    """Duchi, Jordan and Wainwright: ((e^eps + 1)/(e^eps - 1))²/4, at the middle of the range."""
    return 0.5 / math.tanh(_positive(epsilon) / 2)


def piecewise_sd(epsilon: float) -> float:
    """The piecewise mechanism: s/(3(s-1)²) with s = e^(eps/2), at the ends of the range."""
    s = math.exp(_positive(epsilon) / 2)
    return math.sqrt(s / 3) / (s - 1)


def hybrid_sd(epsilon: float) -> float:
    """The hybrid of the two: ((s+3)/(3s(s-1)) + (E+1)²/(s(E-1)²))/4 with E = e^eps, the same at every x."""
    if _positive(epsilon) <= HYBRID_FROM:
        return one_bit_sd(epsilon)
    s = math.exp(epsilon / 2)  # and (E + 1)/(E - 1) is 1/tanh(eps/2), which does not overflow
    return math.sqrt(((s + 3) / (3 * s * (s - 1)) + 1 / (s * math.tanh(epsilon / 2) ** 2)) / 4)


def best_known_sd(epsilon: float) -> float | None:
    """The best mechanism found by a fine linear program, from 0.05 to 8; None above, where none was computed.

    Below, it is one bit, of which the program gains nothing that shows: 2 in 10,000 at 0.05, and less towards 0.
    Between the points of best_sd.csv the logarithm is interpolated along epsilon. It is convex there, so what is
    returned is above what the program finds, by 0.13 % at most.
    """
    points = _points()
    if epsilon < points[0][0]:
        return one_bit_sd(epsilon)
    for (a, sd_a), (b, sd_b) in pairwise(points):
        if epsilon <= b:
            t = (epsilon - a) / (b - a)
            return math.exp((1 - t) * math.log(sd_a) + t * math.log(sd_b))
    return None


@functools.lru_cache(maxsize=1)
def _points() -> list[tuple[float, float]]:
    with (folder() / "best_sd.csv").open() as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        return [(float(line["epsilon"]), float(line["sd"])) for line in lines]


def fine_sd(epsilon: float) -> float:
    """Solve the fine linear program: knots and values so dense that more of them gain little. Seconds to a minute.

    What is returned is what its counts reach, at the worst x between the knots too: a mechanism, not a bound.
    """
    import numpy as np

    from sensorsim.privacy.rows_lp import Program

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
    """The text of best_sd.csv; about ten minutes."""
    command = """python -c "from sensorsim.privacy.yardstick import table_text as t; print(t(), end='')" """.strip()
    head = (
        f"# Worst standard deviation of the best unbiased epsilon-private estimate found, range 1. Made by: {command}"
    )
    return "\n".join([head, "epsilon,sd", *(f"{e:g},{fine_sd(e):.7g}" for e in EPSILONS)]) + "\n"


def _positive(epsilon: float) -> float:
    if not epsilon > 0:
        raise InputError(f"epsilon must be above 0, got {epsilon:g}.")
    return epsilon
