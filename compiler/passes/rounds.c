/* Counts rounds: the loop is copied to a graph of its own, where it also carries a count that alone is asked for; what
 * neither the count nor the condition hangs on is dead there, and the rest is run. */
#include "passes/rounds.h"

#include <string.h>

#include "base/number.h"
#include "ops/control.h"
#include "ops/family.h"

#define MOST_WORK   (INT64_C(1) << 24) /* to find out how many rounds there are */
#define LITTLE_WORK (INT64_C(1) << 20)

const Tensor *constant_tensor(Graph *graph, ValueId v, const PassContext *context)
{
    const Value *value = &graph->value[v];
    bool frozen = context->freeze_params && value->role == ROLE_PARAM && !value->trained;
    if ((value->role != ROLE_CONST && !frozen) || value->type->layout.block)
        return NULL;
    for (uint32_t i = 0; i < graph->update_count; i++)
        if (graph->update[i].target == v)
            return NULL;
    if (value->data ? !value->data->data : value->initial == NONE)
        return NULL;
    return eval_data(graph, v);
}

/* The last input becomes the first. */
static ValueId add_first_input(Graph *graph, const Type *type)
{
    ValueId added = graph_add_input(graph, type, (Str){0}, (Place){0});
    memmove(graph->input + 1, graph->input, (graph->input_count - 1) * sizeof *graph->input);
    return graph->input[0] = added;
}

static void add_first_output(Graph *graph, ValueId value)
{
    graph_add_output(graph, value, (Str){0});
    memmove(graph->output + 1, graph->output, (graph->output_count - 1) * sizeof *graph->output);
    graph->output[0] = (Output){.value = value};
}

static Graph *counting_body(const Graph *from, const Type *count)
{
    Graph *body = graph_clone(from);
    ValueId rounds = add_first_input(body, count), one = graph_add_scalar(body, DT_I64, 1);
    add_first_output(body, op_build2(body, OP_ADD, rounds, one, (Place){0}));
    return body;
}

static Graph *counting_graph(const Graph *graph, const Node *node, Arena *scratch)
{
    Module *module = graph->module;
    const Type *count = module_plain_type(module, DT_I64, 0, NULL);
    Graph *counting = graph_new(module, STR("rounds"));
    Loop loop = loop_of(graph, node);
    ValueId *in = ARENA_ARRAY(scratch, ValueId, node->in_count + 1);

    in[0] = graph_add_scalar(counting, DT_I64, 0);
    for (uint32_t i = 0; i < node->in_count; i++)
        in[i + 1] = graph_add_input(counting, value_type(graph, node->in[i]), (Str){0}, (Place){0});
    loop.body = counting_body(loop.body, count);
    if (loop.condition) {
        loop.condition = graph_clone(loop.condition);
        add_first_input(loop.condition, count);
    }
    loop.carried++;
    NodeId made = op_build_loop(counting, &loop, in, node->place);
    graph_add_output(counting, counting->node[made].out[0], (Str){0});
    return counting;
}

/* Elements for those inputs of the counting graph that its loop still reads. */
static bool find_inputs(Graph *graph, const Node *node, const PassContext *context, const Graph *counting,
                        const Tensor **input)
{
    const Node *loop = &counting->node[0];
    for (uint32_t i = 0; i < counting->input_count; i++) {
        bool read = false;
        for (uint32_t k = 0; k < loop->in_count; k++)
            read |= loop->in[k] == counting->input[i];
        input[i] = read ? constant_tensor(graph, node->in[i], context) : NULL;
        if (read && !input[i])
            return false;
    }
    return true;
}

bool constant_rounds(Graph *graph, const Node *node, const PassContext *context, int64_t *work, int64_t *rounds)
{
    Arena scratch = {0};
    PassContext own = pass_context(&scratch, context->diag);
    Graph *counting = counting_graph(graph, node, &scratch);
    pass_dce(counting, &own);
    const Tensor **input = ARENA_ARRAY(&scratch, const Tensor *, counting->input_count), *count;
    bool known = find_inputs(graph, node, context, counting, input) &&
                 eval_graph_within(counting, &scratch, input, &count, NULL, work);
    if (known)
        *rounds = *(const int64_t *)count->data;
    arena_free(&scratch);
    return known;
}

int64_t rounds_known(Graph *graph, const Node *node, const PassContext *context)
{
    int64_t work = loop_of(graph, node).most ? LITTLE_WORK : MOST_WORK, rounds;
    return constant_rounds(graph, node, context, &work, &rounds) ? rounds : -1;
}

int64_t rounds_bound(Graph *graph, const Node *node, const PassContext *context)
{
    int64_t bound = loop_of(graph, node).most;
    if (bound)
        return bound;
    bound = rounds_known(graph, node, context);
    return bound < 0 ? 0 : most(bound, 1);
}
