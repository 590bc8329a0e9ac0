{% from 'sensor/privacy.jinja' import about, protects with context %}
/**
 * @file ss_sensor.h
 * @brief A private sensor: records go in, packets that protect them come out.
 *
 * {{ about(firmware) | in_comment }}
 *
 * The board gives four functions (ss_port). Open the sensor once after every reset, then release a
 * record whenever one is complete:
 *
 * @code
 * static ss_sensor sensor;
 * uint8_t packet[SS_PACKET_BYTES];
 * if ((ss_sensor_open(&sensor, &port) == SS_OK) && (ss_sensor_release(&sensor, x, packet) == SS_OK)) {
 *     radio_send(packet, SS_PACKET_BYTES);
 * }
 * @endcode
 *
 * {{ ("What a packet protects: " ~ protects(firmware)) | in_comment }}
 *
 * {{ time | in_comment }}
 *
 * One task owns a sensor: on an RTOS define SS_ENTER() and SS_LEAVE() (src/ss_guard.h), or call it from
 * one task. Keep one sensor for one journal. On a Unix system threads take turns, and in a forked process
 * the sensor is closed. A copy of an ss_sensor is closed too. One that is restored from an image of the
 * memory (a checkpoint, a snapshot of a virtual machine) is not: it would use its key twice, so close it
 * before and open it after.
 *
 * The budget is one of every epoch, so it is only as good as the clock: over a lifetime a device spends at
 * most the budget times the number of epochs that its clock shows, and who sets the clock forward a
 * thousand times has a thousand budgets. ports/ss_pace.h bounds that by the uptime; the ports use it.
 */
#ifndef SS_SENSOR_H
#define SS_SENSOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The sensorsim that made this package. */
#define SS_VERSION "{{ version }}"

/** Features of a record, as the application gives it. */
#define SS_FEATURES {{ firmware.n }}
{% if firmware.encoder %}

/** Hidden units that the encoder makes of them. */
#define SS_HIDDEN {{ firmware.features }}

{% elif firmware.sketch %}

/** Public directions; the square of a record along one of them is what is released. */
#define SS_DIRECTIONS {{ firmware.features }}

{% endif %}
/** Of these so many are released in one packet. */
#define SS_RELEASED {{ firmware.k }}

/** Bytes of a packet. */
#define SS_PACKET_BYTES {{ firmware.layout.bytes }}

/** Bytes of one of the two slots of the journal. */
#define SS_SLOT_BYTES {{ slot_bytes }}

/** Epsilon of one release, as it was proved at export. */
#define SS_EPSILON "{{ firmware.epsilon }}"

/** Length of an epoch in days. */
#define SS_BUDGET_DAYS {{ firmware.budget_days }}U

/** Epsilon that an epoch may spend. */
#define SS_BUDGET_EPSILON "{{ firmware.budget }}"

/** Releases that an epoch allows: the budget over the epsilon of one, rounded down. */
#define SS_BUDGET_MOST {{ firmware.releases }}U

#ifndef SS_BUDGET
/** Releases that this build allows in an epoch: SS_BUDGET_MOST, or fewer where it is defined so. */
#define SS_BUDGET SS_BUDGET_MOST
#endif
#if (SS_BUDGET < 1) || (SS_BUDGET > SS_BUDGET_MOST)
#error "SS_BUDGET must be 1 or more and at most SS_BUDGET_MOST"
#endif

#ifndef SS_RESERVE
/** Releases that one store counts ahead; a reset loses those that were not used. */
#define SS_RESERVE {{ firmware.reserve }}U
#endif
#if (SS_RESERVE < 1) || (SS_RESERVE > 255)
#error "SS_RESERVE must be 1 to 255"
#endif

/** What a call answers. On anything but SS_OK the packet is all zeros and nothing was released. */
typedef enum {
{% for one in Status %}
{% set comma = "" if loop.last else "," %}
    SS_{{ "%-16s" | format(one.name ~ " = " ~ one.value ~ comma) }} /**< {{ one.about }} */
{% endfor %}
} ss_status;

/** What only the board can do. Functions answer 0 for success and anything else for failure. */
typedef struct {
    /** Handed to every function as it is. */
    void *board;
    /** Fill the bytes from a true random generator, at least {{ health.CLAIMED_BITS }} bits of min-entropy in each byte. Every open reads
     *  {{ health.START_UP }} bytes and tests them (NIST SP 800-90B, 4.4, and for patterns). Found are bytes that stick, lean to some
     *  values, count (in 1, 2, 4 or 8 bytes) or repeat a cycle of up to {{ health.LONGEST_CYCLE }}. Not found is what looks random
     *  and is not: a seed that is known, rand(), a counter under a cipher. */
    int (*entropy)(void *board, uint8_t *bytes, uint32_t count);
    /** Read a slot (0 or 1) of non-volatile memory. Blank memory reads 0xFF. */
    int (*load)(void *board, uint32_t slot, uint8_t *bytes, uint32_t count);
    /** Write a slot, and return when it would survive a power cut. Erasing it first is fine. */
    int (*store)(void *board, uint32_t slot, const uint8_t *bytes, uint32_t count);
    /** Number of the budget period by the board's clock: days since any fixed day over SS_BUDGET_DAYS. It never runs
     *  backward, and each later one brings a new budget: hand it through ss_pace_epoch() of ports/ss_pace.h. */
    uint32_t (*epoch)(void *board);
} ss_port;

/** A sensor. All of it is private to the functions below; start it as zeros (static, or memset). */
typedef struct {
{% for line in members %}
    {{ line }}
{% endfor %}
} ss_sensor;

/**
 * Seed the generator and read the journal. Call it once after every reset.
 *
 * On blank memory it starts a journal. It never gives back what was spent.
 *
 * @param sensor  the sensor
 * @param port    the board's functions; copied
 * @return SS_OK; SS_NO_ENTROPY, SS_NO_STORE, SS_BAD_JOURNAL or SS_BAD_CLOCK, and the sensor is closed
 */
ss_status ss_sensor_open(ss_sensor *sensor, const ss_port *port);

/**
 * Release one record. The journal counts it before anything is drawn.
 *
 * @param sensor  an open sensor
 * @param x       the record: {{ firmware.n }} features in UQ15, 32768 for 1; larger values count as 1
 * @param packet  SS_PACKET_BYTES bytes to send, all zeros on failure
 * @return SS_OK, or why nothing was released
 */
ss_status ss_sensor_release(ss_sensor *sensor, const uint16_t x[SS_FEATURES], uint8_t packet[SS_PACKET_BYTES]);

/**
 * Releases that the budget still allows in this epoch; 0 while the sensor is closed.
 *
 * @param sensor  the sensor
 * @return 0 to SS_BUDGET
 */
uint32_t ss_sensor_left(const ss_sensor *sensor);

/**
 * Wipe the key and close the sensor, before a long sleep or where its memory is given up. The journal stays.
 *
 * @param sensor  the sensor
 */
void ss_sensor_close(ss_sensor *sensor);

#ifdef __cplusplus
}
#endif

#endif
