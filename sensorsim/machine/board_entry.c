/* Through pointers that the compiler has to read, so that link-time optimisation leaves the functions standing. */
#include "ss_sensor.h"

static ss_status (*const volatile call_open)(ss_sensor *, const ss_port *) = ss_sensor_open;
static ss_status (*const volatile call_release)(ss_sensor *, const uint16_t *, uint8_t *) = ss_sensor_release;
static uint32_t (*const volatile call_left)(const ss_sensor *) = ss_sensor_left;

uint32_t board_entry(ss_sensor *sensor, const ss_port *port, const uint16_t *x, uint8_t *packet);

uint32_t board_entry(ss_sensor *sensor, const ss_port *port, const uint16_t *x, uint8_t *packet)
{
    if (sensor != (ss_sensor *)0) {
        (void)call_open(sensor, port);
        (void)call_release(sensor, x, packet);
        (void)call_left(sensor);
    }
    return (uint32_t)sizeof(ss_sensor);
}
