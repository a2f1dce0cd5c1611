/* What in-place results, views, parts of concats and pads and the order of kernels each save in a plan. */
#ifndef NNC_CLI_SAVINGS_H
#define NNC_CLI_SAVINGS_H

#include "cli/program.h"

/* The words of the flag --without, `inplace,views,parts,order`, as a sum of Without; false after a usage error. */
bool savings_without(Cli *cli, unsigned *without);

/* Fills in report->saving: the model is compiled again without each of them that `program` may owe something to, and
 * the peaks are compared. All at once may save more or less than the sum. */
void savings_measure(Cli *cli, const Program *program, PlanReport *report);

#endif
