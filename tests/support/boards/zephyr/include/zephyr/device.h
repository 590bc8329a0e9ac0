/* As much of Zephyr as the port needs, with the names and types of Zephyr's own headers; fake.c stands behind it. */
#ifndef STUB_DEVICE_H
#define STUB_DEVICE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct device {
    const char *name;
    bool ready;
};

extern struct device stub_zephyr_entropy;
extern struct device stub_flash;

bool device_is_ready(const struct device *dev);

#define STUB_DEVICE(node) (&stub_##node)
#define DEVICE_DT_GET(node) STUB_DEVICE(node)
#define DT_CHOSEN(name) name
#endif
