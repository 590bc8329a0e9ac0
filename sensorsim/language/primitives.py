"""The primitives. Each says what it returns for every input, which machine operations it is, what becomes of an
interval, and how it is written in C.

Signed primitives work on i32, those that end in `u` and the bitwise ones on u32. A result that does not fit wraps at 32
bits, here, in Numba and in C; the range check proves that only the primitives named `wrapping_…` ever do. Division by
zero gives 0 and INT32_MIN / -1 gives INT32_MIN, as the Arm dividers do; the range check refuses the first.

The operation classes are ADD SUB MUL DIV AND OR XOR NOT SHIFT ROTATE COMPARE SELECT. LOAD, STORE, BRANCH and INDEX
come from the syntax (`a[i]`, `if`, `for`, arithmetic on loop counters) and are counted by the readers.
"""

from typing import Any

from sensorsim.language import intervals
from sensorsim.language.c.helpers import ASR, DIV, DIVU, GE, GEU, MAX, MAXU, MIN, MINU, MULU, OPAQUE, ROTLU, SELECTU
from sensorsim.language.intervals import Mask, Span
from sensorsim.language.primitive import primitive

WORD = 1 << 32
# For each operand, the operation class whose time depends on it, on cores whose table has a range of prices for it.
BY_FACTORS = (("MUL",), ("MUL",))  # no core of ours; where a core has no multiplier see MULU
BY_DIVISION = (("DIV",), ("DIV",))
BY_COUNT = ((), ("SHIFT",))  # cores without a barrel shifter
NEVER = ()


def _count(a: Span, k: Span) -> str | None:
    return None if k.lo >= 0 and k.hi <= 31 else f"shifts by {k}, and a count must be within 0 … 31"


def _turn(a: Span, k: Span) -> str | None:
    return None if k.lo >= 1 and k.hi <= 31 else f"rotates by {k}, and a count must be within 1 … 31"


def _divisor(a: Span, b: Span) -> str | None:
    return f"may divide by zero: the divisor is {b}" if b.lo <= 0 <= b.hi else None


@primitive(operands="u32", result="i32", interval=intervals.signed, wraps=True, c="(int32_t){0}", varies=NEVER)
def i32(a: Any) -> Any:
    """`a` read as a signed word; no operation."""
    return ((int(a) + (WORD >> 1)) % WORD) - (WORD >> 1)


@primitive(operands="i32", result="u32", interval=intervals.unsigned, wraps=True, c="(uint32_t){0}", varies=NEVER)
def u32(a: Any) -> Any:
    """`a` read as an unsigned word; no operation."""
    return int(a) % WORD


@primitive("ADD", operands="i32 i32", result="i32", interval=intervals.add, c="{0} + {1}", varies=NEVER)
def add(a: Any, b: Any) -> Any:
    """a + b, signed."""
    return i32(a + b)


@primitive("SUB", operands="i32 i32", result="i32", interval=intervals.sub, c="{0} - {1}", varies=NEVER)
def sub(a: Any, b: Any) -> Any:
    """a - b, signed."""
    return i32(a - b)


@primitive(
    "MUL",
    operands="i32 i32",
    result="i32",
    interval=intervals.mul,
    c="ss_mul({0}, {1})",
    helper=MULU,
    varies=BY_FACTORS,
)
def mul(a: Any, b: Any) -> Any:
    """The low word of a · b, signed."""
    return i32(a * b)


@primitive(
    "DIV",
    operands="i32 i32",
    result="i32",
    interval=intervals.truncated,
    needs=_divisor,
    c="ss_div({0}, {1})",
    helper=(ASR, DIVU, DIV),
    varies=BY_DIVISION,
)
def div(a: Any, b: Any) -> Any:
    """a / b rounded toward zero, signed; 0 when b is 0, INT32_MIN for INT32_MIN / -1."""
    if b == 0:
        return i32(0)
    # not abs(): Numba's abs of INT32_MIN is INT32_MIN, while 0 - a is as wide as it must be
    quotient = (0 - a if a < 0 else a) // (0 - b if b < 0 else b)
    return i32(quotient if (a < 0) == (b < 0) else -quotient)


@primitive(
    "SHIFT",
    operands="i32 u32",
    result="i32",
    interval=intervals.left,
    needs=_count,
    c="(int32_t)((uint32_t){0} << {1})",
    varies=BY_COUNT,
)
def shl(a: Any, k: Any) -> Any:
    """a · 2^k, signed, for 0 <= k < 32."""
    return i32(a << k)


@primitive(
    "SHIFT",
    operands="i32 u32",
    result="i32",
    interval=intervals.right,
    needs=_count,
    c="ss_asr({0}, {1})",
    helper=ASR,
    varies=BY_COUNT,
)
def asr(a: Any, k: Any) -> Any:
    """a / 2^k rounded toward minus infinity, for 0 <= k < 32: the arithmetic shift."""
    return i32(a >> k)


@primitive(
    "SHIFT", operands="i32", result="u32", interval=Mask, c="(uint32_t)ss_asr({0}, 31U)", helper=ASR, varies=NEVER
)
def sign_mask(a: Any) -> Any:
    """All ones when a is negative, else zero."""
    return u32(a >> 31)


@primitive("ADD", operands="u32 u32", result="u32", interval=intervals.add, c="{0} + {1}", varies=NEVER)
def addu(a: Any, b: Any) -> Any:
    """a + b, unsigned."""
    return u32(a + b)


@primitive("SUB", operands="u32 u32", result="u32", interval=intervals.sub, c="{0} - {1}", varies=NEVER)
def subu(a: Any, b: Any) -> Any:
    """a - b, unsigned."""
    return u32(a - b)


@primitive(
    "MUL",
    operands="u32 u32",
    result="u32",
    interval=intervals.mul,
    c="ss_mulu({0}, {1})",
    helper=MULU,
    varies=BY_FACTORS,
)
def mulu(a: Any, b: Any) -> Any:
    """The low word of a · b, unsigned."""
    return u32(a * b)


@primitive(
    "DIV",
    operands="u32 u32",
    result="u32",
    interval=intervals.truncated,
    needs=_divisor,
    c="ss_divu({0}, {1})",
    helper=DIVU,
    varies=BY_DIVISION,
)
def divu(a: Any, b: Any) -> Any:
    """floor(a / b), unsigned; 0 when b is 0."""
    if b == 0:
        return u32(0)
    return u32(a // b)


@primitive(
    "SHIFT",
    operands="u32 u32",
    result="u32",
    interval=intervals.left,
    needs=_count,
    c="{0} << {1}",
    varies=BY_COUNT,
)
def shlu(a: Any, k: Any) -> Any:
    """a · 2^k, unsigned, for 0 <= k < 32."""
    return u32(a << k)


@primitive(
    "SHIFT",
    operands="u32 u32",
    result="u32",
    interval=intervals.right,
    needs=_count,
    c="{0} >> {1}",
    varies=BY_COUNT,
)
def shru(a: Any, k: Any) -> Any:
    """floor(a / 2^k), unsigned, for 0 <= k < 32."""
    return u32(a >> k)


@primitive("AND", operands="u32 u32", result="u32", interval=intervals.and_, c="{0} & {1}", varies=NEVER)
def and_(a: Any, b: Any) -> Any:
    """Bitwise and."""
    return u32(a & b)


@primitive("OR", operands="u32 u32", result="u32", interval=intervals.or_, c="{0} | {1}", varies=NEVER)
def or_(a: Any, b: Any) -> Any:
    """Bitwise or."""
    return u32(a | b)


@primitive("XOR", operands="u32 u32", result="u32", interval=intervals.xor, c="{0} ^ {1}", varies=NEVER)
def xor(a: Any, b: Any) -> Any:
    """Bitwise exclusive or."""
    return u32(a ^ b)


@primitive("NOT", operands="u32", result="u32", interval=intervals.not_, c="~{0}", varies=NEVER)
def not_(a: Any) -> Any:
    """Bitwise not."""
    return u32(~a)


@primitive(
    "COMPARE",
    operands="i32 i32",
    result="flag",
    interval=intervals.at_least,
    c="ss_ge({0}, {1})",
    c_test="{0} >= {1}",
    helper=GE,
    varies=NEVER,
)
def ge(a: Any, b: Any) -> Any:
    """a >= b, signed."""
    return a >= b


@primitive(
    "COMPARE",
    operands="u32 u32",
    result="flag",
    interval=intervals.at_least,
    c="ss_geu({0}, {1})",
    c_test="{0} >= {1}",
    helper=GEU,
    varies=NEVER,
)
def geu(a: Any, b: Any) -> Any:
    """a >= b, unsigned."""
    return a >= b


@primitive(
    "SELECT",
    operands="flag u32 u32",
    result="u32",
    interval=intervals.either,
    c="ss_selectu({0}, {1}, {2})",
    helper=(OPAQUE, SELECTU),
    varies=NEVER,
)
def selectu(condition: Any, a: Any, b: Any) -> Any:
    """a where the comparison holds, else b; both are evaluated, so no branch depends on the data."""
    return u32(a) if condition else u32(b)


@primitive(
    "COMPARE",
    "SELECT",
    operands="u32 u32",
    result="u32",
    interval=intervals.smaller,
    c="ss_minu({0}, {1})",
    c_near="ss_minu_near({0}, {1})",
    helper=(ASR, OPAQUE, *MINU),
    varies=NEVER,
)
def minu(a: Any, b: Any) -> Any:
    """The smaller of two unsigned words: a compare and a select."""
    return u32(a) if a < b else u32(b)


@primitive(
    "COMPARE",
    "SELECT",
    operands="u32 u32",
    result="u32",
    interval=intervals.larger,
    c="ss_maxu({0}, {1})",
    c_near="ss_maxu_near({0}, {1})",
    helper=(ASR, OPAQUE, *MAXU),
    varies=NEVER,
)
def maxu(a: Any, b: Any) -> Any:
    """The larger of two unsigned words: a compare and a select."""
    return u32(a) if a > b else u32(b)


@primitive(
    "COMPARE",
    "SELECT",
    operands="i32 i32",
    result="i32",
    interval=intervals.smaller,
    c="ss_min({0}, {1})",
    c_near="ss_min_near({0}, {1})",
    helper=(ASR, OPAQUE, *MIN),
    varies=NEVER,
)
def min_(a: Any, b: Any) -> Any:
    """The smaller of two signed words: a compare and a select."""
    return i32(a) if a < b else i32(b)


@primitive(
    "COMPARE",
    "SELECT",
    operands="i32 i32",
    result="i32",
    interval=intervals.larger,
    c="ss_max({0}, {1})",
    c_near="ss_max_near({0}, {1})",
    helper=(ASR, OPAQUE, *MAX),
    varies=NEVER,
)
def max_(a: Any, b: Any) -> Any:
    """The larger of two signed words: a compare and a select."""
    return i32(a) if a > b else i32(b)


@primitive(
    "ADD", operands="u32 u32", result="u32", interval=intervals.any_word, wraps=True, c="{0} + {1}", varies=NEVER
)
def wrapping_addu(a: Any, b: Any) -> Any:
    """a + b modulo 2^32, unsigned; meant to wrap, as ciphers do."""
    return u32(a + b)


@primitive(
    "SUB", operands="u32 u32", result="u32", interval=intervals.any_word, wraps=True, c="{0} - {1}", varies=NEVER
)
def wrapping_subu(a: Any, b: Any) -> Any:
    """a - b modulo 2^32, unsigned; meant to wrap."""
    return u32(a - b)


@primitive(
    "MUL",
    operands="u32 u32",
    result="u32",
    interval=intervals.any_word,
    wraps=True,
    c="ss_mulu({0}, {1})",
    helper=MULU,
    varies=BY_FACTORS,
)
def wrapping_mulu(a: Any, b: Any) -> Any:
    """a · b modulo 2^32, unsigned; meant to wrap, as hashes do."""
    return u32(a * b)


@primitive(
    "SHIFT",
    operands="u32 u32",
    result="u32",
    interval=intervals.any_word,
    needs=_count,
    wraps=True,
    c="{0} << {1}",
    varies=BY_COUNT,
)
def wrapping_shlu(a: Any, k: Any) -> Any:
    """a · 2^k modulo 2^32, unsigned, for 0 <= k < 32; bits that are shifted out are meant to go."""
    return u32(a << k)


@primitive(
    "ROTATE",
    operands="u32 u32",
    result="u32",
    interval=intervals.any_word,
    needs=_turn,
    c="ss_rotlu({0}, {1})",
    helper=ROTLU,
    varies=((), ("ROTATE",)),
)
def rotlu(a: Any, k: Any) -> Any:
    """a rotated left by k bits, for 0 < k < 32."""
    return u32((a << k) | (a >> (32 - k)))
