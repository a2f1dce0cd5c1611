/* Passes on random graphs: what the evaluator computes before, it computes after.  And on a chain of a million nodes:
 * passes are linear.  What each pass does is shown by its text tests in tests/lit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ir/verify.h"
#include "ops/family.h"
#include "program/stage.h"
#include "storage/schedule.h"
#include "random_graph.h"
#include "unit.h"

typedef struct Trial {
    const char *const *pass; /* names, ending with NULL */
    double tolerance;
    bool print;
} Trial;

typedef struct Values {
    const Tensor **output, **updated;
} Values;

static Values run(Graph *graph, Arena *arena)
{
    const Tensor **input = ARENA_ARRAY(arena, const Tensor *, graph->input_count);
    Values values = {ARENA_ARRAY(arena, const Tensor *, graph->output_count),
                     ARENA_ARRAY(arena, const Tensor *, graph->update_count)};
    for (uint32_t i = 0; i < graph->input_count; i++)
        input[i] = random_tensor(arena, value_type(graph, graph->input[i]), i + 1);
    eval_graph(graph, arena, input, values.output, values.updated);
    return values;
}

static bool close_enough(double a, double b, double tolerance)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= tolerance * (1 + fmax(fabs(a), fabs(b)));
}

static bool same_tensor(const Trial *trial, const Tensor *a, const Tensor *b, const char *what, uint32_t which)
{
    if (a->type->dtype != b->type->dtype || !shape_eq(&a->type->shape, &b->type->shape)) {
        if (trial->print)
            printf("# %s %u: types differ\n", what, which);
        return false;
    }
    for (int64_t i = 0; i < shape_elements(&a->type->shape); i++)
        if (!close_enough(tensor_number(a, i), tensor_number(b, i), trial->tolerance)) {
            if (trial->print)
                printf("# %s %u [%lld]: %.17g, after the pass %.17g\n", what, which, (long long)i, tensor_number(a, i),
                       tensor_number(b, i));
            return false;
        }
    return true;
}

static bool same_values(const Trial *trial, const Graph *graph, Values a, Values b)
{
    bool same = true;
    for (uint32_t i = 0; i < graph->output_count; i++)
        same &= same_tensor(trial, a.output[i], b.output[i], "output", i);
    for (uint32_t i = 0; i < graph->update_count; i++)
        same &= same_tensor(trial, a.updated[i], b.updated[i], "update", i);
    return same;
}

static void print_graph(const Graph *graph)
{
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        Text line = {0};
        for (uint32_t i = 0; i < node->out_count; i++) {
            text_printf(&line, "%%%u: ", node->out[i]);
            type_print(&line, value_type(graph, node->out[i]));
        }
        text_printf(&line, " = %s", op_info(node->op)->name);
        for (uint32_t i = 0; i < node->in_count; i++) {
            text_printf(&line, " %%%u", node->in[i]);
            if (graph->value[node->in[i]].role != ROLE_RESULT)
                text_printf(&line, "(%d)", (int)graph->value[node->in[i]].role);
        }
        if (node->kernel != NONE)
            text_printf(&line, "  kernel %u", node->kernel);
        printf("#   %s\n", line.ptr);
        text_free(&line);
    }
}

/* Does the graph change its values under the passes? */
static bool fails(void *context, const RandomGraph *options)
{
    const Trial *trial = context;
    Arena arena = {0}, scratch = {0};
    Diag diag = {.arena = &arena};
    Module *module = module_new(&arena, &diag);
    Graph *original = random_graph(module, options), *graph = random_graph(module, options);
    PassContext pass = pass_context(&scratch, &diag);
    Values before = run(original, &arena);
    bool ok = true;

    pass.lanes = 2;
    for (uint32_t i = 0; ok && trial->pass[i]; i++)
        ok = pass_run(stage_find(str_from(trial->pass[i])), graph, &pass);
    ok = ok && same_values(trial, graph, before, run(graph, &arena));
    if (trial->print) {
        print_graph(original);
        printf("#  after:\n");
        print_graph(graph);
        printf("%.*s", (int)diag.text.len, diag.text.ptr ? diag.text.ptr : "");
    }
    diag_free(&diag);
    arena_free(&scratch);
    arena_free(&arena);
    return !ok;
}

static void try_seeds(Unit *unit, const char *const *pass, uint32_t count, bool control)
{
    const char *more = getenv("NNC_RANDOM_ROUNDS"), *only = getenv("NNC_RANDOM_SEED");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;
    count = only ? 1 : more ? (uint32_t)strtoul(more, NULL, 10) : count;
    for (uint64_t seed = first; seed < first + count && !unit->failed; seed++) {
        bool wide = seed % 4 != 0;
        Trial trial = {pass, wide ? 1e-9 : 2e-3, false};
        RandomGraph options = {
            .seed = seed, .steps = 4 + seed % 24, .dtype = wide ? DT_F64 : DT_F32, .control = control, .calls = true};
        if (!fails(&trial, &options))
            continue;
        random_shrink(&options, fails, &trial);
        printf("# seed %llu, %u steps\n", (unsigned long long)seed, options.steps);
        trial.print = true;
        fails(&trial, &options);
        EXPECT(!"values stay the same");
    }
}

#define KEEPS(name, control, ...)                                                                                      \
    UNIT(name)                                                                                                         \
    {                                                                                                                  \
        static const char *const pass[] = {__VA_ARGS__, NULL};                                                         \
        try_seeds(unit, pass, 400, control);                                                                           \
    }
#define KEEPS_VALUES(name, ...)    KEEPS(name, false, __VA_ARGS__)
#define KEEPS_IN_BODIES(name, ...) KEEPS(name, true, __VA_ARGS__)

KEEPS_VALUES(expand_keeps_values, "expand")
KEEPS_VALUES(dce_keeps_values, "expand", "dce")
KEEPS_VALUES(cse_keeps_values, "expand", "cse")
KEEPS_VALUES(fold_keeps_values, "expand", "fold")
KEEPS_VALUES(simplify_keeps_values, "expand", "simplify", "simplify")
KEEPS_VALUES(schedule_keeps_values, "expand", "schedule", "inplace")
KEEPS_VALUES(layout_keeps_values, "expand", "layout")
KEEPS_VALUES(fuse_keeps_values, "expand", "fuse", "schedule", "inplace")
KEEPS_VALUES(the_pipeline_keeps_values, "expand", "cse", "simplify", "fold", "simplify", "fold", "cse", "dce", "layout",
             "fuse", "schedule", "inplace")

KEEPS_IN_BODIES(expand_keeps_values_in_bodies, "expand")
KEEPS_IN_BODIES(dce_keeps_values_in_bodies, "expand", "dce")
KEEPS_IN_BODIES(cse_keeps_values_in_bodies, "expand", "cse", "dce")
KEEPS_IN_BODIES(fold_keeps_values_in_bodies, "expand", "fold")
KEEPS_IN_BODIES(control_keeps_values, "expand", "control", "dce")
KEEPS_IN_BODIES(hoist_keeps_values, "expand", "hoist", "dce")
KEEPS_IN_BODIES(unroll_keeps_values, "expand", "unroll", "dce")
KEEPS_IN_BODIES(simplify_keeps_values_in_bodies, "expand", "simplify", "simplify")
KEEPS_IN_BODIES(layout_keeps_values_in_bodies, "expand", "layout")
KEEPS_IN_BODIES(the_pipeline_keeps_values_in_bodies, "expand", "cse", "hoist", "simplify", "fold", "control", "unroll",
                "cse", "simplify", "fold", "cse", "dce", "layout")

/* What Value.inplace promises: the result at a position depends on the operand at that position only, and nobody reads
 * the operand's memory later.  Checked by changing one element of the operand. */
typedef struct Replay {
    Graph *graph;
    Arena *arena;
    Tensor **tensor; /* per value */
} Replay;

static void replay_node(Replay *r, NodeId n)
{
    const Node *node = &r->graph->node[n];
    const Tensor **in = ARENA_ARRAY(r->arena, const Tensor *, node->in_count);
    Tensor **out = ARENA_ARRAY(r->arena, Tensor *, node->out_count);
    for (uint32_t i = 0; i < node->in_count; i++) {
        if (!r->tensor[node->in[i]])
            r->tensor[node->in[i]] = (Tensor *)eval_data(r->graph, node->in[i]);
        in[i] = r->tensor[node->in[i]];
    }
    eval_node(r->graph, n, r->arena, in, out);
    for (uint32_t i = 0; i < node->out_count; i++)
        r->tensor[node->out[i]] = out[i];
}

static bool is_lone_view(const Graph *graph, NodeId n)
{
    return graph->node[n].kernel == NONE && op_info(graph->node[n].op)->family == FAMILY_VIEW;
}

static ValueId memory_of(const Graph *graph, ValueId v)
{
    while (graph->value[v].role == ROLE_RESULT && is_lone_view(graph, graph->value[v].node))
        v = graph->node[graph->value[v].node].in[0];
    return v;
}

static bool in_unit(const Graph *graph, NodeId n, NodeId producer)
{
    return n == producer || (graph->node[n].kernel != NONE && graph->node[n].kernel == graph->node[producer].kernel);
}

static bool is_read_later(const Graph *graph, ValueId memory, NodeId producer)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (memory_of(graph, graph->output[i].value) == memory)
            return true;
    for (uint32_t i = 0; i < graph->update_count; i++)
        if (memory_of(graph, graph->update[i].source) == memory)
            return true;
    for (NodeId n = producer + 1; n < graph->node_count; n++)
        for (uint32_t i = 0; !in_unit(graph, n, producer) && i < graph->node[n].in_count; i++)
            if (memory_of(graph, graph->node[n].in[i]) == memory)
                return true;
    return false;
}

/* Another element changes the result nowhere else. */
static bool stays_in_position(const Replay *before, ValueId result, int64_t position)
{
    Graph *graph = before->graph;
    NodeId producer = graph->value[result].node;
    ValueId memory = memory_of(graph, graph->value[result].inplace);
    Replay after = {graph, before->arena, ARENA_ARRAY(before->arena, Tensor *, graph->value_count)};
    memcpy(after.tensor, before->tensor, graph->value_count * sizeof *after.tensor);

    Tensor *changed = tensor_new(before->arena, before->tensor[memory]->type);
    memcpy(changed->data, before->tensor[memory]->data, (size_t)type_bytes(changed->type));
    tensor_set_number(changed, position, tensor_number(changed, position) == 0 ? 1 : 0);
    after.tensor[memory] = changed;
    for (NodeId n = graph->value[memory].node + 1; n < graph->node_count; n++)
        if (is_lone_view(graph, n) || in_unit(graph, n, producer))
            replay_node(&after, n);
    for (int64_t i = 0; i < shape_elements(value_shape(graph, result)); i++) {
        double a = tensor_number(before->tensor[result], i), b = tensor_number(after.tensor[result], i);
        if (i != position && a != b && !(isnan(a) && isnan(b)))
            return false;
    }
    return true;
}

static bool keeps_inplace_promises(Graph *graph, Arena *arena, uint32_t *checked)
{
    Replay replay = {graph, arena, ARENA_ARRAY(arena, Tensor *, graph->value_count)};
    for (uint32_t i = 0; i < graph->input_count; i++)
        replay.tensor[graph->input[i]] = random_tensor(arena, value_type(graph, graph->input[i]), i + 1);
    for (NodeId n = 0; n < graph->node_count; n++)
        replay_node(&replay, n);
    for (ValueId v = 0; v < graph->value_count; v++) {
        ValueId operand = graph->value[v].inplace;
        if (operand == NONE)
            continue;
        ValueId memory = memory_of(graph, operand);
        int64_t elements = shape_elements(value_shape(graph, v));
        if (graph->value[memory].role != ROLE_RESULT || is_read_later(graph, memory, graph->value[v].node) ||
            type_bytes(value_type(graph, v)) != type_bytes(value_type(graph, memory)))
            return false;
        for (int64_t i = 0; i < 3 && i < elements; i++)
            if (!stays_in_position(&replay, v, (i * 7919 + v) % elements))
                return false;
        ++*checked;
    }
    return true;
}

UNIT(inplace_reads_where_it_writes)
{
    static const char *const pass[] = {"expand", "simplify", "fold", "dce", "fuse", "schedule", "inplace"};
    uint32_t checked = 0;
    for (uint64_t seed = 1; seed <= 200 && !unit->failed; seed++) {
        Arena arena = {0}, scratch = {0};
        Diag diag = {.arena = &arena};
        RandomGraph options = {.seed = seed, .steps = 4 + seed % 40, .dtype = DT_F64, .calls = true};
        Graph *graph = random_graph(module_new(&arena, &diag), &options);
        PassContext context = pass_context(&scratch, &diag);
        for (size_t i = 0; i < sizeof pass / sizeof pass[0]; i++)
            if (seed % 3 || strcmp(pass[i], "fuse") != 0) /* nodes by themselves, too */
                EXPECT(pass_run(stage_find(str_from(pass[i])), graph, &context));
        EXPECT(keeps_inplace_promises(graph, &arena, &checked));
        if (unit->failed) {
            printf("# seed %llu\n", (unsigned long long)seed);
            print_graph(graph);
        }
        diag_free(&diag);
        arena_free(&scratch);
        arena_free(&arena);
    }
    printf("# %u results in place\n", checked);
    EXPECT(checked > 100);
}

/* x + 1 + 1 + ..., with a product that is dead every third node. */
static Graph *long_chain(Module *module, uint32_t nodes)
{
    int64_t dim[] = {4};
    Graph *graph = graph_new(module, STR("chain"));
    ValueId x = graph_add_input(graph, module_plain_type(module, DT_F32, 1, dim), STR("x"), (Place){0});
    for (uint32_t i = 0; i < nodes; i++) {
        ValueId one = graph_add_scalar(graph, DT_F32, 1 + i % 5);
        ValueId next = op_build2(graph, i % 3 ? OP_ADD : OP_MUL, x, one, (Place){0});
        x = i % 3 == 1 ? x : next;
    }
    graph_add_output(graph, x, STR("y"));
    return graph;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

UNIT(a_million_nodes_take_seconds)
{
    Arena arena = {0}, scratch = {0};
    Diag diag = {.arena = &arena};
    Graph *graph = long_chain(module_new(&arena, &diag), 1000000);
    PassContext pass = pass_context(&scratch, &diag);
    double whole = 0;
    const char *name;
    for (uint32_t i = 0; (name = stage_of_compilation(i)); i++) {
        double start = seconds();
        EXPECT(pass_run(stage_find(str_from(name)), graph, &pass));
        double took = seconds() - start;
        printf("# %-8s %7.0f ms, %u nodes left\n", name, 1e3 * took, graph->node_count);
        EXPECT(took < 10);
        whole += took;
    }
    printf("# together %7.0f ms\n", 1e3 * whole);
    diag_free(&diag);
    arena_free(&scratch);
    arena_free(&arena);
}

/* A wide graph that the given order computes worst: all branches first, then all sums. */
UNIT(schedule_lowers_the_peak)
{
    Arena arena = {0}, scratch = {0};
    Diag diag = {.arena = &arena};
    Module *module = module_new(&arena, &diag);
    Graph *graph = graph_new(module, STR("wide"));
    int64_t large[] = {64, 64}, axis[] = {0, 1};
    ValueId x = graph_add_input(graph, module_plain_type(module, DT_F32, 2, large), STR("x"), (Place){0}), branch[8];
    for (int i = 0; i < 8; i++)
        branch[i] = op_build2(graph, OP_MUL, x, graph_add_scalar(graph, DT_F32, i), (Place){0});
    Attr attr[2];
    attr_defaults(OP_REDUCE_SUM, attr);
    attr[0] = (Attr){.i = 2, .ints = axis};
    for (int i = 0; i < 8; i++)
        graph_add_output(graph, op_build(graph, OP_REDUCE_SUM, &branch[i], 1, attr, (Place){0}), STR("y"));

    PassContext pass = pass_context(&scratch, &diag);
    pass.streams = 4;
    EXPECT_INT(schedule_peak(graph, &scratch), 8 * 64 * 64 * 4);
    EXPECT(pass_run(stage_find(STR("schedule")), graph, &pass));
    EXPECT_INT(schedule_peak(graph, &scratch), 64 * 64 * 4);
    uint32_t streams = 0;
    for (NodeId n = 0; n < graph->node_count; n++)
        streams = graph->node[n].stream >= streams ? graph->node[n].stream + 1 : streams;
    EXPECT_INT(streams, 4);
    diag_free(&diag);
    arena_free(&scratch);
    arena_free(&arena);
}

int main(void)
{
    static const Test test[] = {
        RUN(expand_keeps_values),
        RUN(dce_keeps_values),
        RUN(cse_keeps_values),
        RUN(fold_keeps_values),
        RUN(simplify_keeps_values),
        RUN(schedule_keeps_values),
        RUN(layout_keeps_values),
        RUN(fuse_keeps_values),
        RUN(the_pipeline_keeps_values),
        RUN(expand_keeps_values_in_bodies),
        RUN(dce_keeps_values_in_bodies),
        RUN(cse_keeps_values_in_bodies),
        RUN(fold_keeps_values_in_bodies),
        RUN(control_keeps_values),
        RUN(hoist_keeps_values),
        RUN(unroll_keeps_values),
        RUN(simplify_keeps_values_in_bodies),
        RUN(layout_keeps_values_in_bodies),
        RUN(the_pipeline_keeps_values_in_bodies),
        RUN(inplace_reads_where_it_writes),
        RUN(schedule_lowers_the_peak),
        RUN(a_million_nodes_take_seconds),
    };
    return UNIT_MAIN(test);
}
