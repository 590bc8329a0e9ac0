/*
 * simavr as a reference: reads cases from the standard input, runs each and writes what became of it.
 *
 * A case: the bytes of code, where to start and to end (byte addresses), the most steps, how many bytes of data memory
 * follow; then the code, then the data (registers first, the status register in its place). The answer: steps, the
 * program counter, cycles, as many bytes of data memory. All numbers have 32 bits.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/sim_avr.h>
#include <simavr/sim_core.h>

#define SREG_AT 0x5F

static uint8_t code[1 << 17];

int main(void)
{
    uint32_t head[5];
    avr_t *avr = avr_make_mcu_by_name("atmega1284p");
    if (avr == NULL) {
        return 1;
    }
    avr->ramend = 0xFFFF; /* as much data memory as addresses can reach */
    avr_init(avr);
    while (fread(head, sizeof head, 1, stdin) == 1) {
        const uint32_t size = head[0], start = head[1], end = head[2], most = head[3], span = head[4];
        uint32_t answer[3] = {0, 0, 0};
        if (fread(code, 1, size, stdin) != size) {
            return 2;
        }
        memset(avr->flash, 0xFF, avr->flashend + 1);
        memcpy(avr->flash, code, size);
        memset(avr->data, 0, avr->ramend + 1u);
        if (fread(avr->data, 1, span, stdin) != span) {
            return 3;
        }
        for (int bit = 0; bit < 8; bit++) {
            avr->sreg[bit] = (avr->data[SREG_AT] >> bit) & 1;
        }
        avr->state = cpu_Running;
        avr->pc = start;
        avr->cycle = 0;
        while (avr->pc != end && answer[0] < most && avr->state == cpu_Running) {
            avr->pc = avr_run_one(avr);
            answer[0]++;
        }
        answer[1] = avr->pc;
        answer[2] = (uint32_t)avr->cycle;
        avr->data[SREG_AT] = 0;
        for (int bit = 0; bit < 8; bit++) {
            avr->data[SREG_AT] |= (uint8_t)(avr->sreg[bit] << bit);
        }
        fwrite(answer, sizeof answer, 1, stdout);
        fwrite(avr->data, 1, span, stdout);
    }
    return 0;
}
