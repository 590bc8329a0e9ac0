/*
 * The four functions of the port on a computer.
 *
 * A slot is a file. A store writes a new file, waits until it is on the disk and renames it: after
 * a power cut the slot is the old one or the new one, whole. Written in place it could be torn, or
 * cut to nothing; the journal bears that too, but here it need not. The other slot is another file
 * and stays.
 */
#define _POSIX_C_SOURCE 200809L

#include "ss_port_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/random.h>
#endif

#define SECONDS_A_DAY 86400U

typedef struct {
    int folder; /* where the files are; -1: none */
    int lock;   /* held while the process lives, so that no two spend the same count */
} host_t;

static host_t host = { -1, -1 };

static const char *const slot_names[2] = { "ss_slot0", "ss_slot1" };
static const char new_name[] = "ss_slot.new";
static const char lock_name[] = "ss_lock";

/* Read until there are `count` bytes or the end; how many there were, or -1. */
static long read_all(int file, uint8_t *bytes, uint32_t count)
{
    uint32_t done = 0U;
    while (done < count) {
        const ssize_t got = read(file, &bytes[done], (size_t)(count - done));
        if (got == 0) {
            break;
        }
        if (got > 0) {
            done += (uint32_t)got;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return (long)done;
}

static int write_all(int file, const uint8_t *bytes, uint32_t count)
{
    uint32_t done = 0U;
    while (done < count) {
        const ssize_t put = write(file, &bytes[done], (size_t)(count - done));
        if (put >= 0) {
            done += (uint32_t)put;
        } else if (errno != EINTR) {
            return 1;
        }
    }
    return 0;
}

/* The kernel's generator, seeded from hardware; it blocks until it is. */
static int host_entropy(void *board, uint8_t *bytes, uint32_t count)
{
    int file;
    long got;
    (void)board;
#if defined(__linux__)
    if (count <= 256U) { /* up to here it gives all or nothing, and no signal interrupts it */
        const ssize_t filled = getrandom(bytes, (size_t)count, 0U);
        if (filled == (ssize_t)count) {
            return 0;
        }
    }
#endif
    file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 1;
    }
    got = read_all(file, bytes, count);
    (void)close(file);
    return (got == (long)count) ? 0 : 1;
}

/* A slot that was never written is blank. A file that is too short is padded so that it is not. */
static int host_load(void *board, uint32_t slot, uint8_t *bytes, uint32_t count)
{
    const host_t *me = board;
    uint8_t more;
    int file;
    long got;
    long beyond;
    if (slot > 1U) {
        return 1;
    }
    file = openat(me->folder, slot_names[slot], O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        if (errno != ENOENT) {
            return 1;
        }
        (void)memset(bytes, 0xFF, (size_t)count);
        return 0;
    }
    got = read_all(file, bytes, count);
    beyond = (got < 0) ? -1 : read_all(file, &more, 1U);
    (void)close(file);
    if ((got < 0) || (beyond != 0)) {
        return 1;
    }
    (void)memset(&bytes[got], 0, (size_t)count - (size_t)got);
    return 0;
}

static int host_store(void *board, uint32_t slot, const uint8_t *bytes, uint32_t count)
{
    const host_t *me = board;
    int file;
    int failed;
    if (slot > 1U) {
        return 1;
    }
    file = openat(me->folder, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) {
        return 1;
    }
    failed = (write_all(file, bytes, count) != 0) || (fsync(file) != 0);
    failed = (close(file) != 0) || failed;
    if (failed || (renameat(me->folder, new_name, me->folder, slot_names[slot]) != 0)) {
        return 1;
    }
    return (fsync(me->folder) != 0) ? 1 : 0; /* the new name is on the disk too */
}

/* Periods since 1970, in UTC. A clock that cannot be read is one before every journal. */
static uint32_t host_epoch(void *board)
{
    const time_t now = time(NULL);
    (void)board;
    return (now < 0) ? 0U : (uint32_t)((uint64_t)now / ((uint64_t)SS_BUDGET_DAYS * SECONDS_A_DAY));
}

static void give_up(void)
{
    if (host.lock >= 0) {
        (void)close(host.lock);
    }
    if (host.folder >= 0) {
        (void)close(host.folder);
    }
    host.lock = -1;
    host.folder = -1;
}

static int refuse(void)
{
    const int why = errno;
    give_up();
    return why;
}

int ss_port_host(ss_port *port, const char *folder)
{
    struct flock whole;
    give_up();
    if ((mkdir(folder, 0700) != 0) && (errno != EEXIST)) {
        return refuse();
    }
    host.folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (host.folder < 0) {
        return refuse();
    }
    host.lock = openat(host.folder, lock_name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (host.lock < 0) {
        return refuse();
    }
    (void)memset(&whole, 0, sizeof whole);
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (fcntl(host.lock, F_SETLK, &whole) != 0) {
        return refuse();
    }
    port->board = &host;
    port->entropy = host_entropy;
    port->load = host_load;
    port->store = host_store;
    port->epoch = host_epoch;
    return 0;
}
