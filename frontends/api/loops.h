/* What loops and branches do with memory, for reports. */
#ifndef NNC_API_LOOPS_H
#define NNC_API_LOOPS_H

#include "codegen/program/program.h"
#include "plan/report.h"

/* Fills in report->loop: each loop of the entry with what it carries, and what a round of it copies. */
void loops_note(Arena *arena, const Entry *entry, PlanReport *report);

#endif
