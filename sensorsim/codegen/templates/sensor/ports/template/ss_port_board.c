/*
 * A port to fill in: four functions, each with what it must guarantee. As it stands it compiles and
 * every function fails, so a sensor on an unfinished port releases nothing.
 *
 * They are called from within the functions of ss_sensor.h only, in the thread that calls those, and
 * may block. A sensor is used by one thread at a time.
 */
#include "ss_port_board.h"
#include "../ss_pace.h"

static ss_pace pace; /* zeros after every reset, as the uptime */

/*
 * entropy: fill `count` bytes (32 at a time) from a true random generator; 0 when all are filled.
 *
 * The bytes must be unpredictable to anyone who knows the device, its firmware and all it sent.
 * Every byte must hold at least 6 bits of min-entropy: take a hardware generator, conditioned if
 * its data sheet says so, and start its clock and wait until it is ready before you read. Not good
 * enough: a seed from the serial number, the time, a counter, rand(), or the same state restored
 * after a reset.
 *
 * ss_sensor_open() reads 1024 bytes and tests them (SP 800-90B, 4.4). Where this function fails, or
 * the bytes repeat or lean to some values, it answers SS_NO_ENTROPY and the sensor stays closed;
 * open it again later. What the tests cannot see is a generator that looks random and is not: that
 * is up to you.
 */
static int board_entropy(void *board, uint8_t *bytes, uint32_t count)
{
    (void)board;
    (void)bytes;
    (void)count;
    return 1; /* TODO: fill the bytes; return 0 only when every one of them is filled */
}

/*
 * load: read the first `count` bytes (SS_SLOT_BYTES) of slot 0 or 1; 0 when they are read.
 *
 * Memory that was never written reads 0xFF: where your memory erases to something else, or a file
 * system has no such entry, fill in 0xFF. Give what is there, torn or not: the journal has a
 * checksum and judges it. Do not answer 0xFF for a read that failed, because blank memory starts
 * a new journal and with it a new budget: return 1 (SS_NO_STORE, nothing is released). When a slot is
 * read, hand its bytes to ss_pace_saw(&pace, bytes).
 */
static int board_load(void *board, uint32_t slot, uint8_t *bytes, uint32_t count)
{
    (void)board;
    (void)slot;
    (void)bytes;
    (void)count;
    return 1; /* TODO: copy from the memory of the slot */
}

/*
 * store: write `count` bytes (SS_SLOT_BYTES) to slot 0 or 1; 0 only when they are in the memory for
 * good.
 *
 * - Return when the flash says that it has finished, not when a cache or a queue has taken the
 *   bytes.
 * - The slot may be erased first, where it is not blank already (an erase of blank memory that is cut
 *   short can leave it unreadable). A power cut may leave a slot erased, half written or with wrong
 *   bits.
 * - The other slot must not change, whatever happens: give each slot an erase block (page) of its
 *   own.
 * - Nothing else may write these two blocks: no wear levelling that moves or restores an older
 *   copy, no settings store, no firmware update. What puts an older image back gives back spent
 *   budget.
 *
 * The sensor reads back what it stored. Where this function fails, or the bytes differ, it answers
 * SS_NO_STORE and releases nothing. A slot is written once for every SS_RESERVE releases, the two
 * in turn: at 10000 erase cycles a block that is 20000 x SS_RESERVE releases.
 */
static int board_store(void *board, uint32_t slot, const uint8_t *bytes, uint32_t count)
{
    (void)board;
    (void)slot;
    (void)bytes;
    (void)count;
    return 1; /* TODO: erase the block of the slot, write it, wait until it is done */
}

/*
 * epoch: the number of the budget period, that is days since 1970 / SS_BUDGET_DAYS, from a clock
 * that goes on through resets (an RTC with a battery, or a time that is received after every
 * reset).
 *
 * It must never go backward. An epoch below the journal's is SS_BAD_CLOCK: nothing is released
 * until the clock has caught up. An epoch that jumps forward starts a new budget, so who sets the
 * clock would set the budget: ss_pace_epoch() hands on no more new epochs than the uptime allows. A
 * date in the far future closes the sensor until then: take the time from a source that you trust,
 * and check it before you set the clock. There is no failure to return: where the time is not known,
 * do not open the sensor, and answer 0, which is before every journal that was begun with a date.
 *
 * A board without an uptime counter returns the clock's epoch as it is, and its budget is as good as
 * its clock.
 */
static uint32_t board_epoch(void *board)
{
    const uint32_t clock = 0U;  /* TODO: seconds since 1970 / SS_PACE_LENGTH */
    const uint32_t uptime = 0U; /* TODO: seconds since the reset, by a counter that nobody can set */
    (void)board;
    return ss_pace_epoch(&pace, clock, uptime);
}

void ss_port_board(ss_port *port)
{
    port->board = (void *)0; /* TODO: what the four functions want to be given, if anything */
    port->entropy = board_entropy;
    port->load = board_load;
    port->store = board_store;
    port->epoch = board_epoch;
}
