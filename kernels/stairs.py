"""Releasing features with noise from a stairs table: all of a record, or a few of it picked in secret.

    y = clamp(x - 1/2 + S·A + U, -limit, +limit)       all Q15; S = 2^stair_bits a stair
    A = table[the top k bits of a secret word]         2^k entries of one byte, k = 32 - drop
    U = the low stair_bits bits of the same word - S/2

k + stair_bits <= 32, so the two parts of a word share no bit and are independent. Every word is secret, uniform, used
once, and from a true or cryptographic generator; a fixed order, an LFSR or a modulo undoes the proof. The table may be
public. Its unit is the kernels' Q15, so it must have 15 fraction bits (its stairs can be made for any).

No branch and no loop depends on x or on a word, and the clamp is a select. The address of the table read is secret: on
a core with a data cache keep the table in memory that is not cached.
"""

from sensorsim.kernels.choice import ORDER, PICKED, choose, choose_next
from sensorsim.kernels.formats import (
    CACHED,
    CENTRE,
    DROP,
    HALF,
    LIMIT,
    LOWEST,
    RANDOM,
    RELEASED,
    STAIR,
    STAIR_BITS,
    STAIR_MASK,
    UNIT,
    K,
    N,
    X,
)
from sensorsim.kernels.spof import feature

from sensorsim.language import Below, add, and_, i32, kernel, max_, min_, out, shl, shru, sub


@kernel(step="noise", exposes={"address": CACHED})
def pick_stair(table: STAIR["1 << (32 - drop)"], word: RANDOM, drop: DROP) -> STAIR:
    """A, the entry that the top 32 - drop bits of a secret word pick. A shift and a load.

    Scaling and overflow: the index has as many bits as the table's length, so it cannot leave the table.
    """
    return table[shru(word, drop)]


@kernel(step="noise")
def centre_of(stair_bits: STAIR_BITS) -> CENTRE:
    """1/2 + S/2, what is taken off x and off the place on a stair, once for a record. ADD.

    Scaling and overflow: Q15, above 2^14 and at most 2^15.
    """
    return add(HALF, 1 << (stair_bits - 1))


@kernel(step="noise")
def lowest_of(limit: LIMIT) -> LOWEST:
    """The lower end of the clamp, once for a record. SUB.

    Scaling and overflow: the limit is at most 2^23, so its negative fits.
    """
    return sub(0, limit)


@kernel(step="noise")
def stairs(
    unit: UNIT,
    entry: STAIR,
    word: RANDOM,
    mask: STAIR_MASK,
    centre: CENTRE,
    lowest: LOWEST,
    limit: LIMIT,
    stair_bits: STAIR_BITS,
) -> RELEASED:
    """One feature with its noise, clamped: AND, SUB, ADD, ADD.

    `unit` is x, at most 1, `entry` is A, `mask` is S-1 and `centre` is 1/2 + S/2.

    Privacy: epsilon0-DP with delta = 0 for any two values of x, where exp(epsilon0) is the ratio in the table's
    certificate. Proof sketch: x moves the sum before the clamp by at most 1 = 2^15 lattice steps, which is a whole
    number r of stairs. For a given y inside the limits the noise S·A + U takes one value for each x, and these lie
    within r stairs of each other; U is uniform on a stair, so the likelihoods are as the counts of two entries at most
    r apart, and the certificate bounds their ratio. y = ±limit collects the outermost stairs, whose sums it bounds too.

    Scaling and overflow: S·A is at most 2^7·2^15 = 2^22, U below 2^15 and x - 1/2 - S/2 between -2^15 and 2^14, so the
    sum stays below 2^23 and nothing wraps; only the clamp saturates, as the mechanism wants.
    """
    position = i32(and_(word, mask))
    noisy = add(sub(unit, centre), add(position, shl(entry, stair_bits)))
    return max_(min_(noisy, limit), lowest)


@kernel()
def release_stairs(
    x: X["n"],
    table: STAIR["1 << (32 - drop)"],
    word: RANDOM["n"],
    limit: LIMIT,
    y: out(RELEASED["n"]),
    n: N,
    drop: DROP,
    stair_bits: STAIR_BITS,
) -> None:
    """Release every feature of a record, one secret word each.

    Privacy: n·epsilon0-DP with delta = 0 for any two records, epsilon0 that of `stairs`: the n words are independent,
    so the likelihood ratios multiply. All that is computed from y later (coefficients, a trained model) is
    post-processing and costs nothing more, as long as x itself is read nowhere else.

    Scaling and overflow: see `stairs` and `pick_stair`.
    """
    mask = (1 << stair_bits) - 1
    centre = centre_of(stair_bits)
    lowest = lowest_of(limit)
    for i in range(n):
        secret = word[i]
        unit = feature(x[i])
        y[i] = stairs(unit, pick_stair(table, secret, drop), secret, mask, centre, lowest, limit, stair_bits)


@kernel(exposes={"address": PICKED})
def sampled_stairs(
    x: X["n"],
    table: STAIR["1 << (32 - drop)"],
    word: RANDOM["2 * k"],
    limit: LIMIT,
    order: ORDER["n"],
    chosen: out(Below("n")["k"]),
    y: out(RELEASED["k"]),
    n: N,
    k: K,
    drop: DROP,
    stair_bits: STAIR_BITS,
) -> None:
    """Release k different features of a record, picked at random: two secret words each, one to pick, one for noise.

    `order` is that of `choose_next`: the numbers 0 … n-1 once each, set up once and kept from record to record.

    Privacy: the released pair (chosen, y) is k·epsilon0-DP with delta = 0 for any two records, epsilon0 that of
    `stairs`, so a table made for `release k` puts the whole epsilon on k features instead of n. Proof sketch: the
    probability of `chosen` is the same for every x, since neither the words nor the order depend on x; given it, k
    features are released with independent words, whose likelihood ratios multiply. `chosen` need not be hidden.

    Scaling and overflow: see `stairs`, `pick_stair` and `choose`; k <= n, so at least one place is left in every round.
    """
    mask = (1 << stair_bits) - 1
    centre = centre_of(stair_bits)
    lowest = lowest_of(limit)
    for j in range(k):
        left = n - j
        choose_next(order, word[2 * j], n, left)
        picked = order[left - 1]
        chosen[j] = picked
        secret = word[2 * j + 1]
        unit = feature(x[picked])
        y[j] = stairs(unit, pick_stair(table, secret, drop), secret, mask, centre, lowest, limit, stair_bits)


@kernel(exposes={"address": PICKED})
def sampled_stairs_one(
    x: X["n"],
    table: STAIR["1 << (32 - drop)"],
    word: RANDOM["2"],
    limit: LIMIT,
    chosen: out(Below("n")["1"]),
    y: out(RELEASED["1"]),
    n: N,
    drop: DROP,
    stair_bits: STAIR_BITS,
) -> None:
    """Release one feature of a record, picked at random: the first word picks, the second is for noise.

    One pick cannot repeat, so the place is the feature, and there is no order to keep. It is `sampled_stairs`
    with k = 1.

    Privacy: the released pair (chosen, y) is epsilon0-DP with delta = 0 for any two records, epsilon0 that of
    `stairs`: `chosen` is as likely for every x, since its word does not depend on x. `chosen` need not be hidden.

    Scaling and overflow: see `stairs`, `pick_stair` and `choose`.
    """
    picked = choose(word[0], n)
    chosen[0] = picked
    secret = word[1]
    unit = feature(x[picked])
    entry = pick_stair(table, secret, drop)
    mask = (1 << stair_bits) - 1
    y[0] = stairs(unit, entry, secret, mask, centre_of(stair_bits), lowest_of(limit), limit, stair_bits)
