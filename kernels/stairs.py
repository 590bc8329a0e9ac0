"""Draw a feature with noise from a stairs table, clamped.

    y = clamp(x - 1/2 + S·A + U, -limit, +limit)       all Q15; S = 2^stair_bits a stair
    A = table[the top k bits of a secret word]         2^k entries of one byte, k = 32 - drop
    U = the low stair_bits bits of the same word - S/2

k + stair_bits <= 32, so the two parts of a word share no bit and are independent. Every word is secret, uniform, used
once, and from a true or cryptographic generator; a fixed order, an LFSR or a modulo undoes the proof. The table may be
public. Its unit is the kernels' Q15, so it must have 15 fraction bits (its stairs can be made for any).

No branch and no loop depends on x or on a word, and the clamp is a select. The address of the table read is secret: on
a core with a data cache keep the table in memory that is not cached.
"""

from sensorsim.kernels.formats import (
    CACHED,
    DROP,
    LIMIT,
    LOWEST,
    OFFSET,
    RANDOM,
    RELEASED,
    STAIR,
    STAIR_BITS,
    STAIR_MASK,
    X,
)
from sensorsim.kernels.release_kernels import releases
from sensorsim.kernels.spof import feature

from sensorsim.language import add, and_, i32, kernel, max_, min_, shl, shru, sub


@kernel(step="noise", exposes={"address": CACHED})
def pick_stair(table: STAIR["1 << (32 - drop)"], word: RANDOM, drop: DROP) -> STAIR:
    """Return A, the entry that the top 32 - drop bits of a secret word pick. A shift and a load.

    Scaling and overflow: the index has as many bits as the table's length, so it cannot leave the table.
    """
    return table[shru(word, drop)]


@kernel(step="noise")
def stairs(
    x: X,
    word: RANDOM,
    table: STAIR["1 << (32 - drop)"],
    mask: STAIR_MASK,
    offset: OFFSET,
    lowest: LOWEST,
    limit: LIMIT,
    drop: DROP,
    stair_bits: STAIR_BITS,
) -> RELEASED:
    """Draw one feature with its noise, clamped: AND, SUB, ADD, ADD.

    What follows from the table is given: `mask` is S-1, `offset` is 1/2 + S/2 and `lowest` is -limit.

    Privacy: epsilon0-DP with delta = 0 for any two values of x, where exp(epsilon0) is the ratio in the table's
    certificate. Proof sketch: x moves the sum before the clamp by at most 1 = 2^15 lattice steps, which is a whole
    number r of stairs. For a given y inside the limits the noise S·A + U takes one value for each x, and these lie
    within r stairs of each other; U is uniform on a stair, so the likelihoods are as the counts of two entries at most
    r apart, and the certificate bounds their ratio. y = ±limit collects the outermost stairs, whose sums it bounds too.

    Scaling and overflow: S·A is at most 2^7·2^15 = 2^22, U below 2^15 and x - 1/2 - S/2 between -2^15 and 2^14, so the
    sum stays below 2^23 and nothing wraps; only the clamp saturates, as the mechanism wants.
    """
    unit = feature(x)
    entry = pick_stair(table, word, drop)
    position = i32(and_(word, mask))
    noisy = add(sub(unit, offset), add(position, shl(entry, stair_bits)))
    return max_(min_(noisy, limit), lowest)


release_stairs, sampled_stairs, sampled_stairs_one = releases(stairs, RELEASED)
