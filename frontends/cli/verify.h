/* Judges a plan that someone stored, or another tool made, against a model: `nnc plan --verify`. */
#ifndef NNC_CLI_VERIFY_H
#define NNC_CLI_VERIFY_H

#include "cli/program.h"

/* `path` is a plan in the JSON schema of docs/planning.md, version 1; of it only the tensors' names, bytes and offsets
 * are needed.  Lives are those of the entry's schedule, and every buffer of the
 * report must be there.  Reports all
 * faults with the tensors' names; returns the exit status. */
int verify_plan(Cli *cli, const Entry *entry, const PlanReport *report, Str path);

#endif
