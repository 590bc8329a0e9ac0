"""Every number format, length and constant of the kernels, in one place.

A `Q` says how an integer stands for a real number: value = integer / 2^frac_bits, kept in `storage`, never outside
`lo … hi` (integers, ends included). Kernels declare their parameters with these objects: `x: X["n"]` is an array of
n values in format X, `n: N` a length, `cursor: Below("size")` an index into an array of that length.
"""

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

STORAGE = {
    "u8": (0, 2**8 - 1),
    "u16": (0, 2**16 - 1),
    "u32": (0, 2**32 - 1),
    "i8": (-(2**7), 2**7 - 1),
    "i16": (-(2**15), 2**15 - 1),
    "i32": (-(2**31), 2**31 - 1),
}


class Rounding(Enum):
    """What becomes of the bits below the last one kept."""

    FLOOR = "toward minus infinity"  # what an arithmetic right shift does; the kernels' own rounding of products
    ZERO = "toward zero"  # what integer division does in C and on every divider
    HALF_UP = "to nearest, halves toward plus infinity"  # add half a unit, then shift
    HALF_EVEN = "to nearest, halves to even"  # unbiased; used when the host turns reals into table entries


class Overflow(Enum):
    """What becomes of a value that does not fit."""

    WRAP = "keeps the low bits"
    SATURATE = "goes to the nearest end of the range"


@dataclass(frozen=True)
class Q:
    """A fixed-point format."""

    name: str
    storage: str
    frac_bits: int
    lo: int
    hi: int
    about: str

    def __post_init__(self) -> None:
        least, most = STORAGE[self.storage]
        if not least <= self.lo <= self.hi <= most:
            raise ValueError(f"{self.name}: {self.lo} … {self.hi} does not fit {self.storage}")

    def __getitem__(self, length: str) -> "Array":
        return Array(self, length)

    def quantise(
        self,
        value: "float | Fraction",
        rounding: Rounding = Rounding.HALF_EVEN,
        overflow: Overflow = Overflow.SATURATE,
    ) -> int:
        """The integer that stands for `value`."""
        from fractions import Fraction  # here, because the command line starts without it

        integer = round_to_integer(Fraction(value) * 2**self.frac_bits, rounding)
        if overflow is Overflow.SATURATE:
            return min(max(integer, self.lo), self.hi)
        least, most = STORAGE[self.storage]
        return (integer - least) % (most - least + 1) + least

    def value(self, integer: int) -> "Fraction":
        """The real number that `integer` stands for."""
        from fractions import Fraction

        return Fraction(integer, 2**self.frac_bits)


@dataclass(frozen=True)
class Array:
    """An array parameter: its element format and its length, an expression in the kernel's lengths."""

    element: "Q | Below"
    length: str
    contents: tuple[int, ...] | None = None  # known entries, for constant tables
    written: bool = False  # the kernel writes it before it reads it


@dataclass(frozen=True)
class Length:
    """A whole-number parameter that bounds loops or arrays."""

    name: str
    lo: int
    hi: int
    about: str
    at_most: str | None = None  # another length of the same kernel that this one never exceeds


@dataclass(frozen=True)
class Below:
    """An unsigned word below another parameter, as an index is below the length."""

    limit: str

    def __getitem__(self, length: str) -> "Array":
        return Array(self, length)


def out(array: Array) -> Array:
    """The same array, as one that the kernel fills."""
    return Array(array.element, array.length, array.contents, written=True)


def round_to_integer(value: "Fraction", rounding: Rounding) -> int:
    """`value` rounded to a whole number in the given way."""
    if rounding is Rounding.FLOOR:
        return math.floor(value)
    if rounding is Rounding.ZERO:
        return math.trunc(value)
    if rounding is Rounding.HALF_UP:
        return math.floor(2 * value + 1) // 2
    return round(value)  # Python rounds a Fraction's halves to even


# Lengths
N = Length("n", 1, 4096, "features of a record")
COUNT = Length("count", 1, 4096 * 4096, "decoder weights of one user, n·l")
L = Length("l", 1, 4096, "hidden units of the encoder")
ENTRIES = Length("size", 2, 2**16, "entries of the noise table")
MASK = Length("mask", 1, 2**16 - 1, "entries of the noise table, less one")
K = Length("k", 1, 4096, "features released of a record", at_most="n")
STAIR_BITS = Length("stair_bits", 1, 15, "secret bits of the place on a stair")
DROP = Length("drop", 15, 31, "32 less the secret bits that pick an entry; at least 15, so the two share no bit")
PLACE = Length("place", 0, 15, "a word of a cipher block")

# Values. Q15 throughout: a feature, a coefficient and a noise sample share the unit 2^-15.
FRAC = 15
ONE = 1 << FRAC
HALF = 1 << (FRAC - 1)
QUARTER = 1 << (FRAC - 2)

X = Q("x", "u16", FRAC, 0, 2**16 - 1, "a feature in 0 … 1; larger values count as 1")
UNIT = Q("unit", "i32", FRAC, 0, ONE, "a feature after saturation, 0 … 1")
ALPHA = Q("alpha", "i32", FRAC, -ONE, ONE, "a coefficient of the loss, or a gradient")
GRADIENT = Q("gradient", "i32", FRAC, 1 - ONE, ONE - 1, "a gradient sigma(a) - x, between -1 and 1")
NOISE = Q("noise", "i32", FRAC, -(2**30), 2**30, "a noise sample, up to ±32768")
NOISY = Q("noisy", "i32", FRAC, -(2**30) - ONE, 2**30 + ONE, "a coefficient or gradient with its noise")
WEIGHT = Q("weight", "i32", FRAC, -(2**30), 2**30, "a decoder weight, up to ±32768")
STABLE = Q("stable", "i32", FRAC, -(2**30), 2**30 + 2**20, "a decoder weight with the stabilization constant")
CONSTANT = Q("constant", "i32", FRAC, 0, 2**20, "the stabilization constant c, up to 32")
SIGMA = Q("sigma", "i32", FRAC, 1, ONE - 1, "the logistic function at the expansion point a")
RANDOM = Q("random", "u32", 0, 0, 2**32 - 1, "a secret uniform word")
STAIR = Q("stair", "i8", 0, -(2**7), 2**7 - 1, "stairs to move by, an entry of a stairs table")
STAIR_MASK = Q("stair_mask", "u32", 0, 1, 2**15 - 1, "ones where a word gives the place on a stair")
CENTRE = Q("centre", "i32", FRAC, HALF + 1, ONE, "one half, and half a stair")
LOWEST = Q("lowest", "i32", FRAC, -(2**23), -1, "smallest value that is released")
LEFT = Q("left", "u32", 0, 1, 4096, "features that are not picked yet")
LIMIT = Q("limit", "i32", FRAC, 1, 2**23, "largest value that is released, and its negative the smallest")
RELEASED = Q("released", "i32", FRAC, -(2**23), 2**23, "a feature less one half, with its noise, up to ±256")

# The squared norm has 20 fraction bits: 4096 squares below 1 fit 32 bits. Its root then has 10.
SQUARE_SHIFT = 2 * FRAC - 20
SQUARE = Q("square", "u32", 20, 0, (ONE - 1) ** 2 >> SQUARE_SHIFT, "the square of one gradient")
PARTIAL = Q("partial", "u32", 20, 0, 4095 * SQUARE.hi, "the sum of up to 4095 squares")
NORM = Q("norm", "u32", 10, 0, 2**16 - 1, "a Euclidean norm, or the clipping threshold C, below 64")
CLIP = Q("clip", "u32", 10, 1, 2**16 - 1, "the clipping threshold C, above 0 and below 64")
WORD32 = Q("word", "u32", 0, 0, 2**32 - 1, "any 32-bit word")

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
TERM = Q("term", "i32", SUM_FRAC, -(2**17), 2**17, "a weight times a feature")
ENCODER_BIAS = Q(
    "encoder bias", "i32", SUM_FRAC, -(2**28), 2**28, "an encoder bias, with what rounding down takes away"
)
SUM = Q("sum", "i32", SUM_FRAC, -(2**29) - 2**28, 2**29 + 2**28, "W_jᵀx_j + b_j")

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
