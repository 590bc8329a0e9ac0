"""Draw one symbol for a feature: round it at random to a knot, and draw with the odds of that knot's row.

    row    = (x + (word & mask)) >> shift       shift = 15 - knot_bits, mask = 2^shift - 1: 2^knot_bits + 1 knots
    symbol = how many thresholds of that row are at most the top 16 bits of the same word

The row is one of the two knots beside x, and on average x exactly: x in steps, plus a uniform part of a step, rounded
down. The thresholds of a row are its counts summed up: symbol s is drawn for c[row][s] of the 2^16 values. The parts of
a word that round and that draw share no bit and are independent. Every word is secret, uniform, used once, and from a
true or cryptographic generator. The table may be public, and so are the values that stand for the symbols.

Privacy: one symbol is epsilon0-DP with delta = 0 for any two values of x, where exp(epsilon0) is the largest, over the
symbols, of the ratio of the column's largest count to its smallest. Proof: x between the knots r and r+1, f of 2^shift
places above the first, gives symbol s for (2^shift - f)·c[r][s] + f·c[r+1][s] of 2^(16 + shift) words. That is 2^shift
times a mean of two counts of the column, so it lies between 2^shift times the smallest and the largest of the column,
whatever x is; two such numbers are in no larger ratio. Whole numbers only, nothing is rounded.

No branch and no loop depends on x or on a word. The address of the thresholds that are read shows the row: on a core
with a data cache keep the table in memory that is not cached, or read all of it (`rows_scan`). Other forms of the same
draw: `rows_search` for five to eight symbols, `rows_lookup` for counts of 2^8, `rows_bit` for one bit, `rows_mirrored`
for half of the rows.
"""

from sensorsim.kernels.formats import (
    CACHED,
    CUT,
    CUTS,
    DRAWN_BITS,
    FRAC,
    KNOT_BITS,
    KNOTS,
    RANDOM,
    ROW,
    SECRET_FLAG,
    SYMBOL,
    X,
)
from sensorsim.kernels.release_kernels import releases

from sensorsim.language import Below, Q, addu, and_, geu, kernel, minu, mulu, selectu, shru, u32

DRAWN_DROP = 32 - DRAWN_BITS
DRAWN = Q("drawn", "u32", 0, 0, 2**DRAWN_BITS - 1, "the bits of a word that draw a symbol", secret=True)


@kernel(step="rounding")
def row_of(x: X, word: RANDOM, knot_bits: KNOT_BITS) -> ROW:
    """Return one of the two knots beside a feature, on average the feature: AND, ADD. The word's low bits decide.

    A feature above 1 counts as 1: the row is that of 1 at most. Rows are few, so to take the smaller of two of them
    needs no large constant.

    Scaling and overflow: less than a step of 2^shift is added to x, so 1 gives exactly the row 2^knot_bits, smaller x
    none above it and larger x none below it.
    """
    shift = FRAC - knot_bits
    return minu(1 << knot_bits, shru(addu(x, and_(word, (1 << shift) - 1)), shift))


@kernel(step="symbol")
def drawn_with(word: RANDOM) -> DRAWN:
    """Return the top 16 bits of a word, which draw a symbol.

    Scaling and overflow: 0 to 2^16 - 1.
    """
    return shru(word, DRAWN_DROP)


@kernel(step="symbol")
def reaches(drawn: DRAWN, cut: CUT) -> SECRET_FLAG:
    """Return 1 where the drawn bits reach a threshold, else 0: a compare, without a branch.

    Scaling and overflow: there is nothing to overflow.
    """
    return selectu(geu(drawn, cut), 1, 0)


@kernel(step="symbol", exposes={"address": CACHED})
def reached(
    table: CUT["knots * cuts"], row: Below("knots", secret=True), word: RANDOM, cuts: CUTS, knots: KNOTS
) -> SYMBOL:
    """Count the thresholds of a row that the drawn bits reach: MUL, and for each threshold ADD, a compare, ADD.

    `table` holds the rows one after another. Every threshold of the row is looked at, whatever the word.

    Scaling and overflow: row·cuts + cuts - 1 is at most the last entry of the table; at most `cuts` ones are added.
    """
    first = mulu(row, cuts)
    drawn = drawn_with(word)
    symbol = u32(0)
    for j in range(cuts):
        symbol = addu(symbol, reaches(drawn, table[addu(first, j)]))
    return symbol


@kernel()
def rows(x: X, word: RANDOM, table: CUT["((1 << knot_bits) + 1) * cuts"], cuts: CUTS, knot_bits: KNOT_BITS) -> SYMBOL:
    """Draw the symbol of one feature by thresholds, 2^16 words to a row.

    Scaling and overflow: see `row_of` and `reached`.
    """
    return reached(table, row_of(x, word, knot_bits), word, cuts, (1 << knot_bits) + 1)


@kernel(step="symbol")
def rows_scan(x: X, word: RANDOM, table: CUT["knots * cuts"], cuts: CUTS, knots: KNOTS, knot_bits: KNOT_BITS) -> SYMBOL:
    """Draw the symbol with every row read alike: no address depends on x or the word. For a core with a data cache.

    `knots` is 2^knot_bits + 1. Going up through the rows, the last that is not above the feature's row is that row.

    Scaling and overflow: the places in the table are public; at most `cuts` ones are added.
    """
    row = row_of(x, word, knot_bits)
    drawn = drawn_with(word)
    symbol = u32(0)
    for j in range(cuts):
        cut = u32(table[j])
        for r in range(1, knots):
            cut = selectu(geu(row, r), table[r * cuts + j], cut)
        symbol = addu(symbol, reaches(drawn, cut))
    return symbol


release_rows, sampled_rows, sampled_rows_one = releases(rows, SYMBOL)
