/*
 * An epoch that cannot run ahead of the time for which the device was awake.
 *
 * The budget is one of every epoch, so who sets the clock could have a new budget with every jump
 * forward. Here a later epoch of the clock is handed on only as long as there were fewer new ones
 * since the start (reset, boot) than
 *
 *     0                                    before SS_PACE_WAIT seconds of uptime,
 *     2 + uptime / length of an epoch      after them;
 *
 * until then the sensor is told the epoch that it knows already. A clock that runs as it should
 * never meets the second bound: one new epoch for the time that the device was off, however long,
 * one for the next end of an epoch, and one for every length of an epoch that passes.
 *
 * Bounded: in one run of U seconds the sensor spends what is left of the journal's epoch and at
 * most 2 + U / length new budgets; over a life, 2 for each start, of which each must last for
 * SS_PACE_WAIT, and 1 for each length of an epoch awake. Not bounded: how often someone starts the
 * device, and the size of a jump, so a clock that was far ahead still silences the sensor until
 * then.
 *
 * A device whose power is off between records never sees SS_PACE_WAIT pass: build it with
 * -DSS_PACE_WAIT=0, and each start may bring two budgets. Where the uptime goes on through a
 * restart, keep the ss_pace as well (ports/host does): the bounds then hold over all of them.
 */
#ifndef SS_PACE_H
#define SS_PACE_H

#include "ss_sensor.h"

/* Seconds of an epoch. */
#define SS_PACE_LENGTH ((uint32_t)SS_BUDGET_DAYS * 86400U)

#ifndef SS_PACE_WAIT
/* Seconds of uptime before the first new epoch of a start: one hour for an epoch of one day. */
#define SS_PACE_WAIT (SS_PACE_LENGTH / 24U)
#endif

/* What is known of the epochs of this start; zeros at first. */
typedef struct {
    uint32_t known;   /* whether `epoch` is */
    uint32_t epoch;   /* the latest one, by the journal or handed to the sensor */
    uint32_t granted; /* how many new ones were handed to the sensor */
} ss_pace;

/* CRC-32 of some bytes, as in the journal. */
static inline uint32_t ss_pace_crc(const uint8_t *bytes, uint32_t count)
{
    uint32_t sum = 0xFFFFFFFFU;
    for (uint32_t i = 0U; i < (8U * count); i++) {
        const uint32_t bit = (sum ^ ((uint32_t)bytes[i / 8U] >> (i % 8U))) & 1U;
        sum = (sum >> 1) ^ ((bit != 0U) ? 0xEDB88320U : 0U);
    }
    return ~sum;
}

static inline uint32_t ss_pace_number(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | ((uint32_t)bytes[1] << 8) | ((uint32_t)bytes[2] << 16) | ((uint32_t)bytes[3] << 24);
}

/* Note the epoch of a slot: the port's load calls it with every slot that it has read. */
static inline void ss_pace_saw(ss_pace *pace, const uint8_t slot[SS_SLOT_BYTES])
{
    const uint32_t epoch = ss_pace_number(&slot[SS_SLOT_BYTES - 12]);
    if ((ss_pace_crc(slot, (uint32_t)SS_SLOT_BYTES - 4U) == ss_pace_number(&slot[SS_SLOT_BYTES - 4])) &&
        ((pace->known == 0U) || (epoch > pace->epoch))) {
        pace->known = 1U;
        pace->epoch = epoch;
    }
}

/* What the port's epoch answers, where the clock says `clock` and the device is up for `uptime` seconds. */
static inline uint32_t ss_pace_epoch(ss_pace *pace, uint32_t clock, uint32_t uptime)
{
    const uint32_t most = (uptime < SS_PACE_WAIT) ? 0U : (2U + (uptime / SS_PACE_LENGTH));
    uint32_t epoch = clock; /* of a new journal, or not later than is known */
    if (pace->known == 0U) {
        pace->known = 1U;
        pace->epoch = clock;
    } else if ((clock > pace->epoch) && (pace->granted < most)) {
        pace->granted++;
        pace->epoch = clock;
    } else if (clock > pace->epoch) {
        epoch = pace->epoch;
    } else {
        /* the sensor sees for itself whether the clock ran backward */
    }
    return epoch;
}

#endif
