/* The calls of the sensor: what C needs around the kernels of ss_sensor_kernels.h, which do all the work. */
#include <stddef.h>

#include "ss_guard.h"
#include "ss_sensor.h"
{% for name in headers %}
#include "{{ name }}"
{% endfor %}

#define SS_OPEN 0x53454E53U /* a sensor that was never opened does not hold this by accident */
#define SS_PACKET_SIZE ((uint32_t)SS_PACKET_BYTES)
#define SS_SCRUB_WORDS 64U /* more than the deepest call below takes of the stack */

SS_CHECK(budget_is_allowed, (SS_BUDGET >= 1) && (SS_BUDGET <= SS_BUDGET_MOST));

static const uint8_t ss_identity[{{ firmware.journal_identity | length }}] = { {% for byte in firmware.journal_identity %}{{ "0x%02XU" | format(byte) }}{{ "" if loop.last else ", " }}{% endfor %} };

/* Overwrite the stack that functions called before may have left keys or words on. */
static void ss_scrub_stack(void)
{
    volatile uint32_t left[SS_SCRUB_WORDS];
    ss_wipe(left, SS_SCRUB_WORDS);
}

/* Called through this, so that no compiler merges its frame with that of its caller. */
static void (*volatile const ss_scrub)(void) = ss_scrub_stack;

/* What an open sensor holds. A copy of it lies elsewhere or in another process, so it does not. */
static uint32_t ss_mark(const ss_sensor *sensor)
{
    return SS_OPEN ^ (uint32_t)(uintptr_t)sensor ^ SS_PROCESS();
}

/* Draw a release with the constants of this firmware. */
static void ss_draw(ss_sensor *sensor, const uint16_t x[SS_FEATURES], uint8_t packet[SS_PACKET_BYTES])
{
{{ draw }}
}

/* Called through this, so that what it leaves on the stack lies where ss_scrub wipes. */
static void (*volatile const ss_draw_apart)(ss_sensor *, const uint16_t[SS_FEATURES], uint8_t[SS_PACKET_BYTES]) = ss_draw;

ss_status ss_sensor_open(ss_sensor *sensor, const ss_port *port)
{
    ss_status status = SS_NOT_OPEN;
    if ((sensor != NULL) && (port != NULL)) {
        SS_ENTER();
        sensor->port = *port;
        status = (ss_status)ss_open_sensor(sensor, ss_identity, {{ crc }}, SS_BUDGET, SS_RESERVE, {{ crc_size }}U);
        if (status == SS_OK) {
{% if start %}
            {{ start }}(sensor);
{% endif %}
            sensor->open = ss_mark(sensor);
        }
        ss_scrub();
        SS_LEAVE();
    }
    return status;
}

/* Count a release and draw it. */
static ss_status ss_release(ss_sensor *sensor, const uint16_t x[SS_FEATURES], uint8_t packet[SS_PACKET_BYTES])
{
    const ss_status status = (ss_status)ss_count_release(sensor, ss_identity, {{ crc }}, SS_BUDGET, SS_RESERVE, {{ crc_size }}U);
    if (status == SS_OK) {
        ss_draw_apart(sensor, x, packet);
        ss_scrub();
    }
    return status;
}

ss_status ss_sensor_release(ss_sensor *sensor, const uint16_t x[SS_FEATURES], uint8_t packet[SS_PACKET_BYTES])
{
    ss_status status = SS_NOT_OPEN;
    if (packet != NULL) {
        for (uint32_t i = 0U; i < SS_PACKET_SIZE; i++) {
            packet[i] = 0U;
        }
        if ((sensor != NULL) && (x != NULL) && (sensor->open == ss_mark(sensor))) {
            SS_ENTER(); /* not in a forked process, where another thread may hold it for ever */
            if (sensor->open == ss_mark(sensor)) { /* still */
                status = ss_release(sensor, x, packet);
            }
            SS_LEAVE();
        }
    }
    return status;
}

uint32_t ss_sensor_left(const ss_sensor *sensor)
{
    uint32_t left = 0U;
    if ((sensor != NULL) && (sensor->open == ss_mark(sensor))) {
        SS_ENTER();
        left = ss_left(sensor, SS_BUDGET);
        SS_LEAVE();
    }
    return left;
}

void ss_sensor_close(ss_sensor *sensor)
{
    if (sensor != NULL) {
        SS_ENTER();
        ss_close_sensor(sensor);
        SS_LEAVE();
    }
}
