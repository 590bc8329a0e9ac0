"""Count packets into cells, alone and in pairs of columns, and learn events; compiled, no packet is stored.

Cells map every value of a column to a small number. They are made from the first draws, which no verdict uses. A column
of few values has a cell for each; another is cut at its quantiles and keeps its three lowest bits.

Two columns are counted together within a packet, and in consecutive packets; a column also with itself up to LAGS
packets later. Packets 0 and 1, 2 and 3 … are one count, 1 and 2, 3 and 4 … another, and so at every distance: within a
count no packet is used twice, so its pairs are independent if packets are.

An event is learnt by boosting (Schapire and Singer 1999): each round takes the statistic of a packet whose bins
separate the two inputs best, adds half the log odds of the bin to the score, and increases the weight of misclassified
packets. A statistic is a value, four bits of one, or the sum, the difference or the xor of two neighbours.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from sensorsim.auditing.packet_source import Source
from sensorsim.language.numba_backend.jit import jit

Array = np.ndarray[Any, Any]
PLACES = 1024  # steps between the smallest and the largest value of a column
CELLS = 256  # of one column: all its values, or QUANTILES times LOW
QUANTILES = 32
LOW = 8  # values of the lowest bits
GROUPS = 8  # of a column in a joint count of two
MOST_BITS = 20  # values are counted modulo 2^MOST_BITS: folding can only hide a leak
MOST_PAIRS = 512  # of columns, each within a packet and across two; nearest first
LAGS = 8
RING = 16  # packets in memory: a power of two above LAGS
JOINT = GROUPS * GROUPS
BINS = 16
ROUNDS = 12
MOST_STATISTICS = 256
MOST_WINDOWS = 4096  # of each input, to learn from
RATES = (0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.997)  # quantiles of the score that become cuts
SMOOTHING = 4.0  # packets added to each bin, so that an empty one proves little
assert LOW == GROUPS


class Cells(NamedTuple):
    """The cells of the values of each column; `_count_packets` reads them."""

    base: Array
    scale: Array  # a place is (value - base) >> scale
    shift: Array  # the column's values are multiples of 2^shift
    exact: Array  # whether a cell is a place
    quantile: Array  # of a place, columns × places
    group: Array  # of a place, inputs × columns × places: quantiles for each input by itself
    pooled: Array  # the columns that are counted value by value, all together
    bits: int  # of those values

    def of(self, values: Array, column: int) -> Array:
        """Return the cells of values of a column, as `count_packets` does."""
        places: Array = np.clip((values - self.base[column]) >> self.scale[column], 0, PLACES - 1)
        low = (values >> self.shift[column]) & (LOW - 1)
        cut: Array = self.quantile[column, places].astype(np.int64) * LOW + low
        return places if self.exact[column] else cut


def make_cells(source: Source, pilot: Sequence[Array]) -> Cells:
    """Make the cells from some packets of each input."""
    width = len(source.fields)
    drawn = np.concatenate(pilot).astype(np.int64)
    known = [_support(source, column) for column in range(width)]
    base, scale, shift, exact = (np.zeros(width, np.int64) for _ in range(4))
    quantile = np.zeros((width, PLACES), np.uint8)
    group = np.zeros((len(pilot), width, PLACES), np.uint8)
    for column in range(width):
        seen = np.concatenate([drawn[:, column], known[column]])
        first, last = int(seen.min()), int(seen.max())
        if not len(known[column]) and first >= 0 and last < CELLS:
            first, last = 0, CELLS - 1  # bytes of unknown meaning
        base[column], scale[column] = first, max(0, (last - first).bit_length() - (PLACES.bit_length() - 1))
        shift[column] = _zeros(seen)
        exact[column] = last - first < CELLS
        lots = [(drawn, quantile[column], QUANTILES)]
        lots += [(packets.astype(np.int64), group[number, column], GROUPS) for number, packets in enumerate(pilot)]
        for packets, parts, most in lots:  # as even as the counts allow, or one part for each place if they are few
            places = np.clip((packets[:, column] - base[column]) >> scale[column], 0, PLACES - 1)
            counts = np.bincount(places, minlength=PLACES)
            if (counts > 0).sum() <= most:
                parts[:] = np.maximum(np.cumsum(counts > 0) - 1, 0)
            else:
                parts[:] = np.minimum((np.cumsum(counts) - counts / 2) * most // counts.sum(), most - 1)
    # Columns that hold values of one kind: those with a known distribution; in a capture, none.
    columns = [c for c, field in enumerate(source.fields) if field.cost > 0 and source.independent is not None]
    pooled = np.array([c for c in columns if len(known[c])] or columns, np.int64)
    far = max((int(abs(known[c]).max(initial=abs(drawn[:, c]).max())) for c in pooled), default=0)
    bits = min(MOST_BITS, (2 * (far >> int(shift[pooled].min(initial=63))) + 1).bit_length())
    return Cells(base, scale, shift, exact.astype(bool), quantile, group, pooled, bits)


def expected_cells(source: Source, cells: Cells) -> list[list[Any]]:
    """Return the expected probabilities of the cells, by input and column; None where they are unknown."""
    columns = range(len(source.fields))
    known = [[source.expected(one.record, column) for column in columns] for one in source.inputs]
    return [
        [law and np.bincount(cells.of(np.asarray(law[0], np.int64), c), law[1], CELLS) for c, law in enumerate(laws)]
        for laws in known
    ]


def expected_values(source: Source, cells: Cells) -> list[Any]:
    """Return the expected probabilities of all values of the pooled columns together, by input; None if unknown."""
    found: list[Any] = []
    for one in source.inputs:
        laws = [source.expected(one.record, int(column)) for column in cells.pooled]
        total = np.zeros(1 << cells.bits)
        for law in filter(None, laws):
            values = np.asarray(law[0], np.int64) >> cells.shift[cells.pooled].min()
            total += np.bincount(values & (len(total) - 1), law[1] / len(laws), len(total))
        found.append(total if laws and None not in laws else None)
    return found


def _support(source: Source, column: int) -> Array:
    """Return ends and lattice of the expected values of a column at any input; empty if unknown."""
    ends = [np.zeros(0, np.int64)]
    for one in source.inputs:
        expected = source.expected(one.record, column)
        if expected is None:
            return ends[0]
        values = np.asarray(expected[0], np.int64)[expected[1] > 0]
        ends.append(np.array([values.min(), values.max(), values.min() | 1 << _zeros(values)]))
    return np.concatenate(ends)


def _zeros(values: Array) -> int:
    """Return how many low bits are 0 in all values."""
    every = int(np.bitwise_or.reduce(values))
    return (every & -every).bit_length() - 1 if every else 0


# ---- counts


class Pairs(NamedTuple):
    """Pairs of columns that are counted together: within a packet, and across packets with their distance."""

    within: Array
    across: Array

    @property
    def tables(self) -> int:
        """Return the number of joint counts."""
        return len(self.within) + 2 * len(self.across)

    def name(self, number: int, names: list[str]) -> str:
        """Name the columns of a joint count."""
        if number < len(self.within):
            a, b = self.within[number]
            return f"{names[a]} and {names[b]}"
        a, b, lag = self.across[(number - len(self.within)) % len(self.across)]
        return f"{names[a]} and {names[b]} of " + ("the next packet" if lag == 1 else f"the packet {lag} later")


def column_pairs(width: int) -> Pairs:
    """Return all pairs of few columns; of many, the nearest."""
    within = ((a, a + d) for d in range(1, width) for a in range(width - d))
    apart = sorted(range(1 - width, width), key=abs)
    across = ((a, a + d, 1) for d in apart for a in range(max(0, -d), min(width, width - d)))
    later = ((a, a, lag) for lag in range(2, LAGS + 1) for a in range(width))
    follows = (width - 1, 0, 1)  # the last draw of a packet and the first of the next
    near = dict.fromkeys([follows, *islice(across, MOST_PAIRS), *islice(later, MOST_PAIRS)])
    inside = np.array(list(islice(within, MOST_PAIRS)), np.int64).reshape(-1, 2)
    return Pairs(inside, np.array(list(near), np.int64))


class Counts(NamedTuple):
    """The counts of the packets of one input."""

    cells: Array  # columns × cells
    joint: Array  # groups and low bits × pairs × JOINT
    ends: Array  # columns × smallest and largest value


def empty_counts(width: int, pairs: Pairs, bits: int = 64) -> Counts:
    """Return zero counts; those of a block need 32 bits, and stay in the cache."""
    kind = f"int{bits}"
    ends = np.tile(np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min]), (width, 1))
    return Counts(np.zeros((width, CELLS), np.int64), np.zeros((2, pairs.tables, JOINT), kind), ends)


def add_counts(to: Counts, more: Counts) -> None:
    """Add counts to others, in place."""
    to.cells[:] += more.cells
    to.joint[:] += more.joint
    to.ends[:, 0] = np.minimum(to.ends[:, 0], more.ends[:, 0])
    to.ends[:, 1] = np.maximum(to.ends[:, 1], more.ends[:, 1])


def count_packets(packets: Array, cells: Cells, number: int, pairs: Pairs) -> Counts:
    """Count a block of packets of one input."""
    counts = empty_counts(packets.shape[1], pairs, 32)
    layout = cells.base, cells.scale, cells.shift, cells.exact, cells.quantile, cells.group[number]
    _compiled(_count_packets)(packets, *layout, pairs.within, pairs.across, *counts)
    return counts


def count_values(packets: Array, cells: Cells, counts: Array) -> None:
    """Count the values of the pooled columns, one by one."""
    _compiled(_count_values)(packets, cells.pooled, cells.shift[cells.pooled].min(), counts)


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = jit(function, kept=True, nogil=True, error_model="numpy")
    return compiled


def _count_values(packets, columns, shift, counts):  # type: ignore[no-untyped-def]
    mask = counts.shape[0] - 1
    for t in range(packets.shape[0]):
        for c in columns:
            counts[(packets[t, c] >> shift) & mask] += 1


def _count_packets(y, base, scale, shift, exact, quantile, group, within, across, cells, joint, ends):  # type: ignore[no-untyped-def]
    width = y.shape[1]
    groups = np.zeros((RING, width), np.int64)
    lows = np.zeros((RING, width), np.int64)
    inside, between = within.shape[0], across.shape[0]
    first = np.zeros(LAGS + 1, np.int64)  # where the counts of a distance begin, for this packet
    for t in range(y.shape[0]):
        now = t & (RING - 1)
        for lag in range(1, LAGS + 1):
            first[lag] = inside + (((t - lag) // lag) & 1) * between
        for c in range(width):
            value = np.int64(y[t, c])
            if value < ends[c, 0]:
                ends[c, 0] = value
            if value > ends[c, 1]:
                ends[c, 1] = value
            place = min(max((value - base[c]) >> scale[c], 0), PLACES - 1)
            low = (value >> shift[c]) & (LOW - 1)
            cells[c, place if exact[c] else quantile[c, place] * LOW + low] += 1
            groups[now, c] = group[c, place]
            lows[now, c] = low
        for p in range(inside):
            a, b = within[p, 0], within[p, 1]
            joint[0, p, groups[now, a] * GROUPS + groups[now, b]] += 1
            joint[1, p, lows[now, a] * GROUPS + lows[now, b]] += 1
        for p in range(between):
            a, b, lag = across[p, 0], across[p, 1], across[p, 2]
            if t >= lag:
                before = (t - lag) & (RING - 1)
                joint[0, first[lag] + p, groups[before, a] * GROUPS + groups[now, b]] += 1
                joint[1, first[lag] + p, lows[before, a] * GROUPS + lows[now, b]] += 1


# ---- learned events


FORMULAS: "dict[str, Callable[[Array, Array], Array]]" = {  # of statistics, by their names
    "{}": lambda a, b: a,
    "bits 0-3 of {}": lambda a, b: a & 15,
    "bits 4-7 of {}": lambda a, b: (a >> 4) & 15,
    "{} + {}": lambda a, b: a + b,
    "{} - {}": lambda a, b: a - b,
    "{} xor {}": lambda a, b: a ^ b,
    "bits 0-3 of {} xor {}": lambda a, b: (a ^ b) & 15,
}


class Statistic(NamedTuple):
    """A number computed from columns a and b of a window of packets, side by side."""

    what: str
    a: int
    b: int = 0

    def of(self, windows: Array) -> Array:
        made: Array = FORMULAS[self.what](windows[:, self.a], windows[:, self.b])
        return made


class LearnedEvent(NamedTuple):
    """A score for windows of packets, and cuts; the events are scores at or above a cut, or below it."""

    window: int  # consecutive packets
    statistics: tuple[Statistic, ...]
    edges: "tuple[Array, ...]"
    odds: "tuple[Array, ...]"
    cuts: Array

    def name(self, names: Sequence[str]) -> str:
        """Name the statistics that the event uses first."""
        fields = [*names, *(f"{name} of the next" for name in names)]
        used = dict.fromkeys(one.what.format(fields[one.a], fields[one.b]) for one in self.statistics)
        what = "two packets that follow each other" if self.window == 2 else "a whole packet"
        return f"learnt from {what}, by {' and by '.join(list(used)[:2])}"

    def tally(self, packets: Array) -> Array:
        """Count the windows of a block between the cuts."""
        score = self.score(windows_of(packets, self.window))
        return np.bincount(np.searchsorted(self.cuts, score, side="right"), minlength=len(self.cuts) + 1)

    def score(self, windows: Array) -> Array:
        total = np.zeros(len(windows))
        for statistic, edges, odds in zip(self.statistics, self.edges, self.odds, strict=True):
            total += odds[np.searchsorted(edges, statistic.of(windows), side="right")]
        return total


def windows_of(packets: Array, window: int) -> Array:
    """Return packets side by side, each used once; an incomplete window is left out."""
    whole = len(packets) // window * window
    return np.ascontiguousarray(packets[:whole]).reshape(-1, window * packets.shape[1]).astype(np.int64)


def learn(first: Array, second: Array, window: int) -> LearnedEvent | None:
    """Learn from packets of two inputs; None if there are too few."""
    width = first.shape[1]
    samples = [windows_of(packets, window)[:MOST_WINDOWS] for packets in (first, second)]
    sizes = [len(sample) for sample in samples]
    if min(sizes) < BINS:
        return None
    both = np.concatenate(samples)
    of_first = np.repeat([True, False], sizes)
    # Statistics of columns, and of neighbours in a packet or in time; of many, a sample.
    columns = range(width * window)
    near = [(a, a + 1) for a in columns[:-1]]
    near += [(a, a + width) for a in range(width * (window - 1)) if width > 1]
    one, two = ([what for what in FORMULAS if what.count("{}") == count] for count in (1, 2))
    statistics = [Statistic(what, a, b) for a, b in reversed(near) for what in two]
    statistics += [Statistic(what, a) for a in columns for what in one]
    statistics = statistics[:: max(1, -(-len(statistics) // MOST_STATISTICS))]
    edges = []
    bins = np.empty((len(statistics), len(both)), np.uint8)
    for number, statistic in enumerate(statistics):
        values = statistic.of(both)
        edges.append(_edges(values))
        bins[number] = np.searchsorted(edges[-1], values, side="right")
    weight = np.repeat([0.5 / sizes[0], 0.5 / sizes[1]], sizes)
    odds: dict[int, Array] = {}  # of the bins of each statistic taken, in order of its first round
    for _ in range(ROUNDS):
        sums = [_compiled(_sum_weights)(bins, weight * side) for side in (of_first, ~of_first)]
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


def _edges(values: Array) -> Array:
    """Return quantiles as edges of bins; a value that fills more than a bin gets its own."""
    ordered = np.sort(values)
    cuts = ordered[np.arange(1, BINS) * len(ordered) // BINS]
    often = cuts[1:][cuts[1:] == cuts[:-1]]
    return np.unique(np.concatenate([cuts, often + 1]))


def _sum_weights(bins, weight):  # type: ignore[no-untyped-def]
    """Sum the weights in each bin of each statistic."""
    made = np.zeros((bins.shape[0], 2 * BINS))
    for row in range(bins.shape[0]):
        for i in range(bins.shape[1]):
            made[row, bins[row, i]] += weight[i]
    return made
