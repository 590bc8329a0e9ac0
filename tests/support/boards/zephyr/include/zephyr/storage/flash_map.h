/* A board with the partition storage_partition, and with -DOWN_PARTITION ss_partition too. */
#ifndef STUB_FLASH_MAP_H
#define STUB_FLASH_MAP_H
#include <zephyr/device.h>

#define STUB_EXISTS_storage_partition 1
#define STUB_OFFSET_storage_partition 0xF8000
#define STUB_SIZE_storage_partition 0x8000
#ifdef OWN_PARTITION
#define STUB_EXISTS_ss_partition 1
#else
#define STUB_EXISTS_ss_partition 0
#endif
#define STUB_OFFSET_ss_partition 0xF4000
#define STUB_SIZE_ss_partition 0x3000

#define STUB_JOIN(a, b) a##b
#define FIXED_PARTITION_EXISTS(label) STUB_JOIN(STUB_EXISTS_, label)
#define FIXED_PARTITION_OFFSET(label) STUB_JOIN(STUB_OFFSET_, label)
#define FIXED_PARTITION_SIZE(label) STUB_JOIN(STUB_SIZE_, label)
#define FIXED_PARTITION_DEVICE(label) (&stub_flash)
#endif
