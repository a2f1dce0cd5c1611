#include "passes/integers_floats.h"

#include "ops/meaning.h"
#include "passes/integers.h"
#include "passes/widen.h"

#define DEEPEST 8 /* nodes above a value that are made again */

/* What makes x, if that may be done in f32; NULL. */
static const Node *made_of_integers(const Rewriter *rw, ValueId x)
{
    const Graph *graph = rw->graph;
    const Node *node = value_producer(graph, x);
    if (!node || value_type(graph, x)->dtype == DT_F32 || integers_range(graph, x).most > INTEGERS_MOST)
        return NULL;
    bool bytes = widen_is_narrow(value_type(graph, x)->dtype); /* parts of an image are read as they are */
    if (node_is_view(node))
        return node->in_count == 1 && node->out_count == 1 && (!bytes || rewrite_constant(rw, x)) ? node : NULL;
    return integers_stay(graph, node) ? node : NULL;
}

static ValueId as_float(Rewriter *rw, ValueId x, uint32_t depth)
{
    const Node *node = depth < DEEPEST ? made_of_integers(rw, x) : NULL;
    if (!node)
        return rewrite_cast(rw, x, DT_F32);
    Node copy = *node; /* building moves the list of nodes */
    ValueId in[2] = {copy.in[0], copy.in_count > 1 ? copy.in[1] : NONE};
    if (integers_cast(&copy))
        return as_float(rw, in[0], depth + 1);
    bool same = integers_sign(&copy) && value_type(rw->graph, in[0]) == value_type(rw->graph, x);
    if (same && integers_range(rw->graph, in[1]).most == 0) /* zero points that are all 0 */
        return as_float(rw, in[0], depth + 1);
    for (uint32_t i = 0; i < copy.in_count; i++)
        in[i] = as_float(rw, in[i], depth + 1);
    return rewrite_build(rw, copy.op, in, copy.in_count, copy.attr);
}

ValueId integers_as_floats(Rewriter *rw, ValueId x)
{
    return as_float(rw, x, 0);
}

bool integers_go_deeper(const Rewriter *rw, ValueId x)
{
    const Node *node = made_of_integers(rw, x);
    while (node && node_is_view(node) && widen_is_narrow(value_type(rw->graph, x)->dtype)) {
        x = node->in[0];
        node = made_of_integers(rw, x);
    }
    return node;
}
