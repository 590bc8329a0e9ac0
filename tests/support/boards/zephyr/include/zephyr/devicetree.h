#ifndef STUB_DEVICETREE_H
#define STUB_DEVICETREE_H
#include <zephyr/device.h>
#endif
