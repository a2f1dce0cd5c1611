/* Times in seconds that only go forward. */
#ifndef NNC_CLI_CLOCK_H
#define NNC_CLI_CLOCK_H

#include <time.h>

static inline double clock_read(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline double clock_seconds(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

/* Of this thread on the processor: what other programs take does not count. */
static inline double clock_processor(void)
{
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

#endif
