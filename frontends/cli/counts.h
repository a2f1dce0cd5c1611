/* What the processor counts of this thread outside of the kernel: by perf_event_open, where the machine allows it. */
#ifndef NNC_CLI_COUNTS_H
#define NNC_CLI_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

enum { COUNT_CYCLES, COUNT_INSTRUCTIONS, COUNT_MISSES, COUNTS };

typedef struct Counted {
    int64_t of[COUNTS]; /* cycles, instructions, misses of the last cache */
} Counted;

typedef struct Counts {
    int file[COUNTS]; /* of which the first reads them all; -1: none */
    int opened;
} Counts;

/* Why there are none, in words; NULL: there are.  counts_close in any case. */
const char *counts_open(Counts *counts);
Counted counts_read(const Counts *counts);
void counts_close(Counts *counts);

#endif
