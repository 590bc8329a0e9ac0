/*
 * The four functions of the port on Zephyr.
 *
 * NVS writes an entry's data first and what makes it count last: a power cut leaves the entry as it
 * was, so a slot is never torn. Each slot is an entry of its own. An NVS that is full of foreign
 * data does not mount, and the sensor stays closed. Clearing the NVS gives back the budget that was
 * spent.
 */
#include "ss_port_zephyr.h"
#include "../ss_pace.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/drivers/entropy.h>
#include <zephyr/drivers/flash.h>
#include <zephyr/kernel.h>
#include <zephyr/storage/flash_map.h>

#ifdef CONFIG_NVS_INIT_BAD_REGION
#error "NVS_INIT_BAD_REGION erases a damaged NVS and what was spent with it: switch it off."
#endif

#if FIXED_PARTITION_EXISTS(ss_partition)
#define JOURNAL ss_partition
#else
#define JOURNAL storage_partition
#ifdef CONFIG_SETTINGS_NVS
#error "Settings use storage_partition: add a partition ss_partition to the devicetree."
#endif
#endif

#define MOST_AT_ONCE 0xFFFFU /* bytes that the entropy driver counts */

static const struct device *const generator = DEVICE_DT_GET(DT_CHOSEN(zephyr_entropy));
static struct nvs_fs own;
static int64_t started; /* seconds since 1970 when the uptime was 0 */
static bool time_known;
static ss_pace pace; /* zeros after every reset, as the uptime */

static int zephyr_entropy_bytes(void *board, uint8_t *bytes, uint32_t count)
{
    ARG_UNUSED(board);
    if ((count > MOST_AT_ONCE) || !device_is_ready(generator)) {
        return 1;
    }
    return (entropy_get_entropy(generator, bytes, (uint16_t)count) == 0) ? 0 : 1;
}

static int zephyr_load(void *board, uint32_t slot, uint8_t *bytes, uint32_t count)
{
    ssize_t got;
    if (slot > 1U) {
        return 1;
    }
    got = nvs_read(board, (uint16_t)(CONFIG_SS_NVS_FIRST_ID + slot), bytes, count);
    if (got == -ENOENT) { /* never written: blank */
        (void)memset(bytes, 0xFF, count);
        return 0;
    }
    if ((got != (ssize_t)count) || (count != SS_SLOT_BYTES)) { /* another length is another's entry */
        return 1;
    }
    ss_pace_saw(&pace, bytes);
    return 0;
}

static int zephyr_store(void *board, uint32_t slot, const uint8_t *bytes, uint32_t count)
{
    ssize_t put;
    if (slot > 1U) {
        return 1;
    }
    put = nvs_write(board, (uint16_t)(CONFIG_SS_NVS_FIRST_ID + slot), bytes, count);
    return ((put == (ssize_t)count) || (put == 0)) ? 0 : 1; /* 0: the same is there already */
}

static uint32_t zephyr_epoch(void *board)
{
    const int64_t uptime = k_uptime_get() / MSEC_PER_SEC;
    const int64_t now = started + uptime;
    ARG_UNUSED(board);
    return (now < 0) ? 0U : ss_pace_epoch(&pace, (uint32_t)(now / (int64_t)SS_PACE_LENGTH), (uint32_t)uptime);
}

void ss_port_zephyr_set_time(int64_t unix_seconds)
{
    started = unix_seconds - (k_uptime_get() / MSEC_PER_SEC);
    time_known = true;
}

int ss_port_zephyr_in(ss_port *port, struct nvs_fs *mounted)
{
    if (!time_known) {
        return -EAGAIN;
    }
    port->board = mounted;
    port->entropy = zephyr_entropy_bytes;
    port->load = zephyr_load;
    port->store = zephyr_store;
    port->epoch = zephyr_epoch;
    return 0;
}

int ss_port_zephyr(ss_port *port)
{
    struct flash_pages_info page;
    int failed;
    if (!time_known) {
        return -EAGAIN;
    }
    own.flash_device = FIXED_PARTITION_DEVICE(JOURNAL);
    own.offset = FIXED_PARTITION_OFFSET(JOURNAL);
    if (!device_is_ready(own.flash_device)) {
        return -ENODEV;
    }
    failed = flash_get_page_info_by_offs(own.flash_device, own.offset, &page);
    if (failed != 0) {
        return failed;
    }
    if ((page.size == 0U) || (page.size > UINT16_MAX)) {
        return -ENOTSUP;
    }
    own.sector_size = (uint16_t)page.size;
    own.sector_count = (uint16_t)MIN(FIXED_PARTITION_SIZE(JOURNAL) / page.size, UINT16_MAX);
    failed = nvs_mount(&own);
    return (failed != 0) ? failed : ss_port_zephyr_in(port, &own);
}
