"""One symbol of two for a feature: one bit, and no table. It is that of `rows` with two rows and two symbols.

    symbol = 1 where word >> 1 is below base + slope·x, else 0

Symbol 1 has c0 of 2^16 words at x = 0 and c1 >= c0 at x = 1. With base = c0·2^15 and slope = c1 - c0

    base + slope·x = c0·(2^15 - x) + c1·x                     x in Q15

is how many of 2^31 words give symbol 1 where `rows` first rounds x to one of the two rows; as many values of the word's
top 31 bits lie below it. So the two have exactly the same distribution at every x, and the proof of privacy of `rows`
holds: exp(epsilon0) is the larger of c1/c0 and (2^16 - c0)/(2^16 - c1). No address depends on x or the word.
"""

from sensorsim.kernels.choice import ORDER, PICKED, choose, choose_next
from sensorsim.kernels.formats import BASE, CHANCE_BITS, FRAC, ONE, RANDOM, SLOPE, SYMBOL, K, N, X

from sensorsim.language import Below, addu, kernel, min_, mul, out, shlu, shru, sub, u32, wrapping_addu, wrapping_subu


@kernel(step="symbol")
def at_one(base: BASE, slope: SLOPE) -> RANDOM:
    """base + slope at x = 1, once for a record: SHIFT, ADD.

    Scaling and overflow: at most 2^31 + 2^31, less 2^15.
    """
    return addu(base, shlu(slope, FRAC))


@kernel(step="symbol")
def bit_of(x: X, word: RANDOM, top: RANDOM, slope: SLOPE) -> SYMBOL:
    """One bit that is likelier the larger x is: SUB, MUL, ADD, SUB. `top` is its likelihood at x = 1.

    Scaling and overflow: the likelihood is at most 2^31, as that of a table is, and the word's top 31 bits are below
    it where their difference has its top bit set. x - 1 is negative or, for larger x as well, 0.
    """
    beyond = min_(sub(x, ONE), 0)
    chance = wrapping_addu(top, u32(mul(slope, beyond)))
    return shru(wrapping_subu(shru(word, 1), chance), CHANCE_BITS)


@kernel(step="symbol")
def rows_bit(x: X, word: RANDOM, base: BASE, slope: SLOPE) -> SYMBOL:
    """One bit that is likelier the larger x is.

    Scaling and overflow: base + slope·x is a likelihood, so it must not pass 2^31 at x = 1; see `bit_of`.
    """
    return bit_of(x, word, at_one(base, slope), slope)


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

    Scaling and overflow: see `bit_of`.
    """
    top = at_one(base, slope)
    for i in range(n):
        y[i] = bit_of(x[i], word[i], top, slope)


@kernel(exposes={"address": PICKED})
def sampled_rows_bit(
    x: X["n"],
    word: RANDOM["2 * k"],
    base: BASE,
    slope: SLOPE,
    order: ORDER["n"],
    chosen: out(Below("n")["k"]),
    y: out(SYMBOL["k"]),
    n: N,
    k: K,
) -> None:
    """Release symbols of k different features, picked at random: two secret words each, to pick and to draw.

    `order` is that of `choose_next`: the numbers 0 … n-1 once each, set up once and kept from record to record.

    Privacy: the released pair (chosen, y) is k·epsilon0-DP with delta = 0 for any two records, epsilon0 that of one
    symbol. Proof: `chosen` is as likely for every x, since neither the words nor the order depend on x; given it, k
    features are released with independent words, whose likelihood ratios multiply. `chosen` need not be hidden.

    Scaling and overflow: see `bit_of` and `choose_next`; k <= n, so at least one feature is left in every round.
    """
    top = at_one(base, slope)
    for j in range(k):
        left = n - j
        choose_next(order, word[2 * j], n, left)
        picked = order[left - 1]
        chosen[j] = picked
        y[j] = bit_of(x[picked], word[2 * j + 1], top, slope)


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

    One pick cannot repeat, so the place is the feature, and there is no order to keep. It is `sampled_rows_bit`
    with k = 1.

    Privacy: the released pair (chosen, y) is epsilon0-DP with delta = 0 for any two records, epsilon0 that of one
    symbol: `chosen` is as likely for every x, since its word does not depend on x. `chosen` need not be hidden.

    Scaling and overflow: see `bit_of` and `choose`.
    """
    picked = choose(word[0], n)
    chosen[0] = picked
    y[0] = rows_bit(x[picked], word[1], base, slope)
