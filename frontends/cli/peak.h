/* The most floating-point operations a core can do, measured: what shares of the peak are shares of. */
#ifndef NNC_CLI_PEAK_H
#define NNC_CLI_PEAK_H

#include "cli/emit.h"

/* Multiply-adds per second on the target's vectors, two operations each, in f32 on one core: the best of some runs of a
 * loop of independent multiply-adds, compiled by the same compiler with the same flags.  Returns the exit status. */
int peak_measure(Cli *cli, const Target *target, double *flops);

#endif
