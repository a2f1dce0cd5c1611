/* Reverse mode of pooling, and of what it is made of. */
#include "ir/attr.h"
#include "ops/families.h"
#include "ops/reverse.h"
#include "ops/window.h"

/* One of the two ops of the family, over the windows of the node that is asked. */
static ValueId match(Reverse *r, OpCode op, ValueId x, ValueId y, ValueId v)
{
    Window window = reduction_of(r->graph, &r->node).window;
    const char *const name[] = {"window", "stride", "dilation", "pad"};
    int64_t list[4][2 * MAX_RANK];
    Attr attr[8];
    for (uint32_t d = 0; d < window.rank; d++) {
        list[0][d] = window.dim[d].size;
        list[1][d] = window.dim[d].stride;
        list[2][d] = window.dim[d].dilation;
        list[3][d] = window.dim[d].before;
        list[3][window.rank + d] = window.dim[d].after;
    }
    attr_defaults(op, attr);
    for (uint32_t i = 0; i < 4; i++)
        attr[attr_index(op, str_from(name[i]))] = (Attr){.i = i == 3 ? 2 * window.rank : window.rank, .ints = list[i]};
    attr[attr_index(op, STR("ceil"))].i = attr_bool(&r->node, "ceil");
    return reverse_build(r, op, (ValueId[]){x, y, v}, 3, attr);
}

/* How many taps count in the windows along a dimension, as a tensor that broadcasts to all windows; where all have the
 * same number it goes into `same`, and the result is NONE. */
static ValueId counts_along(Reverse *r, const Reduction *reduction, uint32_t dimension, double *same)
{
    const Window *whole = &reduction->window;
    Window line = {.rank = 1, .dim = {whole->dim[dimension]}};
    DType dtype = value_type(r->graph, r->down[0])->dtype;
    Shape shape = {2 + whole->rank, {1, 1}};
    bool alike = true;
    for (uint32_t d = 0; d < whole->rank; d++)
        shape.dim[2 + d] = d == dimension ? line.dim[0].out : 1;
    Tensor *count =
        tensor_new(r->graph->module->arena, module_plain_type(r->graph->module, dtype, shape.rank, shape.dim));
    int64_t first = line.dim[0].out ? window_box(&line, 0, reduction->count_pad).counted : 1;
    for (int64_t i = 0; i < line.dim[0].out; i++) {
        int64_t counted = window_box(&line, i, reduction->count_pad).counted;
        alike &= counted == first;
        tensor_set_number(count, i, (double)counted);
    }
    *same *= alike ? (double)first : 1;
    return alike ? NONE : graph_add_const(r->graph, count, (Str){0}, r->node.place);
}

/* Each element of a window gets the same share. */
static void reverse_mean(Reverse *r, const Reduction *reduction)
{
    ValueId x = r->node.in[0], d = r->down[0];
    DType dtype = value_type(r->graph, x)->dtype;
    double same = 1;
    for (uint32_t i = 0; i < reduction->window.rank; i++) {
        ValueId count = counts_along(r, reduction, i, &same);
        d = count == NONE ? d : reverse_build2(r, OP_DIV, d, count);
    }
    if (same != 1)
        d = reverse_build2(r, OP_DIV, d, reverse_number(r, dtype, same));
    ValueId all = reverse_full(r, dtype, reverse_shape(r, x), 0), any = reverse_full(r, dtype, reverse_shape(r, d), 0);
    reverse_give(r, 0, match(r, OP_POOL_SPREAD, all, any, d));
}

/* Those that are the largest of a window share alike. */
static void reverse_largest(Reverse *r)
{
    ValueId x = r->node.in[0], y = r->node.out[0];
    DType dtype = value_type(r->graph, x)->dtype;
    ValueId one = reverse_full(r, dtype, reverse_shape(r, x), 1);
    ValueId ties = match(r, OP_POOL_COLLECT, x, y, one), share = reverse_build2(r, OP_DIV, r->down[0], ties);
    reverse_give(r, 0, match(r, OP_POOL_SPREAD, x, y, share));
}

bool reverse_pool(Reverse *r)
{
    Reduction reduction = reduction_of(r->graph, &r->node);
    if (reduction.kind == REDUCE_MEAN)
        reverse_mean(r, &reduction);
    else
        reverse_largest(r);
    return true;
}

/* Which elements match changes nowhere but at jumps; of v each op is the other's transpose. */
bool reverse_match(Reverse *r)
{
    OpCode other = r->node.op == OP_POOL_SPREAD ? OP_POOL_COLLECT : OP_POOL_SPREAD;
    if (r->wanted[2])
        reverse_give(r, 2, match(r, other, r->node.in[0], r->node.in[1], r->down[0]));
    return true;
}
