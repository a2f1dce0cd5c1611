/* One graph on its way to an entry of the program. */
#ifndef NNC_PROGRAM_ENTRY_H
#define NNC_PROGRAM_ENTRY_H

#include "passes/pass.h"
#include "program/program.h"

PassContext entry_context(const CompileOptions *options, unsigned without, Arena *scratch, Diag *diag);

/* Partition, order, recipes, in-place, parts and plan, in the way that has the smallest peak.  False after errors. */
bool entry_plan(Entry *entry, PassContext *context);

/* Loops for each kernel; the arrays of weights that they read go to the table. */
void entry_lower(Entry *entry, WeightTable *weights);

/* Steps, what is used, and the judge's word on it all.  False after errors. */
bool entry_finish(Entry *entry);

#endif
