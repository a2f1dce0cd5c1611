/* The most floating-point operations a core can do, measured: what shares of the peak are shares of. */
#ifndef NNC_CLI_PEAK_H
#define NNC_CLI_PEAK_H

#include "cli/emit.h"

/* A loop of independent multiply-adds on the target's vectors, in f32, compiled by the same compiler with the same
 * flags as a model, and loaded. */
typedef struct Peak {
    Folder folder;
    void *library;
    float (*loop)(float seed, long steps);
    double operations; /* of one step; a multiply-add is two */
    uint32_t lanes;    /* of a vector */
} Peak;

int peak_open(Cli *cli, const Target *target, Peak *peak); /* returns the exit status; peak_close in any case */
double peak_round(const Peak *peak); /* operations per second of processor time, over about 1 ms */
void peak_close(Peak *peak);

#endif
