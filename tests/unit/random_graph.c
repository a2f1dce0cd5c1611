#include "random_graph.h"

#include "random_maker.h"

static ValueId step_emitted(Maker *m)
{
    static ValueId (*const step[])(Maker *) = {
        step_rows,    step_gather, step_iota,      step_relayout, step_wide_conv, step_wide_conv, step_wide_pool,
        step_product, step_arg,    step_wide_pool, step_rows,     step_scatter,   step_random,    step_cumsum,
    };
    return step[maker_draw(m, sizeof step / sizeof step[0])](m);
}

static ValueId step_control(Maker *m)
{
    static ValueId (*const step[])(Maker *) = {step_loop, step_loop, step_branch, step_dynamic};
    return step[maker_draw(m, sizeof step / sizeof step[0])](m);
}

ValueId maker_step(Maker *m)
{
    static ValueId (*const step[])(Maker *) = {
        step_unary, step_unary, step_binary,  step_binary, step_binary, step_binary, step_view,  step_view,
        step_view,  step_conv,  step_matmul,  step_reduce, step_select, step_cast,   step_pool,  step_conv,
        step_call,  step_twins, step_weights, step_matmul, step_concat, step_dense,  step_stack, step_border,
    };
    ValueId made = NONE;
    for (int attempt = 0; attempt < 8 && made == NONE; attempt++) {
        m->result_rough = false;
        m->part = NONE;
        if (m->options->control && maker_chance(m, 30))
            made = step_control(m);
        else
            made = m->options->emitted && maker_chance(m, 35) ? step_emitted(m)
                                                              : step[maker_draw(m, sizeof step / sizeof step[0])](m);
    }
    return made != NONE && shape_elements(value_shape(m->graph, made)) > RANDOM_LARGEST ? NONE : made;
}

static void add_inputs(Maker *m)
{
    const int64_t c = maker_channels(m),
                  dim[RANDOM_INPUTS][4] = {{2, c, 5, 6}, {c, 1, 1, 0}, {5, 6, 0, 0}, {40, 16, 0, 0}};
    static const uint32_t rank[RANDOM_INPUTS] = {4, 3, 2, 2};
    for (uint32_t i = 0; i < RANDOM_INPUTS; i++) {
        const Type *type = module_plain_type(m->graph->module, m->options->dtype, rank[i], dim[i]);
        Str name = str_format(m->graph->module->arena, "x%u", i);
        m->slot[m->slots++] = graph_add_input(m->graph, type, name, (Place){0});
    }
}

/* In another shape, another order of the axes, or both. */
static ValueId rearranged(Maker *m, ValueId x)
{
    for (uint32_t views = 1 + maker_draw(m, 3); views > 0; views--)
        x = maker_chance(m, 50) ? maker_transpose(m, x) : maker_reshape(m, x);
    return x;
}

/* Outputs that are no memory of a kernel's own. */
static void add_odd_outputs(Maker *m)
{
    Graph *graph = m->graph;
    Shape shape = {.rank = 1, .dim = {3}};
    m->state = random_mix(m->options->seed);
    if (maker_chance(m, 10))
        graph_add_output(graph, m->slot[maker_draw(m, RANDOM_INPUTS)], STR("an_input"));
    if (maker_chance(m, 10))
        graph_add_output(graph, maker_constant(m, m->options->dtype, &shape), STR("a_constant"));
    if (maker_chance(m, 10))
        graph_add_output(graph, maker_transpose(m, m->slot[2]), STR("a_view"));
    if (maker_chance(m, 10) && graph->output_count)
        graph_add_output(graph, graph->output[0].value, STR("again"));
    if (maker_chance(m, 30) && graph->output_count)
        graph_add_output(graph, rearranged(m, graph->output[maker_draw(m, graph->output_count)].value),
                         STR("rearranged"));
    if (maker_chance(m, 30))
        graph_add_output(graph, rearranged(m, maker_changed(m, maker_pick(m))), STR("rearranged_too"));
}

static void add_outputs(Maker *m)
{
    Graph *graph = m->graph;
    Arena *arena = graph->module->arena;
    bool *used = ARENA_ARRAY(arena, bool, graph->value_count);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].in_count; i++)
            used[graph->node[n].in[i]] = true;
    uint32_t inner =
        m->slots > RANDOM_INPUTS ? RANDOM_INPUTS + (uint32_t)(m->options->seed % (m->slots - RANDOM_INPUTS)) : 0;
    for (uint32_t s = RANDOM_INPUTS; s < m->slots; s++)
        if (m->slot[s] != NONE && (!used[m->slot[s]] || s == inner))
            graph_add_output(graph, m->slot[s], str_format(arena, "out%u", s));
    if (m->options->emitted)
        add_odd_outputs(m);
    if (!graph->output_count)
        graph_add_output(graph, m->slot[0], STR("out"));
}

/* state <- the last value of the main type */
static void add_update(Maker *m)
{
    for (uint32_t s = m->slots; s-- > 0;) {
        if (m->slot[s] == NONE || !maker_is_main(m, m->slot[s]))
            continue;
        const Shape shape = *value_shape(m->graph, m->slot[s]);
        ValueId state = maker_param(m, &shape);
        m->graph->value[state].role = ROLE_STATE;
        ValueId moved = op_build2(m->graph, OP_SUB, state, m->slot[s], (Place){0});
        graph_add_update(m->graph, state, moved, (Place){0});
        return;
    }
}

Graph *random_graph(Module *module, const RandomGraph *options)
{
    Maker m = {.graph = graph_new(module, STR("random")), .options = options, .next = NONE};
    add_inputs(&m);
    for (m.step = 0; m.step < options->steps && m.step < RANDOM_MOST; m.step++) {
        m.state = random_mix(options->seed ^ random_mix(m.step + 1));
        ValueId made = options->left_out[m.step] ? NONE : maker_step(&m);
        m.rough[m.slots] = m.rough[m.slots + 1] = m.result_rough;
        m.slot[m.slots++] = made == NONE ? NONE : m.part;
        m.slot[m.slots++] = made;
    }
    add_outputs(&m);
    if (options->calls && options->seed % 3 == 0)
        add_update(&m);
    return m.graph;
}

void random_shrink(RandomGraph *options, bool (*fails)(void *context, const RandomGraph *options), void *context)
{
    while (options->steps > 1) {
        RandomGraph shorter = *options;
        shorter.steps--;
        if (!fails(context, &shorter))
            break;
        *options = shorter;
    }
    for (uint32_t i = options->steps; i-- > 0;) {
        RandomGraph fewer = *options;
        fewer.left_out[i] = true;
        if (!options->left_out[i] && fails(context, &fewer))
            *options = fewer;
    }
}
