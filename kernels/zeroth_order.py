"""DP-ZO on the body: how the loss of one record changes along a public direction; a single number leaves, with noise.

    h± = sigmoid((W ± mu·v)ᵀ x + b ± mu·v)         z± = (V ± mu·v)ᵀ h± + d ± mu·v
    y  = clip(loss(z+) - loss(z-), -C, +C) + noise,    loss(z) = sum of ln 2 + (1/2 - x) z + z²/8

DP-ZO (Tang, Panda, Nasr, Mahloujifar, Mittal, arXiv 2401.04343) makes one scalar of a record private: the direction is
random and public, only the length of the step along it depends on data. Who trains adds -rate · mean(y)/(2·mu)·v.

`direction` holds mu·v in units of 2^-11: ±16 everywhere is a vector of signs with mu = 2^-7. It must not depend on x.

The loss is the cross-entropy's polynomial at 0 and not a table, whose steps would hide the difference of two close
values; ln 2 cancels, the rest is (z+ - z-)·(1/2 - x + (z+ + z-)/8). The sigmoid is read between its table's entries.
"""

from sensorsim.kernels.encoder import LIFT, SIGMOID
from sensorsim.kernels.formats import (
    ALPHA,
    CACHED,
    CHANGE,
    CHANGE_FRAC,
    CHANGES,
    DIRECTION,
    DIRECTION_SHIFT,
    ENCODER_WEIGHT,
    FRAC,
    LOGIT,
    MASK,
    NOISE,
    NOISY,
    PART,
    RANDOM,
    SIGMOID_SHIFT,
    SIGMOID_SIZE,
    SIGMOID_STEPS,
    SIGMOID_ZERO,
    STEP,
    SUM,
    SUM_FRAC,
    TERM,
    TERM_SHIFT,
    UNIT,
    ZO_BIAS,
    ZO_CLIP,
    ZO_HIDDEN,
    ZO_WEIGHT,
    L,
    N,
    X,
)
from sensorsim.kernels.spof import feature, linear, perturb
from sensorsim.kernels.spof_lean import pick

from sensorsim.language import (
    add,
    addu,
    and_,
    asr,
    i32,
    kernel,
    max_,
    maxu,
    min_,
    minu,
    mul,
    out,
    shl,
    shru,
    sub,
    subu,
    u32,
)

MIDDLE = LIFT - SIGMOID_ZERO + (1 << (SIGMOID_SHIFT - 1))  # an entry is the value in the middle of its step
LAST = (SIGMOID_STEPS.hi << SIGMOID_SHIFT) - 1
EIGHTH = 3  # as a shift: the coefficient of z²


@kernel(step="dot product")
def weighted_unit(weight: ENCODER_WEIGHT, value: UNIT) -> TERM:
    """One weight times one feature or hidden unit.

    Scaling and overflow: as `term`, whose value is saturated inside.
    """
    return asr(mul(weight, value), TERM_SHIFT)


@kernel(step="sigmoid", split="step", exposes={"address": CACHED})
def sigmoid_line(
    step: STEP, part: PART, table: SIGMOID, sigmoid_size: SIGMOID_SIZE, sigmoid_steps: SIGMOID_STEPS
) -> ZO_HIDDEN:
    """The straight line from one entry of the table to the next. ADD, SUB, MUL, SHIFT, ADD.

    Scaling and overflow: entries are Q15, their difference times a part below 2^9 is far below 2^31; the sum lies
    between the two entries.
    """
    low = i32(table[step])
    rise = sub(i32(table[addu(step, 1)]), low)
    return u32(add(low, asr(mul(rise, part), SIGMOID_SHIFT)))


@kernel(step="sigmoid")
def sigmoid_smooth(a: SUM, table: SIGMOID, sigmoid_size: SIGMOID_SIZE) -> ZO_HIDDEN:
    """sigmoid(a), off by 2^-13 at most within ±(8 - 1/32); beyond, the first and the last entry of the table.

    Scaling and overflow: lifted and saturated as in `squash`, from half a step above -8 to half a step below 8.
    """
    lifted = maxu(u32(add(a, LIFT)), MIDDLE)
    place = minu(subu(lifted, MIDDLE), LAST)
    part = i32(and_(place, (1 << SIGMOID_SHIFT) - 1))
    return sigmoid_line(shru(place, SIGMOID_SHIFT), part, table, sigmoid_size, sigmoid_size - 1)


@kernel(step="dot product")
def hidden_both(
    x: X["n"],
    weights: ZO_WEIGHT["n * l"],
    bias: ZO_BIAS["l"],
    direction: DIRECTION["n * l + l"],
    table: SIGMOID,
    ahead: out(ZO_HIDDEN["l"]),
    behind: out(ZO_HIDDEN["l"]),
    n: N,
    l: L,
    sigmoid_size: SIGMOID_SIZE,
) -> None:
    """The l hidden units at W + mu·v (`ahead`) and at W - mu·v (`behind`), side by side so that a weight is read once.

    `weights` is laid out as in `encoder`; `direction` alike, and the l biases' part.

    Scaling and overflow: as `encoder`; weights and biases leave room for the direction, so nothing saturates.
    """
    for r in range(l):
        turn = shl(direction[n * l + r], DIRECTION_SHIFT)
        a = add(bias[r], turn)
        b = sub(bias[r], turn)
        for i in range(n):
            weight = weights[r * n + i]
            turn = direction[r * n + i]
            value = feature(x[i])
            a = add(a, weighted_unit(add(weight, turn), value))
            b = add(b, weighted_unit(sub(weight, turn), value))
        ahead[r] = sigmoid_smooth(a, table, sigmoid_size)
        behind[r] = sigmoid_smooth(b, table, sigmoid_size)


@kernel(step="dot product")
def logits_both(
    weights: ZO_WEIGHT["n * l"],
    bias: ZO_BIAS["n"],
    direction: DIRECTION["n * l + n"],
    ahead: ZO_HIDDEN["l"],
    behind: ZO_HIDDEN["l"],
    above: out(LOGIT["n"]),
    below: out(LOGIT["n"]),
    n: N,
    l: L,
) -> None:
    """The n logits at V + mu·v (`above`) and at V - mu·v (`below`), saturated to ±8.

    `weights` has the l weights of feature 0, then those of feature 1, …; `direction` alike, and the n biases' part.

    Scaling and overflow: as `hidden_both`. The loss at z = ±8 is far from its least value, which lies within ±2.
    """
    for i in range(n):
        turn = shl(direction[n * l + i], DIRECTION_SHIFT)
        a = add(bias[i], turn)
        b = sub(bias[i], turn)
        for r in range(l):
            weight = weights[i * l + r]
            turn = direction[i * l + r]
            a = add(a, weighted_unit(add(weight, turn), i32(ahead[r])))
            b = add(b, weighted_unit(sub(weight, turn), i32(behind[r])))
        above[i] = min_(max_(a, -SIGMOID_ZERO), SIGMOID_ZERO)
        below[i] = min_(max_(b, -SIGMOID_ZERO), SIGMOID_ZERO)


@kernel(step="loss")
def feature_change(x: X, above: LOGIT, below: LOGIT) -> CHANGE:
    """loss(z+) - loss(z-) of one feature: (z+ - z-)·(1/2 - x + (z+ + z-)/8). Two SUB, two ADD, one MUL.

    Scaling and overflow: the slope has 12 fraction bits and is at most 2.5, the difference of the logits 13 and is at
    most 16, so the product is at most 40 with 25; the shift by 12 leaves 13, rounded down.
    """
    slope = add(asr(linear(feature(x)), FRAC - CHANGE_FRAC), asr(add(above, below), EIGHTH + SUM_FRAC - CHANGE_FRAC))
    return asr(mul(sub(above, below), slope), CHANGE_FRAC)


@kernel(step="loss")
def loss_change(x: X["n"], above: LOGIT["n"], below: LOGIT["n"], n: N) -> CHANGES:
    """The change of the whole record's loss, n additions.

    Scaling and overflow: 4096 changes of at most 40 with 13 fraction bits stay below 2^31.
    """
    whole = i32(0)
    for i in range(n):
        whole = add(whole, feature_change(x[i], above[i], below[i]))
    return whole


@kernel(step="clip")
def clip_change(whole: CHANGES, clip: ZO_CLIP) -> ALPHA:
    """The change within ±C, whatever the record. SUB, two selects, a shift.

    Scaling and overflow: C is at most 1, so the 15 fraction bits of the noise fit.
    """
    return shl(min_(max_(whole, sub(0, clip)), clip), FRAC - SUM_FRAC)


@kernel(exposes={"address": CACHED})
def dpzo(
    x: X["n"],
    weights: ZO_WEIGHT["n * l"],
    bias: ZO_BIAS["l"],
    decoder: ZO_WEIGHT["n * l"],
    decoder_bias: ZO_BIAS["n"],
    direction: DIRECTION["n * l + l"],
    decoder_direction: DIRECTION["n * l + n"],
    table: SIGMOID,
    clip: ZO_CLIP,
    noise: NOISE["mask + 1"],
    word: RANDOM["1"],
    ahead: out(ZO_HIDDEN["l"]),
    behind: out(ZO_HIDDEN["l"]),
    above: out(LOGIT["n"]),
    below: out(LOGIT["n"]),
    n: N,
    l: L,
    mask: MASK,
    sigmoid_size: SIGMOID_SIZE,
) -> NOISY:
    """One record, one direction, one number: (20l + 10)·n + 20l + 3 macro-operations on the K7 as the paper counts.

    `ahead`, `behind`, `above` and `below` are work space. They hold raw functions of x and must not leave the body.

    Privacy: the clipped change is within ±C for every record, so another record moves it by 2C at most. With ideal
    Laplace noise of scale 2C/epsilon one call is epsilon-DP, delta = 0; T calls on the same record (directions, steps,
    epochs) are T·epsilon-DP, so epsilon for all of them needs the scale 2C·T/epsilon. With Gaussian noise T calls need
    a deviation that grows as sqrt(T), and the statement has a delta. It covers the trained weights, as long as every
    use of x in training goes through this kernel, and not what `encoder` sends of x later. Every record has noise of
    its own here; DP-ZO as published adds it once, to the sum of a batch of B: sqrt(B) times less, with trust.
    No finite table of Laplace samples is ideal noise, and none is certified for this kernel, as with `spof_lean`;
    (change + C)/(2C) is a feature in 0 … 1, to which certified noise can be given.

    Scaling and overflow: see the steps. The noise has 15 fraction bits.
    """
    hidden_both(x, weights, bias, direction, table, ahead, behind, n, l, sigmoid_size)
    logits_both(decoder, decoder_bias, decoder_direction, ahead, behind, above, below, n, l)
    change = clip_change(loss_change(x, above, below, n), clip)
    return perturb(change, noise[pick(word[0], mask)])
