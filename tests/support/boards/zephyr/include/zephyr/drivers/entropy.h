#ifndef STUB_ENTROPY_H
#define STUB_ENTROPY_H
#include <zephyr/device.h>

int entropy_get_entropy(const struct device *dev, uint8_t *buffer, uint16_t length);
#endif
