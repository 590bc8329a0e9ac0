"""Count packets into cells, alone and in pairs of columns; compiled, one pass, no packet is stored.

Cells map every value of a column to a small number, so that counts of it, and of two columns at once, stay small. They
are made from the first draws, which no verdict uses. A column of few values has a cell for each. Another is cut at its
quantiles and keeps its three lowest bits: a wrong size of the noise shows in the one, bad low bits of the words in the
other.

Two columns are counted together within a packet, and in consecutive packets; a column also with itself up to LAGS
packets later. Packets 0 and 1, 2 and 3 … are one count, 1 and 2, 3 and 4 … another, and so at every distance: within a
count no packet is used twice, so its pairs are independent if packets are.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from sensorsim.auditing.packet_source import Source

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
assert LOW == GROUPS


class Cells(NamedTuple):
    """The cells of the values of each column; `_count_packets` reads them."""

    base: "Array"
    scale: "Array"  # a place is (value - base) >> scale
    shift: "Array"  # the column's values are multiples of 2^shift
    exact: "Array"  # whether a cell is a place
    quantile: "Array"  # of a place, columns × places
    group: "Array"  # of a place, inputs × columns × places: quantiles for each input by itself
    pooled: "Array"  # the columns that are counted value by value, all together
    bits: int  # of those values

    def of(self, values: "Array", column: int) -> "Array":
        """Return the cells of values of a column, as `count_packets` does."""
        import numpy as np

        places: Array = np.clip((values - self.base[column]) >> self.scale[column], 0, PLACES - 1)
        low = (values >> self.shift[column]) & (LOW - 1)
        cut: Array = self.quantile[column, places].astype(np.int64) * LOW + low
        return places if self.exact[column] else cut

    def folded(self, values: "Array") -> "Array":
        """Return the index of values in the pooled count."""
        made: Array = (values >> self.shift[self.pooled].min()) & ((1 << self.bits) - 1)
        return made


def make_cells(source: "Source", pilot: Sequence["Array"]) -> Cells:
    """Make the cells from some packets of each input."""
    import numpy as np

    width = len(source.fields)
    drawn = np.concatenate(pilot).astype(np.int64)
    known = [_support(source, column) for column in range(width)]
    base, scale, shift, exact = (np.zeros(width, np.int64) for _ in range(4))
    for column in range(width):
        seen = np.concatenate([drawn[:, column], known[column]])
        first, last = int(seen.min()), int(seen.max())
        if not len(known[column]) and first >= 0 and last < CELLS:
            first, last = 0, CELLS - 1  # bytes of unknown meaning
        base[column], scale[column] = first, max(0, (last - first).bit_length() - (PLACES.bit_length() - 1))
        shift[column] = _zeros(seen)
        exact[column] = last - first < CELLS
    quantile = np.zeros((width, PLACES), np.uint8)
    group = np.zeros((len(pilot), width, PLACES), np.uint8)
    for column in range(width):
        quantile[column] = _cut(_places(drawn[:, column], base[column], scale[column]), QUANTILES)
        for number, packets in enumerate(pilot):
            group[number, column] = _cut(
                _places(packets[:, column].astype(np.int64), base[column], scale[column]), GROUPS
            )
    pooled = _pooled(source, [len(values) > 0 for values in known])
    far = max((int(abs(known[c]).max(initial=abs(drawn[:, c]).max())) for c in pooled), default=0)
    bits = min(MOST_BITS, (2 * (far >> int(shift[pooled].min(initial=63))) + 1).bit_length())
    return Cells(base, scale, shift, exact.astype(bool), quantile, group, pooled, bits)


class Expected:
    """The expected probabilities of the cells, cached."""

    def __init__(self, source: "Source", cells: Cells) -> None:
        self.source, self.layout = source, cells
        self.of_cells: dict[tuple[int, int], Any] = {}
        self.of_values: dict[int, Any] = {}

    def cells(self, number: int, column: int) -> Any:
        """Return those of a column at an input, or None if unknown."""
        import numpy as np

        if (number, column) not in self.of_cells:
            expected = self.source.expected(self.source.inputs[number].record, column)
            self.of_cells[number, column] = expected and np.bincount(
                self.layout.of(np.asarray(expected[0], np.int64), column), expected[1], CELLS
            )
        return self.of_cells[number, column]

    def values(self, number: int) -> Any:
        """Return those of all values of the pooled columns together at an input, or None if unknown."""
        import numpy as np

        if number not in self.of_values:
            pooled, record = self.layout.pooled, self.source.inputs[number].record
            total = np.zeros(1 << self.layout.bits)
            for column in pooled:
                expected = self.source.expected(record, int(column))
                if expected is None:
                    return None
                places = self.layout.folded(np.asarray(expected[0], np.int64))
                total += np.bincount(places, expected[1] / len(pooled), len(total))
            self.of_values[number] = total
        return self.of_values[number]


def _support(source: "Source", column: int) -> "Array":
    """Return ends and lattice of the expected values of a column at any input; empty if unknown."""
    import numpy as np

    ends = [np.zeros(0, np.int64)]
    for one in source.inputs:
        expected = source.expected(one.record, column)
        if expected is None:
            return ends[0]
        values = np.asarray(expected[0], np.int64)[expected[1] > 0]
        ends.append(np.array([values.min(), values.max(), values.min() | 1 << _zeros(values)]))
    return np.concatenate(ends)


def _pooled(source: "Source", known: Sequence[bool]) -> "Array":
    """Return the columns that hold values of one kind: those with a known distribution; in a capture, none."""
    import numpy as np

    columns = [c for c, field in enumerate(source.fields) if field.cost > 0 and source.independent is not None]
    return np.array([c for c in columns if known[c]] or columns, np.int64)


def _zeros(values: "Array") -> int:
    """Return how many low bits are 0 in all values."""
    import numpy as np

    every = int(np.bitwise_or.reduce(values))
    return (every & -every).bit_length() - 1 if every else 0


def _places(values: "Array", base: int, scale: int) -> "Array":
    import numpy as np

    return np.bincount(np.clip((values - base) >> scale, 0, PLACES - 1), minlength=PLACES)


def _cut(counts: "Array", parts: int) -> "Array":
    """Return the part of each place: as even as the counts allow, or one for each place if they are few."""
    import numpy as np

    present = counts > 0
    if present.sum() <= parts:
        ranks: Array = np.maximum(np.cumsum(present) - 1, 0)
        return ranks
    middle = np.cumsum(counts) - counts / 2
    made: Array = np.minimum(middle * parts // counts.sum(), parts - 1)
    return made


# ---- counts


class Pairs(NamedTuple):
    """Pairs of columns that are counted together: within a packet, and across packets with their distance."""

    within: "Array"
    across: "Array"

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
    import numpy as np

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

    cells: "Array"  # columns × cells
    joint: "Array"  # groups and low bits × pairs × JOINT
    ends: "Array"  # columns × smallest and largest value


def empty_counts(width: int, pairs: Pairs, bits: int = 64) -> Counts:
    """Return zero counts; those of a block need 32 bits, and stay in the cache."""
    import numpy as np

    kind = f"int{bits}"
    ends = np.tile(np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min]), (width, 1))
    return Counts(np.zeros((width, CELLS), np.int64), np.zeros((2, pairs.tables, JOINT), kind), ends)


def add_counts(to: Counts, more: Counts) -> None:
    """Add counts to others, in place."""
    import numpy as np

    to.cells[:] += more.cells
    to.joint[:] += more.joint
    to.ends[:, 0] = np.minimum(to.ends[:, 0], more.ends[:, 0])
    to.ends[:, 1] = np.maximum(to.ends[:, 1], more.ends[:, 1])


def count_packets(packets: "Array", cells: Cells, number: int, pairs: Pairs) -> Counts:
    """Count a block of packets of one input."""
    counts = empty_counts(packets.shape[1], pairs, 32)
    layout = cells.base, cells.scale, cells.shift, cells.exact, cells.quantile, cells.group[number]
    _count_packets()(packets, *layout, pairs.within, pairs.across, *counts)
    return counts


def count_values(packets: "Array", cells: Cells, counts: "Array") -> None:
    """Count the values of the pooled columns, one by one."""
    _count_values()(packets, cells.pooled, cells.shift[cells.pooled].min(), counts)


@cache
def _count_values() -> Callable[..., None]:
    def values(packets, columns, shift, counts):  # type: ignore[no-untyped-def]
        mask = counts.shape[0] - 1
        for t in range(packets.shape[0]):
            for c in columns:
                counts[(packets[t, c] >> shift) & mask] += 1

    return _compiled(values)


@cache
def _count_packets() -> Callable[..., None]:
    def packets_(y, base, scale, shift, exact, quantile, group, within, across, cells, joint, ends):  # type: ignore[no-untyped-def]
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

    import numpy as np

    return _compiled(packets_)


def _compiled(function: Callable[..., None]) -> Callable[..., None]:
    from sensorsim.language.numba_backend.jit import jit

    return jit(function, kept=True, nogil=True, error_model="numpy")
