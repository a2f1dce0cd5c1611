/* Where is room among many placed pieces?  For problems with so many conflicts that to look at each would take too
 * long.
 *
 * Time is cut into columns, in each of which only so many pieces begin or end.  A column keeps the addresses that are
 * taken all through it as runs (runs.h), and the pieces that begin or end inside one by one; above the columns stands a
 * tree whose nodes keep the addresses that are taken at some time in theirs.  So a life is two single columns at its
 * ends and a few nodes between, and the search leaps upward from one to the next until all have room at one address. */
#ifndef NNC_PLAN_COLUMNS_H
#define NNC_PLAN_COLUMNS_H

#include "plan/greedy.h"

typedef struct Columns Columns;

Columns *columns_new(Arena *arena, const PlanItems *items);

/* The offset that the fit chooses for an item; whether the item can lie at an offset. */
int64_t columns_find(Columns *columns, const PlanItem *item, PlanFit fit);
bool columns_free(Columns *columns, const PlanItem *item, int64_t offset);

void columns_add(Columns *columns, const PlanItem *item, int64_t offset);

/* The work so far, in blocks, runs and pieces looked at. */
uint64_t columns_looks(const Columns *columns);

#endif
