/* One graph on its way to an entry of the program. */
#ifndef NNC_PROGRAM_ENTRY_H
#define NNC_PROGRAM_ENTRY_H

#include "passes/pass.h"
#include "program/program.h"

PassContext entry_context(const CompileOptions *options, unsigned without, Arena *scratch, Diag *diag);

void entry_progress(const CompileOptions *options, const char *step); /* tells who asked for it */

/* Those in front of fuse.  False after errors. */
bool entry_run_passes(Graph *graph, const CompileOptions *options, PassContext *context);

/* Partition, order, recipes, in-place, parts and plan, in the way that has the smallest peak.  False after errors. */
bool entry_plan(Entry *entry, PassContext *context);

/* The peak of a graph that has been flattened, which is rewritten; -1 when it has no plan.  Nothing is lowered, nor
 * said. */
int64_t entry_peak_of(Graph *graph, const CompileOptions *options, unsigned without);

/* Loops for each kernel; the arrays of weights that they read go to the table.  False, with an error, when there are
 * more statements in them than a compilation has memory for. */
bool entry_lower(Entry *entry, WeightTable *weights);

/* Steps, what is used, and the judge's word on it all.  False after errors. */
bool entry_finish(Entry *entry);

#endif
