/*
 * The four functions of the port on a computer.
 *
 * A slot is a file. A store writes a new file, waits until it is on the disk and renames it: after
 * a power cut the slot is the old one or the new one, whole. Written in place it could be torn, or
 * cut to nothing; the journal bears that too, but here it need not. The other slot is another file
 * and stays.
 *
 * The port is of the process that made it: after a fork every function of it fails in the child. The
 * epoch is paced (ss_pace.h) by the uptime of the machine, and what was handed out since it started
 * is kept in a file of the folder, so that a process that is started anew has no new budget.
 */
#define _POSIX_C_SOURCE 200809L

#include "ss_port_host.h"
#include "../ss_pace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/random.h>
#endif

#define BOOT_BYTES 36U /* of the name that Linux gives to every start of the machine */
#if defined(CLOCK_BOOTTIME)
#define UPTIME CLOCK_BOOTTIME /* goes on while the machine sleeps */
#else
#define UPTIME CLOCK_MONOTONIC
#endif

typedef struct {
    uint8_t boot[BOOT_BYTES]; /* of which start of the machine this speaks; zeros where it has no name */
    uint64_t since;           /* uptime at the first use of the folder */
    uint32_t granted;         /* new epochs since then */
} run_t;

typedef struct {
    int folder;  /* where the files are; -1: none */
    int lock;    /* held while the process lives, so that no two spend the same count */
    pid_t owner; /* the process that made the port; 0 in one that was forked from it */
    ss_pace pace;
    run_t run;
} host_t;

static host_t host = { .folder = -1, .lock = -1 };

static const char *const slot_names[2] = { "ss_slot0", "ss_slot1" };
static const char new_name[] = "ss_slot.new";
static const char lock_name[] = "ss_lock";
static const char run_name[] = "ss_run";

/* Whether this is the process that made the port, and not one that was forked from it. */
static int is_owner(const host_t *me)
{
    return me->owner == getpid();
}

/* A forked process may have the same number: in a namespace of its own, or after the first has ended. */
static void disown(void)
{
    host.owner = 0;
}

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
    if (!is_owner(board)) {
        return 1;
    }
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
    host_t *me = board;
    uint8_t more;
    int file;
    long got;
    long beyond;
    if ((slot > 1U) || (count != SS_SLOT_BYTES) || !is_owner(me)) {
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
    ss_pace_saw(&me->pace, bytes);
    return 0;
}

/* Put a whole new file in the place of an old one; with `keep` it survives a power cut. */
static int replace_file(const host_t *me, const char *name, const uint8_t *bytes, uint32_t count, int keep)
{
    int file;
    int failed;
    file = openat(me->folder, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) {
        return 1;
    }
    failed = (write_all(file, bytes, count) != 0) || (keep && (fsync(file) != 0));
    failed = (close(file) != 0) || failed;
    if (failed || (renameat(me->folder, new_name, me->folder, name) != 0)) {
        return 1;
    }
    return (keep && (fsync(me->folder) != 0)) ? 1 : 0; /* the new name is on the disk too */
}

static int host_store(void *board, uint32_t slot, const uint8_t *bytes, uint32_t count)
{
    const host_t *me = board;
    return ((slot > 1U) || !is_owner(me)) ? 1 : replace_file(me, slot_names[slot], bytes, count, 1);
}

static uint64_t uptime(void)
{
    struct timespec now;
    return (clock_gettime(UPTIME, &now) == 0) ? (uint64_t)now.tv_sec : 0U;
}

/* A power cut ends the run of the machine of which the file speaks, so it need not survive one. */
static int save_run(const host_t *me, const run_t *run)
{
    return (run->boot[0] == 0U) ? 0 : replace_file(me, run_name, (const uint8_t *)run, (uint32_t)sizeof *run, 0);
}

/* Go on with what was handed out since the machine was started; where nothing is known of it, begin. */
static int begin_run(host_t *me)
{
    static const run_t none;
    run_t now = none;
    run_t before = none;
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (read_all(file, now.boot, BOOT_BYTES) != (long)BOOT_BYTES) {
            now = none;
        }
        (void)close(file);
    }
    now.since = uptime();
    file = openat(me->folder, run_name, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        const long got = read_all(file, (uint8_t *)&before, (uint32_t)sizeof before);
        (void)close(file);
        if ((got == (long)sizeof before) && (now.boot[0] != 0U) && (before.since <= now.since) &&
            (memcmp(before.boot, now.boot, BOOT_BYTES) == 0)) {
            now = before;
        }
    }
    me->run = now;
    (void)memset(&me->pace, 0, sizeof me->pace);
    me->pace.granted = now.granted;
    return save_run(me, &now);
}

/* Periods since 1970, in UTC, and no more new ones than the uptime allows. A clock that cannot be
 * read is one before every journal. */
static uint32_t host_epoch(void *board)
{
    host_t *me = board;
    const time_t now = time(NULL);
    ss_pace pace;
    uint32_t epoch;
    if ((now < 0) || !is_owner(me)) {
        return 0U;
    }
    pace = me->pace;
    epoch = ss_pace_epoch(&pace, (uint32_t)((uint64_t)now / SS_PACE_LENGTH), (uint32_t)(uptime() - me->run.since));
    if (pace.granted != me->pace.granted) {
        run_t run = me->run;
        run.granted = pace.granted;
        if (save_run(me, &run) != 0) {
            return me->pace.epoch; /* not handed out before it is counted */
        }
        me->run = run;
    }
    me->pace = pace;
    return epoch;
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
    static int forks_are_seen = 0;
    struct flock whole;
    give_up();
    if (forks_are_seen == 0) {
        const int why = pthread_atfork(NULL, NULL, disown);
        if (why != 0) {
            return why;
        }
        forks_are_seen = 1;
    }
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
    host.owner = getpid();
    if (begin_run(&host) != 0) {
        return refuse();
    }
    port->board = &host;
    port->entropy = host_entropy;
    port->load = host_load;
    port->store = host_store;
    port->epoch = host_epoch;
    return 0;
}
