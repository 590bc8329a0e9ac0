"""DP-SGD as a firmware engineer would ship it: no root and no division unless the gradient is clipped."""

from sensorsim.kernels.formats import (
    CACHED,
    CLIP,
    DIVISION,
    FRAC,
    GRADIENT,
    MASK,
    NOISE,
    NOISY,
    ONE,
    PARTIAL,
    RANDOM,
    SIGMA,
    SQUARE,
    SQUARE_SHIFT,
    UNIT,
    WORD32,
    N,
    X,
)
from sensorsim.kernels.root import root
from sensorsim.kernels.spof import feature, perturb
from sensorsim.kernels.spof_lean import pick

from sensorsim.language import addu, asr, divu, geu, i32, kernel, minu, mul, mulu, out, shlu, shru, sub, u32

CLIPPED = "the time shows whether a record was clipped, which no epsilon covers; choose C so that none ever is"


@kernel(step="gradients")
def difference(sigma: SIGMA, x: X) -> GRADIENT:
    """A_i = sigma(a) - x_i with the logistic value hoisted out of the loop: one subtraction.

    Scaling and overflow: sigma in 0 … 1 and x in 0 … 1, both Q1.15.
    """
    return sub(sigma, feature(x))


@kernel(step="squares")
def squared(gradient: GRADIENT) -> SQUARE:
    """A_i² with 20 fraction bits, one multiplication.

    Scaling and overflow: as `squares`.
    """
    return shru(u32(mul(gradient, gradient)), SQUARE_SHIFT)


@kernel(step="sum")
def accumulate(whole: PARTIAL, square: SQUARE) -> WORD32:
    """One more square in the sum: one addition.

    Scaling and overflow: each square is below 2^20, so 4096 of them fit 32 bits.
    """
    return addu(whole, square)


@kernel(step="clip")
def threshold(clip: CLIP) -> WORD32:
    """C² with 20 fraction bits, to compare with the squared norm: one multiplication.

    Scaling and overflow: UQ6.10 squared is below 2^32.
    """
    return mulu(clip, clip)


@kernel(step="clip", exposes={"operation": DIVISION})
def reciprocal(whole: WORD32, clip: CLIP) -> UNIT:
    """C/norm in Q1.15, rounded down: one root, one addition, one division for the whole record.

    The norm is rounded up (root + 1), so the clipped gradient is never longer than C by this rounding.

    Scaling and overflow: C · 2^15 is below 2^31; the quotient is at most 1 because this runs only when norm > C,
    and the minimum says so to the range check.
    """
    return i32(minu(divu(shlu(clip, FRAC), addu(root(whole), 1)), ONE))


@kernel(step="clip")
def scaled(gradient: GRADIENT, factor: UNIT) -> GRADIENT:
    """A_i · C/norm, one multiplication and one shift.

    Scaling and overflow: Q1.15 by Q1.15, at most 2^30 before the shift; rounded down.
    """
    return asr(mul(gradient, factor), FRAC)


@kernel(exposes={"address": CACHED, "branch": CLIPPED})
def dpsgd_lean(
    x: X["n"],
    sigma: SIGMA,
    clip: CLIP,
    noise: NOISE["mask + 1"],
    word: RANDOM["n"],
    noisy: out(NOISY["n"]),
    n: N,
    mask: MASK,
) -> None:
    """One record with all hoisted that can be. The same mechanism as `dpsgd`, and without clipping the same bits:

    * e^a/(1 + e^a) does not depend on i: it is the constant `sigma` (16384 at a = 0, no division at all);
    * the squared norm is compared with C², so there is no root and no division unless the gradient is clipped
      (with n = 14 and C = 4 it never is: every |A_i| < 1, so the norm is below sqrt(14) = 3.742);
    * when it is clipped, one reciprocal and n multiplications replace n+1 divisions. The result may then differ from
      `dpsgd` by rounding;
    * the noise index is k secret random bits, as in `spof_lean`.

    Privacy: as `dpsgd`. Squares are rounded down to 2^-20, so a clipped gradient can be longer than C by up to
    2^-10·sqrt(n): negligible at C = 4, not at C below 0.1.

    Scaling and overflow: squares carry 20 fraction bits and C² = UQ6.10 squared has 20 as well, below 2^32.
    """
    whole = u32(0)
    for i in range(n):
        whole = accumulate(whole, squared(difference(sigma, x[i])))
    if geu(threshold(clip), whole):
        for i in range(n):
            noisy[i] = perturb(difference(sigma, x[i]), noise[pick(word[i], mask)])
    else:
        factor = reciprocal(whole, clip)
        for i in range(n):
            noisy[i] = perturb(scaled(difference(sigma, x[i]), factor), noise[pick(word[i], mask)])
