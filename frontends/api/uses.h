/* Which steps read or write a tensor of the plan. */
#ifndef NNC_API_USES_H
#define NNC_API_USES_H

#include "codegen/program/program.h"
#include "plan/report.h"

/* Fills in the uses of the rows that stand for the buffers of the plan, in their order.  A view's uses are its owner's.
 */
void uses_note(Arena *arena, const Entry *entry, PlanRow *row);

#endif
