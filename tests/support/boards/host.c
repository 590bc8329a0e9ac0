/* What happens to a sensor on a computer: forks, threads, a clock that jumps. Time and uptime are the test's own. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ss_pace.h"
#include "ss_port_host.h"
#include "ss_sensor.h"

#define THREADS 4
#define TRIES 15

static time_t today; /* seconds since 1970 */
static time_t awake; /* seconds since the machine was started */
static int same_number; /* every process has the same one, as the first of a namespace has */
static ss_sensor sensor;
static ss_port port;

pid_t getpid(void)
{
    return (same_number != 0) ? 1 : (pid_t)syscall(SYS_getpid);
}

time_t time(time_t *out)
{
    if (out != NULL) {
        *out = today;
    }
    return today;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    (void)clock;
    out->tv_sec = awake;
    out->tv_nsec = 0;
    return 0;
}

/* Release as often as it goes, up to `tries`; how often it went. The last status is at `*last`. */
static int release(const char *who, int tries, ss_status *last)
{
    static const uint16_t x[SS_FEATURES];
    uint8_t packet[SS_PACKET_BYTES];
    int done = 0;
    for (int i = 0; i < tries; i++) {
        char line[2 * SS_PACKET_BYTES + 1] = "";
        const ss_status status = ss_sensor_release(&sensor, x, packet);
        *last = status;
        if (status != SS_OK) {
            continue;
        }
        done++;
        for (int j = 0; j < SS_PACKET_BYTES; j++) {
            (void)sprintf(&line[2 * j], "%02x", (unsigned)packet[j]);
        }
        if (who != NULL) {
            (void)printf("%s %s\n", who, line);
        }
    }
    return done;
}

static void after_a_fork(const char *folder)
{
    ss_status last = SS_OK;
    ss_port own;
    (void)release("before", 1, &last);
    (void)fflush(stdout);
    if (fork() == 0) {
        (void)release("child", TRIES, &last);
        (void)printf("status %d left %lu ", (int)last, (unsigned long)ss_sensor_left(&sensor));
        (void)printf("open %d port %d\n", (int)ss_sensor_open(&sensor, &port), ss_port_host(&own, folder) != 0);
        (void)release("child", TRIES, &last);
        (void)fflush(stdout);
        _exit(0);
    }
    (void)wait(NULL);
    (void)release("parent", TRIES, &last);
}

static jmp_buf cut;

static int cut_store(void *board, uint32_t slot, const uint8_t *bytes, uint32_t count)
{
    (void)board;
    (void)slot;
    (void)bytes;
    (void)count;
    longjmp(cut, 1);
}

/* A port that leaves a call, as tests simulate a power cut: the next call must not wait for it. */
static void after_a_jump(void)
{
    ss_status last = SS_OK;
    ss_port leaves = port;
    leaves.store = cut_store;
    (void)ss_sensor_open(&sensor, &leaves);
    if (setjmp(cut) == 0) {
        (void)release("before", 1, &last);
    }
    (void)ss_sensor_open(&sensor, &port);
    (void)release("after", TRIES, &last);
}

static void *in_a_thread(void *unused)
{
    ss_status last = SS_OK;
    (void)release("thread", TRIES, &last);
    return unused;
}

static void with_threads(void)
{
    pthread_t made[THREADS];
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_create(&made[i], NULL, in_a_thread, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(made[i], NULL);
    }
}

/* So many steps of the clock and of the uptime; all releases that they give. */
static void with_steps(int steps, time_t clock, time_t uptime)
{
    ss_status last = SS_OK;
    int done = release(NULL, TRIES, &last);
    for (int i = 0; i < steps; i++) {
        today += clock;
        awake += uptime;
        done += release(NULL, TRIES, &last);
    }
    (void)printf("%d\n", done);
}

/* The pace alone: "s" starts, "e N" is a slot of epoch N, "b N" a torn one, "a CLOCK UPTIME" asks. */
static void paced(void)
{
    ss_pace pace;
    char what[2];
    unsigned long one;
    unsigned long two;
    (void)memset(&pace, 0, sizeof pace);
    while (scanf("%1s %lu %lu", what, &one, &two) == 3) {
        uint8_t slot[SS_SLOT_BYTES] = { 0x53U, 0x4AU, 1U, 1U };
        if (what[0] == 's') {
            (void)memset(&pace, 0, sizeof pace);
        } else if (what[0] == 'a') {
            (void)printf("%lu\n", (unsigned long)ss_pace_epoch(&pace, (uint32_t)one, (uint32_t)two));
        } else {
            uint32_t sum;
            for (int i = 0; i < 4; i++) {
                slot[12 + i] = (uint8_t)(one >> (8 * i));
            }
            sum = ss_pace_crc(slot, 20U) ^ ((what[0] == 'b') ? 1U : 0U);
            for (int i = 0; i < 4; i++) {
                slot[20 + i] = (uint8_t)(sum >> (8 * i));
            }
            ss_pace_saw(&pace, slot);
        }
    }
}

int main(int argc, char **argv)
{
    ss_status opened;
    if ((argc == 2) && (strcmp(argv[1], "pace") == 0)) {
        paced();
        return 0;
    }
    today = (time_t)strtol(argv[3], NULL, 10);
    awake = (time_t)strtol(argv[4], NULL, 10);
    same_number = (strcmp(argv[1], "fork-same-number") == 0) ? 1 : 0;
    if (ss_port_host(&port, argv[2]) != 0) {
        return 2;
    }
    opened = ss_sensor_open(&sensor, &port);
    if (opened != SS_OK) {
        (void)printf("closed %d\n", (int)opened);
    } else if (strncmp(argv[1], "fork", 4) == 0) {
        after_a_fork(argv[2]);
    } else if (strcmp(argv[1], "jump") == 0) {
        after_a_jump();
    } else if (strcmp(argv[1], "threads") == 0) {
        with_threads();
    } else {
        with_steps((int)strtol(argv[5], NULL, 10), (time_t)strtol(argv[6], NULL, 10), (time_t)strtol(argv[7], NULL, 10));
    }
    return 0;
}
