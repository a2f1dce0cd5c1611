/* Parts at positions that turn out to be constants: a slice is a view, and an update of the whole is what it writes;
 * what nothing is added to is itself, and a part amid zeros is added where it belongs, not everywhere. */
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

/* x + y where y is a part, or slices, amid zeros: what reaches a table that several rounds read. */
static ValueId add_to_part(Rewriter *rw, const Node *update, ValueId x)
{
    Shape sizes = *value_shape(rw->graph, update->in[2]);
    Attr attr = {.i = sizes.rank, .ints = sizes.dim};
    ValueId at = update->in[1], part = update->in[2], old;
    old = rewrite_build(rw, OP_DYNAMIC_SLICE, (ValueId[]){x, at}, 2, &attr);
    return rewrite_build(rw, OP_DYNAMIC_UPDATE, (ValueId[]){x, at, rewrite_build2(rw, OP_ADD, old, part)}, 3, NULL);
}

ValueId simplify_sum_of_parts(Rewriter *rw, const Node *node)
{
    for (int side = 0; side < 2; side++) {
        ValueId x = node->in[1 - side];
        const Node *amid = value_producer(rw->graph, node->in[side]);
        double number;
        bool parts = amid && (node_is_dynamic_update(amid) || amid->op == OP_SCATTER_ADD);
        if (!parts || !rewrite_used_once(rw, node->in[side]) || !rewrite_number(rw, amid->in[0], &number) ||
            number != 0 || value_type(rw->graph, x) != value_type(rw->graph, node->out[0]) ||
            value_type(rw->graph, amid->out[0]) != value_type(rw->graph, node->out[0]))
            continue;
        const Node copy = *amid;
        if (node_is_dynamic_update(&copy))
            return value_shape(rw->graph, x)->rank ? add_to_part(rw, &copy, x) : NONE;
        ValueId in[] = {x, copy.in[1], copy.in[2]};
        return rewrite_build(rw, OP_SCATTER_ADD, in, 3, copy.attr);
    }
    return NONE;
}

ValueId simplify_scatter(Rewriter *rw, const Node *node)
{
    bool adds = !node_is_scatter(node) || shape_elements(value_shape(rw->graph, node->in[2])) > 0;
    return adds ? NONE : node->in[0];
}
