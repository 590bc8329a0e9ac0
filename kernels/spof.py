"""SPOF as printed: Algorithm 1, steps 3 and 5 (the paper's `paper` variant)."""

from sensorsim.kernels.formats import (
    ALPHA,
    CACHED,
    CONSTANT,
    COUNT,
    ENTRIES,
    FRAC,
    HALF,
    NOISE,
    NOISY,
    ONE,
    POINTER,
    QUARTER,
    STABLE,
    STRIDE,
    UNIT,
    WEIGHT,
    L,
    N,
    X,
)
from sensorsim.kernels.noise import advance

from sensorsim.language import add, asr, i32, kernel, minu, mul, out, sub


@kernel()
def feature(x: X) -> UNIT:
    """A feature, saturated to 1: every sensitivity bound assumes 0 <= x <= 1, so larger readings count as 1.

    Scaling and overflow: UQ1.15 in, Q1.15 out.
    """
    return i32(minu(x, ONE))


@kernel(step="stabilization")
def stabilize(weights: WEIGHT["count"], constant: CONSTANT, stabilized: out(STABLE["count"]), count: COUNT) -> None:
    """Step 3: add the stabilization constant to the l decoder weights of every feature, n·l additions.

    Scaling and overflow: Q15.15 weights up to ±2^30 and a constant up to 2^20 (32.0): the sum stays below 2^31.
    """
    for k in range(count):
        stabilized[k] = add(weights[k], constant)


@kernel(step="coefficients")
def linear(x: UNIT) -> ALPHA:
    """alpha2 = 0.5 - x, the coefficient of z at a = 0. One subtraction.

    Scaling and overflow: x in 0 … 1, the result in -0.5 … 0.5, both Q1.15.
    """
    return sub(HALF, x)


@kernel(step="coefficients")
def quadratic(x: UNIT) -> ALPHA:
    """alpha3 = 0.5·x - 0.25, the coefficient of z² as printed. One multiplication, one subtraction.

    (What holds is 1/8 for every x; see `spof_lean` and the errata of the paper.)

    Scaling and overflow: the product x · 2^14 is at most 2^29; the shift by 15 rounds down, so alpha3 is the printed
    value or up to half a unit below it.
    """
    return sub(asr(mul(x, HALF), FRAC), QUARTER)


@kernel(step="perturbation")
def perturb(coefficient: ALPHA, sample: NOISE) -> NOISY:
    """Step 5: one noise sample on one coefficient. One addition.

    Scaling and overflow: |coefficient| <= 2^15 and |sample| <= 2^30, so the sum fits with a bit to spare.
    """
    return add(coefficient, sample)


@kernel(exposes={"address": CACHED})
def fm(
    x: X["n"],
    noise: NOISE["size"],
    stride: STRIDE["2 * n"],
    cursor: POINTER["2"],
    alpha2: out(NOISY["n"]),
    alpha3: out(NOISY["n"]),
    n: N,
    size: ENTRIES,
) -> None:
    """One record by the functional mechanism: Algorithm 1 without the stabilization, 19·n macro-operations on the K7.

    `cursor` holds the two noise pointers, one for each coefficient, and keeps them for the next record.

    Privacy: releasing both coefficients with independent noise of scale Delta/(sqrt(2)·epsilon) is
    sqrt(2)·epsilon-DP, not epsilon-DP as printed, and covers the coefficients only, not the trained weights.

    Scaling and overflow: everything is Q15; see the steps.
    """
    first = cursor[0]
    second = cursor[1]
    for i in range(n):
        value = feature(x[i])
        first = advance(first, stride[2 * i], size)
        alpha2[i] = perturb(linear(value), noise[first])
        second = advance(second, stride[2 * i + 1], size)
        alpha3[i] = perturb(quadratic(value), noise[second])
    cursor[0] = first
    cursor[1] = second


@kernel(exposes={"address": CACHED})
def spof(
    x: X["n"],
    weights: WEIGHT["n * l"],
    constant: CONSTANT,
    noise: NOISE["size"],
    stride: STRIDE["2 * n"],
    cursor: POINTER["2"],
    stabilized: out(STABLE["n * l"]),
    alpha2: out(NOISY["n"]),
    alpha3: out(NOISY["n"]),
    n: N,
    l: L,
    size: ENTRIES,
) -> None:
    """One record by Algorithm 1 as printed: (19+l)·n macro-operations on the K7.

    `fm` after the stabilization, with its loop written out: a batch then moves the pointers of many records at once.

    Privacy: that of `fm`; the constant depends on no record.

    Scaling and overflow: everything is Q15; see the steps.
    """
    stabilize(weights, constant, stabilized, n * l)
    first = cursor[0]
    second = cursor[1]
    for i in range(n):
        value = feature(x[i])
        first = advance(first, stride[2 * i], size)
        alpha2[i] = perturb(linear(value), noise[first])
        second = advance(second, stride[2 * i + 1], size)
        alpha3[i] = perturb(quadratic(value), noise[second])
    cursor[0] = first
    cursor[1] = second
