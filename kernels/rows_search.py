"""Draw one symbol of five to eight without a look at all thresholds: search those of the feature's row.

The thresholds of a row ascend. The first step looks at the one in the middle. Where the word reaches it, it reaches all
before, and those behind are left; where not, it reaches none behind, and those before are left. What is left, two or
three, is looked at without another choice. With an even number of thresholds fewer are left before the middle than
behind it: there the last look is at the last threshold of the row either way, which counts only where it is one of
those left.

The addresses show the row and the symbol: on a core with a data cache keep the table in memory that is not cached.
"""

from sensorsim.kernels.formats import CACHED, CUT, KNOT_BITS, RANDOM, SEARCHED, SYMBOL, X
from sensorsim.kernels.release_kernels import releases
from sensorsim.kernels.rows import drawn_with, reaches, row_of

from sensorsim.language import addu, kernel, mulu


@kernel(step="symbol", exposes={"address": CACHED})
def rows_search(
    x: X, word: RANDOM, table: CUT["((1 << knot_bits) + 1) * cuts"], cuts: SEARCHED, knot_bits: KNOT_BITS
) -> SYMBOL:
    """Draw the symbol of one feature by thresholds, three of four or five looked at, four of six or seven.

    `behind` thresholds are behind the middle one. The place of the last look moves with the choice where the number of
    all is odd, and else stands at the row's end.

    Scaling and overflow: the places are at most `cuts` - 1 above the row's first entry, and see `row_of`.
    """
    first = mulu(row_of(x, word, knot_bits), cuts)
    drawn = drawn_with(word)
    behind = cuts >> 1
    odd = cuts - 2 * behind
    beyond = cuts - behind
    upper = reaches(drawn, table[addu(first, beyond - 1)])
    some = mulu(upper, beyond)
    last = addu(cuts - 1 - odd * beyond, mulu(upper, odd * beyond))
    symbol = addu(some, reaches(drawn, table[addu(first, some)]))
    for j in range(1, (cuts >> 1) - 1):  # a look more for six and seven
        symbol = addu(symbol, reaches(drawn, table[addu(first, addu(some, j))]))
    return addu(symbol, reaches(drawn, table[addu(first, last)]))


release_rows_search, sampled_rows_search, sampled_rows_search_one = releases(rows_search, SYMBOL)
