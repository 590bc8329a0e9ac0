/* A Zephyr board that can be broken. */
#ifndef FAKE_H
#define FAKE_H
#include <stdbool.h>
#include <stdint.h>

extern struct fake {
    int64_t uptime;  /* in milliseconds */
    bool no_entropy; /* the generator answers with an error */
    bool stuck;      /* the generator answers the same byte */
    bool full;       /* writes answer with an error */
    bool cut;        /* the power goes before a write counts */
    bool bad;        /* the partition does not mount */
    unsigned writes; /* that changed the flash */
} fake;

void fake_erase(void);                                           /* a new flash */
void fake_put(uint16_t id, const uint8_t *data, uint16_t count); /* an entry of another's */
#endif
