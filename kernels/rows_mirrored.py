"""One symbol for a feature from half of the rows, where the others are their mirror images.

    x'     = min(x, 1 - x)
    symbol = that of `rows` at x', and cuts less that where x > 1/2

Such a table has c[2^knot_bits - row][symbol] = c[row][cuts - symbol]: the odds of a symbol at x are those of its mirror
image at 1 - x. The rows of 0 … 1/2 are stored, 2^(knot_bits - 1) + 1 of them; the last one is its own mirror image. So
the distribution at every x is that of `rows` with all rows, and its proof of privacy and its certificate hold.
"""

from sensorsim.kernels.choice import ORDER, PICKED, choose, choose_next
from sensorsim.kernels.formats import CUT, CUTS, FRAC, HALF, MIRRORED_BITS, ONE, RANDOM, ROW, SYMBOL, UNIT, K, N, X
from sensorsim.kernels.rows import reached
from sensorsim.kernels.spof import feature

from sensorsim.language import Below, addu, and_, geu, kernel, max_, min_, out, selectu, shru, sub, u32, wrapping_subu

SYMBOL_MASK = CUTS.hi  # five ones, so every symbol is kept


@kernel(step="rounding")
def folded(unit: UNIT) -> UNIT:
    """min(x, 1 - x): SUB. The maximum only says to the range check that nothing above 1/2 comes out.

    Scaling and overflow: 0 to 2^14, Q15.
    """
    return min_(unit, sub(ONE, max_(unit, HALF)))


@kernel(step="rounding")
def rounded(unit: UNIT, word: RANDOM, knot_bits: MIRRORED_BITS) -> ROW:
    """One of the two knots beside a feature that is saturated already, on average the feature: AND, ADD.

    Scaling and overflow: less than a step of 2^shift is added to at most 2^15, so the row is at most 2^knot_bits.
    """
    shift = FRAC - knot_bits
    return shru(addu(u32(unit), and_(word, (1 << shift) - 1)), shift)


@kernel(step="symbol")
def mirrored(symbol: SYMBOL, unit: UNIT, cuts: CUTS) -> SYMBOL:
    """The mirror image of a symbol, cuts - symbol, where x > 1/2: SUB, AND and a select.

    Scaling and overflow: a symbol is at most `cuts`, so nothing wraps, and 0 … 31 has five bits.
    """
    image = and_(wrapping_subu(cuts, symbol), SYMBOL_MASK)
    return selectu(geu(u32(unit), HALF + 1), image, symbol)


@kernel()
def rows_mirrored(
    x: X, table: CUT["((1 << (knot_bits - 1)) + 1) * cuts"], word: RANDOM, cuts: CUTS, knot_bits: MIRRORED_BITS
) -> SYMBOL:
    """The symbol of one feature by thresholds, half of the rows stored.

    Scaling and overflow: x' is at most 1/2, so the row is at most 2^(knot_bits - 1); see `reached` and `mirrored`.
    """
    unit = feature(x)
    row = rounded(folded(unit), word, knot_bits)
    return mirrored(reached(table, row, word, cuts, (1 << (knot_bits - 1)) + 1), unit, cuts)


@kernel()
def release_rows_mirrored(
    x: X["n"],
    table: CUT["((1 << (knot_bits - 1)) + 1) * cuts"],
    word: RANDOM["n"],
    y: out(SYMBOL["n"]),
    n: N,
    cuts: CUTS,
    knot_bits: MIRRORED_BITS,
) -> None:
    """Release a symbol for every feature of a record, one secret word each.

    Privacy: n·epsilon0-DP with delta = 0 for any two records, epsilon0 that of one symbol: the n words are independent,
    so the likelihood ratios multiply. What is computed from y later is post-processing, if x is read nowhere else.

    Scaling and overflow: see `rows_mirrored`.
    """
    for i in range(n):
        y[i] = rows_mirrored(x[i], table, word[i], cuts, knot_bits)


@kernel(exposes={"address": PICKED})
def sampled_rows_mirrored(
    x: X["n"],
    table: CUT["((1 << (knot_bits - 1)) + 1) * cuts"],
    word: RANDOM["2 * k"],
    order: ORDER["n"],
    chosen: out(Below("n")["k"]),
    y: out(SYMBOL["k"]),
    n: N,
    k: K,
    cuts: CUTS,
    knot_bits: MIRRORED_BITS,
) -> None:
    """Release symbols of k different features, picked at random: two secret words each, to pick and to draw.

    `order` is that of `choose_next`: the numbers 0 … n-1 once each, set up once and kept from record to record.

    Privacy: the released pair (chosen, y) is k·epsilon0-DP with delta = 0 for any two records, epsilon0 that of one
    symbol. Proof: `chosen` is as likely for every x, since neither the words nor the order depend on x; given it, k
    features are released with independent words, whose likelihood ratios multiply. `chosen` need not be hidden.

    Scaling and overflow: see `rows_mirrored` and `choose_next`; k <= n, so at least one feature is left in every round.
    """
    for j in range(k):
        left = n - j
        choose_next(order, word[2 * j], n, left)
        picked = order[left - 1]
        chosen[j] = picked
        y[j] = rows_mirrored(x[picked], table, word[2 * j + 1], cuts, knot_bits)


@kernel(exposes={"address": PICKED})
def sampled_rows_mirrored_one(
    x: X["n"],
    table: CUT["((1 << (knot_bits - 1)) + 1) * cuts"],
    word: RANDOM["2"],
    chosen: out(Below("n")["1"]),
    y: out(SYMBOL["1"]),
    n: N,
    cuts: CUTS,
    knot_bits: MIRRORED_BITS,
) -> None:
    """Release a symbol of one feature, picked at random: the first word picks, the second draws.

    One pick cannot repeat, so the place is the feature, and there is no order to keep. It is `sampled_rows_mirrored`
    with k = 1.

    Privacy: the released pair (chosen, y) is epsilon0-DP with delta = 0 for any two records, epsilon0 that of one
    symbol: `chosen` is as likely for every x, since its word does not depend on x. `chosen` need not be hidden.

    Scaling and overflow: see `rows_mirrored` and `choose`.
    """
    picked = choose(word[0], n)
    chosen[0] = picked
    y[0] = rows_mirrored(x[picked], table, word[1], cuts, knot_bits)
