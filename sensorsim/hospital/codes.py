"""Hidden units as the hospital knows them: what the model expects, and what is left of it when released codes come.

A unit is h = sigmoid(a) with a normal a. One value that comes of it gives a posterior by Bayes' rule. Many give that of
the mean of a over the records they came of: near the expected one or not, and with a deviation that is averaged over.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sensorsim.hospital.expected import STAIRS_COLUMNS
from sensorsim.hospital.law import Law, law_of

if TYPE_CHECKING:
    from sensorsim.hospital.received import Received

Reals = npt.NDArray[np.float64]

NODES = 32  # of the quadrature over a normal a
WITHIN = (0.05, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25)  # deviation of a over the records, in that which the model expects
FINE, FAR = 513, 6.0  # points of a, and how far out, where one value is read
APART = (0.03, 0.1, 0.3, 1.0)  # how far these records' mean may lie from the expected one, in the same: all as likely
SKEW = 1 / 12  # a skewness of 1, which no h shows, moves the mean of a by s³/12: the third term of the sigmoid at 0
GRID, REACH, ROUNDS = 61, 6.0, 8  # of the mean of a; the grid narrows around it round by round


class Codes(NamedTuple):
    """One user's hidden units as the model expects them, and the way from them to a record."""

    middle: Reals  # (l,) mean of a
    covariance: Reals  # (l, l)
    linear: bool  # whether the decoder is a straight line in a
    decode: Callable[[Any], Reals]  # h (…, l) to records (…, n) in 0 … 1

    @property
    def spread(self) -> Reals:
        """Deviation of every unit."""
        return np.sqrt(np.diag(self.covariance))


class Unit(NamedTuple):
    """What is known of a hidden unit over the records that it came of."""

    mean: float  # of a
    doubt: float
    within: float  # deviation of a over the records


def answers_of(law: Law, codes: Codes) -> tuple[Reals, Reals]:
    """Mean and variance of each unit's a given each value, (l, values)."""
    found = [_answer(law, middle, spread) for middle, spread in zip(codes.middle, codes.spread, strict=True)]
    return np.array([mean for mean, _ in found]), np.array([variance for _, variance in found])


def _answer(law: Law, middle: float, spread: float) -> tuple[Reals, Reals]:
    """The same of one unit; on an even grid, since what stairs show has jumps."""
    node = np.linspace(-FAR, FAR, FINE)
    weight, a = np.exp(-(node**2) / 2), middle + spread * node
    joint = weight[:, None] * _seen(law, a)[1]  # (nodes, values)
    sums = joint.sum(axis=0)
    never = sums <= 0  # a value that no unit gives: it says nothing
    odds = np.where(never, weight[:, None] / weight.sum(), joint / np.where(never, 1.0, sums))
    mean = a @ odds
    return mean, a**2 @ odds - mean**2


def _seen(law: Law, a: Reals) -> tuple[Reals, Reals]:
    """h of a (…), and how likely each value is there (…, values)."""
    from scipy.special import expit

    h = np.asarray(expit(a))
    place = h * (len(law.x) - 1)
    left = np.minimum(place.astype(np.int64), len(law.x) - 2)
    share = (place - left)[..., None]
    return h, law.chance[left] * (1 - share) + law.chance[left + 1] * share


def _normal() -> tuple[Reals, Reals]:
    """Points and weights of a standard normal variable."""
    node, weight = np.polynomial.hermite_e.hermegauss(NODES)
    return node, weight / weight.sum()


def units_of(received: "Received", codes: Codes) -> list[Unit]:
    law = law_of(received.table)
    every = zip(codes.middle.tolist(), codes.spread.tolist(), strict=True)
    return [_unit(_likelihood(received, law, r), *expected) for r, expected in enumerate(every)]


def _likelihood(received: "Received", law: Law, r: int) -> Callable[[Reals], Reals]:
    """Of unit r: from a (…, nodes) to the log of how likely what came is, (…)."""
    weight, row = _normal()[1], received.statistics.sums[r]
    if received.statistics.columns != STAIRS_COLUMNS:
        order = np.argsort(received.table.estimate(np.arange(len(row))), kind="stable")  # the law's values ascend
        counts = np.array(row, np.float64)[order]

        def of_symbols(a: Reals) -> Reals:
            shown = np.einsum("z,...zv->...v", weight, _seen(law, a)[1])
            return np.asarray(np.log(np.maximum(shown, 1e-300)) @ counts)

        return of_symbols
    total, count = (float(part[r]) for part in received.total_and_count())
    noise = float(received.table.estimate_sd or 0.0) ** 2

    def of_sums(a: Reals) -> Reals:
        from scipy.special import expit

        h = expit(a)
        mean = h @ weight
        variance = noise + h**2 @ weight - mean**2
        return np.asarray(-0.5 * (count * (total / max(count, 1.0) - mean) ** 2 / variance + np.log(variance)))

    return of_sums


def _unit(likelihood: Callable[[Reals], Reals], middle: float, spread: float) -> Unit:
    """Posterior of the mean of a over the records, on a grid that narrows around it."""
    node = _normal()[0]
    within = spread * np.array(WITHIN)
    centre, reach = middle, REACH * spread
    for _ in range(ROUNDS):
        mu = centre + reach * np.linspace(-1.0, 1.0, GRID)
        log = likelihood(mu[:, None, None] + within[None, :, None] * node)  # (grid, within)
        away = (mu - middle) / spread
        log += np.logaddexp.reduce([-0.5 * (away / one) ** 2 - np.log(one) for one in APART])[:, None]
        odds = np.exp(log - log.max())
        odds /= odds.sum()
        mean = float(odds.sum(axis=1) @ mu)
        doubt = float(np.sqrt(odds.sum(axis=1) @ (mu - mean) ** 2))
        if doubt > 4 * reach / GRID:
            break
        centre, reach = mean, max(REACH * doubt, reach / 8)
    deviation = float(np.sqrt(odds.sum(axis=0) @ within**2))
    return Unit(mean, float(np.hypot(doubt, SKEW * deviation**3)), deviation)
