/* The self-test: the table, the kernels, and the sensor on a board that is simulated in RAM. */
#include "ss_selftest.h"

#include <stdbool.h>
#include <stddef.h>

#include "ss_selftest_kernels.h"
#include "ss_sensor.h"
#include "ss_tables.h"

#define FIRST_EPOCH 100U
#define PACKETS {{ packets | length }}U
#define REOPENED 4U /* packets before the sensor is opened again */
#define LONGEST_BUDGET 64U /* that is spent whole */

static struct {
    uint8_t slot[2][SS_SLOT_BYTES];
    uint32_t epoch;
    uint32_t state;
    bool stuck;
    bool worn;
} board;

static ss_sensor sensor;

static int entropy(void *unused, uint8_t *bytes, uint32_t count)
{
    (void)unused;
    for (uint32_t i = 0U; i < count; i++) { /* xorshift32: known bytes for known packets, never for real ones */
        board.state ^= board.state << 13;
        board.state ^= board.state >> 17;
        board.state ^= board.state << 5;
        bytes[i] = board.stuck ? 0x55U : (uint8_t)(board.state >> 24);
    }
    return 0;
}

static int load(void *unused, uint32_t slot, uint8_t *bytes, uint32_t count)
{
    (void)unused;
    for (uint32_t i = 0U; i < count; i++) {
        bytes[i] = board.slot[slot][i];
    }
    return 0;
}

static int store(void *unused, uint32_t slot, const uint8_t *bytes, uint32_t count)
{
    (void)unused;
    for (uint32_t i = 0U; i < count; i++) {
        board.slot[slot][i] = board.worn ? 0U : bytes[i];
    }
    return 0;
}

static uint32_t epoch(void *unused)
{
    (void)unused;
    return board.epoch;
}

static const ss_port port = { NULL, entropy, load, store, epoch };

static void blank(void)
{
    for (uint32_t i = 0U; i < (uint32_t)SS_SLOT_BYTES; i++) {
        board.slot[0][i] = 0xFFU;
        board.slot[1][i] = 0xFFU;
    }
    board.epoch = FIRST_EPOCH;
    board.state = 2463534242U;
    board.stuck = false;
    board.worn = false;
}

/* Release a record whose values depend on its number alone. */
static ss_status release(uint32_t number, uint8_t packet[SS_PACKET_BYTES])
{
    static uint16_t x[SS_FEATURES];
    for (uint32_t i = 0U; i < (uint32_t)SS_FEATURES; i++) {
        x[i] = (uint16_t)(((2741U * i) + (9973U * number)) & 0x7FFFU);
    }
    return ss_sensor_release(&sensor, x, packet);
}

static bool is_zero(const uint8_t packet[SS_PACKET_BYTES])
{
    uint32_t any = 0U;
    for (uint32_t i = 0U; i < (uint32_t)SS_PACKET_BYTES; i++) {
        any |= packet[i];
    }
    return any == 0U;
}

/* CRC-32 of the table, its bytes in the order of little-endian memory, and of the constants that go with it. */
static uint32_t crc_of(uint32_t sum, uint32_t value, uint32_t bytes)
{
    for (uint32_t i = 0U; i < (8U * bytes); i++) {
        const uint32_t bit = (sum ^ (value >> i)) & 1U;
        sum = (sum >> 1) ^ ((bit != 0U) ? 0xEDB88320U : 0U);
    }
    return sum;
}

static uint32_t hash(void)
{
    uint32_t sum = 0xFFFFFFFFU;
{% if table.values %}
    for (uint32_t i = 0U; i < {{ table.values | length }}U; i++) {
        sum = crc_of(sum, (uint32_t)ss_noise_table[i]{{ " & 0x%XU" | format(256 ** size - 1) if size < 4 else "" }}, {{ size }}U);
    }
{% endif %}
{% for name, _ in table.constants %}
    sum = crc_of(sum, (uint32_t){{ name }}, 4U);
{% endfor %}
    return ~sum;
}
{% if counts %}
{% set rows = counts.rows | length %}
{% set values = counts.rows[0] | length %}

{% if counts.sums %}
/* How often each symbol is drawn in each row, from the thresholds: as certified, and in no larger ratio. */
static bool counts(void)
{
{{ expected_counts | indent(4, first=True) }}
    bool right = true;
    for (uint32_t symbol = 0U; symbol < {{ values }}U; symbol++) {
        uint32_t least = 0xFFFFFFFFU;
        uint32_t most = 0U;
        for (uint32_t row = 0U; row < {{ rows }}U; row++) {
            const uint32_t at = (row * {{ values - 1 }}U) + symbol;
            const uint32_t upper = (symbol < {{ values - 1 }}U) ? (uint32_t)ss_noise_table[at] : 0x10000U;
            const uint32_t lower = (symbol > 0U) ? (uint32_t)ss_noise_table[at - 1U] : 0U;
            const uint32_t count = upper - lower;
            right = right && (count == (uint32_t)expected[(row * {{ values }}U) + symbol]);
            least = (count < least) ? count : least;
            most = (count > most) ? count : most;
        }
        right = right && (most <= 0xFFFFU) && (least <= 0xFFFFU) && ((most * {{ ratio.denominator }}U) <= (least * {{ ratio.numerator }}U));
    }
    return right;
}
{% else %}
{% set entries = counts.rows[0] | sum %}
/* How often each value stands in each row of the table: as certified. */
static bool counts(void)
{
{{ expected_counts | indent(4, first=True) }}
    bool right = true;
    for (uint32_t row = 0U; row < {{ rows }}U; row++) {
        for (uint32_t value = 0U; value < {{ values }}U; value++) {
            uint32_t count = 0U;
            for (uint32_t i = 0U; i < {{ entries }}U; i++) {
                const int32_t entry = (int32_t)ss_noise_table[(row * {{ entries }}U) + i];
                count += (entry == ((int32_t)value + ({{ counts.least }}))) ? 1U : 0U;
            }
            right = right && (count == (uint32_t)expected[(row * {{ values }}U) + value]);
        }
    }
    return right;
}
{% endif %}
{% endif %}

static uint32_t table(void)
{
    uint32_t wrong = 0U;
    if (hash() != 0x{{ "%08X" | format(table_crc) }}U) {
        wrong = SS_SELFTEST_TABLE;
{% if counts %}
    } else if (!counts()) {
        wrong = SS_SELFTEST_COUNTS;
    } else {
        /* as certified */
{% endif %}
    }
    return wrong;
}

/* One release in each epoch, with a reset half way. */
static uint32_t packets(void)
{
    static const uint8_t expected[PACKETS][SS_PACKET_BYTES] = {
{% for packet in packets %}
        { {% for byte in packet %}{{ "0x%02XU" | format(byte) }}{{ "" if loop.last else ", " }}{% endfor %} }{{ "" if loop.last else "," }}
{% endfor %}
    };
    uint32_t wrong = 0U;
    blank();
    for (uint32_t number = 0U; (number < PACKETS) && (wrong == 0U); number++) {
        uint8_t packet[SS_PACKET_BYTES];
        bool right = true;
        if ((number == 0U) || (number == REOPENED)) {
            right = ss_sensor_open(&sensor, &port) == SS_OK;
        }
        right = right && (release(number, packet) == SS_OK);
        for (uint32_t i = 0U; i < (uint32_t)SS_PACKET_BYTES; i++) {
            right = right && (packet[i] == expected[number][i]);
        }
        wrong = right ? 0U : (SS_SELFTEST_PACKET + number);
        board.epoch++;
    }
    return wrong;
}

/* What is spent stays spent, over a reset, and an epoch ends at its budget. */
static uint32_t journal(void)
{
    const uint32_t reserved = (SS_RESERVE < SS_BUDGET) ? (uint32_t)SS_RESERVE : (uint32_t)SS_BUDGET;
    uint8_t packet[SS_PACKET_BYTES];
    uint32_t wrong = 0U;
    uint32_t done = 0U;
    blank();
    if ((ss_sensor_open(&sensor, &port) != SS_OK) || (ss_sensor_left(&sensor) != (uint32_t)SS_BUDGET) ||
        (release(0U, packet) != SS_OK) || (ss_sensor_left(&sensor) != ((uint32_t)SS_BUDGET - 1U)) ||
        (ss_sensor_open(&sensor, &port) != SS_OK) || (ss_sensor_left(&sensor) != ((uint32_t)SS_BUDGET - reserved))) {
        wrong = SS_SELFTEST_JOURNAL;
    }
    if ((wrong == 0U) && (SS_BUDGET <= LONGEST_BUDGET)) {
        board.epoch++;
        while ((done <= (uint32_t)SS_BUDGET) && (release(done, packet) == SS_OK)) {
            done++;
        }
        if ((done != (uint32_t)SS_BUDGET) || (release(0U, packet) != SS_SPENT) || !is_zero(packet)) {
            wrong = SS_SELFTEST_BUDGET;
        }
    }
    return wrong;
}

/* A torn slot is no reason to stay closed; two damaged ones, a clock that ran backward and bad hardware are. */
static uint32_t doubts(void)
{
    uint8_t packet[SS_PACKET_BYTES];
    uint32_t wrong = 0U;
    blank();
    if ((ss_sensor_open(&sensor, &port) != SS_OK) || (release(0U, packet) != SS_OK)) {
        wrong = SS_SELFTEST_JOURNAL;
    }
    board.slot[1][SS_SLOT_BYTES - 1] ^= 1U;
    if ((wrong == 0U) && (ss_sensor_open(&sensor, &port) != SS_OK)) {
        wrong = SS_SELFTEST_TORN;
    }
    board.epoch--;
    if ((wrong == 0U) && ((release(0U, packet) != SS_BAD_CLOCK) || !is_zero(packet))) {
        wrong = SS_SELFTEST_CLOCK;
    }
    board.epoch++;
    board.slot[0][0] ^= 1U;
    board.slot[1][0] ^= 1U;
    if ((wrong == 0U) && ((ss_sensor_open(&sensor, &port) != SS_BAD_JOURNAL) ||
                          (release(0U, packet) != SS_NOT_OPEN) || !is_zero(packet))) {
        wrong = SS_SELFTEST_DAMAGE;
    }
    blank();
    board.stuck = true;
    if ((wrong == 0U) && (ss_sensor_open(&sensor, &port) != SS_NO_ENTROPY)) {
        wrong = SS_SELFTEST_ENTROPY;
    }
    blank();
    board.worn = true;
    if ((wrong == 0U) && (ss_sensor_open(&sensor, &port) != SS_NO_STORE)) {
        wrong = SS_SELFTEST_WEAR;
    }
    return wrong;
}

uint32_t ss_selftest(void)
{
    uint32_t wrong = table();
    if (wrong == 0U) {
        wrong = ss_selftest_kernels();
    }
    if (wrong == 0U) {
        wrong = packets();
    }
    if (wrong == 0U) {
        wrong = journal();
    }
    if (wrong == 0U) {
        wrong = doubts();
    }
    return wrong;
}
