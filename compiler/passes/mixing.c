/* Axes are joined by union and find.  One that a product or a reduction sums up, while the result has it, too, is
 * mixed: of scores [places, places] the row of a place is summed up over all of them. */
#include "passes/mixing.h"

#include "ops/meaning.h"

static uint32_t axis_of(const Mixing *m, uint32_t dimension)
{
    while (m->same[dimension] != dimension)
        dimension = m->same[dimension] = m->same[m->same[dimension]];
    return dimension;
}

static uint32_t dimension_of(const Mixing *m, ValueId value, uint32_t d)
{
    return m->first[value] + d;
}

static void join(const Mixing *m, uint32_t a, uint32_t b)
{
    m->same[axis_of(m, a)] = axis_of(m, b);
}

/* Dimension `d` of the one and `e` of the other; what has one place is no axis, nor has what no input goes into. */
static void join_dimensions(const Graph *graph, const Mixing *m, ValueId a, uint32_t d, ValueId b, uint32_t e)
{
    if (m->made[a] && m->made[b] && value_shape(graph, a)->dim[d] > 1 && value_shape(graph, b)->dim[e] > 1)
        join(m, dimension_of(m, a, d), dimension_of(m, b, e));
}

/* Operands of equal extents, seen from the last dimension. */
static void join_elements(const Graph *graph, const Mixing *m, const Node *node)
{
    ValueId result = node->out[0];
    uint32_t rank = value_shape(graph, result)->rank;
    for (uint32_t i = 0; i < node->in_count; i++) {
        const Shape *x = value_shape(graph, node->in[i]);
        for (uint32_t d = 0; d < x->rank && x->rank <= rank; d++)
            if (x->dim[d] == value_shape(graph, result)->dim[rank - x->rank + d])
                join_dimensions(graph, m, node->in[i], d, result, rank - x->rank + d);
    }
}

/* Dimensions that begin behind as many elements, and end there. */
static void join_reshaped(const Graph *graph, const Mixing *m, ValueId x, ValueId y)
{
    const Shape *a = value_shape(graph, x), *b = value_shape(graph, y);
    int64_t before = 1, others = 1;
    for (uint32_t d = 0, e = 0; d < a->rank && e < b->rank;) {
        if (before == others && a->dim[d] == b->dim[e])
            join_dimensions(graph, m, x, d, y, e);
        int64_t end = before * a->dim[d], other = others * b->dim[e];
        bool first = end <= other, second = other <= end;
        before = first ? end : before;
        others = second ? other : others;
        d += first;
        e += second;
    }
}

static void join_view(const Graph *graph, const Mixing *m, const Node *node)
{
    for (uint32_t r = 0; r < node->out_count; r++) {
        View view = view_of(graph, node, r);
        if (view.kind == VIEW_RESHAPE)
            join_reshaped(graph, m, node->in[0], node->out[r]);
        for (uint32_t d = 0; view.kind == VIEW_STRIDED && d < view.rank; d++)
            if (view.from[d] != NONE && view.slid != d)
                join_dimensions(graph, m, node->in[0], d, node->out[r], view.from[d]);
    }
}

static uint32_t rank_of(const Graph *graph, ValueId value)
{
    return value_shape(graph, value)->rank;
}

static void join_product(const Graph *graph, const Mixing *m, const Node *node, const Product *p)
{
    ValueId x = node->in[0], w = node->in[1], y = node->out[0];
    uint32_t x_rank = rank_of(graph, x), w_rank = rank_of(graph, w), y_rank = rank_of(graph, y);
    if (x_rank < 2 || w_rank < 2 || !p->has_rows || !p->has_columns)
        return;
    join_dimensions(graph, m, x, x_rank - 2, y, y_rank - 2);
    join_dimensions(graph, m, w, w_rank - (p->transposed ? 2 : 1), y, y_rank - 1);
    join_dimensions(graph, m, x, x_rank - 1, w, w_rank - (p->transposed ? 1 : 2));
    for (uint32_t d = 0; d < p->batch_rank; d++) {
        if (x_rank >= 3 + d)
            join_dimensions(graph, m, x, x_rank - 3 - d, y, y_rank - 3 - d);
        if (w_rank >= 3 + d)
            join_dimensions(graph, m, w, w_rank - 3 - d, y, y_rank - 3 - d);
    }
}

static void join_reduced(const Graph *graph, const Mixing *m, const Node *node)
{
    Reduction r = reduction_of(graph, node);
    for (uint32_t d = 0, e = 0; d < r.rank && !r.has_window; d++) {
        if (!r.reduced[d])
            join_dimensions(graph, m, node->in[0], d, node->out[0], e);
        e += !r.reduced[d] || r.keep;
    }
}

static bool goes_by_element(OpFamily family)
{
    return family == FAMILY_ELEMENTWISE || family == FAMILY_CAST || family == FAMILY_CUMULATE ||
           family == FAMILY_LAYOUT;
}

static void join_node(const Graph *graph, const Mixing *m, const Node *node)
{
    Product product;
    if (product_of(graph, node, &product))
        join_product(graph, m, node, &product);
    else if (node_is_view(node))
        join_view(graph, m, node);
    else if (node_is_reduction(graph, node))
        join_reduced(graph, m, node);
    else if (goes_by_element(op_info(node->op)->family) && node->out_count == 1)
        join_elements(graph, m, node);
}

/* Does the result have the axis that is summed up? */
static bool has_axis(const Graph *graph, const Mixing *m, ValueId result, uint32_t axis)
{
    bool has = false;
    for (uint32_t d = 0; d < rank_of(graph, result); d++)
        has |= value_shape(graph, result)->dim[d] > 1 && axis_of(m, dimension_of(m, result, d)) == axis;
    return has;
}

static void mark_summed(const Graph *graph, const Mixing *m, const Node *node, uint32_t d)
{
    uint32_t axis = axis_of(m, dimension_of(m, node->in[0], d));
    m->mixed[axis] |= has_axis(graph, m, node->out[0], axis);
}

static void mark_node(const Graph *graph, const Mixing *m, const Node *node)
{
    Product product;
    if (product_of(graph, node, &product)) {
        if (rank_of(graph, node->in[0]))
            mark_summed(graph, m, node, rank_of(graph, node->in[0]) - 1);
    } else if (node_is_reduction(graph, node)) {
        Reduction r = reduction_of(graph, node);
        for (uint32_t d = 0; d < r.rank && !r.has_window; d++)
            if (r.reduced[d])
                mark_summed(graph, m, node, d);
    }
}

/* Values that inputs or states go into. */
static void mark_made(const Graph *graph, const Mixing *m)
{
    for (ValueId v = 0; v < graph->value_count; v++)
        m->made[v] = graph->value[v].role == ROLE_INPUT || graph->value[v].role == ROLE_STATE;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        bool made = false;
        for (uint32_t i = 0; !node->dead && i < node->in_count; i++)
            made |= m->made[node->in[i]];
        for (uint32_t i = 0; i < node->out_count; i++)
            m->made[node->out[i]] |= made;
    }
}

Mixing mixing_find(const Graph *graph, Arena *arena)
{
    uint32_t dimensions = 0;
    Mixing m = {.first = ARENA_ARRAY(arena, uint32_t, graph->value_count)};
    for (ValueId v = 0; v < graph->value_count; v++) {
        m.first[v] = dimensions;
        dimensions += graph->value[v].type ? rank_of(graph, v) : 0;
    }
    m.made = ARENA_ARRAY(arena, bool, graph->value_count);
    mark_made(graph, &m);
    m.same = ARENA_ARRAY(arena, uint32_t, dimensions);
    m.mixed = ARENA_ARRAY(arena, bool, dimensions);
    for (uint32_t d = 0; d < dimensions; d++)
        m.same[d] = d;
    for (NodeId n = 0; n < graph->node_count; n++)
        if (!graph->node[n].dead)
            join_node(graph, &m, &graph->node[n]);
    for (NodeId n = 0; n < graph->node_count; n++)
        if (!graph->node[n].dead)
            mark_node(graph, &m, &graph->node[n]);
    return m;
}

bool mixing_of(const Mixing *mixing, ValueId value, uint32_t dimension)
{
    return mixing->mixed[axis_of(mixing, dimension_of(mixing, value, dimension))];
}
