/* The reference evaluator: runs the nodes in their order.  A value's elements are allocated when its node runs and
 * freed after its last reader, so that memory stays near the largest sum of live tensors. */
#include "ops/family.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/fatal.h"
#include "ops/eval.h"

static const Type *plain_type(const Graph *graph, const Type *type)
{
    return type->layout.block ? module_type(graph->module, type->dtype, &type->shape, (Layout){0}) : type;
}

const Tensor *eval_data(Graph *graph, ValueId id)
{
    Value *value = graph_value(graph, id);
    if (value->data)
        return value->data;

    assert(value->initial != NONE); /* the front end has reported params without elements */
    const Node *initial = &graph->initial[value->initial];
    Tensor *data = tensor_new(graph->module->arena, plain_type(graph, value->type));
    family_table[FAMILY_GENERATE].eval(graph, initial, NULL, &data);
    value->data = data;
    value->drawn = true;
    return data;
}

#define WORK_OF_NODE 10 /* besides its elements: to find its operands, make its results and forget them */

/* Runs the node, and takes what it costs off the work there is. */
static bool run_within(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out, int64_t *work)
{
    if (node->sub_count)
        return eval_control_within(graph, node, in, out, work);
    if (work) {
        *work -= node_flops(graph, node) + WORK_OF_NODE;
        for (uint32_t i = 0; i < node->out_count; i++)
            *work -= shape_elements(&out[i]->type->shape);
    }
    if (work && *work < 0)
        return false;
    family_table[op_info(node->op)->family].eval(graph, node, in, out);
    return true;
}

bool eval_node_within(const Graph *graph, NodeId node, Arena *arena, const Tensor *const *in, Tensor **out,
                      int64_t *work)
{
    const Node *n = graph_node(graph, node);
    for (uint32_t i = 0; i < n->out_count; i++)
        out[i] = tensor_new(arena, plain_type(graph, value_type(graph, n->out[i])));
    return run_within(graph, n, in, out, work);
}

void eval_node(const Graph *graph, NodeId node, Arena *arena, const Tensor *const *in, Tensor **out)
{
    eval_node_within(graph, node, arena, in, out, NULL);
}

typedef struct Evaluation {
    Graph *graph;
    Arena *results; /* outputs and updates live on here */
    Arena scratch;
    const Tensor **tensor; /* per value, once known */
    uint32_t *readers;     /* per value: nodes that have yet to read it */
    bool *live_out;
    int64_t *work; /* left, or NULL */
} Evaluation;

static void count_readers(Evaluation *e)
{
    for (uint32_t n = 0; n < e->graph->node_count; n++) {
        const Node *node = graph_node(e->graph, n);
        for (uint32_t i = 0; !node->dead && i < node->in_count; i++)
            e->readers[node->in[i]]++;
    }
}

static const Tensor *value_tensor(Evaluation *e, ValueId id)
{
    if (!e->tensor[id])
        e->tensor[id] = eval_data(e->graph, id);
    return e->tensor[id];
}

static Tensor *new_result(Evaluation *e, ValueId id)
{
    const Type *type = plain_type(e->graph, value_type(e->graph, id));
    if (e->live_out[id])
        return tensor_new(e->results, type);

    Tensor *tensor = ARENA_NEW(&e->scratch, Tensor);
    size_t bytes = (size_t)shape_elements(&type->shape) * dtype_bytes(type->dtype);
    tensor->type = type;
    tensor->data = malloc(bytes ? bytes : 1);
    if (!tensor->data)
        fatal_memory(bytes);
    return tensor;
}

static void free_unread(Evaluation *e, ValueId id)
{
    if (e->readers[id] || e->live_out[id] || graph_value(e->graph, id)->role != ROLE_RESULT)
        return;
    free(e->tensor[id]->data);
    e->tensor[id] = NULL;
}

static bool run_node(Evaluation *e, NodeId n)
{
    const Node *node = graph_node(e->graph, n);
    const Tensor **in = ARENA_ARRAY(&e->scratch, const Tensor *, node->in_count);
    Tensor **out = ARENA_ARRAY(&e->scratch, Tensor *, node->out_count);

    for (uint32_t i = 0; i < node->in_count; i++)
        in[i] = value_tensor(e, node->in[i]);
    for (uint32_t i = 0; i < node->out_count; i++)
        e->tensor[node->out[i]] = out[i] = new_result(e, node->out[i]);
    if (!run_within(e->graph, node, in, out, e->work))
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (--e->readers[node->in[i]] == 0)
            free_unread(e, node->in[i]);
    for (uint32_t i = 0; i < node->out_count; i++)
        free_unread(e, node->out[i]);
    return true;
}

/* After the work ran out: values that wait for readers. */
static void free_waiting(Evaluation *e)
{
    for (ValueId v = 0; v < e->graph->value_count; v++)
        if (e->tensor[v] && !e->live_out[v] && graph_value(e->graph, v)->role == ROLE_RESULT)
            free(e->tensor[v]->data);
}

static bool run_nodes(Evaluation *e)
{
    bool done = !e->work || --*e->work >= 0; /* so that rounds of nothing end, too */
    for (NodeId n = 0; done && n < e->graph->node_count; n++)
        if (!graph_node(e->graph, n)->dead)
            done = run_node(e, n);
    if (!done)
        free_waiting(e);
    return done;
}

bool eval_graph_within(Graph *graph, Arena *arena, const Tensor *const *input, const Tensor **output,
                       const Tensor **updated, int64_t *work)
{
    Evaluation e = {.graph = graph, .results = arena, .work = work};
    e.tensor = ARENA_ARRAY(&e.scratch, const Tensor *, graph->value_count);
    e.readers = ARENA_ARRAY(&e.scratch, uint32_t, graph->value_count);
    e.live_out = graph_live_out(graph, &e.scratch);

    count_readers(&e);
    for (uint32_t i = 0; i < graph->input_count; i++)
        e.tensor[graph->input[i]] = input[i];
    bool done = run_nodes(&e);
    for (uint32_t i = 0; done && i < graph->output_count; i++)
        output[i] = value_tensor(&e, graph->output[i].value);
    for (uint32_t i = 0; done && updated && i < graph->update_count; i++)
        updated[i] = value_tensor(&e, graph->update[i].source);
    arena_free(&e.scratch);
    return done;
}

void eval_graph(Graph *graph, Arena *arena, const Tensor *const *input, const Tensor **output, const Tensor **updated)
{
    eval_graph_within(graph, arena, input, output, updated, NULL);
}

static double tolerance_of(DType dtype)
{
    return dtype == DT_F64 ? 1e-9 : dtype == DT_F32 ? 1e-4 : dtype_is_float(dtype) ? 2e-2 : 0;
}

/* Of what flows into a node the worst; recurses over the nesting of sub-graphs. */
static void tolerate_node(const Graph *graph, const Node *node, Arena *arena, double *within)
{
    double *in = ARENA_ARRAY(arena, double, node->in_count), *out = ARENA_ARRAY(arena, double, node->out_count);
    double worst = 0;
    for (uint32_t i = 0; i < node->in_count; i++) {
        in[i] = within[node->in[i]];
        worst = fmax(worst, in[i]);
    }
    if (node->sub_count)
        eval_control_tolerance(graph, node, arena, in, out);
    for (uint32_t i = 0; i < node->out_count; i++) {
        bool rounds = op_info(node->op)->family != FAMILY_VIEW;
        double own = rounds ? tolerance_of(value_type(graph, node->out[i])->dtype) : 0;
        within[node->out[i]] = node->sub_count ? out[i] : fmax(worst, own);
    }
}

void eval_tolerance(const Graph *graph, Arena *arena, const double *input, double *output)
{
    double *within = ARENA_ARRAY(arena, double, graph->value_count);
    for (uint32_t i = 0; input && i < graph->input_count; i++)
        within[graph->input[i]] = input[i];
    for (NodeId n = 0; n < graph->node_count; n++)
        if (!graph->node[n].dead)
            tolerate_node(graph, &graph->node[n], arena, within);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        DType dtype = value_type(graph, graph->output[i].value)->dtype;
        output[i] = dtype_is_float(dtype) ? fmax(within[graph->output[i].value], tolerance_of(dtype)) : 0;
    }
}
