"""What a table's file says of every draw, by the plain rule: nothing here is shared with the kernels or their C."""

from typing import TYPE_CHECKING, Any

from sensorsim.kernels.formats import FRAC
from sensorsim.privacy.kinds.counted import CountedTable
from sensorsim.privacy.kinds.rows import BIT, RowsTable

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

ONE = 1 << FRAC  # x = 1; what is larger counts as 1


def counts_at(table: "NoiseTable", x: int, bits: int) -> dict[int, int]:
    """How many of 2^bits words give each output at x: whole numbers, from the counts in the table's file."""
    outputs, counts = table.distribution(min(x, ONE))
    words = int(counts.sum())
    if (1 << bits) % words:
        raise ValueError(f"{words} words of the table are no part of 2^{bits}")
    each = (1 << bits) // words
    return {int(y): int(count) * each for y, count in zip(outputs, counts, strict=True) if count}


def output_of(table: "NoiseTable", x: int, top: Any, low: Any, low_bits: int) -> Any:
    """The output at x for the top and the low part of each word, two arrays."""
    x, top, low = min(x, ONE), top.astype("int64"), low.astype("int64")
    if isinstance(table, RowsTable):
        return _one_bit(table, x, top, low, low_bits) if table.form == BIT else _symbol(table, x, top, low)
    assert isinstance(table, CountedTable)
    return _clamped(table, x, top, low)


def _symbol(table: RowsTable, x: int, top: Any, low: Any) -> Any:
    """The low part rounds x to a row; the symbol is how many sums of that row's counts the top part reaches.

    A mirrored table is read at 1 - x where x is above 1/2, and its symbols backwards.
    """
    import numpy as np

    turned = table.mirrored and 2 * x > ONE
    rows = table.rows.all_counts()
    sums = np.cumsum(np.array(rows, np.int64), axis=1)[:, :-1]
    step = ONE // (len(rows) - 1)
    row = ((ONE - x if turned else x) + low) // step
    reached = np.zeros(len(top), np.int64)
    for one in np.unique(row):
        reached[row == one] = np.searchsorted(sums[one], top[row == one], side="right")
    return len(rows[0]) - 1 - reached if turned else reached


def _one_bit(table: RowsTable, x: int, top: Any, low: Any, low_bits: int) -> Any:
    """Symbol 1 for the lowest words, as many as its count at x."""
    whole = (top << low_bits) + low
    ones = counts_at(table, x, 16 + low_bits).get(1, 0)
    return (whole < ones).astype("int64")


def _clamped(table: CountedTable, x: int, top: Any, low: Any) -> Any:
    """x about the middle of its range, with the stair of the top part and the place of the low part on it."""
    import numpy as np

    assert table.limit is not None
    stair = 1 << table.stair_bits
    noisy = x - ONE // 2 - stair // 2 + stair * table.values.astype(np.int64)[top] + low
    return np.clip(noisy, -table.limit, table.limit)
