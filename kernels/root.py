"""The square root by Newton-Raphson, exact for every 32-bit word."""

from sensorsim.kernels.formats import DIVISION, FRAC, HALF, NORM, WORD32

from sensorsim.language import addu, divu, geu, kernel, maxu, minu, mulu, selectu, shlu, shru, u32

ITERATIONS = 7  # the paper's count; five would do from this start


@kernel(step="root", split="v")
def start(v: WORD32) -> WORD32:
    """The power of two above sqrt(v), for v >= 1, at most twice as large: compares, selects and shifts only.

    Scaling and overflow: halves the bit length four times, so the result is at most 2^16.
    """
    guess = u32(2)
    rest = v
    for k in range(4):
        half = 8 >> k
        large = geu(rest, 1 << 2 * half)
        guess = selectu(large, shlu(guess, half), guess)
        rest = selectu(large, shru(rest, 2 * half), rest)
    return guess


@kernel(step="root", split="v", exposes={"operation": DIVISION})
def root(v: WORD32) -> NORM:
    """floor(sqrt(v)), exactly, for every v in 0 … 2^32-1: seven steps of an addition, a multiplication, a division.

    Newton's step (x + v/x) · 0.5 from a start above the root falls until it is floor(sqrt(v)) and then may rise by one;
    taking the smaller of old and new holds it there. From a start at most twice the root five steps reach every
    32-bit root; the paper's seven leave two to spare.

    Scaling and overflow: v is UQ12.20 or any other even format, the root has half its fraction bits. The sum is below
    2^18, its product with one half (2^14) below 2^32.
    """
    radicand = maxu(v, 1)
    x = start(radicand)
    for _ in range(ITERATIONS):
        mean = shru(mulu(addu(x, divu(radicand, x)), HALF), FRAC)
        x = minu(x, mean)
    return minu(x, v)
