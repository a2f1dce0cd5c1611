/* The plan of an entry, for the printers of plan/report.h. */
#ifndef NNC_API_REPORT_H
#define NNC_API_REPORT_H

#include "codegen/program/program.h"
#include "plan/report.h"

/* Finished.  The first rows are the buffers of entry->memory.problem, then come views. */
PlanReport report_of_entry(Arena *arena, const Entry *entry);

#endif
