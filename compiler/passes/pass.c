#include "passes/pass.h"

#include "ir/verify.h"

const PassRow pass_table[] = {
#define PASS(NAME, doc) {#NAME, doc, pass_##NAME},
#include "passes/pass.def"
};
const uint32_t pass_count = sizeof pass_table / sizeof pass_table[0];

/* Simplify sees through constants that are still sums of nodes, so that weights are folded once, fully scaled; the
 * second round finds what folding has made a number.  Tapes that no gradient reads are gone before equal loops are
 * sought. */
const char *const pass_pipeline[] = {"expand",    "promote",  "planes",   "remat", "grad",    "cse",
                                     "dce",       "hoist",    "simplify", "fold",  "control", "unroll",
                                     "cse",       "simplify", "phases",   "fold",  "cse",     "margins",
                                     "diagonals", "panels",   "dce",      "sink",  "layout",  NULL};

const PassRow *pass_find(Str name)
{
    for (uint32_t i = 0; i < pass_count; i++)
        if (str_is(name, pass_table[i].name))
            return &pass_table[i];
    return NULL;
}

/* Is the value there, and made before the node? */
static bool stands_before(const Graph *graph, ValueId value, NodeId node)
{
    const Node *producer = value_producer(graph, value);
    return graph->value[value].role != ROLE_RESULT || (producer && !producer->dead && graph->value[value].node < node);
}

/* What @inplace names may be one with another value now, or a number: then the wish means nothing any more. */
static void drop_inplace(Graph *graph)
{
    for (ValueId v = 0; v < graph->value_count; v++) {
        Value *value = &graph->value[v];
        if (value->inplace == NONE || (value_producer(graph, v) && stands_before(graph, value->inplace, value->node)))
            continue;
        diag_warning(graph->module->diag, value->place, STR_FMT " is not made over " STR_FMT ": one of them is gone",
                     STR_ARG(value_show(graph, v)), STR_ARG(value_show(graph, value->inplace)));
        value->inplace = NONE;
    }
}

static bool run_one(const PassRow *pass, Graph *graph, PassContext *context)
{
    ArenaMark mark = arena_mark(context->scratch);
    uint32_t before = context->changes;
    context->changes = 0;
    bool ok = pass->run(graph, context);
    if (ok)
        drop_inplace(graph);
    context->changes += before;
    arena_reset(context->scratch, mark);
    return ok;
}

static bool run_nested(const PassRow *pass, Graph *graph, PassContext *context)
{
    bool ok = run_one(pass, graph, context), in_body = context->in_body;
    context->in_body = true;
    for (NodeId n = 0; ok && n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; ok && !node->dead && node_has_bodies(node) && i < node->sub_count; i++)
            ok = run_nested(pass, node->sub[i], context);
    }
    context->in_body = in_body;
    return ok;
}

static bool verify_after(const PassRow *pass, const Graph *graph, PassContext *context)
{
    ArenaMark mark = arena_mark(context->scratch);
    Str message = {0};
    bool ok = graph_verify(graph, context->scratch, &message);
    if (!ok)
        diag_error(context->diag ? context->diag : graph->module->diag, graph->place,
                   "internal error: pass %s broke the graph: " STR_FMT, pass->name, STR_ARG(message));
    arena_reset(context->scratch, mark);
    return ok;
}

Graph *pass_reference(const Graph *graph)
{
    Graph *copy = graph_clone(graph);
    Arena scratch = {0};
    PassContext context = pass_context(&scratch, NULL);
    static const char *const needed[] = {"expand", "grad", "dce"}; /* dce: tapes of gradients nobody takes are large */
    bool good = true;
    for (size_t i = 0; good && i < sizeof needed / sizeof *needed; i++)
        good = pass_run(pass_find(str_from(needed[i])), copy, &context);
    arena_free(&scratch);
    return good ? copy : NULL;
}

bool pass_run(const PassRow *pass, Graph *graph, PassContext *context)
{
    context->changes = 0;
    if (!run_nested(pass, graph, context))
        return false;
#ifdef NDEBUG
    (void)verify_after;
    return true;
#else
    return verify_after(pass, graph, context);
#endif
}
