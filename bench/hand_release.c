/*
 * Releases as an engineer writes them by hand, for one set of constants: a record of 14 features,
 * rows of five knots and five symbols at epsilon 1.6, one bit, one look-up, stairs. No branch
 * depends on a feature or on a word, with any of the compilers that this is measured with, so a
 * plain `a < b` is not used: clang makes a branch of it on the Cortex-M0+.
 *
 * constants.h is made from the tables: rows_table, lookup_table, stairs_table, and the macros BASE,
 * SLOPE, LOOKUP_BITS, DROP, STAIR_BITS, LIMIT.
 */
#include <stdint.h>
#include "constants.h"

#define FEATURES 14U
#define ONE 32768

/* The word itself, which the compiler knows nothing of. */
static inline uint32_t hidden(uint32_t word)
{
    __asm__("" : "+r"(word));
    return word;
}

/* 1 where a >= b; both are below 2^16. */
static inline uint32_t reaches(uint32_t a, uint32_t b)
{
#ifdef __riscv
    return b < hidden(a + 1U);
#else
    return (hidden(~a) + b) >> 31;
#endif
}

/* a, at most 0. */
static inline int32_t at_most_zero(uint32_t a)
{
    int32_t value = (int32_t)hidden(a);
    return value & (value >> 31);
}

/* Which feature: the top 20 bits of a word, times 14. */
static inline uint32_t pick(uint32_t word)
{
    return ((word >> 12) * FEATURES) >> 20;
}

/* Five rows of four thresholds. The row is saturated, not x: it takes no large constant. */
static inline uint8_t rows(uint32_t x, uint32_t word)
{
    const int32_t row = at_most_zero(((x + (word & 0x1FFFU)) >> 13) - 4U); /* less 4 */
    const uint16_t *cut = rows_table + 16 + row * 4;
    const uint32_t drawn = word >> 16;
    const uint32_t some = 2U * reaches(drawn, cut[1]); /* then one of its neighbours, and the last */
    return (uint8_t)(some + reaches(drawn, cut[some]) + reaches(drawn, cut[3]));
}

static inline uint8_t bit(uint32_t x, uint32_t word)
{
    const uint32_t chance = BASE + SLOPE * ONE + SLOPE * (uint32_t)at_most_zero(x - ONE);
    return (uint8_t)(((word >> 1) - chance) >> 31);
}

static inline uint8_t lookup(uint32_t x, uint32_t word)
{
    const uint32_t shift = 15U - LOOKUP_BITS, last = 1U << LOOKUP_BITS;
    const int32_t row = at_most_zero(((x + (word & ((1U << shift) - 1U))) >> shift) - last);
    return lookup_table[((uint32_t)row + last) * 256U + (word >> 24)];
}

static inline int32_t stairs(uint32_t x, uint32_t word)
{
    const int32_t stair = 1 << STAIR_BITS;
    const int32_t noise = stairs_table[word >> DROP] * stair + (int32_t)(word & (uint32_t)(stair - 1));
    const int32_t noisy = ONE / 2 - stair / 2 + at_most_zero(x - ONE) + noise;
    const int32_t above = at_most_zero((uint32_t)(noisy - LIMIT)); /* over the upper limit */
    const int32_t below = (int32_t)hidden((uint32_t)(above + 2 * LIMIT)); /* over the lower one */
    return (below & ~(below >> 31)) - LIMIT;
}

#define RELEASES(form, type)                                                                       \
    void form##_all(const uint16_t x[], const uint32_t word[], type y[])                           \
    {                                                                                              \
        for (uint32_t i = 0; i < FEATURES; i++) {                                                  \
            y[i] = form(x[i], word[i]);                                                            \
        }                                                                                          \
    }                                                                                              \
    void form##_one(const uint16_t x[], const uint32_t word[], uint32_t chosen[], type y[])        \
    {                                                                                              \
        const uint32_t feature = pick(word[0]);                                                    \
        chosen[0] = feature;                                                                       \
        y[0] = form(x[feature], word[1]);                                                          \
    }

RELEASES(rows, uint8_t)
RELEASES(bit, uint8_t)
RELEASES(lookup, uint8_t)
RELEASES(stairs, int32_t)
