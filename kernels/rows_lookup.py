"""Draw one symbol for a feature by one load: a table of symbols in place of thresholds, for counts of 2^8.

    symbol = table[row·256 + the top 8 bits of the word]         the row as in `rows`

Entry row·256 + t is the symbol that the bits t draw in that row, so a row holds each symbol as often as its count says.
The rows and the proof of privacy are those of `rows`, with 2^8 in place of 2^16. The address of the load is secret: on
a core with a data cache keep the table in memory that is not cached.
"""

from sensorsim.kernels.formats import CACHED, KNOT_BITS, RANDOM, SYMBOL, X
from sensorsim.kernels.release_kernels import releases
from sensorsim.kernels.rows import row_of

from sensorsim.language import addu, kernel, mulu, shru

LOOKED_UP = 1 << 8  # entries of a row
LOOKED_UP_DROP = 32 - 8


@kernel(step="symbol", exposes={"address": CACHED})
def rows_lookup(x: X, word: RANDOM, table: SYMBOL["((1 << knot_bits) + 1) * 256"], knot_bits: KNOT_BITS) -> SYMBOL:
    """Draw the symbol of one feature by table: MUL, ADD and a load.

    Scaling and overflow: the row is at most 2^knot_bits and less than 256 is added to its first entry.
    """
    first = mulu(row_of(x, word, knot_bits), LOOKED_UP)
    return table[addu(first, shru(word, LOOKED_UP_DROP))]


release_rows_lookup, sampled_rows_lookup, sampled_rows_lookup_one = releases(rows_lookup, SYMBOL)
