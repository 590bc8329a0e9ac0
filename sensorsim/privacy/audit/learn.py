"""A learnt event: what a small classifier takes for the packets of one input rather than those of another.

Boosting in its plainest form (Schapire and Singer 1999, weak hypotheses that partition the domain): each round takes
the one look at a packet whose bins tell the two inputs apart best, adds half the log odds of the bin to the score, and
gives the packets that are still mistaken more weight. A look is a value, four bits of one, or the sum, the difference
or the xor of two neighbours: in a packet, or in one and the next.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

BINS = 16
ROUNDS = 12
MOST_LOOKS = 256
MOST_WINDOWS = 4096  # of each input, to learn from
RATES = (0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.997)  # where the score is cut
SMOOTHING = 4.0  # packets that each bin is given for nothing, so that an empty one proves little


class LookAt(NamedTuple):
    """A number made of columns a and b of a window of packets, laid side by side."""

    what: str
    a: int
    b: int = 0

    def of(self, windows: "Array") -> "Array":
        made: Array = LOOKS[self.what](windows[:, self.a], windows[:, self.b])
        return made

    def name(self, names: Sequence[str]) -> str:
        width = len(names)
        first, second = (names[c % width] + (" of the next" if c >= width else "") for c in (self.a, self.b))
        return NAMES[self.what].format(first, second)


LOOKS: "dict[str, Callable[[Array, Array], Array]]" = {
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


class Learnt(NamedTuple):
    """A score for windows of packets, and the cuts that make events of it: at or above a cut, or below it."""

    window: int  # packets that follow each other
    looks: tuple[LookAt, ...]
    edges: "tuple[Array, ...]"
    odds: "tuple[Array, ...]"
    cuts: "Array"

    def tally(self, packets: "Array") -> "Array":
        """How many windows of a block lie between the cuts."""
        import numpy as np

        score = self.score(windows_of(packets, self.window))
        return np.bincount(np.searchsorted(self.cuts, score, side="right"), minlength=len(self.cuts) + 1)

    def score(self, windows: "Array") -> "Array":
        import numpy as np

        total = np.zeros(len(windows))
        for look, edges, odds in zip(self.looks, self.edges, self.odds, strict=True):
            total += odds[np.searchsorted(edges, look.of(windows), side="right")]
        return total


def windows_of(packets: "Array", window: int) -> "Array":
    """Packets side by side, each used once; a rest that fills no window is left out."""
    import numpy as np

    whole = len(packets) // window * window
    return np.ascontiguousarray(packets[:whole]).reshape(-1, window * packets.shape[1]).astype(np.int64)


def learn(first: "Array", second: "Array", window: int) -> Learnt | None:
    """Learn from packets of two inputs; None where nothing tells them apart."""
    import numpy as np

    width = first.shape[1]
    samples = [windows_of(packets, window)[:MOST_WINDOWS] for packets in (first, second)]
    sizes = [len(sample) for sample in samples]
    if min(sizes) < BINS:
        return None
    both = np.concatenate(samples)
    of_first = np.repeat([True, False], sizes)
    looks = _looks(width, window)
    edges = []
    bins = np.empty((len(looks), len(both)), np.uint8)
    for number, look in enumerate(looks):
        values = look.of(both)
        edges.append(_edges(values))
        bins[number] = np.searchsorted(edges[-1], values, side="right")
    weight = np.repeat([0.5 / sizes[0], 0.5 / sizes[1]], sizes)
    odds: dict[int, Array] = {}  # of the bins of each look that was taken, in order of its first round
    for _ in range(ROUNDS):
        sums = _weights()(bins, weight * of_first), _weights()(bins, weight * ~of_first)
        best = int(np.argmin(np.sqrt(sums[0] * sums[1]).sum(axis=1)))
        given = SMOOTHING / len(both)
        gained = np.log((sums[0][best] + given) / (sums[1][best] + given)) / 2
        odds[best] = odds[best] + gained if best in odds else gained
        step = gained[bins[best]]
        weight *= np.exp(np.where(of_first, -step, step))
        weight /= weight.sum()
    taken = tuple(looks[k] for k in odds), tuple(edges[k] for k in odds), tuple(odds.values())
    made = Learnt(window, *taken, np.zeros(0))
    return made._replace(cuts=np.unique(np.quantile(made.score(both), RATES)))


def _looks(width: int, window: int) -> list[LookAt]:
    """Every look at a window; of a wide one those at columns that stand together or follow each other in time."""
    columns = range(width * window)
    near = [(a, a + 1) for a in columns[:-1]]
    near += [(a, a + width) for a in range(width * (window - 1)) if width > 1]
    looks = [LookAt(what, a, b) for a, b in reversed(near) for what in TWO_COLUMNS]
    looks += [LookAt(what, a) for a in columns for what in ONE_COLUMN]
    if len(looks) <= MOST_LOOKS:
        return looks
    return looks[:: -(-len(looks) // MOST_LOOKS)]


def _edges(values: "Array") -> "Array":
    """Quantiles; a value that fills more than a bin gets one of its own."""
    import numpy as np

    ordered = np.sort(values)
    cuts = ordered[np.arange(1, BINS) * len(ordered) // BINS]
    often = cuts[1:][cuts[1:] == cuts[:-1]]
    return np.unique(np.concatenate([cuts, often + 1]))


@cache
def _weights() -> Callable[..., Any]:
    """The weight in each bin of each look; compiled once."""
    import numpy as np

    from sensorsim.language.numba_backend.jit import jit

    def weights(bins, weight):  # type: ignore[no-untyped-def]
        made = np.zeros((bins.shape[0], 2 * BINS))
        for look in range(bins.shape[0]):
            for i in range(bins.shape[1]):
                made[look, bins[look, i]] += weight[i]
        return made

    return jit(weights, kept=True, nogil=True, error_model="numpy")
