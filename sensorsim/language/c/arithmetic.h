/*
 * The few operations that C leaves open, made exact: shifts of negative numbers, division by zero,
 * INT32_MIN / -1, and those whose time may depend on their operands: comparisons, products. Every other
 * operation of the kernels is a plain C operator.
 *
 * Define SS_NO_HW_DIV on cores without a divider (Cortex-M0, M0+): division is then done here, in a
 * number of steps that does not depend on the operands, and no compiler runtime is linked.
 */
#ifndef SS_ARITHMETIC_H
#define SS_ARITHMETIC_H

#include <stdint.h>

/* What the kernels rely on. A compiler that differs stops here: the array size becomes negative. */
#define SS_CHECK(name, holds) typedef char ss_check_##name[(holds) ? 1 : -1]

SS_CHECK(char_has_8_bits, ((unsigned char)-1) == 255U);
SS_CHECK(int32_has_32_bits, sizeof(int32_t) == 4U);
SS_CHECK(uint16_has_16_bits, sizeof(uint16_t) == 2U);
SS_CHECK(int_has_16_bits_or_more, sizeof(int) >= 2U);
SS_CHECK(negative_numbers_are_two_s_complement, (-1 & 3) == 3);
SS_CHECK(unsigned_to_signed_keeps_the_bits, (int32_t)0x80000000U == INT32_MIN);
SS_CHECK(right_shift_keeps_the_sign, ((int32_t)-5 >> 1) == -3);
SS_CHECK(division_rounds_toward_zero, ((-7 / 2) == -3) && ((-7 % 2) == -1));
// ---
/*
 * Every function of a private header is local to the file that includes it, so that a compiler folds
 * the constants it is called with. Define SS_LOCAL empty to have them external, in one file only.
 */
#ifndef SS_LOCAL
#ifdef __SDCC
#define SS_LOCAL static /* SDCC inlines whatever it may, past the size of its memory */
#else
#define SS_LOCAL static inline
#endif
#endif
// ---
/* a / 2^k rounded toward minus infinity, for k < 32: the arithmetic shift (checked above). */
static inline int32_t ss_asr(int32_t a, uint32_t k)
{
    return a >> k;
}
// ---
/*
 * The word itself; the compiler does not see what it holds, so it cannot turn the choice that is made
 * with it back into a branch, whose direction would show in the time taken.
 */
static inline uint32_t ss_opaque(uint32_t word)
{
    uint32_t hidden = word;
#ifdef __GNUC__
    __asm__("" : "+r"(hidden));
#endif
    return hidden;
}
// ---
/* The smaller of two words: b, or b + (a - b) where a - b borrows. */
static inline uint32_t ss_minu(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)a - b;
    return b + ((a - b) & ss_opaque((uint32_t)(wide >> 32)));
}

/* The same for words whose difference is proved to fit 31 bits: its sign says it all. */
static inline uint32_t ss_minu_near(uint32_t a, uint32_t b)
{
    const uint32_t over = ss_opaque(a - b);
    return b + (over & (uint32_t)ss_asr((int32_t)over, 31U));
}
// ---
/* The larger of two words: b, or b + (a - b) where b - a borrows. */
static inline uint32_t ss_maxu(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)b - a;
    return b + ((a - b) & ss_opaque((uint32_t)(wide >> 32)));
}

/* The same for words whose difference is proved to fit 31 bits. */
static inline uint32_t ss_maxu_near(uint32_t a, uint32_t b)
{
#ifdef __ARM_ARCH
    const uint32_t over = ss_opaque(a - b);
    return b + (over & ~(uint32_t)ss_asr((int32_t)over, 31U));
#else
    const uint32_t under = ss_opaque(b - a);
    return b - (under & (uint32_t)ss_asr((int32_t)under, 31U));
#endif
}
// ---
/* The smaller of two signed words; the difference of two words fits 33 bits. */
static inline int32_t ss_min(int32_t a, int32_t b)
{
    const uint64_t wide = (uint64_t)((int64_t)a - b);
    return (int32_t)((uint32_t)b + (((uint32_t)a - (uint32_t)b) & ss_opaque((uint32_t)(wide >> 32))));
}

/* The same for words whose difference is proved to fit 32 bits. */
static inline int32_t ss_min_near(int32_t a, int32_t b)
{
    const uint32_t over = ss_opaque((uint32_t)a - (uint32_t)b);
    return (int32_t)((uint32_t)b + (over & (uint32_t)ss_asr((int32_t)over, 31U)));
}
// ---
/* The larger of two signed words. */
static inline int32_t ss_max(int32_t a, int32_t b)
{
    const uint64_t wide = (uint64_t)((int64_t)b - a);
    return (int32_t)((uint32_t)b + (((uint32_t)a - (uint32_t)b) & ss_opaque((uint32_t)(wide >> 32))));
}

/* The same for words whose difference is proved to fit 32 bits. */
static inline int32_t ss_max_near(int32_t a, int32_t b)
{
#ifdef __ARM_ARCH
    const uint32_t over = ss_opaque((uint32_t)a - (uint32_t)b);
    return (int32_t)((uint32_t)b + (over & ~(uint32_t)ss_asr((int32_t)over, 31U)));
#else
    const uint32_t under = ss_opaque((uint32_t)b - (uint32_t)a);
    return (int32_t)((uint32_t)b - (under & (uint32_t)ss_asr((int32_t)under, 31U)));
#endif
}
// --- Hidden as a mask: of (a - b) >> 63 clang makes a branch on the M0+, which has no instruction that gives 0 or 1.
/* 1 where a >= b, else 0, without a branch: the sign of the difference, which fits 33 bits, is 0 or -1. */
static inline uint32_t ss_ge(int32_t a, int32_t b)
{
    const uint64_t wide = (uint64_t)((int64_t)a - b);
    return 1U + ss_opaque((uint32_t)(wide >> 32));
}
// ---
/* 1 where a >= b, else 0, without a branch: the borrow of the difference is 0 or -1. */
static inline uint32_t ss_geu(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)a - b;
    return 1U + ss_opaque((uint32_t)(wide >> 32));
}

/*
 * The same for words whose difference is proved to fit 31 bits, a below 2^32 - 1: the sign of b - a - 1,
 * or on RISC-V, where a comparison is an instruction, b < a + 1.
 */
static inline uint32_t ss_geu_near(uint32_t a, uint32_t b)
{
#ifdef __riscv
    return (b < ss_opaque(a + 1U)) ? 1U : 0U;
#else
    return (ss_opaque(~a) + b) >> 31;
#endif
}
// ---
/* 1 where a < b, else 0, without a branch: the sign of the difference, which fits 33 bits, is 0 or -1. */
static inline uint32_t ss_lt(int32_t a, int32_t b)
{
    const uint64_t wide = (uint64_t)((int64_t)a - b);
    return 0U - ss_opaque((uint32_t)(wide >> 32));
}
// ---
/* 1 where a < b, else 0, without a branch: the borrow of the difference is 0 or -1. */
static inline uint32_t ss_ltu(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)a - b;
    return 0U - ss_opaque((uint32_t)(wide >> 32));
}
// ---
/* 1 where a == b, else 0, without a branch: of all words, only 0 borrows when 1 is taken off. */
static inline uint32_t ss_equ(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)(a ^ b) - 1U;
    return 0U - ss_opaque((uint32_t)(wide >> 32));
}
// ---
/* a where the condition is 1, b where it is 0. */
static inline uint32_t ss_selectu(uint32_t condition, uint32_t a, uint32_t b)
{
    return b + ((a - b) & ss_opaque(0U - condition));
}
// ---
/* The same for signed words. */
static inline int32_t ss_select(uint32_t condition, int32_t a, int32_t b)
{
    return (int32_t)ss_selectu(condition, (uint32_t)a, (uint32_t)b);
}
// ---
/* a rotated left by k bits, for 0 < k < 32. */
static inline uint32_t ss_rotlu(uint32_t a, uint32_t k)
{
    return (a << k) | (a >> (32U - k));
}
// --- ss_opaque also keeps a compiler from seeing that the loop is a product, of which it would make a call.
/*
 * Whether the core has a multiplier that takes the same time for all operands: known of these, by what
 * their compilers define. Define SS_HW_MUL for another core that has one, SS_NO_HW_MUL where it ends early.
 */
#if defined(__i386__) || defined(__x86_64__) || defined(_M_IX86) || defined(_M_X64)
#define SS_KNOWN_MUL
#elif defined(__riscv_mul) || defined(__riscv_zmmul) || defined(__AVR_HAVE_MUL__)
#define SS_KNOWN_MUL
#elif defined(__ARM_ARCH)
#if __ARM_ARCH >= 6
#define SS_KNOWN_MUL
#endif
#endif

#if (defined(SS_KNOWN_MUL) || defined(SS_HW_MUL)) && !defined(SS_NO_HW_MUL)

/* The low word of a * b. */
static inline uint32_t ss_mulu(uint32_t a, uint32_t b)
{
    return a * b;
}

/* The same, signed; the product is proved to fit. */
static inline int32_t ss_mul(int32_t a, int32_t b)
{
    return a * b;
}

#else

/* The low word of a * b: one bit of b in each of 32 steps, the highest first, no branch on data. */
static inline uint32_t ss_mulu(uint32_t a, uint32_t b)
{
    uint32_t rest = b;
    uint32_t product = 0U;
    for (uint32_t bit = 0U; bit < 32U; bit++) {
        product = (product << 1) + (a & ss_opaque((uint32_t)ss_asr((int32_t)rest, 31U)));
        rest <<= 1;
    }
    return product;
}

/* The same, signed; the product is proved to fit. */
static inline int32_t ss_mul(int32_t a, int32_t b)
{
    const uint32_t product = ss_mulu((uint32_t)a, (uint32_t)b);
    return (int32_t)product;
}

#endif
// ---
#ifdef SS_NO_HW_DIV

/* a / b rounded down, 0 when b is 0: one bit of the quotient in each of 32 steps, no branch on data. */
static inline uint32_t ss_divu(uint32_t a, uint32_t b)
{
    uint32_t dividend = a;
    uint32_t rest = 0U;
    uint32_t quotient = 0U;
    for (uint32_t bit = 0U; bit < 32U; bit++) {
        /* The rest with the next bit of the dividend, 33 bits, less the divisor: a borrow says it did not fit. */
        const uint64_t wide = (((uint64_t)rest << 1) | (dividend >> 31)) - b;
        const uint32_t borrow = (uint32_t)(wide >> 32);
        dividend <<= 1;
        rest = (uint32_t)wide + (b & borrow);
        quotient = (quotient << 1) | (1U + borrow);
    }
    /* Every step "fits" a divisor of 0; its borrow with 1 taken off clears the quotient. */
    const uint64_t zero = (uint64_t)b - 1U;
    return quotient & ~(uint32_t)(zero >> 32);
}

#else

/* a / b rounded down, 0 when b is 0. */
static inline uint32_t ss_divu(uint32_t a, uint32_t b)
{
    return (b == 0U) ? 0U : (a / b);
}

#endif
// ---
/* a / b rounded toward zero; 0 when b is 0, INT32_MIN for INT32_MIN / -1. */
static inline int32_t ss_div(int32_t a, int32_t b)
{
#ifdef SS_NO_HW_DIV
    const uint32_t sign_a = (uint32_t)ss_asr(a, 31U);
    const uint32_t sign_b = (uint32_t)ss_asr(b, 31U);
    const uint32_t sign = sign_a ^ sign_b;
    /* (v ^ sign) - sign is the magnitude of v, and gives it back its sign. */
    const uint32_t quotient = ss_divu(((uint32_t)a ^ sign_a) - sign_a, ((uint32_t)b ^ sign_b) - sign_b);
    const uint32_t signed_quotient = (quotient ^ sign) - sign;
    return (int32_t)signed_quotient;
#else
    const uint32_t negated = 0U - (uint32_t)a;
    int32_t quotient;
    if (b == 0) {
        quotient = 0;
    } else if (b == -1) {
        quotient = (int32_t)negated;
    } else {
        quotient = a / b;
    }
    return quotient;
#endif
}
// ---
/* a + b, or the end of the signed words that it lies beyond: the signs of a, b and the sum say whether it does. */
static inline int32_t ss_saturating_add(int32_t a, int32_t b)
{
    const uint32_t sum = (uint32_t)a + (uint32_t)b;
    const uint32_t beyond = ss_opaque(((uint32_t)a ^ sum) & ~((uint32_t)a ^ (uint32_t)b));
    const uint32_t end = 0x7FFFFFFFU ^ ss_opaque((uint32_t)ss_asr(a, 31U));
    return (int32_t)(sum + ((end - sum) & ss_opaque((uint32_t)ss_asr((int32_t)beyond, 31U))));
}
// ---
/* a - b, or the end of the signed words that it lies beyond. */
static inline int32_t ss_saturating_sub(int32_t a, int32_t b)
{
    const uint32_t rest = (uint32_t)a - (uint32_t)b;
    const uint32_t beyond = ss_opaque(((uint32_t)a ^ rest) & ((uint32_t)a ^ (uint32_t)b));
    const uint32_t end = 0x7FFFFFFFU ^ ss_opaque((uint32_t)ss_asr(a, 31U));
    return (int32_t)(rest + ((end - rest) & ss_opaque((uint32_t)ss_asr((int32_t)beyond, 31U))));
}
// ---
/* a + b, or 2^32 - 1 where the sum carries. */
static inline uint32_t ss_saturating_addu(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)a + b;
    return (uint32_t)wide | ss_opaque(0U - (uint32_t)(wide >> 32));
}
// ---
/* a - b, or 0 where the difference borrows. */
static inline uint32_t ss_saturating_subu(uint32_t a, uint32_t b)
{
    const uint64_t wide = (uint64_t)a - b;
    return (uint32_t)wide & ~ss_opaque((uint32_t)(wide >> 32));
}
// --- No SS_LONG_MUL for the Cortex-M3, whose long multiply ends early, nor for the M0+, which has none.
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
// ---
/* a / 2^k rounded toward minus infinity, for k < 32, word by word. */
static inline int64_t ss_asr64(int64_t a, uint32_t k)
{
    const uint32_t high = (uint32_t)((uint64_t)a >> 32);
    const uint32_t low = ((uint32_t)a >> k) | ((high << 1) << (31U - k));
    return (int64_t)(((uint64_t)(uint32_t)ss_asr((int32_t)high, k) << 32) | low);
}
// ---
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
// ---
#endif
