"""The primitives. Each says what it returns for every input, which machine operations it is, what becomes of an
interval, and how it is written in C.

Signed primitives work on i32, those that end in `u` and the bitwise ones on u32. A result that does not fit wraps at 32
bits, here, in Numba and in C; the range check proves that only the primitives named `wrapping_…` ever do. Division by
zero gives 0 and INT32_MIN / -1 gives INT32_MIN, as the Arm dividers do; the range check refuses the first.

An i64 is a sum of products on its way to a word: `narrow` shifts it back and saturates. Its operations are priced as a
core without a long multiplier does them; one that has it takes less.

The operation classes are ADD SUB MUL DIV AND OR XOR NOT SHIFT ROTATE COMPARE SELECT. LOAD, STORE, BRANCH and INDEX
come from the syntax (`a[i]`, `if`, `for`, arithmetic on loop counters) and are counted by the readers.
"""

from functools import partial
from typing import Any

from sensorsim.language import intervals
from sensorsim.language.intervals import Mask, Span
from sensorsim.language.primitive import Primitive, primitive

WORD = 1 << 32
LEAST, MOST = -(1 << 31), (1 << 31) - 1  # signed words
LONG_ADD = ("ADD", "COMPARE", "ADD", "ADD")  # low words, carry, high words
LONG_SUB = ("SUB", "COMPARE", "SUB", "SUB")
LONG_MUL = (*("SHIFT",) * 6, *("AND",) * 4, *("MUL",) * 4, *("ADD",) * 4, "OR")  # by halves of the words
SATURATE = ("AND", "SELECT", *("XOR",) * 3, *("SHIFT",) * 2)
# For each operand, the operation class whose time depends on it, on cores whose table has a range of prices for it.
BY_FACTORS = (("MUL",), ("MUL",))  # no core of ours; where a core has no multiplier see `arithmetic.h`
BY_DIVISION = (("DIV",), ("DIV",))
BY_COUNT = ((), ("SHIFT",))  # cores without a barrel shifter
NEVER = ()


def _count(a: Span, k: Span) -> str | None:
    return None if k.lo >= 0 and k.hi <= 31 else f"shifts by {k}, and a count must be within 0 … 31"


def _turn(a: Span, k: Span) -> str | None:
    return None if k.lo >= 1 and k.hi <= 31 else f"rotates by {k}, and a count must be within 1 … 31"


def _divisor(a: Span, b: Span) -> str | None:
    return f"may divide by zero: the divisor is {b}" if b.lo <= 0 <= b.hi else None


_signed = partial(primitive, operands="i32 i32", result="i32", varies=NEVER)
_unsigned = partial(primitive, operands="u32 u32", result="u32", varies=NEVER)
_long = partial(primitive, operands="i64 i64", result="i64", varies=NEVER)
_compare = partial(primitive, "COMPARE", operands="i32 i32", result="flag", varies=NEVER)
_compareu = partial(primitive, "COMPARE", operands="u32 u32", result="flag", varies=NEVER)
_shift = partial(primitive, "SHIFT", operands="i32 u32", result="i32", needs=_count, varies=BY_COUNT)
_shiftu = partial(primitive, "SHIFT", operands="u32 u32", result="u32", needs=_count, varies=BY_COUNT)


@primitive(operands="u32", result="i32", interval=intervals.signed, wraps=True, c="(int32_t){0}", varies=NEVER)
def i32(a: Any) -> Any:
    """`a` read as a signed word; no operation."""
    return ((int(a) + (WORD >> 1)) % WORD) - (WORD >> 1)


@primitive(operands="i32", result="u32", interval=intervals.unsigned, wraps=True, c="(uint32_t){0}", varies=NEVER)
def u32(a: Any) -> Any:
    """`a` read as an unsigned word; no operation."""
    return int(a) % WORD


@primitive(operands="i64", result="i64", interval=intervals.same, c="(int64_t){0}", varies=NEVER)
def i64(a: Any) -> Any:
    """`a` as a signed number of 64 bits; no operation."""
    return int(a)


@_signed("ADD", interval=intervals.add, c="{0} + {1}")
def add(a: Any, b: Any) -> Any:
    """a + b, signed."""
    return i32(a + b)


@_signed("SUB", interval=intervals.sub, c="{0} - {1}")
def sub(a: Any, b: Any) -> Any:
    """a - b, signed."""
    return i32(a - b)


@_signed("MUL", interval=intervals.mul, c="ss_mul({0}, {1})", varies=BY_FACTORS)
def mul(a: Any, b: Any) -> Any:
    """The low word of a · b, signed."""
    return i32(a * b)


@_signed("DIV", interval=intervals.truncated, needs=_divisor, c="ss_div({0}, {1})", varies=BY_DIVISION)
def div(a: Any, b: Any) -> Any:
    """a / b rounded toward zero, signed; 0 when b is 0, INT32_MIN for INT32_MIN / -1."""
    if b == 0:
        return i32(0)
    # not abs(): Numba's abs of INT32_MIN is INT32_MIN, while 0 - a is as wide as it must be
    quotient = (0 - a if a < 0 else a) // (0 - b if b < 0 else b)
    return i32(quotient if (a < 0) == (b < 0) else -quotient)


@_shift(interval=intervals.left, c="(int32_t)((uint32_t){0} << {1})")
def shl(a: Any, k: Any) -> Any:
    """a · 2^k, signed, for 0 <= k < 32."""
    return i32(a << k)


@_shift(interval=intervals.right, c="ss_asr({0}, {1})")
def asr(a: Any, k: Any) -> Any:
    """a / 2^k rounded toward minus infinity, for 0 <= k < 32: the arithmetic shift."""
    return i32(a >> k)


@primitive("SHIFT", operands="i32", result="u32", interval=Mask, c="(uint32_t)ss_asr({0}, 31U)", varies=NEVER)
def sign_mask(a: Any) -> Any:
    """All ones when a is negative, else zero."""
    return u32(a >> 31)


@_unsigned("ADD", interval=intervals.add, c="{0} + {1}")
def addu(a: Any, b: Any) -> Any:
    """a + b, unsigned."""
    return u32(a + b)


@_unsigned("SUB", interval=intervals.sub, c="{0} - {1}")
def subu(a: Any, b: Any) -> Any:
    """a - b, unsigned."""
    return u32(a - b)


@_unsigned("MUL", interval=intervals.mul, c="ss_mulu({0}, {1})", varies=BY_FACTORS)
def mulu(a: Any, b: Any) -> Any:
    """The low word of a · b, unsigned."""
    return u32(a * b)


@_unsigned("DIV", interval=intervals.truncated, needs=_divisor, c="ss_divu({0}, {1})", varies=BY_DIVISION)
def divu(a: Any, b: Any) -> Any:
    """floor(a / b), unsigned; 0 when b is 0."""
    if b == 0:
        return u32(0)
    return u32(a // b)


@_shiftu(interval=intervals.left, c="{0} << {1}")
def shlu(a: Any, k: Any) -> Any:
    """a · 2^k, unsigned, for 0 <= k < 32."""
    return u32(a << k)


@_shiftu(interval=intervals.right, c="{0} >> {1}")
def shru(a: Any, k: Any) -> Any:
    """floor(a / 2^k), unsigned, for 0 <= k < 32."""
    return u32(a >> k)


@_unsigned("AND", interval=intervals.and_, c="{0} & {1}")
def and_(a: Any, b: Any) -> Any:
    """Bitwise and."""
    return u32(a & b)


@_unsigned("OR", interval=intervals.or_, c="{0} | {1}")
def or_(a: Any, b: Any) -> Any:
    """Bitwise or."""
    return u32(a | b)


@_unsigned("XOR", interval=intervals.xor, c="{0} ^ {1}")
def xor(a: Any, b: Any) -> Any:
    """Bitwise exclusive or."""
    return u32(a ^ b)


@primitive("NOT", operands="u32", result="u32", interval=intervals.not_, c="~{0}", varies=NEVER)
def not_(a: Any) -> Any:
    """Bitwise not."""
    return u32(~a)


@_compare(interval=intervals.at_least, c="ss_ge({0}, {1})", c_test="{0} >= {1}")
def ge(a: Any, b: Any) -> Any:
    """a >= b, signed."""
    return a >= b


@_compareu(interval=intervals.at_least, c="ss_geu({0}, {1})", c_test="{0} >= {1}")
def geu(a: Any, b: Any) -> Any:
    """a >= b, unsigned."""
    return a >= b


@_compare(interval=intervals.less, c="ss_lt({0}, {1})", c_test="{0} < {1}")
def lt(a: Any, b: Any) -> Any:
    """a < b, signed."""
    return a < b


@_compareu(interval=intervals.less, c="ss_ltu({0}, {1})", c_test="{0} < {1}")
def ltu(a: Any, b: Any) -> Any:
    """a < b, unsigned."""
    return a < b


@_compare(interval=intervals.equal, c="ss_equ((uint32_t){0}, (uint32_t){1})", c_test="{0} == {1}")
def eq(a: Any, b: Any) -> Any:
    """a == b, signed."""
    return a == b


@_compareu(interval=intervals.equal, c="ss_equ({0}, {1})", c_test="{0} == {1}")
def equ(a: Any, b: Any) -> Any:
    """a == b, unsigned."""
    return a == b


@_compare(interval=intervals.unequal, c="1U - ss_equ((uint32_t){0}, (uint32_t){1})", c_test="{0} != {1}")
def ne(a: Any, b: Any) -> Any:
    """a != b, signed."""
    return a != b


@_compareu(interval=intervals.unequal, c="1U - ss_equ({0}, {1})", c_test="{0} != {1}")
def neu(a: Any, b: Any) -> Any:
    """a != b, unsigned."""
    return a != b


@_signed("SELECT", operands="flag i32 i32", interval=intervals.either, c="ss_select({0}, {1}, {2})")
def select(condition: Any, a: Any, b: Any) -> Any:
    """a where the comparison holds, else b; both are evaluated, so no branch depends on the data."""
    return i32(a) if condition else i32(b)


@_unsigned("SELECT", operands="flag u32 u32", interval=intervals.either, c="ss_selectu({0}, {1}, {2})")
def selectu(condition: Any, a: Any, b: Any) -> Any:
    """a where the comparison holds, else b; both are evaluated, so no branch depends on the data."""
    return u32(a) if condition else u32(b)


@_unsigned("COMPARE", "SELECT", interval=intervals.smaller, c="ss_minu({0}, {1})")
def minu(a: Any, b: Any) -> Any:
    """The smaller of two unsigned words: a compare and a select."""
    return u32(a) if a < b else u32(b)


@_unsigned("COMPARE", "SELECT", interval=intervals.larger, c="ss_maxu({0}, {1})")
def maxu(a: Any, b: Any) -> Any:
    """The larger of two unsigned words: a compare and a select."""
    return u32(a) if a > b else u32(b)


@_signed("COMPARE", "SELECT", interval=intervals.smaller, c="ss_min({0}, {1})")
def min_(a: Any, b: Any) -> Any:
    """The smaller of two signed words: a compare and a select."""
    return i32(a) if a < b else i32(b)


@_signed("COMPARE", "SELECT", interval=intervals.larger, c="ss_max({0}, {1})")
def max_(a: Any, b: Any) -> Any:
    """The larger of two signed words: a compare and a select."""
    return i32(a) if a > b else i32(b)


@_unsigned("ADD", interval=intervals.wrapping_add, wraps=True, c="{0} + {1}")
def wrapping_addu(a: Any, b: Any) -> Any:
    """a + b modulo 2^32, unsigned; meant to wrap, as ciphers do."""
    return u32(a + b)


@_unsigned("SUB", interval=intervals.wrapping_sub, wraps=True, c="{0} - {1}")
def wrapping_subu(a: Any, b: Any) -> Any:
    """a - b modulo 2^32, unsigned; meant to wrap."""
    return u32(a - b)


@_unsigned("MUL", interval=intervals.any_word, wraps=True, c="ss_mulu({0}, {1})", varies=BY_FACTORS)
def wrapping_mulu(a: Any, b: Any) -> Any:
    """a · b modulo 2^32, unsigned; meant to wrap, as hashes do."""
    return u32(a * b)


@_shiftu(interval=intervals.any_word, wraps=True, c="{0} << {1}")
def wrapping_shlu(a: Any, k: Any) -> Any:
    """a · 2^k modulo 2^32, unsigned, for 0 <= k < 32; bits that are shifted out are meant to go."""
    return u32(a << k)


@_unsigned("ROTATE", interval=intervals.any_word, needs=_turn, c="ss_rotlu({0}, {1})", varies=((), ("ROTATE",)))
def rotlu(a: Any, k: Any) -> Any:
    """a rotated left by k bits, for 0 < k < 32."""
    return u32((a << k) | (a >> (32 - k)))


@_signed("ADD", "NOT", *SATURATE, interval=intervals.saturating_add, c="ss_saturating_add({0}, {1})")
def saturating_add(a: Any, b: Any) -> Any:
    """a + b, or the end of the signed words that it lies beyond."""
    total = a + b
    return i32(LEAST) if total < LEAST else i32(MOST) if total > MOST else i32(total)


@_signed("SUB", *SATURATE, interval=intervals.saturating_sub, c="ss_saturating_sub({0}, {1})")
def saturating_sub(a: Any, b: Any) -> Any:
    """a - b, or the end of the signed words that it lies beyond."""
    rest = a - b
    return i32(LEAST) if rest < LEAST else i32(MOST) if rest > MOST else i32(rest)


@_unsigned("ADD", "COMPARE", "SUB", "OR", interval=intervals.saturating_addu, c="ss_saturating_addu({0}, {1})")
def saturating_addu(a: Any, b: Any) -> Any:
    """a + b, at most 2^32 - 1."""
    return u32(WORD - 1) if a > WORD - 1 - b else u32(a + b)


@_unsigned("SUB", "COMPARE", "SUB", "AND", "NOT", interval=intervals.saturating_subu, c="ss_saturating_subu({0}, {1})")
def saturating_subu(a: Any, b: Any) -> Any:
    """a - b, at least 0."""
    return u32(0) if a < b else u32(a - b)


@_long(*LONG_ADD, interval=intervals.add, c="{0} + {1}")
def add64(a: Any, b: Any) -> Any:
    """a + b, 64 bits."""
    return i64(a + b)


@_long(*LONG_SUB, interval=intervals.sub, c="{0} - {1}")
def sub64(a: Any, b: Any) -> Any:
    """a - b, 64 bits."""
    return i64(a - b)


@_long(*LONG_MUL, operands="i32 i32", interval=intervals.mul, c="ss_mul64({0}, {1})")
def mul64(a: Any, b: Any) -> Any:
    """a · b, all 64 bits of it."""
    return i64(i64(a) * i64(b))


@_long(*LONG_MUL, *LONG_ADD, operands="i64 i32 i32", interval=intervals.multiply_add, c="{0} + ss_mul64({1}, {2})")
def mac(total: Any, a: Any, b: Any) -> Any:
    """total + a · b, 64 bits: multiply and accumulate."""
    return i64(total + i64(a) * i64(b))


@_long(*("SHIFT",) * 4, "SUB", "OR", operands="i64 u32", interval=intervals.right, needs=_count,
       c="ss_asr64({0}, {1})", varies=BY_COUNT)  # fmt: skip
def asr64(a: Any, k: Any) -> Any:
    """a / 2^k rounded toward minus infinity, 64 bits, for 0 <= k < 32."""
    return i64(a >> k)


@primitive(*("SHIFT",) * 7, *("SUB",) * 2, *("OR",) * 2, *("XOR",) * 2, "SELECT", operands="i64 u32", result="i32",
           interval=intervals.narrow, needs=_count, c="ss_narrow({0}, {1})", varies=BY_COUNT)  # fmt: skip
def narrow(a: Any, k: Any) -> Any:
    """a / 2^k rounded toward minus infinity, or the end of the signed words that it lies beyond, for 0 <= k < 32."""
    shifted = a >> k
    return i32(LEAST) if shifted < LEAST else i32(MOST) if shifted > MOST else i32(shifted)


__all__ = [name for name, one in list(globals().items()) if isinstance(one, Primitive)]
