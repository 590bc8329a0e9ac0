"""What a table's file says of every draw, by the plain rule: nothing here is shared with the kernels or their C."""

from typing import TYPE_CHECKING, Any

from sensorsim.kernels.formats import FRAC

if TYPE_CHECKING:
    from sensorsim.noise.noise_table import NoiseTable

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
    return table.draw(min(x, ONE), top.astype("int64"), low.astype("int64"), low_bits)
