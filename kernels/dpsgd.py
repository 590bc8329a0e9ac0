"""DP-SGD as printed: Algorithm 2, steps 4 and 6 (the paper's `paper` variant), structure and all."""

from sensorsim.kernels.formats import (
    CACHED,
    CLIP,
    DIVISION,
    ENTRIES,
    EXP,
    EXP_ONE,
    EXP_SIZE,
    EXP_TABLE,
    FRAC,
    GRADIENT,
    NOISE,
    NOISY,
    NORM,
    ONE,
    POINTER,
    SQUARE,
    SQUARE_SHIFT,
    STRIDE,
    WORD32,
    N,
    X,
)
from sensorsim.kernels.noise import advance
from sensorsim.kernels.root import root
from sensorsim.kernels.spof import feature, perturb

from sensorsim.language import Array, Below, addu, div, divu, i32, kernel, maxu, mul, out, shl, shlu, shru, sub, u32


@kernel(step="gradients", split="a")
def gradients(
    x: X["n"],
    a: Below("exp_size"),
    exp: Array(EXP, "exp_size", EXP_TABLE),
    gradient: out(GRADIENT["n"]),
    n: N,
    exp_size: EXP_SIZE,
) -> None:
    """A_i = e^a/(1 + e^a) - x_i, with a table read, an addition and a division for every i, as printed.

    (e^a/(1 + e^a) does not depend on i; `dpsgd_lean` computes it once.)

    Scaling and overflow: e^a is UQ6.11 up to e^4, so e^a · 2^15 is below 2^32; the quotient is the logistic function in
    Q1.15, the difference lies in -1 … 1.
    """
    for i in range(n):
        power = exp[a]
        logistic = divu(shlu(power, FRAC), addu(EXP_ONE, power))
        gradient[i] = sub(i32(logistic), feature(x[i]))


@kernel(step="squares")
def squares(gradient: GRADIENT["n"], square: out(SQUARE["n"]), n: N) -> None:
    """A_i² for every i: one multiplication each (the printed list counts two).

    Scaling and overflow: Q1.15 squared is Q2.30, at most 2^30; the shift by 10 leaves 20 fraction bits, rounded down.
    """
    for i in range(n):
        square[i] = shru(u32(mul(gradient[i], gradient[i])), SQUARE_SHIFT)


@kernel(step="sum")
def total(square: SQUARE["n"], n: N) -> WORD32:
    """The sum of the squares, n-1 additions.

    Scaling and overflow: each square is below 2^20, so 4096 of them fit 32 bits.
    """
    whole = square[0]
    for i in range(1, n):
        whole = addu(whole, square[i])
    return whole


@kernel(step="clip", exposes={"operation": DIVISION})
def clip_gradient(gradient: GRADIENT["n"], norm: NORM, clip: CLIP, clipped: out(GRADIENT["n"]), n: N) -> None:
    """A_i / max(1, norm/C): always n+1 divisions, as printed, also when nothing is clipped.

    Scaling and overflow: norm · 2^15 is below 2^31, the ratio is Q16.15 and at least 1.0; A_i · 2^15 is at most 2^30,
    the quotient is rounded toward zero, so clipping never lengthens the gradient.
    """
    ratio = i32(maxu(divu(shlu(norm, FRAC), clip), ONE))
    for i in range(n):
        clipped[i] = div(shl(gradient[i], FRAC), ratio)


@kernel(step="perturbation", exposes={"address": CACHED})
def perturb_gradient(
    clipped: GRADIENT["n"],
    noise: NOISE["size"],
    stride: STRIDE["n"],
    cursor: POINTER["1"],
    noisy: out(NOISY["n"]),
    n: N,
    size: ENTRIES,
) -> None:
    """Step 6: one pre-fetched noise sample on every clipped gradient; `cursor` keeps the noise pointer.

    Scaling and overflow: as `perturb`.
    """
    place = cursor[0]
    for i in range(n):
        place = advance(place, stride[i], size)
        noisy[i] = perturb(clipped[i], noise[place])
    cursor[0] = place


@kernel()
def dpsgd(
    x: X["n"],
    a: Below("exp_size"),
    exp: Array(EXP, "exp_size", EXP_TABLE),
    clip: CLIP,
    noise: NOISE["size"],
    stride: STRIDE["n"],
    cursor: POINTER["1"],
    gradient: out(GRADIENT["n"]),
    square: out(SQUARE["n"]),
    clipped: out(GRADIENT["n"]),
    noisy: out(NOISY["n"]),
    n: N,
    size: ENTRIES,
    exp_size: EXP_SIZE,
) -> None:
    """One record by Algorithm 2 as printed: 77n+283 macro-operations on the K7, printed as 80n+283.

    Privacy: the clipped gradient has L2 norm at most C, hence L1 sensitivity 2·C·sqrt(n); the printed 2nC is a looser
    bound. Squares are rounded down to 2^-20 and the norm to 2^-10, so the norm that is clipped to C can be too small by
    2^-10·(sqrt(n) + 1), and a clipped gradient that much too long: negligible at C = 4, not at C below 0.1.

    Scaling and overflow: see the steps; squares carry 20 fraction bits, the norm 10.
    """
    gradients(x, a, exp, gradient, n, exp_size)
    squares(gradient, square, n)
    norm = root(total(square, n))
    clip_gradient(gradient, norm, clip, clipped, n)
    perturb_gradient(clipped, noise, stride, cursor, noisy, n, size)
