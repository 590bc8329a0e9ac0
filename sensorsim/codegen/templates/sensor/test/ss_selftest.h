/**
 * @file ss_selftest.h
 * @brief The self-test of the sensor: on the device, in bounded time, without console, heap or libc.
 */
#ifndef SS_SELFTEST_H
#define SS_SELFTEST_H

#include <stdint.h>

/** Checks of the sensor; golden vectors of the kernels have the numbers below. */
#define SS_SELFTEST_TABLE 0x10001U   /**< the noise table is not the one that was certified: its hash */
#define SS_SELFTEST_COUNTS 0x10002U  /**< the noise table is not the one that was certified: its counts or their ratio */
#define SS_SELFTEST_PACKET 0x10010U  /**< plus its number: a packet with fixed entropy is not the expected one */
#define SS_SELFTEST_JOURNAL 0x10020U /**< the journal does not keep what was spent */
#define SS_SELFTEST_BUDGET 0x10021U  /**< an epoch allows more or fewer releases than its budget */
#define SS_SELFTEST_TORN 0x10022U    /**< a slot that a power cut tore keeps the sensor closed */
#define SS_SELFTEST_DAMAGE 0x10023U  /**< a damaged journal opens */
#define SS_SELFTEST_CLOCK 0x10024U   /**< a clock that ran backward is not seen */
#define SS_SELFTEST_ENTROPY 0x10025U /**< stuck entropy is not seen */
#define SS_SELFTEST_WEAR 0x10026U    /**< memory that does not keep what is stored is not seen */

/** 0 when everything is as it was proved, else what is not. Uses a journal of its own in RAM. */
uint32_t ss_selftest(void);

#endif
