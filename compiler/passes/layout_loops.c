/* Layout of what loops carry: a body that makes a next value in blocks, and moves it to plain memory only to hand it
 * on, hands on the blocks, if all that reads it in the next round can read them.  Then it is moved once before the loop
 * and once behind it, and in no round.
 *
 * What is handed on to another carried value, a <- b, is of one group with that: all of a group come in blocks, or none
 * does. */
#include "passes/layout.h"

#include "ops/family.h"
#include "ops/meaning.h"

typedef struct Carried {
    Loop loop;
    Arena *arena;
    uint32_t *group; /* per carried value: another of its group, or itself */
    uint32_t *block; /* per group ... */
    bool *plain;     /* ... and whether somebody needs it plain */
} Carried;

static uint32_t group_of(Carried *c, uint32_t i)
{
    while (c->group[i] != i)
        i = c->group[i] = c->group[c->group[i]];
    return i;
}

/* Per value of a body: which carried value it is; NONE. */
static const uint32_t *number_carried(const Carried *c, const Graph *body)
{
    uint32_t *number = ARENA_ARRAY(c->arena, uint32_t, body->value_count);
    for (ValueId v = 0; v < body->value_count; v++)
        number[v] = NONE;
    for (uint32_t i = 0; i < c->loop.carried; i++)
        number[body->input[i]] = i;
    return number;
}

/* What the body makes of it in blocks, and only moves; NONE. */
static ValueId moved(const Graph *body, ValueId value)
{
    const Node *node = value_producer(body, value);
    return node && op_info(node->op)->family == FAMILY_LAYOUT && !layout_block(body, value) ? node->in[0] : NONE;
}

static void join_groups(Carried *c, const uint32_t *number)
{
    for (uint32_t i = 0; i < c->loop.carried; i++) {
        uint32_t from = number[c->loop.body->output[i].value];
        if (from != NONE)
            c->group[group_of(c, from)] = group_of(c, i);
    }
}

static void find_blocks(Carried *c, const uint32_t *number)
{
    const Graph *body = c->loop.body;
    for (uint32_t i = 0; i < c->loop.carried; i++) {
        ValueId next = body->output[i].value, from = moved(body, next);
        uint32_t group = group_of(c, i), block = from == NONE ? 0 : layout_block(body, from);
        if (number[next] != NONE)
            continue;
        c->plain[group] |= !block || (c->block[group] && c->block[group] != block);
        c->block[group] = block;
    }
}

static bool is_dense(const Graph *graph, const Node *node)
{
    Convolution conv;
    return convolution_of(graph, node, &conv) && conv.groups == 1;
}

/* Can the node read its operand in blocks as well as plain, and give the same type of result? */
static bool reads_blocks(const Graph *graph, const Node *node, uint32_t operand, uint32_t block)
{
    ValueId value = node->in[operand];
    switch (op_info(node->op)->family) {
    case FAMILY_LAYOUT: /* it is what that has made */
        return layout_block(graph, node->out[0]) == block;
    case FAMILY_CONTRACT:
        return operand == 0 && value != node->in[1] && is_dense(graph, node);
    case FAMILY_REDUCE:
        return reduction_of(graph, node).kind != REDUCE_POSITION;
    case FAMILY_ELEMENTWISE:
    case FAMILY_CAST:
        return layout_block(graph, node->out[0]) == block &&
               shape_eq(value_shape(graph, value), value_shape(graph, node->out[0]));
    default:
        return false;
    }
}

static void find_readers(Carried *c, const Graph *body)
{
    const uint32_t *number = number_carried(c, body);
    for (NodeId n = 0; n < body->node_count; n++) {
        const Node *node = &body->node[n];
        for (uint32_t i = 0; i < node->in_count; i++) {
            uint32_t carried = number[node->in[i]], group = carried == NONE ? NONE : group_of(c, carried);
            if (group != NONE && !c->plain[group])
                c->plain[group] = !reads_blocks(body, node, i, c->block[group]);
        }
    }
}

const uint32_t *layout_carried(const Graph *graph, const Node *node, Arena *arena)
{
    Carried c = {.loop = loop_of(graph, node), .arena = arena};
    uint32_t *block = ARENA_ARRAY(arena, uint32_t, c.loop.carried);
    c.group = ARENA_ARRAY(arena, uint32_t, c.loop.carried);
    c.block = ARENA_ARRAY(arena, uint32_t, c.loop.carried);
    c.plain = ARENA_ARRAY(arena, bool, c.loop.carried);
    for (uint32_t i = 0; i < c.loop.carried; i++)
        c.group[i] = i;
    const uint32_t *number = number_carried(&c, c.loop.body);
    join_groups(&c, number);
    find_blocks(&c, number);
    for (uint32_t s = 0; s < node->sub_count; s++)
        find_readers(&c, node->sub[s]);
    for (uint32_t i = 0; i < c.loop.carried; i++)
        block[i] = c.plain[group_of(&c, i)] ? 0 : c.block[group_of(&c, i)];
    return block;
}

/* What was moved to blocks is what is carried; what nobody reads any more is gone. */
static void leave_moves(Graph *body, Arena *arena)
{
    ValueId *map = ARENA_ARRAY(arena, ValueId, body->value_count);
    for (ValueId v = 0; v < body->value_count; v++)
        map[v] = v;
    for (NodeId n = 0; n < body->node_count; n++) {
        const Node *node = &body->node[n];
        if (op_info(node->op)->family == FAMILY_LAYOUT &&
            value_type(body, node->in[0]) == value_type(body, node->out[0]))
            map[node->out[0]] = node->in[0];
    }
    graph_replace(body, map);
    Users users = graph_users(body, arena);
    const bool *live_out = graph_live_out(body, arena);
    for (NodeId n = 0; n < body->node_count; n++) {
        ValueId out = body->node[n].out_count ? body->node[n].out[0] : NONE;
        body->node[n].dead |= op_info(body->node[n].op)->family == FAMILY_LAYOUT && !live_out[out] &&
                              users.first[out] == users.first[out + 1];
    }
    graph_compact(body);
}

void layout_carry(const Graph *graph, const Node *node, const uint32_t *block, Arena *arena)
{
    Loop loop = loop_of(graph, node);
    bool any = false;
    for (uint32_t i = 0; i < loop.carried; i++) {
        any |= block[i] != 0;
        ValueId *next = &loop.body->output[i].value;
        if (block[i] && moved(loop.body, *next) != NONE)
            *next = moved(loop.body, *next);
        for (uint32_t s = 0; block[i] && s < node->sub_count; s++)
            layout_set_block(node->sub[s], node->sub[s]->input[i], block[i]);
    }
    for (uint32_t s = 0; any && s < node->sub_count; s++)
        leave_moves(node->sub[s], arena);
}
