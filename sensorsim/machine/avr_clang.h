/*
 * Given to clang for AVR before every file. Its "r" takes no operand of four bytes, so the empty assembly statement that
 * hides a word from the optimiser is made of two halves here; it hides as much.
 */
#include <stdint.h>

static inline uint32_t sensorsim_hidden(uint32_t word)
{
    uint16_t low = (uint16_t)word;
    uint16_t high = (uint16_t)(word >> 16);
    __asm__("" : "+r"(low), "+r"(high));
    return ((uint32_t)high << 16) | low;
}

#define __asm__(statement) hidden = sensorsim_hidden(hidden)
