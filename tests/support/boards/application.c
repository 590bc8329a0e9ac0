/* An application with a sensor in it, as it is flashed: a port over RAM, a record, a packet that goes nowhere. Nothing of
 * it but the sensor is run by the tests. */
#include "ss_sensor.h"

static ss_sensor sensor;
static uint8_t slots[2][SS_SLOT_BYTES] = { { 1U } }; /* initialised, so that .data has a load address of its own */
static uint32_t noise = 12345U;
static volatile uint32_t sent;

extern void main_loop(void);
extern void (*const vectors[2])(void);

static int entropy(void *board, uint8_t *bytes, uint32_t count)
{
    (void)board;
    for (uint32_t i = 0U; i < count; i++) {
        noise = noise * 1664525U + 1013904223U;
        bytes[i] = (uint8_t)(noise >> 24);
    }
    return 0;
}

static int load(void *board, uint32_t slot, uint8_t *bytes, uint32_t count)
{
    (void)board;
    for (uint32_t i = 0U; i < count; i++) {
        bytes[i] = slots[slot][i];
    }
    return 0;
}

static int store(void *board, uint32_t slot, const uint8_t *bytes, uint32_t count)
{
    (void)board;
    for (uint32_t i = 0U; i < count; i++) {
        slots[slot][i] = bytes[i];
    }
    return 0;
}

static uint32_t epoch(void *board)
{
    (void)board;
    return 7U;
}

void main_loop(void)
{
    static const ss_port port = { (void *)0, entropy, load, store, epoch };
    uint16_t x[SS_FEATURES] = { 100U };
    uint8_t packet[SS_PACKET_BYTES];
    if (ss_sensor_open(&sensor, &port) == SS_OK) {
        for (;;) {
            x[0]++;
            if (ss_sensor_release(&sensor, x, packet) == SS_OK) {
                sent = packet[0];
            }
        }
    }
}

#ifdef __riscv /* its compiler comes without a C library on some machines */
void *memcpy(void *to, const void *from, unsigned int count);
void *memset(void *to, int value, unsigned int count);

void *memcpy(void *to, const void *from, unsigned int count)
{
    for (unsigned int i = 0U; i < count; i++) {
        ((volatile uint8_t *)to)[i] = ((const volatile uint8_t *)from)[i];
    }
    return to;
}

void *memset(void *to, int value, unsigned int count)
{
    for (unsigned int i = 0U; i < count; i++) {
        ((volatile uint8_t *)to)[i] = (uint8_t)value;
    }
    return to;
}
#endif

__attribute__((section(".vectors"), used)) void (*const vectors[2])(void) = { (void (*)(void))0x20008000, main_loop };
