/* Results that take over the memory of an operand. */
#ifndef NNC_STORAGE_INPLACE_H
#define NNC_STORAGE_INPLACE_H

#include "storage/units.h"

/* By the nodes of the producer's kernel alone: is each position of the operand read only where it is written? */
bool inplace_kernel_rule(const Graph *graph, NodeId producer, ValueId operand);
/* The same of a map, which reads all of an element before it writes any: also where the result is not made of it. */
bool inplace_map_rule(const Graph *graph, NodeId producer, ValueId operand);
/* The same of rows (FORM_ROWS) whose recipe stores the result last: a row of the operand may be reduced before. */
bool inplace_rows_rule(const Graph *graph, NodeId producer, ValueId operand);
extern const OverwriteRule inplace_rule;

/* Sets Value.inplace of every result; of none where the rule has no `may`.  Counts those it sets. */
void inplace_find(Graph *graph, OverwriteRule rule, Arena *scratch, uint32_t *changes);

#endif
