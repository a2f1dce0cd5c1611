#define _GNU_SOURCE /* syscall */
#include "cli/counts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__

#include <linux/perf_event.h>
#include <sys/syscall.h>

static int open_count(uint64_t config, int leader)
{
    struct perf_event_attr attribute = {.type = PERF_TYPE_HARDWARE,
                                        .size = sizeof attribute,
                                        .config = config,
                                        .exclude_kernel = 1,
                                        .exclude_hv = 1,
                                        .read_format = PERF_FORMAT_GROUP};
    return (int)syscall(SYS_perf_event_open, &attribute, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

const char *counts_open(Counts *counts)
{
    static const uint64_t config[COUNTS] = {[COUNT_CYCLES] = PERF_COUNT_HW_CPU_CYCLES,
                                            [COUNT_INSTRUCTIONS] = PERF_COUNT_HW_INSTRUCTIONS,
                                            [COUNT_MISSES] = PERF_COUNT_HW_CACHE_MISSES};
    for (counts->opened = 0; counts->opened < COUNTS; counts->opened++) {
        int file = open_count(config[counts->opened], counts->opened ? counts->file[0] : -1);
        if (file < 0)
            return errno == ENOENT || errno == EOPNOTSUPP || errno == ENODEV ? "the machine has no counters"
                                                                             : strerror(errno);
        counts->file[counts->opened] = file;
    }
    return NULL;
}

Counted counts_read(const Counts *counts)
{
    uint64_t values[1 + COUNTS] = {0}; /* how many there are, and they */
    Counted counted = {{0}};
    if (read(counts->file[0], values, sizeof values) == (ssize_t)sizeof values)
        for (int i = 0; i < COUNTS; i++)
            counted.of[i] = (int64_t)values[1 + i];
    return counted;
}

#else

const char *counts_open(Counts *counts)
{
    *counts = (Counts){.opened = 0};
    return "the system has no perf_event_open";
}

Counted counts_read(const Counts *counts)
{
    (void)counts;
    return (Counted){{0}};
}

#endif

void counts_close(Counts *counts)
{
    while (counts->opened > 0)
        close(counts->file[--counts->opened]);
}
