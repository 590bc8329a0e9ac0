/* The sensor: the thin layer between the board's four functions and the kernels, which do all the arithmetic. */
#include <stddef.h>

#include "ss_guard.h"
#include "ss_sensor.h"
@INCLUDES@

#define SS_OPEN 0x53454E53U /* a sensor that was never opened does not hold this by accident */
#define SS_SLOT_SIZE ((uint32_t)SS_SLOT_BYTES)
#define SS_PACKET_SIZE ((uint32_t)SS_PACKET_BYTES)
#define SS_KEY_WORDS 8U
#define SS_SEED_BYTES @SEED_BYTES@U
#define SS_START_UP @START_UP@U
#define SS_FOUND_EPOCH 0U
#define SS_FOUND_SPENT 1U
#define SS_FOUND_NEXT 2U
#define SS_FOUND_ALONE 3U
#define SS_CIPHER_WORDS 16U
#define SS_SCRUB_WORDS 64U /* more than the deepest call below takes of the stack */

SS_CHECK(budget_is_allowed, (SS_BUDGET >= 1) && (SS_BUDGET <= SS_BUDGET_MOST));

/* Answers of the journal. */
#define SS_JOURNAL_HOLDS @HOLDS@U
#define SS_JOURNAL_NEW @NEW@U

static const uint8_t ss_identity[@IDENTITY_BYTES@] = { @IDENTITY@ };

/* Zero words; volatile, so that no compiler leaves it out because nobody reads them again. */
static void ss_wipe(volatile uint32_t *words, uint32_t count)
{
    for (uint32_t i = 0U; i < count; i++) {
        words[i] = 0U;
    }
}

/* Overwrite the stack that functions called before may have left keys or words on. */
static void ss_scrub_stack(void)
{
    volatile uint32_t left[SS_SCRUB_WORDS];
    ss_wipe(left, SS_SCRUB_WORDS);
}

/* Called through this, so that no compiler merges its frame with that of its caller. */
static void (*volatile const ss_scrub)(void) = ss_scrub_stack;

/* Let nothing of the generator at work stay, and the new key be in memory, where the old one was. */
static void ss_settle(ss_sensor *sensor)
{
    volatile uint32_t *key = sensor->key;
    for (uint32_t i = 0U; i < SS_KEY_WORDS; i++) {
        key[i] = sensor->key[i];
    }
    ss_wipe(sensor->state, SS_CIPHER_WORDS);
    ss_wipe(sensor->block, SS_CIPHER_WORDS);
}

/* What an open sensor holds. A copy of it lies elsewhere or in another process, so it does not. */
static uint32_t ss_mark(const ss_sensor *sensor)
{
    return SS_OPEN ^ (uint32_t)(uintptr_t)sensor ^ SS_PROCESS();
}

/* Forget the key; the sensor answers SS_NOT_OPEN until it is opened again. */
static void ss_close(ss_sensor *sensor)
{
    sensor->open = 0U;
    ss_wipe(sensor->key, SS_KEY_WORDS);
}

/* A new key from the board's entropy, all of which must pass the health tests. */
static ss_status ss_seed(ss_sensor *sensor)
{
    uint32_t alarm = 0U;
    int failed = 0;
    for (uint32_t i = 0U; i < SS_KEY_WORDS; i++) {
        sensor->key[i] = 0U;
    }
    for (uint32_t i = 0U; i < SS_SEED_BYTES; i++) {
        sensor->bytes[i] = 0U;
    }
    for (uint32_t i = 0U; i < @HEALTH_WORDS@U; i++) {
        sensor->health[i] = 0U;
    }
    for (uint32_t i = 0U; i < @RECENT_WORDS@U; i++) {
        sensor->recent[i] = 0U;
    }
    sensor->health[0] = @NO_BYTE@U;
    for (uint32_t taken = 0U; (taken < SS_START_UP) && (failed == 0); taken += SS_SEED_BYTES) {
        uint8_t *before = sensor->slots; /* not in use yet */
        uint32_t differ = 0U;
        for (uint32_t i = 0U; i < SS_SEED_BYTES; i++) {
            before[i] = sensor->bytes[i];
            sensor->bytes[i] = 0U;
        }
        failed = sensor->port.entropy(sensor->port.board, sensor->bytes, SS_SEED_BYTES);
        for (uint32_t i = 0U; i < SS_SEED_BYTES; i++) {
            differ |= (uint32_t)before[i] ^ (uint32_t)sensor->bytes[i];
        }
        alarm |= (differ == 0U) ? 1U : 0U; /* a buffer that nobody fills anew */
        if (failed == 0) {
            alarm |= ss_watch(sensor->bytes, sensor->health, SS_SEED_BYTES);
            alarm |= ss_watch_patterns(sensor->bytes, sensor->recent);
            ss_absorb(sensor->key, sensor->bytes, sensor->state, sensor->block);
        }
    }
    for (uint32_t i = 0U; i < SS_SEED_BYTES; i++) {
        ((volatile uint8_t *)sensor->slots)[i] = 0U;
    }
    for (uint32_t i = 0U; i < SS_SEED_BYTES; i++) {
        ((volatile uint8_t *)sensor->bytes)[i] = 0U;
    }
    ss_wipe(sensor->health, @HEALTH_WORDS@U);
    ss_wipe(sensor->recent, @RECENT_WORDS@U);
    ss_settle(sensor);
    return ((failed == 0) && (alarm == 0U)) ? SS_OK : SS_NO_ENTROPY;
}

/* Read both slots and say what they hold together. */
static ss_status ss_load(ss_sensor *sensor, uint32_t *answer)
{
    ss_status status = SS_OK;
    for (uint32_t slot = 0U; slot < 2U; slot++) {
        uint8_t *bytes = &sensor->slots[slot * SS_SLOT_SIZE];
        if (sensor->port.load(sensor->port.board, slot, bytes, SS_SLOT_SIZE) != 0) {
            status = SS_NO_STORE;
        }
    }
    if (status == SS_OK) {
        *answer = ss_read_journal(sensor->slots, ss_identity, @CRC@, sensor->found, @CRC_SIZE@U);
    }
    return status;
}

/* Write one slot and read it back: worn memory may take a write and not keep it. */
static ss_status ss_store(ss_sensor *sensor, uint32_t slot, uint32_t epoch, uint32_t spent)
{
    uint8_t *entry = sensor->slots;
    uint8_t *back = &sensor->slots[SS_SLOT_SIZE];
    ss_status status = SS_NO_STORE;
    ss_write_slot(entry, ss_identity, @CRC@, SS_RESERVE, epoch, spent, @CRC_SIZE@U);
    if ((sensor->port.store(sensor->port.board, slot, entry, SS_SLOT_SIZE) == 0) &&
        (sensor->port.load(sensor->port.board, slot, back, SS_SLOT_SIZE) == 0)) {
        uint32_t differ = 0U;
        for (uint32_t i = 0U; i < SS_SLOT_SIZE; i++) {
            differ |= (uint32_t)entry[i] ^ (uint32_t)back[i];
        }
        if (differ == 0U) {
            status = SS_OK;
        }
    }
    return status;
}

/* Count a release in the journal, before anything is drawn. */
static ss_status ss_spend_one(ss_sensor *sensor, uint32_t now)
{
    uint32_t answer = SS_JOURNAL_HOLDS;
    ss_status status = ss_load(sensor, &answer);
    if (status == SS_OK) {
        const uint32_t epoch = sensor->found[SS_FOUND_EPOCH];
        const uint32_t spent = sensor->found[SS_FOUND_SPENT];
        if ((answer != SS_JOURNAL_HOLDS) || (epoch < sensor->epoch) ||
            ((epoch == sensor->epoch) && (spent < sensor->spent))) {
            ss_close(sensor); /* damaged, or put back to an earlier state */
            status = SS_BAD_JOURNAL;
        } else {
            if ((epoch != sensor->epoch) || (spent != sensor->spent)) { /* another sensor counted here */
                sensor->epoch = epoch;
                sensor->spent = spent;
                sensor->used = spent;
            }
            status = (ss_status)ss_spend(sensor->found, sensor->entry, now, SS_BUDGET, SS_RESERVE);
        }
    }
    if (status == SS_OK) {
        status = ss_store(sensor, sensor->found[SS_FOUND_NEXT], now, sensor->entry[1]);
    }
    if (status == SS_OK) {
        sensor->epoch = now;
        sensor->used = sensor->entry[0];
        sensor->spent = sensor->entry[1];
    }
    return status;
}

/* Draw, release and pack; then wipe what was drawn with. */
static void ss_draw(ss_sensor *sensor, const uint16_t x[SS_FEATURES], uint8_t packet[SS_PACKET_BYTES])
{
    ss_fresh_words(sensor->key, sensor->word, sensor->state, sensor->block, sensor->used, sensor->epoch, @BLOCKS@U);
@DRAW@
    ss_settle(sensor);
    ss_wipe(sensor->word, @WORDS@U);
}

/* Called through these, so that no compiler puts them into their callers: what they leave on the stack then lies below
 * the frame that ss_scrub is called from, where ss_scrub wipes. */
static ss_status (*volatile const ss_seed_apart)(ss_sensor *) = ss_seed;
static void (*volatile const ss_draw_apart)(ss_sensor *, const uint16_t[SS_FEATURES], uint8_t[SS_PACKET_BYTES]) = ss_draw;

/* One slot is bad and may have been the newer one: count what it may have counted. */
static ss_status ss_count_on(ss_sensor *sensor, uint32_t now)
{
    ss_status status = SS_OK;
    if (ss_spend(sensor->found, sensor->entry, now, SS_BUDGET, SS_RESERVE) == SS_JOURNAL_HOLDS) {
        status = ss_store(sensor, sensor->found[SS_FOUND_NEXT], now, sensor->entry[1]);
        sensor->found[SS_FOUND_EPOCH] = now;
        sensor->found[SS_FOUND_SPENT] = sensor->entry[1];
    }
    return status;
}

ss_status ss_sensor_open(ss_sensor *sensor, const ss_port *port)
{
    ss_status status = SS_NOT_OPEN;
    if ((sensor != NULL) && (port != NULL)) {
        uint32_t answer = SS_JOURNAL_HOLDS;
        SS_ENTER();
        ss_close(sensor);
        sensor->port = *port;
        status = ss_seed_apart(sensor);
        if (status == SS_OK) {
            status = ss_load(sensor, &answer);
        }
        if (status == SS_OK) {
            const uint32_t now = sensor->port.epoch(sensor->port.board);
            if (answer == SS_JOURNAL_NEW) {
                sensor->found[SS_FOUND_EPOCH] = now;
                status = ss_store(sensor, 0U, now, 0U);
                if (status == SS_OK) {
                    status = ss_store(sensor, 1U, now, 0U);
                }
            } else if (answer != SS_JOURNAL_HOLDS) {
                status = SS_BAD_JOURNAL;
            } else if (now < sensor->found[SS_FOUND_EPOCH]) {
                status = SS_BAD_CLOCK;
            } else if (sensor->found[SS_FOUND_ALONE] != 0U) {
                status = ss_count_on(sensor, now);
            } else {
                /* the journal holds */
            }
        }
        if (status == SS_OK) {
            sensor->epoch = sensor->found[SS_FOUND_EPOCH];
            sensor->spent = sensor->found[SS_FOUND_SPENT];
            sensor->used = sensor->spent;
@ORDER@            sensor->open = ss_mark(sensor);
        } else {
            ss_close(sensor);
        }
        ss_scrub();
        SS_LEAVE();
    }
    return status;
}

/* Count a release and draw it. */
static ss_status ss_release(ss_sensor *sensor, const uint16_t x[SS_FEATURES], uint8_t packet[SS_PACKET_BYTES])
{
    const uint32_t now = sensor->port.epoch(sensor->port.board);
    ss_status status = SS_OK; /* counted ahead by an earlier store */
    if (now < sensor->epoch) {
        status = SS_BAD_CLOCK;
    } else if ((now != sensor->epoch) || (sensor->used >= sensor->spent)) {
        status = ss_spend_one(sensor, now);
    } else {
        /* nothing to store */
    }
    if (status == SS_OK) {
        sensor->used++;
        ss_draw_apart(sensor, x, packet);
        ss_scrub();
    }
    return status;
}

ss_status ss_sensor_release(ss_sensor *sensor, const uint16_t x[SS_FEATURES], uint8_t packet[SS_PACKET_BYTES])
{
    ss_status status = SS_NOT_OPEN;
    if (packet != NULL) {
        for (uint32_t i = 0U; i < SS_PACKET_SIZE; i++) {
            packet[i] = 0U;
        }
        if ((sensor != NULL) && (x != NULL) && (sensor->open == ss_mark(sensor))) {
            SS_ENTER(); /* not in a forked process, where another thread may hold it for ever */
            if (sensor->open == ss_mark(sensor)) { /* still */
                status = ss_release(sensor, x, packet);
            }
            SS_LEAVE();
        }
    }
    return status;
}

uint32_t ss_sensor_left(const ss_sensor *sensor)
{
    uint32_t left = 0U;
    if ((sensor != NULL) && (sensor->open == ss_mark(sensor))) {
        uint32_t now = 0U;
        SS_ENTER();
        now = sensor->port.epoch(sensor->port.board);
        if (now > sensor->epoch) {
            left = (uint32_t)SS_BUDGET;
        } else if ((now == sensor->epoch) && (sensor->used < SS_BUDGET)) {
            left = (uint32_t)SS_BUDGET - sensor->used;
        } else {
            /* spent, or the clock ran backward */
        }
        SS_LEAVE();
    }
    return left;
}

void ss_sensor_close(ss_sensor *sensor)
{
    if (sensor != NULL) {
        SS_ENTER();
        ss_close(sensor);
        SS_LEAVE();
    }
}
