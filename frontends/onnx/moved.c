/* Weights of recurrent nodes that an exporter puts together by nodes: PyTorch's gates are sliced, and concatenated in
 * the order of ONNX.  They are worked out as if they stood in the file, of whatever size. */
#include <string.h>

#include "onnx/import.h"

static bool is_one_of(const char *op, const char *const *list)
{
    while (*list && strcmp(op, *list) != 0)
        list++;
    return *list != NULL;
}

/* How many of its operands are elements that it only moves; 0: it does more. */
static size_t moved_operands(const Onnx__NodeProto *node)
{
    static const char *const moves[] = {"Slice", "Split", "Reshape", "Squeeze", "Unsqueeze", "Transpose", NULL};
    if (!node->op_type || (node->domain && *node->domain))
        return 0;
    return strcmp(node->op_type, "Concat") == 0 ? node->n_input : is_one_of(node->op_type, moves) && node->n_input;
}

static bool is_recurrent(const Onnx__NodeProto *node)
{
    static const char *const cells[] = {"LSTM", "GRU", "RNN", NULL};
    return node->op_type && !(node->domain && *node->domain) && is_one_of(node->op_type, cells);
}

static void mark(Onnx *onnx, const Onnx__NodeProto *node, size_t operand)
{
    if (operand < node->n_input)
        map_put(&onnx->moved, str_from(node->input[operand]), 0);
}

static bool gives_marked(const Onnx *onnx, const Onnx__NodeProto *node)
{
    bool marked = false;
    for (size_t i = 0; i < node->n_output; i++)
        marked |= map_get(&onnx->moved, str_from(node->output[i])) != MAP_NONE;
    return marked;
}

void onnx_find_moved(Onnx *onnx)
{
    enum { WEIGHT = 1, RECURRENCE, BIAS, PEEPHOLE = 7 };
    const Onnx__GraphProto *graph = onnx->model->graph;
    onnx->moved.arena = onnx->arena;
    for (size_t n = graph->n_node; n-- > 0;) {
        const Onnx__NodeProto *node = graph->node[n];
        if (is_recurrent(node)) {
            mark(onnx, node, WEIGHT);
            mark(onnx, node, RECURRENCE);
            mark(onnx, node, BIAS);
            mark(onnx, node, PEEPHOLE);
        }
        size_t operands = onnx->moved.count && gives_marked(onnx, node) ? moved_operands(node) : 0;
        for (size_t i = 0; i < operands; i++)
            mark(onnx, node, i);
    }
}

bool onnx_is_moved(const OnnxNode *node)
{
    return !node->scope->outer && !node->scope->function && node->onnx->moved.count &&
           gives_marked(node->onnx, node->proto) && moved_operands(node->proto);
}
