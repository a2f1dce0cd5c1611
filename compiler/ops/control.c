/* Nodes with sub-graphs.  A call takes its result types from its callee's outputs. */
#include "ops/infer.h"

#include <assert.h>
#include <string.h>

#include "ops/families.h"

static bool infer_call(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Graph *callee = n->sub[0];
    bool typed = true;

    assert(n->sub_count == 1 && n->in_count == callee->input_count && n->out_count == callee->output_count);
    for (uint32_t i = 0; i < n->out_count; i++) {
        const Type *type = value_type(callee, callee->output[i].value);
        graph->value[n->out[i]].type = type; /* NULL after an error inside, which has been reported */
        typed &= type != NULL;
    }
    return typed;
}

bool infer_control(Graph *graph, NodeId node)
{
    return infer_call(graph, node);
}

void eval_control(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    Arena scratch = {0};
    const Tensor **result = ARENA_ARRAY(&scratch, const Tensor *, node->out_count);

    (void)graph;
    eval_graph(node->sub[0], &scratch, in, result, NULL);
    for (uint32_t i = 0; i < node->out_count; i++) {
        const Type *type = out[i]->type;
        memcpy(out[i]->data, result[i]->data, (size_t)shape_elements(&type->shape) * dtype_bytes(type->dtype));
    }
    arena_free(&scratch);
}
