/* `nnc plan --report`: what a model takes of a machine, and whether it is there. */
#ifndef NNC_CLI_BUDGET_H
#define NNC_CLI_BUDGET_H

#include "api/budget.h"
#include "cli/program.h"

/* Stack and code by the compiler that the flag cc names, which the verb must have, and by `size` beside it.  Returns
 * the exit status. */
int budget_measure(Cli *cli, Budget *budget);

/* Errors for the limits that are exceeded. */
void budget_check(Cli *cli, Str path, const Budget *budget);

#endif
