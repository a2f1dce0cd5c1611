/* The levels of the machine's memory: what each holds, and how many bytes a second a core moves in it, measured. */
#ifndef NNC_CLI_BANDWIDTH_H
#define NNC_CLI_BANDWIDTH_H

#include "cli/peak.h"

#define MOST_LEVELS 4

typedef struct Level {
    const char *name;    /* L1, L2, L3, memory */
    int64_t bytes;       /* that it holds; INT64_MAX for memory */
    double bytes_second; /* the most that was measured, of loads or of loads and stores; 0: not yet */
} Level;

typedef struct Levels { /* from the nearest to memory */
    Level level[MOST_LEVELS];
    uint32_t count;
    Level run; /* what a run reads from end to end, by the name of the level that it fits in; of 0 bytes: no matter */
} Levels;

/* Two loops over vectors, to be compiled beside that of the peak: a sum of one stream or of several, and
 * a[i] = b[i] + s * c[i]. */
void bandwidth_write_loops(Text *out, const Target *target);
/* This machine's levels; the target's, where the system does not tell. */
void bandwidth_levels(const Target *target, int64_t run_bytes, Levels *levels);
/* Measures all levels and the run, in about 80 ms, and keeps what is more than was measured before.  False without
 * memory. */
bool bandwidth_measure(const Peak *peak, Levels *levels);
/* The level that so many bytes fit in. */
const Level *bandwidth_level_of(const Levels *levels, double bytes);

#endif
