/* Layouts of what loops carry, for the pass layout. */
#ifndef NNC_PASSES_LAYOUT_H
#define NNC_PASSES_LAYOUT_H

#include "passes/pass.h"

/* Per carried value of a loop whose bodies have their layouts: the blocks in which it may go from round to round, so
 * that no round moves it; 0: it stays plain. */
const uint32_t *layout_carried(const Graph *graph, const Node *loop, Arena *arena);

/* Makes the bodies take and give them so.  First values and results are the caller's. */
void layout_carry(const Graph *graph, const Node *loop, const uint32_t *block, Arena *arena);

/* Do the channels of each pixel lie side by side, behind views of what is plain?  Nodes of values made so far are those
 * of `order`. */
bool layout_lies_by_pixels(const Graph *graph, const Node *order, ValueId image);

/* The view of an image, or the last of those upon it that nobody else reads, whose result has the channels side by
 * side: tokens; NONE if there is none. */
NodeId layout_tokens_of(const Graph *graph, const Users *users, const bool *live_out, NodeId first);

/* The blocks of a value's type, and the same type in others. */
static inline uint32_t layout_block(const Graph *graph, ValueId value)
{
    return value_type(graph, value)->layout.block;
}

static inline void layout_set_block(Graph *graph, ValueId value, uint32_t block)
{
    const Type *type = value_type(graph, value);
    graph->value[value].type = module_type(graph->module, type->dtype, &type->shape, (Layout){block});
}

#endif
