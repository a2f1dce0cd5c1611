#include "passes/rewrite.h"

#include <assert.h>
#include <string.h>

#include "ops/family.h"
#include "ops/meaning.h"
#include "passes/constant.h"

#define MOST_ROUNDS  64   /* rewrites of one node; a rule that undoes another would otherwise never end */
#define MOST_UNIFORM 4096 /* elements of a constant looked through for a single number */

/* Asking */

/* As it will be stored: 0.1 in f32 is not the double 0.1. */
static double stored_number(const Type *type, double number)
{
    uint64_t bits = 0;
    Type scalar = {type->dtype, {0}, {0}};
    Tensor tensor = {&scalar, &bits};
    tensor_set_number(&tensor, 0, number);
    return tensor_number(&tensor, 0);
}

static bool constant_number(const Value *value, double *number)
{
    int64_t elements = shape_elements(&value->type->shape);
    size_t bytes = dtype_bytes(value->type->dtype);
    const char *data = value->data->data;
    if (elements < 1 || elements > MOST_UNIFORM || value->type->layout.block || !data)
        return false;
    for (int64_t i = 1; i < elements; i++)
        if (memcmp(data, data + (size_t)i * bytes, bytes) != 0)
            return false;
    *number = tensor_number(value->data, 0);
    return true;
}

bool rewrite_number(const Rewriter *rw, ValueId v, double *number)
{
    for (const Node *node; (node = value_producer(rw->graph, v)); v = node->in[0]) {
        if (node_is_number(node, number)) {
            *number = stored_number(value_type(rw->graph, v), *number);
            return true;
        }
        if (!node_is_view(node))
            return false;
    }
    const Value *value = graph_value(rw->graph, v);
    return value->role == ROLE_CONST && constant_number(value, number);
}

/* Building */

/* For what is new, of which nothing is known and which nobody uses yet */
static void make_room(Rewriter *rw)
{
    uint32_t more = rw->graph->value_count - rw->count;
    while (rw->capacity < rw->graph->value_count) {
        uint32_t capacity = rw->capacity;
        rw->constant = arena_grow(rw->scratch, rw->constant, rw->count, &capacity, sizeof *rw->constant);
        rw->uses = arena_grow(rw->scratch, rw->uses, rw->count, &rw->capacity, sizeof *rw->uses);
    }
    memset(rw->constant + rw->count, 0, more * sizeof *rw->constant);
    memset(rw->uses + rw->count, 0, more * sizeof *rw->uses);
    rw->count = rw->graph->value_count;
}

ValueId rewrite_build(Rewriter *rw, OpCode op, const ValueId *in, uint32_t in_count, const Attr *attr)
{
    ValueId result = op_build(rw->graph, op, in, in_count, attr, rw->place);
    Node *node = &rw->graph->node[rw->graph->value[result].node];
    node->from = rw->from;
    assert(value_type(rw->graph, result)); /* rules build only what is well typed */

    make_room(rw);
    for (uint32_t i = 0; i < in_count; i++)
        rw->uses[in[i]]++;
    bool known = constant_is_foldable(rw->graph, node) && constant_has_operands(node, rw->constant);
    for (uint32_t i = 0; i < node->out_count; i++)
        rw->constant[node->out[i]] = known;
    return result;
}

ValueId rewrite_build1(Rewriter *rw, OpCode op, ValueId x)
{
    return rewrite_build(rw, op, &x, 1, NULL);
}

ValueId rewrite_build2(Rewriter *rw, OpCode op, ValueId x, ValueId y)
{
    ValueId in[] = {x, y};
    return rewrite_build(rw, op, in, 2, NULL);
}

ValueId rewrite_scalar(Rewriter *rw, DType dtype, double number)
{
    ValueId v = graph_add_scalar(rw->graph, dtype, number);
    make_room(rw);
    rw->constant[v] = true;
    return v;
}

static ValueId build_shaped(Rewriter *rw, OpCode op, ValueId x, const Shape *shape)
{
    Attr attr = {.i = shape->rank, .ints = shape->dim};
    assert(op_attr_count(op) == 1);
    return shape_eq(value_shape(rw->graph, x), shape) ? x : rewrite_build(rw, op, &x, 1, &attr);
}

ValueId rewrite_reshape(Rewriter *rw, ValueId x, const Shape *shape)
{
    return build_shaped(rw, OP_RESHAPE, x, shape);
}

ValueId rewrite_broadcast(Rewriter *rw, ValueId x, const Shape *shape)
{
    return build_shaped(rw, OP_BROADCAST, x, shape);
}

ValueId rewrite_cast(Rewriter *rw, ValueId x, DType dtype)
{
    Attr attr[1];
    attr[attr_index(OP_CAST, STR("to"))] = (Attr){.i = dtype};
    return value_type(rw->graph, x)->dtype == dtype ? x : rewrite_build(rw, OP_CAST, &x, 1, attr);
}

ValueId rewrite_slice(Rewriter *rw, ValueId x, int64_t axis, int64_t begin, int64_t count, int64_t step)
{
    int64_t end = begin + (count - 1) * step + 1;
    Attr attr[4];
    attr[attr_index(OP_SLICE, STR("axes"))] = (Attr){.i = 1, .ints = &axis};
    attr[attr_index(OP_SLICE, STR("begin"))] = (Attr){.i = 1, .ints = &begin};
    attr[attr_index(OP_SLICE, STR("end"))] = (Attr){.i = 1, .ints = &end};
    attr[attr_index(OP_SLICE, STR("step"))] = (Attr){.i = 1, .ints = &step};
    return rewrite_build(rw, OP_SLICE, &x, 1, attr);
}

/* Replacing */

static void drop_node(Rewriter *rw, Node *node, ValueId **stack, uint32_t *count, uint32_t *capacity)
{
    node->dead = true;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (--rw->uses[node->in[i]] == 0)
            ARENA_PUSH(rw->scratch, *stack, *count, *capacity, node->in[i]);
}

static bool is_unused(const Rewriter *rw, const Node *node)
{
    if (node->dead || node->sub_count || op_info(node->op)->effect != EFFECT_PURE)
        return false;
    for (uint32_t i = 0; i < node->out_count; i++)
        if (rw->uses[node->out[i]])
            return false;
    return true;
}

/* Removes the producer of v, and then all that was computed only for it, so that counts of uses stay true. */
static void drop_unused(Rewriter *rw, ValueId v)
{
    ValueId first[8], *stack = first;
    uint32_t count = 1, capacity = sizeof first / sizeof first[0];
    stack[0] = v;
    while (count) {
        Node *node = value_producer(rw->graph, stack[--count]);
        if (node && is_unused(rw, node))
            drop_node(rw, node, &stack, &count, &capacity);
    }
}

static bool is_as_good(const Rewriter *rw, ValueId old, ValueId by, bool fresh)
{
    const Value *a = graph_value(rw->graph, old), *b = graph_value(rw->graph, by);
    return a->type == b->type && (fresh || str_eq(a->placement, b->placement));
}

static void replace(Rewriter *rw, ValueId old, ValueId by, bool fresh)
{
    Value *from = graph_value(rw->graph, old), *to = graph_value(rw->graph, by);
    if (fresh)
        to->placement = from->placement;
    if (to->role == ROLE_RESULT && !to->name.len) {
        to->name = from->name;
        from->name = (Str){0};
    }
    rw->uses[by] += rw->uses[old];
    rw->uses[old] = 0;
    drop_unused(rw, old);
    rw->changes++;
}

static NodeId append(Graph *graph, const Node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++)
        graph->value[node->out[i]].node = graph->node_count;
    ARENA_PUSH(graph->module->arena, graph->node, graph->node_count, graph->node_capacity, *node);
    return graph->node_count - 1;
}

static void rewrite_node(Rewriter *rw, const Node *old, Rule *rule)
{
    Graph *graph = rw->graph;
    NodeId n = append(graph, old);
    if (!old->out_count)
        return;

    ValueId first = old->out[0];
    rw->place = old->place;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        Node node = graph->node[n];
        NodeId built = graph->node_count;
        rw->from = node.from;
        ValueId by = rule(rw, &node);
        if (by == NONE)
            return;
        const Node *producer = value_producer(graph, by);
        bool fresh = producer && producer >= graph->node + built;
        if (!is_as_good(rw, node.out[0], by, fresh)) {
            drop_unused(rw, by);
            return;
        }
        replace(rw, node.out[0], by, fresh);
        if (fresh && !graph->node[graph->value[by].node].mark) /* how it is to be computed */
            graph->node[graph->value[by].node].mark = node.mark;
        rw->map[first] = by;
        if (!fresh)
            return;
        n = graph->value[by].node;
    }
}

static void count_uses(Rewriter *rw)
{
    const Graph *graph = rw->graph;
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; !graph->node[n].dead && i < graph->node[n].in_count; i++)
            rw->uses[graph->node[n].in[i]]++;
    for (uint32_t i = 0; i < graph->output_count; i++)
        rw->uses[graph->output[i].value]++;
    for (uint32_t i = 0; i < graph->update_count; i++)
        rw->uses[graph->update[i].source]++;
}

void rewrite_graph(Graph *graph, PassContext *context, Rule *rule)
{
    Arena *scratch = context->scratch;
    uint32_t values = graph->value_count, nodes = graph->node_count;
    Rewriter rw = {.graph = graph, .scratch = scratch, .context = context, .count = values, .capacity = values};
    rw.constant = constant_values(graph, context, scratch);
    rw.uses = ARENA_ARRAY(scratch, uint32_t, values);
    rw.map = ARENA_ARRAY(scratch, ValueId, values);
    for (ValueId v = 0; v < values; v++)
        rw.map[v] = v;
    count_uses(&rw);

    const Node *old = arena_copy(scratch, graph->node, nodes * sizeof *old);
    graph->node_count = 0;
    for (NodeId n = 0; n < nodes; n++) {
        if (old[n].dead)
            continue;
        for (uint32_t i = 0; i < old[n].in_count; i++)
            old[n].in[i] = rw.map[old[n].in[i]];
        rewrite_node(&rw, &old[n], rule);
    }
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = rw.map[graph->output[i].value];
    for (uint32_t i = 0; i < graph->update_count; i++)
        graph->update[i].source = rw.map[graph->update[i].source];
    graph_compact(graph);
    context->changes = rw.changes;
}
