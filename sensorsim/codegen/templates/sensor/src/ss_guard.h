/* Who may use an open sensor: the process that opened it, one thread at a time. Where there is no operating system
 * there is one of each, and this is empty; for several tasks on such a board define SS_ENTER() and SS_LEAVE(). */
#ifndef SS_GUARD_H
#define SS_GUARD_H

#if defined(__STDC_HOSTED__) && (__STDC_HOSTED__ == 1) && (defined(__unix__) || defined(__APPLE__))
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* A fork copies an open sensor, key included, to the same address of another process. That may have the same number
 * (in a namespace of its own, or after the first has ended), so forks are counted as well. */
static uint32_t ss_forks;
static pthread_once_t ss_counting_forks = PTHREAD_ONCE_INIT;

static void ss_count_fork(void)
{
    ss_forks++;
}

static void ss_count_forks(void)
{
    (void)pthread_atfork(NULL, NULL, ss_count_fork);
}

static uint32_t ss_process(void)
{
    (void)pthread_once(&ss_counting_forks, ss_count_forks);
    return (uint32_t)getpid() ^ (ss_forks << 22); /* numbers of processes are below 2^22 */
}

#define SS_PROCESS() ss_process()
#ifndef SS_ENTER
static pthread_mutex_t ss_turn = PTHREAD_MUTEX_INITIALIZER;
static __thread uint32_t ss_turn_is_mine; /* also where a port left a call by longjmp: the next call goes on */

static void ss_enter(void)
{
    if (ss_turn_is_mine == 0U) {
        (void)pthread_mutex_lock(&ss_turn);
        ss_turn_is_mine = 1U;
    }
}

static void ss_leave(void)
{
    ss_turn_is_mine = 0U;
    (void)pthread_mutex_unlock(&ss_turn);
}

#define SS_ENTER() ss_enter()
#define SS_LEAVE() ss_leave()
#endif
#endif

#ifndef SS_PROCESS
#define SS_PROCESS() 0U
#endif
#ifndef SS_ENTER
#define SS_ENTER() ((void)0)
#define SS_LEAVE() ((void)0)
#endif

#endif
