/* How long each kernel of a model takes, of a program that was compiled with options.timed. */
#ifndef NNC_CLI_KERNEL_TIMES_H
#define NNC_CLI_KERNEL_TIMES_H

#include "cli/counts.h"
#include "cli/host.h"

typedef struct KernelTimes { /* of the entry that a host runs */
    uint32_t kernels, runs;
    double *second; /* [runs][kernels], of the processor: all rounds of a run */
    int64_t *calls; /* per kernel, of all runs */
    uint32_t count, capacity;
    void (**hook)(long); /* what the program calls after each kernel */
} KernelTimes;

/* Runs once without looking. */
KernelTimes kernel_times_open(Arena *arena, const Program *program, const Host *host);
/* Runs once more, for the caches, before the run that is timed. */
void kernel_times_run(KernelTimes *times, Arena *arena, const Host *host);
/* Seconds of kernel k that a share of the runs is below: 0.5 is the median. */
double kernel_times_quantile(const KernelTimes *times, uint32_t k, double share);
int64_t kernel_times_calls(const KernelTimes *times, uint32_t k); /* of a run; 0: never */

/* Per kernel what the processor counts in a run of it, the mean of some; they are not timed. */
Counted *kernel_times_count(const KernelTimes *times, Arena *arena, const Host *host, const Counts *counts);

#endif
