"""Sketch a record: one number, its square along a public direction, which is released as a feature is.

    u = min(1, (s·(x - c))² / R²)       s in {-1, 0, 1}^n a public direction, c a public centre, R a public bound

On average over records u·R² is s'Σs, with Σ the covariance of x about c: who has u for many directions has Σ. Which
direction a record takes, a secret word says that does not depend on x; its number is sent along. u lies in 0 … 1, so
that the kernel which releases one feature releases it, and nothing in the certified draw is new.

Directions are not stored. Their entries are counted out by arithmetic on the number, the same for everyone.

Privacy: the number and what is released of u are together epsilon0-DP with delta = 0 for any two records, epsilon0 that
of one released feature. Proof: the number is as likely for every x; given it, u is a function of x with values in
0 … 1, and for any two values in 0 … 1 the release is epsilon0-DP. How large R is and where c lies changes what is
learnt, and nothing of this.
"""

from sensorsim.kernels.formats import (
    ALONG,
    BYTE,
    DIRECTION_BITS,
    DIRECTION_NUMBER,
    ENTRY,
    FACTOR,
    FRAC,
    HALVINGS,
    MIDDLE,
    ONE,
    RANDOM,
    RELEASED,
    STATE,
    SYMBOL,
    N,
    X,
)
from sensorsim.kernels.packet import AT, BITS, put
from sensorsim.kernels.rows import rows
from sensorsim.kernels.rows_bit import rows_bit
from sensorsim.kernels.rows_lookup import rows_lookup
from sensorsim.kernels.rows_mirrored import rows_mirrored
from sensorsim.kernels.rows_search import rows_search
from sensorsim.kernels.spof import feature
from sensorsim.kernels.stairs import stairs

from sensorsim.language import (
    Kernel,
    Q,
    add,
    addu,
    asr,
    i32,
    kernel,
    max_,
    min_,
    minu,
    mul,
    out,
    rest,
    shru,
    sub,
    u32,
    wrapping_addu,
    wrapping_mulu,
    xor,
)

# Numbers that follow each other must not give entries that do: two rounds of multiply and fold (the constants are
# 2^32 over the golden ratio, and one of MurmurHash3's), then a congruential sequence (Knuth; Numerical Recipes 7.1).
SPREAD, MIX = 0x9E3779B1, 0x85EBCA6B
MULTIPLIER, INCREMENT = 1664525, 1013904223
ROUNDING = 1 << 29
PART_FRAC = FRAC - 1  # of what is squared: up to 2 fits 15 bits, and its square 30
PART_SHIFT = 2 * FRAC - PART_FRAC
SQUARE_SHIFT = 2 * PART_FRAC - FRAC


@kernel(step="direction")
def direction(word: RANDOM, direction_bits: DIRECTION_BITS) -> DIRECTION_NUMBER:
    """Return the number of a direction, the top bits of a secret word. Each of the 2^direction_bits is as likely.

    Scaling and overflow: as many bits as there are directions.
    """
    return shru(word, 32 - direction_bits)


@kernel(step="direction")
def first_state(number: DIRECTION_NUMBER) -> STATE:
    """Return the state that the entries of a direction start from.

    Scaling and overflow: words that are meant to wrap, public.
    """
    spread = wrapping_mulu(addu(number, 1), SPREAD)
    mixed = wrapping_mulu(xor(spread, shru(spread, 16)), MIX)
    return xor(mixed, shru(mixed, 13))


@kernel(step="direction")
def next_state(state: STATE) -> STATE:
    """Return the state of the next entry: MUL, ADD.

    Scaling and overflow: words that are meant to wrap, public.
    """
    return wrapping_addu(wrapping_mulu(state, MULTIPLIER), INCREMENT)


@kernel(step="direction")
def entry(state: STATE) -> ENTRY:
    """Return the state as a number from -1 to 1, rounded: half of them are 0, a quarter -1 and a quarter 1.

    Scaling and overflow: 31 fraction bits; halved before one half is added, so the sum fits.
    """
    return asr(add(asr(i32(state), 1), ROUNDING), 30)


@kernel(step="square")
def squared(along: ALONG, factor: FACTOR, halvings: HALVINGS) -> X:
    """Return min(1, along² / R²), where R is 2^halvings · 2^15 / factor: two products.

    Scaling and overflow: after the halvings the sum is kept within ±1, so times the factor, below 2, it is within
    ±(2^31 - 2^16) with 30 fraction bits, and what rounds it still fits. It is kept with 14, its square with 28, at most
    2^30. Every shift rounds to the nearest: what is squared is off by at most 2^-14 of R, so u by 5 units of 2^-15 near
    1 and by less below. On average over all sums it is off by less than a unit, and by less than a fiftieth of one
    unless the factor lies within a few units of a simple ratio.
    """
    halved = asr(add(along, (1 << halvings) >> 1), halvings)
    within = max_(min_(halved, ONE), -ONE)
    part = asr(add(mul(within, i32(factor)), 1 << (PART_SHIFT - 1)), PART_SHIFT)
    return minu(shru(addu(u32(mul(part, part)), 1 << (SQUARE_SHIFT - 1)), SQUARE_SHIFT), ONE)


@kernel(step="sum")
def sketch(x: X["n"], centre: MIDDLE["n"], number: DIRECTION_NUMBER, factor: FACTOR, n: N, halvings: HALVINGS) -> X:
    """Return u of one record along the direction of this number. The product with an entry replaces a branch.

    Privacy: none by itself. u is secret, as x is; what may leave the body is what a certified table makes of it.

    Scaling and overflow: Q15 throughout; a feature less its centre is within ±1, so the sum of 4096 is within ±2^27.
    """
    state = first_state(number)
    along = i32(0)
    for i in range(n):
        state = next_state(state)
        along = add(along, mul(entry(state), sub(feature(x[i]), i32(centre[i]))))
    return squared(along, factor, halvings)


def sketch_release(draw: Kernel, value: Q) -> Kernel:
    """Declare sketch_X for the draw X, which returns a `value`."""

    @kernel(name=f"sketch_{draw.name}")
    def release(
        x: X["n"],
        word: RANDOM["2"],
        chosen: out(DIRECTION_NUMBER["1"]),
        y: out(value["1"]),
        n: N,
        centre: MIDDLE["n"],
        factor: FACTOR,
        halvings: HALVINGS,
        direction_bits: DIRECTION_BITS,
        *bound: rest(draw, "x", "word"),
    ) -> None:
        """Release the sketch of a record: the first word picks the direction, the second draws.

        Privacy: the released pair (chosen, y) is epsilon0-DP with delta = 0 for any two records, epsilon0 that of
        `draw`: `chosen` is as likely for every x, since its word does not depend on x, and y is a release of one number
        in 0 … 1. `chosen` need not be hidden.

        Scaling and overflow: see `sketch` and `draw`.
        """
        number = direction(word[0], direction_bits)
        y[0] = draw(sketch(x, centre, number, factor, n, halvings), word[1], *bound)
        chosen[0] = number

    return release


sketch_rows = sketch_release(rows, SYMBOL)
sketch_rows_search = sketch_release(rows_search, SYMBOL)
sketch_rows_lookup = sketch_release(rows_lookup, SYMBOL)
sketch_rows_mirrored = sketch_release(rows_mirrored, SYMBOL)
sketch_rows_bit = sketch_release(rows_bit, SYMBOL)
sketch_stairs = sketch_release(stairs, RELEASED)


@kernel(step="packet")
def pack_direction(packet: BYTE["(at + bits + 7) >> 3"], number: DIRECTION_NUMBER, at: AT, bits: BITS) -> None:
    """Pack the number of the direction, `bits` bits.

    Scaling and overflow: see put.
    """
    put(packet, number, at, bits)
