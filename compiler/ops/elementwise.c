/* Elementwise ops: one scalar expression at each position, operands broadcast by NumPy's rule.
 * The result is laid out as the operands that have its full shape; smaller ones (a bias, a scalar) are plain. */
#include "ops/infer.h"

#include "ops/elements.h"
#include "ops/families.h"
#include "ops/meaning.h"
#include "ops/scalar.h"

/* dtypes: each operand in the op's class, and all that RESULT_SAME speaks of agree. */
static bool infer_dtype(Graph *graph, NodeId node, DType *result)
{
    const Node *n = &graph->node[node];
    const OpInfo *info = op_info(n->op);
    uint32_t first = 0; /* of those that must agree */

    if (info->result == RESULT_SELECT) {
        if (!infer_check_class(graph, node, 0, CLASS_BOOL))
            return false;
        first = 1;
    }
    for (uint32_t i = first; i < n->in_count; i++) {
        if (!infer_check_class(graph, node, i, info->operand_class))
            return false;
        if (!infer_check_same_dtype(graph, node, first, i))
            return false;
    }
    bool is_bool = info->result == RESULT_BOOL || info->result == RESULT_LOGIC;
    *result = is_bool ? DT_BOOL : infer_in_type(graph, node, first)->dtype;
    return true;
}

static bool infer_shape(Graph *graph, NodeId node, Shape *result)
{
    *result = *infer_in_shape(graph, node, 0);
    for (uint32_t i = 1; i < graph->node[node].in_count; i++)
        if (!shape_broadcast(result, infer_in_shape(graph, node, i), result))
            return infer_fail(graph, node, "shapes do not broadcast: " STR_FMT,
                              STR_ARG(infer_show_operands(graph, node)));
    return true;
}

/* The layout of the operands of the result's shape.  What is read from the caller's arrays or the weights may be plain
 * beside blocks: no layout is made of it first. */
static bool infer_block(Graph *graph, NodeId node, const Shape *result, Layout *layout)
{
    const Type *full = NULL;
    for (uint32_t i = 0; i < graph->node[node].in_count; i++) {
        const Type *type = infer_in_type(graph, node, i);
        if (!shape_eq(&type->shape, result)) {
            if (type->layout.block)
                return infer_fail(graph, node, "a blocked operand cannot be broadcast: " STR_FMT,
                                  STR_ARG(infer_show_operand(graph, node, i)));
            continue;
        }
        if (!type->layout.block && !value_producer(graph, graph->node[node].in[i]))
            continue;
        if (full && full->layout.block != type->layout.block)
            return infer_fail(graph, node, "layouts differ: " STR_FMT, STR_ARG(infer_show_operands(graph, node)));
        full = type;
    }
    *layout = full ? full->layout : (Layout){0};
    return true;
}

bool infer_elementwise(Graph *graph, NodeId node)
{
    DType dtype;
    Shape shape;
    Layout layout;

    return infer_dtype(graph, node, &dtype) && infer_shape(graph, node, &shape) &&
           infer_block(graph, node, &shape, &layout) && infer_set_result(graph, node, 0, dtype, &shape, layout);
}

/* Evaluation: operands are read in chunks, broadcast and converted to the number type of the op; then its terms are
 * computed one after another, each in a loop over the chunk; then the last one is rounded and stored.  Chunks keep the
 * buffers in the cache. */

#define CHUNK 1024

typedef struct Operand {
    const Tensor *tensor;
    Strided map;
    bool direct; /* elements lie in order and are numbers of the computing type already */
} Operand;

static Operand open_operand(const Tensor *tensor, const Shape *shape, Compute compute)
{
    DType dtype = tensor->type->dtype;
    Operand operand = {.tensor = tensor, .map = strided_broadcast(&tensor->type->shape, shape)};
    strided_coalesce(&operand.map);
    bool in_order = operand.map.rank == 0 || (operand.map.rank == 1 && operand.map.stride[0] == 1);
    operand.direct = in_order && shape_elements(shape) > 1 &&
                     ((compute == COMPUTE_F32 && dtype == DT_F32) || (compute == COMPUTE_F64 && dtype == DT_F64));
    return operand;
}

static const void *next_numbers(const Operand *operand, int64_t start, int64_t count, Compute compute, void *numbers)
{
    if (operand->direct)
        return (const char *)operand->tensor->data + (size_t)start * dtype_bytes(operand->tensor->type->dtype);
    elements_load(operand->tensor, &operand->map, start, count, compute, numbers);
    return numbers;
}

static void fill_number(double number, int64_t count, Compute compute, void *numbers)
{
    for (int64_t i = 0; i < count; i++)
        if (compute == COMPUTE_F32)
            ((float *)numbers)[i] = (float)number;
        else if (compute == COMPUTE_F64)
            ((double *)numbers)[i] = number;
        else
            ((int64_t *)numbers)[i] = (int64_t)number;
}

void eval_elementwise(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    const Shape *shape = &out[0]->type->shape;
    Compute compute = elements_compute(in[node->in_count - 1]->type->dtype); /* a mask comes first */
    WordLoop *const *loop = scalar_loops(compute);
    const ScalarList *list = op_info(node->op)->scalar;
    int64_t buffer[MOST_TERMS][CHUNK], elements = shape_elements(shape);
    const void *value[MOST_TERMS]; /* of each term, in the chunk */
    Operand operand[3];

    (void)graph;
    for (uint32_t i = 0; i < node->in_count; i++)
        operand[i] = open_operand(in[i], shape, compute);
    for (uint32_t t = 0; t < list->count; t++) {
        value[t] = buffer[t];
        if (list->term[t].word == WORD_NUMBER)
            fill_number(list->term[t].number, elements < CHUNK ? elements : CHUNK, compute, buffer[t]);
    }
    for (int64_t start = 0; start < elements; start += CHUNK) {
        int64_t count = elements - start < CHUNK ? elements - start : CHUNK;
        for (uint32_t t = 0; t < list->count; t++) {
            const ScalarTerm *term = &list->term[t];
            const uint8_t *arg = term->arg;
            if (term->word == WORD_OPERAND)
                value[t] = next_numbers(&operand[arg[0]], start, count, compute, buffer[t]);
            else if (term->word != WORD_NUMBER)
                loop[term->word](count, value[arg[0]], value[arg[1]], value[arg[2]], buffer[t]);
        }
        elements_store(out[0], start, count, compute, value[list->count - 1]);
    }
}

bool node_tests_equality(const Node *node)
{
    return node->op == OP_EQ;
}
