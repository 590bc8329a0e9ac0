/*
 * A sensor on a computer:  ss_example FOLDER [RECORDS]
 *
 * Opens the sensor whose journal is in FOLDER (made where it is missing), releases RECORDS records
 * (5 where not given) and prints each packet as a line of hexadecimal digits; what happened is said
 * on stderr. A second run goes on with the same journal, so what was spent stays spent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ss_port_host.h"
#include "ss_sensor.h"

/* 1.0 in the format of a feature. */
#define ONE 32768U

static const char *sentence(ss_status status)
{
    switch (status) {
    case SS_OK:
        return "all is well.";
    case SS_SPENT:
        return "the budget of this period is spent; the sensor is silent until the next period begins.";
    case SS_NO_ENTROPY:
        return "the random generator failed or repeats itself; nothing is released without it.";
    case SS_NO_STORE:
        return "the journal could not be read or stored; nothing is released that is not counted.";
    case SS_BAD_JOURNAL:
        return "the journal is damaged or belongs to another table; the sensor stays closed.";
    case SS_BAD_CLOCK:
        return "the clock is behind the journal; set it, or wait until it has caught up.";
    case SS_NOT_OPEN:
        return "the sensor is not open; ss_sensor_open() must answer SS_OK first.";
    default:
        return "the sensor answered with a status that this program does not know.";
    }
}

/*
 * A measured value as a feature: 0 .. largest becomes 0 .. 1, more than largest counts as largest.
 * `largest` is public and chosen before any record is seen (say 30000 steps a day): a bound taken
 * from the wearer's own data would tell about them.
 */
static uint16_t feature(uint32_t measured, uint32_t largest)
{
    const uint32_t held = (measured < largest) ? measured : largest;
    return (uint16_t)(((uint64_t)held * ONE) / largest);
}

/* Stands for the board's sensors: feature i varies around its own level from record to record. */
static void measure(uint32_t record, uint16_t x[SS_FEATURES])
{
    uint32_t i;
    for (i = 0U; i < SS_FEATURES; i++) {
        const uint32_t level = 150U + ((97U * i) % 500U);
        x[i] = feature(level + ((37U * record) % 200U), 1000U);
    }
}

static void print_packet(const uint8_t packet[SS_PACKET_BYTES])
{
    uint32_t i;
    for (i = 0U; i < SS_PACKET_BYTES; i++) {
        (void)printf("%02x", (unsigned)packet[i]);
    }
    (void)printf("\n");
}

int main(int argc, char **argv)
{
    static ss_sensor sensor;
    static uint16_t x[SS_FEATURES];
    uint8_t packet[SS_PACKET_BYTES];
    ss_port port;
    ss_status status;
    unsigned long record;
    unsigned long records = 5UL;
    int why;

    if ((argc < 2) || (argc > 3)) {
        (void)fprintf(stderr, "usage: %s FOLDER [RECORDS]\n", argv[0]);
        return 1;
    }
    if (argc == 3) {
        records = strtoul(argv[2], NULL, 10);
    }
    why = ss_port_host(&port, argv[1]);
    if (why != 0) {
        (void)fprintf(stderr, "the folder %s cannot be used: %s.\n", argv[1],
                      (why == EAGAIN) ? "another process has it" : strerror(why));
        return 1;
    }
    status = ss_sensor_open(&sensor, &port);
    if (status == SS_OK) {
        (void)fprintf(stderr, "open: %lu releases left in this period.\n",
                      (unsigned long)ss_sensor_left(&sensor));
    }
    for (record = 0UL; (status == SS_OK) && (record < records); record++) {
        measure((uint32_t)record, x);
        status = ss_sensor_release(&sensor, x, packet);
        if (status == SS_OK) {
            print_packet(packet);
        }
    }
    (void)memset(x, 0, sizeof x);
    (void)fprintf(stderr, "%s %lu releases left in this period.\n", sentence(status),
                  (unsigned long)ss_sensor_left(&sensor));
    return ((status == SS_OK) || (status == SS_SPENT)) ? 0 : (int)status;
}
