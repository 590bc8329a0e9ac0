"""Cells: every value of a column becomes a small number, so that counts of it, and of two columns at once, stay small.

The cells are laid out on the first draws, which no verdict rests on. A column of few values keeps them all. Another is
cut at its quantiles and keeps its three lowest bits beside: noise that is wrong in its size shows in the one, words
that are wrong in their low bits in the other.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    from sensorsim.privacy.audit.source import Source

    Array = np.ndarray[Any, Any]

PLACES = 1024  # steps between the smallest and the largest value of a column
CELLS = 256  # of one column: all its values, or QUANTILES times LOW
QUANTILES = 32
LOW = 8  # values of the lowest bits
GROUPS = 8  # of a column where two are looked at together
MOST_BITS = 20  # values are counted modulo 2^MOST_BITS: what is folded can only hide a leak


class Cells(NamedTuple):
    """How to place the values: see `tally` for what each is used for. One entry for each column."""

    base: "Array"
    scale: "Array"  # a place is (value - base) >> scale
    shift: "Array"  # the column's values are multiples of 2^shift
    exact: "Array"  # whether a cell is a place
    quantile: "Array"  # of a place, columns × places
    group: "Array"  # of a place, inputs × columns × places: quantiles for each input by itself
    pooled: "Array"  # the columns that are counted value by value, all together
    bits: int  # of those values

    def of(self, values: "Array", column: int) -> "Array":
        """The cells of values of a column, as `tally` finds them."""
        import numpy as np

        places: Array = np.clip((values - self.base[column]) >> self.scale[column], 0, PLACES - 1)
        low = (values >> self.shift[column]) & (LOW - 1)
        cut: Array = self.quantile[column, places].astype(np.int64) * LOW + low
        return places if self.exact[column] else cut

    def folded(self, values: "Array") -> "Array":
        """The place of values in the common count."""
        made: Array = (values >> self.shift[self.pooled].min()) & ((1 << self.bits) - 1)
        return made


def lay_out(source: "Source", pilot: Sequence["Array"]) -> Cells:
    """Cells from some packets for each input."""
    import numpy as np

    width = len(source.fields)
    drawn = np.concatenate(pilot).astype(np.int64)
    known = [_support(source, column) for column in range(width)]
    base, scale, shift, exact = (np.zeros(width, np.int64) for _ in range(4))
    for column in range(width):
        seen = np.concatenate([drawn[:, column], known[column]])
        first, last = int(seen.min()), int(seen.max())
        if not len(known[column]) and first >= 0 and last < CELLS:
            first, last = 0, CELLS - 1  # bytes of which nothing is known
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
    """The probabilities of the cells; each is computed once."""

    def __init__(self, source: "Source", cells: Cells) -> None:
        self.source, self.layout = source, cells
        self.of_cells: dict[tuple[int, int], Any] = {}
        self.of_values: dict[int, Any] = {}

    def cells(self, number: int, column: int) -> Any:
        """Those of a column at the input of that number, or None where nothing is known of it."""
        import numpy as np

        if (number, column) not in self.of_cells:
            expected = self.source.expected(self.source.inputs[number].record, column)
            self.of_cells[number, column] = expected and np.bincount(
                self.layout.of(np.asarray(expected[0], np.int64), column), expected[1], CELLS
            )
        return self.of_cells[number, column]

    def values(self, number: int) -> Any:
        """Those of all values of the pooled columns together, or None."""
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
    """The ends and the lattice of what is expected of a column at any input; empty where that is not known."""
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
    """Columns that are values of one kind: those with a known distribution; in a capture, none."""
    import numpy as np

    columns = [c for c, field in enumerate(source.fields) if field.cost > 0 and source.independent is not None]
    return np.array([c for c in columns if known[c]] or columns, np.int64)


def _zeros(values: "Array") -> int:
    """How many low bits are 0 in all of them."""
    import numpy as np

    every = int(np.bitwise_or.reduce(values))
    return (every & -every).bit_length() - 1 if every else 0


def _places(values: "Array", base: int, scale: int) -> "Array":
    import numpy as np

    return np.bincount(np.clip((values - base) >> scale, 0, PLACES - 1), minlength=PLACES)


def _cut(counts: "Array", parts: int) -> "Array":
    """The part of each place: as even as the counts allow, or one for each place where there are few."""
    import numpy as np

    present = counts > 0
    if present.sum() <= parts:
        ranks: Array = np.maximum(np.cumsum(present) - 1, 0)
        return ranks
    middle = np.cumsum(counts) - counts / 2
    made: Array = np.minimum(middle * parts // counts.sum(), parts - 1)
    return made
