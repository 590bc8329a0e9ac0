/*
 * A bare Cortex-M3 that lives through power cuts: releases RECORDS records, and every few stores the power goes after
 * some byte of the slot. A cut is a reset of the whole system; what is left is the memory that survives one.
 * Prints "packet RECORD HEX" for every release and a line "end ..." by semihosting.
 */
#include <stdint.h>

#include "ss_sensor.h"

#ifndef SEED
#define SEED 1
#endif
#ifndef RECORDS
#define RECORDS 1000U
#endif
#define ALIVE 0x5A17ED01U
#define HIGH 0x3F94U /* of 14 bits; differs from each of its rotations in 6 places or more */

static struct {
    uint32_t alive;
    uint8_t slot[2][SS_SLOT_BYTES];
    uint32_t random; /* of the board; goes on over a reset, as that of a true generator does */
    uint32_t chance; /* when the power goes */
    uint32_t epoch;
    uint32_t record;
    uint32_t cuts;
} life __attribute__((section(".survives")));

static ss_sensor sensor;

static int call(int operation, const void *block)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = block;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void say(const char *text)
{
    (void)call(0x04, text);
}

static void say_number(uint32_t value)
{
    char digits[12];
    uint32_t at = 11U;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + (value % 10U));
        value /= 10U;
    } while (value != 0U);
    say(&digits[at]);
}

static void finish(uint32_t code)
{
    const uint32_t block[2] = { 0x20026U, code };
    (void)call(0x20, block);
    for (;;) {
    }
}

static uint32_t draw(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state >> 8;
}

static void power_cut(void)
{
    life.cuts++;
    __asm__ volatile("dsb" : : : "memory");
    *(volatile uint32_t *)0xE000ED0CU = 0x05FA0004U;
    for (;;) {
    }
}

static int entropy(void *board, uint8_t *bytes, uint32_t count)
{
    (void)board;
    for (uint32_t i = 0U; i < count; i++) {
        bytes[i] = (uint8_t)draw(&life.random);
    }
    return 0;
}

static int load(void *board, uint32_t slot, uint8_t *bytes, uint32_t count)
{
    (void)board;
    for (uint32_t i = 0U; i < count; i++) {
        bytes[i] = life.slot[slot][i];
    }
    return 0;
}

/* Every fifth store or so is cut: before its first byte, after any, or after its last. */
static int store(void *board, uint32_t slot, const uint8_t *bytes, uint32_t count)
{
    const uint32_t cut = draw(&life.chance) % (5U * (count + 1U));
    (void)board;
    for (uint32_t i = 0U; i < count; i++) {
        if (i == cut) {
            power_cut();
        }
        life.slot[slot][i] = bytes[i];
    }
    if (cut == count) {
        power_cut();
    }
    return 0;
}

static uint32_t epoch(void *board)
{
    (void)board;
    return life.epoch;
}

static const ss_port port = { 0, entropy, load, store, epoch };

static void print_packet(const uint8_t *packet)
{
    static const char digit[] = "0123456789abcdef";
    char text[(2U * SS_PACKET_BYTES) + 2U];
    for (uint32_t i = 0U; i < SS_PACKET_BYTES; i++) {
        text[2U * i] = digit[packet[i] >> 4];
        text[(2U * i) + 1U] = digit[packet[i] & 15U];
    }
    text[2U * SS_PACKET_BYTES] = '\n';
    text[(2U * SS_PACKET_BYTES) + 1U] = '\0';
    say("packet ");
    say_number(life.epoch);
    say(" ");
    say_number(life.record);
    say(" ");
    say(text);
}

static void live(void)
{
    static uint16_t x[SS_FEATURES];
    uint8_t packet[SS_PACKET_BYTES];
    ss_status status = ss_sensor_open(&sensor, &port);
    if (status != SS_OK) {
        finish(10U + (uint32_t)status);
    }
    while (life.record < RECORDS) {
        for (uint32_t i = 0U; i < SS_FEATURES; i++) { /* low or high, so that no rotation of features looks alike */
            x[i] = (uint16_t)((((HIGH >> i) & 1U) * 26000U) + ((life.record * 7919U) % 4096U));
        }
        status = ss_sensor_release(&sensor, x, packet);
        if (status == SS_OK) {
            print_packet(packet);
            life.record++;
        } else if (status == SS_SPENT) {
            life.epoch++;
        } else {
            finish(20U + (uint32_t)status);
        }
    }
}

extern uint32_t bss_first, bss_end, data_first, data_source, data_size, stack_top;

void reset(void);
void reset(void)
{
    const uint8_t *from = (const uint8_t *)&data_source;
    uint8_t *to = (uint8_t *)&data_first;
    for (uint32_t i = 0U; i < (uint32_t)&data_size; i++) {
        to[i] = from[i];
    }
    for (volatile uint32_t *word = &bss_first; word < &bss_end; word++) {
        *word = 0U;
    }
    if (life.alive != ALIVE) {
        life.alive = ALIVE;
        for (uint32_t i = 0U; i < SS_SLOT_BYTES; i++) {
            life.slot[0][i] = 0xFFU;
            life.slot[1][i] = 0xFFU;
        }
        life.random = 0x9E3779B9U ^ (uint32_t)SEED;
        life.chance = 0x85EBCA6BU ^ (uint32_t)SEED;
        life.epoch = 20000U;
        life.record = 0U;
        life.cuts = 0U;
    }
    live();
    say("end ");
    say_number(life.cuts);
    say(" cuts\n");
    finish(0U);
}

static void fault(void)
{
    finish(99U);
}

typedef void (*vector)(void);

const vector vectors[16] __attribute__((section(".vectors"), used)) = {
    (vector)(uintptr_t)&stack_top, reset, fault, fault, fault, fault, fault,
};
