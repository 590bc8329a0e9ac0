"""One symbol for a feature by one load: a table of symbols in place of thresholds, for counts of 2^8.

    symbol = table[row·256 + the top 8 bits of the word]         the row as in `rows`

Entry row·256 + t is the symbol that the bits t draw in that row, so a row holds each symbol as often as its count says.
The rows and the proof of privacy are those of `rows`, with 2^8 in place of 2^16. The address of the load is secret: on
a core with a data cache keep the table in memory that is not cached.
"""

from sensorsim.kernels.choice import ORDER, PICKED, choose, choose_next
from sensorsim.kernels.formats import CACHED, KNOT_BITS, RANDOM, SYMBOL, K, N, X
from sensorsim.kernels.rows import row_of

from sensorsim.language import Below, addu, kernel, mulu, out, shru

LOOKED_UP = 1 << 8  # entries of a row
LOOKED_UP_DROP = 32 - 8


@kernel(step="symbol", exposes={"address": CACHED})
def rows_lookup(x: X, table: SYMBOL["((1 << knot_bits) + 1) * 256"], word: RANDOM, knot_bits: KNOT_BITS) -> SYMBOL:
    """The symbol of one feature by table: MUL, ADD and a load.

    Scaling and overflow: the row is at most 2^knot_bits and less than 256 is added to its first entry.
    """
    first = mulu(row_of(x, word, knot_bits), LOOKED_UP)
    return table[addu(first, shru(word, LOOKED_UP_DROP))]


@kernel()
def release_rows_lookup(
    x: X["n"],
    table: SYMBOL["((1 << knot_bits) + 1) * 256"],
    word: RANDOM["n"],
    y: out(SYMBOL["n"]),
    n: N,
    knot_bits: KNOT_BITS,
) -> None:
    """Release a symbol for every feature of a record, one secret word each.

    Privacy: n·epsilon0-DP with delta = 0 for any two records, epsilon0 that of one symbol: the n words are independent,
    so the likelihood ratios multiply. What is computed from y later is post-processing, if x is read nowhere else.

    Scaling and overflow: see `rows_lookup`.
    """
    for i in range(n):
        y[i] = rows_lookup(x[i], table, word[i], knot_bits)


@kernel(exposes={"address": PICKED})
def sampled_rows_lookup(
    x: X["n"],
    table: SYMBOL["((1 << knot_bits) + 1) * 256"],
    word: RANDOM["2 * k"],
    order: ORDER["n"],
    chosen: out(Below("n")["k"]),
    y: out(SYMBOL["k"]),
    n: N,
    k: K,
    knot_bits: KNOT_BITS,
) -> None:
    """Release symbols of k different features, picked at random: two secret words each, to pick and to draw.

    `order` is that of `choose_next`: the numbers 0 … n-1 once each, set up once and kept from record to record.

    Privacy: the released pair (chosen, y) is k·epsilon0-DP with delta = 0 for any two records, epsilon0 that of one
    symbol. Proof: `chosen` is as likely for every x, since neither the words nor the order depend on x; given it, k
    features are released with independent words, whose likelihood ratios multiply. `chosen` need not be hidden.

    Scaling and overflow: see `rows_lookup` and `choose_next`; k <= n, so at least one feature is left in every round.
    """
    for j in range(k):
        left = n - j
        choose_next(order, word[2 * j], n, left)
        picked = order[left - 1]
        chosen[j] = picked
        y[j] = rows_lookup(x[picked], table, word[2 * j + 1], knot_bits)


@kernel(exposes={"address": PICKED})
def sampled_rows_lookup_one(
    x: X["n"],
    table: SYMBOL["((1 << knot_bits) + 1) * 256"],
    word: RANDOM["2"],
    chosen: out(Below("n")["1"]),
    y: out(SYMBOL["1"]),
    n: N,
    knot_bits: KNOT_BITS,
) -> None:
    """Release a symbol of one feature, picked at random: the first word picks, the second draws.

    One pick cannot repeat, so the place is the feature, and there is no order to keep. It is `sampled_rows_lookup`
    with k = 1.

    Privacy: the released pair (chosen, y) is epsilon0-DP with delta = 0 for any two records, epsilon0 that of one
    symbol: `chosen` is as likely for every x, since its word does not depend on x. `chosen` need not be hidden.

    Scaling and overflow: see `rows_lookup` and `choose`.
    """
    picked = choose(word[0], n)
    chosen[0] = picked
    y[0] = rows_lookup(x[picked], table, word[1], knot_bits)
