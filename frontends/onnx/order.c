/* Nodes in an order in which each reads what is there.  The specification asks for that, but converters append nodes
 * that others read, and runtimes sort them. */
#include "base/map.h"
#include "onnx/import.h"

typedef struct Order {
    Onnx__NodeProto *const *list;
    size_t count;
    Map maker;                /* of a name, which node */
    uint32_t *need, *first;   /* the nodes that node i reads of: need[first[i]] ... need[first[i + 1]] */
    uint32_t needs, capacity; /* of need */
    bool *begun, *done;       /* per node */
    Onnx__NodeProto **sorted;
    size_t sorted_count;
    Arena *arena;
} Order;

static void need_name(Order *o, const char *name)
{
    uint32_t maker = name && *name ? map_get(&o->maker, str_from(name)) : MAP_NONE;
    if (maker != MAP_NONE)
        ARENA_PUSH(o->arena, o->need, o->needs, o->capacity, maker);
}

static void need_all(Order *o, const Onnx__NodeProto *node);

/* Recurses over the nesting of bodies, which the reader of the file has bounded. */
static void need_body(Order *o, const Onnx__GraphProto *body)
{
    for (size_t i = 0; i < body->n_node; i++)
        need_all(o, body->node[i]);
    for (size_t i = 0; i < body->n_output; i++)
        need_name(o, body->output[i]->name);
}

static void need_all(Order *o, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_input; i++)
        need_name(o, node->input[i]);
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g)
            need_body(o, node->attribute[i]->g);
}

/* False: each reads what is before it already. */
static bool find_needs(Order *o)
{
    bool late = false;
    for (size_t i = o->count; i-- > 0;) /* of a name that two give, the first */
        for (size_t k = 0; k < o->list[i]->n_output; k++)
            if (o->list[i]->output[k] && *o->list[i]->output[k])
                map_put(&o->maker, str_from(o->list[i]->output[k]), (uint32_t)i);
    o->first = ARENA_ARRAY(o->arena, uint32_t, o->count + 1);
    for (size_t i = 0; i < o->count; i++) {
        need_all(o, o->list[i]);
        o->first[i + 1] = o->needs;
        for (uint32_t k = o->first[i]; k < o->needs; k++)
            late |= o->need[k] >= i;
    }
    return late;
}

/* The node after what it reads of.  False where that is a circle. */
static bool visit(Order *o, uint32_t root, uint32_t *stack, uint32_t *next)
{
    uint32_t depth = 0;
    if (!o->begun[root])
        stack[depth++] = root;
    o->begun[root] = true;
    while (depth) {
        uint32_t node = stack[depth - 1], at = o->first[node] + next[node]++;
        if (at == o->first[node + 1]) {
            o->sorted[o->sorted_count++] = o->list[node];
            o->done[node] = true;
            depth--;
        } else if (!o->begun[o->need[at]]) {
            o->begun[o->need[at]] = true;
            stack[depth++] = o->need[at];
        } else if (!o->done[o->need[at]])
            return false;
    }
    return true;
}

Onnx__NodeProto *const *onnx_in_order(Arena *arena, Onnx__NodeProto *const *list, size_t count)
{
    Order o = {.list = list, .count = count, .maker = {.arena = arena}, .arena = arena};
    if (!find_needs(&o))
        return list;
    uint32_t *stack = ARENA_ARRAY(arena, uint32_t, count), *next = ARENA_ARRAY(arena, uint32_t, count);
    o.begun = ARENA_ARRAY(arena, bool, count);
    o.done = ARENA_ARRAY(arena, bool, count);
    o.sorted = ARENA_ARRAY(arena, Onnx__NodeProto *, count);
    for (uint32_t i = 0; i < count; i++)
        if (!visit(&o, i, stack, next))
            return list; /* the import says where */
    return o.sorted;
}
