/* `nnc bench --kernels`: where the time of a run goes, and what the machine would allow. */
#ifndef NNC_CLI_BENCH_KERNELS_H
#define NNC_CLI_BENCH_KERNELS_H

#include "cli/host.h"
#include "cli/roofline.h"

typedef void BenchPrinter(Text *out, const Roofline *roofline);

/* Runs the entry of a program that was compiled with options.timed for about `seconds`, at least five times, measures
 * peak and memory beside it, and appends a row for each kernel that ran.  Returns the exit status. */
int bench_kernels(Cli *cli, const Program *program, const Host *host, double seconds, BenchPrinter *print, Text *out);

#endif
