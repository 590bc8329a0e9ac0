/* The port for Zephyr: entropy driver, NVS, and a time that the application sets. */
#ifndef SS_PORT_ZEPHYR_H
#define SS_PORT_ZEPHYR_H

#include <stdint.h>

#include <zephyr/fs/nvs.h>

#include "ss_sensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Say what time it is, in seconds since 1970 (UTC). Zephyr's uptime starts at 0 with every reset,
 * so it is no calendar: read an RTC, or take the time from the network, and set it before the port
 * is asked for, after every reset. A time in the future starts a new budget, though not more often
 * than the uptime allows (ss_pace.h, CONFIG_SS_PACE_WAIT), and one before the journal's is
 * SS_BAD_CLOCK. Call it from the thread that uses the sensor.
 */
void ss_port_zephyr_set_time(int64_t unix_seconds);

/*
 * Fill in a port with the journal in an NVS that nothing else uses: in the flash partition
 * ss_partition, or, where the board has none, storage_partition. Mounts it.
 * Returns 0 or a negative errno; -EAGAIN: the time is not set yet.
 */
int ss_port_zephyr(ss_port *port);

/*
 * The same in an NVS that the application has mounted already and uses for other things too, under
 * other ids than CONFIG_SS_NVS_FIRST_ID and the next. Never mount one partition twice.
 */
int ss_port_zephyr_in(ss_port *port, struct nvs_fs *mounted);

#ifdef __cplusplus
}
#endif

#endif
