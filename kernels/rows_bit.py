"""Draw one symbol of two for a feature: one bit, and no table. It is that of `rows` with two rows and two symbols.

    symbol = 1 where word >> 1 is below base + slope·x, else 0

Symbol 1 has c0 of 2^16 words at x = 0 and c1 >= c0 at x = 1. With base = c0·2^15 and slope = c1 - c0

    base + slope·x = c0·(2^15 - x) + c1·x                     x in Q15

is how many of 2^31 words give symbol 1 where `rows` first rounds x to one of the two rows; as many values of the word's
top 31 bits lie below it. So the two have exactly the same distribution at every x, and the proof of privacy of `rows`
holds: exp(epsilon0) is the larger of c1/c0 and (2^16 - c0)/(2^16 - c1). No address depends on x or the word. The kernel
takes its value at x = 1, `top` = base + slope·2^15, which follows from the table.
"""

from sensorsim.kernels.formats import CHANCE_BITS, ONE, RANDOM, SLOPE, SYMBOL, TOP, X
from sensorsim.kernels.release_kernels import releases

from sensorsim.language import kernel, min_, mul, shru, sub, u32, wrapping_addu, wrapping_subu


@kernel(step="symbol")
def rows_bit(x: X, word: RANDOM, top: TOP, slope: SLOPE) -> SYMBOL:
    """Draw one bit that is likelier the larger x is: SUB, MUL, ADD, SUB. `top` is its likelihood at x = 1.

    Scaling and overflow: the likelihood is at most 2^31, as that of a table is, and the word's top 31 bits are below
    it where their difference has its top bit set. x - 1 is negative or, for larger x as well, 0.
    """
    beyond = min_(sub(x, ONE), 0)
    chance = wrapping_addu(top, u32(mul(slope, beyond)))
    return shru(wrapping_subu(shru(word, 1), chance), CHANCE_BITS)


release_rows_bit, sampled_rows_bit, sampled_rows_bit_one = releases(rows_bit, SYMBOL)
