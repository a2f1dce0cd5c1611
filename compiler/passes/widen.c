/* Which constants need never be widened as a whole (widen.h).
 * A quantised weight is read once for a run, or once for each tile: as bytes it takes a quarter of the memory and of
 * the time to read it, and an instruction or two more for each of its vectors. */
#include "passes/widen.h"

#include "ops/meaning.h"

#define LEAST 256 /* bytes of a constant */
#define LESS  8   /* as many times fewer elements have scales and zero points */

bool widen_is_worth(const Type *type)
{
    return widen_is_narrow(type->dtype) && type_bytes(type) >= LEAST;
}

bool widen_fits_nibbles(const Graph *graph, ValueId value)
{
    const Value *v = &graph->value[value];
    bool said = v->role == ROLE_PARAM && v->bits == 4 && !v->trained, byte = dtype_bytes(v->type->dtype) == 1;
    if (!byte || v->type->dtype == DT_BOOL || (v->role != ROLE_CONST && !said) || !widen_is_worth(v->type))
        return false;
    return v->data && v->data->data ? tensor_fits_nibbles(v->data) : said;
}

typedef struct Widener {
    const Graph *graph;
    const bool *constant;
    ValueId *core;  /* per value; of a narrow constant itself */
    uint8_t *depth; /* per value: nodes from its core on */
} Widener;

static bool is_wide(DType dtype)
{
    return dtype == DT_F32 || dtype == DT_F64 || dtype == DT_I32;
}

static int64_t elements_of(const Widener *w, ValueId v)
{
    return shape_elements(value_shape(w->graph, v));
}

/* Behind views. */
static ValueId owner(const Graph *graph, ValueId v)
{
    const Node *node;
    while ((node = value_producer(graph, v)) && node_is_view(node))
        v = node->in[0];
    return v;
}

/* A scale or a zero point: of few elements, which views may repeat. */
static bool is_small(const Widener *w, ValueId v, int64_t elements)
{
    v = owner(w->graph, v);
    const Node *node = value_producer(w->graph, v);
    return w->constant[v] && ((node && node_is_formula(node)) || elements_of(w, v) * LESS <= elements);
}

/* The operand that brings the core, when all others are small; NONE. */
static ValueId arithmetic_core(const Widener *w, const Node *node)
{
    ValueId from = NONE;
    int64_t elements = elements_of(w, node->out[0]);
    if (!is_wide(value_type(w->graph, node->out[0])->dtype) || node_is_expensive(node))
        return NONE;
    for (uint32_t i = 0; i < node->in_count; i++) {
        ValueId v = node->in[i];
        if (w->core[v] != NONE && is_wide(value_type(w->graph, v)->dtype) && elements_of(w, v) == elements &&
            from == NONE)
            from = v;
        else if (!is_small(w, v, elements))
            return NONE;
    }
    return from;
}

bool widen_takes_half(const Graph *graph, const Node *node)
{
    const ScalarList *list = op_info(node->op)->scalar;
    double by;
    if (!list || node->in_count != 2 || value_type(graph, node->out[0])->dtype != DT_U8 ||
        !value_is_number(graph, node->in[1], &by))
        return false;
    Word word = list->term[list->count - 1].word;
    bool high = word == WORD_SHIFT_RIGHT && by == 4; /* of what fits the low half it is 0, which needs no elements */
    return (word == WORD_BIT_AND && by == 15) || (high && !widen_fits_nibbles(graph, node->in[0]));
}

/* The operand through which the node is made of a core. */
static ValueId core_operand(const Widener *w, const Node *node)
{
    if (node->out_count != 1 || !w->constant[node->out[0]])
        return NONE;
    ValueId v = node->in_count ? node->in[0] : NONE;
    bool first = v != NONE && w->core[v] != NONE;
    switch (op_info(node->op)->family) {
    case FAMILY_CAST:
        return first && !op_keeps_bits(node->op) && widen_is_narrow(value_type(w->graph, v)->dtype) &&
                       is_wide(value_type(w->graph, node->out[0])->dtype)
                   ? v
                   : NONE;
    case FAMILY_ELEMENTWISE:
        return first && widen_takes_half(w->graph, node) ? v : arithmetic_core(w, node);
    default:
        return first && node_is_view(node) && elements_of(w, node->out[0]) <= elements_of(w, v) ? v : NONE;
    }
}

static void find_cores(Widener *w)
{
    const Graph *graph = w->graph;
    for (ValueId v = 0; v < graph->value_count; v++)
        w->core[v] = w->constant[v] && widen_is_worth(value_type(graph, v)) ? v : NONE;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        ValueId from = node->dead ? NONE : core_operand(w, node);
        if (from == NONE || w->depth[from] >= WIDEN_DEEPEST || w->core[node->out[0]] != NONE)
            continue;
        w->core[node->out[0]] = w->core[from];
        w->depth[node->out[0]] = (uint8_t)(w->depth[from] + 1);
    }
}

ValueId *widen_cores(const Graph *graph, const bool *constant, Arena *arena)
{
    Widener w = {graph, constant, ARENA_ARRAY(arena, ValueId, graph->value_count),
                 ARENA_ARRAY(arena, uint8_t, graph->value_count)};
    find_cores(&w);
    for (ValueId v = 0; v < graph->value_count; v++) {
        const Node *node = value_producer(graph, v);
        if (w.core[v] != NONE && !is_wide(value_type(graph, v)->dtype) && !(node && widen_takes_half(graph, node)))
            w.core[v] = NONE;
    }
    return w.core;
}

/* The operand of as many elements as the result, which no view repeats. */
static ValueId full_operand(const Graph *graph, const Node *node)
{
    int64_t elements = shape_elements(value_shape(graph, node->out[0]));
    for (uint32_t i = 0; i < node->in_count; i++)
        if (shape_elements(value_shape(graph, owner(graph, node->in[i]))) == elements)
            return node->in[i];
    return NONE;
}

bool widen_is(const Graph *graph, const bool *constant, ValueId value)
{
    for (uint32_t depth = 0; depth < WIDEN_DEEPEST && value != NONE && constant[value]; depth++) {
        const Node *node = value_producer(graph, value);
        if (!node || !node->in_count)
            return false;
        const Type *from = value_type(graph, node->in[0]);
        OpFamily family = op_info(node->op)->family;
        if (family == FAMILY_CAST)
            return is_wide(value_type(graph, value)->dtype) && widen_is_worth(from);
        if (!node_is_view(node) && family != FAMILY_ELEMENTWISE)
            return false;
        value = node_is_view(node) ? node->in[0] : full_operand(graph, node);
    }
    return false;
}

/* Does the node, which is not constant, ask for single elements of this operand? */
static bool reads_elements(const Node *node, uint32_t operand)
{
    switch (op_info(node->op)->family) {
    case FAMILY_CONTRACT:
        return operand < 2;
    case FAMILY_GATHER:
        return operand == 0 && !node_is_scatter(node);
    case FAMILY_DYNAMIC:
        return operand == 0 && node_is_dynamic_slice(node);
    case FAMILY_ELEMENTWISE:
        return true;
    default:
        return false;
    }
}

/* The views of what widened nodes scale with. */
static void keep_sides(const Graph *graph, const ValueId *core, bool *widened)
{
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        bool scales = !node->dead && op_info(node->op)->family == FAMILY_ELEMENTWISE && widened[node->out[0]];
        for (uint32_t i = 0; scales && i < node->in_count; i++) {
            const Node *view;
            for (ValueId v = node->in[i]; core[v] == NONE && (view = value_producer(graph, v)) && node_is_view(view);
                 v = view->in[0])
                widened[v] = view->out_count == 1;
        }
    }
}

bool *widen_find(const Graph *graph, const bool *constant, Arena *arena)
{
    const ValueId *core = widen_cores(graph, constant, arena);
    bool *widened = ARENA_ARRAY(arena, bool, graph->value_count), *live = graph_live_out(graph, arena);
    for (ValueId v = 0; v < graph->value_count; v++)
        widened[v] = core[v] != NONE && !live[v];
    for (NodeId n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; !node->dead && i < node->in_count; i++) {
            bool passed = node->out_count == 1 && core[node->out[0]] != NONE && core[node->out[0]] == core[node->in[i]];
            widened[node->in[i]] &= passed ? widened[node->out[0]] : reads_elements(node, i);
        }
    }
    keep_sides(graph, core, widened);
    return widened;
}
