"""Every number format, length and constant of the kernels that ship, in one place.

What is `secret` is what nobody with a stopwatch may learn: features and all that follows from them until noise is
added, random words and keys, table entries that they pick.
"""

import math

from sensorsim.language.types import Below, Length, Q

# Lengths, each with the value of a wearable's record and those that every check runs at: short, odd, long.
N = Length("n", 1, 4096, "features of a record", typical=14, tests=(1, 3, 4096))
COUNT = Length("count", 1, 4096 * 4096, "decoder weights of one user, n·l", typical=98, tests=(1, 3, 4096))
L = Length("l", 1, 4096, "hidden units of the encoder", typical=7, tests=(1, 3, 4096))
ENTRIES = Length("size", 2, 2**16, "entries of the noise table", typical=256, tests=(2, 5, 2**16))
MASK = Length("mask", 1, 2**16 - 1, "entries of the noise table, less one", typical=255, tests=(1, 7, 2**16 - 1))
K = Length("k", 1, 4096, "features released of a record", at_most="n", typical=3, tests=(1, 3, 4096))
REMAINING = Length("left", 1, 4096, "features that are not picked yet", at_most="n", typical=14, tests=(1, 3, 4096))
STAIR_BITS = Length("stair_bits", 1, 15, "secret bits of the place on a stair", typical=10, tests=(1, 7, 15))
DROP = Length(
    *("drop", 15, 31, "32 less the secret bits that pick an entry; at least 15, so the two share no bit"),
    typical=24,
    tests=(31, 29, 15),
)
KNOT_BITS = Length("knot_bits", 0, 5, "2^knot_bits steps between knots, one row more", typical=2, tests=(0, 1, 5))
MIRRORED_BITS = Length("knot_bits", 1, 5, KNOT_BITS.about, typical=5, tests=(1, 2, 5))
KNOTS = Length("knots", 2, 33, "rows of a table", typical=5, tests=(2, 3, 33))
CUTS = Length("cuts", 1, 31, "thresholds of a row: its symbols, less one", typical=5, tests=(1, 3, 31))
SEARCHED = Length("cuts", 4, 7, "thresholds of a row of five to eight symbols", typical=5, tests=(4, 6, 7))
PLACE = Length("place", 0, 15, "a word of a cipher block", typical=0, tests=(0, 3, 15))

# A noise pointer and the secret stride that moves it.
POINTER = Below("size", secret=True)
STRIDE = Below("size", secret=True, drawn=True)

# Values. Q15 throughout: a feature, a coefficient and a noise sample share the unit 2^-15.
FRAC = 15
ONE = 1 << FRAC
HALF = 1 << (FRAC - 1)
QUARTER = 1 << (FRAC - 2)

X = Q("x", "u16", FRAC, 0, 2**16 - 1, "a feature in 0 … 1; larger values count as 1", secret=True)
UNIT = Q("unit", "i32", FRAC, 0, ONE, "a feature after saturation, 0 … 1", secret=True)
ALPHA = Q("alpha", "i32", FRAC, -ONE, ONE, "a coefficient of the loss, or a gradient", secret=True)
GRADIENT = Q("gradient", "i32", FRAC, 1 - ONE, ONE - 1, "a gradient sigma(a) - x, between -1 and 1", secret=True)
NOISE = Q("noise", "i32", FRAC, -(2**30), 2**30, "a noise sample, up to ±32768", secret=True)
NOISY = Q("noisy", "i32", FRAC, -(2**30) - ONE, 2**30 + ONE, "a coefficient or gradient with its noise")
WEIGHT = Q("weight", "i32", FRAC, -(2**30), 2**30, "a decoder weight, up to ±32768")
STABLE = Q("stable", "i32", FRAC, -(2**30), 2**30 + 2**20, "a decoder weight with the stabilization constant")
CONSTANT = Q("constant", "i32", FRAC, 0, 2**20, "the stabilization constant c, up to 32")
SIGMA = Q("sigma", "i32", FRAC, 1, ONE - 1, "the logistic function at the expansion point a")
RANDOM = Q("random", "u32", 0, 0, 2**32 - 1, "a secret uniform word", secret=True, drawn=True)
STAIR = Q("stair", "i8", 0, -(2**7), 2**7 - 1, "stairs to move by, an entry of a stairs table", secret=True)
STAIR_MASK = Q("stair_mask", "u32", 0, 1, 2**15 - 1, "ones where a word gives the place on a stair")
OFFSET = Q("offset", "i32", FRAC, HALF + 1, ONE, "one half, and half a stair")
LOWEST = Q("lowest", "i32", FRAC, -(2**23), -1, "smallest value that is released")
LEFT = Q("left", "u32", 0, 1, 4096, "features that are not picked yet")
LIMIT = Q("limit", "i32", FRAC, 1, 2**23, "largest value that is released, and its negative the smallest")
RELEASED = Q("released", "i32", FRAC, -(2**23), 2**23, "a feature less one half, with its noise, up to ±256")

# Rows: a feature is rounded at random to a knot, whose row says how likely each symbol is.
ROW = Q("row", "u32", 0, 0, 2**KNOT_BITS.hi, "the knot that a feature is rounded to", secret=True)
CUT = Q("cut", "u16", 0, 0, 2**16 - 1, "of 2^16 words how many give a symbol below this one")
DRAWN_BITS = 16  # of a word that draw a symbol by thresholds
SYMBOL = Q("symbol", "u8", 0, 0, CUTS.hi, "a released symbol")
CHANCE_BITS = 31  # of the word that a single released bit is drawn with
TOP = Q("top", "u32", CHANCE_BITS, 0, 2**CHANCE_BITS, "how likely symbol 1 is at x = 1")
SLOPE = Q("slope", "u32", CHANCE_BITS - FRAC, 0, 2**16 - 1, "how much likelier symbol 1 is at x = 1")

# The squared norm has 20 fraction bits: 4096 squares below 1 fit 32 bits. Its root then has 10.
SQUARE_SHIFT = 2 * FRAC - 20
SQUARE = Q("square", "u32", 20, 0, (ONE - 1) ** 2 >> SQUARE_SHIFT, "the square of one gradient", secret=True)
PARTIAL = Q("partial", "u32", 20, 0, 4095 * SQUARE.hi, "the sum of up to 4095 squares", secret=True)
NORM = Q("norm", "u32", 10, 0, 2**16 - 1, "a Euclidean norm, or the clipping threshold C, below 64", secret=True)
CLIP = Q("clip", "u32", 10, 1, 2**16 - 1, "the clipping threshold C, above 0 and below 64")
WORD32 = Q("word", "u32", 0, 0, 2**32 - 1, "any 32-bit word", secret=True)

# e^a by table: a = (index - EXP_ZERO) / EXP_PER_UNIT, from -4 to 4. 11 fraction bits, because e^4 shifted left by
# FRAC must still fit 32 bits.
EXP_PER_UNIT = 16
EXP_ZERO = 4 * EXP_PER_UNIT
EXP_FRAC = 11
EXP_ONE = 1 << EXP_FRAC
EXP_TABLE = tuple(round(math.exp((k - EXP_ZERO) / EXP_PER_UNIT) * EXP_ONE) for k in range(2 * EXP_ZERO + 1))
EXP = Q("exp", "u32", EXP_FRAC, EXP_TABLE[0], EXP_TABLE[-1], "e^a for the expansion point a")
EXP_SIZE = Length("exp_size", len(EXP_TABLE), len(EXP_TABLE), "entries of the table of e^a")

# The encoder. Weights of ±16 in 16 bits times a feature of 15 fraction bits; 13 bits go before the sum, so that 4096
# terms fit.
ENCODER_FRAC = 11
TERM_SHIFT = 13
SUM_FRAC = ENCODER_FRAC + FRAC - TERM_SHIFT
ENCODER_WEIGHT = Q("encoder weight", "i16", ENCODER_FRAC, -(2**15), 2**15 - 1, "an encoder weight, -16 to below 16")
TERM = Q("term", "i32", SUM_FRAC, -(2**17), 2**17, "a weight times a feature", secret=True)
ENCODER_BIAS = Q(
    "encoder bias", "i32", SUM_FRAC, -(2**28), 2**28, "an encoder bias, with what rounding down takes away"
)
SUM = Q("sum", "i32", SUM_FRAC, -(2**29) - 2**28, 2**29 + 2**28, "W_jᵀx_j + b_j", secret=True)

# The logistic function by table: 256 steps from -8 to 8, each answered with its value in the middle of the step.
SIGMOID_RANGE = 8
SIGMOID_BITS = 8
SIGMOID_SHIFT = SUM_FRAC + 4 - SIGMOID_BITS
SIGMOID_ZERO = SIGMOID_RANGE << SUM_FRAC
SIGMOID_LAST = 2 * SIGMOID_ZERO - 1
SIGMOID_TABLE = tuple(
    round(ONE / (1 + math.exp(SIGMOID_RANGE - (k + 0.5) * 2 * SIGMOID_RANGE / 2**SIGMOID_BITS)))
    for k in range(2**SIGMOID_BITS)
)
HIDDEN = Q("hidden", "u16", FRAC, SIGMOID_TABLE[0], SIGMOID_TABLE[-1], "a hidden unit h, between 0 and 1")
SIGMOID_SIZE = Length("sigmoid_size", len(SIGMOID_TABLE), len(SIGMOID_TABLE), "entries of the sigmoid table")

# What a kernel may show of its secrets to someone with a stopwatch, and why that is accepted.
CACHED = "the place in a table is secret: on a core with a data cache keep the table in memory that is not cached"
DIVISION = (
    "a divider that ends early shows about how large the norm is; define SS_NO_HW_DIV for one that takes the same "
    "number of steps for all operands"
)

# DINAR's bit shifter.
NOISE_SHIFT = Q("noise shift", "u32", 0, 0, FRAC, "how often a noise sample is halved")

# DP-ZO. Weights as the encoder's, with room for a direction; a change of the loss has the sums' fraction bits.
DIRECTION = Q("direction", "i8", ENCODER_FRAC, -127, 127, "mu times the public direction, for one weight or bias")
DIRECTION_SHIFT = SUM_FRAC - ENCODER_FRAC
ZO_WEIGHT = Q("zo weight", "i16", ENCODER_FRAC, 128 - 2**15, 2**15 - 128, "a weight of ±15.9, of encoder or decoder")
ZO_BIAS = Q("zo bias", "i32", SUM_FRAC, 512 - 2**28, 2**28 - 512, "a bias, with what rounding down takes away")
ZO_HIDDEN = Q("zo hidden", "u16", FRAC, HIDDEN.lo, HIDDEN.hi, "a hidden unit that stays on the body", secret=True)
PART = Q("part", "i32", SIGMOID_SHIFT, 0, 2**SIGMOID_SHIFT - 1, "how far into a step of the table", secret=True)
SIGMOID_STEPS = Length("sigmoid_steps", 2**SIGMOID_BITS - 1, 2**SIGMOID_BITS - 1, "steps between the table's entries")
STEP = Below("sigmoid_steps", secret=True)
LOGIT = Q("logit", "i32", SUM_FRAC, -SIGMOID_ZERO, SIGMOID_ZERO, "z, saturated to ±8", secret=True)
CHANGE_FRAC = SUM_FRAC - 1  # of the slope: its product with a difference of logits then fits 32 bits
CHANGE = Q("change", "i32", SUM_FRAC, -40 << SUM_FRAC, 40 << SUM_FRAC, "the change of one feature's loss", secret=True)
CHANGES = Q("changes", "i32", SUM_FRAC, 4096 * CHANGE.lo, 4096 * CHANGE.hi, "the change of a whole loss", secret=True)
ZO_CLIP = Q("zo clip", "i32", SUM_FRAC, 1, 1 << SUM_FRAC, "the clipping threshold C of the change, up to 1")

# The sketch: a whole record as one number, squared, along a public direction of entries -1, 0 and 1.
DIRECTION_BITS = Length("direction_bits", 1, 16, "2^direction_bits public directions", typical=10, tests=(1, 7, 16))
HALVINGS = Length("halvings", 0, 12, "how often the sum is halved: 2^halvings >= R", typical=2, tests=(0, 1, 12))
DIRECTION_NUMBER = Q("direction number", "u32", 0, 0, 2**DIRECTION_BITS.hi - 1, "which of the directions; no secret")
STATE = Q("state", "u32", 0, 0, 2**32 - 1, "what the entries of a direction are counted out from; no secret")
ENTRY = Q("entry", "i32", 0, -1, 1, "an entry of a direction: -1, 0 or 1")
MIDDLE = Q("middle", "u16", FRAC, 0, ONE, "the public centre of a feature, 0 … 1")
FACTOR = Q("factor", "u32", FRAC, ONE, 2 * ONE - 2, "2^halvings over the bound R, 1 to below 2")
ALONG = Q("along", "i32", FRAC, -(2**12) * ONE, 2**12 * ONE, "a record less its centre, along a direction", secret=True)

# The sensor: a generator, the health of what seeds it, a journal of what is spent, and packets.
BYTE = Q("byte", "u8", 0, 0, 255, "a byte of a journal or of a packet")
SEED = Q("seed byte", "u8", 0, 0, 255, "a byte of the board's entropy", secret=True, drawn=True)
NUMBER = Q("number", "u32", 0, 0, 2**32 - 1, "a count, an epoch or a checksum; nothing secret")
FLAG = Q("flag", "u32", 0, 0, 1, "1 for yes, 0 for no")
SECRET_FLAG = Q("secret flag", "u32", 0, 0, 1, "1 for yes, 0 for no, of something secret", secret=True)
BLOCKS = Length("blocks", 1, 1024, "blocks of ChaCha20 for a release, eight words each", typical=1, tests=(1, 2, 37))
SEEDS = Length("count", 1, 1024, "bytes of entropy that are looked at", typical=32, tests=(1, 33, 1024))
SIZE = Length("size", 1, 2**20, "bytes under a checksum", typical=20, tests=(1, 9, 257))
