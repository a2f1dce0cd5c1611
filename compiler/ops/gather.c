/* Gather and scatter: slices of a tensor at computed positions along an axis, read, replaced, or added to. */
#include "ops/infer.h"

#include <string.h>

#include "ir/attr.h"
#include "ops/axis.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/meaning.h"
#include "ops/scalar.h"

/* Types */

/* The shape of the slices at `index`: its dimensions stand in place of the axis. */
static bool slices_shape(Graph *graph, NodeId node, Shape *shape)
{
    const Shape *table = infer_in_shape(graph, node, 0), *index = infer_in_shape(graph, node, 1);
    uint32_t axis;

    *shape = (Shape){0};
    if (!infer_check_class(graph, node, 1, CLASS_INT) ||
        !infer_check_axis(graph, node, attr_int(&graph->node[node], "axis"), table->rank, &axis))
        return false;
    if (table->rank - 1 + index->rank > MAX_RANK)
        return infer_fail(graph, node, "the %s would have %u dimensions, more than %d",
                          node_is_scatter(&graph->node[node]) ? "update" : "result", table->rank - 1 + index->rank,
                          MAX_RANK);
    for (uint32_t i = 0; i < axis; i++)
        shape->dim[shape->rank++] = table->dim[i];
    for (uint32_t i = 0; i < index->rank; i++)
        shape->dim[shape->rank++] = index->dim[i];
    for (uint32_t i = axis + 1; i < table->rank; i++)
        shape->dim[shape->rank++] = table->dim[i];
    if (table->dim[axis] == 0 && shape_elements(index) > 0)
        return infer_fail(graph, node, "%s: " STR_FMT,
                          node_is_scatter(&graph->node[node]) ? gather_combine(&graph->node[node]) == WORD_ADD
                                                                    ? "there is nowhere to add"
                                                                    : "there is nowhere to put anything"
                                                              : "the table has nothing to read",
                          STR_ARG(infer_show_operand(graph, node, 0)));
    return true;
}

static bool infer_scatter(Graph *graph, NodeId node, const Shape *slices)
{
    const Type *x = infer_in_type(graph, node, 0);
    DTypeClass taken = gather_combine(&graph->node[node]) == WORD_OPERAND ? CLASS_ANY : CLASS_NUMBER;
    if (!infer_check_class(graph, node, 0, taken) || !infer_check_same_dtype(graph, node, 0, 2))
        return false;
    if (!shape_eq(infer_in_shape(graph, node, 2), slices)) {
        Type needed = {.dtype = x->dtype, .shape = *slices};
        return infer_fail(graph, node,
                          "the update has to be " STR_FMT ", the index's shape in place of the axis: " STR_FMT,
                          STR_ARG(type_show(graph->module->arena, &needed)), STR_ARG(infer_show_operands(graph, node)));
    }
    return infer_set_plain(graph, node, 0, x->dtype, &x->shape);
}

bool infer_gather(Graph *graph, NodeId node)
{
    Shape slices;
    if (!slices_shape(graph, node, &slices))
        return false;
    return node_is_scatter(&graph->node[node])
               ? infer_scatter(graph, node, &slices)
               : infer_set_plain(graph, node, 0, infer_in_type(graph, node, 0)->dtype, &slices);
}

/* The normal form */

bool node_is_scatter(const Node *node)
{
    return op_info(node->op)->family == FAMILY_GATHER && node->op != OP_GATHER;
}

Word gather_combine(const Node *node)
{
    switch (node->op) {
    case OP_SCATTER_ADD:
        return WORD_ADD;
    case OP_SCATTER_MUL:
        return WORD_MUL;
    case OP_SCATTER_MAX:
        return WORD_MAX;
    case OP_SCATTER_MIN:
        return WORD_MIN;
    default:
        return WORD_OPERAND;
    }
}

uint32_t gather_dimension(const Graph *graph, const Node *node)
{
    return axis_position(attr_int(node, "axis"), value_shape(graph, node->in[0])->rank);
}

/* Evaluation, of tensors seen as [outer, rows, inner] */

typedef struct Rows {
    int64_t outer, rows, inner;
} Rows;

static Rows rows_of(const Graph *graph, const Node *node)
{
    const Shape *shape = value_shape(graph, node->in[0]);
    uint32_t axis = gather_dimension(graph, node);
    Rows rows = {1, shape->dim[axis], 1};
    for (uint32_t i = 0; i < axis; i++)
        rows.outer *= shape->dim[i];
    for (uint32_t i = axis + 1; i < shape->rank; i++)
        rows.inner *= shape->dim[i];
    return rows;
}

static int64_t row_at(const Tensor *index, int64_t position, int64_t rows)
{
    int64_t row;
    elements_load_plain(index, position, 1, COMPUTE_I64, &row);
    if (row < 0)
        row += rows;
    return row < 0 ? 0 : row >= rows ? rows - 1 : row;
}

static void eval_read(Rows rows, const Tensor *const *in, Tensor *out)
{
    int64_t count = shape_elements(&in[1]->type->shape);
    size_t row_bytes = (size_t)rows.inner * dtype_bytes(out->type->dtype);
    char *to = out->data;
    const char *from = in[0]->data;
    for (int64_t o = 0; o < rows.outer; o++, from += (size_t)rows.rows * row_bytes)
        for (int64_t i = 0; i < count; i++, to += row_bytes)
            memcpy(to, from + (size_t)row_at(in[1], i, rows.rows) * row_bytes, row_bytes);
}

#define CHUNK 1024

/* Each addition rounds. */
static void combine_row(Word word, Tensor *out, int64_t to, const Tensor *update, int64_t from, int64_t count)
{
    Compute compute = elements_compute_exact(out->type->dtype);
    WordLoop *loop = scalar_loops(compute)[word];
    Number sum[CHUNK], more[CHUNK];
    for (int64_t start = 0; start < count; start += CHUNK) {
        int64_t part = count - start < CHUNK ? count - start : CHUNK;
        elements_load_plain(out, to + start, part, compute, sum);
        elements_load_plain(update, from + start, part, compute, more);
        loop(part, sum, more, more, sum);
        elements_store(out, to + start, part, compute, sum);
    }
}

static void replace_row(Tensor *out, int64_t to, const Tensor *update, int64_t from, int64_t count)
{
    size_t bytes = dtype_bytes(out->type->dtype);
    memcpy((char *)out->data + (size_t)to * bytes, (const char *)update->data + (size_t)from * bytes,
           (size_t)count * bytes);
}

/* Slices of equal indices come in their order. */
static void eval_write(Word word, Rows rows, const Tensor *const *in, Tensor *out)
{
    int64_t count = shape_elements(&in[1]->type->shape);
    memcpy(out->data, in[0]->data, (size_t)shape_elements(&out->type->shape) * dtype_bytes(out->type->dtype));
    for (int64_t o = 0; o < rows.outer; o++)
        for (int64_t i = 0; i < count; i++) {
            int64_t to = (o * rows.rows + row_at(in[1], i, rows.rows)) * rows.inner,
                    from = (o * count + i) * rows.inner;
            if (word == WORD_OPERAND)
                replace_row(out, to, in[2], from, rows.inner);
            else
                combine_row(word, out, to, in[2], from, rows.inner);
        }
}

void eval_gather(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    if (node_is_scatter(node))
        eval_write(gather_combine(node), rows_of(graph, node), in, out[0]);
    else
        eval_read(rows_of(graph, node), in, out[0]);
}
