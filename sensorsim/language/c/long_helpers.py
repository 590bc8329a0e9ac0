"""C functions behind comparisons, saturating arithmetic and 64-bit sums; see `helpers` for why none of them branches.

A compiler for a core without long instructions calls a routine of its runtime for a 64-bit product or a shift by a
count. Its time may depend on the operands, and a firmware may not link it. So both are done here, word by word.
"""

from sensorsim.language.c.helpers import OPAQUE

LT = (
    OPAQUE,
    """\
/* 1 where a < b, else 0, without a branch: the sign of the difference, which fits 33 bits, is 0 or -1. */
static inline uint32_t ss_lt(int32_t a, int32_t b)
{
    const uint64_t wide = (uint64_t)((int64_t)a - b);
    return 0U - ss_opaque((uint32_t)(wide >> 32));
}
""",
)

LTU = (
    OPAQUE,
    """\
/* 1 where a < b, else 0, without a branch: the borrow of the difference is 0 or -1. */
static inline uint32_t ss_ltu(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)a - b;
    return 0U - ss_opaque((uint32_t)(wide >> 32));
}
""",
)

EQU = (
    OPAQUE,
    """\
/* 1 where a == b, else 0, without a branch: of all words, only 0 borrows when 1 is taken off. */
static inline uint32_t ss_equ(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)(a ^ b) - 1U;
    return 0U - ss_opaque((uint32_t)(wide >> 32));
}
""",
)

SELECT = """\
/* The same for signed words. */
static inline int32_t ss_select(uint32_t condition, int32_t a, int32_t b)
{
    return (int32_t)ss_selectu(condition, (uint32_t)a, (uint32_t)b);
}
"""

SATURATING_ADD = """\
/* a + b, or the end of the signed words that it lies beyond: the signs of a, b and the sum say whether it does. */
static inline int32_t ss_saturating_add(int32_t a, int32_t b)
{
    const uint32_t sum = (uint32_t)a + (uint32_t)b;
    const uint32_t beyond = ss_opaque(((uint32_t)a ^ sum) & ~((uint32_t)a ^ (uint32_t)b));
    const uint32_t end = 0x7FFFFFFFU ^ ss_opaque((uint32_t)ss_asr(a, 31U));
    return (int32_t)(sum + ((end - sum) & ss_opaque((uint32_t)ss_asr((int32_t)beyond, 31U))));
}
"""

SATURATING_SUB = """\
/* a - b, or the end of the signed words that it lies beyond. */
static inline int32_t ss_saturating_sub(int32_t a, int32_t b)
{
    const uint32_t rest = (uint32_t)a - (uint32_t)b;
    const uint32_t beyond = ss_opaque(((uint32_t)a ^ rest) & ((uint32_t)a ^ (uint32_t)b));
    const uint32_t end = 0x7FFFFFFFU ^ ss_opaque((uint32_t)ss_asr(a, 31U));
    return (int32_t)(rest + ((end - rest) & ss_opaque((uint32_t)ss_asr((int32_t)beyond, 31U))));
}
"""

SATURATING_ADDU = """\
/* a + b, or 2^32 - 1 where the sum carries. */
static inline uint32_t ss_saturating_addu(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)a + b;
    return (uint32_t)wide | ss_opaque(0U - (uint32_t)(wide >> 32));
}
"""

SATURATING_SUBU = """\
/* a - b, or 0 where the difference borrows. */
static inline uint32_t ss_saturating_subu(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)a - b;
    return (uint32_t)wide & ~ss_opaque((uint32_t)(wide >> 32));
}
"""

# Not on the Cortex-M3, whose long multiply ends early, nor on the M0+, which has none.
MUL64 = """\
#if (defined(SS_KNOWN_MUL) || defined(SS_HW_MUL)) && !defined(SS_NO_HW_MUL)
#if defined(__i386__) || defined(__x86_64__) || defined(_M_IX86) || defined(_M_X64)
#define SS_LONG_MUL
#elif defined(__riscv_mul) || defined(__riscv_zmmul) || defined(__ARM_ARCH_7EM__)
#define SS_LONG_MUL
#elif defined(__ARM_ARCH_8M_MAIN__)
#define SS_LONG_MUL
#endif
#endif

/*
 * All 64 bits of a * b: by the core's own instruction where it is known to take the same time for all
 * operands, else from products of halves of the words.
 */
static inline int64_t ss_mul64(int32_t a, int32_t b)
{
#ifdef SS_LONG_MUL
    return (int64_t)a * b;
#else
    const uint32_t low_a = (uint32_t)a & 0xFFFFU;
    const uint32_t low_b = (uint32_t)b & 0xFFFFU;
    const int32_t high_a = ss_asr(a, 16U);
    const int32_t high_b = ss_asr(b, 16U);
    const uint32_t low = ss_mulu(low_a, low_b);
    const int32_t middle = ss_mul(high_a, (int32_t)low_b) + (int32_t)(low >> 16);
    const int32_t other = ss_mul((int32_t)low_a, high_b) + (int32_t)((uint32_t)middle & 0xFFFFU);
    const int32_t high = ss_mul(high_a, high_b) + ss_asr(middle, 16U) + ss_asr(other, 16U);
    return (int64_t)(((uint64_t)(uint32_t)high << 32) | ((uint32_t)other << 16) | (low & 0xFFFFU));
#endif
}
"""

ASR64 = """\
/* a / 2^k rounded toward minus infinity, for k < 32, word by word. */
static inline int64_t ss_asr64(int64_t a, uint32_t k)
{
    const uint32_t high = (uint32_t)((uint64_t)a >> 32);
    const uint32_t low = ((uint32_t)a >> k) | ((high << 1) << (31U - k));
    return (int64_t)(((uint64_t)(uint32_t)ss_asr((int32_t)high, k) << 32) | low);
}
"""

NARROW = """\
/*
 * a / 2^k rounded toward minus infinity, for k < 32, or the end of the signed words that it lies beyond:
 * it fits where the high word of the quotient is the sign of the low one.
 */
static inline int32_t ss_narrow(int64_t a, uint32_t k)
{
    const uint32_t high = (uint32_t)((uint64_t)a >> 32);
    const uint32_t low = ((uint32_t)a >> k) | ((high << 1) << (31U - k));
    const uint32_t rest = (uint32_t)ss_asr((int32_t)high, k) ^ (uint32_t)ss_asr((int32_t)low, 31U);
    const uint32_t beyond = ss_opaque(rest | (0U - ss_opaque(rest)));
    const uint32_t end = 0x7FFFFFFFU ^ ss_opaque((uint32_t)ss_asr((int32_t)high, 31U));
    return (int32_t)(low + ((end - low) & ss_opaque((uint32_t)ss_asr((int32_t)beyond, 31U))));
}
"""
