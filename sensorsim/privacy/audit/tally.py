"""Counting packets into cells: compiled, one pass over every block of packets, nothing kept of them.

Two columns are counted together where they stand in one packet, and where they stand in two that follow each other;
a column also with itself up to LAGS packets later. Packets 0 and 1, 2 and 3 … are one count, 1 and 2, 3 and 4 …
another, and so at every distance: within a count no packet is used twice, so its pairs are independent where packets
are.
"""

from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sensorsim.privacy.audit.cells import CELLS, GROUPS, LOW, PLACES, Cells

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

MOST_PAIRS = 512  # of columns, each within a packet and across two; near ones first
LAGS = 8
RING = 16  # packets that are remembered: a power of two above LAGS
JOINT = GROUPS * GROUPS
assert LOW == GROUPS


class Pairs(NamedTuple):
    """Columns that are looked at together: two in one packet; two in different ones, and how far these are apart."""

    within: "Array"
    across: "Array"

    @property
    def tables(self) -> int:
        """How many counts of two columns there are."""
        return len(self.within) + 2 * len(self.across)

    def where(self, number: int, names: list[str]) -> str:
        """What a joint count is of."""
        if number < len(self.within):
            a, b = self.within[number]
            return f"{names[a]} and {names[b]}"
        a, b, lag = self.across[(number - len(self.within)) % len(self.across)]
        return f"{names[a]} and {names[b]} of " + ("the next packet" if lag == 1 else f"the packet {lag} later")


def pairs_of(width: int) -> Pairs:
    """All pairs of few columns; of many, those that stand near each other."""
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
    """What is counted of the packets of one input."""

    cells: "Array"  # columns × cells
    joint: "Array"  # groups and low bits × pairs × JOINT
    ends: "Array"  # columns × smallest and largest value


def no_counts(width: int, pairs: Pairs, bits: int = 64) -> Counts:
    """Counts of nothing; those of a block need 32 bits, and stay in the cache."""
    import numpy as np

    kind = f"int{bits}"

    ends = np.tile(np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min]), (width, 1))
    return Counts(np.zeros((width, CELLS), np.int64), np.zeros((2, pairs.tables, JOINT), kind), ends)


def add(to: Counts, more: Counts) -> None:
    """Add counts to others."""
    import numpy as np

    to.cells[:] += more.cells
    to.joint[:] += more.joint
    to.ends[:, 0] = np.minimum(to.ends[:, 0], more.ends[:, 0])
    to.ends[:, 1] = np.maximum(to.ends[:, 1], more.ends[:, 1])


def tally(packets: "Array", cells: Cells, number: int, pairs: Pairs) -> Counts:
    """The counts of a block of packets of the input of that number."""
    counts = no_counts(packets.shape[1], pairs, 32)
    layout = cells.base, cells.scale, cells.shift, cells.exact, cells.quantile, cells.group[number]
    _packets()(packets, *layout, pairs.within, pairs.across, *counts)
    return counts


def tally_values(packets: "Array", cells: Cells, counts: "Array") -> None:
    """Count the values of the pooled columns, one by one."""
    _values()(packets, cells.pooled, cells.shift[cells.pooled].min(), counts)


@cache
def _values() -> Callable[..., None]:
    def values(packets, columns, shift, counts):  # type: ignore[no-untyped-def]
        mask = counts.shape[0] - 1
        for t in range(packets.shape[0]):
            for c in columns:
                counts[(packets[t, c] >> shift) & mask] += 1

    return _compiled(values)


@cache
def _packets() -> Callable[..., None]:
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
