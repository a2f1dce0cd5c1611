/* Calls of library functions that are given the same types and constants have one body, which is built once; where it
 * makes params, whose names are the call's, each has a copy with its own names, and seeds that are made of these.
 *
 * What updates something, or asks for its label for another end, is built for each call.  The user's own functions may
 * call themselves, and so stay within the limit on depth; those with gradients of their own are shared, since these may
 * come to the same call again. */
#include "frontends/nnc/build_call.h"

static void put_bytes(Text *key, const void *bytes, size_t count)
{
    text_str(key, map_key(bytes, count));
}

/* Every piece says how long it is, so that two lists of things cannot come to the same bytes. */
static void put_const(Text *key, const Const *c)
{
    put_bytes(key, &c->kind, sizeof c->kind);
    if (c->kind == C_LIST) {
        put_bytes(key, &c->count, sizeof c->count);
        put_bytes(key, &c->depth, sizeof c->depth);
        for (uint32_t i = 0; i < c->count; i++)
            put_const(key, &c->item[i]);
    } else if (c->kind == C_STRING) {
        put_bytes(key, &c->s.len, sizeof c->s.len);
        text_str(key, c->s);
    } else {
        put_bytes(key, &c->i, sizeof c->i); /* of a float its bits: -0.0 is not 0.0 */
    }
}

/* Of tensors the types, which there is one of each. */
static void put_thing(Text *key, const Graph *graph, const Thing *thing)
{
    put_bytes(key, &thing->kind, sizeof thing->kind);
    if (thing->kind == THING_CONST) {
        put_const(key, &thing->c);
    } else if (thing->kind == THING_VALUE) {
        put_bytes(key, &graph->value[thing->value].type, sizeof(Type *));
        put_bytes(key, &graph->value[thing->value].bits, sizeof(uint32_t));
    } else if (thing->kind == THING_LIST) {
        put_bytes(key, &thing->count, sizeof thing->count);
        put_bytes(key, &thing->c.depth, sizeof thing->c.depth);
        for (uint32_t i = 0; i < thing->count; i++)
            put_thing(key, graph, &thing->many[i]);
    }
}

Str build_share_key(Builder *b, const Binder *binder, Text *key)
{
    bool shares = binder->function->gradient || str_is(binder->function->file->path, "nn");
    if (!shares || !b->frame->graph)
        return (Str){0};
    put_bytes(key, &binder->function, sizeof binder->function);
    put_bytes(key, &b->frame->nesting, sizeof b->frame->nesting);
    for (uint32_t i = 0; i < binder->function->formal_count; i++) {
        const Given *given = &binder->given[i];
        put_bytes(key, &given->present, sizeof given->present);
        if (given->present)
            put_thing(key, b->frame->graph, &given->thing);
    }
    return text_view(key);
}

/* Copies */

typedef struct Rename {
    Builder *b;
    Str from, to; /* what the names of params begin with */
} Rename;

static Str renamed(const Rename *r, Str name)
{
    Str rest = {name.ptr + r->from.len, name.len - r->from.len};
    return str_format(r->b->arena, STR_FMT STR_FMT, STR_ARG(r->to), STR_ARG(rest));
}

static bool is_kept(const Value *value)
{
    return value->role == ROLE_PARAM || value->role == ROLE_STATE;
}

/* Is the seed of its initialiser made of its name, as the library has it? */
static bool is_seeded(const Graph *graph, const Value *value)
{
    const Node *initial = is_kept(value) && value->initial != NONE ? &graph->initial[value->initial] : NULL;
    uint32_t seed = initial ? attr_index(initial->op, STR("seed")) : NONE;
    return seed != NONE && initial->attr[seed].i == const_hash(value->name);
}

static void seed_by_name(Builder *b, Graph *graph, const Value *value)
{
    Node *initial = &graph->initial[value->initial];
    Attr *attr = arena_copy(b->arena, initial->attr, op_attr_count(initial->op) * sizeof *attr);
    attr[attr_index(initial->op, STR("seed"))].i = const_hash(value->name);
    initial->attr = attr;
}

static uint32_t count_seeded(const Graph *body)
{
    uint32_t count = 0;
    for (ValueId v = 0; v < body->value_count; v++)
        count += is_seeded(body, &body->value[v]);
    for (NodeId n = 0; n < body->node_count; n++)
        for (uint32_t i = 0; i < body->node[n].sub_count; i++)
            count += count_seeded(body->node[n].sub[i]);
    return count;
}

/* Are the names free?  If not, building reports it.  Recurses over the nesting. */
static bool is_free(const Rename *r, const Graph *body)
{
    bool free = true;
    for (ValueId v = 0; v < body->value_count && free; v++)
        if (is_kept(&body->value[v]))
            free = map_get(&r->b->params, renamed(r, body->value[v].name)) == MAP_NONE;
    for (NodeId n = 0; n < body->node_count && free; n++)
        for (uint32_t i = 0; i < body->node[n].sub_count && free; i++)
            free = is_free(r, body->node[n].sub[i]);
    return free;
}

/* Of a copy, whose loops and branches are its own, while bodies of calls are still those of the original.  Recurses
 * over the nesting. */
static void rename_params(const Rename *r, Graph *copy)
{
    for (ValueId v = 0; v < copy->value_count; v++) {
        Value *value = &copy->value[v];
        bool seeded = is_seeded(copy, value);
        if (!is_kept(value))
            continue;
        value->name = renamed(r, value->name);
        if (seeded)
            seed_by_name(r->b, copy, value);
        build_claim_param(r->b, value->name, value->place);
    }
    for (NodeId n = 0; n < copy->node_count; n++) {
        Node *node = &copy->node[n];
        bool call = node_is_call(node) && build_keeps_values(node->sub[0]);
        if (call) {
            node->sub = arena_copy(r->b->arena, node->sub, node->sub_count * sizeof *node->sub);
            node->sub[0] = graph_clone(node->sub[0]);
            rename_params(r, node->sub[0]);
        }
        for (uint32_t i = 0; node_has_bodies(node) && i < node->sub_count; i++)
            rename_params(r, node->sub[i]);
    }
}

bool build_share_find(Builder *b, const Binder *binder, Str key, Callee *callee)
{
    uint32_t index = key.len ? map_get(&b->shared, key) : MAP_NONE;
    if (index == MAP_NONE)
        return false;
    const Callee *shared = b->callee[index];
    Rename rename = {b, shared->prefix, {0}};
    if (shared->params) {
        rename.to = str_format(b->scratch, STR_FMT ".", STR_ARG(build_call_label(b, binder)));
        if (!is_free(&rename, shared->body))
            return false;
    }
    *callee = *shared;
    b->label_reads += shared->label_reads;
    if (shared->params) {
        callee->body = graph_clone(shared->body);
        rename_params(&rename, callee->body);
    }
    return true;
}

void build_share_keep(Builder *b, Str key, const Callee *callee)
{
    if (!key.len || !callee->alike || map_get(&b->shared, key) != MAP_NONE)
        return;
    if (callee->label_reads && (!callee->body || callee->label_reads != count_seeded(callee->body)))
        return;
    map_put(&b->shared, str_copy(b->scratch, key), b->callee_count);
    ARENA_PUSH(b->scratch, b->callee, b->callee_count, b->callee_capacity,
               arena_copy(b->scratch, callee, sizeof *callee));
}
