"""The encoder on the body: h_j = sigmoid(W_jᵀ x_j + b_j), integers only."""

from sensorsim.kernels.formats import (
    CACHED,
    ENCODER_BIAS,
    ENCODER_WEIGHT,
    HIDDEN,
    SIGMOID_LAST,
    SIGMOID_SHIFT,
    SIGMOID_SIZE,
    SIGMOID_TABLE,
    SIGMOID_ZERO,
    SUM,
    TERM,
    TERM_SHIFT,
    L,
    N,
    X,
)
from sensorsim.kernels.spof import feature

from sensorsim.language import Array, add, asr, kernel, maxu, minu, mul, out, shru, subu, u32

SIGMOID = Array(HIDDEN, "sigmoid_size", contents=SIGMOID_TABLE)
LIFT = 3 << 28  # makes every sum unsigned
BELOW = LIFT - SIGMOID_ZERO


@kernel(step="dot product")
def term(weight: ENCODER_WEIGHT, x: X) -> TERM:
    """One weight times one feature, saturated to 1.

    Scaling and overflow: Q4.11 times Q1.15 is at most 2^30; the shift by 13 leaves 13 fraction bits, rounded down, so
    that 4096 terms fit 32 bits.
    """
    return asr(mul(weight, feature(x)), TERM_SHIFT)


@kernel(step="sigmoid", exposes={"address": CACHED})
def squash(a: SUM, table: SIGMOID, sigmoid_size: SIGMOID_SIZE) -> HIDDEN:
    """sigmoid(a) from the table; below -8 and above 8 the first and the last entry.

    Scaling and overflow: a is lifted by 1.5·2^29 to become unsigned, so saturation is one maximum and one minimum. A
    step of the table is 1/16 wide: the value is off by 1/128 at most.
    """
    lifted = maxu(u32(add(a, LIFT)), BELOW)
    return table[shru(minu(subu(lifted, BELOW), SIGMOID_LAST), SIGMOID_SHIFT)]


@kernel()
def encoder(
    x: X["n"],
    weights: ENCODER_WEIGHT["n * l"],
    bias: ENCODER_BIAS["l"],
    table: SIGMOID,
    hidden: out(HIDDEN["l"]),
    n: N,
    l: L,
    sigmoid_size: SIGMOID_SIZE,
) -> None:
    """One record to its l hidden units. `weights` has the n weights of unit 0, then those of unit 1, and so on.

    Privacy: none. What leaves the body here is a function of the raw record; the epsilon of a release does not cover
    it.

    Scaling and overflow: a sum of 4096 terms of at most 2^17 and a bias of at most 2^28 is at most 1.5·2^29.
    """
    for r in range(l):
        a = bias[r]
        for i in range(n):
            a = add(a, term(weights[r * n + i], x[i]))
        hidden[r] = squash(a, table, sigmoid_size)
