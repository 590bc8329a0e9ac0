/* The self-test on a Z80: writes "selftest RESULT" through the interface of the simulator uCsim, then stops it. */
#include <stdint.h>

#include "ss_selftest.h"

static volatile uint8_t *const simulator = (volatile uint8_t *)0x00FF;

static void say(char letter)
{
    *simulator = 'w';
    *simulator = (uint8_t)letter;
}

int main(void)
{
    const char *text = "selftest ";
    uint32_t wrong = ss_selftest();
    char digits[11];
    uint8_t at = 0U;
    while (*text != '\0') {
        say(*text++);
    }
    do {
        digits[at++] = (char)('0' + (uint8_t)(wrong % 10UL));
        wrong /= 10UL;
    } while (wrong != 0UL);
    while (at != 0U) {
        say(digits[--at]);
    }
    say('\n');
    *simulator = 's';
    for (;;) {
    }
}
