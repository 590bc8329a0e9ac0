"""The symbol of `rows` with two rows and two symbols: one bit, and no table.

    symbol = 1 where word >> 1 is below base + slope·x, else 0

Symbol 1 has c0 of 2^16 words at x = 0 and c1 >= c0 at x = 1. With base = c0·2^15 and slope = c1 - c0

    base + slope·x = c0·(2^15 - x) + c1·x                     x in Q15

is how many of 2^31 words give symbol 1 where `rows` first rounds x to one of the two rows; as many values of the word's
top 31 bits lie below it. So the two have exactly the same distribution at every x, and the proof of privacy of `rows`
holds: exp(epsilon0) is the larger of c1/c0 and (2^16 - c0)/(2^16 - c1). No address depends on x or the word.
"""

from sensorsim.kernels.choice import PICKED, choose, choose_next
from sensorsim.kernels.formats import BASE, RANDOM, SLOPE, SYMBOL, K, N, X
from sensorsim.kernels.spof import feature

from sensorsim.language import Below, addu, geu, kernel, mulu, out, selectu, shru, u32


@kernel(step="symbol")
def rows_bit(x: X, word: RANDOM, base: BASE, slope: SLOPE) -> SYMBOL:
    """One bit that is likelier the larger x is: MUL, ADD and a compare.

    Scaling and overflow: base <= 2^31 and slope·x < 2^31, so the sum fits; above 2^31 it means that the bit is 1.
    """
    chance = addu(base, mulu(slope, u32(feature(x))))
    return selectu(geu(shru(word, 1), chance), 0, 1)


@kernel()
def release_rows_bit(
    x: X["n"],
    word: RANDOM["n"],
    base: BASE,
    slope: SLOPE,
    y: out(SYMBOL["n"]),
    n: N,
) -> None:
    """Release a symbol for every feature of a record, one secret word each.

    Privacy: n·epsilon0-DP with delta = 0 for any two records, epsilon0 that of one symbol: the n words are independent,
    so the likelihood ratios multiply. What is computed from y later is post-processing, if x is read nowhere else.

    Scaling and overflow: see `rows_bit`.
    """
    for i in range(n):
        y[i] = rows_bit(x[i], word[i], base, slope)


@kernel(exposes={"address": PICKED})
def sampled_rows_bit(
    x: X["n"],
    word: RANDOM["2 * k"],
    base: BASE,
    slope: SLOPE,
    order: Below("n")["n"],
    chosen: out(Below("n")["k"]),
    y: out(SYMBOL["k"]),
    n: N,
    k: K,
) -> None:
    """Release symbols of k different features, picked at random: two secret words each, to pick and to draw.

    `order` is that of `choose_next`: the numbers 0 … n-1 once each, set up once and kept from record to record.

    Privacy: the released pair (chosen, y) is k·epsilon0-DP with delta = 0 for any two records, epsilon0 that of one
    symbol. Proof: `chosen` is as likely for every x, since neither the words nor the order depend on x; given it, k
    features are released with independent words as in `release_rows_bit`. `chosen` need not be hidden.

    Scaling and overflow: see `rows_bit` and `choose_next`; k <= n, so at least one feature is left in every round.
    """
    for j in range(k):
        left = n - j
        choose_next(order, word[2 * j], n, left)
        picked = order[left - 1]
        chosen[j] = picked
        y[j] = rows_bit(x[picked], word[2 * j + 1], base, slope)


@kernel(exposes={"address": PICKED})
def sampled_rows_bit_one(
    x: X["n"],
    word: RANDOM["2"],
    base: BASE,
    slope: SLOPE,
    chosen: out(Below("n")["1"]),
    y: out(SYMBOL["1"]),
    n: N,
) -> None:
    """Release a symbol of one feature, picked at random: the first word picks, the second draws.

    `sampled_rows_bit` with k = 1, and no order to keep: one pick cannot repeat, so the place is the feature.

    Privacy: as there; the released pair (chosen, y) is epsilon0-DP with delta = 0 for any two records.

    Scaling and overflow: see `rows_bit` and `choose`.
    """
    picked = choose(word[0], n)
    chosen[0] = picked
    y[0] = rows_bit(x[picked], word[1], base, slope)
