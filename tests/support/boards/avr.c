/* The self-test on an AVR: prints "selftest RESULT stack BYTES" on the UART, then sleeps for good, which ends simavr. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdint.h>

#include "ss_selftest.h"

#define PAINT 0xC5U

extern uint8_t __heap_start; /* the first byte after all variables; the stack grows down to it */

/* Before main: paint what the stack may use, to see afterwards how much of it did. */
void paint(void) __attribute__((naked, used, section(".init3")));
void paint(void)
{
    for (uint8_t *at = &__heap_start; at < (uint8_t *)SP; at++) {
        *at = PAINT;
    }
}

static void say(char letter)
{
    while ((UCSR0A & (1U << UDRE0)) == 0U) {
    }
    UDR0 = (uint8_t)letter;
}

static void say_text(const char *text)
{
    while (*text != '\0') {
        say(*text++);
    }
}

static void say_number(uint32_t value)
{
    char digits[11];
    uint8_t at = 0U;
    do {
        digits[at++] = (char)('0' + (uint8_t)(value % 10UL));
        value /= 10UL;
    } while (value != 0UL);
    while (at != 0U) {
        say(digits[--at]);
    }
}

int main(void)
{
    const uint8_t *at = &__heap_start;
    uint32_t wrong;
    UCSR0B = 1U << TXEN0;
    wrong = ss_selftest();
    while ((at < (uint8_t *)RAMEND) && (*at == PAINT)) {
        at++;
    }
    say_text("selftest ");
    say_number(wrong);
    say_text(" stack ");
    say_number((uint32_t)(RAMEND + 1U - (uint16_t)at));
    say_text("\r\n");
    cli();
    set_sleep_mode(SLEEP_MODE_IDLE);
    sleep_mode();
    return 0;
}
