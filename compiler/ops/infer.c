/* Checks and messages that all families use.  A message names the op, what is wrong, and the operands with their types
 * as the user called them. */
#include "ops/infer.h"

#include <inttypes.h>

#include "ir/attr.h"

bool infer_fail(Graph *graph, NodeId node, const char *format, ...)
{
    const Node *n = &graph->node[node];
    Text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    diag_error(graph->module->diag, n->place, "%s: " STR_FMT, op_info(n->op)->name, STR_ARG(text_view(&text)));
    text_free(&text);
    return false;
}

static void print_operand(Text *text, Graph *graph, ValueId id)
{
    const Value *value = graph_value(graph, id);
    double number;
    if (!value->name.len && value_is_number(graph, id, &number))
        text_printf(text, "%.9g", number);
    else
        text_str(text, value_show(graph, id));
    text_printf(text, " is ");
    type_print(text, value->type);
}

static Str keep(Graph *graph, Text *text)
{
    Str kept = str_copy(graph->module->arena, text_view(text));
    text_free(text);
    return kept;
}

Str infer_show_operand(Graph *graph, NodeId node, uint32_t i)
{
    Text text = {0};
    print_operand(&text, graph, graph->node[node].in[i]);
    return keep(graph, &text);
}

Str infer_show_operands(Graph *graph, NodeId node)
{
    Text text = {0};
    for (uint32_t i = 0; i < graph->node[node].in_count; i++) {
        if (i)
            text_printf(&text, ", ");
        print_operand(&text, graph, graph->node[node].in[i]);
    }
    return keep(graph, &text);
}

bool infer_set_result(Graph *graph, NodeId node, uint32_t i, DType dtype, const Shape *shape, Layout layout)
{
    int64_t elements;
    if (shape->rank > MAX_RANK)
        return infer_fail(graph, node, "the result would have %u dimensions, more than %d", shape->rank, MAX_RANK);
    if (!shape_checked_elements(shape, &elements))
        return infer_fail(graph, node, "the result would have too many elements");
    graph->value[graph->node[node].out[i]].type = module_type(graph->module, dtype, shape, layout);
    return true;
}

bool infer_set_plain(Graph *graph, NodeId node, uint32_t i, DType dtype, const Shape *shape)
{
    return infer_set_result(graph, node, i, dtype, shape, (Layout){0});
}

bool infer_axis_in_range(int64_t axis, uint32_t rank)
{
    return axis >= -(int64_t)rank && axis < (int64_t)rank;
}

static bool fail_axis(Graph *graph, NodeId node, int64_t axis, uint32_t rank)
{
    if (!graph->node[node].in_count)
        return infer_fail(graph, node, "axis %" PRId64 " is out of range: the shape has %u dimensions", axis, rank);
    return infer_fail(graph, node, "axis %" PRId64 " is out of range: " STR_FMT, axis,
                      STR_ARG(infer_show_operand(graph, node, 0)));
}

bool infer_check_axis(Graph *graph, NodeId node, int64_t axis, uint32_t rank, uint32_t *out)
{
    if (!infer_axis_in_range(axis, rank))
        return fail_axis(graph, node, axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

bool infer_check_axes(Graph *graph, NodeId node, const char *name, uint32_t rank)
{
    const Attr *attr = attr_of(&graph->node[node], name);
    uint32_t seen = 0;
    for (int64_t i = 0; i < attr->i; i++) {
        uint32_t axis = 0;
        if (!infer_check_axis(graph, node, attr->ints[i], rank, &axis))
            return false;
        if (seen >> axis & 1)
            return infer_fail(graph, node, "axis %" PRId64 " is given twice in `%s`", attr->ints[i], name);
        seen |= 1u << axis;
    }
    return true;
}

bool infer_check_count(Graph *graph, NodeId node, const char *name, uint32_t count)
{
    int64_t given = attr_of(&graph->node[node], name)->i;
    if (given != 1 && given != count)
        return infer_fail(graph, node, "`%s` takes one number or %u, not %" PRId64, name, count, given);
    return true;
}

bool infer_check_least(Graph *graph, NodeId node, const char *name, int64_t least)
{
    const Attr *attr = attr_of(&graph->node[node], name);
    for (int64_t i = 0; i < attr->i; i++)
        if (attr->ints[i] < least)
            return infer_fail(graph, node, "`%s` must be at least %" PRId64 ", not %" PRId64, name, least,
                              attr->ints[i]);
    return true;
}

static bool in_class(DType dtype, DTypeClass class)
{
    switch (class) {
    case CLASS_ANY:
        return true;
    case CLASS_NUMBER:
        return dtype != DT_BOOL;
    case CLASS_FLOAT:
        return dtype_is_float(dtype);
    case CLASS_INT:
        return dtype_is_int(dtype);
    case CLASS_I64:
        return dtype == DT_I64;
    case CLASS_BOOL:
        return dtype == DT_BOOL;
    }
    return false;
}

bool infer_check_class(Graph *graph, NodeId node, uint32_t i, DTypeClass class)
{
    static const char *const takes[] = {
        [CLASS_ANY] = "anything", [CLASS_NUMBER] = "numbers", [CLASS_FLOAT] = "floating-point numbers (cast them)",
        [CLASS_INT] = "integers", [CLASS_I64] = "i64",        [CLASS_BOOL] = "bools"};
    if (!in_class(infer_in_type(graph, node, i)->dtype, class))
        return infer_fail(graph, node, "takes %s: " STR_FMT, takes[class], STR_ARG(infer_show_operand(graph, node, i)));
    return true;
}

bool infer_check_same_dtype(Graph *graph, NodeId node, uint32_t i, uint32_t j)
{
    if (infer_in_type(graph, node, i)->dtype != infer_in_type(graph, node, j)->dtype)
        return infer_fail(graph, node, "dtypes differ (cast one): " STR_FMT ", " STR_FMT,
                          STR_ARG(infer_show_operand(graph, node, i)), STR_ARG(infer_show_operand(graph, node, j)));
    return true;
}
