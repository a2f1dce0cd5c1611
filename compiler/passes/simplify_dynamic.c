/* Parts at positions that turn out to be constants: a slice is a view, and an update of the whole is what it writes;
 * what nothing is added to is itself. */
#include "ops/meaning.h"
#include "passes/simplify.h"

static int64_t position_of(const Rewriter *rw, const Node *node, const Tensor *at, uint32_t dimension)
{
    int64_t last = node_dynamic_last(rw->graph, node, dimension);
    double position = tensor_number(at, dimension);
    return position < 0 ? 0 : position > (double)last ? last : (int64_t)position;
}

static ValueId build_slice(Rewriter *rw, const Node *node, const Tensor *at)
{
    const Shape part = *value_shape(rw->graph, node->out[0]);
    int64_t axes[MAX_RANK], begin[MAX_RANK], end[MAX_RANK];
    Attr attr[4];
    for (uint32_t d = 0; d < part.rank; d++) {
        axes[d] = d;
        begin[d] = position_of(rw, node, at, d);
        end[d] = begin[d] + part.dim[d];
    }
    attr_defaults(OP_SLICE, attr);
    attr[attr_index(OP_SLICE, STR("axes"))] = (Attr){.i = part.rank, .ints = axes};
    attr[attr_index(OP_SLICE, STR("begin"))] = (Attr){.i = part.rank, .ints = begin};
    attr[attr_index(OP_SLICE, STR("end"))] = (Attr){.i = part.rank, .ints = end};
    return rewrite_build(rw, OP_SLICE, node->in, 1, attr);
}

ValueId simplify_dynamic(Rewriter *rw, const Node *node)
{
    const Value *at = graph_value(rw->graph, node->in[1]);
    if (node_is_dynamic_update(node))
        return shape_eq(value_shape(rw->graph, node->in[0]), value_shape(rw->graph, node->in[2])) ? node->in[2] : NONE;
    if (value_shape(rw->graph, node->in[0])->rank == 0)
        return node->in[0];
    return at->role == ROLE_CONST && at->data->data ? build_slice(rw, node, at->data) : NONE;
}

ValueId simplify_scatter(Rewriter *rw, const Node *node)
{
    bool adds = !node_is_scatter(node) || shape_elements(value_shape(rw->graph, node->in[2])) > 0;
    return adds ? NONE : node->in[0];
}
