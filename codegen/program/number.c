#include "program/number.h"

#include "base/map.h"
#include "program/entry.h"

typedef struct BodyPair {
    Graph *body;
    const Graph *copy;
} BodyPair;

static void pair_bodies(Numbering *numbering, Graph *body, const Graph *copy)
{
    BodyPair pair = {body, copy};
    ARENA_PUSH(body->module->arena, numbering->body, numbering->count, numbering->capacity, pair);
    for (NodeId n = 0; n < body->node_count; n++)
        for (uint32_t s = 0; node_has_bodies(&body->node[n]) && s < body->node[n].sub_count; s++)
            pair_bodies(numbering, body->node[n].sub[s], copy->node[n].sub[s]);
}

static void plan(Numbering *numbering, const CompileOptions *options)
{
    Arena scratch = {0};
    Module *module = numbering->graph->module;
    Diag *diag = module->diag, quiet = {.arena = &scratch}; /* what there is to say is said by compilations */
    Program program = {.options = *options};
    Entry entry = {.program = &program, .graph = numbering->plan};
    PassContext context = entry_context(options, 0, &scratch, &quiet);
    module->diag = &quiet;
    kernel_flatten(numbering->plan, &scratch, &numbering->flat);
    numbering->steps = entry_plan(&entry, &context) ? entry.memory.kernel_count : 0;
    numbering->keeps_order = entry.keeps_order;
    module->diag = diag;
    diag_free(&quiet);
    arena_free(&scratch);
}

void program_number_begin(Numbering *numbering, Graph *graph, const CompileOptions *options)
{
    *numbering = (Numbering){.graph = graph, .plan = graph_clone(graph)};
    pair_bodies(numbering, graph, numbering->plan);
    plan(numbering, options);
}

/* Copies, which fuse adds to the graph and to the plan: per value that is copied, once, the step; NONE.  Not for
 * bodies, whose copies of what leaves them the plan spares. */
static const uint32_t *steps_of_copies(const Graph *flat, const FlatBodies *bodies, Arena *arena)
{
    uint32_t *step = ARENA_ARRAY(arena, uint32_t, flat->value_count);
    uint32_t *copies = ARENA_ARRAY(arena, uint32_t, flat->value_count);
    bool *known = ARENA_ARRAY(arena, bool, flat->value_count);
    for (uint32_t b = 0; b < bodies->count; b++)
        for (ValueId v = 0; v < bodies->at[b].count; v++)
            if (bodies->at[b].flat[v] != NONE)
                known[bodies->at[b].flat[v]] = true;
    for (NodeId n = 0; n < flat->node_count; n++) {
        const Node *node = &flat->node[n];
        if (node->in_count != 1 || node->out_count != 1 || known[node->out[0]])
            continue;
        step[node->in[0]] = node->kernel;
        copies[node->in[0]]++;
    }
    for (ValueId v = 0; v < flat->value_count; v++)
        step[v] = copies[v] == 1 ? step[v] : NONE;
    return step;
}

typedef struct Numberer {
    const Graph *flat; /* planned */
    const uint32_t *copied;
    uint32_t steps;
    const ValueId *of; /* per value that the body had in front of fuse: what it has become; NONE */
    uint32_t count;
} Numberer;

static ValueId flat_of(const Numberer *numberer, ValueId value)
{
    return value < numberer->count ? numberer->of[value] : NONE;
}

/* The step in which the plan makes what the node makes. */
static uint32_t step_of(const Numberer *numberer, const Node *node)
{
    ValueId made = node->out_count ? flat_of(numberer, node->out[0]) : NONE;
    ValueId read = node->in_count == 1 ? flat_of(numberer, node->in[0]) : NONE;
    const Node *maker = made == NONE ? NULL : value_producer(numberer->flat, made);
    uint32_t step = maker                                              ? maker->kernel
                    : made == NONE && read != NONE && numberer->copied ? numberer->copied[read]
                                                                       : NONE;
    return step < numberer->steps ? step : NONE;
}

/* Fuse has repeated some nodes in the kernels that read them: those have the step of their kernel. */
static void number_body(const Numberer *numberer, Graph *body, Arena *arena)
{
    uint32_t *step = ARENA_ARRAY(arena, uint32_t, body->node_count), kernels = 0;
    for (NodeId n = 0; n < body->node_count; n++) {
        step[n] = step_of(numberer, &body->node[n]);
        if (body->node[n].kernel != NONE && body->node[n].kernel >= kernels)
            kernels = body->node[n].kernel + 1;
    }
    uint32_t *known = ARENA_ARRAY(arena, uint32_t, kernels);
    for (uint32_t k = 0; k < kernels; k++)
        known[k] = NONE;
    for (NodeId n = 0; n < body->node_count; n++)
        if (body->node[n].kernel != NONE && step[n] != NONE)
            known[body->node[n].kernel] = step[n];
    for (NodeId n = 0; n < body->node_count; n++)
        if (body->node[n].kernel != NONE)
            body->node[n].kernel = step[n] != NONE ? step[n] : known[body->node[n].kernel];
}

static void number_bodies(const Numbering *numbering, Arena *arena)
{
    Map of = {.arena = arena};
    const FlatBodies *bodies = &numbering->flat;
    Numberer numberer = {
        .flat = numbering->plan, .steps = numbering->steps, .copied = steps_of_copies(numbering->plan, bodies, arena)};
    for (uint32_t b = 0; b < bodies->count; b++)
        map_put(&of, map_key(&bodies->at[b].body, sizeof bodies->at[b].body), b);
    for (uint32_t p = 0; p < numbering->count; p++) {
        const BodyPair *pair = &numbering->body[p];
        uint32_t b = map_get(&of, map_key(&pair->copy, sizeof pair->copy));
        numberer.of = b == MAP_NONE ? NULL : bodies->at[b].flat;
        numberer.count = b == MAP_NONE ? 0 : bodies->at[b].count;
        number_body(&numberer, pair->body, arena);
        numberer.copied = NULL; /* the graph itself was the first */
    }
}

/* A graph without bodies has the plan's order and numbers already. */
static void drop_no_steps(const Numbering *numbering)
{
    for (NodeId n = 0; n < numbering->graph->node_count; n++)
        if (numbering->graph->node[n].kernel >= numbering->steps)
            numbering->graph->node[n].kernel = NONE;
}

void program_number_finish(Numbering *numbering)
{
    Arena scratch = {0};
    if (numbering->steps && numbering->count == 1)
        drop_no_steps(numbering);
    else if (numbering->steps)
        number_bodies(numbering, &scratch);
    arena_free(&scratch);
}
