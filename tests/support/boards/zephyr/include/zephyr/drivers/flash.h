#ifndef STUB_FLASH_H
#define STUB_FLASH_H
#include <zephyr/device.h>

struct flash_pages_info {
    off_t start_offset;
    size_t size;
    uint32_t index;
};

int flash_get_page_info_by_offs(const struct device *dev, off_t offset, struct flash_pages_info *info);
#endif
