"""Draw one symbol for a feature from half of the rows, where the others are their mirror images.

    x'     = min(x, 1 - x)
    symbol = that of `rows` at x', and cuts less that where x > 1/2

Such a table has c[2^knot_bits - row][symbol] = c[row][cuts - symbol]: the odds of a symbol at x are those of its mirror
image at 1 - x. The rows of 0 … 1/2 are stored, 2^(knot_bits - 1) + 1 of them; the last one is its own mirror image. So
the distribution at every x is that of `rows` with all rows, and its proof of privacy and its certificate hold.
"""

from sensorsim.kernels.formats import CUT, CUTS, FRAC, HALF, MIRRORED_BITS, ONE, RANDOM, ROW, SYMBOL, UNIT, X
from sensorsim.kernels.release_kernels import releases
from sensorsim.kernels.rows import reached
from sensorsim.kernels.spof import feature

from sensorsim.language import addu, and_, geu, kernel, max_, min_, selectu, shru, sub, u32, wrapping_subu

SYMBOL_MASK = CUTS.hi  # five ones, so every symbol is kept


@kernel(step="rounding")
def folded(unit: UNIT) -> UNIT:
    """Return min(x, 1 - x): SUB. The maximum only says to the range check that nothing above 1/2 comes out.

    Scaling and overflow: 0 to 2^14, Q15.
    """
    return min_(unit, sub(ONE, max_(unit, HALF)))


@kernel(step="rounding")
def rounded(unit: UNIT, word: RANDOM, knot_bits: MIRRORED_BITS) -> ROW:
    """Return one of the two knots beside a saturated feature, on average the feature: AND, ADD.

    Scaling and overflow: less than a step of 2^shift is added to at most 2^15, so the row is at most 2^knot_bits.
    """
    shift = FRAC - knot_bits
    return shru(addu(u32(unit), and_(word, (1 << shift) - 1)), shift)


@kernel(step="symbol")
def mirrored(symbol: SYMBOL, unit: UNIT, cuts: CUTS) -> SYMBOL:
    """Return the mirror image of a symbol, cuts - symbol, where x > 1/2: SUB, AND and a select.

    Scaling and overflow: a symbol is at most `cuts`, so nothing wraps, and 0 … 31 has five bits.
    """
    image = and_(wrapping_subu(cuts, symbol), SYMBOL_MASK)
    return selectu(geu(u32(unit), HALF + 1), image, symbol)


@kernel()
def rows_mirrored(
    x: X, word: RANDOM, table: CUT["((1 << (knot_bits - 1)) + 1) * cuts"], cuts: CUTS, knot_bits: MIRRORED_BITS
) -> SYMBOL:
    """Draw the symbol of one feature by thresholds, half of the rows stored.

    Scaling and overflow: x' is at most 1/2, so the row is at most 2^(knot_bits - 1); see `reached` and `mirrored`.
    """
    unit = feature(x)
    row = rounded(folded(unit), word, knot_bits)
    return mirrored(reached(table, row, word, cuts, (1 << (knot_bits - 1)) + 1), unit, cuts)


release_rows_mirrored, sampled_rows_mirrored, sampled_rows_mirrored_one = releases(rows_mirrored, SYMBOL)
