"""What one event proves: a lower bound on epsilon, and how rare a leak may be before no number of draws shows it.

If an event has probability p under one input and q under another, epsilon is at least log(p/q). The rates that were
seen give p at least and q at most (Clopper–Pearson), each wrong with the error probability that is given to it. The
event is chosen on other draws than those that it is measured on, so choosing cannot flatter it.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


class Bound(NamedTuple):
    """Epsilon is above this, and the rates of the event that shows it: under the likelier input and the other."""

    epsilon: float
    rates: tuple[float, float]


NOTHING = Bound(0.0, (0.0, 0.0))


def bound(hits: int, trials: int, misses: int, others: int, error: float) -> Bound:
    """From an event that happened `hits` times under one input and `misses` times under another."""
    low, high = at_least(hits, trials, error), at_most(misses, others, error)
    if low <= high:
        return NOTHING
    return Bound(math.log(low / high), (hits / trials, misses / others))


def at_least(hits: int, trials: int, error: float) -> float:
    """Clopper–Pearson: the probability is lower with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0


def at_most(hits: int, trials: int, error: float) -> float:
    """Clopper–Pearson: the probability is higher with probability `error` at most."""
    from scipy.special import betaincinv

    return float(betaincinv(hits + 1, trials - hits, 1 - error)) if hits < trials else 1.0


def best_bound(choose: "Array", test: "Array", scales: int, step: int, error: float) -> Bound:
    """The largest bound over sets of cells: rows are the two inputs, columns the cells. It measures 2·scales events.

    At each scale the cells are taken together in runs, 1, 2^step, 4^step … long. `error` is that of each bound.
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
    """The cells, likeliest ratio first, up to where the bound that they would give is largest."""
    import numpy as np

    cells = np.flatnonzero(p)
    order = cells[np.argsort((q[cells] + 0.5) / (p[cells] + 0.5), kind="stable")]
    hits, misses = np.cumsum(p[order]), np.cumsum(q[order])
    low = hits - 5 * np.sqrt(hits)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(low > 0, np.log(low / (misses + 5 * np.sqrt(misses) + 12)), -np.inf)
    return order[: int(np.argmax(score)) + 1] if len(order) else order


def rarest(trials: int, claimed: float, error: float, confidence: float) -> float:
    """The smallest probability of an event that so many packets of each input show, at best, with that confidence.

    At best: the event gives x away, so it never happens under the other input, whose rate is then bounded by
    1 - error^(1/trials). To show more than the claim it must happen so often, h times, that Clopper–Pearson puts its
    own rate above exp(claimed) times that. An event of probability p happens h times or more, with that confidence,
    only if p is at least the h-th smallest root of the binomial: betaincinv(h, trials - h + 1, confidence). Whatever
    is rarer is beyond these draws; what is not may still be missed, if nothing learnt which event to look at.
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
