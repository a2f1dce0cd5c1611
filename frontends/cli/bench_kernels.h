/* `nnc bench --kernels`: where the time of a run goes. */
#ifndef NNC_CLI_BENCH_KERNELS_H
#define NNC_CLI_BENCH_KERNELS_H

#include "cli/host.h"
#include "cli/peak.h"

/* Runs the entry of a program that was compiled with options.timed for about `seconds`, at least five times, and
 * appends a row for each kernel that ran.  Returns the exit status. */
int bench_kernels(Cli *cli, const Program *program, const Host *host, double seconds, bool json, Text *out);

#endif
