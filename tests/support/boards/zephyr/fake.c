/* What stands behind the stub headers. NVS does as its documentation says, on two entries and a few of others. */
#include "fake.h"

#include <errno.h>
#include <string.h>
#include <zephyr/drivers/entropy.h>
#include <zephyr/drivers/flash.h>
#include <zephyr/fs/nvs.h>
#include <zephyr/kernel.h>

#define ENTRIES 4
#define MOST 64

struct device stub_zephyr_entropy = { "rng", true };
struct device stub_flash = { "flash", true };
struct fake fake;

static struct {
    bool used;
    uint16_t id;
    uint16_t count;
    uint8_t data[MOST];
} entries[ENTRIES];

void fake_erase(void)
{
    memset(entries, 0, sizeof entries);
}

void fake_put(uint16_t id, const uint8_t *data, uint16_t count)
{
    for (int i = 0; i < ENTRIES; i++) {
        if (!entries[i].used || entries[i].id == id) {
            entries[i].used = true;
            entries[i].id = id;
            entries[i].count = count;
            memcpy(entries[i].data, data, count);
            return;
        }
    }
}

bool device_is_ready(const struct device *dev)
{
    return dev->ready;
}

int64_t k_uptime_get(void)
{
    return fake.uptime;
}

int entropy_get_entropy(const struct device *dev, uint8_t *buffer, uint16_t length)
{
    static uint32_t state = 1U;
    if (dev != &stub_zephyr_entropy || fake.no_entropy) {
        return -EIO;
    }
    for (uint16_t i = 0U; i < length; i++) {
        state = state * 1664525U + 1013904223U;
        buffer[i] = fake.stuck ? 0x55U : (uint8_t)(state >> 24);
    }
    return 0;
}

int flash_get_page_info_by_offs(const struct device *dev, off_t offset, struct flash_pages_info *info)
{
    if (dev != &stub_flash) {
        return -EINVAL;
    }
    info->start_offset = offset;
    info->size = 4096U;
    info->index = (uint32_t)(offset / 4096);
    return 0;
}

int nvs_mount(struct nvs_fs *fs)
{
    if (fs->sector_size != 4096U || fs->sector_count < 2U || fs->flash_device != &stub_flash) {
        return -EINVAL;
    }
    fs->ready = !fake.bad;
    return fake.bad ? -EDEADLK : 0;
}

ssize_t nvs_read(struct nvs_fs *fs, uint16_t id, void *data, size_t len)
{
    if (!fs->ready) {
        return -EACCES;
    }
    for (int i = 0; i < ENTRIES; i++) {
        if (entries[i].used && entries[i].id == id) {
            memcpy(data, entries[i].data, len < entries[i].count ? len : entries[i].count);
            return entries[i].count; /* all there is, also where it is more than was asked for */
        }
    }
    return -ENOENT;
}

ssize_t nvs_write(struct nvs_fs *fs, uint16_t id, const void *data, size_t len)
{
    if (!fs->ready) {
        return -EACCES;
    }
    for (int i = 0; i < ENTRIES; i++) {
        if (entries[i].used && entries[i].id == id && entries[i].count == len &&
            memcmp(entries[i].data, data, len) == 0) {
            return 0; /* nothing to write */
        }
    }
    if (fake.full || len > MOST) {
        return -ENOSPC;
    }
    if (!fake.cut) {
        fake_put(id, data, (uint16_t)len);
        fake.writes++;
    }
    return (ssize_t)len;
}
