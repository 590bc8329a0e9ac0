"""One symbol of five to eight for a feature, without a look at all thresholds: a search among those of its row.

The thresholds of a row ascend. The first step looks at the one in the middle. Where the word reaches it, it reaches all
before, and those behind are left; where not, it reaches none behind, and those before are left. What is left, two or
three, is looked at without another choice. With an even number of thresholds fewer are left before the middle than
behind it: there the last look is at the last threshold of the row either way, which counts only where it is one of
those left.

The addresses show the row and the symbol: on a core with a data cache keep the table in memory that is not cached.
"""

from sensorsim.kernels.choice import ORDER, PICKED, choose, choose_next
from sensorsim.kernels.formats import CACHED, CUT, KNOT_BITS, RANDOM, SEARCHED, SYMBOL, K, N, X
from sensorsim.kernels.rows import drawn_with, reaches, row_of

from sensorsim.language import Below, addu, kernel, mulu, out


@kernel(step="symbol", exposes={"address": CACHED})
def rows_search(
    x: X, table: CUT["((1 << knot_bits) + 1) * cuts"], word: RANDOM, cuts: SEARCHED, knot_bits: KNOT_BITS
) -> SYMBOL:
    """The symbol of one feature by thresholds, three of four or five looked at, four of six or seven.

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


@kernel()
def release_rows_search(
    x: X["n"],
    table: CUT["((1 << knot_bits) + 1) * cuts"],
    word: RANDOM["n"],
    y: out(SYMBOL["n"]),
    n: N,
    cuts: SEARCHED,
    knot_bits: KNOT_BITS,
) -> None:
    """Release a symbol for every feature of a record, one secret word each.

    Privacy: n·epsilon0-DP with delta = 0 for any two records, epsilon0 that of one symbol: the n words are independent,
    so the likelihood ratios multiply. What is computed from y later is post-processing, if x is read nowhere else.

    Scaling and overflow: see `rows_search`.
    """
    for i in range(n):
        y[i] = rows_search(x[i], table, word[i], cuts, knot_bits)


@kernel(exposes={"address": PICKED})
def sampled_rows_search(
    x: X["n"],
    table: CUT["((1 << knot_bits) + 1) * cuts"],
    word: RANDOM["2 * k"],
    order: ORDER["n"],
    chosen: out(Below("n")["k"]),
    y: out(SYMBOL["k"]),
    n: N,
    k: K,
    cuts: SEARCHED,
    knot_bits: KNOT_BITS,
) -> None:
    """Release symbols of k different features, picked at random: two secret words each, to pick and to draw.

    `order` is that of `choose_next`: the numbers 0 … n-1 once each, set up once and kept from record to record.

    Privacy: the released pair (chosen, y) is k·epsilon0-DP with delta = 0 for any two records, epsilon0 that of one
    symbol. Proof: `chosen` is as likely for every x, since neither the words nor the order depend on x; given it, k
    features are released with independent words, whose likelihood ratios multiply. `chosen` need not be hidden.

    Scaling and overflow: see `rows_search` and `choose_next`; k <= n, so at least one feature is left in every round.
    """
    for j in range(k):
        left = n - j
        choose_next(order, word[2 * j], n, left)
        picked = order[left - 1]
        chosen[j] = picked
        y[j] = rows_search(x[picked], table, word[2 * j + 1], cuts, knot_bits)


@kernel(exposes={"address": PICKED})
def sampled_rows_search_one(
    x: X["n"],
    table: CUT["((1 << knot_bits) + 1) * cuts"],
    word: RANDOM["2"],
    chosen: out(Below("n")["1"]),
    y: out(SYMBOL["1"]),
    n: N,
    cuts: SEARCHED,
    knot_bits: KNOT_BITS,
) -> None:
    """Release a symbol of one feature, picked at random: the first word picks, the second draws.

    One pick cannot repeat, so the place is the feature, and there is no order to keep. It is `sampled_rows_search`
    with k = 1.

    Privacy: the released pair (chosen, y) is epsilon0-DP with delta = 0 for any two records, epsilon0 that of one
    symbol: `chosen` is as likely for every x, since its word does not depend on x. `chosen` need not be hidden.

    Scaling and overflow: see `rows_search` and `choose`.
    """
    picked = choose(word[0], n)
    chosen[0] = picked
    y[0] = rows_search(x[picked], table, word[1], cuts, knot_bits)
