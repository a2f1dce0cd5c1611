/* The library's recurrent layers as those of ONNX, which have their gates in another order and their weights turned. */
#include "onnx/write/export.h"

#define MOST_GATES 4

typedef struct RecurrentExport {
    const char *name, *op;
    bool resets_late; /* the reset comes after the product */
    uint32_t gates;
    int64_t gate[MOST_GATES]; /* which of the library's each of ONNX's is */
} RecurrentExport;

static const RecurrentExport recurrent[] = {
    {"lstm", "LSTM", false, 4, {0, 3, 1, 2}},
    {"gru", "GRU", true, 3, {1, 0, 2}},
    {"rnn", "RNN", false, 1, {0}},
};

/* A param of the layers in the call, by the end of its name.  Recurses over the nesting. */
static const Value *find_inside(const Graph *graph, const char *end)
{
    for (ValueId v = 0; v < graph->value_count; v++)
        if (graph->value[v].role == ROLE_PARAM && str_ends(graph->value[v].name, end))
            return &graph->value[v];
    for (NodeId i = 0; i < graph->node_count; i++)
        for (uint32_t s = 0; s < graph->node[i].sub_count; s++) {
            const Value *found = find_inside(graph->node[i].sub[s], end);
            if (found)
                return found;
        }
    return NULL;
}

/* Rows of each gate, in ONNX's order. */
static ExportId write_order(ExportNode *n, const RecurrentExport *row, int64_t width)
{
    int64_t count = row->gates * width;
    Tensor *order = tensor_new(n->e->arena, module_plain_type(n->graph->module, DT_I64, 1, &count));
    for (int64_t i = 0; i < count; i++)
        ((int64_t *)order->data)[i] = row->gate[i / width] * width + i % width;
    return export_array(n->e, order, export_text(n->e, "%s_gates_%lld", row->name, (long long)width));
}

static ExportId write_weight(ExportNode *n, const Value *weight, ExportId order)
{
    return export_make(n, "Unsqueeze(Gather(Transpose($%u){perm=[1, 0]}, $%u){axis=0}, [0])", export_leaf(n->e, weight),
                       order);
}

static ExportId write_bias(ExportNode *n, const Value *bias, ExportId order, int64_t count)
{
    if (bias)
        return export_make(n, "Gather($%u, $%u)", export_leaf(n->e, bias), order);
    return export_make(n, "Expand(0, [%lld])", (long long)count);
}

static const RecurrentExport *find_row(const ExportNode *n)
{
    const Call *call = n->node->call;
    DType dtype = value_type(n->graph, n->node->in[0])->dtype;
    for (size_t i = 0; i < sizeof recurrent / sizeof *recurrent; i++)
        if (call->library && str_is(call->name, recurrent[i].name) && (dtype == DT_F32 || dtype == DT_F16))
            return &recurrent[i];
    return NULL;
}

/* The results: all states, of the one direction, and the last one. */
static void write_results(ExportNode *n, const ExportId *made)
{
    export_result(n, 0, "Squeeze($%u, [1])", made[0]);
    for (uint32_t i = 1; i < n->node->out_count; i++)
        export_result(n, i, "Squeeze($%u, [0])", made[i]);
}

bool export_recurrent(ExportNode *n)
{
    Export *e = n->e;
    const RecurrentExport *row = n->node->in_count == 1 ? find_row(n) : NULL;
    const Graph *body = n->node->sub[0];
    if (!row || find_inside(body, "_peephole.weight") ||
        str_is(export_argument(n->node->call, "bidirectional"), "true"))
        return false;
    const Value *weight = find_inside(body, ".input.weight"), *hidden = find_inside(body, ".hidden.weight");
    const Value *bias = find_inside(body, ".input.bias"), *hidden_bias = find_inside(body, ".hidden.bias");
    if (!weight || !hidden || !shape_elements(value_shape(n->graph, n->node->in[0])))
        return false;
    int64_t width = hidden->type->shape.dim[0], count = row->gates * width;
    ExportId order = write_order(n, row, width), made[3];
    ExportId in[] = {n->in[0], write_weight(n, weight, order), write_weight(n, hidden, order), EXPORT_LEFT_OUT};
    if (bias || hidden_bias)
        in[3] = export_make(n, "Unsqueeze(Concat($%u, $%u){axis=0}, [0])", write_bias(n, bias, order, count),
                            write_bias(n, hidden_bias, order, count));
    for (uint32_t i = 0; i < n->node->out_count; i++)
        made[i] = export_id_near(e, export_text(e, "%s.%s", n->wish[i], row->name));
    Onnx__NodeProto *node = export_append(e, row->op, in, 4, made, n->node->out_count);
    export_attribute_int(e, node, "hidden_size", width);
    if (row->resets_late)
        export_attribute_int(e, node, "linear_before_reset", 1);
    write_results(n, made);
    return true;
}
