#ifndef STUB_KERNEL_H
#define STUB_KERNEL_H
#include <stdint.h>

#define MSEC_PER_SEC 1000U
#define ARG_UNUSED(x) (void)(x)
#define MIN(a, b) (((a) < (b)) ? (a) : (b))

int64_t k_uptime_get(void);
#endif
