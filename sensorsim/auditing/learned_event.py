"""Learn an event: a small classifier that separates the packets of two inputs by thresholds of a score.

The method is boosting (Schapire and Singer 1999, weak hypotheses that partition the domain): each round takes the
statistic of a packet whose bins separate the two inputs best, adds half the log odds of the bin to the score, and
increases the weight of misclassified packets. A statistic is a value, four bits of one, or the sum, the difference or
the xor of two neighbours: in a packet, or in one and the next.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

BINS = 16
ROUNDS = 12
MOST_STATISTICS = 256
MOST_WINDOWS = 4096  # of each input, to learn from
RATES = (0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.997)  # quantiles of the score that become cuts
SMOOTHING = 4.0  # packets added to each bin, so that an empty one proves little


class Statistic(NamedTuple):
    """A number computed from columns a and b of a window of packets, side by side."""

    what: str
    a: int
    b: int = 0

    def of(self, windows: "Array") -> "Array":
        made: Array = FORMULAS[self.what](windows[:, self.a], windows[:, self.b])
        return made

    def name(self, names: Sequence[str]) -> str:
        width = len(names)
        first, second = (names[c % width] + (" of the next" if c >= width else "") for c in (self.a, self.b))
        return NAMES[self.what].format(first, second)


FORMULAS: "dict[str, Callable[[Array, Array], Array]]" = {
    "value": lambda a, b: a,
    "low": lambda a, b: a & 15,
    "next": lambda a, b: (a >> 4) & 15,
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "xor": lambda a, b: a ^ b,
    "low xor": lambda a, b: (a ^ b) & 15,
}
ONE_COLUMN = ("value", "low", "next")
TWO_COLUMNS = ("sum", "difference", "xor", "low xor")
NAMES = {
    "value": "{}",
    "low": "bits 0-3 of {}",
    "next": "bits 4-7 of {}",
    "sum": "{} + {}",
    "difference": "{} - {}",
    "xor": "{} xor {}",
    "low xor": "bits 0-3 of {} xor {}",
}


class LearnedEvent(NamedTuple):
    """A score for windows of packets, and cuts; the events are scores at or above a cut, or below it."""

    window: int  # consecutive packets
    statistics: tuple[Statistic, ...]
    edges: "tuple[Array, ...]"
    odds: "tuple[Array, ...]"
    cuts: "Array"

    def tally(self, packets: "Array") -> "Array":
        """Count the windows of a block between the cuts."""
        import numpy as np

        score = self.score(windows_of(packets, self.window))
        return np.bincount(np.searchsorted(self.cuts, score, side="right"), minlength=len(self.cuts) + 1)

    def score(self, windows: "Array") -> "Array":
        import numpy as np

        total = np.zeros(len(windows))
        for statistic, edges, odds in zip(self.statistics, self.edges, self.odds, strict=True):
            total += odds[np.searchsorted(edges, statistic.of(windows), side="right")]
        return total


def windows_of(packets: "Array", window: int) -> "Array":
    """Return packets side by side, each used once; an incomplete window is left out."""
    import numpy as np

    whole = len(packets) // window * window
    return np.ascontiguousarray(packets[:whole]).reshape(-1, window * packets.shape[1]).astype(np.int64)


def learn(first: "Array", second: "Array", window: int) -> LearnedEvent | None:
    """Learn from packets of two inputs; None if there are too few."""
    import numpy as np

    width = first.shape[1]
    samples = [windows_of(packets, window)[:MOST_WINDOWS] for packets in (first, second)]
    sizes = [len(sample) for sample in samples]
    if min(sizes) < BINS:
        return None
    both = np.concatenate(samples)
    of_first = np.repeat([True, False], sizes)
    statistics = _statistics(width, window)
    edges = []
    bins = np.empty((len(statistics), len(both)), np.uint8)
    for number, statistic in enumerate(statistics):
        values = statistic.of(both)
        edges.append(_edges(values))
        bins[number] = np.searchsorted(edges[-1], values, side="right")
    weight = np.repeat([0.5 / sizes[0], 0.5 / sizes[1]], sizes)
    odds: dict[int, Array] = {}  # of the bins of each statistic taken, in order of its first round
    for _ in range(ROUNDS):
        sums = _weights()(bins, weight * of_first), _weights()(bins, weight * ~of_first)
        best = int(np.argmin(np.sqrt(sums[0] * sums[1]).sum(axis=1)))
        given = SMOOTHING / len(both)
        gained = np.log((sums[0][best] + given) / (sums[1][best] + given)) / 2
        odds[best] = odds[best] + gained if best in odds else gained
        step = gained[bins[best]]
        weight *= np.exp(np.where(of_first, -step, step))
        weight /= weight.sum()
    taken = tuple(statistics[k] for k in odds), tuple(edges[k] for k in odds), tuple(odds.values())
    made = LearnedEvent(window, *taken, np.zeros(0))
    return made._replace(cuts=np.unique(np.quantile(made.score(both), RATES)))


def _statistics(width: int, window: int) -> list[Statistic]:
    """Return every statistic of a window: of columns, and of neighbours in a packet or in time; of many, a sample."""
    columns = range(width * window)
    near = [(a, a + 1) for a in columns[:-1]]
    near += [(a, a + width) for a in range(width * (window - 1)) if width > 1]
    found = [Statistic(what, a, b) for a, b in reversed(near) for what in TWO_COLUMNS]
    found += [Statistic(what, a) for a in columns for what in ONE_COLUMN]
    return found[:: max(1, -(-len(found) // MOST_STATISTICS))]


def _edges(values: "Array") -> "Array":
    """Return quantiles as edges of bins; a value that fills more than a bin gets its own."""
    import numpy as np

    ordered = np.sort(values)
    cuts = ordered[np.arange(1, BINS) * len(ordered) // BINS]
    often = cuts[1:][cuts[1:] == cuts[:-1]]
    return np.unique(np.concatenate([cuts, often + 1]))


@cache
def _weights() -> Callable[..., Any]:
    """Compile a function that sums the weights in each bin of each statistic."""
    import numpy as np

    from sensorsim.language.numba_backend.jit import jit

    def weights(bins, weight):  # type: ignore[no-untyped-def]
        made = np.zeros((bins.shape[0], 2 * BINS))
        for row in range(bins.shape[0]):
            for i in range(bins.shape[1]):
                made[row, bins[row, i]] += weight[i]
        return made

    return jit(weights, kept=True, nogil=True, error_model="numpy")
