"""The statistics of an audit: a lower bound on epsilon from one event, and chi-square tests.

If an event has probability p under one input and q under another, epsilon is at least log(p/q). The observed rates
bound p from below and q from above (Clopper-Pearson), each with its own error probability. The event is chosen on other
draws than those that it is measured on, so the choice does not bias it. Chi-square tests ask whether values follow a
known distribution, and whether two columns are independent.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

EXPECTED = 50.0  # draws that a group of cells should have in a chi-square test


class Bound(NamedTuple):
    """A lower bound of epsilon, and the rates of its event under the likelier input and the other."""

    epsilon: float
    rates: tuple[float, float]


NOTHING = Bound(0.0, (0.0, 0.0))


def bound(hits: int, trials: int, misses: int, others: int, error: float) -> Bound:
    """Return the bound of an event that happened `hits` times under one input and `misses` times under another."""
    low, high = at_least(hits, trials, error), at_most(misses, others, error)
    if low <= high:
        return NOTHING
    return Bound(math.log(low / high), (hits / trials, misses / others))


def at_least(hits: int, trials: int, error: float) -> float:
    """Return the Clopper–Pearson lower bound: the probability is lower with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0


def at_most(hits: int, trials: int, error: float) -> float:
    """Return the Clopper–Pearson upper bound: the probability is higher with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits + 1, trials - hits, 1 - error)) if hits < trials else 1.0


def best_bound(choose: "Array", test: "Array", scales: int, step: int, error: float) -> Bound:
    """Return the largest bound over sets of cells: rows are the two inputs, columns the cells.

    It measures 2·scales events: at each scale the cells are merged in runs, 1, 2^step, 4^step … long. `error` is that
    of each bound.
    """
    import numpy as np

    best = NOTHING
    places = np.flatnonzero(choose.any(axis=0) | test.any(axis=0))
    coarse, again = (counts[:, places].astype(np.int64) for counts in (choose, test))
    for scale in range(scales):
        if scale:
            runs = places >> step
            first = np.flatnonzero(np.diff(runs, prepend=-1))
            places = runs[first]
            coarse, again = (np.add.reduceat(counts, first, axis=1) for counts in (coarse, again))
        sums = again.sum(axis=1)
        if not sums.all():
            return NOTHING
        for likelier in (0, 1):
            event = _best_event(coarse[likelier], coarse[1 - likelier])
            hits, misses = (int(again[which][event].sum()) for which in (likelier, 1 - likelier))
            best = max(best, bound(hits, int(sums[likelier]), misses, int(sums[1 - likelier]), error))
    return best


def _best_event(p: "Array", q: "Array") -> "Array":
    """Return the cells, largest likelihood ratio first, up to where their approximate bound is largest."""
    import numpy as np

    cells = np.flatnonzero(p)
    order = cells[np.argsort((q[cells] + 0.5) / (p[cells] + 0.5), kind="stable")]
    hits, misses = np.cumsum(p[order]), np.cumsum(q[order])
    low = hits - 5 * np.sqrt(hits)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(low > 0, np.log(low / (misses + 5 * np.sqrt(misses) + 12)), -np.inf)
    return order[: int(np.argmax(score)) + 1] if len(order) else order


def rarest(trials: int, claimed: float, error: float, confidence: float) -> float:
    """Return the smallest probability of an event that `trials` packets of each input can show with that confidence.

    At best the event reveals x, so it never happens under the other input, whose rate is then bounded by
    1 - error^(1/trials). To show more than the claim it must happen so often, h times, that Clopper–Pearson puts its
    own rate above exp(claimed) times that. An event of probability p happens h times or more, with that confidence,
    only if p is at least the h-th smallest root of the binomial: betaincinv(h, trials - h + 1, confidence). A rarer
    event is beyond these draws; others may still be missed, if the audit did not learn which event to look at.
    """
    from scipy.special import betaincinv

    high = math.exp(min(claimed, 700.0)) * at_most(0, trials, error)
    least, most = 1, trials + 1
    while least < most:
        middle = (least + most) // 2
        if at_least(middle, trials, error) > high:
            most = middle
        else:
            least = middle + 1
    return 1.0 if least > trials else float(betaincinv(least, trials - least + 1, confidence))


# ---- chi-square tests


def chi_square(found: "Array", expected: "Array", least: float = EXPECTED) -> tuple[float, int]:
    """Return the statistic over groups of neighbouring cells, each with enough expected, and the number of groups."""
    import numpy as np

    found, expected = found[expected > 0], expected[expected > 0]
    level = ((np.cumsum(expected) - expected) * (1 / least)).astype(np.int64)
    first = np.flatnonzero(np.diff(level, prepend=-1) > 0)
    wanted, had = np.add.reduceat(expected, first), np.add.reduceat(found, first)
    small = wanted < least / 5  # a remainder that a large cell cut off
    if small.any():
        wanted = np.append(wanted[~small], wanted[small].sum())
        had = np.append(had[~small], had[small].sum())
    return float((np.square(had - wanted) / wanted).sum()), len(wanted)


def p_value(statistic: float, degrees: int, shift: float = 0.0) -> float:
    """Return the p-value of a statistic. `shift` is the noncentrality that known errors of the cells may cause."""
    from scipy.special import chdtrc, chndtr

    if degrees < 1:
        return 1.0
    central = float(chdtrc(degrees, statistic))
    if shift <= 0 or central > 0.01:
        return central
    return max(central, float(1 - chndtr(statistic, degrees, shift)))


def independence(joint: "Array") -> tuple["Array", "Array", "Array"]:
    """Return statistic, degrees of freedom and p-value for each table of counts, an array of tables × rows × columns.

    If a table has too few counts for its cells, rows and columns are merged two by two.
    """
    import numpy as np

    statistic, degrees, p, enough = _independence(joint)
    if joint.shape[1] > 2 and not enough.all():
        thin = ~enough
        tables, rows, columns = joint[thin].shape
        coarse = joint[thin].reshape(tables, rows // 2, 2, columns // 2, 2).sum(axis=(2, 4))
        for fine, merged in zip((statistic, degrees, p), independence(coarse), strict=True):
            np.place(fine, thin, merged)
    return statistic, degrees, p


def _independence(joint: "Array") -> tuple["Array", "Array", "Array", "Array"]:
    """Test independence without merging cells, and say whether there are enough counts for that.

    Rows and columns so rare that their cells would expect less than EXPECTED are left out.
    """
    import numpy as np
    from scipy.special import chdtrc

    total = joint.sum(axis=(1, 2))
    occupied = [(joint.sum(axis=axis) > 0).sum(axis=1) for axis in (1, 2)]
    needed = np.maximum(np.sqrt(EXPECTED * total), 1)[:, None]
    rows, columns = joint.sum(axis=2) >= needed, joint.sum(axis=1) >= needed
    kept = joint * rows[:, :, None] * columns[:, None, :]
    by_row, by_column, sums = kept.sum(axis=2), kept.sum(axis=1), kept.sum(axis=(1, 2))
    wanted = by_row[:, :, None] * (by_column / np.maximum(sums, 1)[:, None])[:, None, :]
    statistic = (np.square(kept - wanted) / np.where(wanted > 0, wanted, 1)).sum(axis=(1, 2))
    degrees = np.maximum(rows.sum(axis=1) - 1, 0) * np.maximum(columns.sum(axis=1) - 1, 0)
    p = np.where(degrees > 0, chdtrc(np.maximum(degrees, 1), statistic), 1.0)
    return statistic, degrees, p, total >= 2 * EXPECTED * occupied[0] * occupied[1]
