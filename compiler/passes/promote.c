/* Contractions of f16 and bf16 become those of f32 between casts.
 * Needs: a verified graph.  Keeps: results, whose products are exact in f32 and added up there as before.
 * Sums of 16-bit floats are kept in f32 anyway (reduction_accumulator): said in the graph, all that is done for f32 is
 * done for them, vectors, layouts, fewer products.  Casts join the kernels around, so that images stay as they are in
 * inputs, and weights in memory (widen.h); what lies between two contractions is f32.  It comes first: gradients are
 * those of f32 then, too.  Only where there are vectors; what asks for a recipe stays. */
#include "ops/meaning.h"
#include "passes/rewrite.h"

static ValueId cast(Rewriter *rw, ValueId x, DType dtype)
{
    Attr attr[1];
    attr[attr_index(OP_CAST, STR("to"))] = (Attr){.i = dtype};
    return rewrite_build(rw, OP_CAST, &x, 1, attr);
}

static ValueId promote_rule(Rewriter *rw, const Node *node)
{
    ValueId in[3] = {0};
    DType dtype = value_type(rw->graph, node->out[0])->dtype;
    if (!node_is_contraction(rw->graph, node) || node->mark || !dtype_is_half(dtype))
        return NONE;
    for (uint32_t i = 0; i < node->in_count; i++)
        in[i] = cast(rw, node->in[i], DT_F32);
    return cast(rw, rewrite_build(rw, node->op, in, node->in_count, node->attr), dtype);
}

bool pass_promote(Graph *graph, PassContext *context)
{
    if (context->lanes > 1)
        rewrite_graph(graph, context, promote_rule);
    return true;
}
